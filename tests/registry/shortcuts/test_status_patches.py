"""One status for many pods: each ends up as the long way would have it.

Two worlds take the same steps. In one of them patches say that they are one and the same.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.actors import Actor
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.templates import Blueprint, NominatingBlueprint
from kubescene.api.scheme import GroupResource
from kubescene.clock import format_time
from kubescene.controllers.kubelet.reports import RunningStatuses, running, stopped
from kubescene.errors import ApiError
from kubescene.registry import Registry
from kubescene.registry.admission.chain import AdmissionChain, AdmissionRequest
from kubescene.registry.admission.plugins import default_chain
from kubescene.registry.exports import export
from kubescene.testing import make_pod
from kubescene.types import JsonObject
from registry.shortcuts.test_templates import world

KUBELET, USER = Actor("kubelet"), Actor("user")
PODS = GroupResource("", "pods")

BODIES: dict[str, Callable[[str], JsonObject]] = {
    "plain": lambda name: make_pod(name).cpu("1").build(),
    "labelled": lambda name: make_pod(name).cpu("1").label(name=name).build(),
    "empty labels": lambda name: with_metadata(name, labels={}, annotations={}),
    "held": lambda name: with_metadata(name, finalizers=["x/y"]),
    "other spec": lambda name: make_pod(name).cpu("2").build(),
}
NAMES = [f"{kind.replace(' ', '-')}-{n}" for kind in BODIES for n in range(2)]


def with_metadata(name: str, **metadata: Any) -> JsonObject:
    obj = make_pod(name).cpu("1").build()
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def pods_in(registry: Registry) -> Registry:
    for name in NAMES:
        kind = name.rpartition("-")[0].replace("-", " ")
        registry.create(USER, BODIES[kind](name))
    return registry


NOW = format_time(0)
RUNS = running(make_pod("x").build() | {"status": {}}, NOW)
PATCHES: dict[str, JsonObject] = {
    "runs": {"status": RUNS},
    "runs later": {"status": {**RUNS, "startTime": format_time(10**10)}},
    "stopped": {"status": stopped({}, NOW)},
    "marked": {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}},
    "nothing": {"status": {}},
    "removes": {"status": {"startTime": None, "phase": "Running"}},
    "nominates": {"status": {"nominatedNodeName": "n9"}},
    "another class": {"status": {"qosClass": "Guaranteed"}},
    "unknown": {"status": {"phase": "Running", "extra": 1}},
    "wrong type": {"status": {"phase": 7}},
    "labels too": {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}},
    "revision": {"status": {"phase": "Running"}, "metadata": {"resourceVersion": "1"}},
}


FAILED = [{"type": "PodScheduled", "status": "False", "message": ',"nominatedNodeName":"n3"}'}]


def nominated(node: str) -> JsonObject:
    """What a scheduler writes that makes room for a pod."""
    return {"status": {"conditions": FAILED, "nominatedNodeName": node}}


def patch(
    registry: Registry,
    name: str,
    change: JsonObject,
    merge: PatchType = PatchType.MERGE,
    **options: Any,
) -> object:
    pod = registry.scheme.of_kind("v1", "Pod")
    given = WriteOptions(**options)
    return outcome(
        lambda: (
            registry.patch(
                KUBELET, pod, "default", name, change, merge, subresource="status", options=given
            ).data
        )
    )


def bind(registry: Registry, name: str, node: str) -> object:
    target = {"target": {"kind": "Node", "name": node}}
    return outcome(lambda: registry.bind(USER, "default", name, target).data)


def delete(registry: Registry, name: str) -> object:
    pod = registry.scheme.of_kind("v1", "Pod")
    options = DeleteOptions()
    return outcome(lambda: registry.delete(USER, pod, "default", name, options=options).data)


def outcome(action: Callable[[], object]) -> object:
    try:
        return action()
    except ApiError as error:
        return (type(error), error.message, error.causes)


BINDINGS = ("bind n1", "bind n2")
NOMINATIONS = {
    name: nominated(name.removeprefix("fails ")) for name in ("fails n1", "fails n2", "fails Ö")
}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [*BINDINGS, "delete", *PATCHES, *NOMINATIONS, "runs", "runs", "stopped", "marked"]
        ),
        st.sampled_from([PatchType.MERGE, PatchType.STRATEGIC]),
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True),
    ),
    max_size=10,
)


@settings(deadline=None, max_examples=150)
@given(STEPS, st.booleans())
def test_a_status_for_many_pods_is_what_the_long_way_makes_of_each(
    steps: list[tuple[str, PatchType, list[str]]], forget: bool
) -> None:
    slow, fast = pods_in(world()), pods_in(world())
    blueprints = {name: Blueprint(change) for name, change in PATCHES.items()}
    nominating = {
        name.split()[0]: NominatingBlueprint(change) for name, change in NOMINATIONS.items()
    }
    for step, merge, names in steps:
        for name in names:
            if forget:
                fast.store._decoded.clear()
            if step == "delete":
                assert delete(slow, name) == delete(fast, name)
            elif step.startswith("bind"):
                node = step.removeprefix("bind ")
                assert bind(slow, name, node) == bind(fast, name, node)
            else:
                change = PATCHES.get(step) or NOMINATIONS[step]
                blueprint = blueprints.get(step) or nominating[step.split()[0]]
                expected = patch(slow, name, change, merge)
                assert patch(fast, name, change, merge, blueprint=blueprint) == expected
    assert export(slow) == export(fast)
    assert slow.store.revision == fast.store.revision


# -- that the short way is taken, and when it is not -----------------------------------------------


class Counting:
    name = "Counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if request.subresource == "status":
            self.asked.append(request.name)
        return request.obj


class DeclaredCounting(Counting):
    reads: tuple[GroupResource, ...] = ()


class QuietCounting(DeclaredCounting):
    is_quiet = True


COUNTING = [(Counting, 2), (DeclaredCounting, 2), (QuietCounting, 0)]


@pytest.mark.parametrize(("plugin", "times"), COUNTING)
def test_who_is_not_quiet_is_asked_for_each(plugin: type[Counting], times: int) -> None:
    counting = plugin()
    registry = pods_in(world(counting))
    blueprint = Blueprint(PATCHES["stopped"])
    for name in ("plain-0", "plain-1"):
        patch(registry, name, PATCHES["stopped"], blueprint=blueprint)
    assert len(counting.asked) == times


def test_who_is_quiet_is_asked_about_labels_that_come_with_a_status() -> None:
    counting = QuietCounting()
    patch(pods_in(world(counting)), "plain-0", PATCHES["labels too"])
    assert counting.asked == ["plain-0"]


@pytest.mark.parametrize(("change", "times"), [("runs", 1), ("nominates", 2)])
def test_a_nomination_is_judged_for_each(
    change: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, blueprint = pods_in(world()), Blueprint(PATCHES[change])
    judged, validate = [], registry.checks.validate

    def validating(new: JsonObject, *rest: Any) -> None:
        judged.append(new["metadata"]["name"])
        validate(new, *rest)

    monkeypatch.setattr(registry.checks, "validate", validating)
    for name in ("plain-0", "plain-1"):
        patch(registry, name, PATCHES[change], blueprint=blueprint)
    assert len(judged) == times


def test_what_comes_with_a_nomination_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, blueprint = pods_in(world()), NominatingBlueprint(nominated("n1"))
    judged, validate = [], registry.checks.validate

    def validating(new: JsonObject, *rest: Any) -> None:
        judged.append(new["metadata"]["name"])
        validate(new, *rest)

    monkeypatch.setattr(registry.checks, "validate", validating)
    for name, node in (("plain-0", "n1"), ("plain-1", "n2")):
        patch(registry, name, nominated(node), blueprint=blueprint)
    assert judged == ["plain-0"]
    status = registry.store.decoded(found(registry, "plain-1"))["status"]
    assert status["nominatedNodeName"] == "n2"


def found(registry: Registry, name: str) -> Record:
    record = registry.store.get(PODS, "default", name)
    assert record is not None
    return record


def test_a_patch_that_is_not_the_blueprint_takes_the_long_way() -> None:
    registry = pods_in(world())
    blueprint = Blueprint(PATCHES["runs"])
    patch(registry, "plain-0", PATCHES["runs"], blueprint=blueprint)
    patch(registry, "plain-1", PATCHES["stopped"], blueprint=blueprint)
    phases = [registry.store.get(PODS, "default", f"plain-{n}") for n in range(2)]
    assert [record.phase for record in phases if record] == ["Running", "Succeeded"]


def test_one_blueprint_merged_in_two_ways_gives_two_statuses() -> None:
    registry, change = pods_in(world()), PATCHES["marked"]
    blueprint = Blueprint(change)
    for name, merge in (("plain-0", PatchType.MERGE), ("plain-1", PatchType.STRATEGIC)):
        patch(registry, name, PATCHES["runs"], blueprint=Blueprint(PATCHES["runs"]))
        patch(registry, name, change, merge, blueprint=blueprint)
    records = [registry.store.get(PODS, "default", f"plain-{n}") for n in range(2)]
    counts = [len(record.decode()["status"]["conditions"]) for record in records if record]
    assert counts[0] == 1 < counts[1]


def test_pods_with_one_status_share_its_bytes() -> None:
    registry = pods_in(world())
    blueprint = Blueprint(PATCHES["runs"])
    for name in ("plain-0", "plain-1", "other-spec-0"):
        patch(registry, name, PATCHES["runs"], blueprint=blueprint)
    texts = [registry.store.get(PODS, "default", f"plain-{n}") for n in range(2)]
    first, second = (record.payload.members[2] for record in texts)  # type: ignore[union-attr]
    assert first is second


# -- the kubelet's statuses ------------------------------------------------------------------------


def started(name: str, **status: Any) -> JsonObject:
    pod = make_pod(name).build()
    return {**pod, "status": {"phase": "Pending", **status}}


def test_pods_that_start_alike_get_one_patch() -> None:
    statuses, pod = RunningStatuses(), started("a")
    other = {**pod, "metadata": {"name": "b"}}
    assert statuses.of(pod, NOW, ready=True) is statuses.of(other, NOW, ready=True)


SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW}


@pytest.mark.parametrize(
    ("change", "now", "ready"),
    [
        pytest.param({}, format_time(10**10), True, id="later"),
        pytest.param({}, NOW, False, id="not ready"),
        pytest.param({"status": {"conditions": [SCHEDULED]}}, NOW, True, id="conditions"),
        pytest.param({"spec": make_pod("x").cpu("7").build()["spec"]}, NOW, True, id="containers"),
        pytest.param({"metadata": {"name": "a", "generation": 2}}, NOW, True, id="resized"),
    ],
)
def test_pods_that_start_otherwise_get_their_own(change: JsonObject, now: str, ready: bool) -> None:
    statuses, pod = RunningStatuses(), started("a")
    first = statuses.of(pod, NOW, ready=True)
    other = {**pod, **change}
    second = statuses.of(other, now, ready=ready)
    assert second is not first
    assert second.blueprint is not None
    assert second.blueprint.body == {"status": running(other, now, ready=ready)}


def test_conditions_in_another_order_are_kept_in_that_order() -> None:
    statuses, pod = RunningStatuses(), started("a", conditions=[SCHEDULED])
    turned = {key: SCHEDULED[key] for key in reversed(SCHEDULED)}
    other = {**pod, "status": {"conditions": [turned]}}
    statuses.of(pod, NOW, ready=True)
    blueprint = statuses.of(other, NOW, ready=True).blueprint
    assert blueprint is not None
    assert [*blueprint.body["status"]["conditions"][-1]] == [*turned]


def test_the_built_in_plugins_have_declared_themselves() -> None:
    assert AdmissionChain(default_chain()).reads is not None
    assert AdmissionChain(default_chain()).is_quiet
    assert AdmissionChain([*default_chain(), Counting()]).reads is None
    assert not AdmissionChain([*default_chain(), Counting()]).is_quiet
