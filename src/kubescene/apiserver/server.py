"""A running server: socket, event loop, engine thread, and an orderly end of all three.

`Server.run` serves on the calling thread, as the command line wants it; `Server.start` does so on a
thread of its own, as tests and notebooks want it. Watches are ended first, so that nobody waits
for a client to go away. An engine that does not end within its grace period is left behind: the
process must not hang on it.
"""

import asyncio
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread, current_thread, main_thread
from types import TracebackType
from typing import Any, cast

import uvicorn

from kubescene.apiserver.access import Authorizer
from kubescene.apiserver.access.credentials import PEER, peer_of
from kubescene.apiserver.access.rbac import Rbac, furnish_roles
from kubescene.apiserver.access.security import Security
from kubescene.apiserver.app import ApiServer
from kubescene.apiserver.audit import AuditTrail
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.origins import Origins, is_local_address
from kubescene.apiserver.requests import DEFAULT_MAX_BODY
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.apiserver.webhooks import WebhookPlaces
from kubescene.clock import WallClock
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.garbage import serving, tidy
from kubescene.live import LiveScenarios
from kubescene.outside.stage import OutsideStage
from kubescene.runs.catalogue import Runs
from kubescene.runs.opened import OpenedRuns
from kubescene.scenario.phases import ResultsStrategy
from kubescene.struct_types import build_all
from kubescene.timeline.lines import build_line_types

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8001
MOST_PODS = 150_000
"""What Kubernetes says of the size of a cluster."""
GRACE_S = 3
"""How long open requests, and then the engine, may take to end."""

SWITCH_INTERVAL_S = 0.001
"""How long a busy engine may keep the interpreter to itself while readers wait (default: 5 ms).

Measured: four times as many reads a second beside a busy engine, which loses a fifth of its pace.
"""

REQUEST_TIMEOUT_S = 60.0
"""As kube-apiserver's --request-timeout."""
QUIET_S = 1.0
"""After so long without a request, what simulates traffic is loaded."""

_log = logging.getLogger(__name__)


class Warming:
    """What the first traffic run would wait for is loaded while nobody asks for anything.

    A server starts without what simulates traffic, and many never need it. Once a second has passed
    without a request it is loaded, in a thread that touches nothing of the world that is served.
    ``requests`` says how many there were so far.
    """

    def __init__(self, load: Callable[[], None], requests: Callable[[], int]) -> None:
        self._load = load
        self._requests = requests
        self._seen = -1
        self._thread: Thread | None = None

    def watch(self) -> None:
        """Look every second, on the running loop, until there was no request since the last one."""
        before, self._seen = self._seen, self._requests()
        if before != self._seen:
            asyncio.get_running_loop().call_later(QUIET_S, self.watch)
            return
        self._thread = Thread(target=self._load, name="kubescene-warming")
        self._thread.start()

    def join(self) -> None:
        """Returns when the thread is gone; the loop must have ended before."""
        if self._thread is not None:
            self._thread.join()


class SlowClients:
    """Cuts off those who take too long to say what they want. On the event loop.

    A connection that is kept for the next request has its own limit; whoever waits for an answer,
    or reads one, has none.
    """

    def __init__(self, connections: Collection[Any], limit_s: float) -> None:
        self._connections = connections
        self._limit_s = limit_s
        self._since: dict[Any, tuple[object, float]] = {}

    def look(self, now: float) -> None:
        """Close what was unfinished for too long. To be called from time to time."""
        before, self._since = self._since, {}
        for connection in list(self._connections):
            request = unfinished(connection)
            if request is None:
                continue
            begun = before.get(connection, (None, 0.0))
            since = begun[1] if begun[0] is request else now
            self._since[connection] = request, since
            if now - since > self._limit_s:
                connection.transport.close()


def unfinished(connection: Any) -> object | None:
    """The request that a client of uvicorn is still sending; the connection before its headers."""
    cycle = connection.cycle
    if cycle is not None and cycle.more_body:
        return cast("object", cycle)
    is_kept = connection.timeout_keep_alive_task is not None
    return connection if not is_kept and (cycle is None or cycle.response_complete) else None


class _Uvicorn(uvicorn.Server):
    """Tells when it listens, and ends the streams before it waits for connections to close."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: ApiServer,
        *,
        tls: ssl.SSLContext | None,
        warm: bool,
        request_timeout_s: float,
    ) -> None:
        super().__init__(config)
        self._tls = tls
        self._handshake_s = None if tls is None else request_timeout_s
        self._slow = SlowClients(self.server_state.connections, request_timeout_s)
        self._app = app
        self._warm = warm
        self.warming = Warming(app.traffic.load, self.requests)
        self.listening = Event()

    def requests(self) -> int:
        """How many there were so far."""
        return self.server_state.total_requests

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on a signal, and leave it at that: uvicorn would raise it again afterwards."""
        if current_thread() is not main_thread():
            yield
            return
        handled = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self.handle_exit) for number in handled]
        try:
            yield
        finally:
            for number, handler in zip(handled, before, strict=True):
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn would listen here itself, but has no limit for handshakes.
        await super().startup(sockets=[])
        for each in sockets or ():
            listener = await asyncio.get_running_loop().create_server(
                self._connection,
                sock=each,
                backlog=self.config.backlog,
                ssl=self._tls,
                ssl_handshake_timeout=self._handshake_s,
            )
            self.servers.append(listener)
        self.listening.set()
        if self._warm:
            self.warming.watch()
        self._app.engine.when_over(self._app.end_waits)
        self._tidy(-1)

    def _connection(self) -> asyncio.Protocol:
        connection: Any = self.config.http_protocol_class
        made: asyncio.Protocol = certified(connection)(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    def _tidy(self, seen: int) -> None:
        """Look for garbage in all that there is, best while nobody asks and nothing is played.

        And for clients who never finish what they say.
        """
        requests = self.requests()
        if not self._app.engine.is_playing:
            tidy(is_busy=requests != seen, is_alone=not self.server_state.connections)
        loop = asyncio.get_running_loop()
        self._slow.look(loop.time())
        loop.call_later(QUIET_S, self._tidy, requests)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.end_waits()
        self._app.traffic.stop()
        await super().shutdown(sockets=sockets)
        if self.server_state.tasks:
            # They were told to end, and have an answer to give.
            await asyncio.wait(list(self.server_state.tasks), timeout=GRACE_S)
        # Over TLS one may still wait for its client to say goodbye, and the loop then for ever.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


class Server:
    """One served cluster.

    ``rbac``: Roles say who may do what. ``warm``: what simulates traffic is loaded while nobody
    asks for it. Whoever takes longer than ``request_timeout_s`` for the headers or the body of a
    request is cut off. ``webhooks``: where they may be besides this machine. ``security``: https
    with tokens, without which only this machine is served. ``audit``: where it is told who asked
    for what.
    """

    def __init__(
        self,
        cluster: ClusterWorld | None = None,
        *,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        controllers: bool = True,
        max_body: int = DEFAULT_MAX_BODY,
        allow_extenders: bool = False,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
        traffic: TrafficPages | None = None,
        opened: OpenedRuns | None = None,
        authorizer: Authorizer | None = None,
        rbac: bool = False,
        security: Security | None = None,
        warm: bool = False,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        audit: AuditTrail | None = None,
        webhooks: WebhookPlaces | None = None,
        most_pods: int = MOST_PODS,
    ) -> None:
        is_local = is_local_address(host)
        if security is None and not is_local:
            raise ConfigurationError(
                f"{host} is not a loopback address: there a server needs https and tokens "
                "(Server(security=...), kubescene serve --allow-remote)"
            )
        self.cluster = cluster or ClusterWorld(
            ClusterOptions(events=True, furnished=True), clock=WallClock()
        )
        self.cluster.serve_offers()
        self.cluster.registry.most_pods = most_pods
        if rbac:
            furnish_roles(self.cluster.registry)
            authorizer = Rbac(self.cluster.store)
        clocks = self.cluster.registry.clocks
        if clocks.is_one:
            # A scenario may have the world's clock for itself; the server goes on meanwhile.
            clocks.server = WallClock()
        self.stage = OutsideStage(self.cluster)
        folder = None if traffic is None else traffic.folder
        self.scenarios = LiveScenarios(
            self.cluster,
            results,
            allow_extenders=allow_extenders,
            stage=self.stage,
            catalogue=None if folder is None else Runs(folder),
        )
        self.stage.is_playing = self.scenarios.is_playing
        self.engine = EngineThread(self.cluster, controllers=controllers, director=self.scenarios)
        self.app = ApiServer(
            self.engine,
            self.scenarios,
            origins=Origins(only_local=is_local, names=() if security is None else security.names),
            authorizer=authorizer,
            tokens=None if security is None else security.tokens,
            token_key=b"" if security is None else security.identities.signing_key(),
            stage=self.stage,
            traffic=traffic,
            opened=opened,
            max_body=max_body,
            allow_extenders=allow_extenders,
            audit=audit,
            webhooks=webhooks,
        )
        self._socket = _listen(host, port)
        self.host = host
        self._scheme = "http" if security is None else "https"
        self.port: int = self._socket.getsockname()[1]
        self._uvicorn = _Uvicorn(
            _config(self.app),
            self.app,
            tls=None if security is None else security.tls,
            warm=warm,
            request_timeout_s=request_timeout_s,
        )
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """Where it is reached: of a server that listens everywhere, from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def run(self) -> None:
        """Serve until a signal or `stop` ends it."""
        build_line_types()
        build_all()
        self.engine.start()
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        try:
            with serving(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._uvicorn.serve(sockets=[self._socket]))
        finally:
            sys.setswitchinterval(interval)
            self._uvicorn.warming.join()
            self.app.traffic.close()
            if self._stop_engine():
                self._conclude()
            self.scenarios.close()
            self.cluster.store.close()
            if self.app.audit is not None:
                self.app.audit.close()
            self._socket.close()

    def _stop_engine(self) -> bool:
        """Let the engine finish what was submitted; go on without one that never does."""
        is_over = self.engine.stop(GRACE_S)
        if not is_over:
            _log.error(
                "the engine is stuck and did not end within %d s: leaving without it", GRACE_S
            )
        return is_over

    def _conclude(self) -> None:
        """Code of others hears that it is over; what it does then does not keep the rest."""
        try:
            self.cluster.conclude()
        except KubesceneError as error:
            _log.error("%s", error)

    def start(self) -> None:
        """Serve on a thread; returns when requests are answered."""
        self._thread = Thread(target=self.run, name="kubescene-http", daemon=True)
        self._thread.start()
        while not self._uvicorn.listening.wait(timeout=0.1):
            if not self._thread.is_alive():
                raise RuntimeError("the server could not be started: its log says why")

    def stop(self) -> None:
        """End the streams, the connections and the engine; returns when all is gone."""
        self._uvicorn.should_exit = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@cache
def certified(protocol: Any) -> Any:
    """A protocol whose requests know whose certificate their connection has shown."""

    class Certified(protocol):  # type: ignore[misc]
        app_state: dict[str, Any]

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if (peer := peer_of(transport)) is not None:
                self.app_state = {**self.app_state, PEER: peer}

    return Certified


def _config(app: ApiServer) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=75,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    factory: type[asyncio.AbstractEventLoop] = uvloop.Loop
    return factory
