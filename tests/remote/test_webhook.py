"""What the admission webhook lets pass, and how it is reached."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubescene.actors import ENGINE
from kubescene.api.scheme import GroupResource
from kubescene.cluster import ClusterWorld
from kubescene.errors import ConfigurationError
from kubescene.live import LiveScenarios
from kubescene.remote.link import Announcement, Link
from kubescene.remote.webhook.certificates import (
    Certificate,
    make_certificate,
    read_certificate,
)
from kubescene.remote.webhook.reviews import PROBE, AdmissionReviewer, answer
from kubescene.remote.webhook.server import MAX_BODY, Webhook, webhook_configuration
from kubescene.types import JsonObject

PODS = GroupResource("", "pods")
BIND = Announcement("bind", PODS, "default", "a", "binding")


class Doorway:
    """The ears of a link that nobody sends anything through."""

    def __init__(self) -> None:
        self.under_way: Announcement | None = None


class Door:
    """A judge in a world whose scenario ``mine`` is paused."""

    def __init__(self) -> None:
        cluster = ClusterWorld()
        scenarios = LiveScenarios(cluster)
        scenarios.begin()
        self.scenarios = scenarios
        cluster.registry.create(ENGINE, scenario())
        for _ in scenarios.moments() or ():
            pass
        self.link = Doorway()
        judge = AdmissionReviewer(
            scenarios, as_link(self.link), cluster.scheme, cluster.store, cluster.clock
        )
        judge.user = "kubescene"
        self.judge = judge

    def ask(self, **request: Any) -> JsonObject:
        given = {
            "uid": "1",
            "operation": "CREATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": "default",
            "name": "a",
            "userInfo": {"username": "somebody"},
        }
        review = answer(self.judge, {"request": {**given, **request}})
        response: JsonObject = review["response"]
        assert response["uid"] == "1"
        return response


def as_link(door: Any) -> Link:
    link: Link = door
    return link


def scenario() -> JsonObject:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    return {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "mine"},
        "spec": {"operations": [{"id": "n", "step": 1, "createOperation": {"object": node}}]},
    }


@pytest.fixture
def door() -> Door:
    return Door()


OWN = {"userInfo": {"username": "kubescene"}}
SERVER = {"userInfo": {"username": "system:apiserver"}}


def test_an_outsider_is_told_whose_world_it_is(door: Door) -> None:
    response = door.ask()
    assert response["allowed"] is False
    assert response["status"]["code"] == 403
    assert response["status"]["message"] == (
        'pods "a" is forbidden: scenario "mine" is Paused, and somebody is not one of its '
        "controllers; wait until it ends or delete it"
    )


@pytest.mark.parametrize(
    "request_",
    [
        {"dryRun": True},
        SERVER,
        {"resource": {"group": "coordination.k8s.io", "resource": "leases"}},
        {"resource": {"group": "", "resource": "events"}},
        {"resource": {"group": "events.k8s.io", "resource": "events"}},
        {"resource": {"group": "authorization.k8s.io", "resource": "subjectaccessreviews"}},
        {"resource": {"group": "", "resource": "serviceaccounts"}, "subResource": "token"},
    ],
    ids=["dry run", "server", "lease", "event", "new event", "review", "token"],
)
def test_bookkeeping_passes(door: Door, request_: JsonObject) -> None:
    assert door.ask(**request_)["allowed"] is True


@pytest.mark.parametrize(
    ("announced", "request_", "passes"),
    [
        (BIND, {"subResource": "binding"}, True),
        (BIND, {}, False),
        (BIND, {"subResource": "binding", "name": "b"}, False),
        (BIND, {"subResource": "binding", "namespace": "other"}, False),
        (BIND, {"subResource": "binding", "operation": "UPDATE"}, False),
        (BIND, {"subResource": "binding", "userInfo": {"username": "somebody"}}, False),
        (None, {"subResource": "binding"}, False),
        (Announcement("patch", PODS, "default", "a", "status"), {"operation": "UPDATE"}, False),
        (Announcement("delete", PODS, "default", "a"), {"operation": "DELETE"}, True),
        (Announcement("evict", PODS, "default", "a"), {"subResource": "eviction"}, True),
        (Announcement("patch", PODS, "default", "a"), {}, True),  # an apply may create
        (Announcement("update", PODS, "default", "a"), {}, False),
    ],
)
def test_the_controller_s_own_name_passes_for_what_is_under_way(
    door: Door, announced: Announcement | None, request_: JsonObject, passes: bool
) -> None:
    door.link.under_way = announced
    assert door.ask(**{**OWN, **request_})["allowed"] is passes


def test_a_namespace_lives_in_itself(door: Door) -> None:
    namespaces = GroupResource("", "namespaces")
    door.link.under_way = Announcement("create", namespaces, "", "team")
    resource = {"group": "", "version": "v1", "resource": "namespaces"}
    asked = {**OWN, "resource": resource, "namespace": "team", "name": "team"}
    assert door.ask(**asked)["allowed"] is True


def test_between_scenarios_everybody_may_write(door: Door) -> None:
    door.scenarios.fail_current("over")
    assert door.ask()["allowed"] is True


def test_the_probe_is_refused_in_any_case(door: Door) -> None:
    door.scenarios.fail_current("over")
    assert door.ask(name=PROBE, dryRun=True)["allowed"] is False


def test_an_edit_of_a_scenario_is_looked_at(door: Door) -> None:
    run = door.scenarios.current
    assert run is not None
    old = {**scenario(), "status": {"phase": "Paused"}}
    old["metadata"] = {"name": "mine", "uid": run.uid}
    late = {"id": "late", "step": 1, "doneOperation": {}}
    longer = {**old, "spec": {"operations": [*old["spec"]["operations"], late]}}
    of_scenarios = {
        "operation": "UPDATE",
        "name": "mine",
        "resource": {
            "group": "simulation.kube-scheduler-simulator.x-k8s.io",
            "resource": "scenarios",
        },
        "oldObject": old,
    }
    response = door.ask(**of_scenarios, object=longer)
    assert response["allowed"] is True
    assert response["warnings"] == [
        "operation 'late' is ignored: its step 1 has passed, the scenario is at step 1.0"
    ]
    response = door.ask(**of_scenarios, object={**old, "spec": {"operations": [late]}})
    assert response["status"]["code"] == 422
    response = door.ask(**of_scenarios, subResource="status", object=longer)
    assert response["status"]["code"] == 403


# -- over the wire ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return make_certificate("127.0.0.1")


@pytest.fixture
def webhook(door: Door, certificate: Certificate) -> Iterator[Webhook]:
    webhook = Webhook(door.judge, certificate, "127.0.0.1", 0)
    webhook.start()
    yield webhook
    webhook.stop()


def post(webhook: Webhook, certificate: Certificate, body: bytes, path: str = "") -> Any:
    trust = ssl.create_default_context(cadata=certificate.bundle.decode())
    request = urllib.request.Request(path or webhook.url, data=body, method="POST")
    with urllib.request.urlopen(request, context=trust) as reply:
        return json.loads(reply.read())


def test_it_answers_over_tls(webhook: Webhook, certificate: Certificate) -> None:
    probe = {"request": {"uid": "7", "name": PROBE}}
    review = post(webhook, certificate, json.dumps(probe).encode())
    assert review["kind"] == "AdmissionReview"
    assert review["response"]["uid"] == "7"


@pytest.mark.parametrize("body", [b"", b"[]", b"not json", b"{}", b'{"request": {}}'])
def test_nonsense_is_a_bad_request(webhook: Webhook, certificate: Certificate, body: bytes) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(webhook, certificate, body)
    assert refused.value.code == 400
    refused.value.close()


def test_what_is_too_long_is_not_read(webhook: Webhook, certificate: Certificate) -> None:
    with pytest.raises((urllib.error.HTTPError, urllib.error.URLError)) as refused:
        post(webhook, certificate, b" " * (MAX_BODY + 1))
    if isinstance(refused.value, urllib.error.HTTPError):
        assert refused.value.code == 413
        refused.value.close()


def test_a_connection_that_was_kept_ends_with_it(
    webhook: Webhook, certificate: Certificate
) -> None:
    trust = ssl.create_default_context(cadata=certificate.bundle.decode())
    connection = http.client.HTTPSConnection("127.0.0.1", webhook.server_port, context=trust)

    def ask() -> bytes:
        body = json.dumps({"request": {"uid": "7", "name": PROBE}})
        connection.request("POST", "/admit", body)
        return connection.getresponse().read()

    assert ask()
    webhook.stop()
    with pytest.raises((ConnectionError, http.client.HTTPException, ssl.SSLError)):
        ask()
    connection.close()


def test_a_port_that_is_taken_is_named(webhook: Webhook, door: Door) -> None:
    port = webhook.server_port
    with pytest.raises(ConfigurationError, match="choose another --webhook-port"):
        Webhook(door.judge, make_certificate("localhost"), "127.0.0.1", port)


def test_without_openssl_a_certificate_has_to_be_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="--webhook-cert and --webhook-key"):
        make_certificate("127.0.0.1")


def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "webhook.crt"
    file.write_text("nonsense")
    with pytest.raises(ConfigurationError, match=r"webhook\.crt"):
        read_certificate(file, file)


def test_what_is_registered_fails_closed_and_asks_nothing_of_bookkeeping() -> None:
    gate, edits = webhook_configuration("https://127.0.0.1:1/admit", b"pem")["webhooks"]
    assert (gate["failurePolicy"], edits["failurePolicy"]) == ("Fail", "Ignore")
    assert gate["sideEffects"] == "None"
    texts = " ".join(each["expression"] for each in gate["matchConditions"])
    assert "coordination.k8s.io" in texts
    assert "system:apiserver" in texts
