"""How far a run is: totals, the rate, and how long the rest may take."""

from typing import NamedTuple

from kubescene.reports.words import counted

SECONDS_TO_TELL, PART_TO_TELL = 3.0, 0.05
"""Before that much of the time and of the work, nobody can tell how long the rest takes."""


def time_left(done: int, total: int, spent_s: float) -> float | None:
    """Seconds for the rest if it goes on like that; None if nobody can tell yet."""
    if spent_s < SECONDS_TO_TELL or not total * PART_TO_TELL <= done < total:
        return None
    return spent_s * (total - done) / done


class ScenarioSize(NamedTuple):
    """How much a scenario has to do: major steps, objects that operations write, pods of those."""

    steps: int
    writes: int
    pods: int = 0


class RunTally(NamedTuple):
    """What was done in so many seconds of the machine's time."""

    amounts: ScenarioSize
    written: int
    bound: int
    failed: int
    spent_s: float

    @property
    def rate(self) -> float | None:
        """Objects written and pods bound in a second; None before that means anything."""
        return (self.written + self.bound) / self.spent_s if self.spent_s >= 1 else None

    @property
    def left_s(self) -> float | None:
        """If it goes on like that; None if nobody can tell.

        Pods that operations create are to be bound, or at least to be tried.
        """
        tried = min(self.bound + self.failed, self.amounts.pods)
        return time_left(
            self.written + tried, self.amounts.writes + self.amounts.pods, self.spent_s
        )

    def told(self) -> str:
        """In words, for a line of its own."""
        most = max(self.written, self.amounts.writes)
        rate, left = self.rate, self.left_s
        return (
            f"{self.written:,} of {counted(most, 'object')} written, "
            f"{counted(self.bound, 'pod')} bound, {counted(self.failed, 'failed attempt')}"
            f"{'' if rate is None else f', {rate:,.0f} a second'}"
            f"{'' if left is None else f', about {max(left, 1):.0f} s left'}"
        )

    def short(self) -> str:
        """The same for a line that must not be longer than a terminal is wide."""
        most = max(self.written, self.amounts.writes)
        rate, left = self.rate, self.left_s
        parts = [
            f"{self.written}/{most} written",
            f"{self.bound} bound",
            f"{self.failed} failed" if self.failed else "",
            "" if rate is None else f"{rate:,.0f}/s",
            "" if left is None else f"{max(left, 1):.0f} s left",
        ]
        return ", ".join(filter(None, parts))
