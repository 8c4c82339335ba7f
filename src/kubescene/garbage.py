"""When Python's garbage collector looks: every setting of it that Kubescene ever touches.

The collector belongs to the process. Whoever uses Kubescene as a library keeps their settings: all
that stands here does nothing until somebody calls `take_charge`, as the command ``kubescene``, its
worker processes and the benchmarks do. What it is worth is in ``docs/benchmarks.md``.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 2_000
"""Between two looks of the collector in a server: about a millisecond each."""
NEVER = 1_000_000
MIDDLE_LOOKS = 50
"""Looks at new objects between two looks at those that a server made lately: some ten
milliseconds."""
WORTH_LOOKS = 10
"""Such looks after which it is worth to look at everything: about a million new objects."""


class Litter:
    """How much the runs of this process have left behind since somebody looked."""

    MOST = 20_000

    def __init__(self) -> None:
        self.facts = 0

    def sweep(self) -> None:
        """Let go of worlds that nobody holds any more, if it is worth it."""
        if self.facts >= self.MOST:
            self.facts = 0
            gc.collect()

    def put_by(self) -> None:
        """Have what a long run has left counted as old without looking through it.

        Most of it is in use, since the run has just ended; `sweep` looks before the next one.
        """
        if self.facts >= self.MOST:
            count_as_old()


class Charge:
    """Whether the process is Kubescene's own."""

    is_taken = False


LITTER = Litter()


def take_charge() -> None:
    """From now on the collector of this process looks when Kubescene finds it useful."""
    Charge.is_taken = True


def count_as_old() -> None:
    """Everything that exists goes to the oldest generation, without being looked at."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile, and what there is then counts as old.

    For what makes many objects that stay: imports, the entries of a ledger. Looking for garbage
    among the modules is a tenth of the time that a first run takes.
    """
    if not Charge.is_taken:
        yield
        return
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        count_as_old()
        if was_on:
            gc.enable()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the garbage collector look less often while a scenario plays.

    A run makes many short-lived objects without cycles; looking for cycles among them costs a
    tenth of its time. The worlds of earlier runs are cycles: they go before there are too many.
    """
    if not Charge.is_taken:
        yield
        return
    LITTER.sweep()
    with thresholds(50_000, 50, 50):
        try:
            yield
        finally:
            LITTER.put_by()


@contextmanager
def short_collections() -> Iterator[None]:
    """Let the garbage collector look at new objects only, and at few at a time.

    For a server: nobody can be answered while it looks. What a scenario makes stays: looking at all
    of it again and again would take a tenth of a second each time, and find nothing.
    """
    if not Charge.is_taken:
        yield
        return
    with thresholds(YOUNG_OBJECTS, NEVER, NEVER):
        yield


@contextmanager
def thresholds(*numbers: int) -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*numbers)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def serving() -> Iterator[None]:
    """For a server: nothing but `tidy` looks at everything, which takes tenths of a second."""
    if not Charge.is_taken:
        yield
        return
    keep_what_exists()
    with thresholds(YOUNG_OBJECTS, MIDDLE_LOOKS, NEVER):
        yield


def tidy() -> bool:
    """Look at everything, if that is worth it; whether it was. For when nobody asks anything."""
    if not Charge.is_taken or gc.get_count()[2] < WORTH_LOOKS:
        return False
    gc.unfreeze()
    keep_what_exists()
    return True


def keep_what_exists() -> None:
    """What exists now will be there for long: the collector need not look at it again."""
    if Charge.is_taken:
        gc.collect()
        gc.freeze()


def end_of_process() -> None:
    """To look for garbage in all that a process made would be in vain."""
    if Charge.is_taken:
        gc.freeze()
