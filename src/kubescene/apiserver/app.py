"""The API server as an ASGI application.

Requests to ``/api`` and ``/apis`` are the hot path and go straight to the verbs, without a
framework between. Every refusal becomes a ``Status``; whatever was not foreseen is logged and
answered with 500, and the server goes on.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from kubescene.api.kinds import SCENARIO
from kubescene.apiserver import about, reviews
from kubescene.apiserver.compression import SMALLEST, packed
from kubescene.apiserver.discovery import Discovery
from kubescene.apiserver.engine_thread import EngineStoppedError, EngineThread
from kubescene.apiserver.health import Health, is_health_path
from kubescene.apiserver.listing import Lister
from kubescene.apiserver.metrics import metrics
from kubescene.apiserver.negotiation import Form, negotiate
from kubescene.apiserver.openapi import OpenApi
from kubescene.apiserver.origins import check_form, check_sender
from kubescene.apiserver.parking_page import ParkingPage
from kubescene.apiserver.rendering import Renderer, is_large
from kubescene.apiserver.requests import (
    DEFAULT_MAX_BODY,
    App,
    ClientGoneError,
    Receive,
    Request,
    Scope,
    Send,
)
from kubescene.apiserver.responses import (
    Response,
    error_response,
    indented,
    json_response,
    not_found_page,
)
from kubescene.apiserver.routes import Target, find_target
from kubescene.apiserver.simulator import PREFIX, Simulator
from kubescene.apiserver.streaming import WatchStreams
from kubescene.apiserver.subresources import Subresources
from kubescene.apiserver.traffic_pages import TrafficPages, is_run_path
from kubescene.apiserver.turnstile import Turnstile
from kubescene.apiserver.validating import FieldValidation
from kubescene.apiserver.writing import Writes
from kubescene.errors import ApiError, ForbiddenError, InternalError, MethodNotAllowedError
from kubescene.live import LiveScenarios
from kubescene.outside.stage import OutsideStage
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.types import JsonObject

_log = logging.getLogger(__name__)

_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCE_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}


class ApiServer:
    """Serves the cluster of one engine thread. Everything here runs on one event loop."""

    def __init__(
        self,
        engine: EngineThread,
        scenarios: LiveScenarios | None = None,
        *,
        max_body: int = DEFAULT_MAX_BODY,
        only_local: bool = True,
        allow_extenders: bool = False,
        traffic: TrafficPages | None = None,
        stage: OutsideStage | None = None,
    ) -> None:
        cluster = engine.cluster
        self.only_local = only_local
        self.mounted: dict[str, App] = {}
        self.engine = engine
        self.registry = cluster.registry
        self.registry.track_fields = True
        self.scheme = cluster.scheme
        self.store = cluster.store
        self.renderer = Renderer(self.registry)
        self.lister = Lister(self.registry, engine)
        self.verbs = Writes(
            self.registry, engine, self.renderer, FieldValidation(self.registry.custom), max_body
        )
        self.subresources = Subresources(self.verbs)
        self.stage = OutsideStage(cluster) if stage is None else stage
        self.turnstile = Turnstile(engine, self.stage, max_body)
        self.streams = WatchStreams(self.registry, engine, self.renderer, self.stage)
        self.simulator = Simulator(engine, scenarios, allow_extenders=allow_extenders)
        if scenarios is not None:
            parking = ParkingPage(engine, scenarios, self.stage, self.turnstile)
            self.simulator.offer("park", POST=parking.post)
        self.traffic = TrafficPages() if traffic is None else traffic
        self.health = Health(engine)
        self.discovery = Discovery(self.scheme)
        self.openapi = OpenApi(self.scheme, Definitions(self))

    def mount(self, prefix: str, app: App) -> None:
        """Let another application (Starlette's, say) answer for all paths below ``prefix``."""
        self.mounted[prefix.rstrip("/")] = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.mounted and (app := self._mounted_at(scope.get("path", ""))):
            await self._serve_mounted(app, scope, receive, send)
        elif scope["type"] == "http":
            await self.serve(Request(scope, receive), send)
        elif scope["type"] == "lifespan":
            await _live(receive, send)

    async def _serve_mounted(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a mounted application answer what a page of another server did not ask."""
        try:
            check_sender(scope, only_local=self.only_local)
            if scope["type"] == "http":
                check_form(scope)
        except ApiError as error:
            await _refuse(error, scope, send)
        else:
            await app(scope, receive, send)

    def _mounted_at(self, path: str) -> App | None:
        return self.mounted.get("/" + path[1:].partition("/")[0])

    async def serve(self, request: Request, send: Send) -> None:
        """Answer one request, whatever it is."""
        try:
            await self._serve(request, send)
        finally:
            request.finish()

    async def _serve(self, request: Request, send: Send) -> None:
        response: Response | None
        try:
            response = await self._answer(request, send)
        except ApiError as error:
            response = error_response(error)
        except ClientGoneError:
            return
        except EngineStoppedError:
            response = error_response(InternalError("the server is shutting down"))
        except asyncio.CancelledError:
            raise
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            response = error_response(
                InternalError("Internal error occurred: the server's log has the details")
            )
        if response is not None:
            if request.wants_indentation:
                response = indented(response)
            if len(response.body) >= SMALLEST:
                response = await packed(response, request.header(b"accept-encoding"))
            await response.send(send, request.warnings)

    async def _answer(self, request: Request, send: Send) -> Response | None:
        check_sender(request.scope, only_local=self.only_local)
        path = request.path
        if path.startswith(("/api/", "/apis/")):
            target = find_target(self.scheme, path)
            if target is not None:
                return await self._answer_resource(target, request, send)
        if path.startswith(PREFIX):
            return await self.simulator.answer(request)
        if is_run_path(path):
            return await self.traffic.answer(request, send)
        if is_health_path(path):
            check_reading(request)
            return await self.health.answer(path)
        return self._answer_elsewhere(path, request)

    # -- resources ---------------------------------------------------------------------------

    async def _answer_resource(
        self, target: Target, request: Request, send: Send
    ) -> Response | None:
        form = negotiate(request.header(b"accept"))
        program = self.turnstile.program_of(request.actor)
        if program is not None:
            answer = await self.turnstile.admit(program, target, request)
            if answer is not None:
                return answer
        if target.subresource:
            return await self._answer_subresource(target, request, form)
        if target.name:
            return await self._answer_object(target, request, form)
        return await self._answer_collection(target, request, form, send)

    async def _answer_object(self, target: Target, request: Request, form: Form) -> Response:
        check_verb(_OBJECT_VERBS.get(request.method), target.resource_type.verbs)
        if request.method == "GET":
            return await self._get(target, request, form)
        if request.method == "PUT":
            return await self.verbs.update(target, request, form)
        if request.method == "PATCH":
            return await self.verbs.patch(target, request, form)
        return await self.verbs.delete(target, request, form)

    async def _get(self, target: Target, request: Request, form: Form) -> Response:
        record = self.registry.record(target.resource_type, target.namespace, target.name)
        include = request.query.get("includeObject", "")
        render = partial(
            self.renderer.object_response, record, target.resource_type, form, include=include
        )
        return await asyncio.to_thread(render) if is_large(record) else render()

    async def _answer_collection(
        self, target: Target, request: Request, form: Form, send: Send
    ) -> Response | None:
        verb = _COLLECTION_VERBS.get(request.method)
        check_verb(verb, target.resource_type.verbs)
        if verb == "list":
            if target.is_watch or request.flag("watch"):
                check_verb("watch", target.resource_type.verbs)
                await self.streams.serve(target, request, form, request.receive, send)
                return None
            page = await self.lister.page(target, request)
            include = request.query.get("includeObject", "")
            return await self.renderer.list_response(
                page.records, target.resource_type, form, page.meta, include=include
            )
        if verb == "deletecollection":
            return await self.verbs.delete_collection(target, request)
        return await self._create(target, request, form)

    async def _create(self, target: Target, request: Request, form: Form) -> Response:
        resource_type = target.resource_type
        if reviews.is_review(resource_type):
            obj = await self.verbs.read_object(target, request)
            return json_response(reviews.review(obj, request.actor), 201)
        if resource_type.namespaced and not target.namespace:
            raise method_not_allowed()
        if resource_type.kind == "Binding" and not resource_type.gvk.group:
            return await self.subresources.bind(target, request)
        return await self.verbs.create(target, request, form)

    async def _answer_subresource(self, target: Target, request: Request, form: Form) -> Response:
        described = target.resource_type.subresource(target.subresource)
        check_verb(_SUBRESOURCE_VERBS.get(request.method), described.verbs)
        if self.subresources.is_special(target.subresource):
            return await self.subresources.serve(target, request)
        if request.method == "GET":
            return await self._get(target, request, form)
        check_status_writer(target)
        if request.method == "PUT":
            return await self.verbs.update(target, request, form)
        return await self.verbs.patch(target, request, form)

    # -- everything else -----------------------------------------------------------------------

    def _answer_elsewhere(self, path: str, request: Request) -> Response:
        path = path.rstrip("/") or "/"
        answer = self._find_page(path, request)
        if answer is None:
            return not_found_page()
        check_reading(request)
        return answer()

    def _find_page(self, path: str, request: Request) -> Callable[[], Response] | None:
        if path == "/version":
            return lambda: json_response(about.version_info())
        if path == "/metrics":
            return lambda: metrics(self.store)
        if path.startswith("/openapi/"):
            return self._openapi_page(path, request)
        if path == "/":
            return lambda: json_response(
                {"paths": ["/api", "/apis", "/metrics", "/openapi/v3", "/version"]}
            )
        reply = self.discovery.document(path, request.header(b"accept") or "application/json")
        if reply is None:
            return None
        return lambda: _revalidated(
            Response(reply.body, 200, reply.content_type, ((b"etag", reply.etag.encode()),)),
            reply.etag,
            request,
        )

    def _openapi_page(self, path: str, request: Request) -> Callable[[], Response] | None:
        encoding = request.header(b"accept-encoding")
        if path == "/openapi/v3":
            reply = self.openapi.index(accept_encoding=encoding)
        else:
            wanted = request.query.get("hash", "")
            found = self.openapi.document(path, accept_encoding=encoding, requested_hash=wanted)
            if found is None:
                return None
            reply = found
        headers = tuple(
            (name.lower().encode(), value.encode())
            for name, value in reply.headers().items()
            if name.lower() not in ("content-type", "cache-control")
        )
        headers += ((b"cache-control", reply.cache_control.encode()),)
        response = Response(reply.body, 200, reply.content_type, headers)
        return lambda: _revalidated(response, reply.etag, request)


class Definitions:
    """The custom resource definitions, decoded once for each state of the store's definitions."""

    def __init__(self, server: ApiServer) -> None:
        self._store = server.store
        self._revisions: tuple[int, ...] = ()
        self._decoded: list[JsonObject] = []

    def __call__(self) -> list[JsonObject]:
        records = self._store.list(DEFINITIONS)
        revisions = tuple(record.revision for record in records)
        if revisions != self._revisions:
            self._decoded = [record.decode() for record in records]
            self._revisions = revisions
        return self._decoded


def check_verb(verb: str | None, allowed: tuple[str, ...]) -> None:
    """405 unless the resource has the verb."""
    if verb is None or verb not in allowed:
        raise method_not_allowed()


def check_status_writer(target: Target) -> None:
    """403 for the status of a Scenario: whoever plays it writes it, and nobody else."""
    resource_type = target.resource_type
    if resource_type.gvk == SCENARIO and target.subresource == "status":
        raise ForbiddenError(
            f'{resource_type.named_resource} "{target.name}" is forbidden: the status of a '
            "Scenario is written by the engine that plays it",
            name=target.name,
            group=resource_type.gvk.group,
            kind=resource_type.plural,
        )


def check_reading(request: Request) -> None:
    """405 for a method that is meant to change something."""
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed()


def method_not_allowed() -> MethodNotAllowedError:
    return MethodNotAllowedError("the server does not allow this method on the requested resource")


def _revalidated(response: Response, etag: str, request: Request) -> Response:
    """304 if the client holds the same document already."""
    if etag and etag in request.header(b"if-none-match"):
        return Response(b"", 304, response.media_type, response.headers)
    return response


async def _refuse(error: ApiError, scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})
    else:
        await error_response(error).send(send)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
