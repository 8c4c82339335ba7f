"""What the cloud of a cluster offers: its catalogues, and what launches, boots and interrupts."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kubescene.clock import Streams
from kubescene.clock.distributions import Distribution, constant, read_distribution
from kubescene.durations import MINUTE, format_duration, parse_duration
from kubescene.errors import ConfigurationError
from kubescene.karpenter.instance_types import (
    SPOT,
    InstanceCatalogue,
    InstanceType,
    Offering,
    read_catalogue,
)
from kubescene.karpenter.packing import amounts_of
from kubescene.karpenter.requirements import (
    ARCHITECTURE,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    REGISTERED,
    SYSTEM,
    ZONE,
    Requirements,
    from_expressions,
)
from kubescene.types import JsonObject, ReadOnlyObject

FINALIZER = "kubescene.dev/instance"
SOLD_OUT_FOR = 3 * MINUTE
"""So long an offer is not asked for again after the cloud had none."""
NOTICE = 2 * MINUTE
_TIMES = {"boot": ("time", "registration", "ready"), "shutdown": ("time",)}
_NOTHING = constant(0)


class CloudOffers:
    """All catalogues together."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._objects: dict[str, ReadOnlyObject] = {}
        self._catalogue: InstanceCatalogue | None = None
        self._home: dict[str, ReadOnlyObject] = {}
        """The catalogue that a type stands in."""
        self._sold_out: dict[tuple[str, str, str], int] = {}
        """Until when an offer is not to be had: type, zone, capacity type."""
        self.faults: dict[str, str] = {}

    def put(self, name: str, obj: ReadOnlyObject | None) -> None:
        if obj is None:
            self._objects.pop(name, None)
        else:
            self._objects[name] = obj
        self._catalogue = None

    @property
    def is_empty(self) -> bool:
        return not self.catalogue.types

    @property
    def catalogue(self) -> InstanceCatalogue:
        """What can be had; a catalogue that makes no sense is left out, and says why."""
        if self._catalogue is None:
            types: dict[str, InstanceType] = {}
            self._home, self.faults, currency = {}, {}, "USD"
            for name in sorted(self._objects):
                spec = self._objects[name]["spec"]
                given = {key: spec[key] for key in ("instanceTypes", "currency") if key in spec}
                try:
                    read = read_catalogue(given, f"InstanceCatalogue {name}")
                    _ = [self._time(spec, part, each) for part in _TIMES for each in _TIMES[part]]
                    _ = self._interruption(spec)
                    if twice := sorted(types.keys() & read.by_name.keys()):
                        raise ConfigurationError(f"type {twice[0]} stands in another catalogue")
                except (ConfigurationError, ValueError, TypeError) as error:
                    self.faults[name] = str(error)
                    continue
                currency = read.currency
                types |= read.by_name
                self._home |= dict.fromkeys(read.by_name, self._objects[name])
            self._catalogue = InstanceCatalogue(types.values(), currency)
        return self._catalogue

    def at(self, now: int) -> InstanceCatalogue:
        """What can be had at this moment."""
        gone = {key for key, until in self._sold_out.items() if until > now}
        if not gone:
            self._sold_out.clear()
            return self.catalogue
        return self.catalogue.without(gone)

    @property
    def has_sold_out(self) -> bool:
        """Whether something is not asked for at the moment."""
        return bool(self._sold_out)

    def sell_out(self, labels: Mapping[str, str], now: int) -> None:
        """The cloud had none of these."""
        key = labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")
        self._sold_out[key] = now + SOLD_OUT_FOR

    # -- launching -------------------------------------------------------------------------

    def choose(self, requirements: Requirements, now: int) -> tuple[InstanceType, Offering] | None:
        """The cheapest that a claim allows; None if there is nothing."""
        catalogue = self.at(now)
        wanted = requirements.of(INSTANCE_TYPE)
        best: tuple[float, str, str, str] | None = None
        found: tuple[InstanceType, Offering] | None = None
        for kind in catalogue.types:
            if not wanted.has(kind.name):
                continue
            for each in kind.offers(requirements, catalogue.well_known):
                rank = each.price, kind.name, each.zone, each.capacity_type
                if best is None or rank < best:
                    best, found = rank, (kind, each)
        return found

    def machine(
        self, name: str, claim: ReadOnlyObject, kind: InstanceType, offer: Offering
    ) -> tuple[JsonObject, dict[str, str]]:
        """The Instance of a claim, and the labels that its node will have."""
        labels = node_labels(claim, kind, offer)
        spec = claim["spec"]
        home = self._home[kind.name]["spec"]
        drawn = {
            part: {
                each: format_duration(self._time(home, part, each).draw(self._stream(name, each)))
                for each in names
            }
            for part, names in _TIMES.items()
            if home.get(part)
        }
        taints = [*(spec.get("taints") or ()), *(spec.get("startupTaints") or ())]
        annotations = claim["metadata"].get("annotations") or {}
        return {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "Instance",
            "metadata": {"name": name, "finalizers": [FINALIZER]},
            "spec": {
                "group": labels["karpenter.sh/nodepool"],
                "zone": offer.zone,
                "capacityType": "Spot" if offer.capacity_type == SPOT else "OnDemand",
                "price": {
                    "perHour": plain_price(offer.price_text),
                    "currency": self.catalogue.currency,
                },
                **drawn,
                "template": {
                    "metadata": {
                        "labels": {**labels, REGISTERED: "true"},
                        **({"annotations": dict(annotations)} if annotations else {}),
                    },
                    "spec": {"taints": taints} if taints else {},
                    "status": sizes_of(kind),
                },
            },
        }, labels

    def interruption(self, name: str, kind: str) -> tuple[int, int] | None:
        """How long after its launch a spot machine is told to go, and how long it then has."""
        home = self._home.get(kind)
        found = None if home is None else self._interruption(home["spec"])
        if found is None:
            return None
        after, notice = found
        return after.draw(self._stream(name, "interrupted")), notice.draw(
            self._stream(name, "notice")
        )

    def _interruption(self, spec: Mapping[str, Any]) -> tuple[Distribution, Distribution] | None:
        given = spec.get("interruptions")
        if not given:
            return None
        notice = given.get("notice")
        return read_distribution(given["after"], parse_duration), (
            constant(NOTICE) if notice is None else read_distribution(notice, parse_duration)
        )

    def _time(self, spec: Mapping[str, Any], part: str, name: str) -> Distribution:
        value = (spec.get(part) or {}).get(name)
        return _NOTHING if value is None else read_distribution(value, parse_duration)

    def _stream(self, name: str, what: str) -> Any:
        return self._streams.stream(f"karpenter/{name}/{what}")


def node_labels(claim: ReadOnlyObject, kind: InstanceType, offer: Offering) -> dict[str, str]:
    """Of a claim once it is known what it is."""
    labels = dict(claim["metadata"].get("labels") or {})
    wanted = from_expressions(claim["spec"].get("requirements") or ())
    for key, each in wanted.items():
        if each.only is not None:
            labels[key] = each.only
    for key, each in kind.requirements.items():
        if each.only is not None:
            labels[key] = each.only
    labels[INSTANCE_TYPE], labels[ZONE] = kind.name, offer.zone
    labels[CAPACITY_TYPE] = offer.capacity_type
    labels.setdefault(ARCHITECTURE, str(kind.template["architecture"]))
    labels.setdefault(SYSTEM, str(kind.template["operatingSystem"]))
    return labels


def sizes_of(kind: InstanceType) -> JsonObject:
    """Capacity and allocatable, as a node says them."""

    return {
        "capacity": dict(kind.template["capacity"]),
        "allocatable": amounts_of(kind.allocatable),
    }


def plain_price(text: str) -> str:
    """A price as an Instance may have it: a decimal number of at most twelve places."""
    return f"{round(Decimal(text), 12).normalize():f}"
