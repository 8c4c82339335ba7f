"""Where results come from: a run in memory, its directory, its timeline, or a Scenario object.

Every source tells the same of the same run. Reading is done once, streaming, when the first table
or measure is asked for.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import orjson

from kubescene.errors import ConfigurationError
from kubescene.results.entries import Entries
from kubescene.results.explaining import ExplainedAttempt, attempts_of
from kubescene.results.explanations import ExplanationMemory, Explanations
from kubescene.results.ledger import Ledger
from kubescene.timeline import CustomFact, Fact, PodAttempt, ScenarioEnded, TimelineLog
from kubescene.types import JsonObject
from kubescene.version import __version__

if TYPE_CHECKING:
    from kubescene.results.measures.own import OwnFunction
    from kubescene.results.prices import Prices
    from kubescene.results.tables import Table


class RunSource(ABC):
    """One run that can be read, also again.

    ``place`` is where it comes from, for messages. ``scenario``, ``seed`` and ``version`` are what
    was played and by which Kubescene.
    """

    place: str
    scenario: str
    seed: int
    version: str

    @property
    @abstractmethod
    def phase(self) -> str:
        """How it ended; empty if that is not known."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether the run came to its end, or paused, and all of that can be read."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the source itself."""
        return ()

    @property
    @abstractmethod
    def spec(self) -> JsonObject | None:
        """``spec`` of the Scenario as it was played, if that is known."""

    @property
    def digest(self) -> str:
        """A checksum of ``spec`` without its seed; empty if the spec is not known."""
        if self.spec is None:
            return ""
        simulation = dict(self.spec.get("simulation") or {})
        simulation.pop("seed", None)
        played = self.spec | {"simulation": simulation}
        return hashlib.sha256(orjson.dumps(played, option=orjson.OPT_SORT_KEYS)).hexdigest()

    @abstractmethod
    def facts(self) -> Iterator[Fact]:
        """What happened, in order, streaming. May be called again."""

    def custom_facts(self) -> Iterator[CustomFact]:
        """What controllers and plugins of users told, in order, streaming."""
        return (fact for fact in self.facts() if isinstance(fact, CustomFact))

    @abstractmethod
    def attempts(self) -> Iterator[PodAttempt]:
        """The attempts of schedulers, or their lines, in order, streaming."""

    @abstractmethod
    def explain(self, pod: str) -> list[ExplainedAttempt]:
        """The attempts at ``NAMESPACE/NAME`` (or a name in ``default``), node by node."""

    @cached_property
    def ledger(self) -> Ledger:
        """The whole run, folded."""
        return self._read()

    @abstractmethod
    def _read(self) -> Ledger: ...

    def tables(
        self, prices: "Prices | None" = None, own: "Sequence[OwnFunction]" = ()
    ) -> "Mapping[str, Table[Any]]":
        """The run as tables: ``pods``, ``nodes``, ``steps``, ``measures`` and others."""
        from kubescene.results.tables import tables

        return tables(self, prices, own)

    def measures(
        self, prices: "Prices | None" = None, own: "Sequence[OwnFunction]" = ()
    ) -> dict[str, int | float]:
        """The measures of the run that have a value, by name; ``own`` are functions of a run."""
        from kubescene.results.measures import measures

        return measures(self, prices, own)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.scenario or '?'} from {self.place}>"


@runtime_checkable
class PlayedRun(Protocol):
    """A `Run`, or the `RunResult` that it leaves."""

    @property
    def log(self) -> TimelineLog: ...
    @property
    def explanations(self) -> Explanations: ...
    @property
    def scenario(self) -> JsonObject: ...


@runtime_checkable
class RecordedCluster(Protocol):
    """A cluster that keeps an account of what happens; one that does not says so when asked."""

    @property
    def recording(self) -> Any: ...


class LogSource(RunSource):
    """A log in memory, with what is known about it."""

    def __init__(
        self,
        log: TimelineLog,
        explanations: Explanations | None = None,
        scenario: Mapping[str, Any] | None = None,
    ) -> None:
        self._log = log
        self._explanations = ExplanationMemory() if explanations is None else explanations
        self._object = scenario
        self.place = "memory"
        self.version = __version__
        self.scenario = "" if scenario is None else str(scenario["metadata"]["name"])
        simulation = (self.spec or {}).get("simulation") or {}
        self.seed = int(simulation.get("seed") or 0)

    @property
    def phase(self) -> str:
        last = self._log[-1] if len(self._log) else None
        return last.phase if isinstance(last, ScenarioEnded) else ""

    @property
    def complete(self) -> bool:
        return bool(self.phase)

    @property
    def spec(self) -> JsonObject | None:
        return None if self._object is None else dict(self._object.get("spec") or {})

    def facts(self) -> Iterator[Fact]:
        return self._log.read(0, len(self._log))

    def attempts(self) -> Iterator[PodAttempt]:
        return (fact for fact in self.facts() if isinstance(fact, PodAttempt))

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        return attempts_of(self._log, self._explanations, pod)

    def _read(self) -> Ledger:
        return Entries().all(self.facts())


def open_run(where: object) -> RunSource:
    """The run in ``where``.

    A run directory or the timeline file in it, a `Run` or `RunResult`, a `TimelineLog`, a
    recorded `Cluster`, or a Scenario object whose status has a timeline. A source is itself.
    """
    if isinstance(where, RunSource):
        return where
    if isinstance(where, str | Path):
        # Those who have a run in memory need no files.
        from kubescene.results.stored_sources import open_path

        return open_path(where)
    if isinstance(where, Mapping):
        from kubescene.results.event_sources import ScenarioResultSource

        return ScenarioResultSource(where)
    if isinstance(where, TimelineLog):
        return LogSource(where)
    if isinstance(where, RecordedCluster):
        return open_run(where.recording.source)
    if isinstance(where, PlayedRun):
        return LogSource(where.log, where.explanations, where.scenario)
    raise ConfigurationError(
        f"results are read from a run directory, a Run, a TimelineLog or a Scenario with its "
        f"timeline, not from {type(where).__name__}"
    )
