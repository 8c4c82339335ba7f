"""Where requests of programs outside wait for their turn.

The event loop keeps the connection; the engine thread decides (`kubescene.outside.programs`). A
client that hangs up while it waits is forgotten: nothing is carried out for somebody who has gone.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from kubescene.apiserver import bodies
from kubescene.apiserver.engine_thread import SHUTTING_DOWN, EngineStoppedError, EngineThread
from kubescene.apiserver.kubernetes.paths import verb_of
from kubescene.apiserver.requests import MAX_BODY, ClientGoneError, Request, RequestTarget
from kubescene.apiserver.responses import Response, json_response
from kubescene.clock import WallClock
from kubescene.errors import ApiError
from kubescene.outside.programs import GateReply, Held, OutsideProgram
from kubescene.outside.requests import OutsideRequest, Treatment, treatment_of
from kubescene.outside.stage import OutsideStage
from kubescene.outside.times import with_scenario_times
from kubescene.types import JsonValue

ROUNDS = 3
"""Of the event loop: one reads from sockets, one begins to serve what was read."""


class Turnstile:
    """One for each server."""

    def __init__(self, engine: EngineThread, stage: OutsideStage, max_body: int) -> None:
        self._engine = engine
        self._stage = stage
        self._max_body = max_body
        self._clock = WallClock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Future[GateReply | None]] = set()
        self._is_closed = False
        stage.errand = self._after_what_is_in_hand

    def close(self) -> None:
        """On the loop: whoever waits hears that the server is going away."""
        self._is_closed = True
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(EngineStoppedError(SHUTTING_DOWN))

    @property
    def is_set(self) -> bool:
        """Whether a scenario has called anybody who would have to wait."""
        return bool(self._stage.called)

    async def admit(self, request: Request) -> Response | None:
        """Wait for the turn of the program that speaks; an answer, if the gate has one itself.

        Only what is asked of resources waits, and only of those whom a scenario has called.
        """
        program, target = self._stage.called.get(request.actor.name), request.target
        if program is None or target is None:
            return None
        return await self._admit(program, target, request)

    async def _admit(
        self, program: OutsideProgram, target: RequestTarget, request: Request
    ) -> Response | None:
        self._loop = asyncio.get_running_loop()
        program.entered += 1
        request.actor = program.actor
        try:
            asked = asked_of(target, request, await request.body(self._max_body, MAX_BODY))
            treatment = treatment_of(asked)
            if treatment is Treatment.PASS:
                return None
            if treatment is Treatment.DROP:
                # As if it had been stored, whatever the form in which it came.
                return json_response(decoded(asked.body, request), 201)
            waiting = self._held(program, asked, program.arrive, request)
        finally:
            self._engine.post(program.arrived)
        reply = await self._decided(program, *waiting, request)
        if reply is not None:
            return Response(reply.body, reply.code)
        if not asked.reads:
            request.rewrite = self._in_scenario_time
        request.afterwards.append(partial(self._engine.post, program.answered))
        return None

    async def wait(
        self,
        program: OutsideProgram,
        asked: OutsideRequest,
        arrive: Callable[[Held], None],
        request: Request,
        limit_s: float = 0,
    ) -> GateReply | None:
        """Until the engine has decided; raises TimeoutError if that takes longer than it may."""
        self._loop = asyncio.get_running_loop()
        waiting = self._held(program, asked, arrive, request)
        return await self._decided(program, *waiting, request, limit_s)

    def _held(
        self,
        program: OutsideProgram,
        asked: OutsideRequest,
        arrive: Callable[[Held], None],
        request: Request,
    ) -> tuple[Held, "asyncio.Future[GateReply | None]"]:
        """Tell the engine that a request is there."""
        if self._is_closed:
            raise EngineStoppedError(SHUTTING_DOWN)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[GateReply | None] = loop.create_future()
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        held = Held(asked, partial(_settle, loop, future), product_of(request))
        self._engine.post(partial(arrive, held))
        return held, future

    async def _decided(
        self,
        program: OutsideProgram,
        held: Held,
        future: "asyncio.Future[GateReply | None]",
        request: Request,
        limit_s: float = 0,
    ) -> GateReply | None:
        gone = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait(
                (future, gone), return_when=asyncio.FIRST_COMPLETED, timeout=limit_s or None
            )
            if not future.done() and gone.done():
                raise ClientGoneError
            if not future.done() and await self._engine.submit(partial(program.drop, held)):
                raise TimeoutError
            return await future
        except (ClientGoneError, asyncio.CancelledError):
            self._engine.post(partial(forget, program, held))
            raise
        finally:
            gone.cancel()
            future.cancel()  # one that nobody waits for any more is not kept

    def _after_what_is_in_hand(self, back: Callable[[], None]) -> None:
        """On the engine thread: have ``back`` run there after the loop's next few rounds."""
        loop = self._loop
        if loop is None or loop.is_closed():
            back()
        else:
            loop.call_soon_threadsafe(self._later, back, ROUNDS)

    def _later(self, back: Callable[[], None], rounds: int) -> None:
        if rounds:
            asyncio.get_running_loop().call_soon(self._later, back, rounds - 1)
        else:
            self._engine.post(back)

    def _in_scenario_time(self, value: JsonValue) -> JsonValue:
        """What the program says about now is about the scenario's now."""
        now = self._engine.cluster.clock.now()
        return with_scenario_times(value, self._stage.since, self._clock.now(), now)


def forget(program: OutsideProgram, held: Held) -> None:
    """On the engine thread: whoever asked has gone, before or after it was let in."""
    if not program.drop(held) and held.is_let_in:
        program.answered()


def asked_of(target: RequestTarget, request: Request, body: bytes) -> OutsideRequest:
    """The request as the gate sees it."""
    verb = verb_of(request, target)
    resource = target.resource_type.group_resource
    name = target.name or (name_in(body, request) if verb == "create" else "")
    place = (target.subresource, target.namespace, name)
    return OutsideRequest(
        verb, resource, *place, body, request.is_dry_run, lists_anew(verb, request)
    )


def lists_anew(verb: str, request: Request) -> bool:
    """Whether a reader asks for all that exists, instead of going on from where it was."""
    if verb == "watch":
        since = request.query.get("resourceVersion", "")
        return since in ("", "0") or request.flag("sendInitialEvents")
    return verb == "list"


def name_in(body: bytes, request: Request) -> str:
    """The name of an object that is to be created, for the order of several."""
    try:
        value = decoded(body, request)
    except ApiError:
        # Whoever carries it out says what is wrong with it.
        return ""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def decoded(body: bytes, request: Request) -> JsonValue:
    return bodies.decode_body(body, request.header(b"content-type")).value


def product_of(request: Request) -> str:
    return request.header(b"user-agent").partition("/")[0]


def _settle(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[GateReply | None]",
    reply: GateReply | None,
) -> None:
    """On the engine thread: the decision goes back to the loop."""

    def settle() -> None:
        if not future.done():
            future.set_result(reply)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        # The loop is closed: nobody waits any more.
        return
