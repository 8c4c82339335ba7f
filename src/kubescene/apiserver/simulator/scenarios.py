"""``/simulator/v1/scenarios/NAME/...``: what the server keeps of a scenario beside its status.

::

    progress       phase, step, and what was counted up to a step (?step=2)
    summary        what a run of its own writes to summary.json
    result         the Scenario with its status, without its timeline
    timeline       timeline.jsonl; its facts from a position on (?since=N), also as they come
                   (&follow=true; see `timelines`)
    explanations   explanations.jsonl
    explain        the attempts at one pod, with what was explained of each (?pod=NAMESPACE/NAME)
    hold           POST: stand still between two moments
    release        POST: go on
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import msgspec

from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.simulator.timelines import TimelineStreams
from kubescene.apiserver.simulator.worlds import PREFIX
from kubescene.apiserver.table import Route
from kubescene.errors import BadRequestError, NotFoundError
from kubescene.live import LiveRun, LiveScenarios
from kubescene.results.explaining import ExplainedAttempt, attempts_of, qualified
from kubescene.results.output import summary_file

PLACE = f"{PREFIX}scenarios"
LINES = "application/jsonl"
INDEXED_AT_ONCE = 10_000
"""Facts of a log: some ten milliseconds."""

T = TypeVar("T")


class ScenarioPages:
    """Answers for what is below `PLACE`; the logs of scenarios belong to the engine thread."""

    def __init__(
        self, engine: EngineThread, scenarios: LiveScenarios, timelines: TimelineStreams
    ) -> None:
        self._engine = engine
        self._timelines = timelines
        self._scenarios = scenarios

    def routes(self) -> Iterator[Route]:
        for page, handler in {
            "progress": self._progress,
            "summary": self._summary,
            "result": self._result,
            "timeline": self._timeline,
            "explanations": self._explanations,
            "explain": self._explain,
        }.items():
            yield Route("GET", f"{PLACE}/{{name}}/{page}", handler, engine=True)
        for verb, is_held in (("hold", True), ("release", False)):
            pattern = f"{PLACE}/{{name}}/{verb}"
            yield Route("POST", pattern, partial(self._hold, is_held), engine=True)

    async def _progress(self, request: Request) -> Response:
        step = request.number("step")
        held = self._scenarios.is_held

        def asked(run: LiveRun) -> dict[str, object]:
            return {"run": run.id, "held": held(run), **progress_of(run, step)}

        return json_response(await self._of(request, asked))

    async def _hold(self, is_held: bool, request: Request) -> Response:
        name = request.params["name"]
        await self._engine.submit(lambda: self._scenarios.hold(name, is_held=is_held))
        return json_response({"held": is_held})

    async def _summary(self, request: Request) -> Response:
        summary = await self._of(request, LiveRun.summary)
        # Of a large world, making the text is too long a work for the event loop.
        return Response(await asyncio.to_thread(summary_file, summary))

    async def _result(self, request: Request) -> Response:
        return json_response(await self._of(request, LiveRun.result))

    async def _timeline(self, request: Request) -> Response | None:
        run = await self._of(request, lambda run: run)
        if "since" in request.query or request.flag("follow"):
            await self._timelines.serve(request, run.log)
            return None
        return Response(await asyncio.to_thread(run.timeline_file), 200, LINES)

    async def _explanations(self, request: Request) -> Response:
        run = await self._of(request, lambda run: run)
        return Response(await asyncio.to_thread(run.explanations_file), 200, LINES)

    async def _explain(self, request: Request) -> Response:
        pod = request.query.get("pod", "")
        if not pod:
            raise BadRequestError("name a pod: ?pod=NAMESPACE/NAME")
        while await self._of(request, lambda run: run.log.index_names(INDEXED_AT_ONCE)):
            pass  # of a long run it takes a while: others have their turn in between
        attempts, known = await self._of(request, lambda run: explained(run, pod))
        return Response(msgspec.json.encode({"attempts": attempts, "known": known}))

    async def _of(self, request: Request, ask: Callable[[LiveRun], T]) -> T:
        """What the run of a scenario answers; 404 if it was never played here."""
        name = request.params["name"]

        def command() -> T:
            run = self._scenarios.run_named(name)
            if run is None:
                raise NotFoundError(
                    f'scenario "{name}" has not been played by this server', name=name
                )
            return ask(run)

        return await self._engine.submit(command)


def explained(run: LiveRun, pod: str) -> tuple[list[ExplainedAttempt], bool]:
    """The attempts at a pod, and whether the run has heard of it."""
    facts = run.log.of_object("Pod", *qualified(pod).split("/", 1))
    return attempts_of(run.log, run.sink.explanations, pod), any(True for _ in facts)


def progress_of(run: LiveRun, step: int | None) -> dict[str, object]:
    """Where a run stands."""
    scenario = run.scenario
    return {
        "phase": str(scenario.phase),
        "message": scenario.message,
        "step": scenario.step.to_dict(),
        "badInput": run.engine.bad_input,
        "failedAt": list(run.engine.failed_at),
        **run.counts(step),
    }
