"""What Filter plugins say of one node, by the number of the rule."""

from typing import Any

import pytest

from kubescene.scheduler import Code
from kubescene.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from kubescene.types import JsonObject
from scheduler.staging import Stage

NODE = make_node("n").cpu("4").memory("8Gi").labels({"disk": "ssd", "cores": "8"})
POD = make_pod("p")
TAINTED = NODE.taint("dedicated", value="web")

Said = tuple[str, int, tuple[str, ...]]
FITS: Said = ("", 0, ())
UNTOLERATED: Said = (
    "TaintToleration",
    Code.UNRESOLVABLE,
    ("node(s) had untolerated taint(s)",),
)
NOT_SELECTED: Said = (
    "NodeAffinity",
    Code.UNRESOLVABLE,
    ("node(s) didn't match Pod's node affinity/selector",),
)


def tolerating(**toleration: str) -> JsonObject:
    pod = POD.build()
    return {**pod, "spec": {**pod["spec"], "tolerations": [toleration]}}


def requiring(*terms: JsonObject) -> JsonObject:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    pod = POD.build()
    return {**pod, "spec": {**pod["spec"], "affinity": {"nodeAffinity": required}}}


def named(name: str) -> JsonObject:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def said(node: NodeBuilder, pod: PodBuilder | JsonObject) -> Said:
    """Who refused the node, how, and why."""
    world = Stage()
    world.create(node, pod)
    [attempt] = world.work()
    assert attempt.explanation is not None
    for group in attempt.explanation.filters:
        return group.plugin, group.code, group.reasons
    return FITS


def insufficient(*names: str, code: Code = Code.UNSCHEDULABLE) -> Said:
    return "NodeResourcesFit", code, names


RULES: dict[str, tuple[NodeBuilder, Any, Said]] = {
    "F-1 cordoned": (
        NODE.unschedulable(),
        POD,
        ("NodeUnschedulable", Code.UNRESOLVABLE, ("node(s) were unschedulable",)),
    ),
    "F-1 tolerated": (
        NODE.unschedulable(),
        POD.tolerate("node.kubernetes.io/unschedulable", effect="NoSchedule"),
        FITS,
    ),
    "F-3 untolerated": (TAINTED, POD, UNTOLERATED),
    "F-3 NoExecute": (NODE.taint("a", effect="NoExecute"), POD, UNTOLERATED),
    "F-3 PreferNoSchedule": (NODE.taint("a", effect="PreferNoSchedule"), POD, FITS),
    "F-4 equal": (TAINTED, tolerating(key="dedicated", value="web"), FITS),
    "F-4 other value": (TAINTED, tolerating(key="dedicated", value="db"), UNTOLERATED),
    "F-4 exists": (TAINTED, tolerating(key="dedicated", operator="Exists"), FITS),
    "F-4 every key": (TAINTED, tolerating(operator="Exists"), FITS),
    "F-4 other effect": (
        TAINTED,
        tolerating(key="dedicated", value="web", effect="NoExecute"),
        UNTOLERATED,
    ),
    "F-5 nothing asked": (NODE, POD, FITS),
    "F-8 no label": (NODE, POD.select(disk="hdd"), NOT_SELECTED),
    "F-8 terms are alternatives": (
        NODE,
        requiring(
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd"]}]},
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
        ),
        FITS,
    ),
    "F-8 an empty term": (NODE, requiring({}), NOT_SELECTED),
    "F-9 In": (NODE, POD.require("disk", "In", "hdd", "ssd"), FITS),
    "F-9 NotIn": (NODE, POD.require("disk", "NotIn", "ssd"), NOT_SELECTED),
    "F-9 NotIn, absent": (NODE, POD.require("gpu", "NotIn", "a"), FITS),
    "F-9 Exists": (NODE, POD.require("gpu", "Exists"), NOT_SELECTED),
    "F-9 DoesNotExist": (NODE, POD.require("gpu", "DoesNotExist"), FITS),
    "F-9 Gt": (NODE, POD.require("cores", "Gt", "7"), FITS),
    "F-9 Gt is strict": (NODE, POD.require("cores", "Gt", "8"), NOT_SELECTED),
    "F-9 Lt of no number": (NODE, POD.require("disk", "Lt", "9"), NOT_SELECTED),
    "F-11 enough": (NODE, POD.cpu("4").memory("8Gi"), FITS),
    "F-11 all reasons": (
        NODE.pods("0"),
        POD.cpu("1").memory("1Gi"),
        insufficient("Too many pods"),
    ),
    "F-12 more than there is": (
        NODE,
        POD.cpu("5").memory("9Gi"),
        insufficient("Insufficient cpu", "Insufficient memory", code=Code.UNRESOLVABLE),
    ),
}


@pytest.mark.parametrize(("node", "pod", "expected"), RULES.values(), ids=RULES)
def test_what_is_said_of_a_node(node: NodeBuilder, pod: Any, expected: Said) -> None:
    assert said(node, pod) == expected


def test_f_6_terms_that_name_nodes_narrow_the_search() -> None:
    world = Stage()
    world.nodes("a", "b", "c")
    world.create(requiring(named("b"), named("c")))
    [attempt] = world.work()
    assert attempt.evaluated == 2
    assert attempt.node == "b"


def test_f_6_a_term_that_names_two_nodes_at_once_conflicts() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    world = Stage()
    world.nodes("a", "b")
    world.create(requiring({"matchFields": fields}))
    [attempt] = world.work()
    assert "pod affinity terms conflict" in attempt.message


def test_f_11_what_others_have_taken_counts() -> None:
    world = Stage()
    world.nodes("n")
    world.place(make_pod("first").cpu("3"))
    world.create(make_pod("second").cpu("2"))
    [attempt] = world.work()
    assert attempt.message.startswith("0/1 nodes are available: 1 Insufficient cpu. ")
