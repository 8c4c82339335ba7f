"""Scenarios made by lot: what changes how a pod is placed, in mixtures nobody wrote down.

`random_scenario(seed)` is the same document for the same seed, in every version. They are played to
compare two ways of doing the same thing (plain and fast, before and after), byte for byte.
`random_scenarios()` is the same for Hypothesis: every choice is drawn, so that a scenario that
shows a difference shrinks to what it takes.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

Json = dict[str, Any]
T = TypeVar("T")

API_VERSION = "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
STEPS = 7
MOST_MINOR_STEPS = 2_000
"""Preemptors and the controllers of their victims may chase each other for ever, as in life."""


class Lot:
    """A generator of our own, so that documents do not depend on a library's version."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2_654_435_761 + 12_345

    def below(self, count: int) -> int:
        self._state = (self._state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return (self._state >> 33) % count

    def of(self, *values: T) -> T:
        return values[self.below(len(values))]

    def happens(self, percent: int) -> bool:
        return self.below(100) < percent


class Drawn(Lot):
    """Choices that Hypothesis makes: the first value is the simplest."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def below(self, count: int) -> int:
        return self._draw(st.integers(0, count - 1))

    def happens(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent


def random_scenario(seed: int, *, pods: int = 60, nodes: int = 12) -> Json:
    """One scenario of seven steps; `pods` and `nodes` are what it has about."""
    return scenario_by(Lot(seed), seed, pods=pods, nodes=nodes)


@st.composite
def random_scenarios(draw: st.DrawFn, *, pods: int = 60, nodes: int = 12) -> Json:
    """Scenarios whose choices Hypothesis makes."""
    return scenario_by(Drawn(draw), draw(st.integers(0, 9)), pods=pods, nodes=nodes)


def scenario_by(lot: Lot, seed: int, *, pods: int, nodes: int) -> Json:
    """The scenario that a lot decides about."""
    operations: list[Json] = []

    def add(step: int, kind: str, body: Json) -> None:
        operations.append({"step": step, f"{kind}Operation": body})

    for value, name in ((10, "low"), (1_000, "high")):
        add(1, "create", {"object": _priority_class(name, value, lot)})
    for pool in range(1 + lot.below(3)):
        node = _node(lot, pool)
        add(1, "create", {"object": node, "count": 1 + lot.below(max(1, nodes // 2))})
    for step in range(2, STEPS):
        for number in range(1 + lot.below(4)):
            body = _workload(lot, f"{step}-{number}", pods // 10)
            add(step, "create", body)
        if lot.happens(50):
            add(step, *_disturbance(lot))
        if lot.happens(40):
            add(step, "advance", {"duration": lot.of("5s", "90s", "10m")})
    add(STEPS, "done", {})
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": f"random-{seed}"},
        "spec": {"operations": operations, "simulation": _simulation(lot, seed)},
    }


def _simulation(lot: Lot, seed: int) -> Json:
    settings: Json = {"seed": seed, "explain": lot.of("Auto", "Full", "Failures", "Off")}
    settings["maxMinorSteps"] = MOST_MINOR_STEPS
    if lot.happens(30):
        settings["kubelet"] = {
            "startDelay": lot.of("0s", "3s"),
            "readyDelay": lot.of("0s", "20s"),
            "terminateDelay": lot.of("0s", "5s"),
        }
    if lot.happens(15):
        settings["annotations"] = True
    return settings


def _priority_class(name: str, value: int, lot: Lot) -> Json:
    made: Json = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    if lot.happens(30):
        made["preemptionPolicy"] = "Never"
    return made


def _node(lot: Lot, pool: int) -> Json:
    name = f"pool{pool}-$(INDEX)"
    labels = {HOSTNAME: name, "pool": f"p{pool}", "disk": lot.of("ssd", "hdd")}
    if lot.happens(80):
        labels[ZONE] = lot.of("a", "b", "c")
    capacity = {
        "cpu": lot.of("2", "4", "8", "3500m"),
        "memory": lot.of("4Gi", "8Gi", "16Gi"),
        "pods": lot.of("4", "10", "110"),
    }
    if lot.happens(20):
        capacity["example.com/gpu"] = "2"
    spec: Json = {}
    if lot.happens(20):
        effect = lot.of("NoSchedule", "PreferNoSchedule")
        spec["taints"] = [{"key": "dedicated", "value": "batch", "effect": effect}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def _workload(lot: Lot, name: str, most: int) -> Json:
    count = 1 + lot.below(max(1, most))
    template = _pod_template(lot, f"app-{lot.below(3)}")
    return lot.of(_single, _counted, _counted, _replica_set, _deployment)(name, template, count)


def _single(name: str, template: Json, count: int) -> Json:
    return {"object": _pod(f"pod-{name}", template)}


def _counted(name: str, template: Json, count: int) -> Json:
    return {"object": _pod(f"pod-{name}-$(INDEX)", template), "count": 2 * count}


def _pod(name: str, template: Json) -> Json:
    labels = template["metadata"]["labels"]
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _replica_set(name: str, template: Json, count: int) -> Json:
    return _owner("ReplicaSet", name, template, count)


def _deployment(name: str, template: Json, count: int) -> Json:
    return _owner("Deployment", name, template, count)


def _owner(kind: str, name: str, template: Json, count: int) -> Json:
    labels = {**template["metadata"]["labels"], "owner": name}
    spec = {
        "replicas": count,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
    }
    metadata = {"name": f"set-{name}", "namespace": "default"}
    made = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return {"object": made}


def _pod_template(lot: Lot, app: str) -> Json:
    requests = {"cpu": lot.of("100m", "250m", "1", "3"), "memory": lot.of("128Mi", "1Gi", "3Gi")}
    if lot.happens(8):
        requests = {}
    elif lot.happens(10):
        requests["example.com/gpu"] = "1"
    limits = {key: value for key, value in requests.items() if "/" in key}
    container: Json = {"name": "main", "image": lot.of("app:1", "app:2")}
    container["resources"] = {"requests": requests, **({"limits": limits} if limits else {})}
    if lot.happens(8):
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    spec: Json = {"containers": [container]}
    for percent, change in CHANGES:
        if lot.happens(percent):
            change(lot, spec, app)
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def _select_nodes(lot: Lot, spec: Json, app: str) -> None:
    spec["nodeSelector"] = {"disk": lot.of("ssd", "hdd")}


def _give_priority(lot: Lot, spec: Json, app: str) -> None:
    spec["priorityClassName"] = lot.of("low", "high")


def _tolerate(lot: Lot, spec: Json, app: str) -> None:
    spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]


def _spread(lot: Lot, spec: Json, app: str) -> None:
    constraint = {
        "maxSkew": 1 + lot.below(2),
        "topologyKey": lot.of(ZONE, HOSTNAME),
        "whenUnsatisfiable": lot.of("DoNotSchedule", "ScheduleAnyway"),
        "labelSelector": {"matchLabels": {"app": app}},
    }
    spec["topologySpreadConstraints"] = [constraint]


def _affinity(lot: Lot, spec: Json, app: str) -> None:
    term = {
        "topologyKey": lot.of(ZONE, HOSTNAME),
        "labelSelector": {"matchLabels": {"app": lot.of(app, "app-0")}},
    }
    soft = {"weight": 1 + lot.below(100), "podAffinityTerm": term}
    rule: Json = lot.of(
        {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        {"preferredDuringSchedulingIgnoredDuringExecution": [soft]},
    )
    spec["affinity"] = {lot.of("podAffinity", "podAntiAffinity"): rule}


def _gate(lot: Lot, spec: Json, app: str) -> None:
    spec["schedulingGates"] = [{"name": "example.com/wait"}]


CHANGES: tuple[tuple[int, Callable[[Lot, Json, str], None]], ...] = (
    (15, _select_nodes),
    (30, _give_priority),
    (15, _tolerate),
    (15, _spread),
    (15, _affinity),
    (4, _gate),
)


def _disturbance(lot: Lot) -> tuple[str, Json]:
    """Something happens to the first node: it is cordoned, tainted, relabelled, or gone."""
    node = {"typeMeta": {"apiVersion": "v1", "kind": "Node"}, "objectMeta": {"name": "pool0-0"}}
    patch = lot.of(
        '{"spec": {"unschedulable": true}}',
        '{"spec": {"unschedulable": null}}',
        '{"spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}}',
        '{"spec": {"taints": null}}',
        '{"metadata": {"labels": {"disk": "ssd"}}}',
        '{"metadata": {"labels": {"topology.kubernetes.io/zone": "c"}}}',
    )
    return "patch", {**node, "patch": patch, "patchType": "merge"}
