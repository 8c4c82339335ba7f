"""What can never be: it is said in the words of the real controllers, and nobody works for ever."""

import pytest

from kubescene.actors import Actor
from kubescene.api.options import DeleteOptions
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import InvalidError
from kubescene.testing import make_node
from kubescene.types import JsonObject

Told = list[tuple[str, str, str]]


@pytest.fixture
def world() -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(events=True))
    cluster.create(make_node("n").cpu("64").memory("64Gi"))
    return cluster.settle()


def template(app: str = "x", **spec: object) -> JsonObject:
    containers = [{"name": "c", "image": "v1"}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def workload(kind: str, **spec: object) -> JsonObject:
    labels = {"app": kind.lower()}
    made = {"selector": {"matchLabels": labels}, "template": template(**labels), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": made}


def batch(kind: str, **spec: object) -> JsonObject:
    return {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec}


def told(world: ClusterWorld, kind: str) -> Told:
    """Events about objects of a kind, in the order of their names."""
    events = [each for each in world.list("events") if each["involvedObject"]["kind"] == kind]
    return [(each["type"], each["reason"], each["message"]) for each in events]


def writes_of_a_day(world: ClusterWorld) -> int:
    world.advance("1h")
    before = world.revision
    world.advance("24h")
    return world.revision - before


def test_a_set_whose_claim_cannot_be_bound_waits_at_its_first_pod(world: ClusterWorld) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "nowhere",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stateful = workload("StatefulSet", replicas=3, serviceName="w", volumeClaimTemplates=[claim])
    world.create(stateful)
    world.advance("1m")
    [pod] = world.list("pods")
    [condition] = pod["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
    assert "pod has unbound immediate PersistentVolumeClaims" in condition["message"]
    missing = 'storageclass.storage.k8s.io "nowhere" not found'
    assert told(world, "PersistentVolumeClaim") == [("Warning", "ProvisioningFailed", missing)]
    assert world.get("statefulsets", "w")["status"]["replicas"] == 1
    assert writes_of_a_day(world) < 100


def test_a_schedule_that_never_comes_does_nothing_for_years(world: ClusterWorld) -> None:
    spec = {"template": template(restartPolicy="Never")}
    world.create(batch("CronJob", schedule="0 0 31 2 *", jobTemplate={"spec": spec}))
    before = world.settle().get("cronjobs", "w")
    world.advance("87600h")
    assert world.get("cronjobs", "w") == before
    assert world.list("jobs") == []


def test_a_job_that_nobody_can_run_stays_active(world: ClusterWorld) -> None:
    nowhere = template(restartPolicy="Never", nodeSelector={"no": "where"})
    world.create(batch("Job", template=nowhere, completions=2))
    assert writes_of_a_day(world) < 100
    status = world.get("jobs", "w")["status"]
    assert (status["active"], "conditions" in status) == (1, False)


def test_a_job_that_always_fails_goes_on_ever_more_slowly(world: ClusterWorld) -> None:
    fails = template(restartPolicy="Never")
    runs = {"kubescene.dev/run-time": "1s", "kubescene.dev/exit-code": "1"}
    fails["metadata"]["annotations"] = runs
    world.create(batch("Job", template=fails, backoffLimit=10_000))
    world.advance("24h")
    # 10, 20, 40, 80, 160, 320 s after the first ones, then every ten minutes and a second.
    first = sum(10 * 2**each + 1 for each in range(6)) + 1
    assert world.get("jobs", "w")["status"]["failed"] == 7 + (24 * 3600 - first) // 601


def test_a_quota_of_zero_is_told_of_by_everybody_and_forgotten_when_it_grows(
    world: ClusterWorld,
) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    world.create({**quota, "spec": {"hard": {"pods": "0"}}})
    for kind in ("Deployment", "DaemonSet", "StatefulSet"):
        names = {"serviceName": "w"} if kind == "StatefulSet" else {}
        world.create(workload(kind, **names))
    world.create(batch("Job", template=template(restartPolicy="Never")))
    world.advance("1m")
    assert world.list("pods") == []
    exceeded = "is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    for kind in ("ReplicaSet", "DaemonSet", "StatefulSet", "Job"):
        assert {(each[:2], each[2].endswith(exceeded)) for each in told(world, kind)} == {
            (("Warning", "FailedCreate"), True)
        }, kind
    conditions = world.get("deployments", "w")["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions}["ReplicaFailure"] == "True"
    world.advance("24h").patch("resourcequotas", "q", {"spec": {"hard": {"pods": "4"}}})
    world.advance("20m")
    assert [pod["status"]["phase"] for pod in world.list("pods")] == ["Running"] * 4


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "StatefulSet"])
def test_selectors_of_nobody_and_of_everybody_are_refused(world: ClusterWorld, kind: str) -> None:
    more = {"serviceName": "w"} if kind == "StatefulSet" else {}
    with pytest.raises(InvalidError, match=f"empty selector is invalid for {kind.lower()}"):
        world.create(workload(kind, selector={}, **more))
    with pytest.raises(InvalidError, match="`selector` does not match template `labels`"):
        world.create(workload(kind, selector={"matchLabels": {"app": "other"}}, **more))


@pytest.mark.parametrize(
    ("propagation", "left"), [("Foreground", []), ("Background", []), ("Orphan", ["b"])]
)
def test_owners_of_each_other_stay_until_one_is_deleted(
    world: ClusterWorld, propagation: str, left: list[str]
) -> None:
    for name in "ab":
        world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    for name, owner in ("ab", "ba"):
        uid = world.get("configmaps", owner)["metadata"]["uid"]
        kind = {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True}
        references = [{**kind, "name": owner, "uid": uid}]
        world.patch("configmaps", name, {"metadata": {"ownerReferences": references}})
    assert writes_of_a_day(world) == 0
    resource, options = (
        world.scheme.resolve("ConfigMap"),
        DeleteOptions(propagation_policy=propagation),
    )
    world.registry.delete(Actor("user"), resource, "default", "a", options=options)
    world.settle()
    assert [each["metadata"]["name"] for each in world.list("configmaps")] == left
