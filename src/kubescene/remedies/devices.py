"""For pods that claim devices: a pod less that holds some, or a node more that brings its own.

Who holds a device is written in claims, which controllers keep: so a change is made in a whole fork
of the world, with all its controllers, and the pod is placed there or not.
"""

from collections.abc import Hashable, Iterator, Sequence

import orjson

from kubescene.errors import ApiError
from kubescene.remedies.nodes import as_created, shape, twin_of
from kubescene.remedies.remedy import (
    NODE_COST,
    VICTIM_COST,
    Edit,
    Remedy,
    RemedyKind,
    apply_remedy,
    fresh,
)
from kubescene.remedies.trials import Trials
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.types import JsonObject

HOLDERS_TRIED = 20
SHAPES_TRIED = 3
SLICE = "ResourceSlice"


def device_holders(trials: Trials, reasons: frozenset[str]) -> Iterator[Remedy]:
    """The first pod without which the pod finds its devices, the least important first."""
    del reasons
    for pod in holders(trials)[:HOLDERS_TRIED]:
        metadata, node = pod["metadata"], pod["spec"]["nodeName"]
        name, namespace = metadata["name"], metadata["namespace"]
        text = f"delete {namespace}/{name} from {node}, and its devices are free"
        edits = (Edit("delete", "Pod", name, namespace),)
        if place := placed_after(trials, edits):
            yield Remedy(RemedyKind.VICTIM, trials.key, text, VICTIM_COST, place, edits)
            return


def device_nodes(trials: Trials, reasons: frozenset[str]) -> Iterator[Remedy]:
    """A node like another one, with the devices that this one offers."""
    del reasons
    if not claims_of(trials.pod):
        return
    names = {node.name for node in trials.nodes}
    for node, count, own in offering(trials)[:SHAPES_TRIED]:
        twin = twin_of(node, names)
        name = twin["metadata"]["name"]
        edits = (
            Edit("create", "Node", name, object=as_created(twin)),
            *(slice_for(each, node.name, name) for each in own),
        )
        if place := placed_after(trials, edits):
            alike = f" and {count - 1} others" if count > 1 else ""
            text = f"add a node like {node.name}{alike} with its devices (tried as {name})"
            yield Remedy(RemedyKind.NODE, trials.key, text, NODE_COST, place, edits)


def offering(trials: Trials) -> list[tuple[NodeInfo, int, list[JsonObject]]]:
    """The first node of each shape that offers devices, how many have it, and its slices."""
    by_node: dict[str, list[JsonObject]] = {}
    for each in trials.listed("resourceslices"):
        by_node.setdefault(each["spec"].get("nodeName") or "", []).append(each)
    found: dict[Hashable, list[NodeInfo]] = {}
    for node in trials.nodes:
        if node.record is not None and (own := by_node.get(node.name)):
            devices = [(each["spec"]["driver"], each["spec"].get("devices")) for each in own]
            found.setdefault((shape(node), orjson.dumps(devices)), []).append(node)
    groups = sorted(found.values(), key=len, reverse=True)
    return [(group[0], len(group), by_node[group[0].name]) for group in groups]


def claims_of(pod: JsonObject) -> Sequence[JsonObject]:
    found: Sequence[JsonObject] = pod["spec"].get("resourceClaims") or ()
    return found


def holders(trials: Trials) -> list[JsonObject]:
    """Pods on nodes that claim devices, if the pod claims some itself."""
    if not claims_of(trials.pod):
        return []
    there = [each for each in trials.listed("pods") if each["spec"].get("nodeName")]
    return sorted(filter(claims_of, there), key=_importance)


def _importance(pod: JsonObject) -> tuple[int, str, str]:
    metadata = pod["metadata"]
    return pod["spec"].get("priority") or 0, metadata["namespace"], metadata["name"]


def slice_for(known: JsonObject, node: str, twin: str) -> Edit:
    """The same devices on the twin of a node, in a pool of its own."""
    pool = known["spec"]["pool"]
    other = {**pool, "name": str(pool["name"]).replace(node, twin)}
    if other["name"] == pool["name"]:
        other["name"] = f"{pool['name']}-{twin}"
    name = f"{known['metadata']['name']}-{twin}"
    made = {**fresh(known), "spec": {**known["spec"], "nodeName": twin, "pool": other}}
    made["metadata"] = {"name": name, "labels": known["metadata"].get("labels") or {}}
    return Edit("create", SLICE, name, object=made)


def placed_after(trials: Trials, edits: tuple[Edit, ...]) -> str:
    """Where the pod is once these changes were made and everybody has acted; empty if nowhere."""
    world = trials.another_world()
    if world is None:
        return ""
    try:
        apply_remedy(world, Remedy(RemedyKind.NODE, trials.key, "", 0, "", edits))
        namespace, _, name = trials.key.partition("/")
        return str(world.settle().get("Pod", name, namespace)["spec"].get("nodeName") or "")
    except ApiError:
        return ""  # what cannot be done is no remedy
