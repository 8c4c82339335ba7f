"""``GET /simulator/v1/remedies?pod=NAMESPACE/NAME``: what it would take to place a waiting pod.

Tried in a fork of the world as it stands, on the engine thread: nobody else is answered meanwhile,
so the search ends after `LONGEST`; ``complete`` says whether it came to its end.
"""

from collections.abc import Iterator

import msgspec

from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response
from kubescene.apiserver.simulator.worlds import PREFIX
from kubescene.apiserver.table import Route
from kubescene.clock import SECOND, WallClock
from kubescene.errors import BadRequestError, ConfigurationError, ConflictError
from kubescene.remedies import Remedy, find_remedies

LONGEST = 5 * SECOND


class TimeLimit:
    """Goes on until its time is up."""

    def __init__(self, longest: int) -> None:
        self._clock = WallClock()
        self._until = self._clock.now() + longest
        self.is_over = False

    def __call__(self) -> bool:
        self.is_over = self.is_over or self._clock.now() > self._until
        return not self.is_over


class RemediesPage:
    """Answers with remedies, the cheapest first."""

    def __init__(self, engine: EngineThread) -> None:
        self._engine = engine

    def routes(self) -> Iterator[Route]:
        yield Route("GET", f"{PREFIX}remedies", self.get, engine=True, guarded=True)

    async def get(self, request: Request) -> Response:
        pod = request.query.get("pod", "")
        if not pod:
            raise BadRequestError("name a pod: ?pod=NAMESPACE/NAME")
        patience = TimeLimit(LONGEST)
        remedies = await self._engine.submit(lambda: self._find(pod, patience))
        answer = {"remedies": remedies, "complete": not patience.is_over}
        return Response(msgspec.json.encode(answer))

    def _find(self, pod: str, patience: TimeLimit) -> list[Remedy]:
        cluster = self._engine.cluster
        if cluster.options.scheduler.extenders:
            raise ConflictError(
                "the extenders of this server answer in their own time: remedies cannot be tried "
                "here; ask a run of your own (kubescene explain --run DIR --remedy)"
            )
        try:
            return find_remedies(cluster, pod, go_on=patience)
        except ConfigurationError as error:
            raise ConflictError(str(error)) from error
