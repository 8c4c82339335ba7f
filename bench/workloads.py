"""Controllers of workloads in whole scenario runs, at one size and at ten times of it.

    python bench/workloads.py [NAME...] [--quick]

By CPU, from the moment the nodes are ready to the finished summary. ``growth`` is what a pod costs
at the larger size over what it costs at the smaller one: 1 is linear. Each size runs in a process
of its own.
"""

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import kubescene
from kubescene.testing import make_deployment, make_node, make_pod
from measuring import Figures, Span, alone, peak_mb, row, start
from throughput import NodesReady

Builder = kubescene.ScenarioBuilder
RUN_TIME = {"kubescene.dev/run-time": "10m"}
PHASES = 96
"""Into so many a virtual day is divided; pods come at the beginning of each."""


def nodes(count: int, pods: str = "1000") -> Builder:
    """A scenario that begins with so many."""
    node = make_node("node-$(INDEX)").cpu("64").memory("256Gi").pods(pods)
    return Builder("workloads").create(node, count=count).step(2)


def template(**spec: Any) -> dict[str, Any]:
    pod = make_pod("web").cpu("50m").memory("64Mi").build()
    return {"metadata": {"labels": {"app": "web"}}, "spec": {**pod["spec"], **spec}}


def rollout(pods: int) -> Builder:
    """A Deployment that comes, and has all of its pods replaced."""
    built = nodes(max(10, pods // 20))
    pod = make_pod("web").cpu("50m").memory("64Mi")
    built.create(make_deployment("web").replicas(pods).template(pod)).step(3)
    newer = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    return built.patch("apps/v1", "Deployment", "web", newer)


def served(pods: int) -> Builder:
    """A Service, and a Deployment whose pods are behind it."""
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    spec = {"selector": {"app": "web"}, "ports": ports}
    built = nodes(max(10, pods // 20)).create(named("v1", "Service", "web", spec)).step(3)
    pod = make_pod("web").cpu("50m").memory("64Mi")
    return built.create(make_deployment("web").replicas(pods).template(pod))


def daemons(pods: int) -> Builder:
    """A DaemonSet, a pod on each node."""
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template()}
    return nodes(pods, "110").create(named("apps/v1", "DaemonSet", "agent", spec))


def jobs(count: int) -> Builder:
    """Jobs of one pod each, from their creation to their end."""
    built = nodes(200).create(job("job-$(INDEX)"), count=count).step(3)
    return built.advance("20m")


def indexed(pods: int) -> Builder:
    """One Indexed Job, all of whose pods run at a time."""
    wide = {"completions": pods, "parallelism": pods, "completionMode": "Indexed"}
    return nodes(200).create(job("job", **wide)).step(3).advance("20m")


def ending(pods: int) -> Builder:
    """Pods that come all day long, and end after ten minutes."""
    built = nodes(200)
    for phase in range(PHASES):
        pod = make_pod(f"pod-{phase}-$(INDEX)").cpu("50m").memory("64Mi").build()
        pod["metadata"]["annotations"] = RUN_TIME
        pod["spec"]["restartPolicy"] = "Never"
        built.create(pod, count=pods // PHASES)
        built.step(2 * phase + 3).advance(f"{24 * 60 // PHASES}m").step(2 * phase + 4)
    return built


def job(name: str, **spec: Any) -> dict[str, Any]:
    pod = template(restartPolicy="Never")
    pod["metadata"]["annotations"] = RUN_TIME
    return named("batch/v1", "Job", name, {"template": pod, **spec})


def named(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


class Case(NamedTuple):
    """A kind of workload, how many pods or Jobs at most, and what is asked of it."""

    built: Callable[[int], Builder]
    most: int
    floor: str


CASES = {
    "rollout": Case(rollout, 10_000, "2,000 pods/s, each made twice"),
    "served": Case(served, 10_000, "linear"),
    "daemons": Case(daemons, 5_000, "2,500 /s"),
    "jobs": Case(jobs, 10_000, "1,000 /s"),
    "indexed": Case(indexed, 10_000, "linear"),
    "ending": Case(ending, 100_000, "60 s CPU"),
}


def measure(name: str, count: int) -> Figures:
    ready = NodesReady()
    result = kubescene.run(CASES[name].built(count).done(), instruments=(ready,))
    assert result.ok, result.message
    assert ready.at is not None
    wall_s, cpu_s = time.perf_counter() - ready.at.wall_s, time.process_time() - ready.at.cpu_s
    placed = result.summary.placements_total
    return {"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb(), "placed": placed}


def compare(name: str, case: Case, count: int) -> None:
    few, many = (alone(__file__, name=name, count=each) for each in (count // 10, count))
    growth = many["cpu_s"] / many["placed"] / (few["cpu_s"] / few["placed"])
    for each, found in ((count // 10, few), (count, many)):
        span = Span(found["wall_s"], found["cpu_s"])
        pods = int(found["placed"])
        told = f"{span.per(pods)} {span.cpu_s:6.2f} s CPU {found['peak_mb']:6.0f} MB"
        if each == count:
            told += f", growth {growth:.2f}"
        row(f"{name}, {each:,}", told, case.floor if each == case.most else "")


def main(quick: bool) -> None:
    named = [each for each in sys.argv[1:] if not each.startswith("-")]
    for name in named or CASES:
        case = CASES[name]
        compare(name, case, case.most // 10 if quick else case.most)


if __name__ == "__main__":
    start(measure, main)
