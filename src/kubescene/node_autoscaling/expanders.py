"""Expanders: which option is taken. Each keeps its best; the first that is left is chosen."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from kubescene.node_autoscaling.estimation import Option
from kubescene.node_autoscaling.flags import check_expander
from kubescene.node_autoscaling.priorities import CONFIG_MAP, Priorities, priorities_of
from kubescene.node_autoscaling.provider import Provider
from kubescene.types import JsonObject

PREFERRED_CORES = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
"""Up to so many nodes, nodes of so many cores are the right ones; beyond that `LARGEST`."""
LARGEST = 32
STABILIZER: JsonObject = {
    "spec": {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "500Mi"}}}]}
}
_LEAST_PRIORITY = -1


class ExpanderWorld(Protocol):
    """What expanders look at beside the options."""

    @property
    def provider(self) -> Provider: ...

    def config_map(self, name: str) -> JsonObject | None:
        """A ConfigMap of the autoscaler's namespace."""

    def node_count(self) -> int:
        """How many nodes there are."""

    def warn(self, config_map: str, reason: str, message: str) -> None:
        """Record an Event about a ConfigMap."""


Expander: TypeAlias = Callable[[Sequence[Option], ExpanderWorld], list[Option]]


def _least(options: Sequence[Option], score: Callable[[Option], float]) -> list[Option]:
    """All options that share the least score; one without a score stays if it came first."""
    best: list[Option] = []
    least = 0.0
    for each in options:
        found = score(each)
        if best and found == least:
            best.append(each)
        elif not best or found < least:
            best, least = [each], found
    return best


def _ratio(part: float, whole: float) -> float:
    """As floating point numbers are divided by zero, which is no error: a node may have no cpu."""
    return part / whole if whole else math.inf if part else math.nan


def least_waste(options: Sequence[Option], world: ExpanderWorld) -> list[Option]:
    return _least(options, lambda each: sum(each.waste))


def most_pods(options: Sequence[Option], world: ExpanderWorld) -> list[Option]:
    return _least(options, lambda each: -len(each.pods))


def least_nodes(options: Sequence[Option], world: ExpanderWorld) -> list[Option]:
    return _least(options, lambda each: each.nodes)


def price(options: Sequence[Option], world: ExpanderWorld) -> list[Option]:
    """The cheapest for what the pods are worth; without a price an option is none."""
    cores = next((it for most, it in PREFERRED_CORES if world.node_count() <= most), LARGEST)
    scores = {}
    for option in options:
        score = _price_score(option, world.provider, cores)
        if score is not None:
            scores[option.group.id] = score
    priced = [each for each in options if each.group.id in scores]
    return _least(priced, lambda each: scores[each.group.id])


def _price_score(option: Option, provider: Provider, preferred_cores: int) -> float | None:
    node = option.template.node
    per_node = provider.node_price(node.object)
    if per_node is None:
        return None
    stabilizer = provider.pod_price(STABILIZER)
    pods = 0.0
    for pod in option.pods:
        pods += provider.pod_price(pod.object)
    score = _ratio(per_node * option.nodes + stabilizer, pods + stabilizer)
    cores = preferred_cores * 1000
    unfitness = max(_ratio(cores, node.milli_cpu), node.milli_cpu / cores)
    return (_suppressed(unfitness, option.nodes)) * score


def _suppressed(unfitness: float, nodes: int) -> float:
    """The more nodes are ordered at once, the less their size matters."""
    return (unfitness - 1.0) * (1.0 - math.tanh((nodes - 1) / 15.0)) + 1.0


def priority(options: Sequence[Option], world: ExpanderWorld) -> list[Option]:
    """The groups that a ConfigMap puts first; without a good one all of them."""
    priorities = _configured(world)
    if priorities is None:
        return [*options]
    best: list[Option] = []
    highest = _LEAST_PRIORITY
    for option in options:
        found = priorities.of(option.group.id)
        if not found:
            world.warn(CONFIG_MAP, "PriorityConfigMapNotMatchedGroup", _unmatched(option.group.id))
        for number in found:
            if number < highest:
                continue
            if number > highest:
                best, highest = [], number
            best.append(option)
    if not best:
        world.warn(
            CONFIG_MAP,
            "PriorityConfigMapNoGroupMatched",
            "Priority expander: no priorities info found for any of the expansion options. "
            "No options filtered.",
        )
        return [*options]
    return best


def _unmatched(group: str) -> str:
    return (
        f"Priority expander: node group {group} not found in priority expander configuration. "
        "The group won't be used."
    )


def _configured(world: ExpanderWorld) -> Priorities | None:
    config_map = world.config_map(CONFIG_MAP)
    if config_map is None:
        return None
    try:
        return priorities_of(config_map)
    except ValueError as error:
        world.warn(CONFIG_MAP, "PriorityConfigMapInvalid", str(error))
        return None


def _random(options: Sequence[Option], world: ExpanderWorld) -> list[Option]:
    return [*options]


EXPANDERS: Mapping[str, Expander] = {
    "least-nodes": least_nodes,
    "least-waste": least_waste,
    "most-pods": most_pods,
    "price": price,
    "priority": priority,
    "random": _random,
}


def expander_chain(text: str) -> list[Expander]:
    """The expanders of the flag ``expander``, in order."""
    return [_named(name) for name in text.split(",")]


def _named(name: str) -> Expander:
    check_expander(name)
    return EXPANDERS[name]


Kept: TypeAlias = tuple[str, ...]
"""The groups of the options that an expander kept."""


def chosen(
    options: Sequence[Option], chain: Sequence[Expander], world: ExpanderWorld
) -> tuple[Option | None, list[Kept]]:
    """What a chain chooses, and what each of its expanders kept that was asked.

    It is the first one where the real autoscaler would draw lots.
    """
    left, kept = [*options], list[Kept]()
    for expander in chain:
        left = expander(left, world)
        kept.append(tuple(each.group.id for each in left))
        if len(left) == 1:
            break
    return (left[0] if left else None), kept
