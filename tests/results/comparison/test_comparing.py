"""Two runs beside each other: what they were given, where they part, what follows."""

from pathlib import Path

import msgspec
import pytest

import kubescene
from kubescene.results.comparison import Cause, Comparison, Side, Why, compare
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod, make_priority_class
from kubescene.types import JsonObject

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PACK = {
    **HEADER,
    "profiles": [
        {
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
            ]
        }
    ],
}


def scenario(pods: int = 4, nodes: int = 2, **settings: object) -> JsonObject:
    builder = ScenarioBuilder("spread").settings(**settings)
    for number in range(nodes):
        builder.create(make_node(f"n-{number}").cpu("4").memory("8Gi"))
    pod = make_pod("p-$(INDEX)").cpu("500m").memory("1Gi")
    return builder.step(2).create(pod, count=pods).done().build()


def both(first: JsonObject, second: JsonObject, *schedulers: JsonObject) -> Comparison:
    runs = (
        kubescene.run(each, scheduler=scheduler)
        for each, scheduler in zip((first, second), schedulers or (HEADER, HEADER), strict=True)
    )
    return compare(*runs)


def test_equal_runs_have_no_difference(tmp_path: Path) -> None:
    kubescene.run(scenario(), out=tmp_path / "a")
    kubescene.run(scenario(), out=tmp_path / "b")
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.equal
    assert (found.inputs, found.divergence, found.placed) == ((), None, ())
    assert found.nodes_alike == 2
    assert found.measures_alike > 5


def test_a_directory_and_a_run_in_memory_are_compared_alike(tmp_path: Path) -> None:
    a = kubescene.run(scenario(), out=tmp_path / "a")
    b = kubescene.run(scenario(), scheduler=PACK, out=tmp_path / "b")
    on_disk = compare(tmp_path / "a", tmp_path / "b", names=("a", "b"))
    in_memory = a.compare(b, names=("a", "b"))
    assert on_disk == in_memory
    assert msgspec.json.decode(on_disk.json())["equal"] is False


def test_the_first_difference_is_the_schedulers_and_the_rest_follows() -> None:
    found = both(scenario(), scenario(), HEADER, PACK)
    assert found.divergence is not None
    assert (found.divergence.number, found.divergence.pod) == (2, "default/p-1")
    assert [(each.pod, each.cause, each.reconfigured) for each in found.placed] == [
        ("default/p-1", Cause.SCHEDULER, True),
        ("default/p-3", Cause.CONSEQUENCE, True),
    ]
    assert found.movers() == {"NodeResourcesFit": 2}
    assert [each.what for each in found.inputs] == [
        "default-scheduler: NodeResourcesFit, args.scoringStrategy.type"
    ]


def test_runs_that_come_back_to_the_same_cluster_part_anew() -> None:
    builder = ScenarioBuilder("waves")
    for number in range(2):
        builder.create(make_node(f"n-{number}").cpu("4").memory("8Gi"))
    for step in (2, 4):
        builder.step(step)
        for name in ("x", "y"):
            builder.create(make_pod(f"{name}-{step}").cpu("1").memory("1Gi"))
        builder.step(step + 1)
        for name in ("x", "y"):
            builder.delete("v1", "Pod", f"{name}-{step}")
    waves = builder.done().build()
    found = both(waves, waves, HEADER, PACK)
    causes = {each.pod: each.cause for each in found.placed}
    assert causes == {"default/y-2": Cause.SCHEDULER, "default/y-4": Cause.SCHEDULER}


def test_a_pod_that_fits_nowhere_any_more_is_told_who_keeps_it_off() -> None:
    narrow = scenario()
    for operation in narrow["spec"]["operations"][:2]:
        operation["createOperation"]["object"]["status"]["allocatable"]["cpu"] = "900m"
    found = both(scenario(), narrow)
    waiting = found.nowhere(Side.B)
    assert [each.pod for each in waiting] == ["default/p-2", "default/p-3"]
    attribution = waiting[0].attribution
    assert attribution is not None
    assert (attribution.plugin, attribution.reasons) == ("NodeResourcesFit", "Insufficient cpu")
    assert "Insufficient cpu" in waiting[0].message
    assert found.inputs[0].what == (
        "step 1: create Node n-0.createOperation.object.status.allocatable.cpu"
    )
    assert (found.inputs[0].a, found.inputs[0].b) == ("4", "900m")
    assert (found.b.pending, found.a.pending) == (2, 0)


def test_an_attempt_that_fails_in_the_same_cluster_is_the_schedulers_doing() -> None:
    builder = ScenarioBuilder("tainted").create(make_node("free").cpu("1").label(kind="free"))
    builder.create(make_node("tainted").cpu("1").taint("keep", value="out")).step(2)
    builder.create(make_pod("first").cpu("1").select(kind="free"), make_pod("second").cpu("1"))
    tainted = builder.done().build()
    careless = {"plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}}
    found = both(tainted, tainted, {**HEADER, "profiles": [careless]}, HEADER)
    (waiting,) = found.nowhere(Side.B)
    assert (waiting.pod, waiting.step_in_a, waiting.step_in_b) == ("default/second", "2.2", "2.1")
    assert waiting.cause is Cause.SCHEDULER
    assert waiting.attribution is not None
    assert waiting.attribution.plugin == "TaintToleration"
    assert waiting.reconfigured


def test_pods_of_one_run_only_are_listed_and_not_compared() -> None:
    found = both(scenario(pods=2), scenario(pods=4))
    assert (found.only_in_a, found.only_in_b) == ((), ("default/p-2", "default/p-3"))
    assert found.divergence is not None
    assert (found.divergence.pod, found.divergence.other_pod) == ("", "default/p-2")
    assert not found.equal


def test_another_scenario_and_seed_come_first() -> None:
    other = scenario(seed=5)
    other["metadata"]["name"] = "other"
    found = both(scenario(seed=4), other)
    assert [(each.what, each.a, each.b) for each in found.inputs] == [
        ("scenario", "spread", "other"),
        ("seed", "4", "5"),
    ]
    assert found.equal, "what happened is the same"


def test_preemptions_of_one_run_are_listed() -> None:
    def played(off: bool) -> kubescene.Run:
        builder = ScenarioBuilder("preempted").create(make_node("n").cpu("1"))
        builder.create(make_priority_class("urgent", 9))
        builder.step(2).create(make_pod("low").cpu("1"))
        builder.step(3).create(make_pod("high").cpu("1").priority_class("urgent")).done()
        disabled = {"disabled": [{"name": "DefaultPreemption"}]} if off else {}
        profile = {"plugins": {"multiPoint": disabled}}
        return kubescene.run(builder, scheduler={**HEADER, "profiles": [profile]})

    assert compare(played(off=False), played(off=False)).preemptions == ()
    found = compare(played(off=False), played(off=True))
    (preempted,) = found.preemptions
    assert (preempted.side, preempted.pod, preempted.preemptor) == (
        Side.A,
        "default/low",
        "default/high",
    )
    assert [each.pod for each in found.nowhere(Side.B)] == ["default/high"]


def test_a_pod_that_waits_for_other_reasons_is_told_both() -> None:
    a, b = (
        ScenarioBuilder("s")
        .create(make_node("n").cpu("1"), make_pod("p").cpu(cpu).memory(memory))
        .done()
        for cpu, memory in (("2", "1"), ("1", "9Ti"))
    )
    (waiting,) = both(a.build(), b.build()).waiting
    assert "Insufficient cpu" in waiting.in_a
    assert "Insufficient memory" in waiting.in_b


def test_runs_without_explanations_say_so_and_still_tell_who_moved() -> None:
    silent = scenario(explain="Off")
    found = both(silent, silent, HEADER, PACK)
    assert [each.pod for each in found.moved] == ["default/p-1", "default/p-3"]
    assert found.unexplained == {Side.A: 2, Side.B: 2}
    half = both(scenario(), silent, HEADER, PACK)
    assert half.unexplained == {Side.A: 0, Side.B: 2}
    assert not any("explain" in each.what for each in half.inputs)


def test_only_so_many_pods_are_looked_at() -> None:
    a, b = kubescene.run(scenario(12)), kubescene.run(scenario(12), scheduler=PACK)
    found = compare(a, b, looked_at=2)
    assert [each.attribution is not None for each in found.placed[:3]] == [True, True, False]
    assert len(found.placed) > found.looked_at == 2


def test_those_that_do_not_merely_follow_are_looked_at_first() -> None:
    builder = ScenarioBuilder("waves")
    for number in range(2):
        builder.create(make_node(f"n-{number}").cpu("4").memory("8Gi"))
    for step in (2, 4):
        builder.step(step)
        for name in ("w", "x", "y", "z"):
            builder.create(make_pod(f"{name}-{step}").cpu("500m").memory("1Gi"))
        builder.step(step + 1)
        for name in ("w", "x", "y", "z"):
            builder.delete("v1", "Pod", f"{name}-{step}")
    waves = builder.done().build()
    runs = [kubescene.run(waves, scheduler=each) for each in (HEADER, PACK)]
    found = compare(*runs, looked_at=2)
    assert [(each.pod, each.cause, bool(each.attribution)) for each in found.placed] == [
        ("default/x-2", Cause.SCHEDULER, True),
        ("default/x-4", Cause.SCHEDULER, True),
        ("default/z-2", Cause.CONSEQUENCE, False),
        ("default/z-4", Cause.CONSEQUENCE, False),
    ]


def test_namesakes_are_matched_in_the_order_in_which_they_came() -> None:
    builder = ScenarioBuilder("again")
    for number in range(2):
        builder.create(make_node(f"n-{number}").cpu("4").memory("8Gi"))
    builder.step(2).create(make_pod("stays").cpu("2").memory("1Gi"))
    builder.step(3).create(make_pod("p").cpu("1").memory("1Gi"))
    builder.step(4).delete("v1", "Pod", "p")
    builder.step(5).create(make_pod("p").cpu("1").memory("1Gi"))
    again = builder.done().build()
    found = both(again, again, HEADER, PACK)
    assert [(each.pod, each.step_in_a, each.cause) for each in found.placed] == [
        ("default/p", "3.1", Cause.SCHEDULER),
        ("default/p", "5.1", Cause.SCHEDULER),
    ]


def test_a_queue_in_another_order_is_not_blamed_on_a_node() -> None:
    names = ("first", "second")

    def played(order: tuple[str, ...]) -> kubescene.Run:
        builder = ScenarioBuilder("order").create(make_node("n").cpu("4")).step(2)
        for name in order:
            builder.create(make_pod(name).cpu("1"))
        return kubescene.run(builder.done())

    found = compare(played(names), played(names[::-1]))
    divergence = found.divergence
    assert not found.equal
    assert [each.what for each in found.inputs] == ["order of operations, from"]
    assert divergence is not None
    assert (divergence.pod, divergence.other_pod) == ("default/first", "default/second")
    assert divergence.attribution is None


def test_a_node_that_the_search_did_not_come_to_is_told_apart() -> None:
    many = ScenarioBuilder("many").create(make_node("n-$(INDEX)").cpu("4"), count=120)
    many.create(make_node("best").cpu("64"))
    wide = many.step(2).create(make_pod("p").cpu("1")).done().build()
    found = both(wide, wide, {**HEADER, "percentageOfNodesToScore": 100}, HEADER)
    (moved,) = found.moved
    attribution = moved.attribution
    assert attribution is not None
    assert (attribution.why, attribution.node, attribution.side) == (Why.UNSEEN, "best", Side.B)


@pytest.mark.parametrize("side", [0, 1])
def test_a_run_without_facts_is_compared(side: int) -> None:
    empty = ScenarioBuilder("empty").done().build()
    runs = [kubescene.run(scenario(1)), kubescene.run(scenario(1))]
    runs[side] = kubescene.run(empty)
    found = compare(*runs)
    assert (found.only_in_a, found.only_in_b)[1 - side] == ("default/p-0",)
    assert isinstance(runs[0].compare(runs[1]), Comparison)
    assert compare(kubescene.run(empty), kubescene.run(empty)).equal


def test_bound_are_those_that_are_bound_at_the_end_as_everywhere() -> None:
    left = ScenarioBuilder("left").create(make_node("n").cpu("4").memory("8Gi"))
    left.create(make_pod("p-$(INDEX)").cpu("1"), count=3)
    left.step(2).delete("v1", "Pod", "p-0").done()
    found = both(left.build(), left.build())
    run = kubescene.run(left.build())
    assert (found.a.pods, found.a.bound) == (3, run.measures["pods_bound"]) == (3, 2)
