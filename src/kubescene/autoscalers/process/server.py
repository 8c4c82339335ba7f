"""The plugin's side: an autoscaler in Python, served to whoever started this process.

The host may be Kubescene, or Skenario, or anything else with go-plugin. Calls come one after the
other, whatever number of runs the host plays at once: an autoscaler need not know of threads.
Ctrl-C is ignored, since the host ends its plugins; when the host is gone, so is this process.
"""

import os
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock, current_thread, main_thread
from typing import Any

from kubescene.autoscalers.dispatcher import check_plugin
from kubescene.autoscalers.interfaces import (
    AutoscalerPlugin,
    HorizontalRecommendationRequest,
    VerticalRecommendationRequest,
)
from kubescene.autoscalers.process import handshake
from kubescene.autoscalers.process.connections import OPTIONS
from kubescene.autoscalers.process.definitions import Method
from kubescene.autoscalers.process.grpc_extra import grpc
from kubescene.autoscalers.process.handshake import Address
from kubescene.autoscalers.process.messages import (
    CONTROLLER,
    HEALTH,
    PLUGIN,
    SERVING,
    Empty,
    event_of,
    horizontal_message,
    stats_of,
    vertical_message,
)
from kubescene.errors import KubesceneError

WORKERS = 8
LONGEST_PATH = 100
"""A socket's path may have so many bytes, nearly; longer ones make us listen at a port."""

_LOOK_S = 1.0
_GRACE_S = 1.0
_NOT_BY_HAND = """\
This is an autoscaler plugin. It is not meant to be started by hand, but by a host:

    kubescene traffic run FILE --autoscaler-process "COMMAND"
    kubescene autoscaler check "COMMAND"
"""


def serve(plugin: AutoscalerPlugin) -> None:
    """Serve an autoscaler until the host says that it is over. Call it last in your program.

    Print nothing before: the first line that the host reads must be the handshake. Exits with 1
    if no host has started this process.
    """
    check_plugin(plugin)
    check_environment()
    over = Event()
    directory = socket_directory()
    try:
        server, address = serving(plugin, directory, over)
        listen_to_signals(over)
        sys.stdout.write(handshake.line(address) + "\n")
        sys.stdout.flush()
        wait(over)
        server.stop(_GRACE_S).wait()
        plugin.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def socket_directory() -> str:
    """A directory of our own, where the host wants it; exits if it cannot be had."""
    wanted = os.environ.get(handshake.SOCKET_DIRECTORY)
    try:
        return tempfile.mkdtemp(prefix="plugin", dir=wanted)
    except OSError as error:
        told = (
            f"No socket can be made in {handshake.SOCKET_DIRECTORY}={wanted}: {error.strerror}.\n"
        )
        sys.stderr.write(told)
        raise SystemExit(1) from None


def check_environment() -> None:
    """Exit if nobody is there to talk to, or wants what we do not have."""
    wrong = ""
    if os.environ.get(handshake.COOKIE_KEY) != handshake.COOKIE_VALUE:
        wrong = _NOT_BY_HAND
    elif os.environ.get(handshake.CLIENT_CERTIFICATE):
        wrong = "The host wants TLS (AutoMTLS), which this plugin does not have.\n"
    versions = os.environ.get(handshake.VERSIONS, str(handshake.APP_VERSION)).split(",")
    if not wrong and str(handshake.APP_VERSION) not in versions:
        wrong = f"The host speaks versions {', '.join(versions)} of the protocol, this plugin 1.\n"
    if wrong:
        sys.stderr.write(wrong)
        raise SystemExit(1)


def serving(plugin: AutoscalerPlugin, directory: str, over: Event) -> tuple[Any, Address]:
    """A server that runs, and where."""
    server = grpc.server(ThreadPoolExecutor(WORKERS), options=[*OPTIONS, ("grpc.so_reuseport", 0)])
    answers = PluginAnswers(plugin)
    for methods, answering in (
        (PLUGIN, answers.by_name()),
        (HEALTH, {"Check": health}),
        (CONTROLLER, {"Shutdown": Shutdown(over)}),
    ):
        for name, method in methods.items():
            server.add_generic_rpc_handlers((handler(method, answering[name]),))
    path = os.path.join(directory, "socket")
    if hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= LONGEST_PATH:
        server.add_insecure_port(f"unix:{path}")
        address = Address("unix", path)
    else:
        address = Address("tcp", f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    server.start()
    return server, address


def handler(method: Method, answer: Callable[[Any, Any], Any]) -> Any:
    service, name = method.path[1:].split("/")
    unary = grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=method.request.FromString,
        response_serializer=method.response.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(service, {name: unary})


def listen_to_signals(over: Event) -> None:
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: over.set())


def wait(over: Event) -> None:
    """Until it is over, or whoever started us is no more."""
    parent = os.getppid()
    while not over.wait(_LOOK_S):
        if os.getppid() != parent:
            return


class Shutdown:
    """The host's last call."""

    def __init__(self, over: Event) -> None:
        self._over = over

    def __call__(self, request: Any, context: Any) -> Any:
        self._over.set()
        return CONTROLLER["Shutdown"].response()


def health(request: Any, context: Any) -> Any:
    if request.service not in {"", handshake.SERVICE}:
        context.abort(grpc.StatusCode.NOT_FOUND, f"there is no service {request.service!r}")
    return HEALTH["Check"].response(status=SERVING)


class PluginAnswers:
    """The calls of ``proto.Plugin``, answered by an autoscaler; one at a time."""

    def __init__(self, plugin: AutoscalerPlugin) -> None:
        self._plugin = plugin
        self._lock = Lock()

    def by_name(self) -> dict[str, Callable[[Any, Any], Any]]:
        return {
            "Event": self._guarded(self._event),
            "Stat": self._guarded(self._stat),
            "HorizontalRecommendation": self._guarded(self._horizontal),
            "VerticalRecommendation": self._guarded(self._vertical),
            "GetCapabilities": self._guarded(self._capabilities),
            "PluginType": self._guarded(self._type),
            "Scale": self._guarded(self._scale),
        }

    def _guarded(self, answer: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        def answered(request: Any, context: Any) -> Any:
            try:
                with self._lock:
                    return answer(request)
            except KubesceneError as error:
                # A refusal, as opposed to a failure.
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            except Exception as error:
                traceback.print_exc()
                context.abort(grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error}")

        return answered

    def _event(self, request: Any) -> Any:
        self._plugin.event(event_of(request))
        return Empty()

    def _stat(self, request: Any) -> Any:
        self._plugin.stat(stats_of(request))
        return Empty()

    def _horizontal(self, request: Any) -> Any:
        asked = HorizontalRecommendationRequest(request.partition, request.time_nanos)
        return horizontal_message(self._plugin.horizontal_recommendation(asked))

    def _scale(self, request: Any) -> Any:
        asked = HorizontalRecommendationRequest(request.partition, request.time)
        answer = self._plugin.horizontal_recommendation(asked)
        return PLUGIN["Scale"].response(rec=horizontal_message(answer).rec)

    def _vertical(self, request: Any) -> Any:
        asked = VerticalRecommendationRequest(request.partition, request.time_nanos)
        return vertical_message(self._plugin.vertical_recommendation(asked))

    def _capabilities(self, request: Any) -> Any:
        return PLUGIN["GetCapabilities"].response(rec=sorted(self._plugin.capabilities))

    def _type(self, request: Any) -> Any:
        types = self._plugin.types
        return PLUGIN["PluginType"].response(rec=types[0], types=types)
