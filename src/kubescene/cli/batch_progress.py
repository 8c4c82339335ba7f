"""How far many runs are, told on standard error."""

from collections.abc import Sequence
from pathlib import Path

from kubescene.reports.progress import MatrixProgress
from kubescene.reports.words import counted


class ConsoleTelling:
    """A watcher of `kubescene.experiments`; ``done`` is what is done with a run, such as played."""

    def __init__(self, progress: MatrixProgress, done: str) -> None:
        self._progress = progress
        self._done = done

    def begin(self, total: int, kept: int, damaged: Sequence[Path]) -> None:
        for path in damaged:
            self._progress.say(f"{path} is damaged: that run is {self._done} again")
        if kept:
            rest = counted(total - kept, "run")
            self._progress.say(
                f"{kept} of {counted(total, 'run')} were finished earlier, {rest} left"
            )
        self._progress.start(total, kept)

    def finished(self, *, failed: bool) -> None:
        self._progress.note(failed=failed)
