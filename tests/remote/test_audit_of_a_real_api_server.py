"""What a real kube-apiserver writes into its audit log, ours does: same policy, same requests."""

import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from kubescene.apiserver.audit import AuditLog, AuditTrail, read_policy
from kubescene.apiserver.server import Server
from kubescene.clock import SECOND, Deadline, WallClock
from kubescene.types import JsonObject
from remote.api_servers import RealServer, asking

pytestmark = pytest.mark.xdist_group("real-api-server")

PATIENCE_S = 120
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ["/healthz*", /version]}
- {level: None, users: [quiet]}
- {level: Metadata, userGroups: [lurkers], verbs: [get, list]}
- level: Request
  resources: [{group: "", resources: [configmaps], resourceNames: [named]}]
- {level: Metadata, resources: [{group: "", resources: ["*/status", "pods/*"]}]}
- level: RequestResponse
  omitManagedFields: true
  resources: [{group: "", resources: [configmaps]}]
- level: RequestResponse
  omitStages: [ResponseStarted]
  resources: [{group: apps, resources: ["*"]}]
- {level: Metadata, omitStages: [], namespaces: [default], verbs: [watch, deletecollection]}
- {level: Request, resources: [{group: ""}]}
- {level: Metadata, nonResourceURLs: ["/api*", "/apis"]}
"""
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NAMED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "named"}, "data": {"a": "b"}}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a": "b"}}
LABELS = {"app": "web"}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
MERGE = {"Content-Type": "application/merge-patch+json"}
REQUESTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("GET", "/healthz"), {}),
    (("GET", "/version"), {}),
    (("GET", "/api"), {}),
    (("GET", "/apis/apps"), {}),
    (("GET", "/openapi/v3"), {}),
    (("POST", MAPS, NAMED), {}),
    (("POST", MAPS, NAMED), {}),
    (("POST", MAPS, OTHER), {}),
    (("GET", f"{MAPS}/named"), {}),
    (("GET", f"{MAPS}/other"), {}),
    (("GET", f"{MAPS}/nobody"), {}),
    (("GET", MAPS), {}),
    (("GET", f"{MAPS}?limit=1"), {"user": "quiet", "groups": ("system:masters",)}),
    (("GET", f"{MAPS}/other"), {"user": "eve", "groups": ("lurkers",)}),
    (("PATCH", f"{MAPS}/other", {"data": {"c": "d"}}), MERGE),
    (("PATCH", f"{MAPS}/other", {"data": {"no key": "x"}}), MERGE),
    (("PUT", f"{MAPS}/other", OTHER), {}),
    (("POST", DEPLOYMENTS, WEB), {}),
    (("POST", DEPLOYMENTS, {**WEB, "metadata": {}}), {}),
    (("GET", f"{DEPLOYMENTS}/web/scale"), {}),
    (("PATCH", f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 0}}), MERGE),
    (("GET", f"{DEPLOYMENTS}?watch=true&timeoutSeconds=1"), {}),
    (("GET", "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1"), {}),
    (("GET", "/api/v1/namespaces/default/pods/nobody/log"), {}),
    (("GET", "/api/v1/nodes"), {}),
    (("GET", "/api/v1/namespaces/default"), {}),
    (("PATCH", "/api/v1/namespaces/default/status", {"status": {}}), MERGE),
    (("DELETE", f"{MAPS}/named"), {}),
    (("DELETE", f"{DEPLOYMENTS}/web?propagationPolicy=Background"), {}),
    (("DELETE", "/api/v1/namespaces/default/events"), {}),
    (("GET", "/api/v1/namespaces/default/secrets/x"), {"user": "eve"}),
    (("GET", "/apis/none.example.com/v1/things"), {}),
]
BODIES = ("requestObject", "responseObject")


def told(log: Path, count: int) -> dict[str, list[JsonObject]]:
    """The events by the request they are about, when the last request has been told of."""
    deadline = Deadline(WallClock(), PATIENCE_S * SECOND)
    while f'"{count - 1}"' not in (text := log.read_text()) or not text.endswith("\n"):
        assert not deadline.is_over, text
        WallClock().wait_until(WallClock().now() + SECOND // 20)
    events: dict[str, list[JsonObject]] = {}
    for line in text.splitlines():
        event = json.loads(line)
        if event["auditID"].isdecimal():
            events.setdefault(event["auditID"], []).append(event)
    return events


def alike(event: JsonObject) -> JsonObject:
    """What does not depend on the server, its users, or the moment."""
    kept = ("kind", "apiVersion", "level", "stage", "requestURI", "verb", "objectRef")
    found = {name: event[name] for name in kept if name in event}
    found["impersonated"] = event.get("impersonatedUser", {}).get("username")
    status = event.get("responseStatus", {})
    found["status"] = {name: status.get(name) for name in ("code", "status", "reason")}
    found["decision"] = event["annotations"]["authorization.k8s.io/decision"]
    for name in BODIES:
        body = event.get(name)
        metadata = (body or {}).get("metadata") or {}
        found[name] = body and (
            body.get("kind"),
            metadata.get("name"),
            "managedFields" in metadata,
            "managedFields" in str(body.get("items")),
        )
    return found


def audited(log: Path, ask: Any) -> list[list[JsonObject]]:
    for number, (arguments, more) in enumerate(REQUESTS):
        ask(*arguments, **{**more, "Audit-ID": str(number)})
    ask("GET", "/api", **{"Audit-ID": str(len(REQUESTS))})
    events = told(log, len(REQUESTS) + 1)
    return [[alike(each) for each in events.get(str(at), [])] for at in range(len(REQUESTS))]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "policy.yaml"
    path.write_text(POLICY)
    return path


@pytest.fixture(scope="module")
def recorded(policy: Path) -> Iterator[list[list[JsonObject]]]:
    """Of a real kube-apiserver."""
    log = policy.with_name("real.log")
    server = RealServer(policy.parent, f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    try:
        trust = ssl.create_default_context(cafile=str(server.outsider.with_name("ca.crt")))
        host = server.url.removeprefix("https://")
        with closing(HTTPSConnection(host, context=trust, timeout=120)) as connection:
            yield audited(log, asking(connection, {"Authorization": "Bearer token-of-somebody"}))
    finally:
        server.stop()


def test_the_audit_log_is_that_of_a_real_api_server(
    policy: Path, recorded: list[list[JsonObject]], tmp_path: Path
) -> None:
    log = tmp_path / "ours.log"
    trail = AuditTrail(AuditLog(str(log)), read_policy(policy))
    with (
        Server(port=0, controllers=False, rbac=True, audit=trail) as server,
        closing(HTTPConnection(server.host, server.port, timeout=120)) as connection,
    ):
        ours = audited(log, asking(connection, {}))
    differing = [
        (arguments[:2], mine, real)
        for (arguments, _), mine, real in zip(REQUESTS, ours, recorded, strict=True)
        if mine != real
    ]
    assert differing == []
    assert sum(len(each) for each in recorded) > 20
