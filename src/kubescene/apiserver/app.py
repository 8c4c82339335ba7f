"""The API server as an ASGI application.

A request goes from step to step: may a page ask this (`origins`), who asks (`access`), what is
asked (`table`), may they (an `Authorizer`), is it their turn (`turnstile`), and then whoever
answers. Every refusal becomes a ``Status``; whatever was not foreseen is logged and answered with
500, and the server goes on.
"""

import asyncio
import logging
from functools import partial

from kubescene.apiserver.access import (
    AllowAll,
    Authorizer,
    by_prefix,
    forbidden,
    impersonated,
)
from kubescene.apiserver.access.credentials import Credentials
from kubescene.apiserver.access.escalation import EscalationCheck
from kubescene.apiserver.access.rbac import Rbac
from kubescene.apiserver.access.service_accounts import ServiceAccountTokens
from kubescene.apiserver.access.tokens import ANONYMOUS, TokenFile
from kubescene.apiserver.audit import NOBODY, AuditTrail
from kubescene.apiserver.bodies import LARGE
from kubescene.apiserver.engine_thread import SHUTTING_DOWN, EngineStoppedError, EngineThread
from kubescene.apiserver.kubernetes.discovery import DiscoveryDocuments
from kubescene.apiserver.kubernetes.field_validation import FieldValidation
from kubescene.apiserver.kubernetes.listing import ListServer
from kubescene.apiserver.kubernetes.logs import PodLogs
from kubescene.apiserver.kubernetes.measured import MEASURED_TYPES, MetricsPages
from kubescene.apiserver.kubernetes.pages import Health, ServerPages
from kubescene.apiserver.kubernetes.paths import asked_of, find_target
from kubescene.apiserver.kubernetes.rendering import Renderer
from kubescene.apiserver.kubernetes.resources import ResourceRequests
from kubescene.apiserver.kubernetes.watches import WatchStreams
from kubescene.apiserver.kubernetes.writes import Writes
from kubescene.apiserver.openapi.pages import Definitions, OpenApiPages
from kubescene.apiserver.openapi.specs import OpenApi
from kubescene.apiserver.origins import Origins
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
    SMALLEST,
    Response,
    error_response,
    indented,
    not_found_page,
    packed,
)
from kubescene.apiserver.simulator.attempts import AttemptsPage
from kubescene.apiserver.simulator.park import ParkingPage
from kubescene.apiserver.simulator.remedies import RemediesPage
from kubescene.apiserver.simulator.runs import RunPages
from kubescene.apiserver.simulator.scenarios import ScenarioPages
from kubescene.apiserver.simulator.scheduler_configuration import SchedulerConfigurationPage
from kubescene.apiserver.simulator.timelines import TimelineStreams
from kubescene.apiserver.simulator.what_if import WhatIfPage
from kubescene.apiserver.simulator.worlds import Worlds
from kubescene.apiserver.table import PatternRows, RouteTable, takes
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.apiserver.turnstile import Turnstile
from kubescene.apiserver.ui import UiPages
from kubescene.apiserver.webhooks import WebhookClient, WebhookPlaces, calling
from kubescene.errors import ApiError, InternalError, UnauthorizedError
from kubescene.live import LiveScenarios
from kubescene.outside.stage import OutsideStage
from kubescene.runs.opened import OpenedRuns

HALF_DONE = "what this request was about was not waited for, and may be half done"

_log = logging.getLogger(__name__)


class ApiServer:
    """Serves the cluster of one engine thread. Everything here runs on one event loop."""

    def __init__(
        self,
        engine: EngineThread,
        scenarios: LiveScenarios | None = None,
        *,
        origins: Origins | None = None,
        authorizer: Authorizer | None = None,
        tokens: TokenFile | None = None,
        token_key: bytes = b"",
        stage: OutsideStage | None = None,
        traffic: TrafficPages | None = None,
        opened: OpenedRuns | None = None,
        max_body: int = DEFAULT_MAX_BODY,
        allow_extenders: bool = False,
        audit: AuditTrail | None = None,
        webhooks: WebhookPlaces | None = None,
    ) -> None:
        cluster = engine.cluster
        self.audit = audit
        self.engine = engine
        self.registry = cluster.registry
        self.registry.track_fields = True
        self.origins = origins or Origins()
        self.authorizer = authorizer or AllowAll()
        accounts = ServiceAccountTokens(self.registry, token_key)
        self._credentials = Credentials(accounts, tokens)
        self._authenticate = by_prefix if tokens is None else self._credentials.identify
        self._is_open = isinstance(self.authorizer, AllowAll)
        self.stage = stage or OutsideStage(cluster)
        self.turnstile = Turnstile(engine, self.stage, max_body)
        self.renderer = Renderer(self.registry)
        fields = FieldValidation(self.registry.custom)
        escalation = None
        if isinstance(self.authorizer, Rbac):
            escalation = EscalationCheck(self.authorizer)
        self.webhooks = WebhookClient(webhooks)
        calling(self.webhooks, engine, _never if scenarios is None else scenarios.is_playing)
        self.verbs = Writes(
            self.registry, engine, self.renderer, fields, max_body, escalation, self.webhooks
        )
        self.streams = WatchStreams(self.registry, engine, self.renderer, self.stage)
        self.logs = PodLogs(engine)
        self.timelines = TimelineStreams(engine)
        self.health = Health(engine)
        self.traffic = traffic or TrafficPages()
        self.mounted: dict[str, App] = {}
        self.table = RouteTable(partial(find_target, cluster.scheme))
        self._opened = opened or OpenedRuns()
        self._fill(scenarios, allow_extenders=allow_extenders)

    def _fill(self, scenarios: LiveScenarios | None, *, allow_extenders: bool) -> None:
        """All rows of the table."""
        engine, table, scheme = self.engine, self.table, self.engine.cluster.scheme
        lister = ListServer(self.registry, engine)
        pages = ServerPages(
            self.registry.store,
            DiscoveryDocuments(scheme, more=MEASURED_TYPES),
            self.health,
            lambda: table.paths,
        )
        openapi = OpenApi(scheme, Definitions(self.registry.store))
        table.add(
            *ResourceRequests(
                self.verbs,
                lister,
                self.renderer,
                self.streams,
                self.logs,
                self.authorizer,
                self._credentials,
            ).routes()
        )
        table.add(*MetricsPages(engine).routes())
        table.add(*pages.routes(), *OpenApiPages(openapi).routes(), *UiPages().routes(), slash=True)
        table.add(
            *Worlds(engine, scenarios).routes(),
            *SchedulerConfigurationPage(engine, allow_extenders=allow_extenders).routes(),
            *RemediesPage(engine, self.stage).routes(),
            *AttemptsPage(engine).routes(),
            *WhatIfPage(engine).routes(),
            refuse=takes("simulator"),
        )
        if scenarios is not None:
            table.add(
                *ScenarioPages(engine, scenarios, self.timelines).routes(),
                *RunPages(engine, scenarios, self.traffic, self._opened).routes(),
                *ParkingPage(engine, scenarios, self.stage, self.turnstile).routes(),
                refuse=takes("simulator"),
            )
        table.add(*self.traffic.routes(), refuse=takes())

    def end_waits(self) -> None:
        """On the loop: nothing happens any more, so end all streams and answer whoever waits."""
        self.streams.close()
        self.turnstile.close()
        self.timelines.close()
        self.webhooks.close()
        self.logs.close()

    def mount(self, prefix: str, app: App) -> None:
        """Let another application (Starlette's, say) answer for all paths below ``prefix``."""
        self.mounted[prefix.rstrip("/")] = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.mounted and (app := self._mounted_at(scope.get("path", ""))):
            await self._serve_mounted(app, scope, receive, send)
        elif scope["type"] == "http":
            await self.serve(Request(scope, receive, send))
        elif scope["type"] == "lifespan":
            await _live(receive, send)

    async def _serve_mounted(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a mounted application answer what a page of another server did not ask."""
        try:
            self.origins.check_mounted(scope)
            if self._authenticate is not by_prefix and self._authenticate(scope)[0] is ANONYMOUS:
                raise UnauthorizedError("Unauthorized")
        except ApiError as error:
            await _refuse(error, scope, send)
        else:
            await app(scope, receive, send)

    def _mounted_at(self, path: str) -> App | None:
        return self.mounted.get("/" + path[1:].partition("/")[0])

    async def serve(self, request: Request) -> None:
        """Answer one request, whatever it is."""
        try:
            await self._serve(request)
        finally:
            request.finish()
            if self.audit is not None:
                self.audit.forget(request)

    async def _serve(self, request: Request) -> None:
        response: Response | None
        try:
            response = await self._answer(request)
        except ApiError as error:
            response = error_response(error)
        except ClientGoneError:
            return
        except EngineStoppedError:
            response = error_response(InternalError(SHUTTING_DOWN))
        except asyncio.CancelledError:
            await _leave(request)
            return
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            response = error_response(
                InternalError("Internal error occurred: the server's log has the details")
            )
        if response is not None:
            await self._send(response, request)
        if self.audit is not None:
            self.audit.complete(request, response)

    async def _send(self, response: Response, request: Request) -> None:
        if request.wants_indentation:
            is_long = len(response.body) > LARGE
            response = (
                await asyncio.to_thread(indented, response) if is_long else indented(response)
            )
        if len(response.body) >= SMALLEST:
            response = await packed(response, request.header(b"accept-encoding"))
        await response.send(request.send, request.warnings)

    async def _answer(self, request: Request) -> Response | None:
        """The response, or None when it has been sent already."""
        scope = request.scope
        self.origins.check(scope)
        entry = self._identify(request)
        if not self._is_open and request.actor is not ANONYMOUS:
            self._authorize(request)
        if entry is None:
            return not_found_page()
        route = entry.route(request)
        if route.guarded:
            self.origins.check_page(scope)
        if route.engine and self.engine.is_over:
            raise EngineStoppedError(SHUTTING_DOWN)
        if self.turnstile.is_set:
            answer = await self.turnstile.admit(request)
            if answer is not None:
                return answer
        return await route.handler(request)

    def _identify(self, request: Request) -> PatternRows | None:
        """Who asks, and the rows for what is asked: with these, the audit log begins."""
        scope = request.scope
        try:
            actor, request.path = self._authenticate(scope)
        except UnauthorizedError:
            if self.audit is not None:
                self.table.find(request)
                self.audit.begin(request, NOBODY)
            raise
        entry = self.table.find(request)
        if self.audit is not None:
            self.audit.begin(request, actor)
        request.actor = impersonated(actor, scope["headers"], self.authorizer)
        if self.audit is not None and request.actor is not actor:
            self.audit.impersonated(request)
        return entry

    def _authorize(self, request: Request) -> None:
        """403 in kube-apiserver's words unless the actor may."""
        actor, (verb, wanted) = request.actor, asked_of(request)
        permission = self.authorizer.permission(actor, verb, wanted)
        if self.audit is not None:
            self.audit.permitted(request, permission)
        if not permission.is_given:
            raise forbidden(actor, verb, wanted, permission.reason)


def _never() -> bool:
    return False


async def _leave(request: Request) -> None:
    """The server ends, and waits no longer for what a request is about."""
    told = error_response(InternalError(f"{SHUTTING_DOWN}: {HALF_DONE}"))
    try:
        await told.send(request.send)
    except RuntimeError:  # It was being answered already.
        raise asyncio.CancelledError from None


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
