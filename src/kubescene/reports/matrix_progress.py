"""Progress of many runs: a live line on a terminal, plain lines elsewhere.

Rate and time left are by the machine's clock: they are for the one who waits, and in no result.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console

from kubescene.clock import SECOND, WallClock
from kubescene.reports.words import counted

if TYPE_CHECKING:
    from rich.progress import Progress

SAY_EVERY = 5 * SECOND


class MatrixProgress:
    """Says how many runs are finished. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = WallClock()
        self._began = self._said = self._clock.now()
        self._total = self._kept = self._played = self._failed = 0
        self._live: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def start(self, total: int, kept: int) -> None:
        """``kept`` of all runs were finished earlier."""
        self._total, self._kept = total, kept
        self._began = self._said = self._clock.now()
        if self._console.is_terminal and total > kept:
            self._live = live_line(self._console)
            self._task = self._live.add_task(self.reached, total=total, completed=kept)
            self._live.start()

    def note(self, *, failed: bool) -> None:
        """One more run is over."""
        self._played += 1
        self._failed += failed
        if self._live is not None:
            self._live.update(self._task, advance=1, description=self.reached)
        elif self._is_over or self._clock.now() - self._said >= SAY_EVERY:
            self._said = self._clock.now()
            self.say(self.reached)

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

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
        text = f"{self._kept + self._played} of {counted(self._total, 'run')}"
        if self._failed:
            text += f", {self._failed} failed"
        spent = (self._clock.now() - self._began) / SECOND
        if self._played and spent > 0:
            text += f", {self._played / spent:.3g} a second"
            if not self._is_over:
                left = (self._total - self._kept - self._played) * spent / self._played
                text += f", about {left:.0f} s left"
        return text


def live_line(console: Console) -> "Progress":
    # Imported only for people who watch.
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    return Progress(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
    )
