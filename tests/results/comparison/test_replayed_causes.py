"""The plugin that is named is the one whose change explains the move.

Checked by playing again: with only that plugin as in the second run, the pod goes where it went
there; with every other change but that one, it stays.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import pytest
from node_number import NodeNumber

import kubescene
from kubescene.cli.compare.second_opinions import ask
from kubescene.clock import Stream, Streams
from kubescene.results.comparison import Cause, Why, compare
from kubescene.results.comparison.values import Divergence
from kubescene.runs.requests import RunRequest
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration import read_configuration
from kubescene.scheduler.framework.plugin_registry import ClassFactory
from kubescene.scheduler.framework.profile import EnabledPlugin, Profile
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
BASE = SchedulerOptions(plugins={"NodeNumber": ClassFactory(NodeNumber)})
WEIGHED = ("TaintToleration", "NodeAffinity", "NodeResourcesFit", "ImageLocality")


def options(
    *, weights: dict[str, int] | None = None, off: Iterable[str] = (), packing: bool = False
) -> SchedulerOptions:
    """A configured scheduler; a plugin that it does not have by default is added."""
    enabled = [{"name": name, "weight": weight} for name, weight in (weights or {}).items()]
    sets = {"enabled": enabled, "disabled": [{"name": name} for name in off]}
    strategy = {"scoringStrategy": {"type": "MostAllocated" if packing else "LeastAllocated"}}
    profile = {
        "plugins": {"multiPoint": sets},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": strategy}],
    }
    return read_configuration({**HEADER, "profiles": [profile]}, BASE)


def mixed(plugin: str, first: SchedulerOptions, second: SchedulerOptions) -> SchedulerOptions:
    """The first scheduler, with one plugin as the second has it."""
    (a,), (b,) = first.profiles, second.profiles
    points = {point: tuple(_mixed(plugin, a.at(point), b.at(point))) for point in a.points}
    given = {name: args for name, args in a.arguments.items() if name != plugin}
    given |= {plugin: b.arguments[plugin]} if plugin in b.arguments else {}
    return replace(BASE, profiles=(Profile(a.scheduler_name, points, given),))


def _mixed(
    plugin: str, first: tuple[EnabledPlugin, ...], second: tuple[EnabledPlugin, ...]
) -> Iterable[EnabledPlugin]:
    ours = {each.name: each for each in first if each.name != plugin}
    theirs = {each.name: each for each in second if each.name == plugin}
    order = dict.fromkeys([*(each.name for each in first), *(each.name for each in second)])
    found = ours | theirs
    return (found[name] for name in order if name in found)


class Case(NamedTuple):
    plugin: str
    why: Why
    a: SchedulerOptions
    b: SchedulerOptions


def choice() -> JsonObject:
    """A pod that has reasons for either of several nodes, and one after it."""
    wanted = {"key": "disk", "operator": "In", "values": ["ssd"]}
    term = {"weight": 100, "preference": {"matchExpressions": [wanted]}}
    affinity = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]},
    }
    pod = make_pod("p-1").cpu("1").memory("1Gi").build()
    pod["spec"]["affinity"] = affinity
    return (
        ScenarioBuilder("choice")
        .create(
            make_node("n-1").cpu("8").memory("16Gi"),
            make_node("n-2").cpu("4").memory("8Gi").label(disk="ssd"),
            make_node("n-3").cpu("64").memory("128Gi").taint("keep", value="out"),
        )
        .step(2)
        .create(make_pod("old").cpu("2").memory("4Gi").on("n-2"))
        .step(3)
        .create(pod)
        .step(4)
        .create(make_pod("p-2").cpu("1").memory("1Gi"))
        .done()
        .build()
    )


LIGHT = {"NodeAffinity": 1, "NodeResourcesFit": 20}
CASES = {
    "a changed weight": Case(
        "NodeAffinity",
        Why.SCORE,
        options(weights=LIGHT),
        options(weights={**LIGHT, "NodeAffinity": 50, "ImageLocality": 9}),
    ),
    "a new plugin": Case(
        "NodeNumber",
        Why.SCORE,
        options(),
        options(weights={"NodeNumber": 90, "ImageLocality": 9}, off=("NodePorts",)),
    ),
    "a disabled Filter plugin": Case(
        "TaintToleration",
        Why.VERDICT,
        options(weights={"NodeAffinity": 1, "NodeResourcesFit": 50}),
        options(
            weights={"NodeAffinity": 1, "NodeResourcesFit": 50, "ImageLocality": 7},
            off=("TaintToleration",),
        ),
    ),
    "a disabled Score plugin": Case(
        "NodeAffinity",
        Why.SCORE,
        options(),
        options(off=("NodeAffinity", "NodePorts"), weights={"ImageLocality": 4}),
    ),
    "a changed scoring strategy": Case(
        "NodeResourcesFit",
        Why.SCORE,
        options(weights=LIGHT),
        options(weights={**LIGHT, "ImageLocality": 5}, packing=True),
    ),
}


def parted(a: kubescene.Run, b: kubescene.Run) -> Divergence:
    divergence = compare(a, b).divergence
    assert divergence is not None
    assert divergence.attribution is not None
    return divergence


@pytest.mark.parametrize("name", CASES)
def test_the_named_plugin_moves_the_pod_by_itself_and_nothing_else_does(name: str) -> None:
    plugin, why, before, after = CASES[name]
    a, b = (kubescene.run(choice(), scheduler=each) for each in (before, after))
    divergence = parted(a, b)
    assert divergence.attribution is not None
    assert (divergence.pod, divergence.cause) == ("default/p-1", Cause.SCHEDULER)
    assert (divergence.attribution.plugin, divergence.attribution.why) == (plugin, why)
    only = kubescene.run(choice(), scheduler=mixed(plugin, before, after))
    others = kubescene.run(choice(), scheduler=mixed(plugin, after, before))
    assert only.cluster.pod("p-1").node == b.cluster.pod("p-1").node == divergence.node_in_b
    assert others.cluster.pod("p-1").node == a.cluster.pod("p-1").node == divergence.node_in_a


@pytest.mark.parametrize("name", CASES)
def test_the_other_scheduler_says_in_the_first_cluster_what_it_did_in_its_own(name: str) -> None:
    _, _, before, after = CASES[name]
    runs = [kubescene.run(choice(), scheduler=each) for each in (before, after)]
    first = compare(*runs).placed[0]
    assert first.cause is Cause.SCHEDULER
    request = RunRequest(scenario=choice(), scheduler=before)
    assert dict(ask(request, after, [first])) == {(first.pod, first.step_in_a): first.node_in_b}


def test_the_other_scheduler_begins_its_search_where_the_first_one_would() -> None:
    many = ScenarioBuilder("many").create(make_node("n-$(INDEX)").cpu("8").memory("8Gi"), count=240)
    many.step(2).create(make_pod("p-$(INDEX)").cpu("1").memory("1Gi"), count=6).done()
    before, after = options(), options(packing=True)
    runs = [kubescene.run(many, scheduler=each) for each in (before, after)]
    first, *others = compare(*runs).placed
    assert first.cause is Cause.SCHEDULER
    request = RunRequest(scenario=many.build(), scheduler=before)
    found = dict(ask(request, after, [first, *others]))
    assert found[first.pod, first.step_in_a] == first.node_in_b
    assert len(found) == 1 + len(others), "the first scheduler says what it did, each time"
    anew = dict(ask(request, before, others))
    assert anew == {(each.pod, each.step_in_a): each.node_in_a for each in others}


def test_a_removed_node_is_named_and_no_plugin() -> None:
    whole = choice()
    less = {**whole, "spec": {**whole["spec"], "operations": whole["spec"]["operations"][1:]}}
    scheduler = options(weights=LIGHT)
    a, b = (kubescene.run(each, scheduler=scheduler) for each in (whole, less))
    found = compare(a, b)
    assert [(each.what, each.a, each.b) for each in found.inputs] == [
        ("step 1: create Node n-1", "given", "none")
    ]
    assert found.divergence is not None
    assert found.divergence.attribution is not None
    assert found.divergence.attribution.why is Why.ABSENT
    assert (found.divergence.attribution.node, found.divergence.cause) == ("n-1", Cause.SCENARIO)


def world(chance: Stream) -> JsonObject:
    """One decision: nodes that differ in everything that plugins rate."""
    builder = ScenarioBuilder("random")
    for number in range(4):
        node = make_node(f"n-{number}").cpu(str((4, 8, 16)[chance.below(3)])).memory("32Gi")
        if chance.uniform() < 0.5:
            node = node.label(disk="ssd")
        if chance.uniform() < 0.5:
            node = node.taint("slow", value="yes", effect="PreferNoSchedule")
        builder.create(node)
    for number in range(4):
        load = make_pod(f"load-{number}").cpu(f"{chance.below(4)}").memory("1Gi")
        builder.create(load.on(f"n-{number}"))
    term = {"key": "disk", "operator": "In", "values": ["ssd"]}
    preferred = {"weight": 10, "preference": {"matchExpressions": [term]}}
    pod = make_pod(f"p-{chance.below(4)}").cpu("500m").memory("2Gi").build()
    pod["spec"]["affinity"] = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
    }
    return builder.step(2).create(pod).done().build()


def scheduler(chance: Stream) -> SchedulerOptions:
    weights = {name: (1, 4, 40)[chance.below(3)] for name in (*WEIGHED, "NodeNumber")}
    off = ("NodeNumber",) if chance.uniform() < 0.3 else ()
    return options(weights=weights, off=off, packing=chance.uniform() < 0.5)


@pytest.mark.parametrize("seed", range(30))
def test_in_random_worlds_the_order_turns_with_the_named_plugin_alone(seed: int) -> None:
    chance = Streams(seed).stream("comparison")
    scenario, before, after = world(chance), scheduler(chance), scheduler(chance)
    a, b = (kubescene.run(scenario, scheduler=each) for each in (before, after))
    found = compare(a, b)
    if found.equal:
        assert a.summary.placements[0].node == b.summary.placements[0].node
        return
    divergence = parted(a, b)
    attribution, pair = divergence.attribution, (divergence.node_in_a, divergence.node_in_b)
    assert attribution is not None
    assert divergence.cause is Cause.SCHEDULER
    if attribution.why is not Why.SCORE:
        return
    leads = [lead(kubescene.run(scenario, scheduler=before), divergence.pod, pair)]
    played = before
    for part in attribution.parts:
        played = mixed(part.plugin, played, after)
        leads.append(lead(kubescene.run(scenario, scheduler=played), divergence.pod, pair))
    wanted = lead(b, divergence.pod, pair)
    assert leads[0] >= 0 >= wanted
    assert not any(sign(each) <= sign(wanted) for each in leads[:-1]), "fewer would be enough"
    assert sign(leads[-1]) <= sign(wanted)


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def lead(run: kubescene.Run, pod: str, pair: tuple[str, str]) -> int:
    """By how much the first node is before the second in the attempt at a pod."""
    (attempt,) = run.explain(pod)
    first, second = (attempt.verdict_on(node) for node in pair)
    assert first is not None
    assert second is not None
    return (first.total or 0) - (second.total or 0)
