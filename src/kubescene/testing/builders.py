"""API objects in one line: ``make_pod("a").cpu("500m").select(disk="ssd")``.

Builders are immutable: every method returns a new one, so a base can be shared between tests.
"""

from typing import Any, Self

from kubescene.types import JsonObject


class ObjectBuilder:
    """Holds an object and returns changed copies of it."""

    def __init__(self, obj: JsonObject) -> None:
        self._obj = obj

    def build(self) -> JsonObject:
        return self._obj

    def label(self, **labels: str) -> Self:
        return self._merge({"metadata": {"labels": labels}})

    def labels(self, labels: dict[str, str]) -> Self:
        """For keys that are not Python names: ``labels({"topology.kubernetes.io/zone": "a"})``."""
        return self._merge({"metadata": {"labels": labels}})

    def annotate(self, annotations: dict[str, str]) -> Self:
        return self._merge({"metadata": {"annotations": annotations}})

    def namespace(self, name: str) -> Self:
        return self._merge({"metadata": {"namespace": name}})

    def _merge(self, change: JsonObject) -> Self:
        return type(self)(merged(self._obj, change))

    def _append(self, part: str, field: str, item: JsonObject) -> Self:
        items = [*self._obj.get(part, {}).get(field, []), item]
        return self._merge({part: {field: items}})


class PodBuilder(ObjectBuilder):
    def cpu(self, amount: str) -> Self:
        return self.request("cpu", amount)

    def memory(self, amount: str) -> Self:
        return self.request("memory", amount)

    def request(self, resource: str, amount: str) -> Self:
        """A request of the first container."""
        first, *rest = self._obj["spec"]["containers"]
        asked = merged(first, {"resources": {"requests": {resource: amount}}})
        return self._merge({"spec": {"containers": [asked, *rest]}})

    def select(self, **labels: str) -> Self:
        return self._merge({"spec": {"nodeSelector": labels}})

    def on(self, node: str) -> Self:
        return self._merge({"spec": {"nodeName": node}})

    def priority_class(self, name: str) -> Self:
        return self._merge({"spec": {"priorityClassName": name}})

    def scheduler(self, name: str) -> Self:
        return self._merge({"spec": {"schedulerName": name}})

    def tolerate(self, key: str, *, value: str = "", effect: str = "") -> Self:
        toleration = {"key": key, "operator": "Equal" if value else "Exists"}
        toleration |= {k: v for k, v in (("value", value), ("effect", effect)) if v}
        return self._append("spec", "tolerations", toleration)

    def gate(self, name: str) -> Self:
        return self._append("spec", "schedulingGates", {"name": name})

    def spread(self, key: str, *, skew: int = 1, soft: bool = False, **labels: str) -> Self:
        """A topology spread constraint over pods with these labels."""
        constraint = {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
        return self._append("spec", "topologySpreadConstraints", constraint)

    def near(self, key: str, *, weight: int = 0, **labels: str) -> Self:
        """Affinity to pods with these labels: required, or with a weight preferred."""
        return self._related("podAffinity", key, weight, labels)

    def away_from(self, key: str, *, weight: int = 0, **labels: str) -> Self:
        """Anti-affinity, likewise."""
        return self._related("podAntiAffinity", key, weight, labels)

    def _related(self, kind: str, key: str, weight: int, labels: dict[str, str]) -> Self:
        term: JsonObject = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
        when = "preferred" if weight else "required"
        field = f"{when}DuringSchedulingIgnoredDuringExecution"
        held = ((self._obj["spec"].get("affinity") or {}).get(kind) or {}).get(field) or []
        added = {"weight": weight, "podAffinityTerm": term} if weight else term
        return self._merge({"spec": {"affinity": {kind: {field: [*held, added]}}}})

    def require(self, key: str, operator: str, *values: str) -> Self:
        """One required node affinity term with one expression."""
        expression: JsonObject = {"key": key, "operator": operator}
        if values:
            expression["values"] = list(values)
        term = {"matchExpressions": [expression]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        return self._merge({"spec": {"affinity": {"nodeAffinity": required}}})


class NodeBuilder(ObjectBuilder):
    def cpu(self, amount: str) -> Self:
        return self.capacity("cpu", amount)

    def memory(self, amount: str) -> Self:
        return self.capacity("memory", amount)

    def pods(self, amount: str) -> Self:
        return self.capacity("pods", amount)

    def capacity(self, resource: str, amount: str) -> Self:
        amounts = {resource: amount}
        return self._merge({"status": {"capacity": amounts, "allocatable": amounts}})

    def zone(self, name: str) -> Self:
        return self.labels({"topology.kubernetes.io/zone": name})

    def taint(self, key: str, *, value: str = "", effect: str = "NoSchedule") -> Self:
        taint = (
            {"key": key, "value": value, "effect": effect}
            if value
            else {"key": key, "effect": effect}
        )
        return self._append("spec", "taints", taint)

    def unschedulable(self) -> Self:
        return self._merge({"spec": {"unschedulable": True}})


class ReplicaSetBuilder(ObjectBuilder):
    def replicas(self, count: int) -> Self:
        return self._merge({"spec": {"replicas": count}})

    def template(self, pod: PodBuilder) -> Self:
        """Use the spec of a pod; labels and selector stay those of the set."""
        return self._merge({"spec": {"template": {"spec": pod.build()["spec"]}}})


class DeploymentBuilder(ReplicaSetBuilder):
    def image(self, image: str) -> Self:
        """The image of the template's first container."""
        first, *rest = self._obj["spec"]["template"]["spec"]["containers"]
        containers = [{**first, "image": image}, *rest]
        return self._merge({"spec": {"template": {"spec": {"containers": containers}}}})

    def rolling(self, *, max_surge: int | str, max_unavailable: int | str) -> Self:
        pace = {"maxSurge": max_surge, "maxUnavailable": max_unavailable}
        return self._merge({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": pace}}})

    def recreate(self) -> Self:
        return self._merge({"spec": {"strategy": {"type": "Recreate"}}})

    def paused(self) -> Self:
        return self._merge({"spec": {"paused": True}})


def make_pod(name: str, namespace: str = "default") -> PodBuilder:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    return PodBuilder(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"containers": [container]},
        }
    )


def make_node(name: str) -> NodeBuilder:
    """An empty node that takes 110 pods and carries its host name as a label."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
    }
    return NodeBuilder(node).pods("110")


def make_priority_class(name: str, value: int) -> ObjectBuilder:
    return ObjectBuilder(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
    )


def make_replica_set(name: str, namespace: str = "default") -> ReplicaSetBuilder:
    """One replica of a pause pod, selected by ``app=NAME``."""
    return ReplicaSetBuilder(replicated("ReplicaSet", name, namespace))


def make_deployment(name: str, namespace: str = "default") -> DeploymentBuilder:
    """One replica of a pause pod, selected by ``app=NAME``, updated as Kubernetes does."""
    return DeploymentBuilder(replicated("Deployment", name, namespace))


def replicated(kind: str, name: str, namespace: str) -> JsonObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": make_pod(name).build()["spec"],
            },
        },
    }


def merged(obj: JsonObject, change: JsonObject) -> JsonObject:
    """A copy of ``obj`` with the members of ``change`` merged in; lists are replaced."""
    result: dict[str, Any] = dict(obj)
    for key, value in change.items():
        old = result.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[key] = merged(old, value) if both and old is not None else value
    return result
