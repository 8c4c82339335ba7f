"""Where the Scenarios of a world are stored, and what a run of one is made of.

`LiveScenarios` decides who plays and who waits; that is the same wherever the objects are. A world
whose objects an API server holds brings a casting of its own.
"""

from typing import Protocol

from kubescene.api.records import Record
from kubescene.cluster import Cluster
from kubescene.live.runs import LiveRun, StoredScenario
from kubescene.scenario.phases import ResultsStrategy
from kubescene.scenario.resource import ScenarioResource
from kubescene.scenario.world import Stage


class Casting(Protocol):
    """Makes what is needed of a stored Scenario."""

    def run(self, record: Record) -> LiveRun:
        """It is its turn."""
        ...

    def waiting(self, record: Record) -> StoredScenario:
        """It is told why it is not played."""
        ...


class StoreCasting:
    """Scenarios in the store of the cluster itself."""

    def __init__(
        self, cluster: Cluster, results: ResultsStrategy, stage: Stage | None = None
    ) -> None:
        self._cluster = cluster
        self._results = results
        self._stage = stage

    def run(self, record: Record) -> LiveRun:
        return LiveRun(self._cluster, self.waiting(record), self._results, self._stage)

    def waiting(self, record: Record) -> StoredScenario:
        return ScenarioResource(self._cluster.store, record)
