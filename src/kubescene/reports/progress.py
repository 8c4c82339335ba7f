"""Progress while a scenario plays: a live line on a terminal, one line per step elsewhere."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console

from kubescene.clock import ScenarioStep
from kubescene.timeline import Instrument, SchedulingAttempt

if TYPE_CHECKING:
    from rich.progress import Progress

REFRESH_EVERY = 200


class ProgressReporter(Instrument):
    """An instrument that says how far the run is. Use it as a context manager."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console = console
        self._bound = 0
        self._failed = 0
        self._progress: Progress | None = None
        if console.is_terminal:
            self._progress = live_line(console)
            self._task = self._progress.add_task("", total=steps)

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

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        if attempt.node:
            self._bound += 1
        else:
            self._failed += 1
        if self._progress is not None and (self._bound + self._failed) % REFRESH_EVERY == 0:
            self._progress.update(self._task, description=self._counts())

    def step_finished(self, step: ScenarioStep) -> None:
        if self._progress is None:
            self._console.print(
                f"step {step.major} at rest after {step.minor} minor steps: {self._counts()}"
            )
        else:
            self._progress.update(self._task, advance=1, description=self._counts())

    def _counts(self) -> str:
        return f"{self._bound} pods bound, {self._failed} failed attempts"


def live_line(console: Console) -> "Progress":
    # Imported only for people who watch.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
    )
