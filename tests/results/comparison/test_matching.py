"""Pods of controllers are the same pods, whatever they are called."""

from typing import Any

import pytest

import kubescene
from kubescene.results.comparison import Comparison, Side, compare
from kubescene.scenario.build import ScenarioBuilder
from kubescene.testing import (
    make_deployment,
    make_node,
    make_pod,
    make_priority_class,
    make_replica_set,
)


def nodes() -> ScenarioBuilder:
    builder = ScenarioBuilder("s")
    for number in range(4):
        builder.create(make_node(f"n{number}").cpu("4").memory("16Gi"))
    return builder


def deployed(cpu: str, *, replicas: int = 8, seed: int = 0) -> kubescene.Run:
    template = make_pod("web").cpu(cpu).label(app="web")
    builder = nodes().create(make_deployment("web").replicas(replicas).template(template)).done()
    return kubescene.run(builder, seed=seed)


def compared(a: Any, b: Any) -> Comparison:
    return compare(a, b)


def test_another_seed_alone_is_no_difference_of_pods() -> None:
    found = compared(deployed("500m"), deployed("500m", seed=7))
    assert (found.only_in_a, found.only_in_b, found.renamed) == ((), (), 8)
    assert found.divergence is None
    assert found.placed == ()


def test_a_changed_template_names_who_moved_and_by_which_plugin() -> None:
    found = compared(deployed("500m"), deployed("3"))
    assert (found.only_in_a, found.only_in_b, found.renamed) == ((), (), 8)
    assert len(found.nowhere(Side.B)) == 4
    plugins = {each.attribution.plugin for each in found.placed if each.attribution is not None}
    assert "NodeResourcesFit" in plugins
    for each in found.placed:
        assert each.pod_in_b
        assert each.pod != each.pod_in_b


def test_more_replicas_are_those_of_one_run_only() -> None:
    found = compared(deployed("500m"), deployed("501m", replicas=10))
    assert (len(found.only_in_a), len(found.only_in_b), found.renamed) == (0, 2, 8)


def test_makers_are_not_mixed_up() -> None:
    def both(seed: int) -> kubescene.Run:
        builder = nodes()
        for name, cpu in (("a", "1"), ("b", "500m")):
            template = make_pod(name).cpu(cpu).label(app=name)
            builder.create(make_deployment(name).replicas(2).template(template))
        builder.create(make_replica_set("rs").replicas(2))
        return kubescene.run(builder.done(), seed=seed)

    a, b = both(1), both(2)
    found = compared(a, b)
    assert found.renamed == 6
    for each in found.placed:
        assert each.pod.split("-")[0] == each.pod_in_b.split("-")[0]


@pytest.mark.parametrize("seed", [0, 7])
def test_pods_that_are_called_alike_stay_themselves(seed: int) -> None:
    def plain(cpu: str) -> kubescene.Run:
        builder = nodes()
        for number in range(3):
            builder.create(make_pod(f"p{number}").cpu(cpu))
        return kubescene.run(builder.done(), seed=seed)

    found = compared(plain("1"), plain("2"))
    assert found.renamed == 0
    assert all(not each.pod_in_b for each in found.placed)


def test_preemptions_of_pods_with_other_names_are_the_same() -> None:
    def preempting(seed: int) -> kubescene.Run:
        builder = ScenarioBuilder("s").create(make_node("n").cpu("2"))
        template = make_pod("web").cpu("1").label(app="web")
        builder.create(make_deployment("web").replicas(2).template(template))
        builder.create(make_priority_class("high", 100))
        builder.step(2).create(make_pod("high").cpu("2").priority_class("high")).done()
        return kubescene.run(builder, seed=seed)

    a, b = preempting(1), preempting(2)
    assert a.measures["preemptions"] == 2
    assert compared(a, b).preemptions == ()
