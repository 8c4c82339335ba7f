"""What would the cluster autoscaler do with this cluster, and what would that cost?

Nodes that are alike become node groups (or those that a file says), with machines that are there
already; then the autoscaler loops while time passes. It is the real one's loop
(`kubescene.node_autoscaling`) over machines of ours: they take their time to boot, and cost.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from kubescene.actors import Actor
from kubescene.api.kinds import NODE
from kubescene.cluster import ClusterWorld
from kubescene.controllers.builtin.nodes.node_groups import (
    FINALIZER,
    INSTANCE,
    LABEL,
    NODE_GROUP,
    PROVIDER,
    REGISTERED,
)
from kubescene.durations import HOUR, format_duration
from kubescene.errors import ConfigurationError
from kubescene.instruments import Instrument
from kubescene.node_autoscaling.facts import NodesDecided
from kubescene.results.cost.prices import INSTANCE_TYPE, Prices
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.costs import COST_COLUMNS, an_hour, cost_row, monthly, rounded
from kubescene.what_if.selecting import is_control_plane, labels_of, pool_of, zone_of
from kubescene.what_if.worlds import (
    HOSTNAME,
    SHOWN,
    counted,
    instants,
    shortened,
    waiting_pods,
    why_waiting,
)

OF_ONE_NODE = (HOSTNAME, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
FACTOR, LEAST_MOST = 2, 3
"""Without limits a group may be so many times as large as it is, and at least so large."""


class GroupLimits(NamedTuple):
    """How small and how large every group may be; None: twice what it has."""

    least: int = 1
    most: int | None = None


def read_limits(text: str) -> GroupLimits:
    """``MIN:MAX``."""
    found = re.fullmatch(r"(\d{1,6}):(\d{1,6})", text)
    if found is None or int(found[1]) > int(found[2]):
        raise ConfigurationError(f"--limits is {text!r}: say the least and the most, such as 1:20")
    return GroupLimits(int(found[1]), int(found[2]))


class MachinePool(NamedTuple):
    """A node group, and the nodes that are its machines."""

    group: JsonObject
    nodes: Sequence[JsonObject]

    @property
    def name(self) -> str:
        return str(self.group["metadata"]["name"])


# -- groups out of nodes -------------------------------------------------------------------------


def pools_of(
    nodes: Sequence[JsonObject],
    given: Sequence[JsonObject],
    *,
    limits: GroupLimits,
    boot: str,
    prices: Prices | None,
) -> list[MachinePool]:
    """The groups that a file says, else those that nodes with equal pool, type, zone and size are.

    Nodes of the control plane, and with a file those of no group in it, belong to none.
    """
    workers = [node for node in nodes if not is_control_plane(node)]
    if given:
        return [_given(group, workers, boot, prices) for group in given]
    alike: defaultdict[tuple[str, ...], list[JsonObject]] = defaultdict(list)
    for node in workers:
        status = node.get("status") or {}
        offered = status.get("allocatable") or {}
        size = str(offered.get("cpu")), str(offered.get("memory"))
        kind = labels_of(node).get(INSTANCE_TYPE, "")
        alike[pool_of(node), kind, zone_of(node), *size].append(node)
    taken: set[str] = set()
    return [
        _found(members, _name(key[:3], taken), limits, boot, prices)
        for key, members in sorted(alike.items())
    ]


def _name(parts: Sequence[str], taken: set[str]) -> str:
    text = "-".join(filter(None, parts)) or "nodes"
    base = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:40] or "nodes"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


def _found(
    nodes: Sequence[JsonObject], name: str, limits: GroupLimits, boot: str, prices: Prices | None
) -> MachinePool:
    most = max(FACTOR * len(nodes), LEAST_MOST) if limits.most is None else limits.most
    spec: JsonObject = {
        "min": min(limits.least, len(nodes)),
        "max": max(most, len(nodes)),
        "boot": {"time": boot},
    }
    if zone := zone_of(nodes[0]):
        spec["zones"] = [zone]
    return MachinePool(_group(name, spec, nodes, prices), nodes)


def _given(
    group: JsonObject, nodes: Sequence[JsonObject], boot: str, prices: Prices | None
) -> MachinePool:
    name = group["metadata"]["name"]
    members = [node for node in nodes if name in (labels_of(node).get(LABEL), pool_of(node))]
    spec = dict(group.get("spec") or {})
    if not members and "template" not in spec:
        known = ", ".join(sorted({pool_of(node) for node in nodes} - {""})) or "none"
        raise ConfigurationError(
            f"NodeGroup {name} has no nodes in the snapshot and no template: its name must be a "
            f"pool ({known}), or its spec must say what its machines are"
        )
    spec.setdefault("boot", {"time": boot})
    if len(members) > int(spec.get("max", len(members))):
        raise ConfigurationError(
            f"NodeGroup {name}: max is {spec['max']}, and {len(members)} nodes are there"
        )
    return MachinePool(_group(name, spec, members, prices), members)


def _group(
    name: str, spec: JsonObject, nodes: Sequence[JsonObject], prices: Prices | None
) -> JsonObject:
    spec = {**spec, "size": len(nodes)}
    if nodes:
        spec.setdefault("template", template_of(nodes))
    if prices is not None and "price" not in spec:
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        per_hour = prices.of(name, labels_of(nodes[0]) if nodes else labels)
        spec["price"] = {"perHour": f"{float(per_hour):.6f}", "currency": prices.currency}
    numbers = [
        int(found[1])
        for node in nodes
        if (found := re.fullmatch(rf"{re.escape(name)}-(\d{{1,9}})", node["metadata"]["name"]))
    ]
    return {
        "apiVersion": NODE_GROUP.api_version,
        "kind": NODE_GROUP.kind,
        "metadata": {"name": name, "uid": f"node-group-{name}"},
        "spec": spec,
        "status": {"ordered": max(numbers, default=-1) + 1},
    }


def template_of(nodes: Sequence[JsonObject]) -> JsonObject:
    """What all of them have, and the size of the first."""
    labels = {k: v for k, v in labels_of(nodes[0]).items() if k not in (*OF_ONE_NODE, LABEL)}
    for node in nodes[1:]:
        own = labels_of(node)
        labels = {key: value for key, value in labels.items() if own.get(key) == value}
    first = nodes[0]
    taints = [
        each
        for each in (first.get("spec") or {}).get("taints") or ()
        if not str(each.get("key")).startswith("node.kubernetes.io/")
        and all(each in ((node.get("spec") or {}).get("taints") or ()) for node in nodes)
    ]
    status = first.get("status") or {}
    sizes = {part: status[part] for part in ("capacity", "allocatable") if part in status}
    return {
        "metadata": {"labels": labels},
        "spec": {"taints": taints} if taints else {},
        "status": sizes,
    }


def with_machines(objects: Sequence[JsonObject], pools: Sequence[MachinePool]) -> list[JsonObject]:
    """The snapshot's objects, with the groups, and a machine for each of their nodes."""
    group_of = {node["metadata"]["name"]: pool.group for pool in pools for node in pool.nodes}
    found: list[JsonObject] = [pool.group for pool in pools]
    for obj in objects:
        name = obj["metadata"]["name"]
        if obj.get("kind") in (NODE_GROUP.kind, INSTANCE.kind):
            continue
        if obj.get("kind") != NODE.kind or name not in group_of:
            found.append(obj)
            continue
        machine = _machine(obj, group_of[name])
        found += [machine, _of_machine(obj, machine, group_of[name]["metadata"]["name"])]
    return found


def _machine(node: JsonObject, group: JsonObject) -> JsonObject:
    metadata, spec = node["metadata"], group["spec"]
    created = metadata.get("creationTimestamp") or "1970-01-01T00:00:00Z"
    body: JsonObject = {"group": group["metadata"]["name"], "template": spec["template"]}
    if price := spec.get("price"):
        body["price"] = {"perHour": price["perHour"], "currency": price.get("currency", "USD")}
    if zone := zone_of(node):
        body["zone"] = zone
    return {
        "apiVersion": INSTANCE.api_version,
        "kind": INSTANCE.kind,
        "metadata": {
            "name": metadata["name"],
            "uid": f"instance-{metadata['name']}",
            "creationTimestamp": created,
            "labels": {LABEL: body["group"]},
            "finalizers": [FINALIZER],
            "ownerReferences": [_owner(group)],
        },
        "spec": body,
        "status": {"phase": REGISTERED, "node": metadata["name"], "launchedAt": created},
    }


def _of_machine(node: JsonObject, machine: JsonObject, group: str) -> JsonObject:
    metadata = {
        **node["metadata"],
        "labels": {**labels_of(node), LABEL: group},
        "ownerReferences": [_owner(machine)],
    }
    provider_id = f"{PROVIDER}:///{node['metadata']['name']}"
    spec = {**(node.get("spec") or {}), "providerID": provider_id}
    return {**node, "metadata": metadata, "spec": spec}


def _owner(obj: JsonObject) -> JsonObject:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


# -- played --------------------------------------------------------------------------------------


class Decisions(Instrument):
    """What the autoscaler tells."""

    def __init__(self) -> None:
        self.told: list[NodesDecided] = []

    def fact_told(self, actor: Actor, fact: msgspec.Struct) -> None:
        del actor
        if isinstance(fact, NodesDecided):
            self.told.append(fact)


class LoopMoment(NamedTuple):
    """How things are from then on."""

    time: int
    nodes: int
    waiting: int
    per_hour: Fraction


class Course(NamedTuple):
    """What came of it."""

    moments: list[LoopMoment]
    decisions: list[tuple[int, NodesDecided]]
    took: int

    @property
    def cost(self) -> Fraction:
        ends = [*(each.time for each in self.moments[1:]), self.moments[0].time + self.took]
        return sum(
            (
                each.per_hour * Fraction(end - each.time, HOUR)
                for each, end in zip(self.moments, ends, strict=True)
            ),
            Fraction(0),
        )


def played(world: ClusterWorld, decisions: Decisions, within: int) -> Course:
    """Let the autoscaler loop for so long."""
    begun = world.clock.now()
    moments: list[LoopMoment] = []
    told: list[tuple[int, NodesDecided]] = []
    revision = -1
    for now in instants(world, begun + within):
        told += [(now - begun, each) for each in decisions.told]
        decisions.told.clear()
        if world.revision == revision:
            continue
        revision = world.revision
        moment = LoopMoment(
            now, len(world.list("nodes")), len(waiting_pods(world)), _per_hour(world)
        )
        if not moments or moments[-1][1:] != moment[1:]:
            moments.append(moment)
    return Course(moments, told, within)


def _per_hour(world: ClusterWorld) -> Fraction:
    """What the machines that are there cost, also those without a node yet."""
    prices = (each["spec"].get("price") or {} for each in world.list("instances"))
    return sum((Fraction(str(each.get("perHour", 0))) for each in prices), Fraction(0))


def autoscale(
    world: ClusterWorld,
    decisions: Decisions,
    pools: Sequence[MachinePool],
    waited: Mapping[str, JsonObject],
    unknown: Sequence[str],
    *,
    within: int,
    has_limits: bool,
    currency: str,
) -> Answer:
    """The answer, in a world that may be changed and has these pools."""
    course = played(world, decisions, within)
    first, last = course.moments[0], course.moments[-1]
    ordered = sum(each.after - each.before for _, fact in course.decisions for each in fact.ordered)
    removed = sum(len(fact.removed) for _, fact in course.decisions)
    left = waiting_pods(world)
    waiting = {name: pod for name, pod in left.items() if name not in waited}
    told = [*unknown]
    if not has_limits:
        told.append(
            "how large groups may be: here from 1 to twice what they have (--limits, --groups)"
        )
    told.append("your autoscaler's flags: here its defaults, where --autoscaler-flags says nothing")
    money = ""
    if currency:
        money = (
            f" An hour costs {an_hour(last.per_hour)} {currency} instead of "
            f"{an_hour(first.per_hour)}: {monthly(first.per_hour - last.per_hour)} a month less."
        )
    measures: dict[str, Any] = {
        "groups": len(pools),
        "nodes_before": first.nodes,
        "nodes_after": last.nodes,
        "nodes_most": max(each.nodes for each in course.moments),
        "ordered": ordered,
        "removed": removed,
        "pending": len(waiting),
        "waiting": len(left),
    }
    if currency:
        measures |= {
            "cost_before": an_hour(first.per_hour),
            "cost_after": an_hour(last.per_hour),
            "cost": rounded(course.cost),
        }
    placed = len(waited.keys() - left.keys())
    return Answer(
        question="autoscale",
        unknown=told,
        sentence=(
            f"In {format_duration(within)} the cluster autoscaler would order "
            f"{counted(ordered, 'node')} and give back {removed}: {last.nodes} instead of "
            f"{first.nodes}. {placed} of {counted(len(waited), 'pod')} that waited have a place "
            f"then, and {len(waiting)} others wait.{money}"
        ),
        tables=[*_tables(world, course, pools, left, currency)],
        measures=measures,
        closer=["kubescene run SCENARIO --from SNAPSHOT plays it with every decision explained"],
    )


def _tables(
    world: ClusterWorld,
    course: Course,
    pools: Sequence[MachinePool],
    left: Mapping[str, JsonObject],
    currency: str,
) -> Iterator[AnswerTable]:
    sizes = {each["metadata"]["name"]: each["spec"] for each in world.list("nodegroups")}
    rows: list[tuple[Cell, ...]] = []
    for pool in pools:
        spec: JsonObject = sizes.get(pool.name) or pool.group["spec"]
        limits = f"{spec.get('min', 0)}:{spec.get('max', '-')}"
        rows.append((pool.name, limits, len(pool.nodes), int(spec.get("size", 0))))
    yield AnswerTable("Groups", ("group", "limits", "nodes", "nodes then"), rows[:SHOWN])
    lines = [line for time, fact in course.decisions for line in _decided(time, fact)]
    if lines:
        yield AnswerTable("What it decides", ("after", "what", "why"), lines[:SHOWN])
    if len(course.moments) > 1:
        begun = course.moments[0].time
        moments: list[tuple[Cell, ...]] = [
            (format_duration(each.time - begun), each.nodes, each.waiting, an_hour(each.per_hour))
            for each in course.moments
        ]
        names = "after", "nodes", "waiting", "cost an hour"
        cut = 3 if currency else 2
        shown = [each[: cut + 1] for each in moments[:SHOWN]]
        yield AnswerTable("Course", names[: cut + 1], shown)
    if currency:
        first, last = course.moments[0], course.moments[-1]
        costs = [cost_row("now", first.per_hour), cost_row("then", last.per_hour)]
        yield AnswerTable(f"What nodes cost ({currency})", COST_COLUMNS, costs)
    newest = course.decisions[-1][1] if course.decisions else NodesDecided()
    if staying := newest.staying:
        yield AnswerTable("Nodes that stay", ("node", "why"), [*sorted(staying.items())[:SHOWN]])
    if left:
        reasons: list[tuple[Cell, ...]] = [
            (name, _why(pod, newest.unhelped.get(name, {})))
            for name, pod in sorted(left.items())[:SHOWN]
        ]
        yield AnswerTable("Pods that wait then", ("pod", "why"), reasons)


def _why(pod: JsonObject, by_group: Mapping[str, str]) -> str:
    told = [f"{group}: {why}" for group, why in sorted(by_group.items())]
    return "; ".join([why_waiting(pod), *told[:3]])


def _decided(time: int, fact: NodesDecided) -> Iterator[tuple[Cell, ...]]:
    after = format_duration(time) if time else "at once"
    for each in fact.ordered:
        yield after, f"{each.group} from {each.before} to {each.after}", fact.why_ordered
    if fact.removed:
        names = shortened(each.node for each in fact.removed)
        moved = sum(len(each.evicted) for each in fact.removed)
        yield after, f"gives back {names}", f"not needed; {counted(moved, 'pod')} moved"
    if fact.error:
        yield after, "fails", fact.error
