"""The scenario whose nodes are sized: with so many machines of each group, or with the autoscaler.

Its own NodeGroups are sized where they stand. Groups of a file take the place of everything that
nodes come from: Nodes, NodeSets and NodeGroups, also those of a snapshot, whose pods wait then for
a place again.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.controllers.builtin.nodes.node_groups import NODE_GROUP
from kubescene.controllers.builtin.nodes.nodeset import NODE_SET
from kubescene.errors import ConfigurationError
from kubescene.results.cost.prices import Prices
from kubescene.runs.requests import RunRequest
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import operations_of
from kubescene.sizing.groups import Mix, SizedGroup, sized_group
from kubescene.snapshots.snapshot import Snapshot, read_snapshot
from kubescene.types import JsonObject
from kubescene.what_if.placing import as_waiting
from kubescene.what_if.worlds import is_daemon, is_live, node_of

OF_NODES = (NODE_GROUP.kind, NODE_SET.kind, "Node")
POOLS = ("NodePool", "EC2NodeClass", "NodeClaim")
LISTED = "size-group-"


class SizedScenario:
    """A run to be, with places in it for groups."""

    def __init__(self, request: RunRequest, groups: Sequence[SizedGroup], first: int) -> None:
        self.groups = groups
        self.request = request
        self.first = first
        """The step in which the first of the groups comes; whoever waits before it must."""

    def with_mix(self, mix: Mix) -> RunRequest:
        """So many machines of each group, all of them there at once, and no autoscaler's."""
        sizes = zip(self.groups, mix, strict=True)
        return self._with({group.name: group.with_size(size) for group, size in sizes})

    def with_autoscaler(self, expander: str) -> RunRequest:
        """The cluster autoscaler begins with the least, and time stands still for it."""
        request = self._with({each.name: each.autoscaled() for each in self.groups})
        spec = request.scenario["spec"]
        simulation = spec.get("simulation") or {}
        flags = {**own_flags(request.scenario), "expander": expander, "mode": "Immediate"}
        spec = {**spec, "simulation": {**simulation, "clusterAutoscaler": flags}}
        return replace(request, scenario={**request.scenario, "spec": spec})

    def _with(self, groups: Mapping[str, JsonObject]) -> RunRequest:
        scenario = self.request.scenario
        operations = [
            {**each, "createOperation": {"object": groups[made["metadata"]["name"]]}}
            if (made := made_by(each)).get("kind") == NODE_GROUP.kind
            else each
            for each in scenario["spec"]["operations"]
        ]
        spec = {**scenario["spec"], "operations": operations}
        return replace(self.request, scenario={**scenario, "spec": spec})


def own_flags(scenario: JsonObject) -> JsonObject:
    """What a scenario says of the cluster autoscaler."""
    simulation = scenario["spec"].get("simulation") or {}
    return dict(simulation.get("clusterAutoscaler") or {})


def made_by(operation: Any) -> JsonObject:
    """The object that an operation creates; an empty one if it does not, or has a file of them."""
    made = (operation.get("createOperation") or {}) if isinstance(operation, dict) else {}
    found = made.get("object")
    return found if isinstance(found, dict) else {}


def sized_scenario(
    request: RunRequest, groups: Sequence[JsonObject] | None, prices: Prices | None
) -> SizedScenario:
    """Raises `ConfigurationError` for a scenario in which nothing can be sized."""
    spec = request.scenario.get("spec") or {}
    field, written = operations_of(request.scenario)
    spec = {name: value for name, value in spec.items() if name != field}
    operations = list(expanded(written, request.folder))
    if groups is not None:
        operations = in_place(operations, groups)
    check(operations)
    found = [each for each in operations if made_by(each).get("kind") == NODE_GROUP.kind]
    if not found:
        raise ConfigurationError(
            "there is no NodeGroup in it, so nothing to size: name a file of them by --groups"
        )
    scenario = {**request.scenario, "spec": {**spec, "operations": operations}}
    return SizedScenario(
        replace(request, scenario=scenario),
        [sized_group(made_by(each), prices) for each in found],
        min(int(each.get("step", 0)) for each in found),
    )


def expanded(operations: Sequence[Any], folder: Path | None) -> Iterator[Any]:
    """A file in which there are groups becomes an operation for each of its objects."""
    for operation in operations:
        made = operation.get("createOperation") if isinstance(operation, dict) else None
        made = made if isinstance(made, dict) else {}
        name = made.get("objectFrom")
        if not isinstance(name, str) or folder is None:
            yield operation
            continue
        objects = ScenarioFolder(folder).read(name)
        if not any(each.get("kind") in OF_NODES for each in objects):
            yield operation
            continue
        for number, each in enumerate(objects):
            body = {**{k: v for k, v in made.items() if k != "objectFrom"}, "object": each}
            own = f"{operation.get('id') or name}-{number}"
            yield {**operation, "id": own, "createOperation": body}


def in_place(operations: Sequence[Any], groups: Sequence[JsonObject]) -> list[Any]:
    """The operations with these groups in place of all that nodes come from."""
    kept = [each for each in operations if made_by(each).get("kind") not in OF_NODES]
    steps = [each["step"] for each in operations if isinstance(each, dict) and "step" in each]
    first = min(steps, default=1)
    own = [
        {
            "id": f"{LISTED}{each['metadata']['name']}",
            "step": first,
            "createOperation": {"object": each},
        }
        for each in groups
    ]
    return [*own, *kept]


def check(operations: Sequence[Any]) -> None:
    """Refuse what would make other nodes, or change the sizes that are searched."""
    for operation in operations:
        made = made_by(operation)
        if made.get("kind") in POOLS:
            raise ConfigurationError(
                f"there is a {made['kind']}: its nodes come by themselves; size knows NodeGroups"
            )
        if made.get("kind") == NODE_GROUP.kind and operation["createOperation"].get("count"):
            raise ConfigurationError(
                "NodeGroups that an operation makes by count cannot be sized: write them one by one"
            )
        for body in operation.values() if isinstance(operation, dict) else ():
            about = body.get("typeMeta") if isinstance(body, dict) else None
            if isinstance(about, dict) and about.get("kind") == NODE_GROUP.kind:
                raise ConfigurationError(
                    f"operation {operation.get('id')!r} changes a NodeGroup, whose size is what is "
                    "searched: leave it out"
                )


# -- snapshots -----------------------------------------------------------------------------------


def is_scenario(documents: Sequence[Any]) -> bool:
    return any(isinstance(each, dict) and each.get("kind") == SCENARIO.kind for each in documents)


def of_snapshot(path: Path, folder: Path) -> tuple[RunRequest, list[str]]:
    """The scenario in which the pods of a snapshot want places; and what is not known of it.

    The snapshot without its nodes is written to a folder that lasts as long as the question.
    """
    snapshot = read_snapshot(path)
    own = copy(snapshot)
    own.objects = list(homeless(snapshot))
    file = folder / "sized.json"
    own.write(file)
    scenario: JsonObject = {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": "size"},
        "spec": {"operations": [{"id": "end", "step": 1, "doneOperation": {}}]},
    }
    return RunRequest(scenario=scenario, snapshot=file), snapshot.unknowns


def homeless(snapshot: Snapshot) -> Iterator[JsonObject]:
    """The objects without nodes and what belongs to them; pods wait as before they had a place."""
    for obj in snapshot.objects:
        kind = obj.get("kind")
        if kind in (*OF_NODES, "CSINode", "Instance", "ResourceSlice"):
            continue
        if kind != "Pod" or not node_of(obj):
            yield obj
        elif is_live(obj) and not is_daemon(obj):
            yield as_waiting(obj)
