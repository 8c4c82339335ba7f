"""Whole worlds in and out, and their time.

::

    GET  /simulator/v1/export    every object, as a Kubernetes List
    POST /simulator/v1/import    put the objects of a List (application/json or application/yaml;
                                 as YAML also one object, or several documents) into the world;
                                 nothing if one is bad
    PUT  /simulator/v1/reset     back to an empty cluster
    POST /simulator/v1/advance   let time pass on a virtual clock, {"duration": "5m"}; answers when
                                 it has passed, with the time it is then
"""

import asyncio
from collections.abc import Iterator

from kubescene.actors import Actor
from kubescene.apiserver import bodies
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.writes import as_object
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.table import Route
from kubescene.clock import LentClock, format_micro_time, parse_duration
from kubescene.errors import BadRequestError, ConflictError
from kubescene.live import LiveScenarios
from kubescene.registry import exports
from kubescene.registry.exports import Examinations
from kubescene.types import JsonObject

PREFIX = "/simulator/v1/"
MAX_IMPORT = 256 * 1024 * 1024
MAX_COMMAND = 64 * 1024
FEW_ITEMS = 200
"""So many objects are imported in one step."""


class Worlds:
    """Answers for the world of one engine."""

    def __init__(self, engine: EngineThread, scenarios: LiveScenarios | None = None) -> None:
        self._engine = engine
        self._live = scenarios

    def routes(self) -> Iterator[Route]:
        yield Route("GET", f"{PREFIX}export", self._export, engine=True)
        yield Route("POST", f"{PREFIX}import", self._import, engine=True)
        yield Route("PUT", f"{PREFIX}reset", self._reset, engine=True)
        yield Route("POST", f"{PREFIX}advance", self._advance, engine=True)

    async def _export(self, request: Request) -> Response:
        del request
        registry = self._engine.cluster.registry
        records = await self._engine.submit(lambda: exports.exported(registry.store))
        return Response(await asyncio.to_thread(exports.list_of, records))

    async def _import(self, request: Request) -> Response:
        manifests = await bodies.read_manifests(request, MAX_IMPORT)
        actor, document = request.actor, as_object(manifests)
        items, engine = document.get("items"), self._engine
        registry, examined = engine.cluster.registry, None
        if request.size > bodies.LARGE:
            examined = await asyncio.to_thread(exports.examinations, registry, document)
        if not isinstance(items, list) or len(items) <= FEW_ITEMS:
            count = await engine.submit(lambda: self._put(actor, document, examined))
            return json_response({"imported": count})
        await engine.submit(lambda: self._check(document))
        counted: list[int] = []
        await engine.submit_moments(
            lambda: self._putting(actor, document, examined, counted), freezes=False
        )
        return json_response({"imported": counted[0]})

    def _check(self, document: JsonObject) -> None:
        if self._live is not None:
            self._live.check_import(document)

    def _put(self, actor: Actor, document: JsonObject, examined: Examinations | None) -> int:
        self._check(document)
        return exports.import_objects(self._engine.cluster.registry, actor, document, examined)

    def _putting(
        self,
        actor: Actor,
        document: JsonObject,
        examined: Examinations | None,
        counted: list[int],
    ) -> Iterator[None]:
        """The same in slices: others read and write meanwhile, controllers see it as a whole."""
        registry = self._engine.cluster.registry
        counted.append((yield from exports.importing(registry, actor, document, examined)))

    async def _reset(self, request: Request) -> Response:
        if request.header(b"content-type"):
            bodies.check_type(request)
        await self._engine.submit_moments(self._engine.resetting, freezes=False)
        return json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    async def _advance(self, request: Request) -> Response:
        body = await bodies.read_command(request, MAX_COMMAND)
        cluster, duration = self._engine.cluster, duration_of(as_object(body.value))
        if isinstance(cluster.clock, LentClock) and cluster.clock.passes_by_itself:
            raise ConflictError(
                "the time of this world passes by itself: only a virtual clock is told to move "
                "(kubescene serve --clock virtual)"
            )
        await self._engine.submit_moments(lambda: cluster.advancing(duration, self._engine.crank))
        now = await self._engine.submit(cluster.clock.now)
        return json_response({"now": format_micro_time(now)})


def duration_of(command: JsonObject) -> int:
    """How long ``{"duration": "5m"}`` is, in nanoseconds."""
    unknown = sorted(name for name in command if name != "duration")
    if unknown or not isinstance(command.get("duration"), str):
        raise BadRequestError('the body must be {"duration": "5m"} and nothing else')
    try:
        return parse_duration(command["duration"])
    except ValueError as error:
        raise BadRequestError(f"duration: {error}") from None
