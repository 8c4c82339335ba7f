"""For controllers that can say themselves when a loop is over: they park, and go on in their turn.

A Scenario plays in steps: while one controller works, the others stand still. A controller outside
the process therefore reports at the end of its loop that it is parked, and blocks until its next
turn, or until no Scenario runs:

    @in_steps("my-operator", SERVER)
    def reconcile(...): ...

One file that needs only the standard library, so that an operator may carry a copy of it.
"""

import asyncio
import contextlib
import functools
import http.client
import inspect
import json
import logging
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar
from urllib.parse import SplitResult, urlsplit

__all__ = [
    "ParkingError",
    "Server",
    "Turn",
    "check_scenario_step_phase",
    "gate_next_pod",
    "in_steps",
]

ASK_S = 50
"""For how long the server may keep a request before it answers "not yet"."""

P = ParamSpec("P")
R = TypeVar("R")
logger = logging.getLogger(__name__)


class ParkingError(Exception):
    """The API server refused a report, or could not be reached for as long as we were patient.

    ``code`` is the HTTP status of a refusal, 0 if there was no answer.
    """

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Server:
    """How the simulator's API server is reached.

    ``host`` is its address with the scheme; a path is put before that of the request, as in
    ``http://127.0.0.1:8001/as/my-operator``. A server that cannot be reached, or answers 5xx, is
    tried again for ``patience_s`` seconds. Proxies of the environment are not used.
    """

    host: str
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    patience_s: float = 60.0

    def __post_init__(self) -> None:
        address = urlsplit(self.host)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(
                f"the host {self.host!r} is no address with a scheme, such as http://127.0.0.1:8001"
            )


@dataclass(frozen=True, slots=True)
class Turn:
    """What a controller is told when it may go on; ``scenario`` is empty if none runs."""

    scenario: str = ""
    phase: str = ""
    major: int = 0
    minor: int = 0


def check_scenario_step_phase(name: str, server: str | Server | None) -> Turn:
    """Report that the controller ``name`` has ended a loop, and block until its next turn.

    Without a server (None) there is no simulator: it returns at once, so that the same operator may
    run in a real cluster. Raises ParkingError.
    """
    return Turn() if server is None else _Report(name, _server(server)).until_turn()


def gate_next_pod(name: str, pod: str, server: str | Server | None) -> Turn:
    """The same for a scheduler, at the top of its cycle: ``pod``, as namespace/name, is the next.

    Blocks until the scheduler may schedule it. Raises ParkingError.
    """
    return Turn() if server is None else _Report(name, _server(server), pod).until_turn()


def in_steps(name: str, server: str | Server | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function one loop of the controller ``name``: it ends by parking until the next turn.

    For plain and ``async`` functions. Those of one name run one at a time, in the order in which
    they were called, by however many threads and tasks: a turn is one loop. An error of the
    function is raised after the parking; an error in parking is logged, because the function's work
    is done and must not be repeated for it.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} is a generator: a loop is a function that ends"
            )
        if server is None:
            return function
        loops = _Loops(name, _server(server))
        if inspect.iscoroutinefunction(function):
            return loops.wrap_async(function)
        return loops.wrap(function)

    return decorate


class _Report:
    """One controller at one place, told to the server until the turn comes.

    ``stop`` ends it from another thread: the connection is closed, and nothing more is asked.
    """

    def __init__(self, name: str, server: Server, pod: str = "") -> None:
        if not name:
            raise ValueError("a controller without a name cannot park")
        self._name = name
        self._body = json.dumps({"name": name, "pod": pod} if pod else {"name": name})
        self._server = server
        self._address = urlsplit(server.host)
        self._stopped = threading.Event()
        self._connection: http.client.HTTPConnection | None = None

    def until_turn(self) -> Turn:
        """Ask until the server says go; each answer renews the patience."""
        pause, answered = 0.05, _now()
        while not self._stopped.is_set():
            try:
                turn = self._ask()
            except _MayPassError as error:
                if _now() - answered + pause > self._server.patience_s:
                    raise self._error(str(error), error.code) from error
                self._rest(pause)
                pause = min(2 * pause, 2.0)
                continue
            if turn is not None:
                return turn
            pause, answered = 0.05, _now()
        raise self._error("it was stopped")

    def stop(self) -> None:
        self._stopped.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):  # it may just have been closed
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _rest(self, pause_s: float) -> None:
        self._stopped.wait(pause_s)

    def _ask(self) -> Turn | None:
        """One request; None is "not yet"."""
        path = f"{self._address.path.rstrip('/')}/simulator/v1/park?timeoutSeconds={ASK_S}"
        headers = {**self._server.headers, "Content-Type": "application/json"}
        self._connection = connection = _connect(self._address, self._server.tls)
        try:
            connection.request("POST", path, self._body, headers)
            response = connection.getresponse()
            return self._understand(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise _MayPassError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def _understand(self, code: int, text: bytes) -> Turn | None:
        if code >= 500:
            raise _MayPassError(_refusal(code, text), code)
        if code != 200:
            raise self._error(_refusal(code, text), code)
        try:
            told = json.loads(text)
            return _turn(told) if told["go"] else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"the answer is no turn: is this the API server of Kubescene? {error!r}"
            raise self._error(why, code) from error

    def _error(self, why: str, code: int = 0) -> ParkingError:
        return ParkingError(f"{self._name} cannot park at {self._server.host}: {why}", code)


class _MayPassError(Exception):
    """A failure that is worth another try."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class _Gate:
    """One at a time, in the order of asking, for threads and tasks alike."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._waiting: deque[Future[None]] = deque()

    def ask(self) -> Future[None]:
        """A ticket that is done when its holder may enter; who entered has to leave."""
        ticket: Future[None] = Future()
        with self._lock:
            self._waiting.append(ticket)
            self._admit()
        return ticket

    def leave(self) -> None:
        with self._lock:
            self._busy = False
            self._admit()

    def withdraw(self, ticket: Future[None]) -> None:
        """Give back a ticket that nobody waits for any more."""
        if not ticket.cancel():
            self.leave()

    def _admit(self) -> None:
        while self._waiting and not self._busy:
            ticket = self._waiting.popleft()
            if ticket.set_running_or_notify_cancel():
                self._busy = True
                ticket.set_result(None)


_GATES: dict[str, _Gate] = {}
_INSIDE: ContextVar[tuple[str, ...]] = ContextVar("loops that are being run", default=())


class _Loops:
    """The loops of one controller: one at a time, and each ends by parking."""

    def __init__(self, name: str, server: Server) -> None:
        self._name = name
        self._report = functools.partial(_Report, name, server)
        self._gate = _GATES.setdefault(name, _Gate())

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A plain function."""

        @functools.wraps(function)
        def loop(*args: Any, **kwargs: Any) -> Any:
            with self._entered():
                self._gate.ask().result()
                try:
                    outcome = function(*args, **kwargs)
                except Exception:
                    self._park()
                    raise
                else:
                    self._park()
                    return outcome
                finally:
                    self._gate.leave()

        return loop

    def wrap_async(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """An ``async`` function. One that is cancelled does not park: its program ends."""

        @functools.wraps(function)
        async def loop(*args: Any, **kwargs: Any) -> Any:
            with self._entered():
                await self._pass()
                try:
                    outcome = await function(*args, **kwargs)
                except Exception:
                    await self._park_async()
                    raise
                else:
                    await self._park_async()
                    return outcome
                finally:
                    self._gate.leave()

        return loop

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        if self._name in _INSIDE.get():
            raise RuntimeError(
                f"a loop of {self._name} was called inside another: only one can park"
            )
        token = _INSIDE.set((*_INSIDE.get(), self._name))
        try:
            yield
        finally:
            _INSIDE.reset(token)

    async def _pass(self) -> None:
        ticket = self._gate.ask()
        try:
            await asyncio.wrap_future(ticket)
        except asyncio.CancelledError:
            self._gate.withdraw(ticket)
            raise

    def _park(self) -> None:
        try:
            self._report().until_turn()
        except ParkingError as error:
            logger.error("%s", error)

    async def _park_async(self) -> None:
        # A thread of its own: the executor's would keep a cancelled program from ending.
        report, outcome = self._report(), Future[Turn]()
        threading.Thread(
            target=_settle, args=(report, outcome), name=f"parked {self._name}", daemon=True
        ).start()
        try:
            await asyncio.wrap_future(outcome)
        except ParkingError as error:
            logger.error("%s", error)
        except asyncio.CancelledError:
            report.stop()
            raise


def _settle(report: _Report, outcome: Future[Turn]) -> None:
    outcome.set_running_or_notify_cancel()
    try:
        outcome.set_result(report.until_turn())
    except Exception as error:
        outcome.set_exception(error)


def _turn(told: Mapping[str, Any]) -> Turn:
    """Phase and step are left out where no Scenario runs."""
    step = told.get("step", {})
    major, minor = step.get("major", 0), step.get("minor", 0)
    return Turn(told.get("scenario", ""), told.get("phase", ""), major, minor)


def _server(server: str | Server) -> Server:
    return Server(server) if isinstance(server, str) else server


def _connect(address: SplitResult, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    host, port = address.hostname or "", address.port
    if address.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=ASK_S + 10, context=tls)
    return http.client.HTTPConnection(host, port, timeout=ASK_S + 10)


def _refusal(code: int, text: bytes) -> str:
    """What a Status of Kubernetes says, or whatever else was answered."""
    words = http.client.responses.get(code, "")
    try:
        status = json.loads(text)
        return f"{code} {status['reason']}: {status['message']}"
    except (ValueError, KeyError, TypeError):
        return f"{code} {words}: {text[:200].decode(errors='replace').strip()}"


def _now() -> float:
    # Real time, not kubescene.clock: this runs inside a program that is not ours.
    return time.monotonic()  # noqa: TID251
