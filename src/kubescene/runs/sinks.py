"""Where facts and explanations go while a scenario plays.

A sink is told when the scenario begins: until then its input may turn out to be bad, and bad input
leaves no trace. So a directory with an earlier run stays as it was until there is another one.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from kubescene.clock import ScenarioStep
from kubescene.results.explanations import ExplanationFile, ExplanationMemory, Explanations
from kubescene.results.ledger import Ledger
from kubescene.results.output import OutputDirectory, refuse_to_overwrite
from kubescene.results.summary import Summary
from kubescene.timeline import Instrument, TimelineLog
from kubescene.timeline.explanations import Line
from kubescene.timeline.files import Header
from kubescene.timeline.kep import KepEvent
from kubescene.types import JsonObject


class Sink(Protocol):
    """What keeps a run."""

    @property
    def explanations(self) -> Explanations:
        """Where explanations can be found afterwards."""
        ...

    @property
    def onlookers(self) -> Sequence[Instrument]:
        """Those who want to know more of the world than facts."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether somebody has to tell it how the run ended."""
        ...

    def begin(self, header: Header, log: TimelineLog) -> None:
        """The input is fine and the scenario begins; from now on everything is to be kept."""
        ...

    def explain(self, pod: str, line: Line) -> None: ...

    def finish(
        self,
        scenario: JsonObject,
        events: Iterable[KepEvent] | None,
        summary: Summary,
        ledger: Ledger | None,
    ) -> None:
        """It is over. The Scenario has no timeline yet: ``events`` are, if it is to have one."""
        ...

    def close(self) -> None:
        """Whatever happened, nothing more will come. May be called twice."""
        ...


class MemorySink:
    """Keeps explanations; the log keeps the facts."""

    def __init__(self) -> None:
        self.explanations = ExplanationMemory()
        self.explain = self.explanations.explain

    onlookers: Sequence[Instrument] = ()
    is_open = False

    def begin(self, header: Header, log: TimelineLog) -> None: ...

    def finish(
        self,
        scenario: JsonObject,
        events: Iterable[KepEvent] | None,
        summary: Summary,
        ledger: Ledger | None,
    ) -> None: ...

    def close(self) -> None: ...


class DirectorySink(Instrument):
    """Writes facts and explanations as they come, and the rest in the end."""

    def __init__(self, path: Path, *, inputs: Iterable[Path] = ()) -> None:
        """``inputs`` are files that must not be overwritten."""
        refuse_to_overwrite(inputs, path)
        self.path = path
        self.explanations: Explanations = ExplanationMemory()
        self.onlookers = (self,)
        self._output: OutputDirectory | None = None

    @property
    def is_open(self) -> bool:
        return self._output is not None

    def begin(self, header: Header, log: TimelineLog) -> None:
        """Raises `ConfigurationError` if the directory cannot be written."""
        output = self._output = OutputDirectory(self.path, header)
        self.explanations = ExplanationFile(output.explanations_path)
        for fact in log.read():
            output.record(fact)
        log.follow(output.record)

    def explain(self, pod: str, line: Line) -> None:
        if self._output is not None:
            self._output.explain(pod, line)

    def step_finished(self, step: ScenarioStep) -> None:
        if self._output is not None:
            self._output.step_finished(step)

    def finish(
        self,
        scenario: JsonObject,
        events: Iterable[KepEvent] | None,
        summary: Summary,
        ledger: Ledger | None,
    ) -> None:
        if self._output is not None:
            self._output.finish(scenario, events, summary, ledger)

    def close(self) -> None:
        if self._output is not None:
            self._output.close()
            self._output = None
