"""Where results come from: a run in memory, its directory, its timeline, or a Scenario object.

Every source tells the same of the same run. Reading is done once, streaming, when the first table
or measure is asked for. `opening` finds the source of whatever one is given; `sound_spec` is for
those who tell what was asked for.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

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
    from kubescene.results.cost.prices import Prices
    from kubescene.results.measures.own import OwnFunction
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


OPERATION = "Operation"
PARTS = ("object", "typeMeta", "objectMeta", "metadata")
"""Of an operation, and of the object in it: objects, where they are."""


def sound_spec(source: RunSource) -> JsonObject | None:
    """The spec of a run, if it is known; `ConfigurationError` for what was never played."""
    spec = source.spec
    if spec is not None and not _is_sound(spec):
        raise ConfigurationError(
            f"{source.place}: the spec of the Scenario beside it is damaged: play it again"
        )
    return spec


def _is_sound(spec: Any) -> bool:
    if not isinstance(spec, dict) or not isinstance(spec.get("simulation") or {}, dict):
        return False
    operations = spec.get("operations") or []
    return isinstance(operations, list) and all(map(_is_operation, operations))


def _is_operation(operation: Any) -> bool:
    if not isinstance(operation, dict) or not isinstance(operation.get("step"), int):
        return False
    bodies = [body for name, body in operation.items() if name.endswith(OPERATION)]
    return all(_holds_objects(body) for body in bodies)


def _holds_objects(body: Any) -> bool:
    return isinstance(body, dict) and all(
        isinstance(body[name], dict) and _holds_objects(body[name])
        for name in PARTS
        if body.get(name) is not None
    )
