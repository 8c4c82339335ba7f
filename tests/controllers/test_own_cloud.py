"""A provider of somebody's own under the cluster autoscaler: nodes without any NodeGroup."""

from collections.abc import Mapping, Sequence

import pytest

import kubescene
from kubescene.client import ObjectRef
from kubescene.control.loops import ControllerContext
from kubescene.durations import MINUTE
from kubescene.errors import ConfigurationError
from kubescene.node_autoscaling import Instance, ProviderError, autoscaler_over
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import CustomFact
from kubescene.types import JsonObject


class Shed:
    """One group of machines with four cores, of which at most three can be had."""

    id, min_size, max_size = "shed", 0, 10
    options: Mapping[str, object] = {}
    has = 3

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._names: list[str] = []
        self._made = 0

    def target_size(self) -> int:
        return len(self._names)

    def instances(self) -> Sequence[Instance]:
        return [Instance(f"shed:///{name}") for name in self._names]

    def template(self) -> JsonObject:
        return self._node("template")

    def _node(self, name: str) -> JsonObject:
        node = make_node(name).cpu("4").memory("8Gi").build()
        node["spec"] = {"providerID": f"shed:///{name}"}
        return node

    def increase(self, by: int) -> None:
        if len(self._names) + by > self.has:
            raise ProviderError(f"the shed holds {self.has} machines")
        for _ in range(by):
            name = f"shed-{self._made}"
            self._made += 1
            self._names.append(name)
            self._context.client.create(self._node(name))

    def decrease_target(self, by: int) -> None:
        raise ProviderError("all that were ordered are there")

    def delete(self, nodes: Sequence[str]) -> None:
        for name in nodes:
            self._names.remove(name)
            self._context.client.delete(ObjectRef.to(self._node(name)))


class ShedCloud:
    """The only cloud that has it."""

    def __init__(self, context: ControllerContext) -> None:
        self.shed = Shed(context)

    def groups(self) -> Sequence[Shed]:
        return [self.shed]

    def group_of(self, provider_id: str, name: str) -> Shed | None:
        return self.shed if provider_id.startswith("shed:///") else None

    def has_instance(self, provider_id: str, name: str) -> bool:
        return any(each.id == provider_id for each in self.shed.instances())

    def node_price(self, node: JsonObject) -> float | None:
        return None

    def pod_price(self, pod: JsonObject) -> float:
        return 0.0


def played(pods: int, **flags: object) -> kubescene.Run:
    scenario = ScenarioBuilder("own-cloud")
    for number in range(pods):
        scenario.create(make_pod(f"p{number}").cpu("3").build())
    scenario.advance("1m")
    scenario.step(2).delete("v1", "Pod", "p0").advance("15m").done()
    own = {"scale-down-delay-after-add": "1m", "scale-down-unneeded-time": "2m", **flags}
    return kubescene.run(
        scenario, controllers={"cluster-autoscaler": autoscaler_over(ShedCloud, own)}
    )


def test_it_makes_nodes_and_takes_them_away() -> None:
    run = played(2)
    assert run.ok, run.message
    placed = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in run.cluster.list("pods")}
    assert [*placed] == ["p1"]
    nodes = [node["metadata"]["name"] for node in run.cluster.list("nodes")]
    assert nodes == [placed["p1"]]
    rows = [(row.target, row.replicas_from, row.replicas_to) for row in run.tables["scaling"]]
    assert rows == [("NodeGroup/shed", 0, 2), ("NodeGroup/shed", 2, 1)]


def test_what_it_refuses_keeps_the_group_back() -> None:
    """Four machines are one too many; five minutes later, with a pod less, three are not."""
    run = played(4)
    assert run.ok, run.message
    told = [each for each in run.log if isinstance(each, CustomFact)]
    assert "the shed holds 3 machines" in str(told[0].fields["error"])
    grown = next(each for each in told[1:] if each.fields["ordered"])
    assert grown.time - told[0].time >= 5 * MINUTE
    assert len([*run.cluster.list("nodes")]) == 3


QUESTIONS = ("groups", "target_size", "instances", "template")
TRIES = 2
"""So often a call fails before it works."""


@pytest.mark.parametrize("method", [*QUESTIONS, "increase"])
@pytest.mark.parametrize("lasts", [False, True])
def test_a_cloud_that_does_not_answer_ends_loops_and_is_asked_again(
    method: str, lasts: bool
) -> None:
    calls = []

    class Failing(ShedCloud):
        def __init__(self, context: ControllerContext) -> None:
            super().__init__(context)
            owner = self if method == "groups" else self.shed
            works = getattr(owner, method)

            def fails(*arguments: object) -> object:
                calls.append(arguments)
                if lasts or len(calls) <= TRIES:
                    raise ProviderError("the cloud is away")
                return works(*arguments)

            setattr(owner, method, fails)

    scenario = ScenarioBuilder("a-cloud-that-is-away").create(make_pod("p").cpu("3").build())
    scenario.advance("2h")
    factory = autoscaler_over(Failing, {"scan-interval": "1m"})
    run = kubescene.run(scenario, controllers={"cluster-autoscaler": factory})
    assert run.ok, run.message
    assert len(calls) >= TRIES, "it is asked in later loops, too"
    told = [each for each in run.log if isinstance(each, CustomFact)]
    assert any("the cloud is away" in str(each.fields["error"]) for each in told)
    (pod,) = run.cluster.list("pods")
    assert bool(pod["spec"].get("nodeName")) != lasts


def test_flags_are_checked_at_once() -> None:
    with pytest.raises(ConfigurationError, match="did you mean expander"):
        autoscaler_over(ShedCloud, {"expanders": "price"})
