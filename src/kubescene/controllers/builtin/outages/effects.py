"""What Outages do to nodes, and how that is taken back: ordinary writes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from kubescene.api.kinds import NODE
from kubescene.api.own_kinds import GROUP
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.authoring import owner_key
from kubescene.controllers.builtin.nodes.node_conditions import NO_SCHEDULE, taint, taints_of
from kubescene.controllers.builtin.nodes.node_groups import INSTANCE
from kubescene.controllers.builtin.outages.definition import GONE, OUTAGE, RECLAIM, SILENT
from kubescene.controllers.kubelet.heartbeats import ANNOTATION, STOPPED
from kubescene.controllers.reconcile import Delete, Patch, Write
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject

NAME = "outage"
"""The controller's."""
RECLAIMED = f"{GROUP}/spot-reclaim"
RUNNING = "Running"


class Effect(NamedTuple):
    """What happens to a node in the beginning (at an instant), if it is let off, in the end."""

    begin: Callable[[JsonObject, str], Sequence[Write]]
    release: Callable[[JsonObject], Sequence[Write]]
    end: Callable[[JsonObject], Sequence[Write]]


def silenced(node: JsonObject, now: str) -> Sequence[Write]:
    del now
    return (_annotated(node, STOPPED),)


def heard(node: JsonObject) -> Sequence[Write]:
    return (_annotated(node, None),)


def noticed(node: JsonObject, now: str) -> Sequence[Write]:
    """The notice that a node will be reclaimed: a taint and an event."""
    others = [each for each in taints_of(node) if each["key"] != RECLAIMED]
    taints = [*others, taint(RECLAIMED, NO_SCHEDULE, now)]
    message = "The provider takes this node back soon"
    notice = Notice(regarding(node), WARNING, "SpotReclaim", message, NAME)
    return (Patch(ObjectRef.to(node), {"spec": {"taints": taints}}, notice=notice),)


def unnoticed(node: JsonObject) -> Sequence[Write]:
    taints = [each for each in taints_of(node) if each["key"] != RECLAIMED]
    return (Patch(ObjectRef.to(node), {"spec": {"taints": taints or None}}),)


def gone(node: JsonObject, now: str = "") -> Sequence[Write]:
    """The node goes at once, and its machine with it, if it has one."""
    del now
    machine = owner_key(node, INSTANCE)
    node_gone = Delete(ObjectRef.to(node))
    return (
        (node_gone,) if machine is None else (node_gone, Delete(ObjectRef(INSTANCE, machine.name)))
    )


def _annotated(node: JsonObject, value: str | None) -> Patch:
    return Patch(ObjectRef.to(node), {"metadata": {"annotations": {ANNOTATION: value}}})


EFFECTS: Mapping[str, Effect] = {
    SILENT: Effect(silenced, heard, heard),
    GONE: Effect(gone, gone, gone),
    RECLAIM: Effect(noticed, unnoticed, gone),
}


def released(outage: JsonObject, names: Collection[str], reader: Reader) -> list[Write]:
    """What takes a running Outage back from nodes; those that another one holds stay with it."""
    what, own = outage["status"]["what"], outage["metadata"]["name"]
    others = [each for each in reader.list(OUTAGE) if each["metadata"]["name"] != own]
    held = {n for each in others if is_running(each, what) for n in each["status"]["affected"]}
    nodes = found_nodes([name for name in names if name not in held], reader)
    return [write for node in nodes for write in EFFECTS[what].release(node)]


def ended(outage: JsonObject, reader: Reader) -> list[Write]:
    """What happens when its time is over."""
    effect, affected = EFFECTS[outage["status"]["what"]], outage["status"].get("affected") or ()
    if effect.end is effect.release:
        return released(outage, affected, reader)
    return [write for node in found_nodes(affected, reader) for write in effect.end(node)]


def found_nodes(names: Collection[str], reader: Reader) -> list[JsonObject]:
    """Those of these nodes that are there."""
    nodes = (reader.find(ObjectRef(NODE, name)) for name in names)
    return [node for node in nodes if node is not None]


def is_running(outage: JsonObject, what: str) -> bool:
    status = outage.get("status") or {}
    return status.get("phase") == RUNNING and status.get("what") == what
