"""Peaks are true: compared with a second computation, from the lines of the timeline alone."""

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import kubescene
from kubescene.api.resource_requests import node_allocatable, pod_requests
from kubescene.results import open_run
from kubescene.results.measures import measures
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from random_scenarios import random_scenario

EXAMPLES = [
    Path(__file__).parents[2] / "examples" / name / "scenario.yaml"
    for name in ("02-rolling-update", "06-time-passes", "07-node-fails", "10-zone-lost")
]
BEFORE_ANY_STEP = ("OperationsIgnored", "ExpectationsEvaluated", "NotSimulated", "ScenarioEnded")
Shares = dict[str, Fraction]


class World:
    """Nodes and pods as lines tell of them; everything is added up anew whenever it is asked."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, int]] = {}
        self.pods: dict[tuple[str, str], dict[str, Any]] = {}

    def enter(self, line: dict[str, Any]) -> None:
        key = (line.get("namespace", ""), line.get("name", ""))
        kind, fact = (line.get("apiVersion"), line.get("kind")), line["fact"]
        if fact in ("ObjectCreated", "ObjectPatched") and kind == ("v1", "Node"):
            self.nodes[key[1]] = node_allocatable(line["object"])
        elif fact in ("ObjectCreated", "ObjectPatched") and kind == ("v1", "Pod"):
            self.pods[key] = line["object"]
        elif fact == "ObjectDeleted" and kind == ("v1", "Node"):
            self.nodes.pop(key[1], None)
        elif fact == "PodEnded" or (kind == ("v1", "Pod") and not line.get("marked")):
            self.pods.pop(key, None)

    def asked(self) -> dict[str, dict[str, int]]:
        """What pods take of each node."""
        sums: dict[str, dict[str, int]] = {name: {} for name in self.nodes}
        for pod in self.pods.values():
            node = pod["spec"].get("nodeName")
            if node in sums and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                for name, amount in {**pod_requests(pod), "pods": 1}.items():
                    sums[node][name] = sums[node].get(name, 0) + int(amount)
        return sums

    def shares(self) -> tuple[Shares, dict[str, Shares]]:
        """Of the cluster, and of each node."""
        asked = self.asked()
        whole: dict[str, int] = {}
        part: dict[str, int] = {}
        for node, offered in self.nodes.items():
            for name, amount in offered.items():
                whole[name] = whole.get(name, 0) + int(amount)
            for name, amount in asked[node].items():
                part[name] = part.get(name, 0) + amount
        nodes = {node: divided(asked[node], offered) for node, offered in self.nodes.items()}
        return divided(part, whole), nodes


def divided(part: dict[str, int], whole: dict[str, int]) -> Shares:
    return {name: Fraction(part.get(name, 0), int(all_)) for name, all_ in whole.items() if all_}


def moments(timeline: Path) -> Iterator[tuple[int, Shares, dict[str, Shares]]]:
    """The shares after all that happened at one minor step and time, with the major step."""
    world = World()
    lines = [json.loads(line) for line in timeline.read_text().splitlines()[1:]]
    told = [line for line in lines if line["fact"] not in BEFORE_ANY_STEP]
    for (step, _), group in groupby(told, key=lambda line: (tuple(line["step"]), line["time"])):
        for line in group:
            world.enter(line)
        yield step[0], *world.shares()


def word(resource: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in resource)


def raise_to(peaks: Shares, shares: Shares) -> None:
    for name, share in shares.items():
        peaks[name] = max(peaks.get(name, Fraction(0)), share)


def check(folder: Path) -> None:
    """Every peak that results tell of: of the run, of each step, of each node in each step."""
    source = open_run(folder)
    found, tables = measures(source), source.tables()
    run: Shares = {}
    steps: dict[int, Shares] = {}
    nodes: dict[tuple[int, str], Shares] = {}
    for step, cluster, each_node in moments(folder / "timeline.jsonl"):
        raise_to(run, cluster)
        raise_to(steps.setdefault(step, {}), cluster)
        for name, shares in each_node.items():
            raise_to(nodes.setdefault((step, name), {}), shares)
    for resource, share in run.items():
        peak = found[f"allocation_peak_{word(resource)}"]
        assert peak == float(share), resource
        assert peak >= found.get(f"allocation_mean_{word(resource)}", 0) - 1e-12
        assert peak >= found.get(f"allocation_{word(resource)}", 0)
        highest = max(shares.get(resource, Fraction(0)) for shares in nodes.values())
        assert found[f"utilization_peak_{word(resource)}"] == float(highest)
    for row in tables["allocation"]:
        assert row.peak == (share_of(steps[row.step], row.resource)), row
    for row in tables["utilization"]:
        seen = nodes[row.step, row.node]
        assert (row.cpu_peak, row.memory_peak) == (share_of(seen, "cpu"), share_of(seen, "memory"))
        assert row.other_peak == {
            name: float(share)
            for name, share in seen.items()
            if name not in ("cpu", "memory", "pods")
        }
    for row in tables["nodes"]:
        seen = {}
        for (_, name), shares in nodes.items():
            if name == row.name:
                raise_to(seen, shares)
        assert (row.cpu_peak, row.memory_peak) == (share_of(seen, "cpu"), share_of(seen, "memory"))


def share_of(shares: Shares, resource: str) -> float | None:
    return float(shares[resource]) if resource in shares else None


@pytest.mark.parametrize("seed", range(10))
def test_peaks_of_any_run_are_those_of_its_timeline(seed: int, tmp_path: Path) -> None:
    kubescene.run(random_scenario(seed), out=tmp_path)
    check(tmp_path)


@pytest.mark.parametrize("scenario", EXAMPLES, ids=[path.parent.name for path in EXAMPLES])
def test_peaks_of_an_example_are_those_of_its_timeline(scenario: Path, tmp_path: Path) -> None:
    kubescene.run(scenario, out=tmp_path)
    check(tmp_path)


def test_a_pod_that_comes_and_goes_between_two_ends_of_steps_counts(tmp_path: Path) -> None:
    """Preempted and replaced while time passes: no step ends with all of it taken."""
    scenario = ScenarioBuilder("between").settings(kubelet={"terminateDelay": "30s"})
    scenario.create(make_node("n").cpu("4").memory("8Gi")).create(make_pod("a").cpu("1"))
    scenario.step(2).create(make_pod("b").cpu("3"))
    scenario.step(3).delete("v1", "Pod", "b").advance("5m").done()
    found = measures(kubescene.run(scenario, out=tmp_path))
    check(tmp_path)
    assert (found["allocation_cpu"], found["allocation_peak_cpu"]) == (0.25, 1.0)
    last = open_run(tmp_path).tables()["steps"].rows[-1]
    assert (last.cpu_allocation, last.cpu_peak) == (0.25, 1.0)


def test_a_rolling_update_in_one_step_has_the_peak_that_made_it_wait(tmp_path: Path) -> None:
    """10 pods of 1 cpu on 12 cpu: while it is updated, all 12 are taken."""
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 10, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    delays = {"startDelay": "5s", "readyDelay": "20s", "terminateDelay": "10s"}
    scenario = ScenarioBuilder("rolling").settings(kubelet=delays)
    scenario.create(make_node("n-$(INDEX)").cpu("4").memory("8Gi"), count=3).create(web)
    scenario.advance("1m").step(2)
    change = {"spec": {"template": {"spec": {"containers": [{**container, "image": "web:2"}]}}}}
    scenario.patch("apps/v1", "Deployment", "web", change).advance("15m").done()
    run = kubescene.run(scenario, out=tmp_path)
    check(tmp_path)
    found = measures(run)
    assert found["attempts_failed"] > 0
    assert found["allocation_cpu"] == 10 / 12
    assert found["allocation_peak_cpu"] == 1.0 >= found["allocation_mean_cpu"] > 10 / 12


def test_what_operations_of_a_step_write_together_is_not_looked_at_halfway(tmp_path: Path) -> None:
    """A pod that comes with the first of two nodes: the cluster never was as small as that node."""
    scenario = ScenarioBuilder("together").create(make_node("a").cpu("1"))
    scenario.create(make_pod("p").cpu("1").on("a")).create(make_node("b").cpu("3")).done()
    assert measures(kubescene.run(scenario))["allocation_peak_cpu"] == 0.25
