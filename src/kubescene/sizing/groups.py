"""The node groups whose sizes are searched: what a machine of each offers and costs, and how many.

A group that says no ``max`` may have `MOST` machines. A ``quota`` is as good as a ``max``: what is
beyond it never comes.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct, convert

from kubescene.api.own_kinds import GROUP, VERSION
from kubescene.api.resource_requests import node_allocatable
from kubescene.api.selectors.daemon_fitness import DaemonFitness, DaemonNode
from kubescene.controllers.builtin.nodes.node_groups import (
    LABEL,
    NODE_GROUP,
    ZONE,
    fault_of,
    price_of,
)
from kubescene.errors import ConfigurationError
from kubescene.results.cost.prices import Prices
from kubescene.scenario.reading.object_files import read_manifests
from kubescene.types import JsonObject

Objective: TypeAlias = Literal["cost", "nodes"]
Mix: TypeAlias = tuple[int, ...]
"""So many machines of each group, in the order of the groups."""
MOST = 1000
TAKES_TIME = ("boot", "shutdown", "faults", "quota", "min", "max", "options")
"""What a group with a fixed size that is there from the beginning has no use for."""


class SizedGroup(Struct, frozen=True, kw_only=True):
    """One group: between ``least`` and ``most`` machines, each at a ``price`` for an hour."""

    object: JsonObject
    least: int
    most: int
    price: Fraction | None
    currency: str
    offers: dict[str, int]

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    def with_size(self, size: int) -> JsonObject:
        """The group with that many machines, which are there at once and stay so many."""
        kept = {k: v for k, v in self.object["spec"].items() if k not in TAKES_TIME}
        return {**self.object, "spec": {**kept, "size": size}}

    def autoscaled(self) -> JsonObject:
        """The group as the cluster autoscaler finds it: as small as it may be."""
        bounds = {"size": self.least, "min": self.least, "max": self.most}
        return {**self.object, "spec": {**self.object["spec"], **bounds}}

    def takes(self, fitness: DaemonFitness, requests: Mapping[str, int]) -> bool:
        """Whether an empty machine of some zone would do for a pod, as far as labels, taints and
        amounts tell."""
        if any(amount > self.offers.get(name, 0) for name, amount in requests.items()):
            return False
        return any(fitness.of(node)[0] for node in self._nodes())

    def _nodes(self) -> list[DaemonNode]:
        template = self.object["spec"]["template"]
        labels = (template.get("metadata") or {}).get("labels") or {}
        taints = (template.get("spec") or {}).get("taints") or ()
        zones = self.object["spec"].get("zones") or ()
        own = [{**labels, LABEL: self.name, **({ZONE: zone} if zone else {})} for zone in zones]
        return [DaemonNode("", each, taints) for each in own or [{**labels, LABEL: self.name}]]


def sized_group(group: JsonObject, prices: Prices | None) -> SizedGroup:
    """Raises `ConfigurationError` for one that makes no sense."""
    metadata, spec = group.get("metadata"), group.get("spec")
    if not (isinstance(metadata, dict) and metadata.get("name") and isinstance(spec, dict)):
        raise ConfigurationError("a NodeGroup needs metadata.name and a spec")
    name = metadata["name"]
    template = spec.get("template")
    template = template if isinstance(template, dict) else {}
    status = template.get("status")
    if not isinstance(status, dict) or not (status.get("allocatable") or status.get("capacity")):
        raise ConfigurationError(
            f"NodeGroup {name!r}: what do its machines offer? Say it in spec.template.status"
        )
    whole = {**group, "spec": {k: v for k, v in spec.items() if k != "size"}}
    if fault := fault_of(whole):
        raise ConfigurationError(f"NodeGroup {name!r}: {fault}")
    most = min(spec.get("max", MOST), spec.get("quota", MOST))
    offered = {"status": {"allocatable": status.get("allocatable") or status["capacity"]}}
    try:
        told = price_of(group)
        price = None if told is None else Fraction(str(told["perHour"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(
            f"NodeGroup {name!r}: spec.price.perHour must be a decimal number in quotes"
        ) from error
    currency = "" if told is None else str(told["currency"])
    if prices is not None:
        labels = (template.get("metadata") or {}).get("labels") or {}
        price, currency = prices.of(f"of group {name}", labels), prices.currency
    return SizedGroup(
        object=group,
        least=spec.get("min", 0),
        most=max(most, spec.get("min", 0)),
        price=price,
        currency=currency,
        offers=convert(dict(node_allocatable(offered)), dict[str, int]),
    )


def groups_in(path: Path) -> list[JsonObject]:
    """The NodeGroups of a file, in which nothing else may be."""
    found = list(read_manifests(path))
    for each in found:
        kind = each.get("kind") if isinstance(each, dict) else None
        if kind != NODE_GROUP.kind:
            raise ConfigurationError(f"{path}: NodeGroups are expected, not {kind or 'this'}")
    if not found:
        raise ConfigurationError(f"{path}: there is no NodeGroup in it")
    return [{"apiVersion": f"{GROUP}/{VERSION}", **each} for each in found]


def check_groups(groups: Sequence[SizedGroup], objective: Objective | None) -> Objective:
    """What is to be least; costs if all groups have prices and nobody says otherwise."""
    names = [each.name for each in groups]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigurationError(f"there are two NodeGroups {twice!r}")
    bare = [each.name for each in groups if each.price is None]
    if objective == "cost" and bare:
        raise ConfigurationError(
            f"NodeGroup {bare[0]!r} has no price: give it spec.price, or --prices, or ask for "
            "--objective nodes"
        )
    if not bare and len({each.currency for each in groups}) > 1:
        raise ConfigurationError("the groups have prices in several currencies")
    return objective or ("nodes" if bare else "cost")


class Costs:
    """What mixes cost, in whole numbers: first what is to be least, then the other of the two."""

    def __init__(self, groups: Sequence[SizedGroup], objective: Objective) -> None:
        prices = [each.price for each in groups if each.price is not None]
        self._whole = lcm(*(each.denominator for each in prices)) if prices else 1
        known = len(prices) == len(groups)
        money = [int(each * self._whole) for each in prices] if known else [0] * len(groups)
        counts = [1] * len(groups)
        self.vectors = (money, counts) if objective == "cost" else (counts, money)
        self._money = money if known else None

    def of(self, mix: Mix) -> tuple[int, ...]:
        """Compares as the mixes do."""
        return tuple(sum(a * b for a, b in zip(each, mix, strict=True)) for each in self.vectors)

    def hourly(self, mix: Mix) -> Fraction | None:
        """What they cost in an hour, if that is known."""
        if self._money is None:
            return None
        return Fraction(sum(a * b for a, b in zip(self._money, mix, strict=True)), self._whole)
