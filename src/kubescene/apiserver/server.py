"""A running server: socket, event loop, engine thread, and an orderly end of all three.

`Server.run` serves on the calling thread, as the command line wants it; `Server.start` does so on a
thread of its own, as tests and notebooks want it. Watches are ended first, so that nobody waits
for a client to go away. An engine that does not end within its grace period is left behind: the
process must not hang on it.
"""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread, current_thread, main_thread
from types import TracebackType

import uvicorn

from kubescene.apiserver.app import ApiServer
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.origins import is_local
from kubescene.apiserver.requests import DEFAULT_MAX_BODY
from kubescene.apiserver.traffic_pages import TrafficPages
from kubescene.apiserver.warming import Warming
from kubescene.clock import WallClock
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.live import LiveScenarios
from kubescene.outside.stage import OutsideStage
from kubescene.scenario.phases import ResultsStrategy
from kubescene.struct_types import build_all

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8001
GRACE_S = 3
"""How long open requests, and then the engine, may take to end."""

SWITCH_INTERVAL_S = 0.001
"""How long a busy engine may keep the interpreter to itself while readers wait (default: 5 ms).

Measured: four times as many reads a second beside a busy engine, which loses a fifth of its pace.
"""

_log = logging.getLogger(__name__)


class _Uvicorn(uvicorn.Server):
    """Tells when it listens, and ends the streams before it waits for connections to close."""

    def __init__(self, config: uvicorn.Config, app: ApiServer, *, warm: bool) -> None:
        super().__init__(config)
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
        await super().startup(sockets=sockets)
        self.listening.set()
        if self._warm:
            self.warming.watch()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.streams.close()
        self._app.traffic.stop()
        await super().shutdown(sockets=sockets)


class Server:
    """One served cluster. ``warm``: what simulates traffic is loaded while nobody asks for it."""

    def __init__(
        self,
        cluster: Cluster | None = None,
        *,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        controllers: bool = True,
        max_body: int = DEFAULT_MAX_BODY,
        allow_extenders: bool = False,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
        traffic: TrafficPages | None = None,
        warm: bool = False,
    ) -> None:
        self.cluster = cluster or Cluster(ClusterOptions(events=True), clock=WallClock())
        clocks = self.cluster.registry.clocks
        if clocks.is_one:
            # A scenario may have the world's clock for itself; the server goes on meanwhile.
            clocks.server = WallClock()
        self.stage = OutsideStage(self.cluster)
        self.scenarios = LiveScenarios(
            self.cluster, results, allow_extenders=allow_extenders, stage=self.stage
        )
        self.stage.is_playing = self.scenarios.is_playing
        self.engine = EngineThread(self.cluster, controllers=controllers, director=self.scenarios)
        only_local = is_local(host.encode())
        self.app = ApiServer(
            self.engine,
            self.scenarios,
            max_body=max_body,
            only_local=only_local,
            allow_extenders=allow_extenders,
            traffic=traffic,
            stage=self.stage,
        )
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._uvicorn = _Uvicorn(_config(self.app), self.app, warm=warm)
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def run(self) -> None:
        """Serve until a signal or `stop` ends it."""
        build_all()
        self.engine.start()
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        # What exists now will be there for long: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._uvicorn.serve(sockets=[self._socket]))
        finally:
            sys.setswitchinterval(interval)
            self._uvicorn.warming.join()
            self.app.traffic.close()
            self._stop_engine()
            self._socket.close()

    def _stop_engine(self) -> None:
        """Let the engine finish what was submitted; go on without one that never does."""
        if not self.engine.stop(GRACE_S):
            _log.error(
                "the engine is stuck and did not end within %d s: leaving without it", GRACE_S
            )

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
