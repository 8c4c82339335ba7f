"""Real clients against a real server: everything goes over sockets, nothing is stubbed.

The kubectl tests run once with the newest kubectl that is found; a shorter battery runs with each
of the others. Where there is none they are skipped, and say what to do.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from conformance.kubectl import MISSING, Kubectl, find_kubectls
from kubescene.actors import Actor
from kubescene.apiserver.server import Server
from kubescene.client.http.kubeconfigs import make_kubeconfig


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.conformance)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "any_kubectl" in metafunc.fixturenames:
        found = find_kubectls()
        values = found or [pytest.param(None, marks=pytest.mark.skip(reason=MISSING))]
        metafunc.parametrize("any_kubectl", values, ids=str, indirect=True)


@pytest.fixture
def server() -> Iterator[Server]:
    """A served cluster of two nodes whose controllers run."""
    with Server(port=0) as running:
        client = running.cluster.client(Actor("conformance"))
        for name in ("node-1", "node-2"):
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {
                    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"},
                    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"},
                },
            }
            running.engine.call(lambda node=node: client.create(node))  # type: ignore[misc]  # a default argument of a lambda
        yield running


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig.yaml"
    path.write_text(yaml.safe_dump(make_kubeconfig(server.url)))
    return path


@pytest.fixture
def kubectl(kubeconfig: Path, tmp_path: Path) -> Kubectl:
    """The newest kubectl, with a cache of its own."""
    found = find_kubectls()
    if not found:
        pytest.skip(MISSING)
    return found[0].towards(kubeconfig, tmp_path / "cache")


@pytest.fixture
def any_kubectl(request: pytest.FixtureRequest, kubeconfig: Path, tmp_path: Path) -> Kubectl:
    found: Kubectl = request.param
    return found.towards(kubeconfig, tmp_path / "cache")
