"""Whom a real kube-apiserver lets do what, ours does, in the same words: thousands of questions."""

import ssl
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.apiserver.access import Attributes
from kubescene.apiserver.access.rbac import Rbac, default_roles
from kubescene.apiserver.server import Server
from kubescene.clock.randomness import Streams
from kubescene.types import JsonObject
from remote.api_servers import Ask, RealServer, asking

pytestmark = pytest.mark.xdist_group("real-api-server")

API = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SPACES = ("rbac-a", "rbac-b")
USERS = ("alice", "bob", "system:serviceaccount:rbac-a:robot", "system:serviceaccount:rbac-b:robot")
GROUPS = ("dev", "ops", "system:authenticated", "system:serviceaccounts:rbac-a", "system:masters")
VERBS = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "use",
    "*",
)
API_GROUPS = ("", "apps", "batch", "x.io", "*")
RESOURCES = (
    "pods",
    "pods/log",
    "pods/status",
    "deployments",
    "deployments/scale",
    "jobs",
    "secrets",
    "nodes",
    "*",
    "*/scale",
    "*/status",
    "namespaces",
)
NAMES = ("one", "two", "three")
PATHS = ("/healthz", "/healthz/*", "/metrics", "/logs/*", "*", "/a/*", "/version")
ASKED = (
    "/healthz",
    "/healthz/ping",
    "/metrics",
    "/logs/a/b",
    "/a",
    "/a/",
    "/version",
    "/api",
    "/x",
)


class Lot:
    """Draws of the test's own."""

    def __init__(self, seed: int) -> None:
        self._draws = Streams(seed).stream("access")

    def of(self, choices: Any) -> Any:
        return choices[self._draws.below(len(choices))]

    def some(self, choices: Any, most: int) -> list[Any]:
        count = 1 + self._draws.below(most)
        return list(dict.fromkeys(self.of(choices) for _ in range(count)))

    def happens(self, percent: int) -> bool:
        return bool(self._draws.below(100) < percent)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(port=0, controllers=False, rbac=True) as server:
        yield server


@pytest.fixture(scope="module")
def ours(server: Server) -> Iterator[Ask]:
    with closing(HTTPConnection(server.host, server.port, timeout=120)) as connection:
        yield asking(connection, {})


@pytest.fixture(scope="module")
def real(real_server: RealServer) -> Iterator[Ask]:
    trust = ssl.create_default_context(cafile=str(real_server.outsider.with_name("ca.crt")))
    host = real_server.url.removeprefix("https://")
    with closing(HTTPSConnection(host, context=trust, timeout=120)) as connection:
        ask = asking(connection, {"Authorization": "Bearer token-of-somebody"})
        yield ask
        for plural in ("clusterroles", "clusterrolebindings"):
            ask("DELETE", f"{API}/{plural}?labelSelector=of%3Dtests")


def rule(lot: Lot, *, is_of_cluster: bool) -> JsonObject:
    if is_of_cluster and lot.happens(25):
        return {"verbs": lot.some(("get", "post", "*"), 2), "nonResourceURLs": lot.some(PATHS, 2)}
    named = {"resourceNames": lot.some(NAMES, 2)} if lot.happens(25) else {}
    return {
        "verbs": lot.some(VERBS, 3),
        "apiGroups": lot.some(API_GROUPS, 2),
        "resources": lot.some(RESOURCES, 3),
        **named,
    }


def subject(lot: Lot, space: str) -> JsonObject:
    kind = lot.of(("User", "Group", "ServiceAccount"))
    if kind == "ServiceAccount":
        return {"kind": kind, "name": "robot", "namespace": space or lot.of(SPACES)}
    name = lot.of(USERS) if kind == "User" else lot.of(GROUPS[:4])
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def objects(seed: int, count: int) -> Iterator[tuple[str, JsonObject]]:
    """Roles and bindings of random content, and where they are made."""
    lot = Lot(seed)
    for number in range(count):
        space = lot.of((*SPACES, ""))
        role_space = space if space and lot.happens(60) else ""
        metadata: JsonObject = {"name": f"drawn-{number}", "labels": {"of": "tests"}}
        rules = [rule(lot, is_of_cluster=not role_space) for _ in range(1 + number % 3)]
        kind = "Role" if role_space else "ClusterRole"
        where = f"/namespaces/{role_space}" if role_space else ""
        if not lot.happens(8):  # else the binding dangles
            yield (
                f"{API}{where}/{kind.lower()}s",
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": kind,
                    "metadata": metadata,
                    "rules": rules,
                },
            )
        where = f"/namespaces/{space}" if space else ""
        bound = "RoleBinding" if space else "ClusterRoleBinding"
        yield (
            f"{API}{where}/{bound.lower()}s",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": bound,
                "metadata": metadata,
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": kind,
                    "name": metadata["name"],
                },
                "subjects": [subject(lot, space) for _ in range(1 + number % 2)],
            },
        )


def questions(seed: int, count: int) -> Iterator[JsonObject]:
    lot = Lot(seed)
    for _ in range(count):
        asked: JsonObject = {"user": lot.of(USERS), "groups": lot.some(GROUPS[:4], 2)}
        if lot.happens(3):
            asked["groups"].append("system:masters")
        if lot.happens(20):
            verb = lot.of(("get", "post", "put"))
            yield {**asked, "nonResourceAttributes": {"verb": verb, "path": lot.of(ASKED)}}
            continue
        resource, _, subresource = lot.of(RESOURCES[:8]).partition("/")
        wanted = {
            "verb": lot.of(VERBS[:9]),
            "group": lot.of(API_GROUPS[:4]),
            "resource": resource,
            "subresource": subresource,
            "namespace": lot.of((*SPACES, "")),
            "name": lot.of((*NAMES, "")),
        }
        yield {**asked, "resourceAttributes": {key: it for key, it in wanted.items() if it}}


def bind_author(ask: Ask) -> None:
    """Somebody who may write Roles and bindings, and little else; once more in a namespace."""
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "author", "labels": {"of": "tests"}}
    head: JsonObject = {"apiVersion": f"{group}/v1", "metadata": metadata}
    rules = [
        {"verbs": ["create", "get"], "apiGroups": [group], "resources": ["*"]},
        {"verbs": ["bind"], "apiGroups": ["*"], "resources": ["roles"], "resourceNames": ["one"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/status"]},
    ]
    known = [{"verbs": ["know"], "apiGroups": ["x.io"], "resources": ["roles"]}]
    for where, prefix, granted in (
        ("", "Cluster", rules),
        (f"/namespaces/{SPACES[0]}", "", known),
    ):
        role = {**head, "kind": f"{prefix}Role", "rules": granted}
        bound = {
            **head,
            "kind": f"{prefix}RoleBinding",
            "roleRef": {"apiGroup": group, "kind": f"{prefix}Role", "name": "author"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "author"}],
        }
        for obj in (role, bound):
            status, told = ask("POST", f"{API}{where}/{obj['kind'].lower()}s", obj)
            assert status == 201, told


def wait_known(ask: Ask, space: str) -> None:
    wanted = {"verb": "create", "group": "rbac.authorization.k8s.io", "resource": "roles"}
    if space:
        wanted = {"verb": "know", "group": "x.io", "resource": "roles", "namespace": space}
    head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    body = {**head, "spec": {"user": "author", "resourceAttributes": wanted}}
    for _ in range(6000):
        if ask("POST", REVIEWS, body)[1]["status"]["allowed"]:
            return
    raise AssertionError("the binding was never heard of")


def furnish(*worlds: Ask) -> None:
    for ask in worlds:
        for space in SPACES:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
            ask("POST", "/api/v1/namespaces", body)
        for path, obj in objects(7, 60):
            status, told = ask("POST", path, obj)
            assert status == 201, told
    # A real one hears of what was written a little later, of each kind by itself.
    for ask in worlds:
        bind_author(ask)
        for space in ("", SPACES[0]):
            wait_known(ask, space)


def reasons(server: Server, spec: JsonObject) -> set[str]:
    """All that may be told: which of several bindings a real one names is its chance."""
    rbac = server.app.authorizer
    assert isinstance(rbac, Rbac)
    actor = Actor(spec["user"], groups=tuple(spec["groups"]))
    given = dict(spec.get("resourceAttributes") or spec["nonResourceAttributes"])
    verb = given.pop("verb")
    target = Attributes(**given)
    return {
        f"RBAC: allowed by {grant.told}"
        for grant in rbac.policy.grants_to(actor, target.namespace)
        if any(rule.allows(verb, target) for rule in grant.rules)
    }


def faults(status: JsonObject) -> list[str]:
    """What is said of bindings to Roles that are not there, in whatever order."""
    return sorted(status.get("reason", "").removeprefix("RBAC: ").strip("[]").split(", "))


def test_a_real_one_allows_and_refuses_what_ours_does(server: Server, ours: Ask, real: Ask) -> None:
    furnish(ours, real)
    given = 0
    for spec in questions(11, 2000):
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        here, there = (ask("POST", REVIEWS, body)[1]["status"] for ask in (ours, real))
        assert here.keys() == there.keys(), spec
        assert here["allowed"] == there["allowed"], spec
        if here["allowed"] is False:
            assert faults(here) == faults(there), spec
        elif "reason" in here:
            assert {here["reason"], there["reason"]} <= reasons(server, spec), spec
        given += here["allowed"]
    assert 400 < given < 1600
    check_refusals(ours, real)
    check_grants(ours, real)


def check_refusals(ours: Ask, real: Ask) -> None:
    lot, refused = Lot(3), 0
    for _ in range(150):
        space, name = lot.of(SPACES), lot.of(NAMES)
        path = lot.of(
            (
                f"/api/v1/namespaces/{space}/pods",
                f"/api/v1/namespaces/{space}/pods/{name}",
                f"/api/v1/namespaces/{space}/pods/{name}/status",
                f"/apis/apps/v1/namespaces/{space}/deployments/{name}/scale",
                f"/api/v1/namespaces/{space}",
                "/api/v1/nodes",
                f"/apis/batch/v1/namespaces/{space}/jobs?watch=1&timeoutSeconds=1&resourceVersion=0",
                "/apis/apps/v1/deployments",
                "/metrics",
                "/logs/x",
                f"/apis/none.example.com/v1/namespaces/{space}/things/{name}/status",
                "/apis/none.example.com/v1/things",
                "/api/v1/namespaces/default/things",
                "/apis/none.example.com/v1",
            )
        )
        who = {"user": lot.of(USERS), "groups": tuple(lot.some(GROUPS[:2], 2))}
        method = lot.of(("GET", "DELETE")) if "watch" not in path else "GET"
        there = real(method, f"{path}{'&' if '?' in path else '?'}dryRun=All", **who)
        if there[0] != 403:
            continue
        refused += 1
        here = ours(method, f"{path}{'&' if '?' in path else '?'}dryRun=All", **who)
        assert (here[0], here[1]["message"]) == (403, there[1]["message"]), (method, path, who)
        assert (here[1].get("details") or {}) == there[1]["details"], (method, path, who)
    assert refused > 40


def check_grants(ours: Ask, real: Ask) -> None:
    """Nobody gives away what he does not have."""
    refused = 0
    for path, obj in objects(23, 80):
        body = {**obj, "metadata": {"name": f"tried-{obj['metadata']['name']}"}}
        there = real("POST", f"{path}?dryRun=All", body, user="author")
        here = ours("POST", f"{path}?dryRun=All", body, user="author")
        assert here[0] == there[0], (path, body, here, there)
        if there[0] >= 400:
            refused += 1
            assert here[1]["message"] == there[1]["message"], (path, body)
    assert refused > 20


def test_it_begins_with_the_same_roles(real: Ask) -> None:
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
        listed = real("GET", f"{API}/{kind.lower()}s?labelSelector=of%21%3Dtests")[1]["items"]
        found = {place(each): content(each) for each in listed}
        held = {place(each): content(each) for each in default_roles() if each["kind"] == kind}
        assert held == found


def place(obj: JsonObject) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def content(obj: JsonObject) -> JsonObject:
    members = ("aggregationRule", "rules", "subjects", "roleRef")
    return {name: obj[name] for name in members if obj.get(name) is not None}
