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
WORTH_LOOKS = 500
"""Looks at new objects after which it is worth to look at everything: about a million of them."""
BUSY_LOOKS = 100
"""Looks at new objects after which a server that is asked all the time looks at those, and no
others: about 200,000 objects, which takes some 40 milliseconds."""

MOST_LOOKS = 200
"""Looks at new objects after which those are too many to be looked at once more while somebody may
wait: a tenth of a second and more. They are put by until nobody is connected."""


RARELY = 200_000
"""New objects between two looks at these while a scenario plays."""


class Litter:
    """How much the runs of this process have left behind since somebody looked."""

    MOST = 400_000
    """So many objects are worth a look at all there is."""

    def __init__(self) -> None:
        self.objects = 0
        """What is put by outside a server, and may be garbage by now."""
        self.is_served = False
        self.unseen = 0
        """What is put by in a server and may be garbage by now, in looks at new objects."""
        self.world = 0
        """What of the newer objects the world that is served has made, likewise."""

    def sweep(self) -> None:
        """Let go of worlds that nobody holds any more, if it is worth it."""
        if self.objects >= self.MOST:
            self.objects = 0
            gc.collect()

    def put_by(self) -> None:
        """Have everything that exists counted as old, without looking through it.

        Of a run that has just ended most is in use; `sweep` looks before a later one.
        """
        if not gc.get_freeze_count():
            self.objects += gc.get_count()[0]
            gc.freeze()
            gc.unfreeze()


class ProcessCharge:
    """Whether the process is Kubescene's own."""

    is_taken = False


LITTER = Litter()


def take_charge() -> None:
    """From now on the collector of this process looks when Kubescene finds it useful."""
    ProcessCharge.is_taken = True


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile, and what there is then counts as old.

    For what makes many objects that stay: imports, the entries of a ledger. Looking for garbage
    among the modules is a tenth of the time that a first run takes.
    """
    if not ProcessCharge.is_taken:
        yield
        return
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        LITTER.put_by()
        if was_on:
            gc.enable()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the garbage collector look less often while a scenario plays.

    A run makes many short-lived objects without cycles; looking for cycles among them costs a
    tenth of its time. The worlds of earlier runs are cycles: they go before there are too many.
    """
    if not ProcessCharge.is_taken:
        yield
        return
    LITTER.sweep()
    with thresholds(RARELY, 50, 50):
        before = young_looks()
        try:
            yield
        finally:
            LITTER.objects += RARELY * (young_looks() - before)
            LITTER.put_by()


def young_looks() -> int:
    """How often this process has looked at new objects alone."""
    looks: int = gc.get_stats()[0]["collections"]
    return looks


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
    """For a server: nobody can be answered while the collector looks, so it looks at few objects.

    What a scenario makes stays while it is played, and is a cycle afterwards: it is looked at when
    the world is given up (`end_of_world`), and everything that there is only by `tidy`.
    """
    if not ProcessCharge.is_taken:
        yield
        return
    keep_what_exists()
    LITTER.is_served = True
    try:
        with thresholds(YOUNG_OBJECTS, NEVER, NEVER):
            yield
    finally:
        LITTER.is_served = False


def world_is_made() -> None:
    """What a server has made until now is its world's, and not worth a look before it ends."""
    if LITTER.is_served:
        LITTER.world = gc.get_count()[1]


def end_of_world() -> None:
    """The controllers of a world were let go: look at what was made since those before them were.

    In a server only. What is left stays for long: it is put by, so that nobody looks at it again
    when the next world ends. Of a very large one all is: controllers let go of what is large by
    themselves, and what is left of them is little.
    """
    if LITTER.is_served:
        look_at_new()


def look_at_new() -> None:
    """Look at what came since the last time, unless it is too much, and put by what is left."""
    looks = gc.get_count()[1]
    LITTER.unseen += looks
    LITTER.world = 0
    if looks > MOST_LOOKS:
        gc.freeze()
        gc.collect(1)  # finds nothing, and counts anew
        return
    gc.collect()
    gc.freeze()


def tidy(*, is_busy: bool = False, is_alone: bool = True) -> bool:
    """Look at everything, if that is worth it; whether it was. For when nobody asks anything.

    Nobody is answered meanwhile, and of a large world it takes a second. So a server that
    ``is_busy``, or that is not ``is_alone`` since somebody is connected, looks only at what is new,
    and puts it by.
    """
    if not ProcessCharge.is_taken:
        return False
    looks = gc.get_count()[1]
    if is_busy or not is_alone:
        if looks - LITTER.world >= BUSY_LOOKS:
            look_at_new()
        return False
    if LITTER.unseen + looks < WORTH_LOOKS:
        return False
    keep_what_exists()
    return True


def keep_what_exists() -> None:
    """Look at everything; what is left will be there for long and is not looked at again."""
    if ProcessCharge.is_taken:
        LITTER.unseen = LITTER.world = 0
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def end_of_process() -> None:
    """To look for garbage in all that a process made would be in vain."""
    if ProcessCharge.is_taken:
        gc.freeze()
