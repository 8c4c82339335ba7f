"""``POST /simulator/v1/park``: a program says that its loop is over, and waits for its next turn.

::

    {"name": "my-operator"}                    at the end of a loop
    {"name": "my-scheduler", "pod": "NS/POD"}  before a pod is scheduled

The answer comes when it is its turn, when no scenario runs, or when ``timeoutSeconds`` are over:
``{"go": true, "scenario": "NAME", "phase": ..., "step": {...}}``. With ``go: false``, ask again.
"""

from collections.abc import Iterator
from functools import partial

from kubescene.api.scheme import GroupResource
from kubescene.apiserver import bodies
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.writes import as_object
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.simulator.worlds import PREFIX
from kubescene.apiserver.table import Route
from kubescene.apiserver.turnstile import Turnstile
from kubescene.errors import BadRequestError
from kubescene.live import LiveScenarios
from kubescene.outside.requests import OutsideRequest
from kubescene.outside.stage import OutsideStage
from kubescene.types import JsonObject

MAX_BODY = 64 * 1024
DEFAULT_WAIT_S, LONGEST_WAIT_S = 50, 240
FIELDS = ("name", "pod")


class ParkingPage:
    """Answers those who park."""

    def __init__(
        self,
        engine: EngineThread,
        scenarios: LiveScenarios,
        stage: OutsideStage,
        turnstile: Turnstile,
    ) -> None:
        self._engine = engine
        self._scenarios = scenarios
        self._stage = stage
        self._turnstile = turnstile

    def routes(self) -> Iterator[Route]:
        yield Route("POST", f"{PREFIX}park", self.post, engine=True)

    async def post(self, request: Request) -> Response:
        body = await bodies.read_command(request, MAX_BODY)
        command = as_object(body.value)
        name, limit_s = name_of(command), wait_of(request)
        asked = OutsideRequest(
            "park", GroupResource("", "park"), name=str(command.get("pod") or "")
        )
        program = await self._engine.submit(partial(self._stage.program, name))
        try:
            arrive = partial(self._stage.park, program)
            await self._turnstile.wait(program, asked, arrive, request, limit_s)
        except TimeoutError:
            return json_response(await self._engine.submit(lambda: self._answer(go=False)))
        finally:
            self._engine.post(partial(self._stage.forget, program))
        request.afterwards.append(partial(self._engine.post, program.answered))
        return json_response(await self._engine.submit(lambda: self._answer(go=True)))

    def _answer(self, *, go: bool) -> JsonObject:
        run = self._scenarios.current
        answer: JsonObject = {"go": go, "scenario": "", "message": ""}
        if run is None:
            return answer
        scenario = run.scenario
        answer["scenario"] = scenario.name
        answer["phase"] = str(scenario.step_phase or "")
        answer["step"] = scenario.step.to_dict()
        return answer


def name_of(command: JsonObject) -> str:
    unknown = sorted(field for field in command if field not in FIELDS)
    name = command.get("name")
    if unknown or not isinstance(name, str) or not name:
        raise BadRequestError('the body must be {"name": "CONTROLLER"}, with "pod" for a scheduler')
    return name


def wait_of(request: Request) -> int:
    given = request.number("timeoutSeconds")
    if given is not None and not 1 <= given <= LONGEST_WAIT_S:
        raise BadRequestError(f"timeoutSeconds must be 1 to {LONGEST_WAIT_S}, not {given}")
    return DEFAULT_WAIT_S if given is None else given
