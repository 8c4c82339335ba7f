"""ResourceSlices and their devices as the allocator sees them: read once, immutable, shared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kubescene.api.quantity import Quantity, parse
from kubescene.api.selectors.node_selectors import NodeSelector, node_selector
from kubescene.scheduler.state.memo import Shared
from kubescene.types import ReadOnlyObject


class DeviceId(NamedTuple):
    """Names one device of the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class PoolId(NamedTuple):
    """Names one pool of a driver."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DevicePlacement(NamedTuple):
    """Which nodes can reach a slice or device."""

    node_name: str | None
    all_nodes: bool
    selector: NodeSelector | None
    written: ReadOnlyObject | None
    """The node selector as it stands in the slice."""

    @property
    def is_given(self) -> bool:
        return bool(self.node_name) or self.all_nodes or self.selector is not None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.node_name:
            return self.node_name == name
        if self.all_nodes:
            return True
        return self.selector is not None and self.selector.matches(labels, name)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A capacity of a device and how shares of it may be cut."""

    value: Quantity
    policy: ReadOnlyObject | None


class Device(Shared):
    """One device. What selectors say about it is kept in it (`Shared.compiled` and `selected`)."""

    __slots__ = (
        "attributes",
        "binding_conditions",
        "binding_failure_conditions",
        "binds_to_node",
        "capacity",
        "consumes",
        "id",
        "is_shareable",
        "placement",
        "selected",
        "taints",
    )

    def __init__(self, id: DeviceId, spec: ReadOnlyObject, placement: DevicePlacement) -> None:
        super().__init__()
        self.id = id
        self.placement = placement
        self.attributes: Mapping[str, ReadOnlyObject] = spec.get("attributes") or {}
        self.capacity = {
            name: Capacity(parse(each.get("value", "0")), each.get("requestPolicy"))
            for name, each in (spec.get("capacity") or {}).items()
        }
        self.is_shareable = bool(spec.get("allowMultipleAllocations"))
        self.taints: Sequence[ReadOnlyObject] = spec.get("taints") or ()
        self.consumes = tuple(
            (each["counterSet"], counters_of(each)) for each in spec.get("consumesCounters") or ()
        )
        self.binds_to_node = bool(spec.get("bindsToNode"))
        self.binding_conditions: Sequence[str] = spec.get("bindingConditions") or ()
        self.binding_failure_conditions: Sequence[str] = spec.get("bindingFailureConditions") or ()
        self.selected: dict[str, Any] = {}
        """What each selector expression says about this device; see `selectors`."""

    def attribute(self, name: str) -> ReadOnlyObject | None:
        """The attribute of a fully qualified name; the driver is the default domain."""
        found = self.attributes.get(name)
        if found is not None:
            return found
        domain, slash, identifier = name.partition("/")
        return self.attributes.get(identifier) if slash and domain == self.id.driver else None


class Slice(Shared):
    """One ResourceSlice."""

    __slots__ = (
        "count",
        "counter_sets",
        "devices",
        "generation",
        "is_per_device",
        "name",
        "placement",
        "pool",
    )

    def __init__(self, obj: ReadOnlyObject) -> None:
        super().__init__()
        spec = obj["spec"]
        pool = spec["pool"]
        self.name: str = obj["metadata"]["name"]
        self.pool = PoolId(spec["driver"], pool["name"])
        self.generation: int = pool.get("generation") or 0
        self.count: int = pool.get("resourceSliceCount") or 0
        self.placement = _placement(spec)
        self.is_per_device = bool(spec.get("perDeviceNodeSelection"))
        self.counter_sets = tuple(
            (each["name"], counters_of(each)) for each in spec.get("sharedCounters") or ()
        )
        self.devices = tuple(self._device(each) for each in spec.get("devices") or ())

    @property
    def node(self) -> str:
        """The one node this slice is for; empty if it concerns others as well."""
        return "" if self.counter_sets else self.placement.node_name or ""

    def is_relevant(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node needs this slice. Counters are needed wherever the pool is."""
        if self.counter_sets:
            return True
        if self.is_per_device and not self.placement.is_given:
            return any(each.placement.matches(name, labels) for each in self.devices)
        return self.placement.matches(name, labels)

    def _device(self, spec: ReadOnlyObject) -> Device:
        placement = _placement(spec) if self.is_per_device else self.placement
        return Device(DeviceId(*self.pool, spec["name"]), spec, placement)


def counters_of(holder: ReadOnlyObject) -> dict[str, int]:
    """Counters by name, in nano-units."""
    counters = holder.get("counters") or {}
    return {name: parse(each["value"]).nanos for name, each in counters.items()}


def _placement(spec: ReadOnlyObject) -> DevicePlacement:
    selector = spec.get("nodeSelector")
    return DevicePlacement(
        spec.get("nodeName"),
        bool(spec.get("allNodes")),
        None if selector is None else node_selector(selector),
        selector,
    )
