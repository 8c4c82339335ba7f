"""``/simulator/v1/runs``: the runs of scenarios and traffic that this server keeps.

::

    GET    /simulator/v1/runs                  the newest first (?kind=scenario|traffic, ?limit=)
    GET    /simulator/v1/runs/ID               one, with the names of its files
    GET    /simulator/v1/runs/ID/files/NAME    one of its files
    GET    /simulator/v1/runs/ID/explain       the attempts at one pod (?pod=NAMESPACE/NAME)
    GET    /simulator/v1/runs/ID/scenario      what was played, as a Scenario that can be played
    GET    /simulator/v1/runs/ID/over-time     what was measured and decided over virtual time
    GET    /simulator/v1/runs/ID/report        the page of it
    DELETE /simulator/v1/runs/ID               take it away; 409 while it is under way
    GET    /simulator/v1/compare               what differs between two of scenarios (?a=ID&b=ID)
    GET    /simulator/v1/sweeps                matrices and searches that ``kubescene ui`` was given
    GET    /simulator/v1/sweeps/ID             one of them, with its table

With ``--data-dir`` they are those of its catalogue, also of earlier servers; without it, the newest
that are in memory. Those that ``kubescene ui`` was given are there as well, and stay.

A page that a run brings with it may be anybody's: it is shown in a sandbox, where its scripts reach
nothing of this server.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import msgspec

from kubescene.api.kinds import SCENARIO
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.simulator.worlds import PREFIX
from kubescene.apiserver.table import Route
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.errors import (
    BadRequestError,
    ConfigurationError,
    ConflictError,
    InternalError,
    NotFoundError,
    TrafficError,
)
from kubescene.live import LiveRun, LiveScenarios
from kubescene.live.finished import entry_of, files_of, found_among
from kubescene.results.opening import open_run
from kubescene.results.sources import LogSource, RunSource, sound_spec
from kubescene.runs.catalogue import RUNNING, RunEntry, RunKind, Runs
from kubescene.runs.opened import OpenedRuns

PLACE = f"{PREFIX}runs"
COMPARE = f"{PREFIX}compare"
SWEEPS = f"{PREFIX}sweeps"
MOST_LISTED = 1000
TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".yaml": "application/yaml",
    ".html": "text/html; charset=utf-8",
}
OTHER = "application/octet-stream"
SANDBOX = (
    (b"content-security-policy", b"sandbox allow-scripts; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
T = TypeVar("T")


class RunPages:
    """Answers for what is below `PLACE`. Nothing of it is done on the event loop."""

    def __init__(
        self,
        engine: EngineThread,
        scenarios: LiveScenarios,
        traffic: TrafficPages,
        opened: OpenedRuns,
    ) -> None:
        self._engine = engine
        self._scenarios = scenarios
        self._traffic = traffic
        self._opened = opened

    def routes(self) -> Iterator[Route]:
        yield Route("GET", PLACE, self._list, engine=True)
        yield Route("GET", f"{PLACE}/{{id}}", self._show, engine=True)
        yield Route("GET", f"{PLACE}/{{id}}/files/{{file}}", self._file, engine=True)
        yield Route("GET", f"{PLACE}/{{id}}/explain", self._explain, engine=True)
        for name, made in {
            "scenario": scenario_told,
            "over-time": over_time_told,
            "report": report_made,
        }.items():
            answer = partial(self._told, made)
            yield Route("GET", f"{PLACE}/{{id}}/{name}", answer, engine=True, guarded=True)
        yield Route("DELETE", f"{PLACE}/{{id}}", self._delete, engine=True)
        yield Route("GET", COMPARE, self._compare, engine=True, guarded=True)
        yield Route("GET", SWEEPS, self._list_sweeps)
        yield Route("GET", f"{SWEEPS}/{{id}}", self._show_sweep)

    async def _list(self, request: Request) -> Response:
        kind, limit = request.query.get("kind", ""), request.number("limit") or MOST_LISTED
        if kind not in ("", *RunKind):
            raise BadRequestError(f"kind must be {' or '.join(RunKind)}, not {kind!r}")
        if not 1 <= limit <= MOST_LISTED:
            raise BadRequestError(f"limit must be from 1 to {MOST_LISTED}, not {limit}")
        asked = RunKind(kind) if kind else None
        live = await self._live()
        found = await self._aside(self._listed, live, asked)
        return json_response({"runs": msgspec.to_builtins(found[:limit])})

    async def _show(self, request: Request) -> Response:
        id, live = request.params["id"], await self._live()
        entry, files = await self._aside(self._described, live, id)
        listed = [{"name": name, "bytes": size} for name, size in files.items()]
        return json_response({**msgspec.to_builtins(entry), "files": listed})

    async def _file(self, request: Request) -> Response:
        id, name, live = request.params["id"], request.params["file"], await self._live()
        data = await self._aside(self._read, live, id, name)
        ending = name[name.rfind(".") :]
        return Response(data, 200, TYPES.get(ending, OTHER), SANDBOX)

    async def _told(self, made: Callable[[RunSource], Response], request: Request) -> Response:
        """What is made of a run by whoever reads it."""
        id, live = request.params["id"], await self._live()
        return await self._aside(lambda: made(self._source(live, id)))

    async def _explain(self, request: Request) -> Response:
        pod = request.query.get("pod", "")
        if not pod:
            raise BadRequestError("name a pod: ?pod=NAMESPACE/NAME")
        id, live = request.params["id"], await self._live()
        return Response(await self._aside(self._explained, live, id, pod))

    async def _compare(self, request: Request) -> Response:
        a, b = request.query.get("a", ""), request.query.get("b", "")
        if not (a and b):
            raise BadRequestError(f"name two runs: ?a=ID&b=ID; GET {PLACE} lists them")
        return Response(await self._aside(self._compared, await self._live(), a, b))

    async def _list_sweeps(self, request: Request) -> Response:
        del request
        return json_response({"sweeps": self._opened.sweeps()})

    async def _show_sweep(self, request: Request) -> Response:
        found = await self._aside(self._opened.sweep, request.params["id"])
        return json_response(found)

    async def _delete(self, request: Request) -> Response:
        id, live = request.params["id"], await self._live()
        await self._aside(self._deleted, live, id)
        await self._engine.submit(lambda: self._scenarios.finished.drop(id))
        return json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    # -- in a thread -----------------------------------------------------------------------------

    def _listed(self, live: list[LiveRun], kind: RunKind | None) -> list[RunEntry]:
        runs, opened = self._kept(), [] if kind is RunKind.TRAFFIC else self._opened.list()
        if self._scenarios.finished.catalogue is not None:
            return opened + runs.list(kind)
        found = [] if kind is RunKind.SCENARIO else runs.list(RunKind.TRAFFIC)
        found += [] if kind is RunKind.TRAFFIC else map(entry_of, live)
        found.sort(key=lambda each: (each.created, each.kind, each.number), reverse=True)
        return opened + found

    def _described(self, live: list[LiveRun], id: str) -> tuple[RunEntry, dict[str, int]]:
        runs = self._files_of(id)
        if runs is not None:
            return runs.get(id), runs.files(id)
        run = found_among(live, id)
        return entry_of(run), {name: len(make()) for name, make in files_of(run)}

    def _read(self, live: list[LiveRun], id: str, name: str) -> bytes:
        runs = self._files_of(id)
        if runs is not None:
            return runs.read(id, name)
        made = dict(files_of(found_among(live, id)))
        if name not in made:
            raise NotFoundError(f"run {id} has no file {name!r}", name=name, kind="files")
        return made[name]()

    def _explained(self, live: list[LiveRun], id: str, pod: str) -> bytes:
        attempts = self._source(live, id).explain(pod)
        return msgspec.json.encode({"attempts": attempts, "times": []})

    def _compared(self, live: list[LiveRun], a: str, b: str) -> bytes:
        # No request for anything else should wait until all of this is loaded.
        from kubescene.results.comparison import compare

        return compare(self._source(live, a), self._source(live, b), names=(a, b)).json()

    def _source(self, live: list[LiveRun], id: str) -> RunSource:
        """What happened in the run of a scenario, wherever that is kept."""
        if id.startswith(f"{RunKind.TRAFFIC}-"):
            raise BadRequestError(f"run {id} is of traffic: it has no pods and no steps")
        runs = self._files_of(id)
        if runs is not None:
            return open_run(runs.path(id))
        run = found_among(live, id)
        return LogSource(run.log, run.sink.explanations, run.result())

    def _deleted(self, live: list[LiveRun], id: str) -> None:
        if id in self._opened:
            raise ConflictError(f"run {id} is only looked at: remove {self._opened.path(id)}")
        if self._is_kept(id):
            self._kept().delete(id)
        elif entry_of(found_among(live, id)).phase == RUNNING:
            raise ConflictError(f"run {id} is under way: delete its Scenario, or wait")

    def _files_of(self, id: str) -> Runs | OpenedRuns | None:
        """Where the files of a run are; None if it is in this server's memory."""
        if id in self._opened:
            return self._opened
        return self._kept() if self._is_kept(id) else None

    def _is_kept(self, id: str) -> bool:
        """Whether the catalogue has it, and not only this server's memory."""
        has_catalogue = self._scenarios.finished.catalogue is not None
        return has_catalogue or not id.startswith(f"{RunKind.SCENARIO}-")

    def _kept(self) -> Runs:
        catalogue = self._scenarios.finished.catalogue
        folder = "the memory of this server" if catalogue is None else catalogue.folder
        return Runs(folder, traffic=self._traffic.store)

    # -- on the event loop -----------------------------------------------------------------------

    async def _live(self) -> list[LiveRun]:
        def asked() -> list[LiveRun]:
            current = self._scenarios.current
            return [*self._scenarios.finished.at_hand(), *([] if current is None else [current])]

        await self._traffic.catch_up()
        return await self._engine.submit(asked)

    async def _aside(self, work: Callable[..., T], *arguments: object) -> T:
        try:
            return await asyncio.to_thread(work, *arguments)
        except TrafficError as error:
            raise InternalError(str(error)) from error
        except ConfigurationError as error:
            raise ConflictError(str(error)) from error


# -- what is made of a run, by whoever reads it ----------------------------------------------------


def scenario_told(source: RunSource) -> Response:
    """What was played, without what became of it; 409 if that is not known."""
    spec = sound_spec(source)
    if spec is None:
        raise ConflictError(f"{source.place} does not say what was played")
    return json_response(
        {
            "apiVersion": SCENARIO.api_version,
            "kind": SCENARIO.kind,
            "metadata": {"name": source.scenario},
            "spec": spec,
        }
    )


def over_time_told(source: RunSource) -> Response:
    # No request for anything else should wait until what makes reports is loaded.
    from kubescene.reports.html.over_time import over_time_of

    return Response(msgspec.json.encode(over_time_of(source)))


def report_made(source: RunSource) -> Response:
    from kubescene.reports.html import report_html

    return Response(report_html(source).encode(), 200, TYPES[".html"], SANDBOX)
