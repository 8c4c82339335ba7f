"""Scenarios in which programs outside take part: played by a server, with supervised programs."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubescene.actors import Actor
from kubescene.api.kinds import SCENARIO
from kubescene.apiserver.server import Server
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.outside.supervision import Supervisor
from kubescene.scenario.outside import OutsideController, OutsideKind
from kubescene.timeline.facts import Fact
from kubescene.types import JsonObject

PROGRAMS = Path(__file__).parent / "outside" / "programs"
FAN_OUT = f"{sys.executable} {PROGRAMS / 'fan_out.py'} {{server}}"
ENDS = ("Succeeded", "Failed", "Paused")


def scenario(
    operations: Sequence[JsonObject],
    *outside: JsonObject,
    simulated: Sequence[str] = ("kube-scheduler",),
    name: str = "outside",
    **spec: Any,
) -> JsonObject:
    """A Scenario with these controllers outside."""
    enabled = [{"name": each} for each in simulated]
    controllers = {"simulationControllers": {"enabled": enabled}, "outside": list(outside)}
    return {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": name},
        "spec": {"controllers": controllers, "operations": list(operations), **spec},
    }


def create(step: int, obj: JsonObject, **more: Any) -> JsonObject:
    return {"step": step, "createOperation": {"object": obj, **more}}


def done(step: int) -> JsonObject:
    return {"step": step, "doneOperation": {}}


def config_map(name: str, fan_out: int | None = None) -> JsonObject:
    labels = {} if fan_out is None else {"labels": {"fan-out": str(fan_out)}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **labels}}


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a scenario."""

    phase: str
    message: str
    status: JsonObject
    facts: Sequence[Fact]

    def told_by(self, actor: str) -> list[tuple[str, str, str]]:
        """Step, kind of fact and name of what one actor did."""
        return [
            (str(fact.step), type(fact).__name__, getattr(fact, "name", ""))
            for fact in self.facts
            if fact.actor == actor
        ]


class Stage:
    """A server with programs that it has started."""

    def __init__(self, server: Server, supervisor: Supervisor) -> None:
        self.server = server
        self._supervisor = supervisor

    def start(self, name: str, command: str, kind: str = "operator", **declared: Any) -> None:
        self._supervisor.start(OutsideController(name, OutsideKind(kind), **declared), command)

    def client(self, name: str = "tester") -> HttpClient:
        return HttpClient(f"{self.server.url}/as/{name}", Actor(name))

    def play(self, document: JsonObject) -> Played:
        """Create the Scenario and wait for its end."""
        ref = ObjectRef(SCENARIO, document["metadata"]["name"])
        with closing(self.client()) as client:
            client.create(document)
            for row in client.follow_row(ref):
                if row is not None and row.cells.get("Phase") in ENDS:
                    break
                if row is None:
                    # Somebody may have deleted it.
                    client.get(ref)
            status = client.get(ref)["status"]
        log = self.server.engine.call(lambda: self._log(ref.name))
        return Played(status["phase"], status.get("message", ""), status, log)

    def _log(self, name: str) -> Sequence[Fact]:
        run = self.server.scenarios.run_named(name)
        assert run is not None
        return list(run.log.read(0, len(run.log)))


@contextmanager
def stage(programs: Mapping[str, str] | None = None) -> Iterator[Stage]:
    """A server whose world has no controllers until a scenario brings them."""
    with (
        Server(port=0, controllers=False) as server,
        Supervisor(server.stage, server.engine.post, server.url) as supervisor,
    ):
        made = Stage(server, supervisor)
        for name, command in (programs or {}).items():
            made.start(name, command)
        yield made
