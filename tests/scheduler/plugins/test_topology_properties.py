"""Spreading and affinity on random clusters that change: whatever happens, the plugins say what
the definition says.
"""

import copy
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.scheduler.domains.affinity_terms import CarriedTerm
from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.domains.groups import NO_SHARE, ONE, LabelGroup, Share
from kubescene.testing.builders import ObjectBuilder, make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler import plain_topology as plain
from scheduler.neighbourhood import Neighbourhood

KEYS = st.sampled_from([plain.ZONE, plain.HOSTNAME, "rack"])
APPS, TIERS = st.sampled_from(["web", "db"]), st.sampled_from(["front", "back"])
NAMESPACES = st.sampled_from(["red", "blue"])
NODE_NAMES = st.sampled_from([f"n{number}" for number in range(5)])
POD_NAMES = st.sampled_from([f"p{number}" for number in range(8)])
LABELS = st.fixed_dictionaries({}, optional={"app": APPS, "tier": TIERS})
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["app", "tier"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.one_of(APPS, TIERS), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["app", "tier"]),
            "operator": st.sampled_from(["Exists", "DoesNotExist"]),
        }
    ),
)
SELECTORS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSIONS, max_size=1)}
    ),
)
TERMS = st.fixed_dictionaries(
    {"topologyKey": KEYS, "labelSelector": SELECTORS},
    optional={
        "namespaces": st.lists(NAMESPACES, min_size=1, max_size=1),
        "namespaceSelector": SELECTORS,
    },
)
WEIGHTED = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": TERMS})
CONSTRAINTS = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(1, 2),
        "topologyKey": KEYS,
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": SELECTORS,
    },
    optional={
        "minDomains": st.integers(1, 3),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        "matchLabelKeys": st.just(["tier"]),
    },
)
STANZAS = st.fixed_dictionaries(
    {},
    optional={
        plain.REQUIRED: st.lists(TERMS, max_size=2),
        plain.PREFERRED: st.lists(WEIGHTED, max_size=2),
    },
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "topologySpreadConstraints": st.lists(CONSTRAINTS, max_size=2),
        "affinity": st.fixed_dictionaries(
            {}, optional={"podAffinity": STANZAS, "podAntiAffinity": STANZAS}
        ),
        "nodeSelector": st.fixed_dictionaries({"rack": st.sampled_from(["r1", "r2"])}),
        "tolerations": st.just([{"operator": "Exists"}]),
    },
)
NODE_LABELS = st.fixed_dictionaries(
    {},
    optional={
        plain.ZONE: st.sampled_from(["a", "b", ""]),
        plain.HOSTNAME: st.sampled_from(["h1", "h2", "h3"]),
        "rack": st.sampled_from(["r1", "r2"]),
    },
)
TAINTS = st.lists(st.just({"key": "k", "effect": "NoSchedule"}), max_size=1)


@st.composite
def pods(draw: st.DrawFn) -> JsonObject:
    made = make_pod(draw(POD_NAMES), draw(NAMESPACES)).labels(draw(LABELS))
    return merged(made.build(), {"spec": draw(SPECS)})


@st.composite
def fussy_pods(draw: st.DrawFn) -> JsonObject:
    """Pods that have much to ask of a node."""
    spec = {
        "topologySpreadConstraints": draw(st.lists(CONSTRAINTS, min_size=1, max_size=3)),
        "affinity": draw(
            st.fixed_dictionaries({"podAffinity": STANZAS, "podAntiAffinity": STANZAS})
        ),
    }
    return merged(draw(pods()), {"spec": spec})


FUSSY = st.one_of(fussy_pods(), pods())

EVENTS = st.one_of(
    st.tuples(st.just("node"), NODE_NAMES, NODE_LABELS, TAINTS),
    st.tuples(st.just("pod"), pods(), NODE_NAMES),
    st.tuples(st.just("pod"), FUSSY, NODE_NAMES),
    st.tuples(st.just("node gone"), NODE_NAMES),
    st.tuples(st.just("refresh")),
    st.tuples(st.just("pod"), pods(), NODE_NAMES),
    st.tuples(st.just("pod gone"), NAMESPACES, POD_NAMES),
    st.tuples(st.just("labels"), NAMESPACES, POD_NAMES, LABELS),
    st.tuples(st.just("terminating"), NAMESPACES, POD_NAMES),
    st.tuples(st.just("namespace"), NAMESPACES, LABELS),
    st.tuples(st.just("service"), st.sampled_from(["s1", "s2"]), NAMESPACES, LABELS),
    st.tuples(st.just("ask"), pods()),
)
ARGUMENTS = st.sampled_from(
    [
        ({}, {}),
        (
            {"defaultingType": "List", "defaultConstraints": plain.SYSTEM_DEFAULTS},
            {"hardPodAffinityWeight": 0},
        ),
        (
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
                ],
            },
            {"hardPodAffinityWeight": 7, "ignorePreferredTermsOfExistingPods": True},
        ),
    ]
)


def happens(world: Neighbourhood, event: tuple[Any, ...]) -> None:
    kind, *rest = event
    if kind == "node":
        name, labels, taints = rest
        node = make_node(name).build()
        metadata = {"name": name, "labels": labels}
        world.set_node(ObjectBuilder({**node, "metadata": metadata, "spec": {"taints": taints}}))
    elif kind == "node gone":
        world.remove_node(rest[0])
    elif kind == "refresh":
        world.table.refresh()
    elif kind == "pod":
        world.add(rest[0], rest[1])
    elif kind == "pod gone":
        world.remove(f"{rest[0]}/{rest[1]}")
    elif kind == "labels":
        world.update(f"{rest[0]}/{rest[1]}", {"metadata": {"labels": rest[2]}})
    elif kind == "terminating":
        stamp = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        world.update(f"{rest[0]}/{rest[1]}", {"metadata": stamp})
    elif kind == "namespace":
        world.namespace(rest[0], rest[1])
    elif kind == "service":
        world.service(rest[0], rest[1], rest[2])
    else:
        agrees(world, rest[0])


def agrees(world: Neighbourhood, obj: JsonObject) -> None:
    """Filter and Score of both plugins, in both forms, are those of the definition."""
    cluster, pod = world.plain(), world.pod(obj)
    assert world.filter(world.spread, pod) == plain.spread_filter(cluster, obj)
    assert world.filter(world.affinity, pod) == plain.affinity_filter(cluster, obj)
    for feasible in (range(len(cluster.nodes)), range(0, len(cluster.nodes), 2)):
        if feasible:
            expected = plain.spread_scores(cluster, obj, feasible)
            assert world.scores(world.spread, pod, feasible) == expected
            expected = plain.affinity_scores(cluster, obj, feasible)
            assert world.scores(world.affinity, pod, feasible) == expected


def counted(census: PodCensus) -> Any:
    """All that a census knows, without regard to order."""
    census.sync()
    groups = census._label_groups.items()
    labels = {key: dict(group.nodes) for key, group in groups if group.nodes}
    return labels, {key: dict(group.nodes) for key, group in census._term_groups.items()}


@settings(deadline=None, max_examples=150)
@given(ARGUMENTS, st.lists(EVENTS, min_size=8, max_size=30), st.lists(FUSSY, max_size=2))
def test_whatever_happens_the_answers_are_those_of_the_definition(
    arguments: tuple[Any, Any], events: list[tuple[Any, ...]], asked: list[JsonObject]
) -> None:
    """The same questions after every event: counts are corrected, not made anew."""
    world = Neighbourhood(spread=arguments[0], affinity=arguments[1])
    for event in events:
        happens(world, event)
        for obj in asked:
            agrees(world, obj)
    world.table.refresh()
    assert counted(world.table.shared(PodCensus)) == counted(PodCensus(world.table))


@settings(deadline=None, max_examples=60)
@given(st.lists(EVENTS, min_size=4, max_size=30), st.lists(pods(), min_size=1, max_size=6))
def test_counters_that_fall_asleep_change_nothing(
    events: list[tuple[Any, ...]], asked: list[JsonObject]
) -> None:
    world = Neighbourhood()
    census = world.table.shared(PodCensus)
    for event in events:
        happens(world, event)
        for counter in [*census._counters.values()][::2]:
            census._put_to_sleep(counter)
    for obj in asked:
        agrees(world, obj)


@settings(deadline=None, max_examples=40)
@given(st.lists(EVENTS, min_size=4, max_size=20), st.lists(EVENTS, max_size=10), pods())
def test_a_copied_world_counts_on_by_itself(
    events: list[tuple[Any, ...]], more: list[tuple[Any, ...]], asked: JsonObject
) -> None:
    world = Neighbourhood()
    for event in events:
        happens(world, event)
    fork = copy.deepcopy(world)
    for event in more:
        happens(fork, event)
    agrees(fork, asked)
    agrees(world, asked)


@st.composite
def suppositions(draw: st.DrawFn) -> tuple[list[JsonObject], list[str]]:
    """Pods that come, by the node they come to, and keys of pods that go."""
    came = [merged(draw(pods()), {"metadata": {"name": f"new{at}"}}) for at in range(2)]
    return came, [f"{draw(NAMESPACES)}/{draw(POD_NAMES)}" for _ in range(3)]


def selects_something(obj: JsonObject) -> bool:
    """PTS-7: an empty selector does count supposed pods, and only these."""
    constraints = obj["spec"].get("topologySpreadConstraints") or []
    return not any(
        not (each["labelSelector"] or {"matchLabels": 1}).get("matchLabels")
        and not (each["labelSelector"] or {"matchExpressions": 1}).get("matchExpressions")
        for each in constraints
    )


@settings(deadline=None, max_examples=150)
@given(st.lists(EVENTS, min_size=6, max_size=30), pods(), suppositions(), NODE_NAMES)
def test_supposing_equals_doing_and_leaves_no_trace(
    events: list[tuple[Any, ...]],
    asked: JsonObject,
    changes: tuple[list[JsonObject], list[str]],
    node: str,
) -> None:
    world = Neighbourhood()
    for event in events:
        if event[0] != "terminating":
            happens(world, event)
    world.table.refresh()
    if world.table.row_of(node) is None or not selects_something(asked):
        return
    pod = world.pod(asked)
    before = [world.filter(each, pod) for each in (world.spread, world.affinity)]
    states = [world.begin(each, pod) for each in (world.spread, world.affinity)]
    clones = [None if state is None else state.clone().clone() for state in states]
    supposed(world, pod, clones, changes, node)
    told = [
        None if clone is None else world.judged(each, clone, pod)
        for each, clone in zip((world.spread, world.affinity), clones, strict=True)
    ]
    kept = [
        None if state is None else world.judged(each, state, pod)
        for each, state in zip((world.spread, world.affinity), states, strict=True)
    ]
    assert kept == before
    for key in changes[1]:
        if world.placed.get(key, ("", None))[0] == node:
            world.remove(key)
    for obj in changes[0]:
        world.add(obj, node)
    if told[0] is not None:
        assert told[0] == plain.spread_filter(world.plain(), asked)
    # Where PreFilter skips, supposed pods go unnoticed (C-2).
    if told[1] is not None:
        expected = plain.affinity_filter(world.plain(), asked)
        assert told[1] == (expected or [""] * len(world.table))


def supposed(
    world: Neighbourhood,
    pod: Any,
    clones: list[Any],
    changes: tuple[list[JsonObject], list[str]],
    node: str,
) -> None:
    """Tell both plugins, in clones of their states, of pods that go and come."""
    info = world.table.info(node)
    for plugin, clone in zip((world.spread, world.affinity), clones, strict=True):
        if clone is None:
            continue
        for key in dict.fromkeys(changes[1]):
            if world.placed.get(key, ("", None))[0] == node:
                plugin.remove_pod(clone, pod, world.placed[key][1], info)
        for obj in changes[0]:
            plugin.add_pod(clone, pod, world.pod(obj), info)


def test_pods_that_come_and_go_leave_nothing_behind() -> None:
    world = Neighbourhood(make_node("n"))
    census = world.table.shared(PodCensus)
    asked = make_pod("asked", "red").spread(plain.HOSTNAME, app="web").build()
    for number in range(300):
        pod = make_pod(f"p{number}", "red").labels({"app": "web", "number": str(number)})
        world.add(pod.near(plain.ZONE, number=str(number)), "n")
        if number:
            world.remove(f"red/p{number - 1}")
        agrees(world, asked)
    assert len(census._label_groups) < 80
    assert len(census._term_groups) == 1


def test_pods_like_those_that_were_forgotten_count_again() -> None:
    world = Neighbourhood(make_node("m"), make_node("n"))
    census = world.table.shared(PodCensus)
    like = [make_pod("p", "red").labels({"app": "web", "number": str(at)}) for at in range(100)]
    for pod in like:
        world.add(pod, "n")
        census.sync()
        world.remove("red/p")
        census.sync()
    world.add(like[0], "n")
    agrees(
        world, make_pod("asked", "red").label(app="web").spread(plain.HOSTNAME, app="web").build()
    )


def test_a_node_that_leaves_and_comes_back_between_two_looks_is_counted_once() -> None:
    world = Neighbourhood(make_node("m"), make_node("n"))
    asked = make_pod("asked", "red").label(app="web").spread(plain.HOSTNAME, app="web").build()
    agrees(world, asked)
    world.add(make_pod("p", "red").label(app="web"), "n")
    world.remove_node("n")
    world.table.refresh()
    world.set_node(make_node("n"))
    agrees(world, asked)
    world.remove("red/p")
    agrees(world, asked)


def test_there_are_only_so_many_counters() -> None:
    world = Neighbourhood(make_node("n"))
    census = world.table.shared(PodCensus)
    census._cells_kept = 0
    world.add(make_pod("p", "red").label(app="web"), "n")
    for number in range(200):
        agrees(world, make_pod("asked", "red").spread(plain.HOSTNAME, app=str(number)).build())
    agrees(world, make_pod("asked", "red").spread(plain.HOSTNAME, app="web").build())
    assert len(census._counters) <= 32


@dataclass(frozen=True)
class SameTeam:
    """A question of somebody else's plugin, as in design note 0022."""

    team: str
    reads_labels = True
    held_against = None

    @property
    def pair(self) -> tuple[str, str]:
        return ("team", self.team)

    def of_labels(self, group: LabelGroup) -> Share:
        return ONE if group.labels.get("team") == self.team else NO_SHARE

    def of_term(self, carried: CarriedTerm) -> Share:
        return NO_SHARE


def test_anybody_may_ask_the_census() -> None:
    nodes = [make_node(f"n{at}").labels({"rack": rack}) for at, rack in enumerate("aab")]
    world = Neighbourhood(*nodes, make_node("n3"))
    census = world.table.shared(PodCensus)
    for at, node in enumerate(("n0", "n1", "n1", "n2", "n3")):
        world.add(make_pod(f"p{at}", "red").label(team="x" if at < 4 else "y"), node)
    census.sync()
    counter = census.counter(None, SameTeam("x"))
    assert counter.amounts.tolist() == [1, 2, 1, 0]
    assert census.counter(counter, SameTeam("x")) is counter
    tally = census.tally(counter, "rack")
    assert tally.amounts.take(tally.ids).tolist() == [3, 3, 1, 0]
