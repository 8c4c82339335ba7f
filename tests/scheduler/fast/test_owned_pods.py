"""Pods that default constraints spread are decided about as usual, and as a whole cycle would."""

from collections import Counter
from typing import Any

import pytest

from kubescene.api.options import DeleteOptions
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    Handle,
    NodeTable,
    PodInfo,
    PreScorePlugin,
    Rows,
    Status,
)
from kubescene.testing.builders import ObjectBuilder, make_pod, make_replica_set
from kubescene.types import JsonObject
from scheduler.fast.lives import Life, compare, probe
from scheduler.staging import NODE, Stage, fast_of

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REPLICA_SET = GroupVersionKind("apps", "v1", "ReplicaSet")
SERVICE = GroupVersionKind("", "v1", "Service")
SETS = ("web", "api")


def owned(pod: ObjectBuilder, name: str) -> JsonObject:
    """A pod of a ReplicaSet."""
    made = pod.labels({"app": name}).build()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name}
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return made


def named(pod: JsonObject, name: str) -> JsonObject:
    return {**pod, "metadata": {**pod["metadata"], "name": name}}


def service(name: str) -> JsonObject:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


class OwnedLife(Life):
    """Pods of two sets that come and go, on nodes some of which have hostname and zone."""

    def __init__(self, seed: int, *, named: int, zoned: int) -> None:
        self.named = named
        """How many of a hundred nodes have a hostname, and ``zoned`` a zone."""
        self.zoned = zoned
        self.there = {*SETS}
        self.served: set[str] = set()
        super().__init__(seed, taints=("NoSchedule", "PreferNoSchedule"))
        for name in SETS:
            self.world.create(replica_set(name))

    def labels(self) -> dict[str, Any]:
        zone = self.one("a", "b", "c", "") if self.perhaps(self.zoned) else None
        return {ZONE: zone}

    def node(self, name: str) -> Any:
        built = super().node(name).build()
        labels = built["metadata"]["labels"]
        if not self.perhaps(self.named):
            del labels[HOSTNAME]
        labels.update({key: value for key, value in self.labels().items() if value is not None})
        return built

    def kinds(self) -> list[JsonObject]:
        kinds = [owned(make_pod("kind").cpu("100m"), name) for name in SETS]
        kinds += [owned(make_pod("kind").cpu("1").memory("1Gi"), "web")]
        others = [make_pod("kind").cpu("100m").label(app="web")]
        others += [make_pod("kind").spread(ZONE, soft=True, app="web")]
        others += [make_pod("kind").near(HOSTNAME, weight=5, app="api").label(app="api")]
        return [*kinds, *(each.build() for each in others)]

    def happen(self) -> None:
        event = self.random.below(30)
        name = self.one(*SETS)
        if event == 0:
            patch = {"metadata": {"labels": self.labels()}}
            self.world.client.patch(ObjectRef(NODE, self.one(*self.nodes)), patch)
        elif event == 1:
            self.turn(self.there, name, REPLICA_SET, replica_set(name))
        elif event == 2:
            self.turn(self.served, name, SERVICE, service(name))
        else:
            super().happen()

    def turn(self, known: set[str], name: str, gvk: GroupVersionKind, made: JsonObject) -> None:
        """Delete what is there, or create it."""
        if name in known:
            known.remove(name)
            self.world.client.delete(ObjectRef(gvk, name, "default"), options=DeleteOptions())
        else:
            known.add(name)
            self.world.create(made)


def replica_set(name: str) -> JsonObject:
    template = make_pod(name).label(app=name)
    return make_replica_set(name).replicas(0).template(template).build()


@pytest.mark.parametrize(
    ("named", "zoned"), [(100, 0), (0, 0), (100, 100), (70, 40), (100, 60)], ids=str
)
@pytest.mark.parametrize("seed", range(2))
def test_spread_pods_go_where_a_whole_cycle_puts_them(seed: int, named: int, zoned: int) -> None:
    life = OwnedLife(seed, named=named, zoned=zoned)
    kinds, made = life.kinds(), Counter[int]()
    for _ in range(40):
        for _ in range(1 + life.random.below(6)):
            life.happen()
        for at in (life.random.below(len(kinds)) for _ in range(2)):
            made[at] += compare(life, kinds[at])
    assert made[0] + made[1] + made[2] > 20


def world_of(*sets: str) -> Stage:
    world = Stage()
    world.nodes("a", "b", "c")
    world.create(*(replica_set(each) for each in sets))
    return world


def test_a_set_that_goes_and_comes_back_ends_and_begins_the_spreading() -> None:
    world = world_of("web")
    cycle = world.scheduler.cycle_of("default-scheduler")
    scored = []

    def decide() -> bool:
        life: Any = type("Of", (), {"world": world})
        found = cycle.fast.decide(probe(life, owned(make_pod("p").cpu("100m"), "web")), None)
        if found is not None:
            scored.append("PodTopologySpread" not in found.state.skipped_scores)
        return found is not None

    assert [decide(), decide()] == [True, True]
    world.client.delete(ObjectRef(REPLICA_SET, "web", "default"), options=DeleteOptions())
    assert [decide(), decide()] == [True, True]
    world.create(replica_set("web"))
    assert [decide(), decide()] == [True, True]
    assert scored == [True, True, False, False, True, True]
    assert len(fast_of(cycle)._kept) == 1


class Prepares(PreScorePlugin):
    """A user's PreScore."""

    name = "Prepares"

    def __init__(self, handle: Handle) -> None:
        self.asked: list[int] = []

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        self.asked.append(rows.size)
        return SUCCESS


def test_plugins_of_others_prepare_themselves_in_whole_cycles_alone() -> None:
    world = Stage(Prepares)
    world.nodes("a", "b", "c")
    world.create(replica_set("web"))
    world.create(named(owned(make_pod("p").cpu("1"), "web"), "p"))
    world.create(make_pod("q").cpu("1"))
    assert [each.node != "" for each in world.work()] == [True, True]
    assert world.plugin("Prepares").asked == [3, 3]


def test_who_skips_one_pod_is_asked_about_the_next() -> None:
    """Nobody is there whom the first pod prefers to be with; then somebody is."""
    world = Stage()
    world.nodes("a", "b", "c")
    life: Any = type("Of", (), {"world": world})
    fast = world.scheduler.cycle_of("default-scheduler").fast
    pod = probe(life, make_pod("p").cpu("1").near(HOSTNAME, weight=100, app="web").build())
    first = fast.decide(pod, None)
    assert first is not None
    assert "InterPodAffinity" in first.state.skipped_scores
    world.create(make_pod("there").label(app="web").on("c"))
    world.scheduler.nodes.refresh()
    found = fast.decide_next(pod, counted=False)
    assert found is not None
    assert (first.node, found.node) == ("a", "c")


def test_counting_owners_change_nothing_unless_other_plugins_matter_then() -> None:
    world = Stage()
    world.nodes("a", "b", "c")
    life: Any = type("Of", (), {"world": world})
    fast = world.scheduler.cycle_of("default-scheduler").fast
    pod = probe(life, make_pod("p").cpu("1").label(app="web").build())
    assert fast.decide(pod, None) is not None
    assert fast.decide_next(pod, counted=True) is not None
    world.create(make_pod("there").label(app="db").away_from(HOSTNAME, app="web").on("c"))
    world.scheduler.nodes.refresh()
    assert fast.decide_next(pod, counted=True) is None
    decided = fast.decide(pod, None)
    assert decided is None or decided.node != "c"
