"""Pods created, bound and reported by parts of their encoding are those of the long way."""

from collections.abc import Callable
from typing import Any

import pytest

import kubescene
from kubescene.api.patching.patches import merge_patch
from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource
from kubescene.registry.shortcuts import Shortcut
from kubescene.registry.shortcuts.pod_deletions import PodDeletions
from kubescene.registry.shortcuts.status_counts import StatusCounts
from kubescene.registry.shortcuts.templates import Templates
from kubescene.registry.writes import Result, WriteRequest
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_deployment, make_node, make_pod, make_priority_class
from kubescene.testing.builders import PodBuilder
from kubescene.types import JsonObject

PODS: dict[str, Callable[[], PodBuilder]] = {
    "plain": lambda: make_pod("p-$(INDEX)").cpu("1"),
    "labelled": lambda: make_pod("p-$(INDEX)").cpu("1").label(app="web", name=""),
    "annotated": lambda: make_pod("p-$(INDEX)").cpu("1").annotate({"uid": '100% "%(name)b"'}),
    "gated": lambda: make_pod("p-$(INDEX)").cpu("1").gate("hold"),
    "assigned": lambda: make_pod("p-$(INDEX)").cpu("1").on("zoned-0"),
    "too large": lambda: make_pod("p-$(INDEX)").cpu("99"),
}


VICTIMS: dict[str, JsonObject] = {
    "plain": {},
    "slow": {"spec": {"terminationGracePeriodSeconds": 90}, "metadata": {"labels": {"a": "b"}}},
    "hasty": {"spec": {"terminationGracePeriodSeconds": 0}},
    "held": {"metadata": {"finalizers": ["example.com/hold"]}},
}


def outcome(pod: PodBuilder, *, plain: bool = False) -> tuple[bytes, list[str], list[object]]:
    """The world, what was told of it, and the hot fields of the pods."""
    built = ScenarioBuilder("parts").create(make_node("bare-$(INDEX)").cpu("4"), count=2)
    built.create(make_node("zoned-$(INDEX)").cpu("4").zone("a"), count=2).step(2)
    built.create(pod, count=6).step(3)
    built.delete("v1", "Pod", "p-3", namespace="default")
    run = kubescene.run(built.done(), plain=plain)
    assert run.ok, run.message
    records = run.cluster.store.list(GroupResource("", "pods"))
    hot: list[object] = [
        (it.name, it.labels, it.node, it.phase, it.uid, it.deleting) for it in records
    ]
    return run.cluster.export(), [repr(fact) for fact in run.log], hot


def outcome_of_a_deployment(*, plain: bool = False) -> tuple[bytes, list[str]]:
    """The same of a Deployment that is scaled and rolled out."""
    web = ("apps/v1", "Deployment", "web")
    image = {"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}}
    built = ScenarioBuilder("parts").create(make_node("n-$(INDEX)").cpu("8"), count=2).step(2)
    built.create(make_deployment("web").replicas(5)).step(3)
    built.patch(*web, {"spec": {"replicas": 7}}, namespace="default").step(40)
    built.patch(*web, {"spec": image}, namespace="default").step(90)
    built.patch(*web, {"spec": {"replicas": 1}}, namespace="default")
    run = kubescene.run(built.done(), plain=plain)
    assert run.ok, run.message
    return run.cluster.export(), [repr(fact) for fact in run.log]


def noted(
    monkeypatch: pytest.MonkeyPatch, shortcut: type[Shortcut], question: str = "find"
) -> list[Record]:
    """The records for which a shortcut knows an answer from now on."""
    found: list[Record] = []
    ask = getattr(shortcut, question)

    def call(self: Shortcut, *told: Any) -> Result | None:
        result: Result | None = ask(self, *told)
        if result is not None:
            found.extend(each for each in told if isinstance(each, Record))
        return result

    monkeypatch.setattr(shortcut, question, call)
    return found


@pytest.mark.parametrize("shape", PODS)
def test_parts_give_what_the_long_way_gives(shape: str) -> None:
    assert outcome(PODS[shape]()) == outcome(PODS[shape](), plain=True)


def test_so_does_the_status_of_a_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    written = noted(monkeypatch, StatusCounts, "counted")
    in_parts = outcome_of_a_deployment()
    resources = [record.resource.resource for record in written]
    assert min(resources.count("deployments"), resources.count("replicasets")) > 10
    written.clear()
    assert outcome_of_a_deployment(plain=True) == in_parts
    assert not written


def outcome_of_preemptions(*, plain: bool = False) -> tuple[bytes, list[str]]:
    """Pods lose their places, some of them held or in no hurry; others go that never ran."""
    built = ScenarioBuilder("parts").create(make_node("n-$(INDEX)").cpu("4"), count=4)
    built.create(make_priority_class("high", 10)).step(2)
    for name, change in VICTIMS.items():
        low = make_pod(f"{name}-$(INDEX)").cpu("1").build()
        built.create(merge_patch(low, change), count=5)
    built.step(3).create(make_pod("high-$(INDEX)").cpu("3").priority_class("high"), count=4)
    for name in ("high-0", "held-4"):
        built.step(4).delete("v1", "Pod", name, namespace="default")
    run = kubescene.run(built.done(), plain=plain)
    assert run.ok, run.message
    return run.cluster.export(), [repr(fact) for fact in run.log]


def test_so_do_preemptions(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = noted(monkeypatch, PodDeletions)
    in_parts = outcome_of_preemptions()
    names = {pod.name.split("-")[0] for pod in deleted}
    assert names == {"hasty", "high", "plain", "slow"}
    deleted.clear()
    assert outcome_of_preemptions(plain=True) == in_parts
    assert not deleted


def test_a_status_that_follows_a_change_of_the_spec_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a rollout every set is scaled, pod by pod, and says after each what it has come to."""
    built = ScenarioBuilder("parts").create(make_node("n-$(INDEX)").cpu("64"), count=4).step(2)
    built.create(make_deployment("web").replicas(12).template(make_pod("web").cpu("10m"))).step(3)
    newer = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    built.patch("apps/v1", "Deployment", "web", newer, namespace="default")
    written, learned = noted(monkeypatch, StatusCounts, "counted"), list[str]()
    learn = Templates.learn

    def noting(self: Templates, request: WriteRequest, *told: Any) -> None:
        learned.append(request.resource_type.kind)
        learn(self, request, *told)

    monkeypatch.setattr(Templates, "learn", noting)
    scenario = built.done()
    in_parts = kubescene.run(scenario)
    assert in_parts.ok, in_parts.message
    sets = [each for each in written if each.resource.resource == "replicasets"]
    scaled = [each for each in sets if b'"generation":1,' not in each.data]
    assert len(scaled) > 10
    assert learned.count("Pod") == 2, "a pod of each template goes the long way"
    plain = kubescene.run(scenario, plain=True)
    assert in_parts.cluster.export() == plain.cluster.export()
