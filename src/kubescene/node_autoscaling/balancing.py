"""Balancing: groups that differ in nothing that matters share what is added."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kubescene.api.own_kinds import GROUP
from kubescene.api.quantity import milli_value
from kubescene.api.resource_requests import CPU
from kubescene.node_autoscaling.flags import Flags
from kubescene.node_autoscaling.nodes import HOSTNAME
from kubescene.node_autoscaling.provider import NodeGroup
from kubescene.node_autoscaling.templates import NodeTemplate

MEMORY = "memory"
IGNORED_LABELS = frozenset(
    {
        HOSTNAME,
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "beta.kubernetes.io/fluentd-ds-ready",
        "kops.k8s.io/instancegroup",
        f"{GROUP}/node-group",  # as providers do with what names their groups
    }
)


class GroupResize(Struct):
    """A group, and how large it is to be."""

    group: NodeGroup
    before: int
    after: int
    most: int

    def __str__(self) -> str:
        return f"{{{self.group.id} {self.before}->{self.after} (max: {self.most})}}"


def are_similar(one: NodeTemplate, other: NodeTemplate, flags: Flags) -> bool:
    """Whether nodes of two groups may stand in for each other."""
    labels, others = one.node.labels, other.node.labels
    if flags.balancing_label:
        return all(
            key in labels and key in others and labels[key] == others[key]
            for key in flags.balancing_label
        )
    ignored = IGNORED_LABELS | frozenset(flags.balancing_ignore_label)
    if {k: v for k, v in labels.items() if k not in ignored} != {
        k: v for k, v in others.items() if k not in ignored
    }:
        return False
    return _have_similar_room(one, other, flags)


def _have_similar_room(one: NodeTemplate, other: NodeTemplate, flags: Flags) -> bool:
    capacities = _millis(one.node.capacity), _millis(other.node.capacity)
    if capacities[0].keys() != capacities[1].keys():
        return False
    for resource, amount in capacities[0].items():
        ratio = flags.memory_difference_ratio if resource == MEMORY else 0.0
        if not _are_near(amount, capacities[1][resource], ratio):
            return False
    offered = _millis(one.node.allocatable), _millis(other.node.allocatable)
    if not _all_near(*offered, flags.max_allocatable_difference_ratio):
        return False
    return _all_near(_free(one), _free(other), flags.max_free_difference_ratio)


def _millis(amounts: Mapping[str, str]) -> dict[str, int]:
    return {resource: milli_value(amount) for resource, amount in amounts.items()}


def _free(template: NodeTemplate) -> dict[str, int]:
    """What is left of the resources that pods of every node ask for, and of those they may."""
    used: dict[str, int] = {"cpu": 0, MEMORY: 0, "pods": 0, "ephemeral-storage": 0}
    for pod in template.pods:
        for resource, amount in pod.info.requests.items():
            scale = 1 if resource == CPU else 1000
            used[resource] = used.get(resource, 0) + amount * scale
    offered = _millis(template.node.allocatable)
    return {resource: offered.get(resource, 0) - amount for resource, amount in used.items()}


def _all_near(one: Mapping[str, int], other: Mapping[str, int], ratio: float) -> bool:
    if one.keys() != other.keys():
        return False
    return all(_are_near(amount, other[resource], ratio) for resource, amount in one.items())


def _are_near(one: int, other: int, ratio: float) -> bool:
    larger, smaller = float(max(one, other)), float(min(one, other))
    return larger - smaller <= larger * ratio


def balanced(groups: Sequence[NodeGroup], count: int) -> list[GroupResize]:
    """Add nodes one by one to the smallest group, as long as there is room."""
    shares = []
    room = 0
    for group in groups:
        size, most = group.target_size(), group.max_size
        if size != most:
            room += max(most - size, 0)
            shares.append(GroupResize(group, size, size, most))
    shares.sort(key=lambda each: each.before)
    _hand_out(shares, min(count, room))
    return [each for each in shares if each.after != each.before]


def _hand_out(shares: list[GroupResize], count: int) -> None:
    first = at = 0
    while count > 0:
        share = shares[at]
        if share.after < share.most:
            share.after += 1
            count -= 1
        else:
            shares[first], shares[at] = share, shares[first]
            first += 1
        is_larger = at < len(shares) - 1 and shares[at].after > shares[at + 1].after
        at = at + 1 if is_larger else first
