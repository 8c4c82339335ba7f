"""Who is asked about a status and about the deletion of a pod: all, unless all are quiet."""

from collections.abc import Sequence
from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.api.options import DeleteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.scheme import GroupResource, ResourceType
from kubescene.errors import ForbiddenError
from kubescene.registry import Registry
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from registry.shortcuts.test_templates import world

USER = Actor("user")
PODS = builtin_scheme().of_kind("v1", "Pod")
NODES = builtin_scheme().of_kind("v1", "Node")
CONDITION = {"type": "Ready", "status": "False"}


class Keeper:
    """Refuses a change of status and a deletion. It says what its answers to a create depend on."""

    name = "Keeper"
    reads: Sequence[GroupResource] = ()

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if request.verb == "delete" or request.subresource == "status":
            raise request.forbidden(f"{request.verb} is not for {request.actor.name}")
        return request.obj


class Quiet(Keeper):
    """Says that it has nothing to say: then it is not asked about deletions."""

    is_quiet = True


def filled(*plugins: Any) -> Registry:
    registry = world(*plugins)
    registry.create(USER, make_node("n").cpu("4").memory("4Gi").pods("9").build())
    for name in ("a", "b"):
        registry.create(USER, make_pod(name).cpu("1").on("n").build())
    return registry


def set_status(registry: Registry, kind: ResourceType, name: str, namespace: str) -> None:
    patch = {"status": {"conditions": [CONDITION]}}
    registry.patch(USER, kind, namespace, name, patch, PatchType.STRATEGIC, subresource="status")


@pytest.mark.parametrize("options", [DeleteOptions(), DeleteOptions(grace_period_s=0)])
def test_a_plugin_that_has_declared_what_it_reads_may_refuse_a_deletion(
    options: DeleteOptions,
) -> None:
    registry = filled(Keeper())
    with pytest.raises(ForbiddenError, match="delete is not for user"):
        registry.delete(USER, PODS, "default", "a", options=options)


@pytest.mark.parametrize(("kind", "name", "place"), [(PODS, "a", "default"), (NODES, "n", "")])
def test_it_may_refuse_a_change_of_status(kind: ResourceType, name: str, place: str) -> None:
    with pytest.raises(ForbiddenError, match="update is not for user"):
        set_status(filled(Keeper()), kind, name, place)


def test_quiet_plugins_are_not_asked() -> None:
    registry = filled(Quiet())
    registry.delete(USER, PODS, "default", "a", options=DeleteOptions())
    assert registry.record(PODS, "default", "a").deleting
