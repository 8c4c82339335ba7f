"""``GET /simulator/v1/explain?pod=NAMESPACE/NAME``: the newest attempts at a pod of this world.

The newest of the pods that were tried last are kept, whoever plays: a scenario, or people with
kubectl. What a scenario's run has kept of all its attempts is at ``scenarios/NAME/explain``.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response
from kubescene.apiserver.simulator.worlds import PREFIX
from kubescene.apiserver.table import Route
from kubescene.bounded import BoundedDict
from kubescene.clock import Clock, ScenarioStep, format_micro_time
from kubescene.errors import BadRequestError
from kubescene.instruments import Instrument, StepPhaseChange
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.results.explaining import explained_attempt, qualified

MOST_PODS = 1000
MOST_ATTEMPTS = 5
"""Of one pod: a pod that waits is tried again and again, mostly for the same reason."""


class KeptAttempt(NamedTuple):
    """An attempt, and when it was."""

    step: ScenarioStep
    time: int
    attempt: SchedulingAttempt


class LatestAttempts(Instrument):
    """Keeps what a scheduler tells; on the engine thread, like all that is told."""

    in_lane = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._step = ScenarioStep(0, 0)
        self._kept: BoundedDict[str, deque[KeptAttempt]] = BoundedDict(MOST_PODS)

    def phase_changed(self, change: StepPhaseChange) -> None:
        self._step = change.step

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        if attempt.explanation is None and not (attempt.traceback or attempt.extenders):
            return
        pod = f"{attempt.pod.namespace}/{attempt.pod.name}"
        kept = self._kept.pop(pod, None) or deque(maxlen=MOST_ATTEMPTS)
        kept.append(KeptAttempt(self._step, self._clock.now(), attempt))
        self._kept[pod] = kept

    def of(self, pod: str) -> list[KeptAttempt]:
        return [*self._kept.get(pod, ())]


class AttemptsPage:
    """Answers from what is kept."""

    def __init__(self, engine: EngineThread) -> None:
        self._engine = engine
        self._latest = LatestAttempts(engine.cluster.clock)
        engine.cluster.instruments.attach(self._latest)

    def routes(self) -> Iterator[Route]:
        yield Route("GET", f"{PREFIX}explain", self._explain, engine=True)

    async def _explain(self, request: Request) -> Response:
        pod = request.query.get("pod", "")
        if not pod:
            raise BadRequestError("name a pod: ?pod=NAMESPACE/NAME")
        kept = await self._engine.submit(lambda: self._latest.of(qualified(pod)))
        # Of 5,000 nodes this takes a while, and what is kept is never changed.
        return Response(await asyncio.to_thread(told, kept))


def told(kept: list[KeptAttempt]) -> bytes:
    attempts = [explained_attempt(each.attempt, each.step) for each in kept]
    times = [format_micro_time(each.time) for each in kept]
    return msgspec.json.encode({"attempts": attempts, "times": times})
