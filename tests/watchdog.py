"""Ends a test run that hangs, and says where every thread stands.

A test has no time limit, machines are shared; but threads that wait for each other wait for good,
and whoever started the run would never learn where.
"""

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 600


@contextmanager
def guarded(stderr: int, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """End the process if what is inside takes longer; the stacks of all threads go to a file."""
    faulthandler.dump_traceback_later(patience_s, exit=True, file=stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
