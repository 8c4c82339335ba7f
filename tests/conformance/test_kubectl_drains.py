"""What ``kubectl drain`` says of a node, and what ``drainOperation`` says of the same one."""

import json
import re

import pytest

import kubescene
from conformance.kubectl import Kubectl
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node
from kubescene.types import JsonObject

MADE_UP = re.compile(r"(?<=agent-)[a-z0-9]{5}\b")
"""The ending of a name that a controller has made up."""
FLAGS = {
    "force": "--force",
    "ignoreDaemonSets": "--ignore-daemonsets",
    "deleteEmptyDirData": "--delete-emptydir-data",
    "disableEviction": "--disable-eviction",
}
PENDING = "There are pending nodes to be drained:"


def pod_spec(**more: object) -> JsonObject:
    return {"nodeName": "node-1", "containers": [{"name": "main", "image": "i"}], **more}


def of_set(kind: str, name: str, **more: object) -> JsonObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(**more)}
    spec: JsonObject = {"selector": {"matchLabels": labels}, "template": template}
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "replicas": 2}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


BARE: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "bare", "namespace": "default"},
    "spec": pod_spec(),
}
DONE: JsonObject = {
    **BARE,
    "metadata": {
        "name": "done",
        "namespace": "default",
        "annotations": {"kubescene.dev/run-time": "0s"},
    },
    "spec": pod_spec(restartPolicy="Never"),
}
SETS = of_set("StatefulSet", "db")
SCRATCH = of_set("StatefulSet", "tmp", volumes=[{"name": "scratch", "emptyDir": {}}])
AGENT = of_set("DaemonSet", "agent")
del AGENT["spec"]["template"]["spec"]["nodeName"]
AGENT["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-1"}
BUDGET: JsonObject = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "db"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "db"}}},
}


def of_kubectl(kubectl: Kubectl, objects: list[JsonObject], flags: JsonObject) -> list[str]:
    """What kubectl says of the node, line by line."""
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    kubectl("apply", "-f", "-", stdin=json.dumps(listed))
    for each in objects:
        if each["kind"] in ("StatefulSet", "DaemonSet"):
            name = f"{each['kind']}/{each['metadata']['name']}"
            kubectl("rollout", "status", name, "--timeout=30s")
    given = [FLAGS[name] for name in flags if name in FLAGS]
    timeout = flags.get("timeout", "30s")
    done = kubectl.run("drain", "node-1", f"--timeout={timeout}", *given)
    said = done.stdout + done.stderr
    # Before 1.34 a sentence began twice in this way.
    return said.replace("cannot delete cannot delete", "cannot delete").splitlines()


def of_ours(objects: list[JsonObject], flags: JsonObject) -> list[JsonObject]:
    """What the operation tells in the same world."""
    nodes = [
        make_node(name).cpu("4").memory("8Gi").label(**{"kubernetes.io/hostname": name})
        for name in ("node-1", "node-2")
    ]
    scenario = ScenarioBuilder("drained").create(*nodes, *objects).next_step()
    run = kubescene.run(scenario.drain("node-1", id="drain", **flags).advance("2m").build())
    assert run.ok, run.message
    return [{"state": e.state, "message": e.message} for e in run.tables["outcomes"].rows]


CASES: dict[str, tuple[list[JsonObject], JsonObject]] = {
    "a pod of nobody": ([BARE, SETS], {}),
    "a pod of nobody that may go": ([BARE, SETS], {"force": True}),
    "a pod of a daemon set": ([AGENT, SETS], {}),
    "daemon sets are left alone": ([AGENT, SETS], {"ignoreDaemonSets": True}),
    "data that would be lost": ([SCRATCH], {}),
    "data that may be lost": ([SCRATCH], {"deleteEmptyDirData": True}),
    "all at once": ([AGENT, BARE, SCRATCH], {}),
    "all of them allowed": (
        [AGENT, BARE, SCRATCH],
        {"force": True, "ignoreDaemonSets": True, "deleteEmptyDirData": True},
    ),
    "a pod that has ended": ([DONE, SETS], {}),
    "a budget that never allows it": ([SETS, BUDGET], {"timeout": "6s"}),
    "no budget is asked": ([SETS, BUDGET], {"disableEviction": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_words_are_those_of_kubectl(kubectl: Kubectl, case: str) -> None:
    objects, flags = CASES[case]
    lines = [MADE_UP.sub("?", each) for each in of_kubectl(kubectl, objects, flags)]
    told = of_ours(objects, flags)
    ours = {each["state"]: MADE_UP.sub("?", each["message"]) for each in told}
    failed = [each for each in lines if each.startswith("error: unable to drain")]
    found = ours.get("Refused") or ours.get("TimedOut")
    assert [parts(each) for each in failed] == ([parts(found)] if found else [])
    assert (PENDING in lines) == ("Incomplete" in ours)
    warned = [each for each in lines if each.startswith("Warning: ")]
    pending = [each for each in lines if each.startswith("There are pending pods")]
    assert [parts(each) for each in warned] == [parts(each) for each in messages(told, "Warning: ")]
    assert len(pending) == len(messages(told, "There are pending pods"))
    assert ("node/node-1 drained" in lines) == ("Drained" in ours)
    if "Completed" in ours:
        verb = "deleted" if flags.get("disableEviction") else "evicted"
        gone = [each for each in lines if each.startswith("pod/") and each.endswith(f" {verb}")]
        assert f"{len(gone)} pod{'s' * (len(gone) != 1)} {verb}" in ours["Completed"]


def messages(told: list[JsonObject], beginning: str) -> list[str]:
    found = [MADE_UP.sub("?", each["message"]) for each in told if each["state"] == "Warning"]
    return [each for each in found if each.startswith(beginning)]


def parts(line: str) -> list[str]:
    """What is said of several pods, in no order: kubectl keeps them in a map."""
    inner = line.replace("[", "").replace("]", "").replace(", continuing command...", "")
    head, _, rest = inner.partition("due to error: ")
    head, rest = (head, rest) if rest else ("Warning", inner.removeprefix("Warning: "))
    return [head, *sorted(re.split(r"; |, (?=cannot|error)", rest))]
