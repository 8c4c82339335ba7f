"""A scheduler that has seen everything happen decides as one that has just been started does.

Nodes, pods, Services, claims and labels of namespaces come, change and go at random. Whatever the
old scheduler has kept must not show: not in a verdict, a score, a reason or a victim.
"""

import copy
from typing import Any

import pytest

from kubescene.actors import Actor, Component
from kubescene.api.kinds import NAMESPACE
from kubescene.api.records import make_record
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import Stream
from kubescene.scheduler import Scheduler, SchedulerOptions, default_profile, kube_scheduler
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.informers import KINDS, NODE, POD
from kubescene.scheduler.framework.interfaces import EventResource
from kubescene.scheduler.framework.profile import Profile
from kubescene.scheduler.plugins.pod_topology_spread.default_selectors import SERVICE
from kubescene.scheduler.state.pods import PodInfo
from kubescene.testing.builders import make_node, make_pod, make_priority_class
from kubescene.types import JsonObject
from scheduler.staging import Stage
from scheduler.storage import bound_claim, claim, storage_class, volume
from scheduler.tables import PODS

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CLAIM = KINDS[EventResource.PERSISTENT_VOLUME_CLAIM]
PRIORITIES = {"low": 1, "middle": 5, "high": 100}
SECOND = Profile(
    "second",
    default_profile().points,
    {
        "InterPodAffinity": {"hardPodAffinityWeight": 7},
        "PodTopologySpread": {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
            ],
        },
    },
)
PROFILES = (default_profile(), SECOND)


class Life:
    """A cluster in which something happens all the time."""

    def __init__(self, seed: int) -> None:
        self.random = Stream(seed)
        self.world = Stage(profiles=PROFILES)
        self.there: dict[Any, list[str]] = {NODE: [], POD: [], SERVICE: [], CLAIM: []}
        self.made = 0
        self.world.create(*(make_priority_class(*each) for each in PRIORITIES.items()))
        self.world.create(storage_class(), *(volume(f"v-{zone}", zone=zone) for zone in "xy"))
        for _ in range(3):
            self.come(NODE)

    def one(self, *choices: Any) -> Any:
        return choices[self.random.below(len(choices))]

    def perhaps(self, percent: int) -> bool:
        return self.random.below(100) < percent

    def happen(self) -> None:
        gvk = self.one(NODE, NODE, POD, POD, POD, POD, SERVICE, CLAIM)
        do = self.one(self.come, self.come, self.change, self.go)
        if do == self.come or len(self.there[gvk]) < 2:
            self.come(gvk)
        else:
            do(gvk)
        if self.perhaps(20):
            labels = {"metadata": {"labels": {"env": self.one("prod", None)}}}
            self.world.client.patch(ObjectRef(NAMESPACE, "default"), labels)
        if self.perhaps(70):
            self.world.scheduler.run_once()

    def come(self, gvk: Any) -> None:
        self.made += 1
        name = f"{gvk.kind.lower()}-{self.made}"
        makers = {NODE: self.node, POD: self.pod, SERVICE: self.service, CLAIM: self.claim}
        self.there[gvk].append(name)
        self.world.create(makers[gvk](name))

    def go(self, gvk: Any) -> None:
        name = self.one(*self.there[gvk])
        self.there[gvk].remove(name)
        ref = ObjectRef(gvk, name, "" if gvk == NODE else "default")
        self.world.client.delete(ref)
        if gvk == NODE and self.perhaps(50):
            self.there[gvk].append(name)
            self.world.create(self.node(name))

    def change(self, gvk: Any) -> None:
        name = self.one(*self.there[gvk])
        if gvk == NODE:
            node = self.node(name)
            labels = {"disk": self.one("ssd", None), ZONE: self.one("x", "y", None)}
            patch = {
                "metadata": {"labels": labels},
                "spec": {"taints": (node.get("spec") or {}).get("taints")},
            }
            self.world.client.patch(ObjectRef(NODE, name), patch)
            offered = {"status": {"allocatable": node["status"]["allocatable"]}}
            self.world.client.patch(ObjectRef(NODE, name), offered, subresource="status")
        elif gvk == POD:
            labels = {"app": self.one("a", "b"), "tier": self.one("p", None)}
            patch = {"metadata": {"labels": labels}}
            self.world.client.patch(ObjectRef(POD, name, "default"), patch)

    def node(self, name: str) -> JsonObject:
        node = make_node(name).cpu(self.one("2", "4")).memory("16Gi").pods(self.one("3", "9"))
        node = node.labels({HOST: name, ZONE: self.one("x", "y")})
        if self.perhaps(20):
            node = node.taint("t", effect=self.one("NoSchedule", "PreferNoSchedule"))
        return node.build()

    def pod(self, name: str) -> JsonObject:
        pod = make_pod(name).cpu(self.one("500m", "1", "2")).label(app=self.one("a", "b"))
        key, app = self.one(ZONE, HOST), self.one("a", "b")
        pod = self.one(
            pod,
            pod.spread(key, soft=self.one(True, False), app=app),
            pod.near(key, weight=self.one(0, 10), app=app),
            pod.away_from(key, weight=self.one(0, 10), app=app),
            pod.select(disk="ssd"),
        )
        pod = pod.priority_class(self.one(*PRIORITIES)).scheduler(self.one("second", ""))
        obj: JsonObject = pod.build()
        if self.there[CLAIM] and self.perhaps(30):
            source = {"claimName": self.one(*self.there[CLAIM])}
            obj["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": source}]
        return obj

    def service(self, name: str) -> JsonObject:
        spec = {"selector": {"app": self.one("a", "b")}, "ports": [{"port": 80}]}
        metadata = {"name": name, "namespace": "default"}
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}

    def claim(self, name: str) -> JsonObject:
        made: JsonObject = self.one(claim(name), bound_claim(name, self.one("v-x", "v-y", "gone")))
        return made


def decided(scheduler: Scheduler, pod: JsonObject) -> dict[str, Any]:
    """What a scheduler says about a pod, by node."""
    obj = copy.deepcopy(pod)
    obj["metadata"]["uid"] = "probe"
    obj["spec"]["priority"] = PRIORITIES[obj["spec"]["priorityClassName"]]
    scheduler.nodes.refresh()
    info = PodInfo.read(make_record(PODS, obj, 1), obj, scheduler.watcher.classes)
    return told(scheduler.cycle_of(info.scheduler_name).decide(info, explain=Explain.FULL))


def told(decision: Decision) -> dict[str, Any]:
    found: dict[str, Any] = {"message": decision.message, "plugins": decision.plugins}
    if (why := decision.explanation) is not None:
        names = why.nodes
        for group in why.filters:
            refused = dict.fromkeys(
                (names[at] for at in group.nodes), (group.plugin, group.reasons)
            )
            found.update(refused)
        for column in why.scores:
            rated = zip(why.scored, column.raw, column.normalized, strict=True)
            found.update({f"{column.plugin}/{names[at]}": (raw, final) for at, raw, final in rated})
    if decision.preemption is not None:
        # Which of two equal pods is the victim depends on the order in which they came.
        tried = decision.preemption.tried
        found["tried"] = {each.node: (len(each.victims), each.reasons) for each in tried}
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_never_shows(seed: int) -> None:
    life = Life(seed)
    probes = [life.pod(f"probe-{number}") for number in range(8)]
    for step in range(20):
        for _ in range(3):
            life.happen()
        actor = Actor(f"fresh-{step}", Component.SCHEDULER)
        context = life.world.cluster.context(actor)
        old, new = life.world.scheduler, kube_scheduler(context, SchedulerOptions(PROFILES))
        if len(old.placed.by_uid) != len(new.placed.by_uid):
            continue  # Nobody but the old one knows of pods that wait for their volumes.
        for probe in (life.one(*probes), life.one(*probes)):
            assert decided(old, probe) == decided(new, probe), (step, probe["spec"])
