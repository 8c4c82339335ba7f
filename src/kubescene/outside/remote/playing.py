"""The loop of ``kubescene controller``: hear what has changed, play what is to be played."""

from collections.abc import Iterator
from pathlib import Path

from kubescene.live.scenarios import LiveScenarios
from kubescene.outside.remote.cluster import RemoteCluster
from kubescene.outside.remote.runs import RemoteCasting
from kubescene.outside.remote.scenarios import MOST_BYTES
from kubescene.scenario.phases import ResultsStrategy

STOPPED = "the controller was stopped while the Scenario was running"
LOOK_S = 0.5
"""How long nothing may be heard before somebody looks whether the loop is to end."""


class Player:
    """Plays the Scenarios of one API server, one after the other, on the calling thread."""

    def __init__(
        self,
        cluster: RemoteCluster,
        out: Path,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
        *,
        allow_extenders: bool = False,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._cluster = cluster
        self._is_stopping = False
        self.scenarios = LiveScenarios(
            cluster,
            results,
            allow_extenders=allow_extenders,
            casting=RemoteCasting(cluster, results, out, most_bytes),
        )

    def stop(self) -> None:
        """End at the next moment. Any thread, and any signal, may ask."""
        self._is_stopping = True

    def run(self) -> None:
        """Until somebody stops it; a scenario that is under way then has failed."""
        self.scenarios.begin()
        try:
            while not self._is_stopping:
                self.turn(LOOK_S)
        finally:
            self.scenarios.fail_current(STOPPED)

    def turn(self, timeout_s: float) -> bool:
        """Play what is to be played, or wait for something new; whether anything was played."""
        moments = self.scenarios.moments()
        if moments is None:
            self._cluster.mirror.hear(timeout_s)
            self.scenarios.look()
            return False
        self._play(moments)
        return True

    def _play(self, moments: Iterator[object]) -> None:
        for _ in moments:
            self._cluster.mirror.hear()
            if self._is_stopping:
                return
