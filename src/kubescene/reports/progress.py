"""Progress while a scenario plays: a live line on a terminal, plain lines elsewhere.

Objects that operations create and pods that are bound both count, so that a step that only creates
is seen to move. The rate is by the machine's clock: it is for the one who waits, and in no result.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console

from kubescene.actors import Role
from kubescene.clock import SECOND, ScenarioStep, WallClock
from kubescene.reports.tallies import Amounts, Tally
from kubescene.reports.words import counted
from kubescene.timeline import Instrument, ObjectWrite, SchedulingAttempt, StepPhaseChange

if TYPE_CHECKING:
    from rich.progress import Progress

REFRESH_EVERY = 200
SAY_EVERY = 10 * SECOND
"""How often a long step is told of where nobody can redraw a line."""
ROOM_FOR_BAR = 100
"""Columns of a terminal that shows a bar as well; the numbers alone need nearly 80."""


class ProgressReporter(Instrument):
    """An instrument that says how far the run is. Use it as a context manager."""

    in_lane = counts_attempts = True

    def __init__(self, console: Console, amounts: Amounts) -> None:
        self._console = console
        self._amounts = amounts
        self._clock = WallClock()
        self._began = self._said = self._clock.now()
        self._written = self._bound = self._failed = self._steps = self._changes = 0
        self._step = ScenarioStep(0, 0)
        self._origin: tuple[str, int | None] | None = None
        self._progress: Progress | None = None
        if console.is_terminal:
            self._progress = live_line(console)
            self._task = self._progress.add_task("", total=amounts.steps)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

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
        if self._progress is None:
            self._said = self._clock.now()
            self._console.print(
                f"step {step.major} ({self._steps} of {self._amounts.steps}) at rest after "
                f"{counted(step.minor, 'minor step')}: {self._tally().told()}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
        else:
            self._progress.update(self._task, advance=1, description=self._tally().short())

    def _note(self) -> None:
        self._changes += 1
        if not self._changes % REFRESH_EVERY:
            self._tell()

    def _tell(self) -> None:
        """Redraw the line, or say how far it is if nothing was said for long."""
        if self._progress is not None:
            self._progress.update(self._task, description=self._tally().short())
        elif (now := self._clock.now()) - self._said > SAY_EVERY:
            self._said = now
            self._console.print(self.reached, highlight=False, markup=False, soft_wrap=True)

    def _tally(self) -> Tally:
        spent = (self._clock.now() - self._began) / SECOND
        return Tally(self._amounts, self._written, self._bound, self._failed, spent)


def live_line(console: Console) -> "Progress":
    # Imported only for people who watch.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    bar = (BarColumn(bar_width=24),) if console.width >= ROOM_FOR_BAR else ()
    return Progress(
        SpinnerColumn(),
        TextColumn("step"),
        MofNCompleteColumn(),
        *bar,
        TextColumn("{task.description}"),
        console=console,
        transient=True,
    )
