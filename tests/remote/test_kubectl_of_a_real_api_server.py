"""People with kubectl at a real API server, where a controller plays their scenarios."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml

from conformance.kubectl import MISSING, Kubectl, find_kubectls
from kubescene.remote.webhook.certificates import make_certificate
from kubescene.testing import make_node, make_pod
from remote.api_servers import RealServer, make_disposable
from remote.players import Stage, staged

pytestmark = pytest.mark.xdist_group("real-api-server")

MANIFEST = Path(__file__).parents[2] / "deploy" / "kubescene.yaml"


@pytest.fixture
def stage(real_server: RealServer, tmp_path: Path) -> Iterator[Stage]:
    make_disposable(real_server)
    with staged(real_server, tmp_path / "out") as found:
        found.player.admit_by(make_certificate("127.0.0.1"), "127.0.0.1", 0)
        yield found


@pytest.fixture
def kubectl(real_server: RealServer, tmp_path: Path) -> Kubectl:
    if not (found := find_kubectls()):
        pytest.skip(MISSING)
    return found[0].towards(real_server.outsider, tmp_path)


def walk() -> str:
    objects = (make_node("n1").cpu("4").build(), make_pod("a").cpu("1").build())
    creations = [{"step": 1, "createOperation": {"object": obj}} for obj in objects]
    return orjson.dumps(
        {
            "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
            "kind": "Scenario",
            "metadata": {"name": "walk"},
            "spec": {"operations": creations},
        }
    ).decode()


def test_a_scenario_from_create_to_delete(stage: Stage, kubectl: Kubectl) -> None:
    assert "OPERATION" in kubectl("explain", "scenario.spec.operations").upper()
    kubectl("create", "-f", "-", stdin=walk())
    stage.go_on("walk")
    header, row = kubectl("get", "scn").splitlines()
    assert header.split() == ["NAME", "PHASE", "STEP", "STEPPHASE", "CONTROLLER", "AGE"]
    assert row.split()[:4] == ["walk", "Paused", "1.1", "Finished"]
    refused = kubectl("delete", "pod", "a", fails=True)
    assert (
        'denied the request: pods "a" is forbidden: scenario "walk" is Paused, and somebody is not '
        "one of its controllers; wait until it ends or delete it"
    ) in refused
    operation = {"id": "late", "step": 1, "doneOperation": {}}
    late = [{"op": "add", "path": "/spec/operations/-", "value": operation}]
    said = kubectl("patch", "scn", "walk", "--type=json", "-p", orjson.dumps(late).decode())
    assert "Warning: operation 'late' is ignored: its step 1 has passed" in said
    kubectl("delete", "scn", "walk")
    while stage.player.scenarios.current is not None:
        stage.player.turn(0.2)
    kubectl("delete", "pod", "a", "--grace-period=0", "--force")


def test_the_manifest_of_a_server_in_a_container(kubectl: Kubectl) -> None:
    kubectl("create", "--validate=strict", "-f", str(MANIFEST))
    try:
        with MANIFEST.open(encoding="utf-8") as file:
            (deployment,) = [e for e in yaml.safe_load_all(file) if e["kind"] == "Deployment"]
        kubectl("-n", "kubescene", "create", "serviceaccount", "default")  # nobody else makes it
        template = deployment["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] |= {"name": "kubescene", "namespace": "kubescene"}
        create = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
        assert "Warning" not in kubectl(*create, stdin=orjson.dumps(pod).decode())
        pod["spec"]["securityContext"] = {}
        refused = kubectl(*create, stdin=orjson.dumps(pod).decode(), fails=True)
        assert 'violates PodSecurity "restricted:latest"' in refused
    finally:
        claim = ("-n", "kubescene", "patch", "pvc", "kubescene", "--type=merge", "-p")
        kubectl(*claim, '{"metadata": {"finalizers": null}}')  # no controller takes it back
        kubectl("delete", "--wait=false", "-f", str(MANIFEST))
        gone = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubescene"}}
        path = "/api/v1/namespaces/kubescene/finalize"  # no controller does it here
        kubectl("replace", "--raw", path, "-f", "-", stdin=orjson.dumps(gone).decode())
