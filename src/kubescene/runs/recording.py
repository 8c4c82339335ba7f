"""The account of a cluster that somebody plays with by hand (``Cluster(recorded=True)``).

It is what a `Run` has of a scenario: a log of facts and explanations, so that tables, measures and
pages are made of it in the same way. Each `settle` or `advance` ends a major step, and what the
user wrote before it are the operations of that step.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from msgspec.structs import replace

from kubescene.actors import ENGINE, Actor, Role
from kubescene.api.options import OperationOrigin
from kubescene.clock import Clock, ScenarioStep, Streams, format_duration
from kubescene.instruments import Instruments, ObjectWrite
from kubescene.registry import Registry
from kubescene.reports.html import write_report
from kubescene.results.explaining import ExplainedAttempts, attempts_of
from kubescene.results.explanations import ExplanationMemory
from kubescene.results.sources import LogSource
from kubescene.results.tables import Table
from kubescene.scenario.phases import ScenarioPhase
from kubescene.timeline import Fact, ScenarioEnded, TimelineLog, TimelineRecorder
from kubescene.timeline.explanations import ExplanationRecorder
from kubescene.types import JsonObject

NAME = "cluster"


class ObservedCluster(Protocol):
    """Whose story is told: what one actor asks of it, and what comes of that."""

    @property
    def clock(self) -> Clock: ...

    @property
    def streams(self) -> Streams: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def actor(self) -> Actor: ...

    @property
    def instruments(self) -> Instruments: ...


class KeptExplanations(ExplanationRecorder):
    """Explanations in memory, which a fork has as well."""

    goes_with_fork = True


class UserRecorder(TimelineRecorder):
    """Tells what one user writes as operations: nobody else asks for anything here."""

    def __init__(self, cluster: ObservedCluster) -> None:
        super().__init__(cluster.clock, role_of=cluster.registry.role_of)
        self.step = ScenarioStep(1, 0)
        self.operations: list[JsonObject] = []
        self._user = cluster.actor

    def object_written(self, write: ObjectWrite) -> None:
        if write.actor == self._user and write.origin is None:
            write = replace(write, origin=self.asked(written(write)))
        super().object_written(write)

    def asked(self, operation: JsonObject) -> OperationOrigin:
        """The next operation of this step."""
        known = {"id": str(len(self.operations) + 1), "step": self.step.major, **operation}
        self.operations.append(known)
        return OperationOrigin.of(known["id"], known)


def written(write: ObjectWrite) -> JsonObject:
    """The operation that would ask for this write."""
    record, kind = write.record, {"apiVersion": write.gvk.api_version, "kind": write.gvk.kind}
    metadata = {"name": record.name}
    if record.namespace:
        metadata["namespace"] = record.namespace
    if write.verb == "create":
        return {"createOperation": {"object": {**kind, "metadata": metadata}}}
    verb = "delete" if write.verb == "delete" else "patch"
    return {f"{verb}Operation": {"typeMeta": kind, "objectMeta": metadata}}


class RecordedSource(LogSource):
    """A recording up to now, which is told like a scenario that pauses there."""

    def __init__(
        self, log: TimelineLog, explanations: ExplanationMemory, scenario: JsonObject, end: Fact
    ) -> None:
        super().__init__(log, explanations, scenario)
        self.place = "a cluster"
        self._end = end

    phase = ScenarioPhase.PAUSED.value

    def facts(self) -> Iterator[Fact]:
        yield from super().facts()
        yield self._end


class Recording:
    """What has happened in a cluster since it was made, or reset."""

    def __init__(self, cluster: ObservedCluster) -> None:
        self._clock = cluster.clock
        self._seed = cluster.streams.seed
        self._recorder = UserRecorder(cluster)
        self._explanations = ExplanationMemory()
        self._explainer = KeptExplanations(self._explanations.explain)
        cluster.instruments.attach(self._recorder, self._explainer)

    def advanced(self, duration: int) -> None:
        """Time is about to pass."""
        told = {"advanceOperation": {"duration": format_duration(duration)}}
        self._recorder.advanced(self._recorder.asked(told))

    def end_step(self) -> None:
        """What is done from now on belongs to the next step."""
        self._recorder.step = ScenarioStep(self._recorder.step.major + 1, 0)

    def anew(self, cluster: ObservedCluster) -> Self:
        """The recording of a cluster that has been reset."""
        cluster.instruments.detach(self._recorder, self._explainer)
        return type(self)(cluster)

    @property
    def source(self) -> RecordedSource:
        """All of it until now."""
        recorder, log = self._recorder, self._recorder.log
        last = log[-1].step if len(log) else recorder.step
        end = ScenarioEnded(
            id="",
            step=last,
            time=self._clock.now(),
            actor=ENGINE.name,
            role=Role.ENGINE,
            phase=ScenarioPhase.PAUSED.value,
        )
        spec = {"simulation": {"seed": self._seed}, "operations": [*recorder.operations]}
        scenario = {"metadata": {"name": NAME}, "spec": spec}
        return RecordedSource(log, self._explanations, scenario, end)

    @property
    def tables(self) -> Mapping[str, Table[Any]]:
        return self.source.tables()

    @property
    def measures(self) -> dict[str, int | float]:
        return self.source.measures()

    def explain(self, pod: str) -> ExplainedAttempts:
        return attempts_of(self._recorder.log, self._explanations, pod)

    def report(self, path: str | Path) -> Path:
        return write_report(self.source, path)
