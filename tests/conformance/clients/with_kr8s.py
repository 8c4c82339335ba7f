"""kr8s against the server that a kubeconfig names; see `official` for how it is run."""

import sys
from typing import Any

import kr8s
from kr8s.objects import ConfigMap, Pod


def check_lists_and_version(api: Any) -> None:
    assert [node.name for node in api.get("nodes")] == ["node-1", "node-2"]
    assert api.version()["major"] == "1"


def check_object_lives(api: Any) -> None:
    body = {"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}}
    made = ConfigMap(body, api=api)
    made.create()
    made.patch({"data": {"l": "w"}})
    made.label(x="y")
    assert dict(made.data) == {"k": "v", "l": "w"}
    assert dict(made.labels) == {"x": "y"}
    made.delete()
    assert not made.exists()


def check_pod_becomes_ready(api: Any) -> None:
    spec = {"containers": [{"name": "c", "image": "pause"}]}
    pod = Pod({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, api=api)
    pod.create()
    pod.wait("condition=Ready", timeout=120)
    assert pod.ready()


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            check(kr8s.api(kubeconfig=sys.argv[1]))
            print(name)
