"""The client libraries of Python: the official one, lightkube and kr8s."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kubescene.apiserver.server import Server

# The libraries leave sockets and loops to the garbage collector; that is not what is tested here.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CONTAINERS = [{"name": "c", "image": "pause"}]


class TestOfficialClient:
    @pytest.fixture
    def core(self, server: Server) -> Any:
        client = pytest.importorskip("kubernetes.client")
        configuration = client.Configuration()
        configuration.host = server.url
        with client.ApiClient(configuration) as connection:
            yield client.CoreV1Api(connection)

    def test_objects_are_typed(self, core: Any) -> None:
        nodes = core.list_node().items
        assert [node.metadata.name for node in nodes] == ["node-1", "node-2"]
        assert nodes[0].status.allocatable["cpu"] == "4"

    def test_create_read_patch_replace_delete(self, core: Any) -> None:
        body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
        created = core.create_namespaced_config_map("default", body)
        assert created.metadata.uid
        assert core.read_namespaced_config_map("a", "default").data == {"k": "v"}
        patched = core.patch_namespaced_config_map("a", "default", {"data": {"l": "w"}})
        assert patched.data == {"k": "v", "l": "w"}
        patched.data = {"only": "this"}
        assert core.replace_namespaced_config_map("a", "default", patched).data == patched.data
        assert core.delete_namespaced_config_map("a", "default").status == "Success"

    def test_errors_carry_the_status(self, core: Any) -> None:
        exceptions = pytest.importorskip("kubernetes.client.exceptions")
        with pytest.raises(exceptions.ApiException) as refused:
            core.read_namespaced_pod("nope", "default")
        assert refused.value.status == 404
        assert 'pods \\"nope\\" not found' in refused.value.body

    def test_watch_follows_a_pod_until_it_runs(self, core: Any) -> None:
        watch = pytest.importorskip("kubernetes.watch").Watch()
        pod = {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}}
        core.create_namespaced_pod("default", pod)
        for event in watch.stream(core.list_namespaced_pod, "default", timeout_seconds=20):
            if event["object"].status.phase == "Running":
                watch.stop()
        assert core.read_namespaced_pod("p", "default").spec.node_name in ("node-1", "node-2")

    def test_pages(self, core: Any) -> None:
        for number in range(5):
            core.create_namespaced_config_map("default", {"metadata": {"name": f"c{number}"}})
        names, token = [], None
        while token != "":
            page = core.list_namespaced_config_map("default", limit=2, _continue=token or "")
            names += [item.metadata.name for item in page.items]
            token = page.metadata._continue or ""
        assert names[:5] == [f"c{number}" for number in range(5)]

    def test_dynamic_client_discovers_the_api(self, core: Any) -> None:
        dynamic = pytest.importorskip("kubernetes.dynamic")
        client = dynamic.DynamicClient(core.api_client)
        deployments = client.resources.get(api_version="apps/v1", kind="Deployment")
        spec = {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}},
        }
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
        deployments.create(body={**body, "spec": spec}, namespace="default")
        assert deployments.get(name="d", namespace="default").spec.replicas == 1

    def test_eviction_and_scale(self, core: Any) -> None:
        pod = {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}}
        core.create_namespaced_pod("default", pod)
        core.create_namespaced_pod_eviction("p", "default", {"metadata": {"name": "p"}})
        client = pytest.importorskip("kubernetes.client")
        apps = client.AppsV1Api(core.api_client)
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        apps.create_namespaced_replica_set("default", {"metadata": {"name": "r"}, "spec": spec})
        scale = apps.patch_namespaced_replica_set_scale("r", "default", {"spec": {"replicas": 2}})
        assert scale.spec.replicas == 2


class TestLightkube:
    @pytest.fixture
    def client(self, kubeconfig: Path) -> Any:
        lightkube = pytest.importorskip("lightkube")
        config = pytest.importorskip("lightkube.config.kubeconfig").KubeConfig
        return lightkube.Client(config=config.from_file(kubeconfig).get())

    def test_create_patch_list_delete(self, client: Any) -> None:
        core = pytest.importorskip("lightkube.resources.core_v1")
        meta = pytest.importorskip("lightkube.models.meta_v1")
        made = core.ConfigMap(
            metadata=meta.ObjectMeta(name="a", labels={"x": "y"}), data={"k": "v"}
        )
        assert client.create(made).metadata.uid
        assert client.patch(core.ConfigMap, "a", {"data": {"l": "w"}}).data == {"k": "v", "l": "w"}
        found = list(client.list(core.ConfigMap, labels={"x": "y"}))
        assert [each.metadata.name for each in found] == ["a"]
        client.delete(core.ConfigMap, "a")
        error = pytest.importorskip("lightkube").ApiError
        with pytest.raises(error) as refused:
            client.get(core.ConfigMap, "a")
        assert refused.value.status.reason == "NotFound"

    def test_watch_and_wait(self, client: Any) -> None:
        core = pytest.importorskip("lightkube.resources.core_v1")
        pod = core.Pod.from_dict({"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}})
        client.create(pod)
        ready = client.wait(core.Pod, "p", for_conditions=["Ready"])
        assert ready.status.phase == "Running"
        events = islice(client.watch(core.Node), 2)
        assert [kind for kind, _ in events] == ["ADDED", "ADDED"]

    def test_scale_by_subresource(self, client: Any) -> None:
        apps = pytest.importorskip("lightkube.resources.apps_v1")
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        body = {"metadata": {"name": "d", "namespace": "default"}, "spec": spec}
        client.create(apps.Deployment.from_dict(body))
        scale = apps.DeploymentScale.from_dict(
            {"metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 3}}
        )
        client.replace(scale)
        assert client.get(apps.Deployment, "d").spec.replicas == 3


class TestKr8s:
    @pytest.fixture
    def api(self, kubeconfig: Path) -> Any:
        kr8s = pytest.importorskip("kr8s")
        return kr8s.api(kubeconfig=str(kubeconfig))

    def test_lists_and_version(self, api: Any) -> None:
        assert [node.name for node in api.get("nodes")] == ["node-1", "node-2"]
        assert api.version()["major"] == "1"

    def test_object_lives(self, api: Any) -> None:
        objects = pytest.importorskip("kr8s.objects")
        body = {"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}}
        made = objects.ConfigMap(body, api=api)
        made.create()
        made.patch({"data": {"l": "w"}})
        made.label(x="y")
        assert dict(made.data) == {"k": "v", "l": "w"}
        assert dict(made.labels) == {"x": "y"}
        made.delete()
        assert not made.exists()

    def test_pod_becomes_ready(self, api: Any) -> None:
        objects = pytest.importorskip("kr8s.objects")
        body = {
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": CONTAINERS},
        }
        pod = objects.Pod(body, api=api)
        pod.create()
        pod.wait("condition=Ready", timeout=20)
        assert pod.ready()
