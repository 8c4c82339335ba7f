"""Traffic runs over HTTP: Skenario's ``POST /run``, and the history of what was run.

::

    POST /run               simulate; answers with Skenario's series, Location names the run;
                            with ?dryRun=All nothing is kept, and there is no Location;
                            with ?view=charts it answers with the charts of the run's page
    GET  /runs              the newest runs first (?limit=, ?before=ID)
    GET  /runs/ID           one: its whole configuration, how it ended, its measures
    GET  /runs/ID/series    what POST /run answered, or would have with ?view=charts
    POST /runs/ID/repeat    the same again; the same bytes
    POST /simulator/v1/convert    a TrafficRun as a Scenario, as ``kubescene convert`` makes it:
                            {"scenario": ..., "leftOut": [...]}

Runs have threads of their own, a bounded number: neither the event loop nor the engine waits for
them. A client that leaves ends its run. Requests cannot name code: autoscalers are the built-in
ones, those of installed packages, and those that the server was started with.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from kubescene.api.text.reading import ReadingError, read_json
from kubescene.apiserver.bodies import JSON_TYPES, aside, media_type, read_command, unsupported
from kubescene.apiserver.requests import ClientGoneError, Request, Send
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.traffic import RUNS
from kubescene.apiserver.traffic.autoscalers import OfferedAutoscalers
from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.autoscalers.interfaces import AutoscalerPlugin
from kubescene.errors import (
    BadRequestError,
    ConflictError,
    InternalError,
    KubesceneError,
    RunStoreError,
    StatusCause,
    TooManyRequestsError,
    TrafficError,
)
from kubescene.flows.arrivals import Arrivals
from kubescene.traffic import TrafficResult, TrafficRun
from kubescene.traffic.results import Phase
from kubescene.traffic.runs import builtin_autoscalers, simulated
from kubescene.traffic.skenario.replies import Piece, reply
from kubescene.traffic.skenario.requests import (
    SkenarioRequest,
    in_the_request,
    read_request,
    run_requested,
)
from kubescene.traffic.spec.fields import Mode, TrafficSpec
from kubescene.traffic.spec.files import arrivals_of
from kubescene.traffic.spec.loading import run_of, to_object
from kubescene.traffic.store import RunStore

_log = logging.getLogger(__name__)
T = TypeVar("T")
Tell: TypeAlias = Callable[[TrafficResult], Iterator[Piece]]
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
MAX_REQUEST = 1024 * 1024
MOST_LISTED = 500
RETRY_AFTER_S = 2
SHORT_S = 0.1
"""A run that takes no longer is not worth watching its client."""
SHORT_REQUESTS = 10_000
"""A run of no more is kept, in memory, while its answer is on its way."""
SHORT_MOVEMENTS = 20_000
"""A run of more that was stopped is kept by its name alone."""
PIECE = 1 << 20
"""Pieces of a reply are joined until they are as long as this."""


class TrafficRuns:
    """Answers for ``/run`` and ``/runs``. Everything but the simulating is on the event loop."""

    def __init__(
        self,
        store_file: Path | None,
        autoscalers: Sequence[str],
        commands: Sequence[str],
        *,
        processes: Sequence[AutoscalerPlugin] | None = None,
        most_requests: int,
        at_once: int,
    ) -> None:
        self.store = RunStore(store_file)
        try:
            self._offered = OfferedAutoscalers(autoscalers, commands, processes)
        except BaseException:
            self.store.close()
            raise
        self._most_requests = most_requests
        self._at_once = at_once
        self._threads = ThreadPoolExecutor(self._at_once, thread_name_prefix="kubescene-traffic")
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="kubescene-runs")
        self._open: set[Job] = set()
        self._closed = False

    def stop(self) -> None:
        """Let open runs end early, and begin no more."""
        self._closed = True
        for job in list(self._open):
            job.cancelled.set()

    def close(self) -> None:
        """Stop; returns when the threads are gone."""
        self.stop()
        self._threads.shutdown()
        self._readers.shutdown()
        self._offered.close()
        self.store.close()

    # -- the history -----------------------------------------------------------------------------

    async def list(self, request: Request) -> Response:
        limit, before = request.number("limit"), request.number("before")
        if limit is not None and not 1 <= limit <= MOST_LISTED:
            raise BadRequestError(f"limit must be from 1 to {MOST_LISTED}, not {limit}")
        if before is not None and not 0 <= before < 1 << 62:
            raise BadRequestError("before must be the id of a run")
        limit = limit or 100
        found = await self._reading(self.store.runs, limit, before)
        shown = {"runs": found, "before": found[-1].id if len(found) == limit else None}
        return Response(msgspec.json.encode(shown) + b"\n")

    async def show(self, request: Request) -> Response:
        id = int(request.params["id"])
        found = await self._reading(self.store.get, id)
        configuration = await self._reading(self.store.configuration, id)
        shown = msgspec.to_builtins(found)
        return json_response({**shown, "run": to_object(configuration)})

    async def catch_up(self) -> None:
        """Short runs are written down in a row, after they were answered."""
        await asyncio.get_running_loop().run_in_executor(self._readers, lambda: None)

    async def _reading(self, read: Callable[..., T], *arguments: object) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._readers, read, *arguments)
        except TrafficError as error:
            raise InternalError(str(error)) from error

    async def series(self, request: Request) -> Response | None:
        id = int(request.params["id"])
        configuration = await self._reading(self.store.configuration, id)
        if configuration.spec.mode is Mode.FAITHFUL:
            raise ConflictError(
                f"run {id} is of faithful mode, of which the movements of requests are not kept: "
                f"POST {RUNS}/{id}/repeat answers with its series"
            )
        job = Job(configuration, repeats=id, told=told_as(request))
        return await self._work(job, self._told, request)

    # -- running ---------------------------------------------------------------------------------

    async def run(self, request: Request) -> Response | None:
        if media_type(request.header(b"content-type")) not in JSON_TYPES:
            raise unsupported(*JSON_TYPES[1:])
        asked = await aside(read_body, await request.body(MAX_REQUEST))
        job = Job(traffic_run(asked), asked, told=told_as(request))
        work = self._tried if request.is_dry_run else self._simulated
        return await self._work(job, work, request)

    async def repeat(self, request: Request) -> Response | None:
        id = int(request.params["id"])
        await request.body(MAX_REQUEST)
        before = await self._reading(self.store.get, id)
        if missing := self._offered.missing(before.autoscalers):
            raise ConflictError(
                f"run {id} used {', '.join(missing)}, which this server was not started with"
            )
        configuration = await self._reading(self.store.configuration, id)
        return await self._work(Job(configuration, repeats=id), self._simulated, request)

    async def convert(self, request: Request) -> Response:
        body = await read_command(request, MAX_REQUEST)
        try:
            return await asyncio.to_thread(scenario_told, body.value)
        except TrafficError as error:
            raise refused(error) from error

    async def _work(
        self, job: "Job", work: Callable[["Job"], "RunReply"], request: Request
    ) -> Response | None:
        if self._closed or len(self._open) >= self._at_once:
            raise TooManyRequestsError(
                f"{len(self._open)} runs are being simulated, as many as this server does at once",
                retry_after_s=RETRY_AFTER_S,
            )
        self._open.add(job)
        request.afterwards.append(partial(self._answered, job))
        client = WaitingClient(request)
        try:
            id, first, rest = await self._unless_gone(job, client, work, job)
            location = ((b"location", f"{RUNS}/{id}".encode()),) if id else ()
            if rest is None:
                return Response(first, headers=location)
            await self._stream(job, location, (first, rest), request.send, client)
            return None
        finally:
            client.forget()
            self._open.discard(job)

    async def _stream(
        self,
        job: "Job",
        headers: Headers,
        pieces: tuple[bytes, Iterator[Piece]],
        send: Send,
        client: "WaitingClient",
    ) -> None:
        """A long reply, piece by piece, as fast as the client reads."""
        piece, rest = pieces
        client.watch()
        kind = (b"content-type", b"application/json")
        await send({"type": "http.response.start", "status": 200, "headers": [kind, *headers]})
        while piece:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            piece = await self._unless_gone(job, client, joined, rest)
        await send({"type": "http.response.body", "body": b""})

    async def _unless_gone(
        self,
        job: "Job",
        client: "WaitingClient",
        work: Callable[..., T],
        *arguments: object,
    ) -> T:
        """What a thread makes of it. If the client leaves, the run ends before we do."""
        doing = asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        if not client.is_watched:
            await asyncio.wait((doing,), timeout=SHORT_S)
        if not doing.done():
            await asyncio.wait((doing, client.watch()), return_when=asyncio.FIRST_COMPLETED)
        try:
            if not doing.done():
                job.cancelled.set()
                with suppress(KubesceneError):
                    await doing
                raise ClientGoneError
            return doing.result()
        finally:
            del doing  # an error knows where it was raised, and so whoever holds it

    def _simulated(self, job: "Job") -> "RunReply":
        """In a thread: simulate, keep and answer."""
        try:
            arrivals = self._arrivals(job.run)
            used = self._offered.used_by(job.run)
            id = self.store.begin(job.run, used, repeats=job.repeats)
            result = self._played(job, id, arrivals)
            self._keep(job, id, result)
        except RunStoreError as error:
            raise InternalError(str(error)) from error
        except TrafficError as error:
            raise refused(error, job.asked) from error
        if not result.ok:
            raise InternalError(f"run {id} {result.phase.lower()}: {result.message}", name=str(id))
        return replied(id, result, job.told)

    def _tried(self, job: "Job") -> "RunReply":
        """In a thread: simulate and answer; there is no such run afterwards."""
        try:
            arrivals = self._arrivals(job.run)
            with self._offered.of(job.run) as offer:
                result = simulated(job.run, arrivals, *offer, cancelled=job.cancelled.is_set)
        except TrafficError as error:
            raise refused(error, job.asked) from error
        if not result.ok:
            raise InternalError(f"the run {result.phase.lower()}: {result.message}")
        return replied(0, result, job.told)

    def _keep(self, job: "Job", id: int, result: TrafficResult) -> None:
        """In memory nothing can be lost: a short run waits until its answer is on its way.

        Nobody waits for a run that was stopped, but the end of the server does.
        """
        if result.phase is Phase.CANCELLED and len(result.movements) > SHORT_MOVEMENTS:
            self.store.stop(id, result.message)
            return
        if self.store.path is not None or not result.ok or result.requests.count > SHORT_REQUESTS:
            self.store.end(id, result)
            return
        job.unwritten.append((id, result))
        if job.answered:
            self._end(job)

    def _answered(self, job: "Job") -> None:
        """The answer is out, or nobody waits for it. Whoever reads from now on waits in the row."""
        job.answered = True
        if job.unwritten:
            self._readers.submit(self._end, job)

    def _end(self, job: "Job") -> None:
        """Write down what is left to be: here, or in the thread that simulated it, but once."""
        with suppress(IndexError):
            id, result = job.unwritten.pop()
            try:
                self.store.end(id, result)
            except RunStoreError as error:
                _log.error("run %d was answered and cannot be kept: %s", id, error)
                self.store.fail(id, f"it was answered and cannot be kept: {error}")

    def _told(self, job: "Job") -> "RunReply":
        """In a thread: the answer of a run that was kept."""
        assert job.repeats is not None
        try:
            return replied(job.repeats, self.store.result(job.repeats), job.told)
        except RunStoreError as error:
            raise InternalError(str(error)) from error
        except TrafficError as error:
            raise ConflictError(str(error)) from error

    def _played(self, job: "Job", id: int, arrivals: Arrivals) -> TrafficResult:
        try:
            with self._offered.of(job.run) as offer:
                return simulated(job.run, arrivals, *offer, cancelled=job.cancelled.is_set)
        except Exception as error:
            # Whatever it was, the history says so, and so does the answer.
            self.store.fail(id, str(error) or repr(error))
            raise

    def _arrivals(self, asked: TrafficRun) -> Arrivals:
        arrivals = arrivals_of(asked.spec)
        if arrivals.expected > self._most_requests:
            raise TrafficError(
                f"about {arrivals.expected} requests are more than the {self._most_requests} that "
                "this server simulates in one run",
                path="spec.traffic",
            )
        return arrivals


class RunReply(NamedTuple):
    """The beginning of an answer, and its rest if it is long."""

    id: int
    first: bytes
    rest: Iterator[Piece] | None


class Job:
    """One run that somebody waits for."""

    def __init__(
        self,
        run: TrafficRun,
        asked: SkenarioRequest | None = None,
        repeats: int | None = None,
        told: Tell = reply,
    ) -> None:
        self.run = run
        self.asked = asked
        self.repeats = repeats
        self.told = told
        self.cancelled = Event()
        self.answered = False
        self.unwritten: list[tuple[int, TrafficResult]] = []
        """What is written down once it is answered: a single one, or nothing."""


def read_body(body: bytes) -> SkenarioRequest:
    try:
        document = read_json(body)
    except ReadingError as error:
        raise BadRequestError(f"the body is not valid JSON: {error}") from None
    if document.duplicates:
        raise BadRequestError(f"{document.duplicates[0].key}: is given twice")
    try:
        return read_request(document.value)
    except TrafficError as error:
        raise refused(error) from error


def scenario_told(document: object) -> Response:
    """The same requests to real Pods, and what is left out of them."""
    from kubescene.traffic.as_scenario import left_out, scenario_of

    if not isinstance(document, dict):
        raise TrafficError("a TrafficRun must be an object")
    scenario = scenario_of(run_of(document), document)
    return json_response({"scenario": scenario, "leftOut": [*left_out(document)]})


def traffic_run(asked: SkenarioRequest) -> TrafficRun:
    try:
        return run_requested(asked)
    except TrafficError as error:
        raise refused(error) from error


def refused(error: TrafficError, asked: SkenarioRequest | None = None) -> BadRequestError:
    """400, with the field as the client wrote it."""
    told = error if asked is None else in_the_request(error, asked)
    causes = [StatusCause("FieldValueInvalid", told.message, told.path)] if told.path else []
    return BadRequestError(str(told), causes=causes)


def told_as(request: Request) -> Tell:
    """The form of an answer: Skenario's series, or with ``?view=charts`` what pages draw."""
    view = request.query.get("view", "")
    if view not in ("", "charts"):
        raise BadRequestError(f"view must be charts, or not given, not {view!r}")
    return charts_told if view else reply


def charts_told(result: TrafficResult) -> Iterator[Piece]:
    # Whoever asks as Skenario's page does needs no reports.
    from kubescene.reports.html.traffic.over_time import traffic_over_time

    yield msgspec.json.encode(traffic_over_time(result))


def replied(id: int, result: TrafficResult, told: Tell) -> "RunReply":
    pieces = told(result)
    first = joined(pieces)
    return RunReply(id, first, pieces if len(first) >= PIECE else None)


def joined(pieces: Iterator[Piece]) -> bytes:
    """The next pieces as one that is worth sending; nothing at the end."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= PIECE:
            break
    return b"".join(found)


# Runs have threads of their own. Two that load the same packages at once may find them half loaded,
# so all is loaded with this module, by whoever needs it first.
builtin_autoscalers(TrafficSpec())
import_module("kubescene.traffic.faithful")


def rehearse() -> None:
    """The form's run, for nobody: what the first one loads is loaded then, and nothing is kept."""
    run = run_requested(SkenarioRequest())
    own = Dispatcher(builtin_autoscalers(run.spec))
    replied(0, simulated(run, arrivals_of(run.spec), own), reply)


class WaitingClient:
    """Whoever waits for a run. It is watched only where that takes more than `SHORT_S`."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._gone: asyncio.Future[None] | None = None

    @property
    def is_watched(self) -> bool:
        return self._gone is not None

    def watch(self) -> "asyncio.Future[None]":
        """Done when the client has closed its connection."""
        if self._gone is None:
            self._gone = asyncio.ensure_future(self._leaving())
        return self._gone

    def forget(self) -> None:
        if self._gone is not None:
            self._gone.cancel()
            self._gone = None  # its error knows where it was raised, and so this

    async def _leaving(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
