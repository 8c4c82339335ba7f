"""Binding a pod without decoding it: the same record as the long way gives."""

import pytest

from kubescene.actors import Actor
from kubescene.api.kinds import POD
from kubescene.api.records import Record
from kubescene.client import DirectClient
from kubescene.registry import Registry
from kubescene.registry.shortcuts.bindings import bound_parts
from kubescene.registry.subresources import binding
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from registry.conftest import make_registry

USER = Actor("user")

plain = make_pod("p").cpu("1").build()
labeled = make_pod("p").cpu("1").label(app="web").build()
claiming = make_pod("p").cpu("1").build()
claiming["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
nowhere = make_pod("p").cpu("1").build()
nowhere["spec"] = {"nodeName": "", **nowhere["spec"]}
annotated = make_pod("p").cpu("1").build()
annotated["metadata"]["annotations"] = {"note": '"schedulingGates" and "nodeName"'}
PODS = {
    "plain": plain,
    "labeled": labeled,
    "claiming": claiming,
    "nowhere": nowhere,
    "annotated": annotated,
}


def with_pod(pod: JsonObject) -> tuple[Registry, Record]:
    registry = make_registry()
    client = DirectClient(registry, USER)
    client.create(make_node("n").build())
    client.create(make_node("z").zone("east").build())
    return registry, client.create(pod)


@pytest.mark.parametrize("name", PODS)
@pytest.mark.parametrize("node", ["n", "z", "missing"])
def test_in_parts_as_in_one_piece(name: str, node: str) -> None:
    registry, record = with_pod(PODS[name])
    body = binding.binding_to(node, record.uid)
    found = registry.bind(USER, "default", "p", body)
    other, pod = with_pod(PODS[name])
    decoded = other.store.decoded(pod)
    bound = binding.bound(decoded, body, node, other.store, other.clock)
    expected = other.store.put(other.type_of(POD).group_resource, bound)
    assert found == expected
    assert found.data == expected.data
    assert (found.labels, found.node, found.phase) == (
        expected.labels,
        expected.node,
        expected.phase,
    )


def test_what_takes_a_closer_look_is_decoded() -> None:
    registry, record = with_pod(PODS["plain"])
    store, clock = registry.store, registry.clock
    body = binding.binding_to("n", record.uid)
    assert bound_parts(record, body, store, clock) is not None
    for other in (
        binding.binding_to("n", "another"),
        binding.binding_to("", record.uid),
        {**body, "target": {"name": "n"}},
        {**body, "metadata": {"uid": record.uid, "annotations": {"a": "b"}}},
    ):
        assert bound_parts(record, other, store, clock) is None
    bound = registry.bind(USER, "default", "p", body)
    assert bound_parts(bound, body, store, clock) is None
