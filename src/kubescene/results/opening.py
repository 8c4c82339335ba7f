"""Opens runs, wherever they are."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from kubescene.errors import ConfigurationError
from kubescene.results.explanations import Explanations
from kubescene.results.sources import LogSource, RunSource
from kubescene.timeline import TimelineLog
from kubescene.types import JsonObject


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
