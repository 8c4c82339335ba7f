"""How long controllers may go on before somebody says that they will never end.

A large cluster legitimately needs a round per object, so the limit is ``max_rounds`` plus
`ROUNDS_PER_OBJECT` for every object, counted when there were most. Whoever creates objects
could raise that limit forever: beyond ``max_rounds``, only as many rounds again may leave more
objects behind.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from kubescene.errors import KubesceneError

ROUNDS_PER_OBJECT = 10
DEFAULT_MAX_ROUNDS = 10_000


class LivelockError(KubesceneError):
    """Controllers keep undoing each other's work, or never stop finding more of it."""


class Patience:
    """Counts the rounds of one attempt to come to rest."""

    _rounds = 0
    _growing = 0
    _existing = 0
    _most = 0
    _turns: Counter[str] | None = None
    _writes: Counter[str] | None = None

    def __init__(self, max_rounds: int, objects: Callable[[], int]) -> None:
        self._max_rounds = max_rounds
        self._objects = objects

    def spend(self, turned: Iterable[str], wrote: Iterable[str]) -> None:
        """One more round; raises `LivelockError` when there were too many."""
        self._rounds += 1
        if self._rounds <= self._max_rounds:
            return
        if self._turns is None or self._writes is None:
            self._turns, self._writes = Counter(), Counter()
        self._turns.update(turned)
        self._writes.update(wrote)
        before, self._existing = self._existing, self._objects()
        self._growing += self._existing > before
        self._most = max(self._most, self._existing)
        limit = self._max_rounds + ROUNDS_PER_OBJECT * self._most
        if self._rounds > limit:
            grown = f"{ROUNDS_PER_OBJECT} for each of {self._most} objects"
            allowed = f"{self._max_rounds} (maxSettleRounds) and {grown}"
            raise LivelockError(self._complaint(allowed, self._turns, self._writes))
        if self._growing > self._max_rounds:
            grown = "as many that leave more objects behind"
            allowed = f"{self._max_rounds} (maxSettleRounds), and {grown}"
            raise LivelockError(self._complaint(allowed, self._turns, self._writes))

    def _complaint(self, allowed: str, turns: Counter[str], writes: Counter[str]) -> str:
        names = [_busy(name, writes[name]) for name, _ in turns.most_common()]
        return (
            f"the controllers did not come to rest after {self._rounds} rounds "
            f"(allowed are {allowed}); still busy: {', '.join(names) or 'only the event queue'}"
        )


def _busy(name: str, writes: int) -> str:
    return f"{name} ({writes} writes)" if writes else f"{name} (writes nothing)"
