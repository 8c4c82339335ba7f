"""A kopf operator: discovers, lists, watches, patches, with handlers that really run."""

import threading
from pathlib import Path
from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.apiserver.server import Server

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gardens.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gardens", "singular": "garden", "kind": "Garden"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
GARDEN: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Garden",
    "metadata": {"name": "roses", "namespace": "default"},
    "spec": {"colour": "red"},
}


def test_operator_handles_its_resource(
    server: Server, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kopf = pytest.importorskip("kopf")
    testing = pytest.importorskip("kopf.testing")
    del testing
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    registry = kopf.OperatorRegistry()
    created, changed, deleted = threading.Event(), threading.Event(), threading.Event()

    @kopf.on.startup(registry=registry)  # type: ignore[untyped-decorator]  # kopf is not typed here
    def configure(settings: Any, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = False

    @kopf.on.create("gardens.example.com", registry=registry)  # type: ignore[untyped-decorator]
    def create(spec: Any, patch: Any, **_: Any) -> dict[str, str]:
        patch.status["planted"] = spec["colour"]
        created.set()
        return {"done": "yes"}

    @kopf.on.field("gardens.example.com", field="spec.colour", registry=registry)  # type: ignore[untyped-decorator]
    def repaint(new: Any, **_: Any) -> None:
        if new == "blue":
            changed.set()

    @kopf.on.delete("gardens.example.com", registry=registry)  # type: ignore[untyped-decorator]
    def remove(**_: Any) -> None:
        deleted.set()

    client = server.cluster.client(Actor("gardener"))
    server.engine.call(lambda: client.create(DEFINITION))
    stop, ready = threading.Event(), threading.Event()
    operator = threading.Thread(
        target=kopf.run,
        kwargs={
            "registry": registry,
            "standalone": True,
            "namespaces": ["default"],
            "stop_flag": stop,
            "ready_flag": ready,
        },
    )
    operator.start()
    try:
        assert ready.wait(20)
        server.engine.call(lambda: client.create(GARDEN))
        assert created.wait(20)
        path = "example.com/v1", "Garden"
        assert wait_for(server, path, lambda obj: obj["status"]["planted"] == "red")
        update(server, path, {"colour": "blue"})
        assert changed.wait(20)
        remove_object(server, path)
        assert deleted.wait(20)
    finally:
        stop.set()
        operator.join(20)
    assert not operator.is_alive()


def wait_for(server: Server, kind: tuple[str, str], condition: Any) -> bool:
    """Whether the garden comes to meet the condition."""
    pause = threading.Event()
    for _ in range(200):
        try:
            if condition(find(server, kind)):
                return True
        except KeyError:
            pass
        pause.wait(0.05)
    return False


def find(server: Server, kind: tuple[str, str]) -> Any:
    resource_type = server.cluster.scheme.of_kind(*kind)
    return server.cluster.registry.record(resource_type, "default", "roses").decode()


def update(server: Server, kind: tuple[str, str], spec: Any) -> None:
    from kubescene.client import ObjectRef

    client = server.cluster.client(Actor("gardener"))
    ref = ObjectRef(server.cluster.scheme.of_kind(*kind).gvk, "roses", "default")
    server.engine.call(lambda: client.patch(ref, {"spec": spec}))


def remove_object(server: Server, kind: tuple[str, str]) -> None:
    from kubescene.client import ObjectRef

    client = server.cluster.client(Actor("gardener"))
    ref = ObjectRef(server.cluster.scheme.of_kind(*kind).gvk, "roses", "default")
    server.engine.call(lambda: client.delete(ref))
