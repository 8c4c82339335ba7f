"""What people do with kubectl, and what it prints."""

import json
import re
from pathlib import Path

import pytest
import yaml

from conformance.kubectl import Kubectl
from kubescene.apiserver.server import Server
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.testing import make_pod

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: main, image: nginx, resources: {requests: {cpu: 100m}}}
"""
BINDING = """
apiVersion: v1
kind: Binding
metadata: {name: web}
target: {apiVersion: v1, kind: Node, name: node-2}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: COLOUR}
"""
REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: main, image: nginx}]}
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Schedule, type: string, jsonPath: .spec.schedule}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [schedule]
            properties:
              schedule: {type: string, description: When it runs.}
              replicas: {type: integer, minimum: 1, default: 1}
          status: {type: object, properties: {replicas: {type: integer}}}
"""
CRON_TAB = """
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: nightly}
spec: {schedule: 0 3 * * *}
"""


def config(colour: str) -> str:
    return CONFIG.replace("COLOUR", colour)


def rows(table: str) -> list[list[str]]:
    """The cells of a printed table, its heading left out."""
    return [re.split(r"\s{2,}", line.strip()) for line in table.strip().splitlines()[1:]]


def run_pod(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=100s")


def test_everyday_work(any_kubectl: Kubectl) -> None:
    """The short battery, for every kubectl there is."""
    kubectl = any_kubectl
    assert "node-1   Ready" in kubectl("get", "nodes")
    assert kubectl("create", "configmap", "a", "--from-literal=k=v") == "configmap/a created\n"
    assert kubectl("apply", "-f", "-", stdin=POD + "---" + config("red")).split("\n")[:2] == [
        "pod/web created",
        "configmap/settings created",
    ]
    assert "configured" in kubectl("apply", "-f", "-", stdin=config("blue"))
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data.colour}") == "blue"
    assert "met" in kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=100s")
    assert rows(kubectl("get", "pods"))[0][:3] == ["web", "1/1", "Running"]
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "FIELD: nodeName <string>" in kubectl("explain", "pod.spec.nodeName")
    assert "unknown field" in kubectl(
        "create", "-f", "-", stdin=config("red").replace("data:", "dataa:"), fails=True
    )
    assert "node/node-1 cordoned" in kubectl("cordon", "node-1")
    assert 'pod "web"' in kubectl("delete", "pod", "web")
    assert "No resources found" in kubectl("get", "pods")


def test_bind_a_pod_by_hand(any_kubectl: Kubectl) -> None:
    """A Binding cannot be patched, so kubectl looks for its fields in OpenAPI v2."""
    kubectl = any_kubectl
    by_hand = POD.replace("spec:", "spec:\n  schedulerName: nobody")
    assert kubectl("create", "-f", "-", stdin=by_hand) == "pod/web created\n"
    wrong = BINDING.replace("target:", "aim:")
    refused = kubectl("create", "-f", "-", stdin=wrong, fails=True)
    assert 'unknown field "aim" in io.k8s.api.core.v1.Binding' in refused
    kubectl("create", "-f", "-", stdin=BINDING)
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=100s")
    assert kubectl("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}") == "node-2"


class TestGet:
    def test_wide_shows_more_columns(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        narrow, wide = kubectl("get", "pods"), kubectl("get", "pods", "-o", "wide")
        assert "NODE" not in narrow
        assert "NODE" in wide
        assert re.search(r"node-[12]", wide)

    def test_yaml_is_the_whole_object(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        shown = yaml.safe_load(kubectl("get", "pod", "web", "-o", "yaml"))
        assert shown["spec"]["schedulerName"] == "default-scheduler"
        assert shown["status"]["phase"] == "Running"
        listed = yaml.safe_load(kubectl("get", "pods", "-o", "yaml"))
        assert [item["metadata"]["name"] for item in listed["items"]] == ["web"]

    def test_selectors_and_sorting(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=POD + "---" + REPLICA_SET)
        assert [row[0] for row in rows(kubectl("get", "pods", "-l", "app=web"))] == ["web"]
        sort = kubectl("get", "pods", "--sort-by=.metadata.name", "--no-headers")
        names = [line.split()[0] for line in sort.splitlines()]
        assert names == sorted(names)
        assert len(names) == 3
        nothing = kubectl("get", "pods", "--field-selector", "spec.nodeName=node-9")
        assert nothing == "No resources found in default namespace.\n"

    def test_several_kinds_at_once(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=REPLICA_SET)
        output = kubectl("get", "nodes,rs,namespaces")
        assert "node/node-1" in output
        assert "replicaset.apps/shop" in output
        assert "namespace/kube-system" in output

    def test_pages_are_put_together(self, kubectl: Kubectl) -> None:
        for number in range(5):
            kubectl("create", "configmap", f"c{number}", "--from-literal=k=v")
        listed = kubectl("get", "cm", "--chunk-size=2", "--no-headers")
        assert [line.split()[0] for line in listed.splitlines()][:5] == [f"c{n}" for n in range(5)]

    def test_watch_prints_each_change(self, kubectl: Kubectl) -> None:
        kubectl("create", "configmap", "first", "--from-literal=k=v")
        others = "metadata.name!=kube-root-ca.crt"
        watch = kubectl.start("get", "configmaps", "-w", "--no-headers", "--field-selector", others)
        assert watch.stdout is not None
        try:
            assert watch.stdout.readline().split()[:2] == ["first", "1"]
            kubectl("create", "configmap", "second", "--from-literal=a=b", "--from-literal=c=d")
            assert watch.stdout.readline().split()[:2] == ["second", "2"]
            kubectl("delete", "configmap", "second")
            assert watch.stdout.readline().split()[:2] == ["second", "2"]
        finally:
            watch.terminate()
            watch.communicate()

    def test_what_does_not_exist(self, kubectl: Kubectl) -> None:
        assert 'pods "x" not found' in kubectl("get", "pod", "x", fails=True)
        assert "doesn't have a resource type" in kubectl("get", "unicorns", fails=True)


class TestApply:
    def test_apply_creates_then_leaves_then_changes(self, kubectl: Kubectl) -> None:
        assert kubectl("apply", "-f", "-", stdin=config("red")) == "configmap/settings created\n"
        assert "unchanged" in kubectl("apply", "-f", "-", stdin=config("red"))
        assert "configured" in kubectl("apply", "-f", "-", stdin=config("blue"))
        assert kubectl.json("get", "cm", "settings")["data"] == {"colour": "blue"}

    def test_apply_removes_what_is_no_longer_there(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=config("red") + "  # more\n")
        kubectl("apply", "-f", "-", stdin=config("red").replace("{colour: red}", "{size: big}"))
        assert kubectl.json("get", "cm", "settings")["data"] == {"size": "big"}

    def test_server_side_apply_owns_what_it_sets(self, kubectl: Kubectl) -> None:
        apply = ("apply", "--server-side", "-f", "-")
        assert "serverside-applied" in kubectl(*apply, stdin=config("red"))
        kubectl("patch", "cm", "settings", "-p", '{"data": {"colour": "green"}}')
        refused = kubectl(*apply, stdin=config("blue"), fails=True)
        assert "Apply failed with 1 conflict" in refused
        assert ".data.colour" in refused
        kubectl(*apply, "--force-conflicts", stdin=config("blue"))
        assert kubectl.json("get", "cm", "settings")["data"] == {"colour": "blue"}

    def test_replica_set_grows_and_shrinks(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=REPLICA_SET)
        kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "rs/shop", "--timeout=100s")
        assert kubectl("scale", "rs/shop", "--replicas=4") == "replicaset.apps/shop scaled\n"
        kubectl("wait", "--for=jsonpath={.status.readyReplicas}=4", "rs/shop", "--timeout=100s")
        assert rows(kubectl("get", "rs"))[0][:4] == ["shop", "4", "4", "4"]

    def test_diff_shows_the_change_and_makes_none(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=config("red"))
        assert kubectl("diff", "-f", "-", stdin=config("red")) == ""
        output = kubectl("diff", "-f", "-", stdin=config("blue"), fails=True)
        assert "-  colour: red" in output
        assert "+  colour: blue" in output
        assert "resourceVersion" not in re.sub(r"(?m)^ .*$", "", output)
        assert kubectl.json("get", "cm", "settings")["data"] == {"colour": "red"}

    def test_replace_keeps_the_identity(self, kubectl: Kubectl) -> None:
        kubectl("create", "-f", "-", stdin=config("red"))
        uid = kubectl.json("get", "cm", "settings")["metadata"]["uid"]
        assert "replaced" in kubectl("replace", "-f", "-", stdin=config("blue"))
        replaced = kubectl.json("get", "cm", "settings")
        assert (replaced["metadata"]["uid"], replaced["data"]) == (uid, {"colour": "blue"})

    def test_dry_run_on_the_server(self, kubectl: Kubectl) -> None:
        output = kubectl("create", "-f", "-", "--dry-run=server", stdin=config("red"))
        assert output == "configmap/settings created (server dry run)\n"
        assert "not found" in kubectl("get", "cm", "settings", fails=True)

    def test_invalid_objects_are_explained(self, kubectl: Kubectl) -> None:
        output = kubectl("apply", "-f", "-", stdin=POD.replace("main", "Main!"), fails=True)
        assert 'The Pod "web" is invalid: spec.containers[0].name: Invalid value: "Main!"' in output


class TestChange:
    def test_three_kinds_of_patch(self, kubectl: Kubectl) -> None:
        kubectl("create", "-f", "-", stdin=config("red"))
        kubectl("patch", "cm", "settings", "-p", '{"data":{"a":"1"}}')
        kubectl("patch", "cm", "settings", "--type=merge", "-p", '{"data":{"colour":null}}')
        operation = '[{"op":"add","path":"/data/b","value":"2"}]'
        assert "patched" in kubectl("patch", "cm", "settings", "--type=json", "-p", operation)
        assert kubectl.json("get", "cm", "settings")["data"] == {"a": "1", "b": "2"}

    def test_labels_and_annotations(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        assert kubectl("label", "pod", "web", "tier=front") == "pod/web labeled\n"
        assert kubectl("annotate", "pod", "web", "note=hello") == "pod/web annotated\n"
        assert "unlabeled" in kubectl("label", "pod", "web", "app-")
        metadata = kubectl.json("get", "pod", "web")["metadata"]
        assert metadata["labels"] == {"tier": "front"}
        assert metadata["annotations"]["note"] == "hello"

    def test_image_of_a_template(self, kubectl: Kubectl) -> None:
        kubectl("create", "deployment", "site", "--image=nginx:1")
        assert "image updated" in kubectl("set", "image", "deployment/site", "nginx=nginx:2")
        spec = kubectl.json("get", "deployment", "site")["spec"]["template"]["spec"]
        assert spec["containers"][0]["image"] == "nginx:2"

    def test_status_by_subresource(self, kubectl: Kubectl) -> None:
        patch = json.dumps({"status": {"capacity": {"example.com/gpu": "2"}}})
        kubectl("patch", "node", "node-1", "--subresource=status", "--type=merge", "-p", patch)
        capacity = kubectl.json("get", "node", "node-1")["status"]["capacity"]
        assert capacity["example.com/gpu"] == "2"


class TestRollout:
    def test_status(self, kubectl: Kubectl) -> None:
        kubectl("create", "deployment", "site", "--image=nginx:1", "--replicas=3")
        assert "successfully rolled out" in rolled_out(kubectl)
        assert rows(kubectl("get", "deployments"))[0][:4] == ["site", "3/3", "3", "3"]

    def test_history_and_undo(self, kubectl: Kubectl) -> None:
        kubectl("create", "deployment", "site", "--image=nginx:1", "--replicas=3")
        rolled_out(kubectl)
        kubectl("set", "image", "deployment/site", "nginx=nginx:2")
        rolled_out(kubectl)
        assert revisions(kubectl) == ["1", "2"]
        assert "rolled back" in kubectl("rollout", "undo", "deployment/site")
        rolled_out(kubectl)
        assert revisions(kubectl) == ["2", "3"]
        spec = kubectl.json("get", "deployment", "site")["spec"]["template"]["spec"]
        assert spec["containers"][0]["image"] == "nginx:1"

    def test_pause_and_resume(self, kubectl: Kubectl) -> None:
        kubectl("create", "deployment", "site", "--image=nginx:1")
        rolled_out(kubectl)
        kubectl("rollout", "pause", "deployment/site")
        kubectl("set", "image", "deployment/site", "nginx=nginx:2")
        kubectl("wait", "--for=jsonpath={.status.observedGeneration}=3", "deployment/site")
        assert len(rows(kubectl("get", "replicasets"))) == 1
        kubectl("rollout", "resume", "deployment/site")
        rolled_out(kubectl)
        assert len(rows(kubectl("get", "replicasets"))) == 2

    def test_restart_and_scale(self, kubectl: Kubectl) -> None:
        kubectl("create", "deployment", "site", "--image=nginx:1")
        rolled_out(kubectl)
        assert "restarted" in kubectl("rollout", "restart", "deployment/site")
        rolled_out(kubectl)
        kubectl("scale", "deployment/site", "--replicas=4")
        rolled_out(kubectl)
        sizes = sorted(row[1] for row in rows(kubectl("get", "replicasets")))
        assert sizes == ["0", "4"]


def rolled_out(kubectl: Kubectl) -> str:
    """Wait until the Deployment is there."""
    return kubectl("rollout", "status", "deployment/site", "--timeout=100s")


def revisions(kubectl: Kubectl) -> list[str]:
    history = kubectl("rollout", "history", "deployment/site").splitlines()
    return [line.split()[0] for line in history[2:] if line.strip()]


class TestDelete:
    def test_deleted_pod_is_gone(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        assert 'pod "web"' in kubectl("delete", "pod", "web")
        assert "not found" in kubectl("get", "pod", "web", fails=True)

    def test_delete_by_label_and_all(self, kubectl: Kubectl) -> None:
        for name in ("a", "b", "c"):
            kubectl("create", "configmap", name, "--from-literal=k=v")
        kubectl("label", "cm", "a", "old=yes")
        assert kubectl("delete", "cm", "-l", "old=yes").count("deleted") == 1
        kubectl("delete", "cm", "--all")
        assert "settings" not in kubectl("get", "cm")

    def test_wait_for_deletion(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        kubectl("delete", "pod", "web", "--wait=false")
        kubectl("wait", "--for=delete", "pod/web", "--timeout=100s")

    def test_namespace_takes_its_content_along(self, kubectl: Kubectl) -> None:
        kubectl("create", "namespace", "team")
        kubectl("-n", "team", "create", "configmap", "a", "--from-literal=k=v")
        assert 'namespace "team" deleted' in kubectl("delete", "namespace", "team")
        assert "team" not in kubectl("get", "namespaces")


class TestDescribe:
    def test_pod(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        output = kubectl("describe", "pod", "web")
        assert re.search(r"Node: +node-[12]/", output)
        assert re.search(r"Status: +Running", output)
        assert re.search(r"cpu: +100m", output)

    def test_node(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        node = kubectl.json("get", "pod", "web")["spec"]["nodeName"]
        output = kubectl("describe", "node", node)
        assert "KubeletReady" in output
        assert re.search(r"default +web +100m \(2%\)", output)

    def test_explain_and_resources(self, kubectl: Kubectl) -> None:
        assert "required" in kubectl("explain", "pod.spec.containers")
        assert "FIELD: replicas <integer>" in kubectl("explain", "deployment.spec.replicas")
        listed = kubectl("api-resources")
        assert re.search(r"pods +po +v1 +true +Pod", listed)
        assert re.search(r"deployments +deploy +apps/v1 +true +Deployment", listed)
        versions = kubectl("api-versions").split()
        assert {"v1", "apps/v1", "autoscaling/v2"} <= set(versions)

    def test_logs_are_empty(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        assert kubectl("logs", "web") == ""

    def test_logs_are_what_the_behaviour_says(self, kubectl: Kubectl) -> None:
        said = {"kubescene.dev/logs": "[{text: ready}, {after: 1s, text: done}]"}
        pod = make_pod("writer").cpu("1").build()
        pod["metadata"]["annotations"] = {**said, "kubescene.dev/run-time": "2s"}
        pod["spec"]["restartPolicy"] = "Never"
        kubectl("apply", "-f", "-", stdin=json.dumps(pod))
        kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/writer", "--timeout=120s")
        assert kubectl("logs", "-f", "writer") == "ready\ndone\n"
        assert kubectl("logs", "--tail=1", "writer") == "done\n"
        told = kubectl("logs", "-p", "writer", fails=True)
        assert 'previous terminated container "main" in pod "writer" not found' in told


class TestEvents:
    def test_describe_tells_the_life_of_a_pod(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        described = kubectl("describe", "pod", "web")
        told = [row[:4] for row in rows(described.partition("Events:\n")[2])[1:]]
        assert [(row[1], row[3]) for row in told] == [
            ("Scheduled", "default-scheduler"),
            ("Pulled", "kubelet"),
            ("Created", "kubelet"),
            ("Started", "kubelet"),
        ]
        assert "Successfully assigned default/web to node-" in described
        assert 'Container image "nginx" already present on machine' in described

    def test_why_a_pod_is_pending(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=POD.replace("100m", "100"))
        kubectl("wait", "--for=jsonpath={.status.conditions[0].reason}=Unschedulable", "pod/web")
        told = kubectl("get", "events", "--field-selector", "reason=FailedScheduling")
        assert re.search(r"Warning +FailedScheduling +pod/web +0/2 nodes are available", told)
        assert "FailedScheduling" in kubectl("events", "--for", "pod/web", "--types=Warning")

    def test_what_a_deployment_did(self, kubectl: Kubectl) -> None:
        kubectl("create", "deployment", "shop", "--image=nginx", "--replicas=2")
        kubectl("rollout", "status", "deployment/shop", "--timeout=100s")
        described = kubectl("describe", "deployment", "shop")
        assert re.search(
            r"ScalingReplicaSet .*Scaled up replica set shop-\w+ from 0 to 2", described
        )
        assert "SuccessfulCreate" in kubectl("get", "events")


class TestNodes:
    def test_cordon_and_uncordon(self, kubectl: Kubectl) -> None:
        assert kubectl("cordon", "node-1") == "node/node-1 cordoned\n"
        assert rows(kubectl("get", "nodes"))[0][:2] == ["node-1", "Ready,SchedulingDisabled"]
        assert kubectl("uncordon", "node-1") == "node/node-1 uncordoned\n"
        assert rows(kubectl("get", "nodes"))[0][:2] == ["node-1", "Ready"]

    def test_taint_keeps_pods_away(self, kubectl: Kubectl) -> None:
        kubectl("taint", "node", "node-1", "gpu=yes:NoSchedule")
        run_pod(kubectl)
        assert kubectl.json("get", "pod", "web")["spec"]["nodeName"] == "node-2"
        assert "untainted" in kubectl("taint", "node", "node-1", "gpu-")

    def test_drain_moves_pods(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=REPLICA_SET)
        kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "rs/shop", "--timeout=100s")
        assert "node/node-1 drained" in kubectl("drain", "node-1", "--timeout=100s")
        kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "rs/shop", "--timeout=100s")
        pods = kubectl.json("get", "pods")["items"]
        assert {pod["spec"]["nodeName"] for pod in pods} == {"node-2"}

    def test_drain_waits_for_the_budget(self, kubectl: Kubectl) -> None:
        """Two pods on one node, one of which has to stay: they go one after the other."""
        kubectl("cordon", "node-2")
        kubectl("apply", "-f", "-", stdin=REPLICA_SET)
        kubectl("create", "pdb", "shop", "--selector=app=shop", "--min-available=1")
        kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/shop")
        kubectl("uncordon", "node-2")
        drained = kubectl("drain", "node-1", "--timeout=100s")
        assert "node/node-1 drained" in drained
        assert drained.count("evicting pod default/shop-") >= 2
        kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "rs/shop", "--timeout=100s")
        assert "node-1" not in kubectl("get", "pods", "-o", "wide")

    def test_drain_gives_up_when_the_budget_never_allows(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=1")
        kubectl("wait", "--for=jsonpath={.status.currentHealthy}=1", "pdb/web")
        node = kubectl.json("get", "pod", "web")["spec"]["nodeName"]
        refused = kubectl("drain", node, "--force", "--timeout=2s", fails=True)
        assert "Cannot evict pod as it would violate the pod's disruption budget" in refused


class TestRunningPods:
    def test_resize(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        containers = [{"name": "main", "resources": {"requests": {"cpu": "300m"}}}]
        patch = json.dumps({"spec": {"containers": containers}})
        assert "patched" in kubectl("patch", "pod", "web", "--subresource=resize", "-p", patch)
        path = "{.status.containerStatuses[0].allocatedResources.cpu}"
        kubectl("wait", f"--for=jsonpath={path}=300m", "pod/web", "--timeout=100s")
        assert "cpu:  300m" in re.sub(" +", "  ", kubectl("describe", "pod", "web"))

    def test_debug(self, kubectl: Kubectl) -> None:
        run_pod(kubectl)
        kubectl("debug", "web", "--image=busybox", "--container=shell", "--attach=false")
        path = "{.status.ephemeralContainerStatuses[0].state.running.startedAt}"
        assert kubectl("wait", f"--for=jsonpath={path}", "pod/web", "--timeout=100s")
        assert "shell:" in kubectl("describe", "pod", "web")


class TestGenerators:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("namespace", "n"),
            ("secret", "generic", "s", "--from-literal=k=v"),
            ("deployment", "d", "--image=nginx"),
            ("service", "clusterip", "c", "--tcp=80"),
            ("job", "j", "--image=busybox"),
            ("cronjob", "c", "--image=busybox", "--schedule=0 0 * * *"),
            ("role", "r", "--verb=get", "--resource=pods"),
            ("rolebinding", "b", "--role=r", "--user=u"),
            ("quota", "q", "--hard=pods=5"),
            ("serviceaccount", "a"),
            ("priorityclass", "p", "--value=5"),
            ("poddisruptionbudget", "p", "--selector=a=b", "--min-available=1"),
            ("ingress", "i", "--rule=host/path=svc:80"),
        ],
        ids=lambda arguments: arguments[0],
    )
    def test_typed_objects_are_created(self, kubectl: Kubectl, arguments: tuple[str, ...]) -> None:
        assert kubectl("create", *arguments).endswith(" created\n")
        name = next(a for a in arguments[1:] if a not in ("generic", "clusterip"))
        assert kubectl("get", arguments[0], name, "-o", "name").strip().endswith(f"/{name}")

    def test_autoscaler_by_command(self, kubectl: Kubectl) -> None:
        kubectl("create", "deployment", "d", "--image=nginx")
        kubectl("autoscale", "deployment", "d", "--max=5", "--cpu-percent=60")
        spec = kubectl.json("get", "hpa", "d")["spec"]
        assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 60


class TestCustomResources:
    def test_kind_comes_works_and_goes(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=DEFINITION)
        kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com")
        assert "created" in kubectl("apply", "-f", "-", stdin=CRON_TAB)
        assert "unchanged" in kubectl("apply", "-f", "-", stdin=CRON_TAB)
        assert rows(kubectl("get", "ct"))[0] == ["nightly", "0 3 * * *"]
        assert "scaled" in kubectl("scale", "ct/nightly", "--replicas=3")
        assert kubectl.json("get", "ct", "nightly")["spec"]["replicas"] == 3
        assert "When it runs." in kubectl("explain", "crontab.spec.schedule")
        explain_v2 = ("explain", "--output=plaintext-openapiv2")
        assert "When it runs." in kubectl(*explain_v2, "crontab.spec.schedule")
        kubectl("delete", "crd", "crontabs.stable.example.com")
        gone = kubectl("get", "crontabs", fails=True)
        assert "resource type" in gone or "could not find the requested resource" in gone

    def test_schema_is_enforced(self, kubectl: Kubectl) -> None:
        kubectl("apply", "-f", "-", stdin=DEFINITION)
        wrong = CRON_TAB.replace("schedule: 0 3 * * *", "replicas: 0")
        output = kubectl("apply", "-f", "-", stdin=wrong, fails=True)
        assert "spec.schedule: Required value" in output
        assert "spec.replicas" in output


def test_identity_of_a_kubeconfig(kubectl: Kubectl, server: Server, tmp_path: Path) -> None:
    alice = tmp_path / "alice.yaml"
    alice.write_text(yaml.safe_dump(make_kubeconfig(server.url, as_user="alice")))
    output = kubectl.towards(alice, tmp_path / "cache")("auth", "whoami")
    assert re.search(r"Username +alice", output)
    assert "created" in kubectl.towards(alice, tmp_path / "cache")(
        "create", "-f", "-", stdin=config("red")
    )
