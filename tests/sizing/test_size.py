"""The least machines that hold a scenario: small worlds whose right answers are arithmetic."""

import contextlib
import io
import json
import re
import shlex
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import kubescene
from commands import kubescene as command
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.experiments import matrix
from kubescene.sizing import SizingResult
from kubescene.sizing.answers import answer_of
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from random_scenarios import Lot

KIND = {"apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1", "kind": "Scenario"}


def group(name: str, cpu: str, price: str = "", memory: str = "64Gi", **spec: Any) -> JsonObject:
    offers = {"cpu": cpu, "memory": memory, "pods": "110"}
    template = {"metadata": {"labels": {"pool": name}}, "status": {"capacity": offers}}
    priced = {"price": {"perHour": price}} if price else {}
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {"max": 20, "template": template, "boot": {"time": "90s"}, **priced, **spec},
    }


def pod(name: str, cpu: str, memory: str = "1Gi", **spec: Any) -> JsonObject:
    obj = make_pod(name).cpu(cpu).memory(memory).build()
    obj["spec"] |= spec
    return obj


def scenario(*objects: JsonObject, simulation: JsonObject | None = None) -> JsonObject:
    operations: list[JsonObject] = [
        {"id": f"o{at}", "step": 1, "createOperation": {"object": each}}
        for at, each in enumerate(objects)
    ]
    operations.append({"id": "end", "step": 1, "doneOperation": {}})
    spec = {"operations": operations, "simulation": simulation or {}}
    return {**KIND, "metadata": {"name": "sized"}, "spec": spec}


def sized(*objects: JsonObject, **options: Any) -> SizingResult:
    return kubescene.size(scenario(*objects), jobs=1, **options)


def test_the_sums_are_enough() -> None:
    """Eight pods of 2 cores on nodes of 4: four nodes, full to the brim."""
    found = sized(group("std", "4"), *(pod(f"p{n}", "2") for n in range(8)))
    assert (found.best, found.bound, found.is_proven) == ((4,), (4,), True)
    assert found.objective == "nodes"
    answer = answer_of(found)
    assert answer.table("Machines").rows == [
        ("std", 4, "-", "cpu: with one less default/p6 and 1 more would wait")
    ]


def test_whole_pods_need_more_than_sums() -> None:
    """Three cores of four: one pod to a node, although 9 cores would be 3 nodes."""
    found = sized(group("std", "4"), *(pod(f"p{n}", "3") for n in range(3)))
    assert (found.best, found.bound) == ((3,), (3,))
    assert any(need.amount == 3 and need.gives == (1,) for need in found.needs)


@pytest.mark.parametrize(("objective", "best"), [("cost", (5, 0)), ("nodes", (1, 1))])
def test_money_and_nodes_are_two_questions(objective: Any, best: tuple[int, ...]) -> None:
    """Ten cores: five small nodes for 0.50, or one of each, as many as two big ones but cheaper."""
    groups = group("small", "2", "0.10"), group("big", "8", "0.70")
    found = sized(*groups, *(pod(f"p{n}", "1") for n in range(10)), objective=objective)
    assert (found.best, found.is_proven) == (best, True)


def test_prices_decide_unless_somebody_says_otherwise() -> None:
    found = sized(group("a", "2", "0.10"), group("b", "8", "0.70"), pod("p", "1"))
    assert (found.objective, found.best) == ("cost", (1, 0))
    found = sized(group("a", "2", "0.10"), group("b", "8"), pod("p", "1"))
    assert (found.objective, sum(found.best or ())) == ("nodes", 1)


def test_groups_are_mixed() -> None:
    """9 cores in pods of one: a big node for 0.30 and a small one for 0.10, not two big ones."""
    groups = group("small", "1", "0.10"), group("big", "8", "0.30")
    found = sized(*groups, *(pod(f"p{n}", "1") for n in range(9)))
    assert (found.best, found.is_proven) == ((1, 1), True)


def test_min_and_max_are_kept() -> None:
    groups = group("dear", "4", "9", min=1), group("cheap", "4", "1", max=2)
    found = sized(*groups, *(pod(f"p{n}", "4") for n in range(4)))
    assert (found.best, found.is_proven) == ((2, 2), True)
    rows = answer_of(found).table("Machines").rows
    assert [row[3].split(":")[0] for row in rows if isinstance(row[3], str)] == ["cpu", "cpu"]
    found = sized(*groups, pod("p", "1"))
    assert found.best == (1, 0)
    assert answer_of(found).table("Machines").rows[0][3] == "its min"


def test_pods_go_where_their_selectors_let_them() -> None:
    groups = group("a", "4", "1"), group("b", "4", "5")
    found = sized(*groups, pod("x", "1", nodeSelector={"pool": "b"}), pod("y", "4"))
    assert (found.best, found.bound, found.is_proven) == ((1, 1), (1, 1), True)


def test_spreading_binds_where_sums_do_not() -> None:
    """Three pods that will not share a node: one node in sum, three in truth."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [pod(f"p{n}", "1", affinity=affinity) for n in range(3)]
    for each in pods:
        each["metadata"]["labels"] = {"app": "x"}
    found = sized(group("std", "8", "1"), *pods)
    assert (found.best, found.bound, found.is_proven) == ((3,), (1,), True)
    assert "anti-affinity" in str(answer_of(found).table("Machines").rows[0][3])


def test_the_peak_counts_not_the_end() -> None:
    """Four pods in step 1, gone in step 2, when one comes: four cores all the same."""
    document = scenario(group("std", "2"), *(pod(f"p{n}", "1") for n in range(4)))
    about = {"apiVersion": "v1", "kind": "Pod"}
    gone: list[JsonObject] = [
        {
            "id": f"gone{n}",
            "step": 2,
            "deleteOperation": {
                "typeMeta": about,
                "objectMeta": {"name": f"p{n}", "namespace": "default"},
            },
        }
        for n in range(4)
    ]
    late = {"id": "late", "step": 3, "createOperation": {"object": pod("late", "1")}}
    end = {"id": "end", "step": 3, "doneOperation": {}}
    document["spec"]["operations"] = [*document["spec"]["operations"][:-1], *gone, late, end]
    found = kubescene.size(document, jobs=1)
    assert (found.best, found.bound, found.is_proven) == ((2,), (2,), True)


def test_nodes_of_its_own_help() -> None:
    own = make_node("own").cpu("4").memory("16Gi").build()
    found = sized(own, group("std", "4"), *(pod(f"p{n}", "4") for n in range(3)))
    assert (found.best, found.bound) == ((2,), (2,))


def test_daemons_take_their_part_of_every_node() -> None:
    """One core of four is the daemon's: nine pods of one core need three nodes, not two and a bit
    more than two."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [container]},
            },
        },
    }
    found = sized(group("std", "4", "1"), daemons, *(pod(f"p{n}", "1") for n in range(8)))
    assert (found.best, found.bound, found.is_proven) == ((3,), (2,), True)


def test_what_fits_nowhere_is_told(tmp_path: Path) -> None:
    found = sized(group("std", "4", max=2), *(pod(f"p{n}", "4") for n in range(3)))
    assert (found.best, found.bound) == (None, None)
    answer = answer_of(found)
    assert "Needed is" in answer.sentence
    assert answer.measures["pending"] == 1
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario(group("std", "4"), pod("huge", "5"))))
    done = command("size", file, "--jobs", "1")
    assert done.returncode == 3
    assert "default/huge" in done.stdout


def test_the_autoscaler_stands_beside_it() -> None:
    """Its price expander weighs sizes; the search only money. Fifty pods of 3 cores."""
    document = Path("examples/20-which-nodes/scenario.yaml")
    found = kubescene.size(Path(__file__).parent.parent.parent / document, jobs=1)
    assert (found.best, found.is_proven) == ((0, 0, 10), True)
    assert found.autoscaler == "price"
    assert found.autoscaled["price"].mix == (0, 50, 0)
    assert found.costs.hourly((0, 0, 10)) == 7


def test_who_gives_way_does_not_hold() -> None:
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    document = scenario(important, group("std", "4"), pod("low", "4"))
    late = pod("late", "4", priorityClassName="high")
    operations = document["spec"]["operations"]
    operations[-1:] = [
        {"id": "late", "step": 2, "createOperation": {"object": late}},
        {"id": "end", "step": 2, "doneOperation": {}},
    ]
    found = kubescene.size(document, jobs=1)
    assert found.best == (2,)
    less = found.tries[(1,)]
    assert less.pods == [("default/low", "it had to give way to default/late")]


def test_it_is_proven_where_the_autoscaler_fails() -> None:
    """Orders fail, so that it leaves pods waiting; the machines themselves would do."""
    faults = {"share": 1, "after": "1s", "code": "SoldOut"}
    found = sized(group("std", "4", faults=faults), *(pod(f"p{n}", "2") for n in range(4)))
    assert not found.autoscaled["least-waste"].holds
    assert (found.best, found.is_proven) == ((2,), True)


def test_who_waits_before_there_is_a_group_does_not_count() -> None:
    document = scenario(pod("early", "2"))
    later = {"id": "g", "step": 2, "createOperation": {"object": group("std", "4")}}
    end = {"id": "end", "step": 2, "doneOperation": {}}
    document["spec"]["operations"][-1:] = [later, end]
    found = kubescene.size(document, jobs=1)
    assert (found.best, found.is_proven) == ((1,), True)


def test_a_draft_is_sized_like_a_scenario() -> None:
    document = scenario(group("std", "4"), pod("p", "2"))
    document["spec"]["events"] = document["spec"].pop("operations")
    assert kubescene.size(document, jobs=1).best == (1,)


# -- by trying everything ------------------------------------------------------------------------


def lot(seed: int) -> tuple[list[JsonObject], list[JsonObject]]:
    """Two groups with at most three nodes each, and a handful of pods."""
    chance = Lot(seed)
    groups = [
        group(name, chance.of("3", "4", "6"), price, chance.of("4Gi", "8Gi"), max=3)
        for name, price in (("a", chance.of("0.1", "0.3")), ("b", chance.of("0.25", "0.45", "0.7")))
    ]
    pods = [
        pod(f"p{n}", f"{5 + chance.below(26)}00m", f"{(1 + chance.below(4)) * 512}Mi")
        for n in range(3 + chance.below(5))
    ]
    for each in pods:
        if chance.below(5) == 0:
            each["spec"]["nodeSelector"] = {"pool": chance.of("a", "b")}
    return groups, pods


def holds(groups: list[JsonObject], mix: tuple[int, ...], pods: list[JsonObject]) -> bool:
    """A cluster by hand: plain nodes, then the pods."""
    cluster = kubescene.Cluster()
    for each, count in zip(groups, mix, strict=True):
        offers = each["spec"]["template"]["status"]["capacity"]
        for number in range(count):
            node = make_node(f"{each['metadata']['name']}-{number}").build()
            node["metadata"]["labels"] |= {"pool": each["metadata"]["name"]}
            node["status"] |= {"capacity": offers, "allocatable": offers}
            cluster.create(node)
    for each in pods:
        cluster.create(each)
    cluster.settle()
    return all(each["spec"].get("nodeName") for each in cluster.list("pods"))


@pytest.mark.parametrize("seed", range(8))
def test_no_mix_is_cheaper(seed: int) -> None:
    groups, pods = lot(seed)
    found = sized(*groups, *pods, tries=100)
    prices = [float(each["spec"]["price"]["perHour"]) for each in groups]
    fine = [mix for mix in product(range(4), repeat=2) if holds(groups, mix, pods)]
    costs = {mix: round(sum(a * b for a, b in zip(prices, mix, strict=True)), 6) for mix in fine}
    assert (found.best is not None) == bool(fine)
    assert found.is_proven or not fine
    if found.best is not None and found.bound is not None:
        assert costs[found.best] == min(costs.values())
        assert found.costs.of(found.bound) <= found.costs.of(found.best)


# -- files and faults ----------------------------------------------------------------------------


def test_groups_of_a_file_take_the_place_of_all_nodes(tmp_path: Path) -> None:
    nodes = [make_node(f"n{n}").cpu("1").memory("4Gi").build() for n in range(9)]
    file, groups = tmp_path / "s.json", tmp_path / "groups.json"
    file.write_text(json.dumps(scenario(*nodes, *(pod(f"p{n}", "1") for n in range(9)))))
    groups.write_text(json.dumps(group("std", "4", "0.2")))
    done = command("size", file, "--groups", groups, "--jobs", "1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["measures"]["nodes"] == 3
    assert told["measures"]["cost_per_hour"] == pytest.approx(0.6)
    assert told["measures"]["unproven"] == 0
    done = command("size", file, "--groups", groups, "--jobs", "1", "--fail-on", "nodes>2")
    assert done.returncode == 3
    assert "nodes is 3, and nodes>2 fails" in done.stderr
    assert command("size", file).returncode == 2


def test_a_snapshot_is_placed_anew(tmp_path: Path) -> None:
    cluster = kubescene.Cluster()
    for n in range(6):
        cluster.create(make_node(f"n{n}").cpu("2").memory("4Gi").build())
    for n in range(6):
        cluster.create(pod(f"p{n}", "1500m"))
    cluster.settle()
    items = [*cluster.list("nodes"), *cluster.list("pods")]
    dump = {"apiVersion": "v1", "kind": "List", "items": items}
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump))
    found = kubescene.size(file, groups=[group("big", "8", "0.4")], jobs=1)
    assert (found.best, found.bound, found.is_proven) == ((2,), (2,), True)


@pytest.mark.parametrize(
    ("objects", "options", "message"),
    [
        ([pod("p", "1")], {}, "no NodeGroup"),
        ([group("a", "1"), pod("p", "1")], {"objective": "cost"}, "has no price"),
        ([group("a", "1", min=3, max=2)], {}, "larger than max"),
        ([group("a", "1"), group("a", "2")], {}, "two NodeGroups"),
        ([group("a", "1", "1"), group("b", "1", "x")], {}, "NodeGroup 'b'"),
        ([group("a", "1")], {"tries": 0}, "at least one"),
    ],
)
def test_input_that_makes_no_sense(
    objects: list[JsonObject], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(KubesceneError, match=message):
        sized(*objects, **options)


def test_sizes_that_a_scenario_changes_are_refused() -> None:
    document = scenario(group("a", "1"))
    change = {
        "id": "more",
        "step": 1,
        "patchOperation": {
            "typeMeta": {"apiVersion": "kubescene.dev/v1alpha1", "kind": "NodeGroup"},
            "objectMeta": {"name": "a"},
            "patch": '{"spec": {"size": 5}}',
        },
    }
    document["spec"]["operations"].insert(1, change)
    with pytest.raises(ConfigurationError, match="'more' changes a NodeGroup"):
        kubescene.size(document, jobs=1)


# -- the guide -----------------------------------------------------------------------------------

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs/guides/sizing.md").read_text()


def test_the_guide_shows_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.findall(r"```\n\$ kubescene ([^\n]*)\n(.*?)```", GUIDE, re.DOTALL)
    assert shown
    for line, expected in shown:
        assert command(*shlex.split(line), "--jobs", "1").stdout == expected
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(compile(code, "guide", "exec"), {"__name__": "guide"})
    assert told.getvalue() == GUIDE.split("prints\n\n```\n")[1].split("```")[0]


def test_expanders_and_shapes_beside_each_other() -> None:
    """The table of the guide to the autoscaler: a matrix over flags and groups."""
    guide = (ROOT / "docs/guides/cluster-autoscaler.md").read_text()
    shown = re.findall(r"\| (price|least-waste) \| (\d+) \| (\d+) \| ([\d.]+) \|", guide)
    assert len(shown) == 4
    found = matrix(
        ROOT / "examples/20-which-nodes/scenario.yaml",
        settings={
            "spec.simulation.clusterAutoscaler.expander": ["price", "least-waste"],
            "spec.operations.big.createOperation.object.spec.max": [4, 100],
        },
        measures=["nodes", "cost_per_hour"],
        jobs=1,
    )
    means = [[row.measures[name].mean for name in found.measures] for row in found.rows]
    assert means == [[float(nodes), float(cost)] for _, _, nodes, cost in shown]
