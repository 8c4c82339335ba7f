"""How many requests a second are simulated, with their records kept, and what an hour costs.

    python bench/traffic.py [--quick]

Equal and random demands at loads of a half, nine tenths and more than all; every size in a process
of its own. The hour has an HPA and a VPA, samples and the summary; the three runs at the end are
those that Skenario was measured with, and its CPU seconds stand beside ours.
"""

from typing import Any

from kubescene.traffic import run
from measuring import Figures, Span, Stopwatch, alone, peak_mb, row, start

REPLICAS = 10
MILLICORES = 1000
LOADS = (0.5, 0.9, 1.3)
SKENARIO = {
    "form ramp 1/50, 180 s": (
        {"pattern": "ramp", "ramp": {"deltaV": 1, "maxRps": 50}},
        "180s",
        "200ms",
        0.20,
    ),
    "step 100 rps, 2 h": (
        {"pattern": "step", "step": {"rps": 100, "after": "10s"}},
        "2h",
        "200ms",
        69.6,
    ),
    "ramp 1/1000, 2100 s": (
        {"pattern": "ramp", "ramp": {"deltaV": 1, "maxRps": 1000}},
        "2100s",
        "20ms",
        108.6,
    ),
}


def hpa(most: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "hpa"},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": most,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def vpa() -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "vpa"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }


def document(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "TrafficRun",
        "metadata": {"name": "bench"},
        "spec": spec,
    }


def measure(
    kind: str,
    requests: int = 0,
    load: float = 0.5,
    demand: str = "constant",
    name: str = "",
    routing: str = "roundRobin",
) -> Figures:
    run(document(duration="1s"))  # tables and modules
    if kind == "plain":
        asked = plain(requests, load, demand, routing)
    elif kind == "hour":
        asked = hour()
    else:
        asked = skenarios(name, kind)
    watch = Stopwatch()
    result = run(asked)
    if kind != "plain":
        assert result.summary.requests
    span = watch.read()
    return {**span._asdict(), "requests": result.requests.count, "mb": peak_mb()}


def plain(requests: int, load: float, demand: str, routing: str) -> dict[str, Any]:
    rps = 1000
    cpu_ns = int(load * REPLICAS * 10**9 / rps)
    return document(
        duration=f"{requests // rps}s",
        traffic={"pattern": "constant", "spacing": "poisson", "constant": {"rps": rps}},
        request={"cpuTime": f"{cpu_ns}ns", "ioTime": "0s", "demand": demand},
        replicas={"initial": REPLICAS},
        routing=routing,
    )


def hour() -> dict[str, Any]:
    wave = {"amplitude": 1000, "period": "1h"}
    return document(
        duration="1h",
        traffic={"pattern": "sinusoidal", "spacing": "poisson", "sinusoidal": wave},
        request={"cpuTime": "20ms", "ioTime": "20ms"},
        replicas={"initial": 20},
        autoscalers=[{"object": hpa(100)}, {"object": vpa()}],
    )


def skenarios(name: str, mode: str) -> dict[str, Any]:
    traffic, duration, time, _ = SKENARIO[name]
    return document(
        mode=mode,
        duration=duration,
        traffic=traffic,
        request={"cpuTime": time, "ioTime": time},
        autoscalers=[{"object": hpa(60)}],
    )


def main(quick: bool) -> None:
    requests = 100_000 if quick else 400_000
    for demand, floor in (("constant", "600,000"), ("exponential", "300,000")):
        for load in LOADS:
            figures = alone(__file__, kind="plain", requests=requests, load=load, demand=demand)
            span = Span(figures["wall_s"], figures["cpu_s"])
            row(f"{demand} demands, load {load}", span.per(requests), f"floor {floor} /s")
    for routing in ("random", "leastConnections"):
        figures = alone(__file__, kind="plain", requests=requests, routing=routing)
        row(f"{routing}, load 0.5", Span(figures["wall_s"], figures["cpu_s"]).per(requests))
    for factor in (1, 4):
        figures = alone(__file__, kind="plain", requests=factor * requests)
        cost = figures["cpu_s"] / (factor * requests) * 1e9
        row(f"{factor * requests:,} requests", f"{cost:8.0f} ns a request", "flat")
    if not quick:
        figures = alone(__file__, kind="hour")
        told = f"{figures['cpu_s']:8.2f} s CPU {figures['mb']:8.0f} MB"
        row("one hour, 1,000 rps, HPA and VPA", told, "floor 6 s, 300 MB")
    for name in list(SKENARIO)[: 1 if quick else 3]:
        figures = alone(__file__, kind="fixed", name=name)
        theirs = SKENARIO[name][3]
        told = f"{figures['cpu_s']:8.2f} s CPU {figures['mb']:8.0f} MB"
        row(name, told, f"Skenario {theirs} s: {theirs / figures['cpu_s']:.0f} times")
    figures = alone(__file__, kind="faithful", name="form ramp 1/50, 180 s")
    span = Span(figures["wall_s"], figures["cpu_s"])
    row("faithful mode, the form's ramp", span.per(int(figures["requests"])))


if __name__ == "__main__":
    start(measure, main)
