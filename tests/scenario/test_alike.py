"""Objects of operations of their own that differ in their names alone."""

import sys

import orjson
import pytest

import kubescene
from kubescene.api.records.templates import HOSTNAME
from kubescene.runs.local import RunResult
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.reading.alike import SharedBodies, like
from kubescene.testing import make_node, make_pod
from kubescene.timeline.facts import LineWriter
from kubescene.types import JsonObject


def pod(name: str, cpu: str = "1") -> JsonObject:
    return make_pod(name).cpu(cpu).build()


def test_equal_pods_share_everything_but_the_name() -> None:
    known = SharedBodies()
    one, other = known.of(pod("a")), known.of(pod("b"))
    assert one is other
    assert one is not None
    first, second = like(pod("a"), one), like(pod("b"), one)
    assert one.blueprint is not None
    assert one.blueprint.covers(first)
    assert one.blueprint.covers(second)
    assert second == pod("b")
    assert second["spec"] is first["spec"]


def test_other_pods_are_not_alike() -> None:
    known = SharedBodies()
    one, other = known.of(pod("a")), known.of(pod("b", cpu="2"))
    assert one is not other
    assert like(pod("b", cpu="2"), other) == pod("b", cpu="2")


def test_nothing_is_promised_of_the_only_one() -> None:
    shared = SharedBodies().of(pod("a"))
    assert shared is not None
    assert shared.blueprint is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(1, True, id="bool"),
        pytest.param(1, 1.0, id="float"),
        pytest.param(0.0, -0.0, id="sign"),
        pytest.param([1], (1,), id="tuple"),
        pytest.param(None, float("nan"), id="nan"),
        pytest.param("a", b"a", id="bytes"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="order"),
        pytest.param("a", "a\0", id="end"),
    ],
)
def test_what_is_equal_in_python_only_is_not_alike(one: object, other: object) -> None:
    known = SharedBodies()
    first, second = known.of({**pod("a"), "x": one}), known.of({**pod("a"), "x": other})
    assert first is not second


def test_alike_is_by_content_however_it_is_held() -> None:
    known, shared = SharedBodies(), [{"a": "".join(["x", "y"])}]
    one = known.of({**pod("a"), "x": [shared, shared], "y": sys.intern("xyz")})
    copies = [[{"a": "xy"}], [{"a": "xy"}]]
    assert known.of({**pod("b"), "x": copies, "y": "".join(["xy", "z"])}) is one is not None


def test_what_is_odd_is_like_nothing() -> None:
    class Text(str):
        __slots__ = ()

    assert SharedBodies().of({**pod("a"), "x": Text("x")}) is None
    assert SharedBodies().of({**pod("a"), "x": object()}) is None


@pytest.mark.parametrize(
    "obj",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}},
    ],
)
def test_whatever_has_no_name_or_is_of_another_kind_is_left_alone(obj: JsonObject) -> None:
    assert SharedBodies().of(obj) is None


@pytest.mark.parametrize("name", ["p", 'a"b', "\0", "a\\b", "\u00e4", "a%b"])
@pytest.mark.parametrize("other", ["x", "\0", '"\0', "p", "\\u0000", "%b"])
@pytest.mark.parametrize("is_host", [False, True])
def test_what_was_asked_is_told_as_if_it_were_encoded(
    name: str, other: str, *, is_host: bool
) -> None:
    made = make_node("q") if is_host else make_pod("q")
    obj = made.labels({HOSTNAME: "q", "other": other}).build()
    shared = SharedBodies().of({**obj, other: other})
    assert shared is not None
    assert shared.asked(name) == orjson.dumps({"object": shared.named(name)})


def scenario() -> ScenarioBuilder:
    built = ScenarioBuilder("alike").create(make_node("n-$(INDEX)").cpu("8"), count=3).step(2)
    for number in range(30):
        made = make_pod(f"p-{number}").cpu(str(1 + number % 3)).label(app=str(number % 2))
        built.create(made)
    built.create({**pod("odd"), "metadata": {"name": "odd", "annotations": {"a": "100%"}}})
    return built.done()


def lines(run: RunResult) -> list[bytes]:
    writer = LineWriter()
    return [writer.line(fact) for fact in run.log]


def test_a_run_is_the_same_as_with_each_pod_made_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fast = kubescene.run(scenario())
    monkeypatch.setattr(SharedBodies, "of", lambda self, obj: None)
    slow = kubescene.run(scenario())
    assert fast.summary.placements_total > 10
    assert lines(fast) == lines(slow)
