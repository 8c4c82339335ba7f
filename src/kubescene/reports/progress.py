"""How far something is: a live line on a terminal, plain lines elsewhere.

Rates and time left are by the machine's clock: they are for the one who waits, and in no result.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from rich.console import Console

from kubescene.actors import Role
from kubescene.clock import SECOND, ScenarioStep, WallClock
from kubescene.reports.tallies import RunTally, ScenarioSize, time_left
from kubescene.reports.words import counted
from kubescene.timeline import Instrument, ObjectWrite, SchedulingAttempt, StepPhaseChange

if TYPE_CHECKING:
    from rich.progress import Progress

REFRESH_EVERY = 200
SAY_EVERY, SAY_RUNS_EVERY = 10 * SECOND, 5 * SECOND
"""How often a long step, or a run more, is told of where nobody can redraw a line."""
ROOM_FOR_BAR = 100
"""Columns of a terminal that shows a bar as well; the numbers alone need nearly 80."""


STEP_COLUMNS = ("step", "count")


class LiveLine:
    """One line, redrawn on a terminal; elsewhere said anew if nothing was said for long.

    ``columns`` of the terminal's line, before the text: those that `live_line` knows.
    """

    def __init__(self, console: Console, every: int, *columns: str) -> None:
        self.console = console
        self._columns = columns
        self._clock = WallClock()
        self._every = every
        self._began = self._said = self._clock.now()
        self._live: Progress | None = None

    def open(self, total: float, completed: int = 0, text: str = "") -> None:
        """From now on it is shown, if there is a terminal."""
        self._began = self._said = self._clock.now()
        if self.console.is_terminal:
            self._live = live_line(self.console, self._columns)
            self._task = self._live.add_task(text, total=total, completed=completed)
            self._live.start()

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def is_live(self) -> bool:
        return self._live is not None

    @property
    def spent_s(self) -> float:
        return (self._clock.now() - self._began) / SECOND

    @property
    def is_due(self) -> bool:
        """Whether nothing was said for long."""
        return self._clock.now() - self._said > self._every

    def show(self, text: str, **moved: float) -> None:
        """Redraw the line: ``advance`` by so much, or ``completed`` so much of the total."""
        if self._live is not None:
            self._live.update(self._task, description=text, **moved)  # type: ignore[arg-type]

    def say(self, text: str) -> None:
        """A line of its own."""
        self._said = self._clock.now()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def live_line(console: Console, columns: Sequence[str]) -> "Progress":
    # Imported only for people who watch.
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
    )

    made: dict[str, ProgressColumn] = {
        "bar": BarColumn(bar_width=24),
        "count": MofNCompleteColumn(),
        "percent": TaskProgressColumn(),
    }
    shown = [made.get(name) or TextColumn(name) for name in columns]
    text = TextColumn("{task.description}")
    return Progress(SpinnerColumn(), *shown, text, console=console, transient=True)


class ProgressReporter(Instrument):
    """An instrument that says how far the run is. Use it as a context manager.

    Objects that operations create and pods that are bound both count, so that a step that only
    creates is seen to move.
    """

    in_lane = counts_attempts = True

    def __init__(self, console: Console, amounts: ScenarioSize) -> None:
        bar = ("bar",) if console.width >= ROOM_FOR_BAR else ()
        self._line = LiveLine(console, SAY_EVERY, *STEP_COLUMNS, *bar)
        self._amounts = amounts
        self._written = self._bound = self._failed = self._steps = self._changes = 0
        self._step = ScenarioStep(0, 0)
        self._origin: tuple[str, int | None] | None = None

    def __enter__(self) -> Self:
        self._line.open(self._amounts.steps)
        return self

    def __exit__(self, *ending: object) -> None:
        self._line.close()

    @property
    def reached(self) -> str:
        """How far it is, in words."""
        return f"step {self._step.major}.{self._step.minor}: {self._tally().told()}"

    def phase_changed(self, change: StepPhaseChange) -> None:
        self._step = change.step

    def object_written(self, write: ObjectWrite) -> None:
        if write.role is Role.ENGINE and write.origin is not None:
            # An eviction is several writes of one operation.
            origin = (write.origin.id, write.origin.index)
            self._written += origin != self._origin
            self._origin = origin
            self._note()

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        if attempt.node:
            self._bound += 1
        else:
            self._failed += 1
        self._note()

    def step_finished(self, step: ScenarioStep) -> None:
        self._steps += 1
        if self._line.is_live:
            self._line.show(self._tally().short(), advance=1)
            return
        self._line.say(
            f"step {step.major} ({self._steps} of {self._amounts.steps}) at rest after "
            f"{counted(step.minor, 'minor step')}: {self._tally().told()}"
        )

    def _note(self) -> None:
        self._changes += 1
        if not self._changes % REFRESH_EVERY:
            self._tell()

    def _tell(self) -> None:
        """Redraw the line, or say how far it is if nothing was said for long."""
        if self._line.is_live:
            self._line.show(self._tally().short())
        elif self._line.is_due:
            self._line.say(self.reached)

    def _tally(self) -> RunTally:
        spent = self._line.spent_s
        return RunTally(self._amounts, self._written, self._bound, self._failed, spent)


class MatrixProgress:
    """Says how many runs are finished. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._line = LiveLine(console, SAY_RUNS_EVERY, "bar")
        self._total = self._kept = self._played = self._failed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        self._line.close()

    def start(self, total: int, kept: int) -> None:
        """``kept`` of all runs were finished earlier."""
        self._total, self._kept = total, kept
        if total > kept:
            self._line.open(total, kept, self.reached)

    def note(self, *, failed: bool) -> None:
        """One more run is over."""
        self._played += 1
        self._failed += failed
        if self._line.is_live:
            self._line.show(self.reached, advance=1)
        elif self._is_over or self._line.is_due:
            self._line.say(self.reached)

    def say(self, text: str) -> None:
        self._line.say(text)

    @property
    def finished(self) -> int:
        """Runs that are over and did not fail, now or earlier."""
        return self._kept + self._played - self._failed

    @property
    def _is_over(self) -> bool:
        return self._kept + self._played == self._total

    @property
    def reached(self) -> str:
        """How far it is, how fast, and how long the rest may take if it goes on like that."""
        text = f"{self._kept + self._played:,} of {counted(self._total, 'run')}"
        if self._failed:
            text += f", {self._failed} failed"
        spent = self._line.spent_s
        if self._played and spent >= 1:
            text += f", {self._played / spent:.3g} a second"
        left = time_left(self._played, self._total - self._kept, spent)
        return text if left is None else f"{text}, about {max(left, 1):.0f} s left"
