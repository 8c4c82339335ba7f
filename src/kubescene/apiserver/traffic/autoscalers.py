"""The autoscalers that a server offers to traffic runs.

Built-in ones and those of installed packages are there for every run. A class of the user's is made
anew for each run and takes part in it. A command is started once, with the server: its process
serves all runs that have an object of its type, each in a partition of its own.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kubescene.autoscalers import AutoscalerPlugin
from kubescene.autoscalers.available import SHARED_PARTITIONS
from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.autoscalers.references import load_autoscaler, named, started
from kubescene.traffic import TrafficRun
from kubescene.traffic.runs import available
from kubescene.traffic.spec.objects import autoscaler_of


class RunAutoscalers(NamedTuple):
    """A dispatcher for one run, and those that take part in it without an object."""

    dispatcher: Dispatcher
    autoscalers: list[AutoscalerPlugin]


class OfferedAutoscalers:
    """``classes`` as module:Class, and ``commands``: both from whoever starts the server.

    ``processes`` are those behind the commands, if somebody else has started them and will end
    them.
    """

    def __init__(
        self,
        classes: Sequence[str],
        commands: Sequence[str],
        processes: Sequence[AutoscalerPlugin] | None = None,
    ) -> None:
        self._classes = tuple(classes)
        self._commands = tuple(commands)
        self._own = started(commands) if processes is None else []
        self._processes = self._own if processes is None else processes
        # Runs share processes, so their partitions must have names of their own.
        self._partitions = SHARED_PARTITIONS

    def close(self) -> None:
        for each in self._own:
            each.close()

    def used_by(self, run: TrafficRun) -> tuple[str, ...]:
        """How the user's autoscalers of a run are written down."""
        types = {autoscaler_of(each).type for each in run.spec.autoscalers}
        pairs = zip(self._commands, self._processes, strict=True)
        return named(self._classes, [each for each, by in pairs if types & set(by.types)])

    def missing(self, used: Sequence[str]) -> list[str]:
        """Which of those that a run used are not offered here."""
        offered = named(self._classes, self._commands)
        return [each for each in used if each not in offered]

    @contextmanager
    def of(self, run: TrafficRun) -> Iterator[RunAutoscalers]:
        """For one run; what was made for it is given back afterwards."""
        plugins = [load_autoscaler(each) for each in self._classes]
        dispatcher = available(run.spec, plugins, partitions=self._partitions)
        for each in self._processes:
            dispatcher.register(each, shared=True)
        try:
            yield RunAutoscalers(dispatcher, plugins)
        finally:
            dispatcher.close()
