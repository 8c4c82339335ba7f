"""How many events and draws a second: the queue of the world's time, and its chance.

    python bench/event_queue.py [--quick]

Each event that runs plans one more at a drawn instant, so that the heap keeps its size: one push,
one pop and one call of a bound method with data. Best of several runs.
"""

from functools import partial

from kubescene.clock import SECOND, EventQueue, Stream, VirtualClock
from measuring import Figures, Span, alone, best_of, row, start

PENDING = (100, 10_000, 100_000)
DELAYS = 1 << 16
REPEAT = 7


class World:
    """Events that plan their successors."""

    def __init__(self, pending: int) -> None:
        self.clock = VirtualClock()
        self.queue = EventQueue(self.clock)
        self.delays: list[int] = Stream(1).exponentials(10 * SECOND, DELAYS).tolist()
        self.left = 0
        for number in range(pending):
            self.queue.after(self.delays[number % DELAYS], self.happen, number)

    def happen(self, number: int) -> None:
        self.left = left = self.left - 1
        if left >= 0:
            instant = self.clock.now() + self.delays[left % DELAYS]
            self.queue.at(instant, self.happen, number, name="next")

    def play(self, events: int) -> None:
        self.left = events
        queue, pending = self.queue, len(self.queue)
        while self.left > 0:
            queue.run(until=self.clock.now() + SECOND)
        # What ran without a successor is put back, so that every round is alike.
        for number in range(pending - len(queue)):
            queue.after(self.delays[number % DELAYS], self.happen, number)


def single(draw: str, count: int) -> None:
    stream = Stream(1)
    if draw == "exponential":
        for _ in range(count):
            stream.exponential(SECOND)
    else:
        for _ in range(count):
            stream.normal(SECOND, SECOND)


def batch(draw: str, count: int, size: int) -> None:
    stream = Stream(1)
    for _ in range(count // size):
        if draw == "exponential":
            stream.exponentials(SECOND, size)
        else:
            stream.normals(SECOND, SECOND, size)


def measure(count: int, pending: int = 0, draw: str = "", size: int = 0) -> Figures:
    if pending:
        span = best_of(REPEAT, partial(World(pending).play, count))
    elif size:
        span = best_of(REPEAT, partial(batch, draw, count, size))
    else:
        span = best_of(REPEAT, partial(single, draw, count))
    return span._asdict()


def main(quick: bool) -> None:
    count = 50_000 if quick else 200_000
    for pending in PENDING:
        span = Span(**alone(__file__, count=count, pending=pending))
        floor = "floor 500,000 /s" if pending == 10_000 else ""
        row(f"events, {pending:,} pending", span.per(count), floor)
    for draw in ("exponential", "normal"):
        span = Span(**alone(__file__, count=count, draw=draw))
        row(f"{draw} draws, one by one", span.per(count), "aim 1,000,000 /s")
        for size in (1_000, 20_000):
            span = Span(**alone(__file__, count=20 * count, draw=draw, size=size))
            row(f"{draw} draws, {size:,} at once", span.per(20 * count))


if __name__ == "__main__":
    start(measure, main)
