"""The Deployment controller: sets follow templates, within limits, and the status tells."""

from functools import partial
from typing import Any

import pytest

from kubescene.api.kinds import REPLICA_SET
from kubescene.api.records.changes import Change
from kubescene.client import Reader
from kubescene.clock import SECOND
from kubescene.cluster import ClusterWorld
from kubescene.controllers.builtin.workloads.deployments.deployment import (
    DeploymentReconciler,
    StatusPass,
)
from kubescene.controllers.builtin.workloads.deployments.sets import differs_in_status
from kubescene.controllers.reconcile import Create, ObjectKey, Patch, Plan
from kubescene.controllers.runtime import ReconcilerController, make
from kubescene.errors import ForbiddenError
from kubescene.testing import make_deployment, make_node, make_pod, make_replica_set
from kubescene.types import JsonObject

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"


@pytest.fixture
def world() -> ClusterWorld:
    """No kubelet, no scheduler: pods are ready when the test says so."""
    cluster = ClusterWorld()
    cluster.start(["deployment", "replicaset"])
    return cluster


@pytest.fixture
def full(cluster: ClusterWorld) -> ClusterWorld:
    """Everything runs, with room for all pods: they are ready at once."""
    for name in ("n1", "n2"):
        cluster.create(make_node(name))
    return cluster


def get(cluster: ClusterWorld) -> JsonObject:
    return cluster.get("deployments", "web")


def status(cluster: ClusterWorld) -> JsonObject:
    found: JsonObject = get(cluster)["status"]
    return found


def condition(cluster: ClusterWorld, kind: str = "Progressing") -> JsonObject:
    found: JsonObject = next(c for c in status(cluster)["conditions"] if c["type"] == kind)
    return found


def reason(cluster: ClusterWorld, kind: str = "Progressing") -> tuple[str, str]:
    found = condition(cluster, kind)
    return found["status"], found["reason"]


def image_of(replica_set: JsonObject) -> str:
    text: str = replica_set["spec"]["template"]["spec"]["containers"][0]["image"]
    return text


def find_set(cluster: ClusterWorld, image: str) -> JsonObject:
    return next(it for it in cluster.list("replicasets") if image_of(it) == image)


def sizes(cluster: ClusterWorld) -> dict[str, int]:
    """Sizes of the sets by image."""
    return {image_of(it): it["spec"]["replicas"] for it in cluster.list("replicasets")}


def revisions(cluster: ClusterWorld) -> dict[str, str]:
    sets = cluster.list("replicasets")
    return {image_of(it): it["metadata"]["annotations"][REVISION] for it in sets}


def change(cluster: ClusterWorld, **spec: Any) -> None:
    cluster.patch("deployments", "web", {"spec": spec}, patch_type="merge")


def set_image(cluster: ClusterWorld, image: str) -> None:
    container = {"name": "main", "image": image}
    cluster.patch(
        "deployments", "web", {"spec": {"template": {"spec": {"containers": [container]}}}}
    )


def make_ready(cluster: ClusterWorld, image: str, count: int | None = None) -> None:
    """So many pods of an image that are not ready become so."""
    since = "2026-01-01T00:00:00Z"
    ready = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}]}
    waiting = [
        pod["metadata"]["name"]
        for pod in cluster.list("pods")
        if pod["spec"]["containers"][0]["image"] == image and not pod["status"].get("conditions")
    ]
    for name in waiting[:count]:
        patch = {"status": {"phase": "Running", **ready}}
        cluster.patch("pods", name, patch, patch_type="merge", subresource="status")


def advance(cluster: ClusterWorld, seconds: int) -> None:
    cluster.event_queue.run(cluster.clock.now() + seconds * SECOND)
    cluster.settle()


def started(world: ClusterWorld, replicas: int = 10, **spec: Any) -> ClusterWorld:
    """A Deployment whose pods of ``a:1`` are all ready."""
    world.create(make_deployment("web").replicas(replicas).image("a:1"))
    if spec:
        change(world, **spec)
    make_ready(world.settle(), "a:1")
    return world.settle()


# -- creating ----------------------------------------------------------------------------------


def test_a_set_is_created_for_the_template(world: ClusterWorld) -> None:
    world.create(make_deployment("web").replicas(4).image("a:1").annotate({"team": "x"}))
    world.settle()
    (made,) = world.list("replicasets")
    mark = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{mark}"
    assert made["metadata"]["labels"] == {"app": "web", "pod-template-hash": mark}
    assert made["spec"]["selector"]["matchLabels"] == made["metadata"]["labels"]
    assert made["spec"]["template"]["metadata"]["labels"] == made["metadata"]["labels"]
    annotations = {"team": "x", REVISION: "1", DESIRED: "4", MAX: "5"}
    assert made["metadata"]["annotations"] == annotations
    assert made["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": get(world)["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert len(world.list("pods")) == 4
    assert get(world)["metadata"]["annotations"] == {"team": "x", REVISION: "1"}
    assert get(world)["metadata"]["generation"] == 1


def test_equal_templates_give_equal_names_in_every_world() -> None:
    names = []
    for seed_pod in ("one", "two"):
        cluster = ClusterWorld()
        cluster.create(make_pod(seed_pod))
        cluster.create(make_deployment("web"))
        names.append(cluster.settle().list("replicasets")[0]["metadata"]["name"])
    assert names[0] == names[1]


def test_a_very_long_name_is_cut(world: ClusterWorld) -> None:
    web = make_deployment("web").replicas(0).build()
    world.create({**web, "metadata": {**web["metadata"], "name": "w" * 253}})
    (made,) = world.settle().list("replicasets")
    assert len(made["metadata"]["name"]) == 253


def test_the_controller_comes_to_rest(full: ClusterWorld) -> None:
    full.create(make_deployment("web").replicas(3))
    revision = full.settle().store.revision
    assert full.settle().store.revision == revision


def test_a_taken_name_leads_to_another_hash(world: ClusterWorld) -> None:
    web = make_deployment("web").replicas(0)
    world.create(web)
    (first,) = world.settle().list("replicasets")
    name = first["metadata"]["name"]
    world.delete("deployments", "web")
    world.delete("replicasets", name)
    other = make_replica_set("other").replicas(0).build()
    world.create({**other, "metadata": {"name": name, "namespace": "default"}})
    world.create(web)
    names = [it["metadata"]["name"] for it in world.settle().list("replicasets")]
    assert len(names) == 2
    assert name in names
    assert status(world)["collisionCount"] == 1


def test_a_refused_set_shows_in_the_conditions(world: ClusterWorld) -> None:
    world.create(make_deployment("web"))
    client = world.client(world.actor)
    refusal = ForbiddenError("no more sets")
    write = Create(make_replica_set("web-x").build())
    plan = DeploymentReconciler().refused(ObjectKey("default", "web"), write, refusal, client, 0)
    (told,) = plan.writes
    assert isinstance(told, Patch)
    make(told, client)
    assert reason(world) == ("False", "ReplicaSetCreateError")
    message = 'Failed to create new replica set "web-x": no more sets'
    assert condition(world)["message"] == message
    again = DeploymentReconciler().refused(ObjectKey("default", "web"), write, refusal, client, 0)
    assert not again.writes


def test_nothing_is_created_in_a_namespace_that_goes_away(world: ClusterWorld) -> None:
    world.create(namespace("team"))
    world.create(make_deployment("web", "team").replicas(1))
    hold = {"metadata": {"finalizers": ["example.com/held"]}}
    world.patch("deployments", "web", hold, namespace="team")
    world.delete("namespaces", "team")
    world.settle()
    assert world.list("replicasets", "team") == []
    assert world.get("deployments", "web", "team")["status"] == {}


def namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


# -- rolling update ----------------------------------------------------------------------------


def test_ten_replicas_roll_out_in_the_usual_steps(world: ClusterWorld) -> None:
    started(world)
    set_image(world, "a:2")
    steps = [sizes(world.settle())]
    while world.list("pods") and steps[-1] != {"a:1": 0, "a:2": 10}:
        make_ready(world, "a:2")
        steps.append(sizes(world.settle()))
    assert steps == [
        {"a:1": 8, "a:2": 5},
        {"a:1": 3, "a:2": 10},
        {"a:1": 0, "a:2": 10},
    ]


def test_limits_hold_at_every_moment(full: ClusterWorld) -> None:
    full.create(make_deployment("web").replicas(10).image("a:1"))
    full.settle()
    seen: dict[str, tuple[int, int]] = {}
    totals: list[tuple[int, int]] = []

    def watch(change: Change) -> None:
        obj = change.object
        available = obj["status"].get("availableReplicas", 0)
        seen[obj["metadata"]["name"]] = (obj["spec"]["replicas"], available)
        figures = list(seen.values())
        totals.append((sum(f[0] for f in figures), sum(f[1] for f in figures)))

    full.client(full.actor).watch(REPLICA_SET, watch)
    set_image(full, "a:2")
    full.settle()
    assert sizes(full) == {"a:1": 0, "a:2": 10}
    assert max(total for total, _ in totals) == 13
    assert min(available for _, available in totals) >= 8
    assert {pod["spec"]["containers"][0]["image"] for pod in full.list("pods")} == {"a:2"}


def test_a_template_that_never_gets_ready_stops_the_rollout(world: ClusterWorld) -> None:
    started(world)
    set_image(world, "a:bad")
    assert sizes(world.settle()) == {"a:1": 8, "a:bad": 5}
    counts = status(world)
    assert (counts["replicas"], counts["updatedReplicas"]) == (13, 5)
    assert (counts["availableReplicas"], counts["unavailableReplicas"]) == (8, 5)
    assert reason(world, "Available") == ("True", "MinimumReplicasAvailable")


def test_rolling_back_from_a_bad_template(world: ClusterWorld) -> None:
    started(world)
    set_image(world, "a:bad")
    set_image(world.settle(), "a:1")
    make_ready(world.settle(), "a:1")
    assert sizes(world.settle()) == {"a:1": 10, "a:bad": 0}
    assert revisions(world) == {"a:1": "3", "a:bad": "2"}
    assert find_set(world, "a:1")["metadata"]["annotations"][HISTORY] == "1"
    assert get(world)["metadata"]["annotations"][REVISION] == "3"


def test_a_rollout_over_a_rollout(world: ClusterWorld) -> None:
    started(world)
    set_image(world, "a:2")
    set_image(world.settle(), "a:3")
    assert sizes(world.settle()) == {"a:1": 8, "a:2": 0, "a:3": 5}


def test_a_pod_that_does_not_fit_keeps_the_old_ones(cluster: ClusterWorld) -> None:
    cluster.create(make_node("n").cpu("4"))
    pod = make_pod("x").cpu("1")
    cluster.create(
        make_deployment("web").replicas(4).template(pod).rolling(max_surge=1, max_unavailable=0)
    )
    set_image(cluster.settle(), "a:2")
    cluster.settle()
    assert sorted(sizes(cluster).values()) == [1, 4]
    cluster.create(make_node("m").cpu("4"))
    assert sizes(cluster.settle())["a:2"] == 4
    assert reason(cluster) == ("True", "NewReplicaSetAvailable")


def test_a_changed_delay_reaches_the_set(full: ClusterWorld) -> None:
    full.create(make_deployment("web").image("a:1"))
    full.settle()
    change(full, minReadySeconds=30)
    full.settle()
    assert find_set(full, "a:1")["spec"]["minReadySeconds"] == 30
    set_image(full, "a:2")
    full.settle()
    assert reason(full) == ("True", "ReplicaSetUpdated")
    advance(full, 30)
    assert reason(full) == ("True", "NewReplicaSetAvailable")


# -- recreate ----------------------------------------------------------------------------------


def test_recreate_waits_until_the_last_old_pod_has_stopped(world: ClusterWorld) -> None:
    world.create(make_node("n"))
    template = make_pod("x").on("n")
    world.create(make_deployment("web").replicas(2).recreate().template(template).image("a:1"))
    world.settle()
    set_image(world, "a:2")
    assert sizes(world.settle()) == {"a:1": 0}
    assert status(world)["terminatingReplicas"] == 2
    first, second = (pod["metadata"]["name"] for pod in world.list("pods"))
    world.delete("pods", first, grace_period_s=0)
    assert sizes(world.settle()) == {"a:1": 0}
    world.delete("pods", second, grace_period_s=0)
    assert sizes(world.settle()) == {"a:1": 0, "a:2": 2}


def test_recreate_runs_through(full: ClusterWorld) -> None:
    full.create(make_deployment("web").replicas(3).recreate().image("a:1"))
    set_image(full.settle(), "a:2")
    assert sizes(full.settle()) == {"a:1": 0, "a:2": 3}
    assert reason(full) == ("True", "NewReplicaSetAvailable")


# -- scaling and pausing -----------------------------------------------------------------------


def test_scaling_resizes_the_only_active_set(full: ClusterWorld) -> None:
    full.create(make_deployment("web").replicas(3).image("a:1"))
    full.settle()
    for count in (7, 0, 2):
        change(full, replicas=count)
        assert sizes(full.settle()) == {"a:1": count}
        assert status(full).get("replicas", 0) == count
    annotations = find_set(full, "a:1")["metadata"]["annotations"]
    assert (annotations[DESIRED], annotations[MAX]) == ("2", "3")


def test_scaling_in_the_middle_of_a_rollout_is_proportional(world: ClusterWorld) -> None:
    started(world, 10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
    set_image(world, "a:bad")
    assert sizes(world.settle()) == {"a:1": 8, "a:bad": 5}
    change(world, replicas=30)
    # 33 may exist: round(8 * 33 / 13) = 20 and round(5 * 33 / 13) = 13.
    assert sizes(world.settle()) == {"a:1": 20, "a:bad": 13}
    annotations = [it["metadata"]["annotations"] for it in world.list("replicasets")]
    assert {(it[DESIRED], it[MAX]) for it in annotations} == {("30", "33")}


def test_a_paused_deployment_scales_but_does_not_roll_out(full: ClusterWorld) -> None:
    full.create(make_deployment("web").replicas(2).image("a:1"))
    full.settle()
    change(full, paused=True)
    set_image(full, "a:2")
    assert sizes(full.settle()) == {"a:1": 2}
    assert reason(full) == ("Unknown", "DeploymentPaused")
    change(full, replicas=5)
    assert sizes(full.settle()) == {"a:1": 5}
    change(full, paused=None)
    assert sizes(full.settle()) == {"a:1": 0, "a:2": 5}
    assert reason(full) == ("True", "NewReplicaSetAvailable")


def test_a_deployment_that_starts_paused_has_no_set(full: ClusterWorld) -> None:
    full.create(make_deployment("web").paused())
    assert full.settle().list("replicasets") == []
    assert status(full)["observedGeneration"] == 1
    assert reason(full, "Available") == ("False", "MinimumReplicasUnavailable")


# -- history and claiming ----------------------------------------------------------------------


def test_old_sets_beyond_the_limit_are_deleted(full: ClusterWorld) -> None:
    full.create(make_deployment("web").image("a:1"))
    full.settle()
    change(full, revisionHistoryLimit=1)
    for image in ("a:2", "a:3", "a:2", "a:4"):
        set_image(full, image)
        full.settle()
    assert revisions(full) == {"a:2": "4", "a:4": "5"}


def test_without_a_history_only_the_current_set_stays(full: ClusterWorld) -> None:
    full.create(make_deployment("web").image("a:1"))
    full.settle()
    change(full, revisionHistoryLimit=0)
    set_image(full, "a:2")
    assert sizes(full.settle()) == {"a:2": 1}


def test_a_matching_orphan_with_the_same_template_becomes_the_new_set(full: ClusterWorld) -> None:
    orphan = make_replica_set("web").replicas(2).build()
    named = {"name": "web-abc", "namespace": "default", "labels": {"app": "web"}}
    full.create({**orphan, "metadata": named})
    full.settle()
    full.create(make_deployment("web").replicas(3))
    (adopted,) = full.settle().list("replicasets")
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "web"
    assert adopted["metadata"]["annotations"][REVISION] == "1"
    assert adopted["spec"]["replicas"] == 3


def test_an_orphan_with_another_template_is_rolled_away(full: ClusterWorld) -> None:
    full.create(make_deployment("web").replicas(2).image("a:1"))
    full.settle()
    orphan = make_deployment("web").replicas(2).image("a:0").build()
    named = {"name": "late", "namespace": "default", "labels": {"app": "web"}}
    full.create({**orphan, "kind": "ReplicaSet", "metadata": named})
    assert sizes(full.settle()) == {"a:0": 0, "a:1": 2}


def test_a_set_that_no_longer_matches_is_released_and_replaced(full: ClusterWorld) -> None:
    full.create(make_deployment("web").image("a:1"))
    (made,) = full.settle().list("replicasets")
    name = made["metadata"]["name"]
    full.patch("replicasets", name, {"metadata": {"labels": {"app": "mine"}}})
    full.settle()
    assert "ownerReferences" not in full.get("replicasets", name)["metadata"]
    assert len(full.list("replicasets")) == 2
    assert status(full)["collisionCount"] == 1


def test_annotations_of_the_deployment_reach_the_new_set_only(full: ClusterWorld) -> None:
    full.create(make_deployment("web").image("a:1"))
    set_image(full.settle(), "a:2")
    full.settle()
    full.patch("deployments", "web", {"metadata": {"annotations": {"why": "because"}}})
    full.settle()
    assert find_set(full, "a:2")["metadata"]["annotations"]["why"] == "because"
    assert "why" not in find_set(full, "a:1")["metadata"]["annotations"]


# -- status and deadline -----------------------------------------------------------------------


def test_the_status_of_a_finished_rollout(full: ClusterWorld) -> None:
    full.create(make_deployment("web").replicas(3))
    (made,) = full.settle().list("replicasets")
    since = {"lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    assert status(full) == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
        "conditions": [
            {
                "type": "Available",
                "status": "True",
                "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
                **since,
            },
            {
                "type": "Progressing",
                "status": "True",
                "reason": "NewReplicaSetAvailable",
                "message": f'ReplicaSet "{made["metadata"]["name"]}" has successfully progressed.',
                **since,
            },
        ],
    }


def test_a_stuck_rollout_exceeds_its_deadline(world: ClusterWorld) -> None:
    world.create(make_deployment("web").replicas(2))
    world.settle()
    assert reason(world) == ("True", "ReplicaSetUpdated")
    advance(world, 600)
    assert reason(world) == ("True", "ReplicaSetUpdated")
    advance(world, 1)
    assert reason(world) == ("False", "ProgressDeadlineExceeded")
    assert condition(world)["message"].endswith("has timed out progressing.")
    assert len(world.event_queue) == 0
    make_ready(world, "registry.k8s.io/pause:3.10")
    world.settle()
    assert reason(world) == ("True", "NewReplicaSetAvailable")


def test_progress_puts_the_deadline_off(world: ClusterWorld) -> None:
    world.create(make_deployment("web").replicas(2).image("a:1"))
    world.settle()
    advance(world, 400)
    make_ready(world, "a:1", 1)
    world.settle()
    advance(world, 400)
    assert reason(world) == ("True", "ReplicaSetUpdated")
    advance(world, 201)
    assert reason(world) == ("False", "ProgressDeadlineExceeded")


def test_the_time_paused_does_not_count(world: ClusterWorld) -> None:
    world.create(make_deployment("web").image("a:1"))
    world.settle()
    change(world, paused=True)
    world.settle()
    advance(world, 5000)
    assert reason(world) == ("Unknown", "DeploymentPaused")
    change(world, paused=False)
    world.settle()
    assert reason(world) == ("Unknown", "DeploymentResumed")
    advance(world, 601)
    assert reason(world) == ("False", "ProgressDeadlineExceeded")


def test_without_a_deadline_nothing_is_said_of_progress(world: ClusterWorld) -> None:
    world.create(make_deployment("web"))
    change(world, progressDeadlineSeconds=2147483647)
    world.settle()
    assert [it["type"] for it in status(world)["conditions"]] == ["Available"]
    assert len(world.event_queue) == 0


def test_a_lost_pod_after_the_rollout_starts_no_deadline(world: ClusterWorld) -> None:
    started(world, 1)
    world.delete("pods", world.list("pods")[0]["metadata"]["name"])
    world.settle()
    assert reason(world) == ("True", "NewReplicaSetAvailable")
    assert reason(world, "Available") == ("False", "MinimumReplicasUnavailable")
    advance(world, 5000)
    assert reason(world) == ("True", "NewReplicaSetAvailable")


def test_a_failure_of_the_set_is_passed_on(world: ClusterWorld) -> None:
    world.create(make_deployment("web").template(make_pod("x").priority_class("missing")))
    world.settle()
    assert reason(world, "ReplicaFailure") == ("True", "FailedCreate")


def test_a_deployment_being_deleted_manages_nothing(world: ClusterWorld) -> None:
    started(world, 1)
    hold = {"metadata": {"finalizers": ["example.com/held"]}}
    world.patch("deployments", "web", hold)
    world.delete("deployments", "web")
    set_image(world, "a:2")
    assert sizes(world.settle()) == {"a:1": 1}
    assert status(world)["observedGeneration"] == get(world)["metadata"]["generation"]


class Doubting(DeploymentReconciler):
    """Takes every pass twice, the first time without what it remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.left_out = self.shortened = 0

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        left_out, shortened = self._at_rest.get(key) == now, key in self._standing
        kept = self._at_rest, self._standing
        self._at_rest, self._standing = {}, {}
        expected = super().reconcile(key, reader, now)
        self._at_rest, self._standing = kept
        plan = super().reconcile(key, reader, now)
        assert plan.writes == expected.writes
        assert plan == expected or (left_out and not plan.writes)
        self.left_out += left_out
        self.shortened += shortened and not left_out
        return plan


def test_a_pass_that_is_left_out_would_have_found_nothing() -> None:
    doubting = Doubting()
    cluster = ClusterWorld()
    cluster.registrations.replace("deployment", partial(ReconcilerController, doubting))
    cluster.start(["deployment", "replicaset"])
    started(cluster, 10, revisionHistoryLimit=1)
    for image in ("a:2", "a:3"):
        set_image(cluster, image)
        cluster.settle()
        for _ in range(12):
            make_ready(cluster, image, 2)
            cluster.settle()
            advance(cluster, 7)
    change(cluster, replicas=4, paused=True)
    cluster.settle()
    set_image(cluster, "a:4")
    advance(cluster, 700)
    change(cluster, paused=False)
    cluster.settle()
    advance(cluster, 700)
    assert reason(cluster) == ("False", "ProgressDeadlineExceeded")
    assert doubting.left_out > 10
    assert doubting.shortened > 10


SPEC: JsonObject = {"replicas": 3}
TOLD: JsonObject = {
    "metadata": {"annotations": {"a": "b"}},
    "spec": SPEC,
    "status": {"replicas": 2},
}


@pytest.mark.parametrize(
    ("changed", "is_all"),
    [
        pytest.param({}, True, id="as it was"),
        pytest.param({"spec": {**SPEC}}, False, id="another version of the spec"),
        pytest.param({"status": {"replicas": 3}}, False, id="status"),
        pytest.param({"metadata": {}}, False, id="annotations"),
        pytest.param(
            {"metadata": {**TOLD["metadata"], "deletionTimestamp": "t"}}, False, id="deleted"
        ),
    ],
)
def test_a_deployment_rests_only_if_it_is_what_a_pass_has_left(
    changed: JsonObject, is_all: bool
) -> None:
    assert StatusPass(SPEC, {"a": "b"}, {"replicas": 2}).is_all({**TOLD, **changed}) is is_all


NOTES = {"a": "b"}
LABELS = {"app": "web"}
OLD: JsonObject = {
    "metadata": {"name": "web-1", "uid": "1", "annotations": NOTES, "labels": LABELS},
    "spec": SPEC,
    "status": {"replicas": 1},
}


@pytest.mark.parametrize(
    ("changed", "alike"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"status": {}}, True, id="status"),
        pytest.param({"spec": {"replicas": 3}}, False, id="spec"),
        pytest.param({"metadata": {**OLD["metadata"], "annotations": {}}}, False, id="annotations"),
        pytest.param({"metadata": {**OLD["metadata"], "labels": {}}}, False, id="labels"),
        pytest.param({"metadata": {**OLD["metadata"], "uid": "2"}}, False, id="another set"),
    ],
)
def test_a_rollout_stands_while_nothing_but_statuses_changes(
    changed: JsonObject, alike: bool
) -> None:
    assert differs_in_status({**OLD, **changed}, OLD) is alike


def test_to_say_that_it_is_not_paused_changes_nothing(cluster: ClusterWorld) -> None:
    """Recorded: Go leaves out a false ``paused``, so there is no new generation."""
    cluster.create(make_deployment("web").replicas(1))
    cluster.settle()
    before = cluster.get("deployments", "web")
    cluster.patch("deployments", "web", {"spec": {"paused": False}})
    cluster.settle()
    assert cluster.get("deployments", "web") == before
