"""What became of a node, and what the cluster autoscaler said of it and of pods."""

from collections.abc import Iterator

import msgspec

from kubescene.node_autoscaling.facts import NodesDecided
from kubescene.results.clockwork import Clockwork
from kubescene.results.cost.bill import Bill
from kubescene.results.cost.rows import InstanceRow, instance_rows
from kubescene.results.over_time.scaling import NODE_FACTS, nodes_decided
from kubescene.results.rows import NodeRow, node_rows
from kubescene.results.sources import RunSource


class Loop(msgspec.Struct, frozen=True):
    """A loop of the autoscaler that decided something."""

    step: str
    time_s: float
    told: NodesDecided


class Stay(msgspec.Struct, frozen=True):
    """Why a node stayed, from a loop to another, ``loops`` times in a row."""

    reason: str
    since_s: float
    until_s: float
    loops: int


class NodeStory(msgspec.Struct, frozen=True):
    """A node or machine from its order to its end."""

    name: str
    node: NodeRow | None
    machine: InstanceRow | None
    ordered: Loop | None
    stays: tuple[Stay, ...]
    removed: Loop | None
    outcome: str
    """What came of its deletion."""


def loops_of(source: RunSource) -> Iterator[Loop]:
    """Loops that decided something, in order."""
    if NODE_FACTS.keys().isdisjoint(source.ledger.custom_facts):
        return
    clock = Clockwork(source.ledger)
    for fact in source.custom_facts():
        told = nodes_decided(fact)
        if told is not None:
            yield Loop(str(fact.step), clock.seconds(fact.time), told)


def loops_about(source: RunSource, pod: str) -> list[Loop]:
    """Those that ordered nodes for a pod, found none for it, or evicted it."""
    return [each for each in loops_of(source) if concerns(each.told, pod)]


def concerns(told: NodesDecided, pod: str) -> bool:
    evicted = (name for each in told.removed for name in each.evicted)
    return pod in told.triggered or pod in told.unhelped or pod in evicted


def node_story(source: RunSource, name: str) -> NodeStory | None:
    """None if there never was such a node or machine. Of several of a name, the last."""
    machines = [row for row in instance_rows(Bill(source.ledger)) if name in (row.name, row.node)]
    nodes = [row for row in node_rows(source.ledger) if row.name == name]
    if not machines and not nodes:
        return None
    machine, loops = (machines[-1] if machines else None), list(loops_of(source))
    removed = [loop for loop in loops if any(each.node == name for each in loop.told.removed)]
    outcomes = [loop.told.deleted[name] for loop in loops if name in loop.told.deleted]
    return NodeStory(
        name=name,
        node=nodes[-1] if nodes else None,
        machine=machine,
        ordered=None if machine is None else order_of(machine, loops),
        stays=tuple(stays_of(name, loops)),
        removed=removed[-1] if removed else None,
        outcome=outcomes[-1] if outcomes else "",
    )


def order_of(machine: InstanceRow, loops: list[Loop]) -> Loop | None:
    """The loop that ordered a machine: that of its instant whose groups grew by it."""
    return next(
        (
            loop
            for loop in loops
            if loop.time_s == machine.ordered_s
            and any(each.group == machine.group for each in loop.told.ordered)
        ),
        None,
    )


def stays_of(name: str, loops: list[Loop]) -> Iterator[Stay]:
    current: Stay | None = None
    for loop in loops:
        reason = loop.told.staying.get(name)
        if current is not None and reason == current.reason:
            current = Stay(reason, current.since_s, loop.time_s, current.loops + 1)
            continue
        if current is not None:
            yield current
        current = None if reason is None else Stay(reason, loop.time_s, loop.time_s, 1)
    if current is not None:
        yield current
