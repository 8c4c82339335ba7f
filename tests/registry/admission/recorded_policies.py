"""What a real kube-apiserver says to requests that policies are asked about: asked, kept, read.

``data/policy_answers.jsonl.gz`` has a line per request of ``policy_cases.yaml``: its label, then
code, reason, message, causes and warnings, and what became of the object. ``python -m
registry.admission.recorded_policies`` in ``tests`` asks the kube-apiserver of this machine again.
"""

import gzip
import json
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from kubescene.clock import SECOND, ScaledClock
from kubescene.types import JsonObject
from remote.api_servers import RealServer

HERE = Path(__file__).parent
CASES = HERE / "policy_cases.yaml"
ANSWERS = HERE.parent / "data" / "policy_answers.jsonl.gz"
GROUP = "/apis/admissionregistration.k8s.io/v1"
PLACES = {
    "deployments": "/apis/apps/v1",
    "horizontalpodautoscalers": "/apis/autoscaling/v2",
}
FORMS = {"PATCH": "application/merge-patch+json", "APPLY": "application/apply-patch+yaml"}
DRAWN = re.compile(r"some-[a-z0-9]{5}")
"""A name that the server has made up."""
SHOWN = ("labels", "annotations")
SETTLING_S = 10
"""A real server hears of policies by watching them."""

Ask: TypeAlias = Callable[[str, str, Any, str], tuple[int, JsonObject, list[str]]]
"""Method, path, body and form of it; code, body and warnings of the answer."""


def cases() -> JsonObject:
    found: JsonObject = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    return found


def recorded() -> dict[str, list[Any]]:
    lines = gzip.decompress(ANSWERS.read_bytes()).splitlines()
    return {label: answer for label, *answer in map(json.loads, lines)}


def prepare(ask: Ask) -> None:
    """Create all namespaces, params, policies and bindings."""
    for case in cases()["cases"]:
        name = case["name"]
        send(ask, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        account = {"metadata": {"name": "default"}}
        ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account, "application/json")
        for obj in case.get("objects") or ():
            send(ask, "POST", path_of(f"{obj['kind'].lower()}s", name), obj)
        for flavour, plural in (
            ("", "validatingadmissionpolicies"),
            ("mutating-", "mutatingadmissionpolicies"),
        ):
            for number, spec in enumerate(case.get(f"{flavour}policies".replace("-", "_")) or ()):
                policy = {"metadata": {"name": f"{flavour}{name}-{number}"}, "spec": spec}
                send(ask, "POST", f"{GROUP}/{plural}", filled(policy, name))
        for flavour, binding in bindings_of(case):
            send(ask, "POST", f"{GROUP}/{flavour}admissionpolicybindings", filled(binding, name))


def bindings_of(case: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    here = {"matchLabels": {"kubernetes.io/metadata.name": case["name"]}}
    for flavour, prefix in (("validating", ""), ("mutating", "mutating-")):
        key = f"{prefix}policies".replace("-", "_")
        plain = [
            {"policyName": f"{prefix}$-{number}"} for number, _ in enumerate(case.get(key) or ())
        ]
        given = case.get(f"{prefix}bindings".replace("-", "_")) or plain
        own = {} if prefix else {"validationActions": ["Deny"]}
        for number, each in enumerate(given):
            spec = {"matchResources": {"namespaceSelector": here}, **own, **each}
            yield flavour, {"metadata": {"name": f"{prefix}$-{number}"}, "spec": spec}


def answers(ask: Ask) -> Iterator[tuple[str, list[Any]]]:
    """The answer to each request, by its label."""
    for case in cases()["cases"]:
        for number, (method, resource, *body) in enumerate(case["requests"]):
            path = path_of(resource, case["name"])
            yield f"{case['name']} {number}", answer(ask, method, path, *body)
    for number, spec in enumerate(cases()["written"]):
        flavour = (
            "validating"
            if {"validations", "auditAnnotations", "validationActions"} & {*spec}
            else "mutating"
        )
        kind = "policybindings" if "policyName" in spec else "policies"
        path = f"{GROUP}/{flavour}admission{kind}?dryRun=All"
        yield (
            f"written {number}",
            answer(ask, "POST", path, {"metadata": {"name": "p"}, "spec": spec}),
        )


def answer(ask: Ask, method: str, path: str, body: Any = None) -> list[Any]:
    form = FORMS.get(method, "application/json")
    if method == "APPLY":
        method, path = "PATCH", f"{path}?fieldManager=tests&force=true"
    code, said, warnings = json.loads(
        DRAWN.sub("some-*", json.dumps(ask(method, path, body, form)))
    )
    if code // 100 == 2:
        return [code, warnings, seen(said)]
    causes = (said.get("details") or {}).get("causes") or []
    return [code, warnings, said.get("reason"), said.get("message"), causes]


def seen(obj: JsonObject) -> JsonObject:
    """What admission may have changed of an object."""
    metadata = obj.get("metadata") or {}
    found = {key: metadata[key] for key in SHOWN if metadata.get(key)}
    spec = {**(obj.get("spec") or {})}
    spec.pop("volumes", None)  # of service accounts: named by chance
    spec["containers"] = [
        {key: value for key, value in each.items() if key != "volumeMounts"}
        for each in spec.get("containers") or ()
    ]
    return {**found, "data": obj.get("data"), "spec": spec}


def path_of(resource: str, namespace: str) -> str:
    if resource.startswith("/"):
        return resource
    plural = resource.partition("/")[0]
    return f"{PLACES.get(plural, '/api/v1')}/namespaces/{namespace}/{resource}"


def filled(obj: JsonObject, name: str) -> JsonObject:
    made: JsonObject = json.loads(json.dumps(obj).replace("$", name))
    return made


def send(ask: Ask, method: str, path: str, body: Any) -> None:
    code, said, _ = ask(method, path, body, "application/json")
    assert code // 100 == 2, (path, said)


def asking(connection: HTTPConnection, known: dict[str, str]) -> Ask:
    """How a server is asked over a connection."""

    def ask(method: str, path: str, body: Any, form: str) -> tuple[int, JsonObject, list[str]]:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {**known, "Content-Type": form})
        reply = connection.getresponse()
        warnings = [each.split(" ", 2)[2] for each in reply.headers.get_all("Warning") or ()]
        return reply.status, json.loads(reply.read()), warnings

    return ask


def ask_real() -> list[tuple[str, list[Any]]]:
    """The answers of the kube-apiserver of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        server = RealServer(Path(folder))
        trust = ssl.create_default_context(cafile=f"{folder}/ca.crt")
        connection = HTTPSConnection(server.url.removeprefix("https://"), context=trust)
        ask = asking(connection, {"Authorization": "Bearer token-of-somebody"})
        try:
            prepare(ask)
            clock = ScaledClock(1)
            clock.wait_until(clock.now() + SETTLING_S * SECOND)
            return list(answers(ask))
        finally:
            connection.close()
            server.stop()


if __name__ == "__main__":
    lines = [json.dumps([label, *given]) for label, given in ask_real()]
    ANSWERS.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
