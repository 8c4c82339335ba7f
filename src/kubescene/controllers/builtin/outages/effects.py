"""What Outages do to nodes, and how that is taken back: ordinary writes.

What an Outage alone can say of a node (slow pulls, stolen CPU) is an annotation of its name, so
that several of them go on beside each other. What a node either is or is not (silent, given notice)
several of them share: the last one that ends takes it back.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from kubescene.api.kinds import NODE
from kubescene.api.own_kinds import GROUP
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.text.encoding import encode
from kubescene.client import ObjectRef, Reader
from kubescene.clock import parse_time
from kubescene.controllers.authoring import owner_key
from kubescene.controllers.builtin.nodes.node_conditions import NO_SCHEDULE, taint, taints_of
from kubescene.controllers.builtin.nodes.node_groups import (
    FAILING,
    INSTANCE,
    NODE_GROUP,
    SLOW,
    SOLD_OUT,
)
from kubescene.controllers.builtin.outages.definition import (
    BOOTS_FAIL,
    BOOTS_SLOW,
    GAP,
    GONE,
    NO_CAPACITY,
    OF_GROUPS,
    OUTAGE,
    PULL,
    RECLAIM,
    SILENT,
    STOLEN,
)
from kubescene.controllers.kubelet.heartbeats import ANNOTATION, STOPPED
from kubescene.controllers.kubelet.images import PULLS
from kubescene.controllers.reconcile import Delete, Patch, Write
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject, Nanoseconds
from kubescene.usage.measuring import RESOLUTION

NAME = "outage"
"""The controller's."""
RECLAIMED = f"{GROUP}/spot-reclaim"
STEALS = f"stolen.{GROUP}/"
"""And those that name a share of the node's CPU that is gone."""
LONGEST_NAME = 63
"""Of an annotation, behind its prefix."""
RUNNING = "Running"

Begin = Callable[[JsonObject, JsonObject, str], Sequence[Write]]
"""From the Outage, the node and the instant."""
End = Callable[[JsonObject, JsonObject], Sequence[Write]]


class Effect(NamedTuple):
    """What happens to a node in the beginning, if it is let off, and in the end."""

    begin: Begin
    release: End
    end: End
    is_shared: bool = True
    """Whether several Outages on a node do no more than one."""


def silenced(outage: JsonObject, node: JsonObject, now: str) -> Sequence[Write]:
    del outage, now
    return (_annotated(node, ANNOTATION, STOPPED),)


def heard(outage: JsonObject, node: JsonObject) -> Sequence[Write]:
    del outage
    return (_annotated(node, ANNOTATION, None),)


def noticed(outage: JsonObject, node: JsonObject, now: str) -> Sequence[Write]:
    """The notice that a node will be reclaimed: a taint and an event."""
    del outage
    others = [each for each in taints_of(node) if each["key"] != RECLAIMED]
    taints = [*others, taint(RECLAIMED, NO_SCHEDULE, now)]
    message = "The provider takes this node back soon"
    notice = Notice(regarding(node), WARNING, "SpotReclaim", message, NAME)
    return (Patch(ObjectRef.to(node), {"spec": {"taints": taints}}, notice=notice),)


def unnoticed(outage: JsonObject, node: JsonObject) -> Sequence[Write]:
    del outage
    taints = [each for each in taints_of(node) if each["key"] != RECLAIMED]
    return (Patch(ObjectRef.to(node), {"spec": {"taints": taints or None}}),)


def gone(outage: JsonObject, node: JsonObject, now: str = "") -> Sequence[Write]:
    """The node goes at once, and its machine with it, if it has one."""
    del outage, now
    machine = owner_key(node, INSTANCE)
    node_gone = Delete(ObjectRef.to(node))
    return (
        (node_gone,) if machine is None else (node_gone, Delete(ObjectRef(INSTANCE, machine.name)))
    )


def pulls_troubled(outage: JsonObject, node: JsonObject, now: str) -> Sequence[Write]:
    """Pulls on the node take longer or fail; the kubelet reads it."""
    del now
    spec = outage["spec"]
    fields = {"time": "pullTime", "error": "pullError", "pods": "pods", "namespace": "namespace"}
    trouble = {name: spec[field] for name, field in fields.items() if spec.get(field) is not None}
    return (_annotated(node, own_annotation(PULLS, outage), encode(trouble).decode()),)


def pulls_mended(outage: JsonObject, node: JsonObject) -> Sequence[Write]:
    return (_annotated(node, own_annotation(PULLS, outage), None),)


def robbed(outage: JsonObject, node: JsonObject, now: str) -> Sequence[Write]:
    """A share of its CPU is gone, though the node does not know: what it offers stays."""
    del now
    share = str(outage["spec"]["cpuShare"])
    return (_annotated(node, own_annotation(STEALS, outage), share),)


def restored(outage: JsonObject, node: JsonObject) -> Sequence[Write]:
    return (_annotated(node, own_annotation(STEALS, outage), None),)


def nothing(outage: JsonObject, node: JsonObject, now: str = "") -> Sequence[Write]:
    """Whoever scrapes nodes reads the Outage itself (`unscraped`)."""
    del outage, node, now
    return ()


def sold_out(outage: JsonObject, group: JsonObject, now: str) -> Sequence[Write]:
    """Orders of a group fail; its provider reads it."""
    del now
    told = {name: outage["spec"][name] for name in ("code", "message") if name in outage["spec"]}
    return (_annotated(group, own_annotation(SOLD_OUT, outage), encode(told).decode()),)


def slowed(outage: JsonObject, group: JsonObject, now: str) -> Sequence[Write]:
    """Machines that are ordered while it lasts boot so many times as long."""
    del now
    factor = str(outage["spec"]["bootFactor"])
    return (_annotated(group, own_annotation(SLOW, outage), factor),)


def failing(outage: JsonObject, group: JsonObject, now: str) -> Sequence[Write]:
    """A share of the machines that are ordered while it lasts does not boot."""
    del now
    spec = outage["spec"]
    told = {name: spec[name] for name in ("code", "message") if name in spec}
    told["share"] = spec.get("failShare", 1)
    return (_annotated(group, own_annotation(FAILING, outage), encode(told).decode()),)


def group_restored(prefix: str) -> End:
    def restore(outage: JsonObject, group: JsonObject) -> Sequence[Write]:
        return (_annotated(group, own_annotation(prefix, outage), None),)

    return restore


def own_annotation(prefix: str, outage: JsonObject) -> str:
    """The annotation of an Outage; names that are too long for one end in their digest."""
    name: str = outage["metadata"]["name"]
    if len(name) > LONGEST_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:10]
        name = f"{name[: LONGEST_NAME - 11]}-{digest}"
    return prefix + name


def _annotated(node: JsonObject, annotation: str, value: str | None) -> Patch:
    return Patch(ObjectRef.to(node), {"metadata": {"annotations": {annotation: value}}})


EFFECTS: Mapping[str, Effect] = {
    SILENT: Effect(silenced, heard, heard),
    GONE: Effect(gone, gone, gone),
    RECLAIM: Effect(noticed, unnoticed, gone),
    PULL: Effect(pulls_troubled, pulls_mended, pulls_mended, is_shared=False),
    STOLEN: Effect(robbed, restored, restored, is_shared=False),
    GAP: Effect(nothing, nothing, nothing, is_shared=False),
    **{
        what: Effect(begin, restore, restore, is_shared=False)
        for what, begin, restore in (
            (NO_CAPACITY, sold_out, group_restored(SOLD_OUT)),
            (BOOTS_SLOW, slowed, group_restored(SLOW)),
            (BOOTS_FAIL, failing, group_restored(FAILING)),
        )
    },
}


def released(outage: JsonObject, names: Collection[str], reader: Reader) -> list[Write]:
    """What takes a running Outage back from nodes; those that another one holds stay with it."""
    effect = EFFECTS[outage["status"]["what"]]
    held = _held_by_others(outage, reader) if effect.is_shared else ()
    places = found_places(outage, [name for name in names if name not in held], reader)
    return [write for place in places for write in effect.release(outage, place)]


def _held_by_others(outage: JsonObject, reader: Reader) -> set[str]:
    what, own = outage["status"]["what"], outage["metadata"]["name"]
    others = [each for each in reader.list(OUTAGE) if each["metadata"]["name"] != own]
    return {n for each in others if is_running(each, what) for n in each["status"]["affected"]}


def ended(outage: JsonObject, reader: Reader) -> list[Write]:
    """What happens when its time is over."""
    effect, affected = EFFECTS[outage["status"]["what"]], outage["status"].get("affected") or ()
    if effect.end is effect.release:
        return released(outage, affected, reader)
    places = found_places(outage, affected, reader)
    return [write for place in places for write in effect.end(outage, place)]


def found_places(outage: JsonObject, names: Collection[str], reader: Reader) -> list[JsonObject]:
    """Those of these nodes, or of these node groups, that are there."""
    kind = place_of(outage["status"]["what"])
    places = (reader.find(ObjectRef(kind, name)) for name in names)
    return [place for place in places if place is not None]


def place_of(what: str) -> GroupVersionKind:
    """Where it goes wrong: at nodes, or at node groups."""
    return NODE_GROUP if what in OF_GROUPS else NODE


def is_running(outage: JsonObject, what: str) -> bool:
    status = outage.get("status") or {}
    return status.get("phase") == RUNNING and status.get("what") == what


def unscraped(outages: Iterable[JsonObject], time: Nanoseconds) -> set[str]:
    """The nodes of which the scrape at ``time`` says nothing.

    What is used is known from two scrapes: the first one after a gap has nothing to say either.
    """
    statuses = (each.get("status") or {} for each in outages)
    gaps = [each for each in statuses if each.get("what") in (GAP, SILENT) and "began" in each]
    return {name for each in gaps if _is_gap(each, time) for name in each.get("affected") or ()}


def _is_gap(status: JsonObject, time: Nanoseconds) -> bool:
    began, ends = parse_time(status["began"]), status.get("ends")
    return began <= time and (ends is None or time - RESOLUTION < parse_time(ends))
