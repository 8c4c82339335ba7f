"""Controllers come to the same end, in whatever order they get their turns and time is cut.

What is done to a world is done again with turns given at random in between, so that controllers see
it half done, and with time passing in other pieces. Afterwards both come to rest: pods and statuses
are the same but for names, uids and instants. How a rollout went on the way may differ (two changes
of a template in a row are one where nobody looked in between), so revisions are not compared.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.testing import make_node
from kubescene.types import JsonObject

LABELS = {"app": "x"}
EXAMPLES = 30
RUNS = {"kubescene.dev/run-time": "20s"}
NOT_COMPARED = (
    *("startTime", "completionTime", "lastScheduleTime", "lastSuccessfulTime", "active"),
    *("currentRevision", "updateRevision", "observedGeneration", "collisionCount"),
)
Act = tuple[str, int]
"""What is done, and a number with it."""
ACTS = st.tuples(
    st.sampled_from(("scale", "image", "delete pod", "pass", "recreate")), st.integers(0, 4)
)


def template(image: str = "v1", **annotations: str) -> JsonObject:
    return {
        "metadata": {"labels": LABELS, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def workload(kind: str, **spec: object) -> JsonObject:
    body: JsonObject = {"selector": {"matchLabels": LABELS}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": body}


def job_spec(**spec: object) -> JsonObject:
    made = template(**RUNS)
    made["spec"]["restartPolicy"] = "Never"
    return {"template": made, **spec}


def batch(kind: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec}


def controller() -> JsonObject:
    spec = {"replicas": 2, "selector": LABELS, "template": template()}
    metadata = {"name": "w"}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": metadata, "spec": spec}


OBJECTS: Mapping[str, JsonObject] = {
    "ReplicaSet": workload("ReplicaSet", replicas=2),
    "ReplicationController": controller(),
    "Deployment": workload("Deployment", replicas=2),
    "StatefulSet": workload("StatefulSet", replicas=2, serviceName="w"),
    "DaemonSet": workload("DaemonSet"),
    "Job": batch("Job", job_spec(completions=4, parallelism=2)),
    "CronJob": batch("CronJob", {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job_spec()}}),
}
SCALED: Mapping[str, Callable[[int], JsonObject]] = {
    "ReplicaSet": lambda number: {"replicas": number},
    "ReplicationController": lambda number: {"replicas": number},
    "Deployment": lambda number: {"replicas": number},
    "StatefulSet": lambda number: {"replicas": number},
    "DaemonSet": lambda number: {
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": number + 1}}
    },
    "Job": lambda number: {"parallelism": number},
    "CronJob": lambda number: {"suspend": bool(number % 2)},
}
LAST: Mapping[str, JsonObject] = {"Job": {"parallelism": 2}, "CronJob": {"suspend": True}}
"""What is said in the end, so that there is one: no Job is stuck, no CronJob goes on."""
AT_WILL = ("Job", "CronJob")
"""Kinds whose template cannot be changed, or whose pods that were deleted leave their count."""
NO_ROLLOUT = ("ReplicaSet", "ReplicationController")
"""Kinds whose pods stay when the template changes: who is replaced depends on the moment."""
AROUND: Sequence[JsonObject] = (
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": LABELS, "ports": [{"port": 80}]},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}},
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "20", "count/pods": "20"}},
    },
)
"""What looks at the pods of a Deployment."""


class Interleaving:
    """A world with objects of one kind, whose controllers get turns when a test says so."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.world = ClusterWorld(ClusterOptions(seed=1))
        for number in range(2):
            self.world.create(make_node(f"n{number}").cpu("8"))
        self.world.settle()
        self.world.create(OBJECTS[kind])

    def act(self, act: Act) -> None:
        what, number = act
        if what == "scale":
            self._patch(SCALED[self.kind](number))
        elif what == "image" and self.kind not in (*AT_WILL, *NO_ROLLOUT):
            containers = [{"name": "c", "image": f"v{number}"}]
            self._patch({"template": {"spec": {"containers": containers}}})
        elif what == "delete pod":
            self._delete_pod(number)
        elif what == "recreate":
            self.world.delete(self.kind, "w")
            # Who deletes waits: a Job goes with its pods' finalizers.
            self.world.advance("1m")
            self.world.create(OBJECTS[self.kind])

    def _patch(self, spec: JsonObject) -> None:
        self.world.patch(self.kind, "w", {"spec": spec})

    def _delete_pod(self, number: int) -> None:
        """One that has not ended: those of a Job that have count, and another one would not."""
        pods = [pod for pod in self.world.list("pods") if is_active(pod)]
        if pods:
            self.world.delete("pods", pods[number % len(pods)]["metadata"]["name"])
            if self.kind in AT_WILL:
                # Whether a Job counts it before its containers have ended well is a race.
                self.world.settle()

    def turn(self, choices: Sequence[int]) -> None:
        """Single turns of those that are awake."""
        for choice in choices:
            awake = [slot for slot in self.world.slots if slot.awake]
            if awake:
                awake[choice % len(awake)].turn()

    def rest(self) -> JsonObject:
        if self.kind in LAST:
            self._patch(LAST[self.kind])
        self.world.advance("30m")
        return self.seen()

    def seen(self) -> JsonObject:
        """Pods and statuses without what differs from run to run."""
        obj = self.world.get(self.kind, "w")
        pods = sorted(map(shown_pod, self.world.list("pods")))
        return {"spec": obj["spec"], "status": without_times(obj["status"]), "pods": pods}


def is_active(pod: JsonObject) -> bool:
    has_ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    return not has_ended and "deletionTimestamp" not in pod["metadata"]


def shown_pod(pod: JsonObject) -> str:
    ready = [c["status"] for c in pod["status"].get("conditions", ()) if c["type"] == "Ready"]
    is_numbered = pod["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"
    name = pod["metadata"]["name"] if is_numbered else ""
    image = pod["spec"]["containers"][0]["image"]
    return f"{name} {image} {pod['status']['phase']} {ready}"


def without_times(status: Any) -> Any:
    if isinstance(status, list):
        # Conditions stand in the order in which they were first true.
        return sorted(map(without_times, status), key=str)
    if not isinstance(status, dict):
        return status
    names = [name for name in status if not name.endswith("Time") and name not in NOT_COMPARED]
    # Which ReplicaSet it was that made progress has a hash in its name.
    return {name: without_times(status[name]) for name in names if name != "message"}


@pytest.mark.parametrize(
    "kind", ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"]
)
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    acts=st.lists(st.tuples(ACTS, st.lists(st.integers(0, 20), max_size=12)), max_size=6),
)
def test_sets_converge_from_any_interleaving(kind: str, acts: list[tuple[Act, list[int]]]) -> None:
    calm, wild = Interleaving(kind), Interleaving(kind)
    for act, turns in acts:
        calm.act(act)
        calm.world.settle()
        wild.act(act)
        wild.turn(turns)
    assert wild.rest() == calm.rest()


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    acts=st.lists(st.tuples(ACTS, st.lists(st.integers(0, 20), max_size=12)), max_size=4),
    cuts=st.lists(st.integers(1, 400), max_size=6),
)
def test_jobs_converge_from_any_interleaving_and_cut(
    kind: str, acts: list[tuple[Act, list[int]]], cuts: list[int]
) -> None:
    calm, wild = Interleaving(kind), Interleaving(kind)
    for act, turns in acts:
        calm.act(act)
        calm.world.settle()
        wild.act(act)
        wild.turn(turns)
        wild.world.settle()
        calm.world.advance(float(sum(cuts)))
        for cut in cuts:
            wild.world.advance(float(cut))
    assert wild.rest() == calm.rest()


def seen_around(world: ClusterWorld) -> JsonObject:
    """What is said of pods by those who look at them."""
    slices = [
        endpoint["conditions"]
        for each in world.list("endpointslices")
        for endpoint in each.get("endpoints") or ()
    ]
    subsets = [each for found in world.list("endpoints") for each in found.get("subsets") or ()]
    return {
        "slices": slices,
        "endpoints": [len(each.get("addresses") or ()) for each in subsets],
        "budget": without_times(world.get("PodDisruptionBudget", "b")["status"]),
        "quota": world.get("ResourceQuota", "q")["status"],
    }


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    acts=st.lists(st.tuples(ACTS, st.lists(st.integers(0, 30), max_size=16)), max_size=5),
)
def test_services_budgets_and_quotas_converge_with_their_pods(
    acts: list[tuple[Act, list[int]]],
) -> None:
    calm, wild = Interleaving("Deployment"), Interleaving("Deployment")
    for each in AROUND:
        calm.world.create(each)
        wild.world.create(each)
    for act, turns in acts:
        calm.act(act)
        calm.world.settle()
        wild.act(act)
        wild.turn(turns)
    assert wild.rest() == calm.rest()
    assert seen_around(wild.world) == seen_around(calm.world)
