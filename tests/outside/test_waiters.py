"""Waiters: the scheduler's, conditions in CEL, and those that users bring."""

import sys
from pathlib import Path
from typing import Any

import pytest

from held_objects import HeldObjects
from kubescene.actors import ENGINE
from kubescene.client import Reader
from kubescene.cluster import Cluster
from kubescene.errors import ConfigurationError, ControllerError, ScenarioError
from kubescene.outside.waiters import ControllerWaiter, import_waiter, installed_waiters, waiter_of
from kubescene.outside.waiters.choice import SchedulerWaiter
from kubescene.scenario.outside import OutsideController, WaiterCondition, WaiterSpec
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject

CREATED = "2026-01-01T00:00:10Z"


def waiting(*conditions: JsonObject, **more: Any) -> JsonObject:
    """A pod that waits."""
    pod = make_pod("p").build()
    pod["metadata"]["creationTimestamp"] = CREATED
    pod["metadata"] |= more.pop("metadata", {})
    pod["spec"] |= more.pop("spec", {})
    pod["status"] = {"phase": "Pending", "conditions": list(conditions), **more}
    return pod


def tried(status: str = "False", time: str = CREATED) -> JsonObject:
    return {"type": "PodScheduled", "status": status, "lastTransitionTime": time}


PODS = [
    pytest.param(waiting(), False, id="never tried"),
    pytest.param(waiting(tried()), True, id="tried in vain"),
    pytest.param(waiting(tried(time="2026-01-01T00:00:10.5Z")), True, id="tried later"),
    pytest.param(waiting(tried(time="2026-01-01T00:00:09Z")), False, id="an older pod was tried"),
    pytest.param(waiting({"type": "PodScheduled", "status": "False"}), True, id="without a time"),
    pytest.param(waiting({"type": "Ready", "status": "False"}), False, id="another condition"),
    pytest.param(waiting(tried("True")), False, id="said to be scheduled, without a node"),
    pytest.param(waiting(spec={"nodeName": "n"}), True, id="bound"),
    pytest.param(waiting(spec={"schedulingGates": [{"name": "g"}]}), True, id="held by a gate"),
    pytest.param(waiting(metadata={"deletionTimestamp": CREATED}), True, id="leaving"),
    pytest.param(waiting(phase="Failed"), True, id="ended"),
    pytest.param(waiting(spec={"schedulerName": "other"}), True, id="another scheduler's"),
    pytest.param(waiting(spec={"schedulerName": "default-scheduler"}), False, id="named"),
]


@pytest.mark.parametrize(("pod", "content"), PODS)
def test_a_pod_that_waits_must_have_been_tried(pod: JsonObject, content: bool) -> None:
    waiter, objects = SchedulerWaiter(), HeldObjects([pod])
    assert waiter.condition(objects) is content
    assert waiter.unmet(objects) == ("" if content else "Pod default/p was not tried yet")


def test_it_looks_at_the_pods_of_its_own_scheduler() -> None:
    mine = declared(waiter=WaiterSpec("kube-scheduler"), scheduler_names=("other",))
    assert waiter_of(mine).condition(HeldObjects([waiting()]))
    assert not waiter_of(mine).condition(HeldObjects([waiting(spec={"schedulerName": "other"})]))


def test_beside_the_scheduler_of_this_process() -> None:
    cluster, waiter = Cluster(), SchedulerWaiter()
    reader = cluster.client(ENGINE)
    cluster.create(make_node("n").cpu("2"))
    for name, cpu in (("fits", "1"), ("too-large", "64")):
        cluster.create(make_pod(name).cpu(cpu))
    assert "Pod default/fits" in waiter.unmet(reader)
    assert waiter.condition(cluster.settle().client(ENGINE))
    cluster.create(make_pod("late").cpu("64"))
    assert waiter.unmet(reader) == "Pod default/late was not tried yet"
    cluster.advance("1m")
    assert waiter.condition(reader)


# -- conditions ----------------------------------------------------------------------------------


def declared(**more: Any) -> OutsideController:
    return OutsideController(name="mine", **more)


def conditions(*expressions: str, kind: str = "Deployment", **more: Any) -> ControllerWaiter:
    version = "apps/v1" if kind == "Deployment" else "example.com/v1"
    made = tuple(WaiterCondition(version, kind, each, **more) for each in expressions)
    return waiter_of(declared(waiter=WaiterSpec("", None, made)))


def deployment(
    name: str, *, wanted: int, found: int | None, namespace: str = "default"
) -> JsonObject:
    obj = make_deployment(name, namespace).replicas(wanted).build()
    return obj | {"status": {} if found is None else {"replicas": found}}


FULL = "object.status.replicas == object.spec.replicas"


def test_a_condition_must_hold_for_every_object() -> None:
    waiter = conditions(FULL)
    good, bad = deployment("a", wanted=2, found=2), deployment("b", wanted=2, found=1)
    assert waiter.condition(HeldObjects([good]))
    assert waiter.unmet(HeldObjects([good])) == ""
    assert not waiter.condition(HeldObjects([good, bad]))
    told = f"Deployment default/b: {FULL!r} does not hold"
    assert waiter.unmet(HeldObjects([good, bad])) == told


def test_without_objects_it_holds() -> None:
    assert conditions(FULL).condition(HeldObjects([]))


def test_a_field_that_is_not_there_does_not_hold_yet() -> None:
    objects = HeldObjects([deployment("a", wanted=2, found=None)])
    assert not conditions(FULL).condition(objects)
    assert "no such key: replicas" in conditions(FULL).unmet(objects)
    optional = "object.?status.replicas.orValue(0) == object.spec.replicas"
    assert not conditions(optional).condition(objects)


def test_all_of_several_must_hold() -> None:
    objects = HeldObjects([deployment("a", wanted=2, found=2)])
    assert not conditions(FULL, "object.spec.replicas == 3").condition(objects)
    assert conditions(FULL, "object.spec.replicas == 2").condition(objects)


def test_one_about_all_objects_is_looked_at_once() -> None:
    waiter = conditions("size(objects) == 2", message="both must be there")
    one = [deployment("a", wanted=1, found=1)]
    assert waiter.unmet(HeldObjects(one)) == "Deployments: both must be there"
    assert waiter.condition(HeldObjects([*one, deployment("b", wanted=1, found=1)]))


def test_objects_can_be_compared_with_each_other() -> None:
    waiter = conditions("objects.all(o, o.spec.replicas == object.spec.replicas)")
    assert not waiter.condition(
        HeldObjects([deployment("a", wanted=1, found=1), deployment("b", wanted=2, found=2)])
    )


def test_of_one_namespace_only() -> None:
    waiter = conditions(FULL, namespace="here")
    assert waiter.condition(HeldObjects([deployment("a", wanted=1, found=0, namespace="there")]))
    assert not waiter.condition(HeldObjects([deployment("a", wanted=1, found=0, namespace="here")]))


def test_a_kind_that_nobody_knows_is_an_error_and_no_endless_wait() -> None:
    with pytest.raises(ScenarioError, match=r"controller mine, waiter.conditions\[0\]: .*Databank"):
        conditions("true", kind="Databank").condition(Cluster().client(ENGINE))


def test_conditions_in_a_real_world() -> None:
    cluster = Cluster()
    cluster.create(make_node("n").cpu("8"))
    cluster.create(make_deployment("web").replicas(2))
    waiter = conditions("object.?status.replicas.orValue(0) == object.spec.replicas")
    assert not waiter.condition(cluster.client(ENGINE))
    assert waiter.condition(cluster.settle().client(ENGINE))


# -- which one -----------------------------------------------------------------------------------


class Databases:
    name = "databases"

    def condition(self, reader: Reader) -> bool:
        del reader
        return False


class Broken(Databases):
    name = "broken"

    def condition(self, reader: Reader) -> bool:
        raise ZeroDivisionError("oh")


class Vague(Databases):
    name = "vague"

    def condition(self, reader: Reader) -> bool:
        return "yes"  # type: ignore[return-value]


def named(name: str, *brought: type) -> ControllerWaiter:
    classes = {str(getattr(each, "name", "")): each for each in brought}
    return waiter_of(declared(waiter=WaiterSpec(name)), classes)


def test_the_shipped_ones_by_name() -> None:
    for name in ("kube-scheduler", "workloads", "quiet"):
        assert named(name).name == name
    assert waiter_of(declared()).name == "quiet"
    assert waiter_of(declared(waiter=WaiterSpec())).condition(HeldObjects([waiting()]))


def test_one_that_nobody_knows_lists_those_that_are_there() -> None:
    known = "kube-scheduler, workloads, quiet, databases; others are brought with --waiter"
    with pytest.raises(ScenarioError, match=f"no waiter is named 'mine'; there are: {known}"):
        named("mine", Databases)


def test_one_that_a_user_brings_is_asked() -> None:
    waiter = named("databases", Databases)
    assert waiter.condition(HeldObjects([])) is False
    assert waiter.unmet(HeldObjects([])) == "its waiter 'databases' says that it has work left"


def test_what_a_users_waiter_does_wrong_is_told_with_its_line() -> None:
    with pytest.raises(ControllerError, match="controller 'mine': its waiter 'broken'") as caught:
        named("broken", Broken).condition(HeldObjects([]))
    assert "ZeroDivisionError: oh" in str(caught.value)
    assert "test_waiters.py, line" in str(caught.value)
    with pytest.raises(ControllerError, match="condition returned str, not a bool"):
        named("vague", Vague).condition(HeldObjects([]))


def test_one_is_imported_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class W:\n    name = 'w'\n    def condition(self, reader):\n        return True\n"
    (tmp_path / "my_waiters.py").write_text(f"{text}class N:\n    name = 'n'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = installed_waiters(["my_waiters:W"])
    assert list(found) == ["w"]
    assert waiter_of(declared(waiter=WaiterSpec("w")), found).condition(HeldObjects([]))
    for reference, why in (
        ("my_waiters", "must be written as module:Class"),
        ("my_waiters:Nobody", "has no class Nobody"),
        ("my_waiters:N", "has no method condition"),
        ("nowhere_at_all:W", "cannot be imported"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            import_waiter(reference)
    sys.modules.pop("my_waiters")
