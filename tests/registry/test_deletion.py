"""Deletions: how much time a pod is given, and that parts of its encoding are enough for that."""

import pytest

from kubescene.api.options import DeleteOptions
from kubescene.api.patching.patches import PatchType, merge_patch
from kubescene.clock import SECOND, format_time, parse_time
from kubescene.errors import ApiError
from kubescene.registry import Registry
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.deletion import end_of_grace
from kubescene.shortcuts import PLAIN
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from registry.conftest import USER, make_registry

LONGEST_S = (1 << 63) - 1


def running_pod(registry: Registry, **spec: object) -> None:
    registry.create(USER, make_node("n").build())
    pod = make_pod("a").build()
    registry.create(USER, {**pod, "spec": {**pod["spec"], "nodeName": "n", **spec}})


@pytest.mark.parametrize(
    ("grace_s", "after_s"),
    [
        pytest.param(30, 30, id="the usual"),
        pytest.param(9_000_000_000, 9_000_000_000, id="285 years"),
        pytest.param(LONGEST_S, -1, id="more than a duration can hold"),
    ],
)
def test_a_grace_ends_as_go_adds_it(registry: Registry, grace_s: int, after_s: int) -> None:
    running_pod(registry, terminationGracePeriodSeconds=grace_s)
    pods = registry.scheme.of_kind("v1", "Pod")
    record = registry.delete(USER, pods, "default", "a", options=DeleteOptions())
    metadata = registry.store.decoded(record)["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == grace_s
    now = registry.clock.now()
    assert metadata["deletionTimestamp"] == format_time(now + after_s * SECOND)


def test_a_grace_beyond_the_last_timestamp_ends_there() -> None:
    late = parse_time("9999-12-31T23:59:50Z")
    assert format_time(end_of_grace(late, 30)) == "9999-12-31T23:59:59Z"


DELETIONS = {
    "its own wish": [DeleteOptions()],
    "at once": [DeleteOptions(grace_period_s=0)],
    "twice": [DeleteOptions(), DeleteOptions()],
    "sooner": [DeleteOptions(), DeleteOptions(grace_period_s=5)],
    "later": [DeleteOptions(grace_period_s=5), DeleteOptions(grace_period_s=50)],
    "then at once": [DeleteOptions(), DeleteOptions(grace_period_s=0)],
    "less than nothing": [DeleteOptions(grace_period_s=-1)],
    "in the foreground": [DeleteOptions(propagation_policy="Foreground")],
    "orphaning": [DeleteOptions(propagation_policy="Orphan")],
    "in the background": [DeleteOptions(propagation_policy="Background")],
    "not really": [DeleteOptions(dry_run=True), DeleteOptions(grace_period_s=0, dry_run=True)],
    "another": [DeleteOptions(uid="another")],
    "another state": [DeleteOptions(resource_version="1")],
}
STATES: dict[str, JsonObject] = {
    "running": {},
    "in no hurry": {"spec": {"terminationGracePeriodSeconds": 90}},
    "without grace": {"spec": {"terminationGracePeriodSeconds": 0}},
    "without a node": {"spec": {"nodeName": None}},
    "held": {"metadata": {"finalizers": ["example.com/hold"]}},
    "that speaks of finalizers": {"metadata": {"annotations": {"finalizers": '"finalizers":['}}},
    "succeeded": {"status": {"phase": "Succeeded"}},
}


def deleted(registry: Registry, state: JsonObject, deletions: list[DeleteOptions]) -> list[object]:
    """What the answers were, and what is there afterwards."""
    registry.create(USER, make_node("n").build())
    pod = merge_patch(make_pod("a").on("n").build(), {**state, "status": None})
    registry.create(USER, pod)
    pods = registry.scheme.of_kind("v1", "Pod")
    if status := state.get("status"):
        patch = {"status": status}
        registry.patch(USER, pods, "default", "a", patch, PatchType.MERGE, subresource="status")
    told: list[object] = []
    for options in deletions:
        try:
            record = registry.delete(USER, pods, "default", "a", options=options)
        except ApiError as error:
            told.append(str(error))
        else:
            told.append((record.data, record.deleting, record.revision, registry.store.revision))
    left = registry.store.get(pods.group_resource, "default", "a")
    return [*told, None if left is None else left.data]


@pytest.mark.parametrize("deletion", DELETIONS)
@pytest.mark.parametrize("state", STATES)
def test_parts_of_a_pod_are_enough_to_delete_it(state: str, deletion: str) -> None:
    in_parts = deleted(make_registry(), STATES[state], DELETIONS[deletion])
    assert deleted(make_registry(PLAIN), STATES[state], DELETIONS[deletion]) == in_parts


def test_a_plugin_that_does_not_declare_itself_may_refuse_to_delete_a_pod() -> None:
    registry = make_registry()
    registry.admission.add(Protective())
    told = deleted(registry, {}, [DeleteOptions()])
    assert told[0] == 'pods "a" is forbidden: precious'


class Protective:
    name = "Protective"

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if request.verb == "delete":
            raise request.forbidden("precious")
        return request.obj
