"""Facts that controllers and plugins of users tell."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

import kubescene
from kubescene.actors import Actor, Component, Role
from kubescene.api.kinds import POD
from kubescene.clock import ScenarioStep, VirtualClock
from kubescene.cluster import ClusterOptions, builtin_controllers
from kubescene.control.loops import IDLE, ControllerContext, Progress
from kubescene.errors import RecorderError
from kubescene.instruments import Instrument, Instruments
from kubescene.results import open_run
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.testing import make_node, make_pod
from kubescene.timeline import About, CustomFact, Timeline, TimelineLog, TimelineRecorder
from kubescene.timeline.files import Header, TimelineWriter
from kubescene.timeline.log import from_lines

ACTOR = Actor("hpa", Component.CONTROLLER, inside=True)


class Recommended(msgspec.Struct, frozen=True, rename="camel"):
    target: str
    replicas: int
    why_not: dict[str, int] = {}


class Colour(Enum):
    RED = "red"


def recorder() -> TimelineRecorder:
    return TimelineRecorder(VirtualClock(), role_of=lambda _: Role.SIMULATION)


def told(*facts: Any) -> list[CustomFact]:
    found = recorder()
    instruments = Instruments(found)
    for fact in facts:
        instruments.tell(ACTOR, fact)
    custom = [fact for fact in found.log if isinstance(fact, CustomFact)]
    assert len(custom) == len(found.log)
    return custom


def a_struct(name: str = "Odd", **fields: Any) -> msgspec.Struct:
    made = msgspec.defstruct(name, [(each, Any) for each in fields], module="theirs")
    return made(**fields)


def test_a_fact_is_stamped_with_id_step_time_and_actor() -> None:
    (fact,) = told(Recommended("web", 3))
    assert (fact.kind, fact.id, fact.step) == ("Recommended", "@0.0-1", ScenarioStep(0, 0))
    assert (fact.actor, fact.role, fact.time) == ("hpa", Role.SIMULATION, VirtualClock().now())
    assert fact.fields == {"target": "web", "replicas": 3, "whyNot": {}}
    assert fact.read(Recommended) == Recommended("web", 3)


def test_its_line_begins_as_all_lines_do() -> None:
    (fact,) = told(Recommended("web", 3))
    assert fact.line.startswith(b'{"fact":"Recommended","id":"@0.0-1","step":[0,0],"time":')
    assert fact.line.endswith(
        b'"actor":"hpa","role":"simulation","target":"web","replicas":3,"whyNot":{}}'
    )


def test_a_fact_without_fields_is_one() -> None:
    (fact,) = told(a_struct("Awake"))
    assert (fact.fields, orjson.loads(fact.line)["fact"]) == ({}, "Awake")


def test_it_comes_back_from_its_line_without_its_authors_code() -> None:
    (fact,) = told(Recommended("web", 3))
    (again,) = from_lines([fact.line])
    assert isinstance(again, CustomFact)
    assert (again.kind, again.fields, again.id) == (fact.kind, fact.fields, fact.id)
    assert again.line == fact.line


def test_sets_and_mappings_are_written_in_order() -> None:
    (fact,) = told(a_struct(names={"c", "a", "b"}, counts={"b": 1, "a": 2}))
    assert fact.line.endswith(b'"names":["a","b","c"],"counts":{"a":2,"b":1}}')


def test_what_becomes_plain_data_may_be_told() -> None:
    (fact,) = told(a_struct(colour=Colour.RED, at=datetime(2026, 1, 1, tzinfo=UTC), pair=(1, 2)))
    assert fact.fields == {"colour": "red", "at": "2026-01-01T00:00:00Z", "pair": [1, 2]}


def test_it_is_found_by_the_object_that_it_is_about() -> None:
    found = recorder()
    about = About("apps/v1", "Deployment", "web", "default")
    Instruments(found).tell(ACTOR, a_struct("Scaled", about=about))
    Instruments(found).tell(ACTOR, a_struct("Mused", about="life"))
    Instruments(found).tell(ACTOR, a_struct("Silent"))
    (fact,) = found.log.of_object("Deployment", "default", "web")
    assert isinstance(fact, CustomFact)
    assert fact.kind == "Scaled"


def selfish() -> msgspec.Struct:
    ring: list[Any] = []
    ring.append(ring)
    return a_struct(ring=ring)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: {"a": 1}, "it is no msgspec.Struct"),
        (lambda: a_struct(what=object()), "it is not plain data"),
        (lambda: a_struct(share=float("nan")), "share is nan, which JSON has no number for"),
        (lambda: a_struct(deep={"x": [1.0, float("inf")]}), r"deep.x\[1\] is inf"),
        (lambda: a_struct(much=1 << 63), "much needs more than 64 bits"),
        (lambda: a_struct(text="\ud800"), "it is not plain data"),
        (selfish, "it refers to itself"),
        (lambda: a_struct(time=3), "every fact has 'time' of its own"),
        (lambda: a_struct("ObjectCreated"), "Kubescene has a fact of that name"),
        (lambda: a_struct("Größe"), "a name has letters"),
        (lambda: msgspec.defstruct("Row", ["a"], array_like=True)(1), "it is a list"),
    ],
)
def test_what_is_no_fact_is_refused_and_leaves_no_trace(make: Callable[[], Any], why: str) -> None:
    found = recorder()
    instruments = Instruments(found)
    with pytest.raises(RecorderError, match=why):
        instruments.tell(ACTOR, make())
    instruments.tell(ACTOR, Recommended("web", 1))
    assert [fact.id for fact in found.log] == ["@0.0-1"]


def test_a_name_stands_for_one_type() -> None:
    other = msgspec.defstruct("Recommended", ["target"], module="elsewhere")
    with pytest.raises(RecorderError, match=r"elsewhere\.Recommended; name one of the classes"):
        told(Recommended("web", 1), other("db"))


def test_a_type_that_is_loaded_again_is_the_same() -> None:
    first, second = (msgspec.defstruct("Again", ["n"], module="m") for _ in range(2))
    assert [fact.fields for fact in told(first(1), second(2))] == [{"n": 1}, {"n": 2}]


def test_onlookers_hear_of_it_and_without_any_it_costs_nothing() -> None:
    class Onlooker(Instrument):
        def __init__(self) -> None:
            self.heard: list[Any] = []

        def fact_told(self, actor: Actor, fact: msgspec.Struct) -> None:
            self.heard.append((actor.name, fact))

    onlooker = Onlooker()
    Instruments(onlooker).tell(ACTOR, Recommended("web", 3))
    Instruments().tell(ACTOR, Recommended("web", 3))
    assert onlooker.heard == [("hpa", Recommended("web", 3))]


# -- in a run ----------------------------------------------------------------------------------


class Counter:
    """A controller that is no reconciler: tells how many pods there are, whenever that changes."""

    name = "counter"

    def __init__(self, context: ControllerContext) -> None:
        self.context, self.seen = context, 0

    def run_once(self) -> Progress:
        pods = len(list(self.context.client.list(POD)))
        if pods != self.seen:
            self.seen = pods
            self.context.tell(a_struct("PodsCounted", pods=pods))
        return IDLE


class Placed(msgspec.Struct, frozen=True):
    pod: str
    node: str


class Teller:
    name = "Teller"

    def __init__(self, arguments: Any, handle: Any) -> None:
        self.handle = handle

    def post_bind(self, state: Any, pod: Any, node: str) -> None:
        self.handle.tell(Placed(pod.name, node))


def scenario() -> ScenarioBuilder:
    return (
        ScenarioBuilder("told")
        .create(make_node("n").cpu("4"))
        .create(make_pod("p-$(INDEX)").cpu("1"), count=3)
        .done()
    )


def played(out: Path | None = None) -> kubescene.Run:
    return kubescene.run(
        scenario(),
        out=out,
        controllers={"counter": Counter},
        scheduler=with_plugin(SchedulerOptions(), Teller),
    )


def test_controllers_and_plugins_tell_in_a_run() -> None:
    rows = played().tables["facts"].rows
    assert [row.fields for row in rows if row.fact == "Placed"] == [
        {"pod": f"p-{number}", "node": "n"} for number in range(3)
    ]
    assert {row.actor for row in rows} == {"counter", "kube-scheduler"}
    assert rows[-1].step == "1.3"


def test_to_tell_changes_nothing_else() -> None:
    run, quiet = played(), kubescene.run(scenario())
    assert len(list(run.timeline)) == len(list(quiet.timeline))
    assert run.summary.placements == quiet.summary.placements
    assert run.measures == quiet.measures


def test_a_run_directory_tells_the_same_as_memory_and_without_the_authors_code(
    tmp_path: Path,
) -> None:
    run = played(tmp_path / "out")
    stored = open_run(tmp_path / "out")
    assert stored.tables()["facts"].json() == run.tables["facts"].json()
    assert [fact.kind for fact in stored.custom_facts()] == [
        fact.kind for fact in stored.facts() if isinstance(fact, CustomFact)
    ]
    assert list(Timeline(TimelineLog.open(tmp_path / "out/timeline.jsonl")))
    command = [sys.executable, "-m", "kubescene", "results", "out", "--table", "facts"]
    shown = subprocess.run(
        [*command, "--format", "csv"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert '"{""pod"":""p-0"",""node"":""n""}"' in shown.stdout


def test_equal_runs_tell_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        played(tmp_path / name)
    one, other = (tmp_path / name / "timeline.jsonl" for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()


def test_what_is_refused_fails_the_run() -> None:
    class Wrong(Counter):
        name = "counter"

        def run_once(self) -> Progress:
            self.context.tell(a_struct(what=object()))
            return IDLE

    run = kubescene.run(scenario(), controllers={"counter": Wrong})
    assert run.phase == "Failed"
    assert "the fact Odd cannot be told: it is not plain data" in run.message


def test_a_fork_tells_for_itself() -> None:
    controllers = builtin_controllers(ClusterOptions())
    controllers.register("counter", Counter)
    cluster = kubescene.Cluster(controllers=controllers)
    found = TimelineRecorder(cluster.clock)
    cluster.observe(found)
    cluster.create(make_pod("a"))
    cluster.settle()
    fork = cluster.fork()
    fork.create(make_pod("b"))
    fork.settle()
    assert [each.fields for each in found.log if isinstance(each, CustomFact)] == [{"pods": 1}]


def test_a_file_that_grows_passes_it_on(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    (fact,) = told(Recommended("web", 3))
    with path.open("wb") as file:
        TimelineWriter(file, Header()).write(fact)
    (again,) = TimelineLog.open(path)
    assert isinstance(again, CustomFact)
    assert again.fields["replicas"] == 3
