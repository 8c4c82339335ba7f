"""Scenarios made by chance, for two schedulers that must decide alike.

They use what the default plugins look at, in steps between which nodes come, go and change. Nodes
that join later hold no images: it looks at park pods between, and so knows older numbers of
holders. `waiting_scenario` has little room and several priorities, so that most pods are tried
again; nobody preempts, since kube-scheduler chooses among equal victims by chance.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from kubescene.clock.randomness import Streams
from kubescene.types import JsonObject
from outside_runs import create, done, scenario

ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"
T = TypeVar("T")
NAMESPACES = ("default", "red", "blue")
IMAGES = ("registry.example/large:v1", "registry.example/small:v1", "plain")
SCORING = (
    *("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity"),
    *("PodTopologySpread", "NodeAffinity", "TaintToleration"),
)


class Chance:
    """All draws of one scenario."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._stream = Streams(seed).stream(purpose)
        self._pods = 0

    def happens(self, share: float) -> bool:
        return self._stream.uniform() < share

    def number(self, least: int, most: int) -> int:
        return least + self._stream.below(most - least + 1)

    def one(self, of: Sequence[T]) -> T:
        return of[self._stream.below(len(of))]

    def some(self, of: Sequence[T], count: int) -> list[T]:
        left = list(of)
        return [left.pop(self._stream.below(len(left))) for _ in range(count)]

    # -- nodes -------------------------------------------------------------------------------------

    def node(self, name: str, images: Sequence[str] = ()) -> JsonObject:
        labels = {HOST: name, ZONE: self.one("abc"), "disk": self.one(["ssd", "hdd"])}
        labels |= {RACK: self.one("xyz")} if self.happens(0.7) else {}
        room = {
            "cpu": self.one(["2", "4", "8"]),
            "memory": self.one(["4Gi", "8Gi", "16Gi"]),
            "pods": self.one(["4", "10", "110"]),
        }
        held = [each for each in images if self.happens(0.5)]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [self.taint()]} if self.happens(0.3) else {},
            "status": {
                "capacity": room,
                "allocatable": room,
                "images": [{"names": [each], "sizeBytes": 700 * 2**20} for each in held],
            },
        }

    def taint(self) -> JsonObject:
        effect = self.one(["NoSchedule", "PreferNoSchedule"])
        return {"key": "for", "value": self.one(["a", "b"]), "effect": effect}

    # -- pods --------------------------------------------------------------------------------------

    def pod(self) -> JsonObject:
        self._pods += 1
        requests = {"cpu": self.one(["100m", "500m", "1", "3"]), "memory": self.one(["1Gi", "3Gi"])}
        container: JsonObject = {"name": "c", "image": self.one(IMAGES)}
        container["resources"] = {"requests": requests}
        if self.happens(0.2):
            container["ports"] = [{"containerPort": 80, "hostPort": self.one([80, 81])}]
        spec: JsonObject = {"containers": [container], "affinity": self.affinity()}
        if self.happens(0.4):
            spec["topologySpreadConstraints"] = [self.spread(key) for key in self.keys()]
        if self.happens(0.4):
            spec["tolerations"] = [{"key": "for", "value": self.one(["a", "b"])}]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"pod-{self._pods}",
                "namespace": self.one(NAMESPACES),
                "labels": {"app": self.one("ab"), "version": self.one("12")},
            },
            "spec": spec,
        }

    def keys(self) -> list[str]:
        return self.some([ZONE, HOST, RACK], self.number(1, 2))

    def selector(self) -> JsonObject:
        if self.happens(0.2):
            return {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b"]}]}
        return {"matchLabels": {"app": self.one("ab")}}

    def spread(self, key: str) -> JsonObject:
        hard = self.happens(0.5)
        made: JsonObject = {
            "maxSkew": self.number(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": self.selector(),
        }
        made |= {"minDomains": self.number(1, 3)} if hard and self.happens(0.3) else {}
        made |= {"matchLabelKeys": ["version"]} if self.happens(0.3) else {}
        made |= {"nodeTaintsPolicy": "Honor"} if self.happens(0.3) else {}
        return made

    def term(self) -> JsonObject:
        made: JsonObject = {"topologyKey": self.one([ZONE, HOST, RACK])}
        made["labelSelector"] = self.selector()
        made |= {"namespaces": self.some(NAMESPACES, 2)} if self.happens(0.3) else {}
        made |= {"namespaceSelector": {"matchLabels": {"of": "red"}}} if self.happens(0.3) else {}
        made |= {"matchLabelKeys": ["version"]} if self.happens(0.3) else {}
        return made

    def affinity(self) -> JsonObject:
        made: JsonObject = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            terms: JsonObject = {}
            if self.happens(0.2):
                terms["requiredDuringSchedulingIgnoredDuringExecution"] = [self.term()]
            if self.happens(0.3):
                weighted = {"weight": self.number(1, 100), "podAffinityTerm": self.term()}
                terms["preferredDuringSchedulingIgnoredDuringExecution"] = [weighted]
            made[kind] = terms
        disk = {"key": "disk", "operator": "In", "values": [self.one(["ssd", "hdd"])]}
        term = {"matchExpressions": [disk]}
        if self.happens(0.2):
            required = {"nodeSelectorTerms": [term]}
            made["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        elif self.happens(0.3):
            weighted = {"weight": self.number(1, 100), "preference": term}
            made["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
        return made

    # -- the scheduler -----------------------------------------------------------------------------

    def configuration(self) -> JsonObject:
        profile: JsonObject = {"schedulerName": "default-scheduler", "pluginConfig": []}
        if self.happens(0.5):
            gone = [{"name": each} for each in self.some(SCORING, self.number(1, 3))]
            profile["plugins"] = {"score": {"disabled": gone}}
        if self.happens(0.6):
            strategy = {
                "type": self.one(["LeastAllocated", "MostAllocated"]),
                "resources": [{"name": "cpu", "weight": self.number(1, 9)}, {"name": "memory"}],
            }
            fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
            profile["pluginConfig"].append(fit)
        if self.happens(0.4):
            weight = {"hardPodAffinityWeight": self.one([0, 50, 100])}
            profile["pluginConfig"].append({"name": "InterPodAffinity", "args": weight})
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": self.one([0, 50, 100]),
            "profiles": [profile],
        }


def random_operations(seed: int) -> list[JsonObject]:
    """Ten to thirty pods in four steps, on up to twelve nodes."""
    chance = Chance(seed, "operations")
    operations: list[Any] = [
        create(1, {"apiVersion": "v1", "kind": "Namespace", "metadata": each})
        for each in ({"name": name, "labels": {"of": name}} for name in NAMESPACES[1:])
    ]
    names = [f"node-{index}" for index in range(chance.number(3, 9))]
    operations += [create(1, chance.node(name, IMAGES)) for name in names]
    for step in range(2, 6):
        operations += [create(step, chance.pod()) for _ in range(chance.number(3, 7))]
        if chance.happens(0.5):
            operations.append(create(step, chance.node(f"node-of-{step}")))
        if chance.happens(0.5):
            operations.append(relabelled(step, chance.one(names), chance.one(["ssd", "hdd"])))
    return [*operations, done(6)]


def relabelled(step: int, name: str, disk: str) -> JsonObject:
    target = {"typeMeta": {"apiVersion": "v1", "kind": "Node"}, "objectMeta": {"name": name}}
    patch = f'{{"metadata":{{"labels":{{"disk":"{disk}"}}}}}}'
    return {"id": f"{step}-{name}", "step": step, "patchOperation": {**target, "patch": patch}}


def random_scenario(seed: int) -> JsonObject:
    """One with a configuration of its own for our scheduler, in ``spec.simulation``."""
    made = scenario(random_operations(seed))
    del made["spec"]["controllers"]["outside"]
    made["spec"]["simulation"] = {"schedulerConfig": Chance(seed, "configuration").configuration()}
    return made


def waiting_scenario(seed: int) -> JsonObject:
    """One in which pods of several priorities wait for nodes that come one by one."""
    chance = Chance(seed, "waiting")
    operations: list[Any] = [create(1, patient(value)) for value in PRIORITIES]
    operations += [
        create(1, {"apiVersion": "v1", "kind": "Namespace", "metadata": each})
        for each in ({"name": name, "labels": {"of": name}} for name in NAMESPACES[1:])
    ]
    operations.append(create(1, {**chance.node("node-0"), "spec": {"unschedulable": True}}))
    for step in range(2, 8):
        for _ in range(chance.number(1, 5)):
            made = chance.pod()
            made["spec"]["priorityClassName"] = f"patient-{chance.one(PRIORITIES)}"
            operations.append(create(step, made))
        if chance.happens(0.7):
            operations.append(create(step, roomy(chance.node(f"node-{step}"))))
        if chance.happens(0.4):
            operations.append(relabelled(step, "node-0", chance.one(["ssd", "hdd"])))
    made = scenario([*operations, done(9)])
    del made["spec"]["controllers"]["outside"]
    return made


PRIORITIES = (0, 10, 200)


def roomy(node: JsonObject) -> JsonObject:
    """A node for many of those that wait: they are bound one after the other."""
    room = {"cpu": "12", "memory": "24Gi", "pods": "110"}
    return {**node, "spec": {}, "status": {"capacity": room, "allocatable": room}}


def patient(value: int) -> JsonObject:
    """A priority that removes nobody."""
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    metadata = {"name": f"patient-{value}"}
    return {**kind, "metadata": metadata, "value": value, "preemptionPolicy": "Never"}
