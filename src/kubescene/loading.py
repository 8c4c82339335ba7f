"""Importing many modules at once.

What is imported stays. Looking for garbage among it, as happens every few hundred objects, is a
tenth of the time that a first run takes.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile, and what there is then counts as old."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # into the oldest generation, without looking at any of it
        if was_on:
            gc.enable()
