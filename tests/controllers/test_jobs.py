"""Jobs and CronJobs in a whole cluster; what they decide in detail is in tests/golden."""

from typing import Any

import pytest

import kubescene
from kubescene.cluster.options import ClusterOptions
from kubescene.testing import make_node, make_pod

JobDocument = dict[str, Any]


def job(name: str = "j", **spec: Any) -> JobDocument:
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "v1"}]},
    }
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template, **spec},
    }


@pytest.fixture
def cluster() -> kubescene.Cluster:
    world = kubescene.Cluster()
    world.create(make_node("n1").cpu("64").memory("64Gi"))
    return world


def names(cluster: kubescene.Cluster, phase: str) -> list[str]:
    pods = cluster.list("pods")
    return [each["metadata"]["name"] for each in pods if each["status"].get("phase") == phase]


def end(cluster: kubescene.Cluster, pod: str, phase: str = "Succeeded", code: int = 0) -> None:
    state = {"terminated": {"exitCode": code, "reason": "", "finishedAt": "2026-01-01T00:00:00Z"}}
    status = {"name": "c", "image": "v1", "imageID": "", "restartCount": 0, "ready": False}
    patch = {"phase": phase, "containerStatuses": [{**status, "state": state}]}
    cluster.patch("pods", pod, {"status": patch}, subresource="status")


def status(cluster: kubescene.Cluster, name: str = "j") -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("jobs", name)["status"]
    return found


def conditions(cluster: kubescene.Cluster, name: str = "j") -> list[tuple[str, str]]:
    told = status(cluster, name).get("conditions") or []
    return [(each["type"], each["reason"]) for each in told]


def test_a_job_runs_to_completion(cluster: kubescene.Cluster) -> None:
    cluster.create(job(parallelism=2, completions=3))
    cluster.settle()
    for _ in range(3):
        end(cluster, names(cluster, "Running")[0])
        cluster.settle()
    assert status(cluster)["succeeded"] == 3
    assert conditions(cluster) == [
        ("SuccessCriteriaMet", "CompletionsReached"),
        ("Complete", "CompletionsReached"),
    ]
    assert not any(each["metadata"].get("finalizers") for each in cluster.list("pods"))


def test_failures_wait_longer_each_time(cluster: kubescene.Cluster) -> None:
    cluster.create(job(backoffLimit=2))
    cluster.settle()
    begun = cluster.clock.now()
    for wait in (10, 20):
        end(cluster, names(cluster, "Running")[0], "Failed", 1)
        pod = names(cluster, "Failed")[-1]
        now = kubescene.clock.format_time(cluster.clock.now())
        set_end(cluster, pod, now)
        cluster.settle()
        assert not names(cluster, "Running")
        cluster.advance(wait - 1.0)
        assert not names(cluster, "Running")
        cluster.advance(1.5)
        assert len(names(cluster, "Running")) == 1
    assert cluster.clock.now() > begun
    end(cluster, names(cluster, "Running")[0], "Failed", 1)
    cluster.settle()
    assert conditions(cluster)[-1] == ("Failed", "BackoffLimitExceeded")


def set_end(cluster: kubescene.Cluster, pod: str, now: str) -> None:
    statuses = cluster.get("pods", pod)["status"]["containerStatuses"]
    statuses[0]["state"]["terminated"]["finishedAt"] = now
    cluster.patch("pods", pod, {"status": {"containerStatuses": statuses}}, subresource="status")


def test_a_fork_goes_on_alike(cluster: kubescene.Cluster) -> None:
    cluster.create(job(parallelism=2, completions=4, completionMode="Indexed"))
    cluster.settle()
    other = cluster.fork()
    for world in (cluster, other):
        end(world, names(world, "Running")[0])
        world.settle()
    assert cluster.export() == other.export()
    assert status(other)["completedIndexes"] == "0"


def test_pods_that_a_job_leaves_behind_can_go(cluster: kubescene.Cluster) -> None:
    cluster.create(job())
    cluster.settle()
    cluster.delete("jobs", "j")
    cluster.settle()
    assert cluster.list("jobs") == cluster.list("pods") == []


def test_a_job_of_somebody_else_is_left_alone(cluster: kubescene.Cluster) -> None:
    cluster.create(job(managedBy="example.com/queue"))
    cluster.settle()
    assert not cluster.list("pods")


def test_a_job_that_may_make_no_pods_says_so() -> None:
    world = kubescene.Cluster(ClusterOptions(events=True))
    bad = job()
    bad["spec"]["template"]["spec"]["priorityClassName"] = "nobody"
    world.create(bad)
    world.settle()
    [event] = [each for each in world.list("events") if each["reason"] == "FailedCreate"]
    assert "no PriorityClass with name nobody was found" in event["message"]


def test_worlds_without_jobs_are_as_before(cluster: kubescene.Cluster) -> None:
    cluster.create(make_pod("a").cpu("1"))
    before = cluster.store.revision
    cluster.settle()
    written = cluster.store.revision - before
    assert written == 3  # the node is ready, the pod is bound, the pod runs


def cron_job(**spec: Any) -> JobDocument:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "cj", "namespace": "default"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job()["spec"]}, **spec},
    }


def test_a_cron_job_makes_a_job_a_minute(cluster: kubescene.Cluster) -> None:
    cluster.create(cron_job())
    cluster.advance("3m")
    assert len(cluster.list("jobs")) == 3
    assert len(cluster.get("cronjobs", "cj")["status"]["active"]) == 3


def test_jobs_that_have_ended_are_kept_for_a_while(cluster: kubescene.Cluster) -> None:
    cluster.create(cron_job(successfulJobsHistoryLimit=2, concurrencyPolicy="Forbid"))
    for _ in range(5):
        cluster.advance("1m")
        end(cluster, names(cluster, "Running")[0])
        cluster.settle()
    assert len(cluster.list("jobs")) == 2
    assert len(cluster.list("pods")) == 2


def test_a_finished_job_goes_with_its_pods_after_its_time(cluster: kubescene.Cluster) -> None:
    cluster.create(job(ttlSecondsAfterFinished=60))
    cluster.settle()
    end(cluster, names(cluster, "Running")[0])
    cluster.advance("59s")
    assert cluster.list("jobs")
    cluster.advance("2s")
    assert cluster.list("jobs") == cluster.list("pods") == []


def test_a_job_that_is_due_once_more_and_there_has_ended_all_the_same(
    cluster: kubescene.Cluster,
) -> None:
    """Somebody has set the clock of a CronJob back: its Job cannot be made again."""
    cluster.create(cron_job(schedule="0 * * * *"))
    cluster.advance("60m")
    cluster.settle()
    back = {"status": {"lastScheduleTime": "2025-12-31T00:00:00Z"}}
    cluster.patch("cronjobs", "cj", back, patch_type="merge", subresource="status")
    end(cluster, names(cluster, "Running")[0])
    cluster.settle()
    status = cluster.get("cronjobs", "cj")["status"]
    assert "active" not in status
    assert status["lastSuccessfulTime"] == "2026-01-01T01:00:00Z"
    assert len(cluster.list("jobs")) == 1


def test_a_suspended_cron_job_rests(cluster: kubescene.Cluster) -> None:
    cluster.create(cron_job(suspend=True))
    cluster.advance("10m")
    assert not cluster.list("jobs")
    assert cluster.event_queue.peek() is None


def test_a_job_with_a_selector_of_its_own_adopts(cluster: kubescene.Cluster) -> None:
    cluster.create(make_pod("loose").label(app="x", mine="yes"))
    wanted = job(manualSelector=True, selector={"matchLabels": {"mine": "yes"}})
    wanted["spec"]["template"]["metadata"]["labels"]["mine"] = "yes"
    cluster.create(wanted)
    cluster.settle()
    [pod] = cluster.list("pods")
    assert pod["metadata"]["ownerReferences"][0]["name"] == "j"
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]


def test_a_suspended_job_has_not_ended(cluster: kubescene.Cluster) -> None:
    cluster.create(job(ttlSecondsAfterFinished=0, suspend=True))
    cluster.advance("1m")
    assert conditions(cluster) == [("Suspended", "JobSuspended")]


def test_pods_that_are_not_ready_go_first_when_a_job_shrinks(cluster: kubescene.Cluster) -> None:
    cluster.create(job(parallelism=3, completions=9))
    cluster.settle()
    slow = names(cluster, "Running")[1]
    not_ready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    patch = {"status": {"conditions": [not_ready]}}
    cluster.patch("pods", slow, patch, subresource="status")
    cluster.patch("jobs", "j", {"spec": {"parallelism": 2}})
    cluster.settle()
    assert slow not in names(cluster, "Running")
    assert len(names(cluster, "Running")) == 2
