"""Importing many modules at once.

What is imported stays. Looking for garbage among it, as happens every few hundred objects, is a
tenth of the time that a first run takes.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
