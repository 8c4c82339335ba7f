"""One scenario played against an API server, with the run directory that it leaves behind."""

from pathlib import Path

from kubescene.api.records import Record
from kubescene.errors import ScenarioError
from kubescene.live.runs import LiveRun, StoredScenario
from kubescene.outside.remote.cluster import RemoteCluster
from kubescene.outside.remote.scenarios import MOST_BYTES, RemoteScenario
from kubescene.results.output import OutputDirectory
from kubescene.running import cluster_options
from kubescene.scenario.phases import ResultsStrategy
from kubescene.timeline.explanations import Line
from kubescene.timeline.files import Header


class RemoteRun(LiveRun):
    """Facts and explanations go to ``folder`` as they come."""

    def __init__(
        self,
        cluster: RemoteCluster,
        scenario: StoredScenario,
        results: ResultsStrategy,
        folder: Path,
    ) -> None:
        super().__init__(cluster, scenario, results)
        self.folder = folder
        self._output: OutputDirectory | None = None

    def attach(self, *, allow_extenders: bool = False) -> None:
        self._output = OutputDirectory(self.folder, Header(scenario=self.name, seed=self._seed()))
        self.log.follow(self._output.record)
        self._cluster.observe(self._output)
        super().attach(allow_extenders=allow_extenders)

    def detach(self) -> None:
        super().detach()
        if self._output is None:
            return
        self._cluster.instruments.detach(self._output)
        try:
            self._output.finish(self.result(), None, self.summary())
        finally:
            self._output.close()
            self._output = None

    def _explain(self, pod: str, line: Line) -> None:
        if self._output is not None:
            self._output.explain(pod, line)

    def _seed(self) -> int:
        try:
            return cluster_options(self.scenario.object, None).seed
        except ScenarioError:
            return 0  # the engine will say what is wrong with it


class RemoteCasting:
    """Runs of the Scenarios that an API server holds."""

    def __init__(
        self,
        cluster: RemoteCluster,
        results: ResultsStrategy,
        out: Path,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._cluster = cluster
        self._results = results
        self._out = out
        self._most_bytes = most_bytes

    def run(self, record: Record) -> LiveRun:
        folder = self._out / f"{record.name}-{record.uid[:8]}"
        scenario = RemoteScenario(self._cluster, record, folder=folder, most_bytes=self._most_bytes)
        return RemoteRun(self._cluster, scenario, self._results, folder)

    def waiting(self, record: Record) -> StoredScenario:
        return RemoteScenario(self._cluster, record, waits=True)
