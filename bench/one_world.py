"""Requests that pods serve, with autoscalers and node groups, in one world.

    python bench/one_world.py [--quick] [NAME ...]

``limits``: an hour, 10 million requests, three services with an HPA each, pods with limits.
``contended``: the same without limits, so that nodes are shared. ``services``: twenty services.
``idle``: a day of three HPAs without a request. Floors: 15 s and 400 MB, 60 s, 15 s, 4 s of CPU.
"""

import sys
from typing import Any

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.types import JsonObject
from measuring import Figures, Span, Stopwatch, alone, peak_mb, row, start

SECOND = 10**9


def node_group(size: int) -> JsonObject:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": "std"},
        "spec": {
            "size": size,
            "boot": {"time": "0s", "ready": "0s"},
            "template": {"status": {"capacity": amounts, "allocatable": amounts}},
        },
    }


def service(name: str, points: list[JsonObject], *, limits: bool, most: int) -> list[JsonObject]:
    """A Deployment, its HPA and its Traffic."""
    amounts = {"cpu": "500m", "memory": "256Mi"}
    resources = {"requests": amounts, **({"limits": amounts} if limits else {})}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "app", "image": "web", "resources": resources}]},
    }
    utilization = {"type": "Utilization", "averageUtilization": 60}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": 4,
                "selector": {"matchLabels": {"app": name}},
                "template": template,
            },
        },
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name},
            "spec": {
                "minReplicas": 2,
                "maxReplicas": most,
                "scaleTargetRef": target,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": utilization}}
                ],
            },
        },
        {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "Traffic",
            "metadata": {"name": name},
            "spec": {
                "to": {"deployment": name},
                "arrivals": {
                    "pattern": "piecewise",
                    "spacing": "poisson",
                    "piecewise": {"points": points, "interpolation": "linear"},
                },
                "request": {"cpuTime": "20ms", "ioTime": "5ms", "timeout": "5s"},
            },
        },
    ]


def wave(low: float, high: float) -> list[JsonObject]:
    return [
        {"at": "0s", "rps": low},
        {"at": "20m", "rps": high},
        {"at": "40m", "rps": high},
        {"at": "1h", "rps": low},
    ]


def measure(
    services: int, high: float, nodes: int, seconds: int, limits: bool, traffic: bool
) -> Figures:
    delays = KubeletDelays(3 * SECOND, 10 * SECOND, SECOND)
    cluster = ClusterWorld(ClusterOptions(kubelet=delays))
    cluster.create(node_group(nodes))
    most = 2 * int(high * 0.02 / 0.5 / 0.6) + 4
    for number in range(services):
        for each in service(f"s{number}", wave(high / 10, high), limits=limits, most=most):
            if traffic or each["kind"] != "Traffic":
                cluster.create(each)
    watch = Stopwatch()
    cluster.advance(f"{seconds}s")
    span = watch.read()
    statuses = [each["status"] for each in cluster.list("traffics")]
    return {
        **span._asdict(),
        "requests": sum(each["requests"] for each in statuses),
        "failed": sum(each["failed"] for each in statuses),
        "peak_mb": peak_mb(),
    }


HOUR = 3600
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "limits": ({"services": 3, "high": 1550, "seconds": HOUR, "limits": True}, "15 s, 400 MB"),
    "contended": ({"services": 3, "high": 1550, "seconds": HOUR, "limits": False}, "60 s"),
    "services": ({"services": 20, "high": 250, "seconds": HOUR, "limits": True}, "15 s"),
    "idle": ({"services": 3, "high": 100, "seconds": 24 * HOUR, "limits": True}, "4 s"),
}


def main(quick: bool) -> None:
    named = [each for each in sys.argv[1:] if not each.startswith("-")]
    for name in named or CASES:
        case, floor = CASES[name]
        if quick:
            case = {**case, "high": case["high"] / 20, "seconds": case["seconds"] // 4}
        found = alone(__file__, nodes=80, traffic=name != "idle", **case)
        span = Span(found["wall_s"], found["cpu_s"])
        told = f"{found['requests']:12,.0f} requests, {found['failed']:9,.0f} failed"
        row(name, f"{span.cpu_s:7.2f} s CPU {told} {found['peak_mb']:6.0f} MB", floor)


if __name__ == "__main__":
    start(measure, main)
