"""lightkube against the server that a kubeconfig names; see `official` for how it is run."""

import sys
from itertools import islice
from typing import Any

import pytest
from lightkube import ApiError, Client
from lightkube.config.kubeconfig import KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment, DeploymentScale
from lightkube.resources.core_v1 import ConfigMap, Node, Pod

CONTAINERS = [{"name": "c", "image": "pause"}]


def check_create_patch_list_delete(client: Any) -> None:
    made = ConfigMap(metadata=ObjectMeta(name="a", labels={"x": "y"}), data={"k": "v"})
    assert client.create(made).metadata.uid
    assert client.patch(ConfigMap, "a", {"data": {"l": "w"}}).data == {"k": "v", "l": "w"}
    found = list(client.list(ConfigMap, labels={"x": "y"}))
    assert [each.metadata.name for each in found] == ["a"]
    client.delete(ConfigMap, "a")
    with pytest.raises(ApiError) as refused:
        client.get(ConfigMap, "a")
    assert refused.value.status.reason == "NotFound"


def check_watch_and_wait(client: Any) -> None:
    body = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": CONTAINERS}}
    client.create(Pod.from_dict(body))
    assert client.wait(Pod, "p", for_conditions=["Ready"]).status.phase == "Running"
    assert [kind for kind, _ in islice(client.watch(Node), 2)] == ["ADDED", "ADDED"]


def check_scale(client: Any) -> None:
    metadata = {"name": "d", "namespace": "default"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    client.create(Deployment.from_dict({"metadata": metadata, "spec": spec}))
    client.replace(DeploymentScale.from_dict({"metadata": metadata, "spec": {"replicas": 3}}))
    assert client.get(Deployment, "d").spec.replicas == 3


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            check(Client(config=KubeConfig.from_file(sys.argv[1]).get()))
            print(name)
