"""kubectl and the workload controllers: rollouts of sets, Jobs, cascades, conditions."""

import json
from collections.abc import Callable
from threading import Event

import pytest

from conformance.kubectl import Kubectl
from kubescene.types import JsonObject

TIMEOUT = "--timeout=30s"


def pod_template(labels: JsonObject, image: str, **annotations: str) -> JsonObject:
    return {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }


def workload(kind: str, name: str, image: str = "app:1", **spec: object) -> JsonObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": pod_template(labels, image),
            **spec,
        },
    }


def stateful_set(name: str = "db", image: str = "app:1") -> JsonObject:
    return workload("StatefulSet", name, image, replicas=2, serviceName=name)


def apply(kubectl: Kubectl, *objects: JsonObject) -> str:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return kubectl("apply", "-f", "-", stdin=json.dumps(listed))


def names(kubectl: Kubectl, kind: str, *more: str) -> list[str]:
    return sorted(kubectl("get", kind, "-o", "name", *more).split())


def eventually(holds: Callable[[], object]) -> None:
    assert any(holds() or Event().wait(0.1) for _ in range(300))


SETS = [
    pytest.param("statefulset/db", stateful_set(), id="StatefulSet"),
    pytest.param("daemonset/agent", workload("DaemonSet", "agent"), id="DaemonSet"),
]


class TestRollouts:
    @pytest.mark.parametrize(("name", "obj"), SETS)
    def test_history_undo_and_restart(self, kubectl: Kubectl, name: str, obj: JsonObject) -> None:
        apply(kubectl, obj)
        kubectl("rollout", "status", name, TIMEOUT)
        kubectl("set", "image", name, "main=app:2")
        said = kubectl("rollout", "status", name, TIMEOUT)
        assert "complete" in said or "successfully rolled out" in said
        assert image_of_pods(kubectl) == {"app:2"}
        history = kubectl("rollout", "history", name)
        assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
        assert "app:1" in kubectl("rollout", "history", name, "--revision=1")
        assert "rolled back" in kubectl("rollout", "undo", name)
        kubectl("rollout", "status", name, TIMEOUT)
        assert image_of_pods(kubectl) == {"app:1"}
        before = names(kubectl, "pods", "-o", "jsonpath={.items[*].metadata.uid}")
        kubectl("rollout", "restart", name)
        kubectl("rollout", "status", name, TIMEOUT)
        assert names(kubectl, "pods", "-o", "jsonpath={.items[*].metadata.uid}") != before

    def test_undo_to_a_revision_that_never_was(self, kubectl: Kubectl) -> None:
        apply(kubectl, stateful_set())
        kubectl("rollout", "status", "statefulset/db", TIMEOUT)
        kubectl("rollout", "undo", "statefulset/db", "--to-revision=7", fails=True)


def image_of_pods(kubectl: Kubectl) -> set[str]:
    path = "jsonpath={.items[*].spec.containers[0].image}"
    return set(kubectl("get", "pods", "-o", path).split())


def job(name: str, run_time: str = "0s", exit_code: str = "0", **spec: object) -> JsonObject:
    behaviour = {"kubescene.dev/run-time": run_time, "kubescene.dev/exit-code": exit_code}
    template = pod_template({}, "task:1", **behaviour)
    template["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


class TestJobs:
    def test_a_job_by_command_runs_until_somebody_ends_it(self, kubectl: Kubectl) -> None:
        assert "job.batch/task created" in kubectl("create", "job", "task", "--image=task:1")
        kubectl("wait", "pod", "-l", "job-name=task", "--for=condition=Ready", TIMEOUT)
        said = kubectl("wait", "job/task", "--for=condition=Complete", "--timeout=1s", fails=True)
        assert "timed out" in said
        pod = kubectl("get", "pods", "-l", "job-name=task", "-o", "name").strip()
        patch = '{"status": {"phase": "Succeeded"}}'
        kubectl("patch", pod, "--subresource=status", "--type=merge", "-p", patch)
        kubectl("wait", "job/task", "--for=condition=Complete", TIMEOUT)
        assert kubectl("get", "job", "task").splitlines()[1].split()[1:3] == ["Complete", "1/1"]

    def test_jobs_that_end_well_and_badly(self, kubectl: Kubectl) -> None:
        apply(kubectl, job("good", "1s", completions=2), job("bad", exit_code="3", backoffLimit=0))
        kubectl("wait", "job/bad", "--for=condition=Failed", TIMEOUT)
        kubectl("wait", "job/good", "--for=condition=Complete", TIMEOUT)
        described = kubectl("describe", "job", "bad")
        assert "BackoffLimitExceeded" in described
        assert "0 Active (0 Ready) / 0 Succeeded / 1 Failed" in described
        codes = "jsonpath={.items[*].status.containerStatuses[0].state.terminated.exitCode}"
        assert kubectl("get", "pods", "-l", "job-name=bad", "-o", codes).strip() == "3"

    def test_a_cron_job_and_a_job_from_it(self, kubectl: Kubectl) -> None:
        created = kubectl(
            "create",
            "cronjob",
            "nightly",
            "--image=task:1",
            "--schedule=0 3 * * *",
            "--restart=Never",
        )
        assert "cronjob.batch/nightly created" in created
        assert "0 3 * * *" in kubectl("get", "cronjob", "nightly")
        template = '{"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"annotations": '
        annotations = '{"kubescene.dev/run-time": "0s"}'
        kubectl("patch", "cronjob", "nightly", "-p", f"{template}{annotations}}}}}}}}}}}}}")
        kubectl("create", "job", "now", "--from=cronjob/nightly")
        kubectl("wait", "job/now", "--for=condition=Complete", TIMEOUT)
        owner = kubectl.json("get", "job", "now")["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"]) == ("CronJob", "nightly")
        kubectl("delete", "cronjob", "nightly")
        eventually(lambda: not names(kubectl, "jobs,pods"))

    def test_a_schedule_that_cannot_be_is_refused(self, kubectl: Kubectl) -> None:
        arguments = ("create", "cronjob", "x", "--image=i", "--schedule=61 * * * *")
        said = kubectl(*arguments, fails=True)
        assert "spec.schedule" in said

    def test_suspended_jobs_wait(self, kubectl: Kubectl) -> None:
        apply(kubectl, job("later", suspend=True))
        kubectl("wait", "job/later", "--for=condition=Suspended", TIMEOUT)
        assert not names(kubectl, "pods")
        kubectl("patch", "job", "later", "-p", '{"spec": {"suspend": false}}')
        kubectl("wait", "job/later", "--for=condition=Complete", TIMEOUT)


WAITS = {"deployment": "true", "replicaset": "false"}


class TestCascades:
    def test_background_is_the_default(self, kubectl: Kubectl) -> None:
        self.deployed(kubectl)
        kubectl("delete", "deployment", "web")
        eventually(lambda: not names(kubectl, "deployments,replicasets,pods"))

    def test_foreground_waits_for_what_belongs_to_it(self, kubectl: Kubectl) -> None:
        self.deployed(kubectl)
        kubectl("delete", "deployment", "web", "--cascade=foreground")
        assert not names(kubectl, "deployments,replicasets,pods")

    @pytest.mark.parametrize("kind", ["deployment", "replicaset"])
    def test_orphans_stay_and_are_adopted(self, kubectl: Kubectl, kind: str) -> None:
        self.deployed(kubectl)
        pods = names(kubectl, "pods")
        uids = ("get", "replicasets", "-o", "jsonpath={.items[*].metadata.uid}")
        before = kubectl(*uids)
        # The Deployment makes a set of the same name at once. A kubectl that waits looks twice, and
        # may wait for the end of the new one.
        kubectl("delete", kind, "-l", "app=web", "--cascade=orphan", f"--wait={WAITS[kind]}")
        if kind == "replicaset":
            eventually(lambda: kubectl(*uids) not in ("", before))
        else:
            owners = "jsonpath={.items[*].metadata.ownerReferences}"
            eventually(lambda: not kubectl("get", "replicasets", "-o", owners).strip())
            apply(kubectl, self.web())
        kubectl("rollout", "status", "deployment/web", TIMEOUT)
        assert names(kubectl, "pods") == pods

    def web(self) -> JsonObject:
        made = workload("Deployment", "web", replicas=2)
        made["metadata"]["labels"] = {"app": "web"}
        return made

    def deployed(self, kubectl: Kubectl) -> None:
        apply(kubectl, self.web())
        kubectl("rollout", "status", "deployment/web", TIMEOUT)


class TestConditions:
    def test_what_can_be_waited_for(self, kubectl: Kubectl) -> None:
        apply(kubectl, workload("Deployment", "web", replicas=2))
        for what in (
            "condition=Available",
            "condition=Progressing",
            "jsonpath={.status.replicas}=2",
        ):
            kubectl("wait", "deployment/web", f"--for={what}", TIMEOUT)
        kubectl("wait", "nodes", "--all", "--for=condition=Ready", TIMEOUT)
        kubectl("wait", "pods", "-l", "app=web", "--for=condition=Ready", TIMEOUT)

    def test_an_outage_can_be_waited_for(self, kubectl: Kubectl) -> None:
        outage = {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "Outage",
            "metadata": {"name": "o"},
            "spec": {"what": "NodesSilent", "nodes": {}, "count": 1, "for": "1s"},
        }
        apply(kubectl, outage)
        kubectl("wait", "outage/o", "--for=jsonpath={.status.phase}=Ended", TIMEOUT)
        row = kubectl("get", "out", "o").splitlines()[1].split()
        assert row[:3] == ["o", "NodesSilent", "Ended"]
        assert "1 of 2 nodes are affected" in kubectl("describe", "outage", "o")


class TestDraining:
    def test_daemons_stay_and_others_go_elsewhere(self, kubectl: Kubectl) -> None:
        apply(kubectl, workload("DaemonSet", "agent"), workload("Deployment", "web", replicas=4))
        kubectl("rollout", "status", "deployment/web", TIMEOUT)
        kubectl("rollout", "status", "daemonset/agent", TIMEOUT)
        refused = kubectl("drain", "node-1", TIMEOUT, fails=True)
        assert "DaemonSet" in refused
        kubectl("drain", "node-1", "--ignore-daemonsets", TIMEOUT)
        on = (
            "--field-selector",
            "spec.nodeName=node-1",
            "-o",
            "jsonpath={.items[*].metadata.labels.app}",
        )
        eventually(lambda: kubectl("get", "pods", *on).split() == ["agent"])
        assert "SchedulingDisabled" in kubectl("get", "node", "node-1")
        kubectl("uncordon", "node-1")
        assert "SchedulingDisabled" not in kubectl("get", "node", "node-1")

    def test_pods_of_nobody_need_force(self, kubectl: Kubectl) -> None:
        kubectl("run", "lonely", "--image=i")
        kubectl("wait", "pod/lonely", "--for=condition=Ready", TIMEOUT)
        node = kubectl("get", "pod", "lonely", "-o", "jsonpath={.spec.nodeName}").strip()
        assert "use --force" in kubectl("drain", node, TIMEOUT, fails=True)
        kubectl("drain", node, "--force", TIMEOUT)
        assert not names(kubectl, "pods")


class TestAddresses:
    def test_pods_services_and_slices_show_them(self, kubectl: Kubectl) -> None:
        deployment = workload("Deployment", "web", replicas=2)
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }
        apply(kubectl, deployment, service)
        kubectl("rollout", "status", "deployment/web", TIMEOUT)
        wide = kubectl("get", "pods", "-l", "app=web", "-o", "wide", "--no-headers")
        found = sorted(line.split()[5] for line in wide.splitlines())
        assert len(set(found)) == 2
        assert all(each.startswith("10.128.") for each in found)
        eventually(lambda: all(f"{each}:8080" in endpoints_of(kubectl) for each in found))
        slices = kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web")
        assert all(each in slices for each in found)
        assert "172.16." in kubectl("get", "nodes", "-o", "wide")
        pod = names(kubectl, "pods", "-l", "app=web")[0]
        unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        kubectl("patch", pod, "--subresource=status", "-p", json.dumps(unready))
        path = "jsonpath={.subsets[*].notReadyAddresses[*].targetRef.name}"
        asked = ("get", "endpoints", "web", "-o", path)
        eventually(lambda: f"pod/{kubectl.run(*asked).stdout.strip()}" == pod)

    def test_a_pod_is_found_by_its_address(self, kubectl: Kubectl) -> None:
        apply(kubectl, workload("Deployment", "web", replicas=3))
        kubectl("rollout", "status", "deployment/web", TIMEOUT)
        pod = kubectl.json("get", "pods", "-l", "app=web")["items"][1]
        field = f"status.podIP={pod['status']['podIP']}"
        found = names(kubectl, "pods", "--field-selector", field)
        assert found == [f"pod/{pod['metadata']['name']}"]


def endpoints_of(kubectl: Kubectl) -> str:
    return kubectl("get", "endpoints", "web")
