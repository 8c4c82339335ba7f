"""``GET /simulator/v1/remedies?pod=NAMESPACE/NAME``: what it would take to place a waiting pod.

Tried in a twin of the world as it stands, on a thread of its own: the engine only says which
objects there are. One question is answered at a time, and the search ends after `LONGEST`;
``complete`` says whether it came to its end.
"""

import asyncio
from collections.abc import Callable, Iterator

import msgspec

from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response
from kubescene.apiserver.simulator.worlds import PREFIX
from kubescene.apiserver.table import Route
from kubescene.clock import SECOND, Deadline, WallClock
from kubescene.errors import BadRequestError, ConfigurationError, ConflictError
from kubescene.outside.stage import OutsideStage
from kubescene.remedies import Remedy, find_remedies
from kubescene.remedies.search import ForkableWorld

LONGEST = 5 * SECOND


class TimeLimit:
    """Goes on until its time is up."""

    def __init__(self, longest: int) -> None:
        self._deadline = Deadline(WallClock(), longest)
        self.is_over = False

    def __call__(self) -> bool:
        self.is_over = self.is_over or self._deadline.is_over
        return not self.is_over


class RemediesPage:
    """Answers with remedies, the cheapest first."""

    def __init__(self, engine: EngineThread, stage: OutsideStage) -> None:
        self._engine = engine
        self._stage = stage
        self._turn = asyncio.Lock()

    def routes(self) -> Iterator[Route]:
        yield Route("GET", f"{PREFIX}remedies", self.get, engine=True, guarded=True)

    async def get(self, request: Request) -> Response:
        pod = request.query.get("pod", "")
        if not pod:
            raise BadRequestError("name a pod: ?pod=NAMESPACE/NAME")
        async with self._turn:
            make = await self._engine.submit(self._twin_maker)
            remedies, complete = await asyncio.to_thread(found_in, make, pod)
        return Response(msgspec.json.encode({"remedies": remedies, "complete": complete}))

    def _twin_maker(self) -> Callable[[], ForkableWorld]:
        cluster = self._engine.cluster
        if cluster.options.scheduler.extenders:
            raise ConflictError(
                "the extenders of this server answer in their own time: remedies cannot be tried "
                "here; ask a run of your own (kubescene explain --run DIR --remedy)"
            )
        for name in self._stage.called:
            raise ConflictError(
                f"a world in which {name} takes part cannot be copied: that program runs outside"
            )
        return cluster.twin_maker()


def found_in(make: Callable[[], ForkableWorld], pod: str) -> tuple[list[Remedy], bool]:
    """The remedies, and whether the search came to its end."""
    twin, patience = make(), TimeLimit(LONGEST)
    try:
        remedies = find_remedies(twin, pod, go_on=patience)
    except ConfigurationError as error:
        raise ConflictError(str(error)) from error
    return remedies, not patience.is_over
