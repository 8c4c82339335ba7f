"""Objects of operations of their own that differ in their names alone."""

import pytest

import kubescene
from kubescene.api.blueprints import Blueprint
from kubescene.running import RunResult
from kubescene.scenario import ScenarioBuilder, alike
from kubescene.scenario.alike import AlikeObjects
from kubescene.testing import make_node, make_pod
from kubescene.timeline.lines import LineWriter
from kubescene.types import JsonObject


def pod(name: str, cpu: str = "1") -> JsonObject:
    return make_pod(name).cpu(cpu).build()


def test_equal_pods_share_everything_but_the_name() -> None:
    known = AlikeObjects()
    first, one = known.of(pod("a"))
    second, other = known.of(pod("b"))
    assert one is not None
    assert one is other
    assert one.covers(first)
    assert one.covers(second)
    assert second == pod("b")
    assert second["spec"] is first["spec"]


def test_other_pods_are_not_alike() -> None:
    known = AlikeObjects()
    _, one = known.of(pod("a"))
    second, other = known.of(pod("b", cpu="2"))
    assert one is not other
    assert second == pod("b", cpu="2")


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
    assert AlikeObjects().of(obj) == (obj, None)


def test_those_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "KEPT", 2)
    known = AlikeObjects()

    def blueprint(cpu: str) -> Blueprint | None:
        return known.of(pod("x", cpu))[1]

    one, two = blueprint("1"), blueprint("2")
    assert blueprint("1") is one
    blueprint("3")
    assert blueprint("1") is one
    assert blueprint("2") is not two


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
    monkeypatch.setattr(AlikeObjects, "of", lambda self, obj: (obj, None))
    slow = kubescene.run(scenario())
    assert fast.summary.placements_total > 10
    assert lines(fast) == lines(slow)
