"""The loop of ``kubescene controller``: hear what has changed, play what is to be played."""

from collections.abc import Callable, Iterator
from pathlib import Path

from kubescene.api.records import Record
from kubescene.live.runs import LiveRun
from kubescene.live.scenarios import LiveScenarios
from kubescene.remote.cluster import RemoteCluster
from kubescene.remote.scenarios import MOST_BYTES, RemoteScenario
from kubescene.remote.webhook.certificates import Certificate
from kubescene.remote.webhook.reviews import AdmissionReviewer
from kubescene.remote.webhook.server import Webhook, WebhookRegistration
from kubescene.runs.sinks import DirectorySink
from kubescene.runs.staging import StoredScenario
from kubescene.scenario.phases import ResultsStrategy

STOPPED = "the controller was stopped while the Scenario was running"
INTRUDED = (
    "{what} while the Scenario had the cluster, so what happened is not what it says: keep others "
    "away with --webhook-port"
)
LOOK_S = 0.5
"""How long nothing may be heard before somebody looks whether the loop is to end."""


class RemoteRunFactory:
    """Runs of the Scenarios that an API server holds, each with a directory below ``out``."""

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
        return LiveRun(self._cluster, scenario, self._results, sink=DirectorySink(folder))

    def waiting(self, record: Record) -> StoredScenario:
        return RemoteScenario(self._cluster, record, waits=True)


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
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """``tell`` is called with a line when a scenario begins, pauses or ends."""
        self._cluster = cluster
        self._tell = tell
        self._is_stopping = False
        self._webhook: Webhook | None = None
        self._registration: WebhookRegistration | None = None
        self.scenarios = LiveScenarios(
            cluster,
            results,
            allow_extenders=allow_extenders,
            factory=RemoteRunFactory(cluster, results, out, most_bytes),
        )

    def admit_by(self, certificate: Certificate, host: str, port: int) -> str:
        """Serve an admission webhook, and have it asked while a scenario is under way; its URL."""
        cluster = self._cluster
        judge = AdmissionReviewer(
            self.scenarios, cluster.registry.link, cluster.scheme, cluster.store, cluster.clock
        )
        judge.user = own_name(cluster)
        self._webhook = Webhook(judge, certificate, host, port)
        self._registration = WebhookRegistration(cluster, self._webhook.url, certificate.bundle)
        cluster.gatekeeper = self._registration
        self._webhook.start()
        return self._webhook.url

    def stop(self) -> None:
        """End at the next moment. Any thread, and any signal, may ask."""
        self._is_stopping = True

    def run(self) -> None:
        """Until somebody stops it; a scenario that is under way then has failed."""
        try:
            self.scenarios.begin()
            while not self._is_stopping:
                self.turn(LOOK_S)
        finally:
            self.close()

    def close(self) -> None:
        """Leave nothing behind: no scenario under way, no registration, no socket."""
        try:
            self.scenarios.fail_current(STOPPED)
        finally:
            self._let_others_write()
            if self._webhook is not None:
                self._webhook.stop()

    def turn(self, timeout_s: float) -> bool:
        """Play what is to be played, or wait for something new; whether anything was played."""
        moments = self.scenarios.moments()
        if moments is None:
            self._cluster.mirror.hear(timeout_s)
            self._look_for_intruders()
            self.scenarios.look()
            self._let_others_write()
            return False
        run = self.scenarios.current
        self._report(run, "plays")
        self._play(moments)
        self._report(run, outcome_of(run))
        self._let_others_write()
        return True

    def _play(self, moments: Iterator[object]) -> None:
        for _ in moments:
            self._cluster.mirror.hear()
            self._look_for_intruders()
            if self._is_stopping:
                return

    def _look_for_intruders(self) -> None:
        if what := self._cluster.mirror.intruders.found:
            self.scenarios.fail_current(INTRUDED.format(what=what))
            self._cluster.mirror.intruders.look_away()

    def _report(self, run: LiveRun | None, what: str) -> None:
        if self._tell is not None and run is not None:
            self._tell(f"{run.name}: {what}")

    def _let_others_write(self) -> None:
        """Unless a scenario is under way, be it paused."""
        if self.scenarios.current is not None:
            return
        self._cluster.mirror.intruders.look_away()
        if self._registration is not None:
            self._registration.withdraw()


def outcome_of(run: LiveRun | None) -> str:
    """How a scenario stands, why, and where to read what happened."""
    if run is None:
        return ""
    why = f" ({run.scenario.message})" if run.scenario.message else ""
    where = run.sink.path if isinstance(run.sink, DirectorySink) else None
    return f"{run.phase}{why}" + ("" if where is None or run.engine.bad_input else f", see {where}")


def own_name(cluster: RemoteCluster) -> str:
    """What the server calls whoever has these credentials."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    status = cluster.remote.review(review).get("status") or {}
    return str((status.get("userInfo") or {}).get("username") or "")
