"""Running controllers until they have come to rest.

Round-robin, one key per controller and round, in the order given, until a full round in which none
wrote or has anything left. Exact: nobody waits for anything.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from kubescene.control.loops import Controller
from kubescene.errors import KubesceneError

ROUNDS_PER_OBJECT = 10


class LivelockError(KubesceneError):
    """Controllers keep undoing each other's work, or never stop creating more."""


def settle(
    controllers: Sequence[Controller], max_rounds: int, *, objects: Callable[[], int]
) -> bool:
    """Run to rest; returns whether anything was written. ``max_rounds`` ends a livelock."""
    wrote = False
    patience = Patience(max_rounds, objects)
    while True:
        writers = []
        more = False
        for controller in controllers:
            progress = controller.run_once()
            if progress.wrote:
                writers.append(controller.name)
            more = more or progress.more
        if not writers and not more:
            return wrote
        wrote = wrote or bool(writers)
        patience.spend(writers)


class Patience:
    """How long controllers may go on.

    A large cluster legitimately needs a round per object, so the limit is ``max_rounds`` plus
    `ROUNDS_PER_OBJECT` for every object, counted when there were most. Whoever creates objects
    could raise that limit forever: beyond ``max_rounds``, only as many rounds again may leave more
    objects behind.
    """

    def __init__(self, max_rounds: int, objects: Callable[[], int]) -> None:
        self._max_rounds = max_rounds
        self._objects = objects
        self._rounds = 0
        self._growing = 0
        self._existing = 0
        self._most = 0
        self._writers: Counter[str] = Counter()

    def spend(self, writers: Iterable[str]) -> None:
        """One more round; raises `LivelockError` when there were too many."""
        self._rounds += 1
        if self._rounds <= self._max_rounds:
            return
        self._writers.update(writers)
        before, self._existing = self._existing, self._objects()
        self._growing += self._existing > before
        self._most = max(self._most, self._existing)
        limit = self._max_rounds + ROUNDS_PER_OBJECT * self._most
        if self._rounds > limit or self._growing > self._max_rounds:
            writes = self._writers.most_common()
            names = ", ".join(f"{name} ({count} writes)" for name, count in writes)
            raise LivelockError(
                f"the controllers did not come to rest after {self._rounds} rounds; "
                f"still writing: {names}"
            )
