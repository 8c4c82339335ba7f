"""Where traffic runs are found, and how they are served; what simulates them is loaded when the
first one is asked for."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response
from kubescene.apiserver.table import Route
from kubescene.apiserver.traffic import CONVERT, RUN, RUNS
from kubescene.runs.catalogue import TRAFFIC_FILE

if TYPE_CHECKING:
    from kubescene.apiserver.traffic.runs import TrafficRuns
    from kubescene.autoscalers import AutoscalerPlugin
    from kubescene.traffic.store import RunStore

MOST_REQUESTS = 5_000_000
"""So many simulated requests a run over HTTP may expect, unless the server was told otherwise."""
MOST_AT_ONCE = 2


class TrafficPages:
    """Answers for `RUN` and `RUNS`.

    Runs are kept in ``folder``, or in memory; ``autoscalers`` are those of users, as module:Class,
    ``commands`` those that have processes of their own; ``processes``, if these are running.
    """

    def __init__(
        self,
        folder: Path | None = None,
        autoscalers: Sequence[str] = (),
        *,
        commands: Sequence[str] = (),
        processes: "Sequence[AutoscalerPlugin] | None" = None,
        most_requests: int = MOST_REQUESTS,
        at_once: int = MOST_AT_ONCE,
    ) -> None:
        self.folder = folder
        self.store_file = None if folder is None else folder / TRAFFIC_FILE
        self.autoscalers = tuple(autoscalers)
        self.commands = tuple(commands)
        self.processes = processes
        self.most_requests = most_requests
        self.at_once = at_once
        self._runs: TrafficRuns | None = None
        self._loading = Lock()

    def routes(self) -> Iterator[Route]:
        yield Route("POST", RUN, self._run)
        yield Route("GET", RUNS, self._list)
        yield Route("GET", f"{RUNS}/{{id:int}}", self._show)
        yield Route("GET", f"{RUNS}/{{id:int}}/series", self._series)
        yield Route("POST", f"{RUNS}/{{id:int}}/repeat", self._repeat)
        yield Route("POST", CONVERT, self._convert)

    async def _run(self, request: Request) -> Response | None:
        return await (await self._loaded()).run(request)

    async def _list(self, request: Request) -> Response | None:
        return await (await self._loaded()).list(request)

    async def _show(self, request: Request) -> Response | None:
        return await (await self._loaded()).show(request)

    async def _series(self, request: Request) -> Response | None:
        return await (await self._loaded()).series(request)

    async def _repeat(self, request: Request) -> Response | None:
        return await (await self._loaded()).repeat(request)

    async def _convert(self, request: Request) -> Response | None:
        return await (await self._loaded()).convert(request)

    async def _loaded(self) -> "TrafficRuns":
        """What simulates, ready. Nobody else waits while it is loaded: that is half a second."""
        return await asyncio.to_thread(self.runs) if self._runs is None else self._runs

    def runs(self) -> "TrafficRuns":
        """What simulates, ready; raises `TrafficError` for a store that cannot be used."""
        with self._loading:
            if self._runs is None:
                from kubescene.apiserver.traffic.runs import TrafficRuns

                self._runs = TrafficRuns(
                    self.store_file,
                    self.autoscalers,
                    self.commands,
                    processes=self.processes,
                    most_requests=self.most_requests,
                    at_once=self.at_once,
                )
            return self._runs

    @property
    def store(self) -> "RunStore | None":
        """Where runs are kept, if any was asked for yet."""
        return None if self._runs is None else self._runs.store

    async def catch_up(self) -> None:
        """Returns when all runs that were answered are kept."""
        if self._runs is not None:
            await self._runs.catch_up()

    def load(self) -> None:
        """Load what simulates, and try it: the first run need not wait for that."""
        from kubescene.apiserver.traffic.runs import rehearse

        rehearse()

    def stop(self) -> None:
        """Let open runs end early."""
        if self._runs is not None:
            self._runs.stop()

    def close(self) -> None:
        """Stop what is running; returns when its threads are gone."""
        if self._runs is not None:
            self._runs.close()
