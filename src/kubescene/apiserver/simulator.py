"""The simulator's own API, beside that of Kubernetes: whole worlds in and out.

::

    GET  /simulator/v1/export    every object, as a Kubernetes List
    POST /simulator/v1/import    put the objects of a List (application/json or application/yaml)
                                 into the world; nothing if one is bad
    PUT  /simulator/v1/reset     back to an empty cluster
    POST /simulator/v1/advance   let time pass on a virtual clock, {"duration": "5m"}; answers when
                                 it has passed, with the time it is then
    GET  /simulator/v1/schedulerconfiguration    the KubeSchedulerConfiguration that is in force
    POST /simulator/v1/schedulerconfiguration    another one: the scheduler begins anew with it
    GET  /simulator/v1/remedies?pod=NAMESPACE/NAME    what it would take to place a waiting pod
    POST /simulator/v1/park      a program outside waits for its turn (see `parking_page`)
    GET  /simulator/v1/scenarios/NAME/...        what is kept of a scenario (see `scenario_pages`)
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from kubescene.actors import Actor
from kubescene.apiserver import bodies
from kubescene.apiserver.content_types import checked_type
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.remedies_page import RemediesPage
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response, not_found_page
from kubescene.apiserver.scenario_pages import PLACE, ScenarioPages
from kubescene.apiserver.scheduler_configuration import SchedulerConfigurationPage
from kubescene.apiserver.writing import as_object
from kubescene.clock import LentClock, format_micro_time, parse_duration
from kubescene.errors import BadRequestError, ConflictError, MethodNotAllowedError
from kubescene.live import LiveScenarios
from kubescene.registry import exports
from kubescene.types import JsonObject

PREFIX = "/simulator/v1/"
MAX_IMPORT = 256 * 1024 * 1024
MAX_COMMAND = 64 * 1024


Page: TypeAlias = Callable[[Request], Awaitable[Response]]


class Simulator:
    """Answers for the paths below `PREFIX`."""

    def __init__(
        self,
        engine: EngineThread,
        scenarios: LiveScenarios | None = None,
        *,
        allow_extenders: bool = False,
    ) -> None:
        self._engine = engine
        self._live = scenarios
        self._scenarios = None if scenarios is None else ScenarioPages(engine, scenarios)
        scheduler = SchedulerConfigurationPage(engine, allow_extenders=allow_extenders)
        self._pages: dict[str, dict[str, Page]] = {
            "export": {"GET": self._export},
            "import": {"POST": self._import},
            "reset": {"PUT": self._reset},
            "advance": {"POST": self._advance},
            "schedulerconfiguration": {"GET": scheduler.get, "POST": scheduler.post},
            "remedies": {"GET": RemediesPage(engine).get},
        }

    def offer(self, path: str, **methods: Page) -> None:
        """One more page."""
        self._pages[path] = methods

    async def answer(self, request: Request) -> Response:
        path = request.path.removeprefix(PREFIX)
        if self._scenarios is not None and path.startswith(PLACE):
            return await self._scenarios.answer(path.removeprefix(PLACE), request)
        methods = self._pages.get(path)
        if methods is None:
            return not_found_page()
        if request.method not in methods:
            raise MethodNotAllowedError(
                f"{request.path} takes {' or '.join(methods)}, not {request.method}",
                kind="simulator",
            )
        return await methods[request.method](request)

    async def _export(self, request: Request) -> Response:
        del request
        cluster = self._engine.cluster
        return Response(await self._engine.submit(cluster.export))

    async def _import(self, request: Request) -> Response:
        content_type = checked_type(request)
        body = bodies.decode_body(await request.body(MAX_IMPORT), content_type)
        actor, document = request.actor, as_object(body.value)
        count = await self._engine.submit(lambda: self._put(actor, document))
        return json_response({"imported": count})

    def _put(self, actor: Actor, document: JsonObject) -> int:
        if self._live is not None:
            self._live.check_import(document)
        return exports.import_objects(self._engine.cluster.registry, actor, document)

    async def _reset(self, request: Request) -> Response:
        if request.header(b"content-type"):
            checked_type(request)
        await self._engine.submit(self._engine.reset)
        return json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    async def _advance(self, request: Request) -> Response:
        content_type = checked_type(request)
        body = bodies.decode_body(await request.body(MAX_COMMAND), content_type)
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
