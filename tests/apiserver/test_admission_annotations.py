"""What admission has to say to the audit log, as a real kube-apiserver says it."""

import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.http import Http
from kubescene.apiserver.audit import AuditLog, AuditTrail
from kubescene.apiserver.server import Server
from kubescene.types import JsonObject
from webhook_programs import configuration, patch, webhook, webhook_program

GROUP = "admissionregistration.k8s.io"
HOOKS = f"/apis/{GROUP}/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["configmaps"],
}


def policy(name: str, **spec: Any) -> JsonObject:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [RULE]}, **spec},
    }


def binding(name: str, policy: str, *actions: str) -> JsonObject:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": policy, "validationActions": [*actions]},
    }


OBJECTS = (
    policy(
        "owned",
        validations=[
            {"expression": "true"},
            {"expression": "object.data.owner == 'me'", "message": "somebody else's"},
        ],
        auditAnnotations=[
            {"key": "owner", "valueExpression": "'it is ' + object.data.owner"},
            {"key": "nothing", "valueExpression": "null"},
        ],
    ),
    binding("first", "owned", "Audit"),
    binding("second", "owned", "Audit", "Warn"),
)
TOLD = {
    "owned/owner": "it is you",
    "validation.policy.admission.k8s.io/validation_failure": json.dumps(
        [
            {
                "message": "somebody else's",
                "policy": "owned",
                "binding": "first",
                "expressionIndex": 1,
                "validationActions": ["Audit"],
            }
        ],
        separators=(",", ":"),
    ),
}


def config_map(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"owner": "you"},
    }


def annotations(log: Path, name: str) -> dict[str, str]:
    """Those of the creation of an object, but for what authorization says."""
    for line in log.read_text().splitlines():
        event = json.loads(line)
        reference = event.get("objectRef") or {}
        if event["verb"] == "create" and reference.get("name") == name:
            told = event.get("annotations") or {}
            return {key: each for key, each in told.items() if "authorization" not in key}
    pytest.fail("no event tells of it")


def test_policies_annotate_the_audit_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with Server(port=0, controllers=False, audit=AuditTrail(AuditLog(str(log)))) as server:
        http = Http(server.host, server.port)
        for each in OBJECTS:
            plural = {
                "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
                "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
            }[each["kind"]]
            assert http.post(f"{HOOKS}/{plural}", each).status == 201
        assert http.post(MAPS, config_map("a")).status == 201
        http.close()
    assert annotations(log, "a") == TOLD


def test_webhooks_annotate_the_audit_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with (
        webhook_program() as program,
        Server(port=0, controllers=False, audit=AuditTrail(AuditLog(str(log)))) as server,
    ):
        program.answers["/v"] = lambda _: {"allowed": True, "auditAnnotations": {"seen": "yes"}}
        program.answers["/m"] = lambda _: patch({"op": "add", "path": "/data/x", "value": "1"})
        gone = webhook("gone.example.com", {"url": "https://127.0.0.1:1/x"}, failurePolicy="Ignore")
        http = Http(server.host, server.port)
        for kind, path in (("Validating", "/v"), ("Mutating", "/m")):
            hook = webhook(f"{path[1]}.example.com", program.config(path))
            obj = configuration(kind, path[1], hook, gone)
            assert http.post(f"{HOOKS}/{kind.lower()}webhookconfigurations", obj).status == 201
        assert http.post(MAPS, config_map("a")).status == 201
        http.close()
    # As a real one has told it.
    assert annotations(log, "a") == {
        "failed-open.mutation.webhook.admission.k8s.io/round_0_index_1": "gone.example.com",
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_1": "gone.example.com",
        "mutation.webhook.admission.k8s.io/round_0_index_0": '{"configuration":"m","webhook":'
        '"m.example.com","mutated":true}',
        "mutation.webhook.admission.k8s.io/round_0_index_1": '{"configuration":"m","webhook":'
        '"gone.example.com","mutated":false}',
        "v.example.com/seen": "yes",
    }
