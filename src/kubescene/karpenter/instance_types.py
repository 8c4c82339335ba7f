"""Instance types: what a cloud offers, where, for how much; the catalogue in which they stand.

::

    currency: USD
    instanceTypes:
    - name: m-4x
      architecture: amd64
      capacity: {cpu: "4", memory: 16Gi, pods: "110"}
      overhead: {cpu: 80m, memory: 1Gi}
      labels: {example.com/family: m}
      offers:
      - {zone: a, capacityType: on-demand, price: "0.20"}
      - {zone: a, capacityType: spot, price: "0.06"}
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kubescene.api.quantity import QuantityError, parse
from kubescene.api.resource_requests import Nanos
from kubescene.errors import ConfigurationError
from kubescene.karpenter.requirements import (
    ARCHITECTURE,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    SYSTEM,
    WELL_KNOWN,
    ZONE,
    LabelRequirement,
    Requirements,
)
from kubescene.types import JsonObject

ON_DEMAND, SPOT = "on-demand", "spot"
CAPACITY_TYPES = (ON_DEMAND, SPOT)
MOST_TYPES = 600
"""So many types of a claim are given to the cloud to choose from, the cheapest ones."""
INFINITE = 1e12
"""What nobody can have costs."""
_PODS = "110"


class Offering(Struct, frozen=True):
    """Where a type can be had, how, and for how much an hour."""

    zone: str
    capacity_type: str
    price: float
    """As Go reads it: decisions are made with doubles."""
    price_text: str = ""
    is_available: bool = True

    @property
    def requirements(self) -> Requirements:
        return _of_offering(self.zone, self.capacity_type)


class InstanceType(Struct, frozen=True, eq=False, dict=True):
    """One sort of machines."""

    name: str
    requirements: Requirements
    offerings: tuple[Offering, ...]
    capacity: Nanos
    overhead: Nanos
    template: JsonObject
    """What the catalogue says: capacity and labels as they are written."""

    @cached_property
    def allocatable(self) -> Nanos:
        left = {name: amount - self.overhead.get(name, 0) for name, amount in self.capacity.items()}
        for name, amount in self.capacity.items():
            if name.startswith("hugepages-"):
                left["memory"] = max(left.get("memory", 0) - amount, 0)
        return left

    def offers(self, asked: Requirements, undefined: frozenset[str]) -> list[Offering]:
        """What can be had of it that is allowed."""
        return [
            each
            for each in self.offerings
            if each.is_available and asked.conflict(each.requirements, undefined) is None
        ]

    def price_of(self, zone: str, capacity_type: str) -> float | None:
        for each in self.offerings:
            if (each.zone, each.capacity_type) == (zone, capacity_type):
                return each.price
        return None


class InstanceCatalogue:
    """All types of a cloud, and the labels that only they know."""

    def __init__(self, types: Iterable[InstanceType], currency: str = "USD") -> None:
        self.types = tuple(types)
        self.currency = currency
        self.by_name = {each.name: each for each in self.types}
        own = {key for each in self.types for key in (each.template.get("labels") or {})}
        self.well_known = WELL_KNOWN | own
        for each in self.types:
            for key in sorted(own - each.requirements.keys()):
                each.requirements[key] = LabelRequirement(key)

    def without(self, gone: Collection[tuple[str, str, str]]) -> "InstanceCatalogue":
        """The same, but for offers (type, zone, capacity type) that are not to be had."""

        def left(kind: InstanceType) -> InstanceType:
            offers = tuple(
                replace(each, is_available=False)
                if (kind.name, each.zone, each.capacity_type) in gone
                else each
                for each in kind.offerings
            )
            return replace(kind, offerings=offers)

        names = {name for name, _, _ in gone}
        types = (left(each) if each.name in names else each for each in self.types)
        return InstanceCatalogue(types, self.currency)

    def by_price(self, types: Iterable[InstanceType], asked: Requirements) -> list[InstanceType]:
        """The cheapest that can be had first; names decide between equals."""
        return sorted(types, key=lambda each: (self.price(each, asked), each.name))

    def price(self, kind: InstanceType, asked: Requirements) -> float:
        """The least that a machine of this type costs."""
        return min((each.price for each in kind.offers(asked, self.well_known)), default=INFINITE)

    def worst_price(self, kind: InstanceType, asked: Requirements) -> float:
        """The most that it may cost, spot before on-demand: what is tried first."""
        offers = kind.offers(asked, self.well_known)
        for wanted in (SPOT, ON_DEMAND):
            found = [each.price for each in offers if each.capacity_type == wanted]
            if found:
                return max(found)
        return INFINITE


def missing_values(types: Iterable[InstanceType], asked: Requirements) -> dict[str, int]:
    """Labels of which too few values are left, and how many there are; of no type, nothing is
    missing: it is for other reasons that none is left."""
    types = [*types]
    wanted = {key: each for key, each in asked.items() if each.min_values is not None}
    found: dict[str, set[str]] = {key: set() for key in wanted}
    for each in types:
        for key, it in wanted.items():
            found[key].update(v for v in each.requirements.of(key).values if it.has(v))
    return {
        key: len(found[key])
        for key, it in wanted.items()
        if types and it.min_values is not None and len(found[key]) < it.min_values
    }


def needed_types(types: Sequence[InstanceType], asked: Requirements) -> int:
    """How many of the first types are needed to leave enough values to choose from."""
    if not asked.wants_choice:
        return 0
    for count in range(1, len(types) + 1):
        if not missing_values(types[:count], asked):
            return count
    return len(types)


# -- the catalogue as it is written --------------------------------------------------------------


class _OfferText(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    zone: str
    price: str | float | int
    capacity_type: str = ON_DEMAND
    available: bool = True


class _TypeText(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str
    capacity: dict[str, str | int | float]
    offers: list[_OfferText]
    architecture: str = "amd64"
    operating_systems: list[str] = field(default_factory=lambda: ["linux"])
    labels: dict[str, str] = {}
    overhead: dict[str, str | int | float] = {}


class _CatalogueText(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    instance_types: list[_TypeText]
    currency: str = "USD"


def read_catalogue(given: object, where: str) -> InstanceCatalogue:
    """Raises `ConfigurationError` for what makes no sense, and says where."""
    try:
        written = msgspec.convert(given, _CatalogueText)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if not written.instance_types:
        raise ConfigurationError(f"{where}: instanceTypes is empty: nothing can be had")
    names = [each.name for each in written.instance_types]
    if twice := sorted({each for each in names if names.count(each) > 1}):
        raise ConfigurationError(f"{where}: instanceTypes has {twice[0]} twice")
    types = [
        _type(each, f"{where}: instanceTypes[{number}] ({each.name})")
        for number, each in enumerate(written.instance_types)
    ]
    return InstanceCatalogue(types, written.currency)


def generated(
    cpus: Sequence[int] = (1, 2, 4, 8, 16, 32, 48, 64, 96),
    memory_factors: Mapping[str, int] = {"c": 2, "s": 4, "m": 8},
    zones: Sequence[str] = ("zone-a", "zone-b", "zone-c"),
    architectures: Sequence[str] = ("amd64", "arm64"),
    core_price: Fraction = Fraction("0.025"),
    gibibyte_price: Fraction = Fraction("0.001"),
    spot: Fraction = Fraction("0.7"),
) -> JsonObject:
    """A catalogue that is no cloud's: sizes times families, priced by what they have."""
    return {
        "instanceTypes": [
            *_generated(
                cpus, memory_factors, zones, architectures, core_price, gibibyte_price, spot
            )
        ]
    }


def _generated(
    cpus: Sequence[int],
    factors: Mapping[str, int],
    zones: Sequence[str],
    architectures: Sequence[str],
    core: Fraction,
    gibibyte: Fraction,
    spot: Fraction,
) -> Iterator[JsonObject]:
    for family, factor in factors.items():
        for cpu in cpus:
            hourly = core * cpu + gibibyte * cpu * factor
            for architecture in architectures:
                yield {
                    "name": f"{family}-{cpu}x-{architecture}",
                    "architecture": architecture,
                    "capacity": {
                        "cpu": str(cpu),
                        "memory": f"{cpu * factor}Gi",
                        "pods": str(min(max(cpu * 16, 0), 1024)),
                    },
                    "offers": [
                        {"zone": zone, "capacityType": kind, "price": _money(hourly * share)}
                        for zone in zones
                        for kind, share in ((SPOT, spot), (ON_DEMAND, Fraction(1)))
                    ],
                }


def _money(price: Fraction) -> str:
    return f"{float(price):.6f}".rstrip("0").rstrip(".")


def _type(given: _TypeText, where: str) -> InstanceType:
    if not given.offers:
        raise ConfigurationError(f"{where}: offers is empty: it cannot be had anywhere")
    offers = tuple(_offer(each, f"{where}: offers[{n}]") for n, each in enumerate(given.offers))
    capacity = _amounts(given.capacity, f"{where}: capacity")
    for name in ("cpu", "memory"):
        if capacity.get(name, 0) <= 0:
            raise ConfigurationError(f"{where}: capacity has no {name}")
    requirements = Requirements()
    stated: Mapping[str, Iterable[str]] = {
        INSTANCE_TYPE: (given.name,),
        ARCHITECTURE: (given.architecture,),
        SYSTEM: given.operating_systems,
        ZONE: (each.zone for each in offers),
        CAPACITY_TYPE: (each.capacity_type for each in offers),
        **{key: (value,) for key, value in given.labels.items()},
    }
    for key, values in stated.items():
        requirements.add(LabelRequirement(key, frozenset(values)))
    capacity_text = {"pods": _PODS, **{k: str(v) for k, v in given.capacity.items()}}
    return InstanceType(
        given.name,
        requirements,
        offers,
        _amounts(capacity_text, where),
        _amounts(given.overhead, f"{where}: overhead"),
        {
            "capacity": capacity_text,
            "labels": given.labels,
            "architecture": given.architecture,
            "operatingSystem": given.operating_systems[0] if given.operating_systems else "linux",
        },
    )


def _offer(given: _OfferText, where: str) -> Offering:
    if given.capacity_type not in CAPACITY_TYPES:
        known = " and ".join(CAPACITY_TYPES)
        raise ConfigurationError(
            f"{where}: capacityType {given.capacity_type!r} is not simulated; {known} are"
        )
    text = str(given.price)
    try:
        price = float(text)
    except ValueError:
        raise ConfigurationError(f"{where}: price {text!r} is not a number") from None
    if not 0 <= price < INFINITE:
        raise ConfigurationError(f"{where}: the price cannot be {text}")
    return Offering(given.zone, given.capacity_type, price, text, given.available)


def _amounts(given: Mapping[str, Any], where: str) -> Nanos:
    try:
        return {name: parse(amount).nanos for name, amount in given.items()}
    except QuantityError as error:
        raise ConfigurationError(f"{where}: {error}") from error


_OFFERINGS: dict[tuple[str, str], Requirements] = {}


def _of_offering(zone: str, capacity_type: str) -> Requirements:
    key = zone, capacity_type
    if key not in _OFFERINGS:
        _OFFERINGS[key] = Requirements(
            {
                ZONE: LabelRequirement(ZONE, frozenset((zone,))),
                CAPACITY_TYPE: LabelRequirement(CAPACITY_TYPE, frozenset((capacity_type,))),
            }
        )
    return _OFFERINGS[key]
