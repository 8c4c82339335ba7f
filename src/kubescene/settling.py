"""Running controllers until they have come to rest.

Round-robin, one key per controller and round, in the order given, until a full round in which none
wrote or has anything left. Exact: nobody waits for anything.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from kubescene.errors import KubesceneError
from kubescene.loops import Controller

ROUNDS_PER_OBJECT = 10


class LivelockError(KubesceneError):
    """Controllers keep undoing each other's work."""


def settle(
    controllers: Sequence[Controller], max_rounds: int, *, objects: Callable[[], int]
) -> bool:
    """Run to rest; returns whether anything was written.

    ``max_rounds`` ends a livelock. A large cluster legitimately needs a round per object, so the
    limit is `max_rounds` plus `ROUNDS_PER_OBJECT` for every object that exists.
    """
    rounds = 0
    wrote = False
    writers: Counter[str] = Counter()
    while True:
        busy = False
        for controller in controllers:
            progress = controller.run_once()
            if progress.wrote:
                wrote = True
                writers[controller.name] += 1
            busy = busy or progress.wrote or progress.more
        if not busy:
            return wrote
        rounds += 1
        if rounds > max_rounds and rounds > max_rounds + ROUNDS_PER_OBJECT * objects():
            names = ", ".join(f"{name} ({count} writes)" for name, count in writers.most_common())
            raise LivelockError(
                f"the controllers did not come to rest after {rounds} rounds; "
                f"still writing: {names}"
            )
