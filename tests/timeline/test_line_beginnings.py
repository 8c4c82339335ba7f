"""Lines that are joined from text begin with the envelope of their own fact."""

from itertools import product

import msgspec
import orjson
import pytest

from kubescene.actors import Role
from kubescene.api.kinds import NODE, POD
from kubescene.api.scheme import GroupVersionKind
from kubescene.clock import ScenarioStep
from kubescene.timeline.facts import LineWriter
from kubescene.timeline.object_facts import ObjectDeleted

STEPS = (ScenarioStep(1, 2), ScenarioStep(1, 3))
TIMES = (7, 8)
ACTORS = ("kubelet", 'some"one\u00e4')
ROLES = (Role.ENGINE, Role.SIMULATION)


def deleted(step: ScenarioStep, time: int, actor: str, role: Role) -> ObjectDeleted:
    return ObjectDeleted("op", step, time, actor, role, POD, "default", "a", "u", "", None)


@pytest.mark.parametrize(
    "moments",
    [list(product(STEPS, TIMES, ACTORS, ROLES)), list(product(STEPS[::-1], TIMES, ACTORS, ROLES))],
    ids=["onwards", "back"],
)
def test_each_has_its_own_step_time_actor_and_role(
    moments: list[tuple[ScenarioStep, int, str, Role]],
) -> None:
    writer = LineWriter()
    for moment in [*moments, *moments[::5], *moments[::3]]:
        told = orjson.loads(writer.line(deleted(*moment)))
        seen = (ScenarioStep(*told["step"]), told["time"], told["actor"], Role(told["role"]))
        assert seen == moment


@pytest.mark.parametrize("namespace", ["", "default", "other"])
@pytest.mark.parametrize("gvk", [POD, NODE], ids=["Pod", "Node"])
def test_each_names_its_own_object(gvk: GroupVersionKind, namespace: str) -> None:
    fact = msgspec.structs.replace(
        deleted(STEPS[0], 7, "x", Role.ENGINE), gvk=gvk, namespace=namespace, name="b\n", uid=""
    )
    for _ in range(2):
        told = orjson.loads(LineWriter().line(fact))
        assert (told["kind"], told.get("namespace", "")) == (gvk.kind, namespace)
        assert ("namespace" in told, told["name"], told["uid"]) == (bool(namespace), "b\n", "")
