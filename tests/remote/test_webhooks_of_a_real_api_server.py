"""A real kube-apiserver asks webhooks what ours asks, and says what ours says of their answers."""

import base64
import json
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, NamedTuple

import pytest

from kubescene.apiserver.server import Server
from kubescene.clock import SECOND, ScaledClock
from kubescene.types import JsonObject
from remote.api_servers import RealServer
from webhook_programs import (
    ALLOWED,
    Answer,
    Raw,
    WebhookProgram,
    configuration,
    patch,
    webhook,
    webhook_program,
)

pytestmark = pytest.mark.xdist_group("real-api-server")

HOOKS = "/apis/admissionregistration.k8s.io/v1"
SPACE = "hooked"
MAPS = f"/api/v1/namespaces/{SPACE}/configmaps"
IN_SPACE = {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}
KNOWN_S = 60


class Told(NamedTuple):
    status: int
    body: JsonObject
    warnings: list[str]


Ask = Callable[..., Told]


def asking(connection: HTTPConnection, known: dict[str, str]) -> Ask:
    def ask(method: str, path: str, body: Any = None, kind: str = "application/json") -> Told:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {**known, "Content-Type": kind})
        with connection.getresponse() as reply:
            warnings = reply.headers.get_all("Warning") or []
            return Told(reply.status, json.loads(reply.read()), warnings)

    return ask


@pytest.fixture(scope="module")
def program() -> Iterator[WebhookProgram]:
    with webhook_program() as program:
        yield program


@pytest.fixture(scope="module")
def ours() -> Iterator[Ask]:
    with (
        Server(port=0, controllers=False) as server,
        closing(HTTPConnection(server.host, server.port, timeout=120)) as connection,
    ):
        yield asking(connection, {})


@pytest.fixture(scope="module")
def real(real_server: RealServer) -> Iterator[Ask]:
    trust = ssl.create_default_context(cafile=str(real_server.outsider.parent / "ca.crt"))
    host = real_server.url.removeprefix("https://")
    with closing(HTTPSConnection(host, context=trust, timeout=120)) as connection:
        yield asking(connection, {"Authorization": "Bearer token-of-somebody"})


@pytest.fixture(scope="module")
def worlds(ours: Ask, real: Ask) -> tuple[Ask, Ask]:
    for ask in (ours, real):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        assert ask("POST", "/api/v1/namespaces", space).status == 201
    return ours, real


class Hooks:
    """Configurations in both worlds, until the case is over."""

    def __init__(self, program: WebhookProgram, ask: Ask) -> None:
        self._program = program
        self._ask = ask
        self._paths: list[str] = []

    def add(self, kind: str, *webhooks: JsonObject) -> None:
        """Configure webhooks, and wait until they are asked."""
        name = f"case-{kind.lower()}"
        ready = webhook(
            "ready.example.com",
            self._program.config("/ready"),
            objectSelector={"matchLabels": {"probe": "yes"}},
        )
        obj = configuration(kind, name, ready, *webhooks)
        for each in obj["webhooks"]:
            each.setdefault("namespaceSelector", IN_SPACE)
        path = f"{HOOKS}/{kind.lower()}webhookconfigurations"
        made = self._ask("POST", path, obj)
        assert made.status == 201, made.body
        self._paths.append(f"{path}/{name}")
        self._wait(lambda: bool(self._program.requests("/ready")))
        self._program.asked.clear()

    def clear(self) -> None:
        for path in self._paths:
            assert self._ask("DELETE", path).status == 200

    def _wait(self, is_known: Callable[[], bool]) -> None:
        """A real one hears of configurations by a watch."""
        probe = config_map("probe")
        probe["metadata"]["labels"] = {"probe": "yes"}
        clock = ScaledClock(1)
        deadline = clock.now() + KNOWN_S * SECOND
        while not is_known():
            assert clock.now() < deadline, "the configuration is not known"
            self._ask("POST", f"{MAPS}?dryRun=All", probe)
            clock.wait_until(clock.now() + SECOND // 20)


def config_map(name: str, **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def add(path: str, value: Any) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


# -- what both are compared by ----------------------------------------------------------------

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LEFT_OUT = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "selfLink")


def plain(value: Any) -> Any:
    """An object without what is another in each world, and without what is empty."""
    if isinstance(value, dict):
        made = {name: plain(each) for name, each in value.items() if name not in _LEFT_OUT}
        return {name: each for name, each in made.items() if each not in (None, {}, [], "")}
    if isinstance(value, str):
        return _UID.sub("UID", value)
    return [plain(each) for each in value] if isinstance(value, list) else value


def review(path: str, body: JsonObject) -> JsonObject:
    asked = {name: each for name, each in body["request"].items() if name != "userInfo"}
    return {"path": path, "version": body["apiVersion"], **plain(asked)}


def told(reply: Told) -> JsonObject:
    return {
        "status": reply.status,
        "warnings": reply.warnings,
        **{name: plain(each) for name, each in reply.body.items() if name != "metadata"},
    }


def both(
    worlds: tuple[Ask, Ask], program: WebhookProgram, case: Callable[[Ask, Hooks], list[Told]]
) -> tuple[list[JsonObject], list[JsonObject]]:
    """Play a case in both worlds: replies and reviews of each."""
    found = []
    for ask in worlds:
        hooks = Hooks(program, ask)
        program.asked.clear()
        try:
            replies = [told(each) for each in case(ask, hooks)]
            reviews = [
                review(path, body) for path, body in program.asked if not path.startswith("/ready")
            ]
        finally:
            hooks.clear()
            program.answers.clear()
            for name in ("a", "b"):
                ask("DELETE", f"{MAPS}/{name}")
        found.append([*replies, *reviews])
    return found[0], found[1]


def check_alike(
    worlds: tuple[Ask, Ask], program: WebhookProgram, case: Callable[[Ask, Hooks], list[Told]]
) -> None:
    ours, real = both(worlds, program, case)
    check_same(ours, real)


def each_once(found: list[JsonObject]) -> list[JsonObject]:
    return [each for place, each in enumerate(found) if each not in found[:place]]


def check_same(ours: Any, real: Any) -> None:
    if found := [*differences(ours, real)]:
        pytest.fail("\n".join(found), pytrace=False)


def differences(ours: Any, real: Any, path: str = "") -> Iterator[str]:
    """Where two answers are not the same, and what stands there."""
    if isinstance(ours, dict) and isinstance(real, dict):
        for name in sorted(ours.keys() | real.keys()):
            yield from differences(ours.get(name), real.get(name), f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        for number, pair in enumerate(zip(ours, real, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    elif ours != real:
        yield f"{path}: ours {ours!r}, real {real!r}"


# -- cases -------------------------------------------------------------------------------------

NO = {"allowed": False}
TEXT = base64.b64encode(b"[]").decode()
ANSWERS: dict[str, tuple[Answer, JsonObject]] = {
    "allowed": (lambda _: ALLOWED, {}),
    "no word": (lambda _: NO, {}),
    "a message": (lambda _: {**NO, "status": {"message": "because"}}, {}),
    "a reason": (lambda _: {**NO, "status": {"reason": "Conflict"}}, {}),
    "a code": (
        lambda _: {**NO, "status": {"code": 422, "message": "odd", "reason": "Invalid"}},
        {},
    ),
    "a code too low": (lambda _: {**NO, "status": {"code": 200, "message": "odd"}}, {}),
    "details": (
        lambda _: {
            **NO,
            "status": {
                "message": "m",
                "details": {"name": "n", "kind": "k", "causes": [{"message": "c", "field": "f"}]},
            },
        },
        {},
    ),
    "warnings": (lambda _: {"allowed": True, "warnings": ["one", "two"]}, {}),
    "warnings and no": (lambda _: {**NO, "warnings": ["one"]}, {}),
    "another uid": (lambda _: {"allowed": True, "uid": "other"}, {}),
    "status 404": (lambda _: Raw(404, b"not here"), {}),
    "status 400": (lambda _: Raw(400, b"bad"), {}),
    "status 403": (lambda _: Raw(403, b"no entry"), {}),
    "status 500": (lambda _: Raw(500, b'say "oops"'), {}),
    "status 302": (lambda _: Raw(302, b""), {}),
    "a text of 500": (lambda _: Raw(500, b'say "oops"', "text/plain"), {}),
    "a text of 403": (lambda _: Raw(403, b"no entry", "text/plain; charset=utf-8"), {}),
    "no JSON": (lambda _: Raw(200, b"hello"), {}),
    "nothing at all": (lambda _: Raw(200, b""), {}),
    "a list": (lambda _: Raw(200, b"[]"), {}),
    "another kind": (lambda _: Raw(200, b'{"kind":"Pod","apiVersion":"v1"}'), {}),
    "patch": (lambda _: patch(add("/data/x", "1")), {}),
    "patch type": (lambda _: {"allowed": True, "patchType": "JSONPatch"}, {}),
    "status 500, ignored": (lambda _: Raw(500, b"oops"), {"failurePolicy": "Ignore"}),
    "no kind": (lambda _: Raw(200, b'{"response":{}}'), {}),
    "no response": (
        lambda _: Raw(200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'),
        {},
    ),
    "the older version": (lambda _: ALLOWED, {"admissionReviewVersions": ["v1beta1"]}),
    "a version nobody knows first": (lambda _: ALLOWED, {"admissionReviewVersions": ["v9", "v1"]}),
    "short time": (lambda _: ALLOWED, {"timeoutSeconds": 3}),
}
PATCHES: dict[str, Answer] = {
    "adds": lambda _: patch(add("/data/more", "1")),
    "labels": lambda _: patch(add("/metadata/labels", {"made": "yes"})),
    "unknown field": lambda _: patch(add("/unheard", "1")),
    "nothing": lambda _: patch(),
    "missing place": lambda _: patch({"op": "remove", "path": "/data/none"}),
    "a test that fails": lambda _: patch({"op": "test", "path": "/data/own", "value": "9"}),
    "no type": lambda _: {"allowed": True, "patch": TEXT},
    "no patch": lambda _: {"allowed": True, "patchType": "JSONPatch"},
    "another type": lambda _: {"allowed": True, "patch": TEXT, "patchType": "Merge"},
    "another type with operations": lambda _: {
        **patch(add("/data/more", "1")),
        "patchType": "Merge",
    },
    "no and a patch": lambda _: {**patch(add("/data/more", "1")), "allowed": False},
    "no JSON": lambda _: {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(b"hello").decode(),
    },
    "invalid afterwards": lambda _: patch(add("/metadata/labels", {"b ad": "x"})),
    "another name": lambda _: patch({"op": "replace", "path": "/metadata/name", "value": "z"}),
}


def only(case: str) -> JsonObject:
    """That a webhook is asked about the objects of one case alone."""
    return {"objectSelector": {"matchLabels": {"case": case}}}


def of_case(prefix: str, number: int, **data: str) -> JsonObject:
    made = config_map(f"{prefix}{number}", **data)
    made["metadata"]["labels"] = {"case": f"{prefix}{number}"}
    return made


def test_an_answer_means_the_same(worlds: tuple[Ask, Ask], program: WebhookProgram) -> None:
    def case(ask: Ask, hooks: Hooks) -> list[Told]:
        made = []
        for number, (answer, more) in enumerate(ANSWERS.values()):
            program.answers[f"/v{number}"] = answer
            config = program.config(f"/v{number}")
            hook = webhook(f"v{number}.example.com", config, **only(f"v{number}"))
            made.append({**hook, **more})
        hooks.add("Validating", *made)
        return [ask("POST", MAPS, of_case("v", each, own="1")) for each in range(len(ANSWERS))]

    check_alike(worlds, program, case)


def test_a_patch_means_the_same(worlds: tuple[Ask, Ask], program: WebhookProgram) -> None:
    def case(ask: Ask, hooks: Hooks) -> list[Told]:
        made = []
        for number, answer in enumerate(PATCHES.values()):
            program.answers[f"/m{number}"] = answer
            config = program.config(f"/m{number}")
            made.append(webhook(f"m{number}.example.com", config, **only(f"m{number}")))
        hooks.add("Mutating", *made)
        return [ask("POST", MAPS, of_case("m", each, own="1")) for each in range(len(PATCHES))]

    check_alike(worlds, program, case)


def everything(program: WebhookProgram, path: str, *resources: str) -> JsonObject:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources}
    return webhook(f"{path[1:]}.example.com", program.config(path), rules=[rule])


def test_the_same_is_asked_about_a_life(worlds: tuple[Ask, Ask], program: WebhookProgram) -> None:
    merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"

    def case(ask: Ask, hooks: Hooks) -> list[Told]:
        hooks.add("Mutating", everything(program, "/m", "configmaps"))
        hooks.add("Validating", everything(program, "/v", "configmaps"))
        applied = {**config_map("b", by="apply")}
        return [
            ask("POST", f"{MAPS}?dryRun=All&fieldManager=me", config_map("a", own="1")),
            ask("POST", f"{MAPS}?fieldManager=me&fieldValidation=Strict", config_map("a", own="1")),
            ask("PUT", f"{MAPS}/a", config_map("a", own="2")),
            ask("PATCH", f"{MAPS}/a?fieldManager=me", {"data": {"own": "3"}}, merge),
            ask("PATCH", f"{MAPS}/a", {"data": {"own": "3"}}, merge),
            ask("PATCH", f"{MAPS}/b?fieldManager=me&force=true", applied, apply),
            ask("PATCH", f"{MAPS}/b?fieldManager=me", {**applied, "data": {"by": "me"}}, apply),
            ask("DELETE", f"{MAPS}/a?propagationPolicy=Foreground&gracePeriodSeconds=3"),
            ask("DELETE", f"{MAPS}/b", {"propagationPolicy": "Orphan"}),
        ]

    # A real one tries a write again, and asks again, where its cache was behind the last one.
    ours, real = both(worlds, program, case)
    check_same(each_once(ours), each_once(real))


def test_several_are_asked_in_the_same_order(
    worlds: tuple[Ask, Ask], program: WebhookProgram
) -> None:
    again = {"reinvocationPolicy": "IfNeeded"}

    def case(ask: Ask, hooks: Hooks) -> list[Told]:
        program.answers["/second"] = lambda _: patch(add("/data/second", "2"))
        program.answers["/fourth"] = lambda _: patch(add("/data/fourth", "4"))
        hooks.add(
            "Mutating",
            webhook("first.example.com", program.config("/first"), **again),
            webhook("once.example.com", program.config("/once")),
            webhook("second.example.com", program.config("/second"), **again),
            webhook("third.example.com", program.config("/third"), **again),
            webhook("fourth.example.com", program.config("/fourth"), **again),
        )
        return [ask("POST", MAPS, config_map("a", own="1"))]

    check_alike(worlds, program, case)


CONDITIONS = {
    "holds": "object.data.own == '1'",
    "does not": "object.data.own == '2'",
    "fails": "object.data.none == '1'",
    "of the request": "request.operation == 'CREATE' && request.userInfo.username != ''",
}


def test_conditions_mean_the_same(worlds: tuple[Ask, Ask], program: WebhookProgram) -> None:
    cases = [(text, policy) for text in CONDITIONS.values() for policy in ("Fail", "Ignore")]

    def case(ask: Ask, hooks: Hooks) -> list[Told]:
        made = []
        for number, (text, policy) in enumerate(cases):
            hook = webhook(f"c{number}.example.com", program.config("/c"), **only(f"c{number}"))
            condition = {"name": "c", "expression": text}
            made.append({**hook, "matchConditions": [condition], "failurePolicy": policy})
        hooks.add("Validating", *made)
        return [ask("POST", MAPS, of_case("c", each, own="1")) for each in range(len(cases))]

    check_alike(worlds, program, case)


@pytest.mark.parametrize("policy", ["Exact", "Equivalent"])
def test_another_version_is_the_same_resource(
    worlds: tuple[Ask, Ask], program: WebhookProgram, policy: str
) -> None:
    def case(ask: Ask, hooks: Hooks) -> list[Told]:
        rule = {
            "apiGroups": ["autoscaling"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["horizontalpodautoscalers"],
        }
        hook = webhook("v.example.com", program.config("/v"), rules=[rule], matchPolicy=policy)
        hooks.add("Validating", hook)
        scaler = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"},
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            },
        }
        base = f"/apis/autoscaling/v2/namespaces/{SPACE}/horizontalpodautoscalers"
        return [ask("POST", base, scaler), ask("DELETE", f"{base}/a")]

    check_alike(worlds, program, case)


CONFIGS: dict[str, JsonObject] = {
    "http": {"clientConfig": {"url": "http://127.0.0.1/x"}},
    "no host": {"clientConfig": {"url": "https:///x"}},
    "query": {"clientConfig": {"url": "https://127.0.0.1/x?y=1"}},
    "fragment": {"clientConfig": {"url": "https://127.0.0.1/x#y"}},
    "user": {"clientConfig": {"url": "https://me@127.0.0.1/x"}},
    "url and service": {
        "clientConfig": {
            "url": "https://127.0.0.1/x",
            "service": {"name": "a", "namespace": "b"},
        }
    },
    "neither": {"clientConfig": {}},
    "bad service path": {
        "clientConfig": {"service": {"name": "a", "namespace": "b", "path": "x//y"}}
    },
    "bad service port": {
        "clientConfig": {"service": {"name": "a", "namespace": "b", "port": 99999}}
    },
    "short name": {"name": "short"},
    "two segments": {"name": "two.segments"},
    "capital": {"name": "Capital.example.com"},
    "time 0": {"timeoutSeconds": 0},
    "time 31": {"timeoutSeconds": 31},
    "failure policy": {"failurePolicy": "Maybe"},
    "match policy": {"matchPolicy": "Maybe"},
    "side effects": {"sideEffects": "Some"},
    "unknown versions": {"admissionReviewVersions": ["v9"]},
    "a version twice": {"admissionReviewVersions": ["v1", "v1"]},
    "bad version": {"admissionReviewVersions": ["v1", "V_1"]},
    "condition that does not compile": {
        "matchConditions": [{"name": "c", "expression": "object.x +"}]
    },
    "condition that is no bool": {"matchConditions": [{"name": "c", "expression": "'x'"}]},
    "same condition twice": {
        "matchConditions": [
            {"name": "c", "expression": "true"},
            {"name": "c", "expression": "true"},
        ]
    },
    "condition name": {"matchConditions": [{"name": "a b", "expression": "true"}]},
    "operations": {
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["READ"],
                "resources": ["pods"],
            }
        ]
    },
    "wildcards": {
        "rules": [
            {
                "apiGroups": ["*", "a"],
                "apiVersions": ["*", "v1"],
                "operations": ["*", "CREATE"],
                "resources": ["*", "pods"],
            }
        ]
    },
    "resources": {
        "rules": [
            {
                "apiGroups": ["a"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["*/*", "pods", "pods/*", "pods/status", "*/status", "x/y"],
            }
        ]
    },
    "scope": {
        "rules": [
            {
                "apiGroups": ["a"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["x"],
                "scope": "Some",
            }
        ]
    },
}


def test_configurations_are_refused_alike(worlds: tuple[Ask, Ask]) -> None:
    hook = webhook("v.example.com", {"url": "https://127.0.0.1/x"})
    found: list[list[JsonObject]] = [[], []]
    for which, ask in enumerate(worlds):
        for name, more in CONFIGS.items():
            reply = ask(
                "POST",
                f"{HOOKS}/validatingwebhookconfigurations?dryRun=All",
                configuration("Validating", "x", {**hook, **more}),
            )
            shown = told(reply) if reply.status != 201 else {"status": 201}
            found[which].append({"case": name, **shown})
    check_same(*found)


def test_webhooks_of_a_name_are_refused_alike(worlds: tuple[Ask, Ask]) -> None:
    hook = webhook("v.example.com", {"url": "https://127.0.0.1/x"})
    more = {**hook, "reinvocationPolicy": "Perhaps"}
    found = [
        told(
            ask(
                "POST",
                f"{HOOKS}/mutatingwebhookconfigurations?dryRun=All",
                configuration("Mutating", "x", hook, more),
            )
        )
        for ask in worlds
    ]
    check_same(*found)
