"""The provider over NodeGroups and Instances: orders are sizes, machines are Instances."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubescene.api.own_kinds import GROUP, own_kind
from kubescene.api.quantity import milli_value, value
from kubescene.api.records.changes import Change, ChangeType
from kubescene.client import Client, ObjectRef
from kubescene.errors import ApiError, NotFoundError
from kubescene.node_autoscaling.provider import (
    Instance,
    InstanceError,
    InstanceState,
    ProviderError,
)
from kubescene.types import JsonObject

NODE_GROUP, INSTANCE = own_kind("NodeGroup"), own_kind("Instance")
LABEL = f"{GROUP}/node-group"
ZONE = "topology.kubernetes.io/zone"
SCHEME = "kubescene:///"
"""How provider ids of our machines begin."""


class Machines:
    """All NodeGroups that are to be autoscaled, and their Instances."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.changed = False
        self.wrote = False
        self.specs: dict[str, JsonObject] = {}
        self._instances: dict[str, JsonObject] = {}
        self._of_group: dict[str, dict[str, Instance]] = {}

    def group_changed(self, change: Change) -> None:
        self.changed = True
        name = change.record.name
        if change.type is ChangeType.DELETED:
            self.specs.pop(name, None)
        else:
            self.specs[name] = change.object

    def instance_changed(self, change: Change) -> None:
        self.changed = True
        name = change.record.name
        before = self._instances.pop(name, None)
        if before is not None and change.type is ChangeType.DELETED:
            self._of_group[before["spec"]["group"]].pop(name, None)
        if change.type is not ChangeType.DELETED:
            machine = self._instances[name] = change.object
            self._of_group.setdefault(machine["spec"]["group"], {})[name] = _seen(machine)

    # -- the provider ----------------------------------------------------------------------

    def groups(self) -> Sequence["MachineGroup"]:
        return [
            MachineGroup(self, self.specs[name])
            for name in sorted(self.specs)
            if _is_autoscaled(self.specs[name])
        ]

    def group_of(self, provider_id: str, name: str) -> "MachineGroup | None":
        machine = self._instances.get(_name(provider_id, name))
        group = None if machine is None else self.specs.get(machine["spec"]["group"])
        if group is None or not _is_autoscaled(group):
            return None
        return MachineGroup(self, group)

    def has_instance(self, provider_id: str, name: str) -> bool:
        """Nodes that are no machines of ours are as good as their conditions say."""
        return not provider_id.startswith(SCHEME) or _name(provider_id, name) in self._instances

    def instances_of(self, group: str) -> Sequence[Instance]:
        return tuple(self._of_group.get(group, {}).values())

    def size_of(self, group: str) -> int:
        """How many machines a group is to have."""
        spec = self.specs[group]["spec"] if group in self.specs else {}
        return int(spec.get("size", spec.get("min", 0)))

    def node_price(self, node: JsonObject) -> float | None:
        group = self.specs.get((node["metadata"].get("labels") or {}).get(LABEL, ""))
        return None if group is None else _hourly(group)

    def pod_price(self, pod: JsonObject) -> float:
        """Its share of the machine on which that share is cheapest."""
        cpu = memory = 0
        for container in pod["spec"].get("containers") or ():
            requests = (container.get("resources") or {}).get("requests") or {}
            cpu += milli_value(requests.get("cpu", 0))
            memory += value(requests.get("memory", 0))
        shares = (_price_of_share(each, cpu, memory) for each in self.specs.values())
        return min((each for each in shares if each is not None), default=0.0)


class MachineGroup:
    """One NodeGroup."""

    def __init__(self, machines: Machines, obj: JsonObject) -> None:
        self._machines = machines
        self._known = obj
        self.id: str = obj["metadata"]["name"]

    @property
    def _spec(self) -> JsonObject:
        """As it is now: another look at the group may have resized it."""
        spec: JsonObject = self._machines.specs.get(self.id, self._known)["spec"]
        return spec

    @property
    def min_size(self) -> int:
        return int(self._spec.get("min", 0))

    @property
    def max_size(self) -> int:
        return int(self._spec["max"])

    @property
    def options(self) -> Mapping[str, object]:
        return self._spec.get("options") or {}

    def target_size(self) -> int:
        return int(self._spec.get("size", self.min_size))

    def instances(self) -> Sequence[Instance]:
        return self._machines.instances_of(self.id)

    def template(self) -> JsonObject | None:
        """A Node as the provider would make it; None if nobody said how large it is."""
        template = self._spec.get("template") or {}
        status = template.get("status") or {}
        if not status.get("capacity") and not status.get("allocatable"):
            return None
        metadata = template.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), LABEL: self.id}
        if zones := self._spec.get("zones"):
            labels[ZONE] = zones[0]
        capacity = status.get("capacity") or status["allocatable"]
        sizes = {"capacity": capacity, "allocatable": status.get("allocatable") or capacity}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.id,
                "labels": labels,
                "annotations": metadata.get("annotations") or {},
            },
            "spec": dict(template.get("spec") or {}),
            "status": {**status, **sizes},
        }

    def increase(self, by: int) -> None:
        self._resize(self.target_size() + by)

    def decrease_target(self, by: int) -> None:
        size = self.target_size() - by
        there = sum(each.state is InstanceState.RUNNING for each in self.instances())
        if size < there:
            raise ProviderError(
                f"attempt to delete existing nodes targetSize:{self.target_size()} "
                f"delta:{-by} existingNodes: {there}"
            )
        self._resize(size)

    def delete(self, nodes: Sequence[str]) -> None:
        client = self._machines.client
        for each in nodes:
            ref = ObjectRef(INSTANCE, _name(each, each))
            try:
                client.delete(ref)
            except NotFoundError:
                continue
            except ApiError as error:
                raise ProviderError(error.message) from error
        self._resize(self.target_size() - len(nodes))

    def _resize(self, size: int) -> None:
        ref = ObjectRef(NODE_GROUP, self.id)
        try:
            record = self._machines.client.patch(ref, {"spec": {"size": size}})
        except ApiError as error:
            raise ProviderError(error.message) from error
        self._machines.client.wait_seen(record.revision)
        self._machines.wrote = True


def _is_autoscaled(group: JsonObject) -> bool:
    """A group that makes no sense is left alone; its status says why."""
    spec = group["spec"]
    if "max" not in spec or group["metadata"].get("deletionTimestamp"):
        return False
    return bool(spec.get("min", 0) <= spec.get("size", spec.get("min", 0)) <= spec["max"])


def _name(provider_id: str, name: str) -> str:
    return provider_id.removeprefix(SCHEME) if provider_id.startswith(SCHEME) else name


def _seen(machine: JsonObject) -> Instance:
    ident = f"{SCHEME}{machine['metadata']['name']}"
    status = machine.get("status") or {}
    if machine["metadata"].get("deletionTimestamp"):
        return Instance(ident, InstanceState.DELETING)
    match status.get("phase"):
        case "Registered":
            return Instance(ident)
        case "Failed":
            error: JsonObject = status.get("error") or {}
            told = [error.get(name, "") for name in ("class", "code", "message")]
            return Instance(ident, InstanceState.CREATING, InstanceError(*told))
    return Instance(ident, InstanceState.CREATING)


def _hourly(group: JsonObject) -> float | None:
    price: Mapping[str, Any] | None = group["spec"].get("price")
    if not price:
        return None
    is_spot = group["spec"].get("capacityType") == "Spot"
    return float(price.get("spot", price["perHour"]) if is_spot else price["perHour"])


def _price_of_share(group: JsonObject, cpu: int, memory: int) -> float | None:
    """Half of the price is for cpu, half for memory."""
    price = _hourly(group)
    capacity = ((group["spec"].get("template") or {}).get("status") or {}).get("capacity") or {}
    cores, size = milli_value(capacity.get("cpu", 0)), value(capacity.get("memory", 0))
    if price is None or not cores or not size:
        return None
    return price * (cpu / cores + memory / size) / 2
