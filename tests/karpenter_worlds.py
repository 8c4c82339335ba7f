"""Worlds with Karpenter: a catalogue, pools, pods."""

from typing import Any

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.karpenter.flags import read_karpenter_flags
from kubescene.types import JsonObject

BOOT = {"time": "40s", "registration": "5s", "ready": "10s"}


def kind(name: str, cpu: int, price: str, *zones: str, spot: str = "", **more: Any) -> JsonObject:
    """A type with 4 GiB for each core."""
    offers: list[JsonObject] = [{"zone": each, "price": price} for each in zones or ("a", "b")]
    if spot:
        offers += [{**each, "price": spot, "capacityType": "spot"} for each in offers]
    capacity = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi"}
    return {"name": name, "capacity": capacity, "offers": offers, **more}


SMALL, LARGE = kind("m-2", 2, "0.1"), kind("m-8", 8, "0.4")
KINDS = (SMALL, kind("m-4", 4, "0.2"), LARGE)


def catalogue(*kinds: JsonObject, boot: Any = BOOT, **more: Any) -> JsonObject:
    spec = {"instanceTypes": [*(kinds or KINDS)], "boot": boot, **more}
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "InstanceCatalogue",
        "metadata": {"name": "cloud"},
        "spec": spec,
    }


CAPACITY, ZONE = "karpenter.sh/capacity-type", "topology.kubernetes.io/zone"
TYPE = "node.kubernetes.io/instance-type"


def wants(key: str, *values: str, operator: str = "In") -> JsonObject:
    return {"key": key, "operator": operator, "values": [*values]}


def pool(
    name: str = "general",
    *requirements: JsonObject,
    disruption: Any = None,
    template: Any = None,
    **spec: Any,
) -> JsonObject:
    """Machines on demand, if no requirement is given."""
    machine = {
        "requirements": [*(requirements or (wants(CAPACITY, "on-demand"),))],
        **(template or {}),
    }
    disruption = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], **(disruption or {})}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": machine}, "disruption": disruption, **spec},
    }


def pod(name: str, cpu: str = "1", spec: Any = None, **metadata: Any) -> JsonObject:
    requests = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"containers": [container], **(spec or {})},
    }


def deployment(replicas: int, cpu: str = "1", name: str = "web", **metadata: Any) -> JsonObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, **metadata}, "spec": pod("", cpu)["spec"]},
        },
    }


class KarpenterCluster:
    """A cluster, and what is asked of it."""

    def __init__(self, *objects: JsonObject, seed: int = 0, **flags: object) -> None:
        wanted = {name.replace("_", "-"): value for name, value in flags.items()}
        settings = read_karpenter_flags(wanted, "spec.simulation.karpenter")
        self.world = ClusterWorld(ClusterOptions(karpenter=settings, seed=seed))
        for each in objects:
            self.world.create(each)

    def add(self, *objects: JsonObject) -> "KarpenterCluster":
        for each in objects:
            self.world.create(each)
        return self

    def after(self, time: str) -> "KarpenterCluster":
        self.world.advance(time)
        return self

    def scale(self, replicas: int, name: str = "web") -> "KarpenterCluster":
        self.world.patch("deployments", name, {"spec": {"replicas": replicas}})
        return self

    @property
    def nodes(self) -> list[JsonObject]:
        return list(self.world.list("nodes"))

    @property
    def claims(self) -> list[JsonObject]:
        return list(self.world.list("nodeclaims"))

    @property
    def types(self) -> list[str]:
        """Types of the nodes there are."""
        return sorted(each["metadata"]["labels"][TYPE] for each in self.nodes)

    def labels(self, key: str) -> list[str]:
        return sorted(each["metadata"]["labels"].get(key, "") for each in self.nodes)

    @property
    def waiting(self) -> list[str]:
        pods = self.world.list("pods")
        return sorted(it["metadata"]["name"] for it in pods if not it["spec"].get("nodeName"))

    def ready(self, name: str = "general") -> tuple[str, str]:
        conditions = self.world.get("nodepools", name)["status"]["conditions"]
        found = next(each for each in conditions if each["type"] == "Ready")
        return found["status"], found["message"]
