"""A plugin as a process, and the connection to it: calls with deadlines, health, an orderly end.

The process (`Child`) is a `kubescene.supervised` program that says where it listens, with a
directory of its own for its socket, which goes when it goes.
"""

import os
import queue
import shutil
import socket
import stat
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from kubescene.autoscalers.process.definitions import Method
from kubescene.autoscalers.process.grpc_extra import grpc
from kubescene.autoscalers.process.handshake import (
    LONGEST_LINE,
    SERVICE,
    Address,
    HandshakeError,
    environment,
    parse,
)
from kubescene.autoscalers.process.messages import (
    CONTROLLER,
    HEALTH,
    PLUGIN,
    SERVING,
    STDIO,
    Empty,
    unreadable,
)
from kubescene.errors import AutoscalerError, ConfigurationError
from kubescene.supervised.last_words import LastWords
from kubescene.supervised.process import MOMENT_S, Process, words_of

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
]
START = "start"
"""What an error calls the time before the first call."""

_READING_S = 0.2
"""What it wrote before it answered may not have been read yet: so long we wait for that."""

_GRACE_S = 2.0
"""How long a plugin has to go after it was told to."""

_ATTEMPT_S = 1.0
_ORIGINS = {1: "stdout", 2: "stderr"}


class Child:
    """A plugin that runs and has said where it listens; raises `AutoscalerError` if it does not."""

    def __init__(self, command: str, *, start_s: float) -> None:
        self.name = command
        self._directory = tempfile.mkdtemp(prefix="kubescene-")
        self._first: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.address: Address | None = None
        try:
            self._process = self._started()
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise
        try:
            self._read_handshake(start_s)
        except BaseException:
            self.end(grace_s=0)
            raise

    @property
    def words(self) -> LastWords:
        return self._process.words

    @property
    def pid(self) -> int:
        return self._process.pid

    def failed(self, told: str, call: str = START) -> AutoscalerError:
        """An error about it, with what it said last."""
        if self.has_exited(MOMENT_S if call == START else 0):
            self._process.join()
        else:
            Event().wait(_READING_S)
        return AutoscalerError(f"{told}{self.words.told()}", autoscaler=self.name, call=call)

    def has_exited(self, wait_s: float = 0) -> bool:
        """Whether it is no more, or will not be within this time."""
        return self._process.has_exited(wait_s)

    def exit_told(self) -> str:
        """How it ended: ``exited with code 3``, ``was ended by SIGKILL``."""
        return self._process.exit_told()

    def end(self, grace_s: float) -> None:
        """End it, whatever it does, and take away what it leaves behind."""
        self._process.end(grace_s)
        if self.address is not None:
            remove_left(self.address)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _started(self) -> Process:
        surroundings = environment(self._directory)
        try:
            words = words_of(self.name)
            return Process(
                words,
                surroundings,
                first_line=self._first,
                longest=LONGEST_LINE,
                directory=self._directory,
            )
        except ValueError as error:
            raise AutoscalerError(
                f"the command cannot be started: {error}", autoscaler=self.name, call=START
            ) from error

    def _read_handshake(self, start_s: float) -> None:
        try:
            line = self._first.get(timeout=start_s).decode(errors="replace")
        except queue.Empty:
            raise self.failed(f"it printed no handshake within {start_s:g} s") from None
        try:
            self.address = parse(line)
        except HandshakeError as error:
            if not line.strip() and self.has_exited(MOMENT_S):
                raise self.failed(f"it {self.exit_told()} before the handshake") from None
            raise self.failed(str(error)) from None


class Connection:
    """One process, from its start to its end. It is never started again; that makes a new one."""

    def __init__(self, command: str, *, start_s: float, call_s: float) -> None:
        self.child = Child(command, start_s=start_s)
        self.call_s = call_s
        self.retired = False
        """It failed us once: no new run begins with it."""
        assert self.child.address is not None
        self._channel = grpc.insecure_channel(self.child.address.target, options=OPTIONS)
        self._calls = {name: self._unary(method) for name, method in PLUGIN.items()}
        self._check = self._unary(HEALTH["Check"])
        # It holds nothing of this object, which may so be forgotten; and it runs at exit, too.
        self._end = weakref.finalize(self, end, self.child, self._channel)
        try:
            self._reach(start_s)
            self._read_stdio()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Say that it is over, and see to it that it is. May be called again."""
        self._end()

    def call(self, name: str, request: Any, told: str) -> Any:
        """Ask; ``told`` names the call in errors. Raises `AutoscalerError`, or
        `ConfigurationError` for what the plugin refuses."""
        if self.child.has_exited():
            raise self._gone(told)
        # Who did not answer once is told of the end, but not waited for.
        deadline = _ATTEMPT_S if self.retired else self.call_s
        try:
            answer = self._calls[name](request, timeout=deadline)
        except grpc.RpcError as error:
            raise self._failure(error, told, deadline) from error
        if wrong := unreadable(answer):
            raise self.child.failed(wrong, told)
        return answer

    def ask(self, name: str) -> Any | None:
        """What it says about itself; None if it does not know the call."""
        try:
            return self._calls[name](Empty(), timeout=self.call_s)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise self._failure(error, name, self.call_s) from error

    def health(self, timeout_s: float) -> str:
        """``""`` if it is well, else what is wrong. One without the health service is well."""
        request = HEALTH["Check"].request(service=SERVICE)
        try:
            status = self._check(request, timeout=timeout_s, wait_for_ready=True).status
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return ""
            return f"it cannot be reached: {error.details()}"
        return "" if status == SERVING else "it says that it is not serving"

    def has_health(self) -> bool:
        """Whether it has the health service, as go-plugin's hosts expect."""
        try:
            self._check(HEALTH["Check"].request(service=SERVICE), timeout=self.call_s)
        except grpc.RpcError:
            return False
        return True

    def is_well(self) -> bool:
        """Whether a new run may begin with it."""
        return not (self.retired or self.child.has_exited() or self.health(self.call_s))

    def _unary(self, method: Method) -> Callable[..., Any]:
        made: Callable[..., Any] = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        return made

    def _reach(self, start_s: float) -> None:
        """Wait until it answers; one that is gone is not waited for."""
        address = self.child.address
        assert address is not None
        for _ in range(max(int(start_s / _ATTEMPT_S), 1)):
            # Who has said where it listens listens there: a refusal does not pass by waiting.
            if refusal := refused_at(address):
                raise self.child.failed(
                    f"{refusal}, where its handshake says that it listens", START
                )
            wrong = self.health(_ATTEMPT_S)
            if not wrong:
                return
            if self.child.has_exited():
                raise self._gone(START)
        raise self.child.failed(wrong, START)

    def _read_stdio(self) -> None:
        method = STDIO["StreamStdio"]
        stream = self._channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )(method.request())
        reading = Thread(
            target=read_stdio, args=(stream, self.child.words), name="reads a plugin", daemon=True
        )
        reading.start()

    def _failure(self, error: Any, told: str, deadline: float) -> Exception:
        code, details = error.code(), error.details() or ""
        if code is grpc.StatusCode.INVALID_ARGUMENT:
            return ConfigurationError(details)
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            self.retired = True
            return self.child.failed(f"it did not answer within {deadline:g} s", told)
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            self.retired = True
            if self.child.has_exited(_ATTEMPT_S):
                return self._gone(told)
            return self.child.failed(f"the connection is lost: {details}", told)
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return self.child.failed("it does not know this call", told)
        if code is grpc.StatusCode.UNKNOWN:
            return self.child.failed(details, told)
        return self.child.failed(f"{code.name}: {details}", told)

    def _gone(self, told: str) -> AutoscalerError:
        return self.child.failed(f"it {self.child.exit_told()}", told)


def refused_at(address: Address) -> str:
    """Who says no at an address, and why; nothing if somebody listens, or it is hard to tell."""
    family = socket.AF_UNIX if address.network == "unix" else socket.AF_INET
    place: Any = address.address
    if address.network != "unix":
        host, _, port = address.address.rpartition(":")
        if not port.isdecimal() or ":" in host:
            return ""
        place = (host, int(port))
    with socket.socket(family) as probe:
        probe.settimeout(_ATTEMPT_S)
        try:
            probe.connect(place)
        except (ConnectionRefusedError, FileNotFoundError) as error:
            return f"nobody listens at {address.target} ({error.strerror})"
        except (OSError, OverflowError):
            return ""
    return ""


def read_stdio(stream: Any, words: LastWords) -> None:
    """What a Go plugin prints comes this way; one that is not written in Go has no such call."""
    with suppress(grpc.RpcError):
        for each in stream:
            words.add(_ORIGINS.get(each.channel, "stdout"), each.data)


def end(child: Child, channel: Any) -> None:
    """The end in three steps: it is told, it is asked (SIGTERM), it is forced (SIGKILL)."""
    method = CONTROLLER["Shutdown"]
    shutdown = channel.unary_unary(
        method.path,
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )
    deaf = False
    if not child.has_exited():
        try:
            shutdown(method.request(), timeout=_ATTEMPT_S)
        except grpc.RpcError as error:
            # A Go plugin may be gone before it has answered.
            deaf = error.code() in (
                grpc.StatusCode.DEADLINE_EXCEEDED,
                grpc.StatusCode.UNIMPLEMENTED,
            )
    channel.close()
    child.end(grace_s=0 if deaf else _GRACE_S)


def remove_left(address: Address) -> None:
    """Remove the socket that a plugin left behind, if it is one and nobody listens any more."""
    if address.network != "unix":
        return
    with suppress(OSError):
        if not stat.S_ISSOCK(os.stat(address.address).st_mode):
            return
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(address.address)
            except ConnectionRefusedError:
                os.unlink(address.address)
