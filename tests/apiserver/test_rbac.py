"""Roles and their bindings say who may do what (`kubescene serve --rbac`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from apiserver.http import PODS, Http, pod
from apiserver.scenarios import play
from conformance.kubectl import MISSING, find_kubectls
from kubescene.apiserver.server import Server
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from stopping import Retire

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTH = "/apis/authorization.k8s.io/v1"
ALICE = {"Impersonate-User": "alice"}


@pytest.fixture
def server(retire: Retire) -> Iterator[Server]:
    served = Server(port=0, rbac=True)
    served.start()
    yield served
    retire(served)


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    client = Http(server.host, server.port)
    yield client
    client.close()


def bind(
    http: Http, role: str, *, kind: str = "User", name: str = "alice", space: str = ""
) -> None:
    """A ClusterRole for somebody, everywhere or in a namespace."""
    where = f"/namespaces/{space}" if space else ""
    bound = "RoleBinding" if space else "ClusterRoleBinding"
    group = "rbac.authorization.k8s.io"
    made = http.post(
        f"{RBAC}{where}/{bound.lower()}s",
        {
            "apiVersion": f"{group}/v1",
            "kind": bound,
            "metadata": {"name": f"{name}-{role}".replace(":", "-")},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": group, "kind": kind, "name": name}],
        },
    )
    assert made.status == 201, made.message


def rules(http: Http, role: str) -> list[JsonObject]:
    found: list[JsonObject] = http.get(f"{RBAC}/clusterroles/{role}").json.get("rules") or []
    return found


def settled(http: Http, role: str, resource: str = "pods") -> list[JsonObject]:
    """The rules once that is among them: a role gathers from roles that gather themselves."""
    for _ in range(6000):
        found = rules(http, role)
        if any(resource in each.get("resources", ()) for each in found):
            return found
    raise AssertionError(f"{role} gathered nothing about {resource}: {found}")


def test_whoever_is_bound_to_nothing_may_do_nothing(http: Http) -> None:
    assert http.get(PODS).status == 200
    refused = http.get(f"/as/alice{PODS}")
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert refused.message == (
        'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the '
        'namespace "default"'
    )
    assert http.get("/as/alice/version").status == 200  # as everybody may who is known


def test_a_binding_counts_as_soon_as_it_is_there_and_no_longer(http: Http) -> None:
    settled(http, "edit")
    bind(http, "edit", space="default")
    assert http.post(f"/as/alice{PODS}", pod("a")).status == 201
    elsewhere = PODS.replace("default", "kube-system")
    assert http.get(f"/as/alice{elsewhere}").status == 403
    assert http.get("/as/alice/api/v1/nodes").status == 403
    http.delete(f"{RBAC}/namespaces/default/rolebindings/alice-edit")
    assert http.get(f"/as/alice{PODS}").status == 403


def test_roles_gather_the_rules_of_those_that_labels_choose(http: Http) -> None:
    before = len(settled(http, "view"))
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "things",
            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
        },
        "rules": [{"apiGroups": ["x.io"], "resources": ["things"], "verbs": ["get"]}],
    }
    assert http.post(f"{RBAC}/clusterroles", role).status == 201
    for _ in range(6000):
        if len(rules(http, "view")) > before:
            break
    assert role["rules"][0] in rules(http, "view")  # type: ignore[index]


def test_groups_are_known_here(http: Http) -> None:
    bind(http, "cluster-admin", kind="Group", name="ops")
    asked = {"Impersonate-User": "alice", "Impersonate-Group": "ops"}
    assert http.request("GET", PODS, headers=ALICE).status == 403
    assert http.request("GET", PODS, headers=asked).status == 200
    who = http.request(
        "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=asked
    )
    assert who.json["status"]["userInfo"] == {
        "username": "alice",
        "groups": ["ops", "system:authenticated"],
    }


def test_only_whoever_may_speaks_for_others(http: Http) -> None:
    refused = http.request("GET", f"/as/alice{PODS}", headers={"Impersonate-User": "bob"})
    assert refused.message == (
        'users "bob" is forbidden: User "alice" cannot impersonate resource "users" in API group '
        '"" at the cluster scope'
    )


def test_reviews_say_what_requests_would_meet(http: Http) -> None:
    bind(http, "system:node-problem-detector")
    asked = {"resourceAttributes": {"verb": "get", "resource": "nodes"}}
    status = http.post(f"/as/alice{AUTH}/selfsubjectaccessreviews", {"spec": asked}).json["status"]
    assert status == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "alice-system-node-problem-detector" of '
        'ClusterRole "system:node-problem-detector" to User "alice"',
    }
    named = {"spec": {"namespace": "default"}}
    told = http.post(f"/as/alice{AUTH}/selfsubjectrulesreviews", named).json["status"]
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]} in told["resourceRules"]
    assert told["nonResourceRules"]


def test_nobody_gives_away_what_is_not_theirs(http: Http) -> None:
    settled(http, "admin")
    bind(http, "admin", space="default")
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    roles = f"/as/alice{RBAC}/namespaces/default/roles"
    assert http.post(roles, role).status == 201
    more = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
    refused = http.request("PUT", f"{roles}/r", {**role, "rules": [more]})
    assert "attempting to grant RBAC permissions not currently held" in refused.message
    patch = {"rules": [more]}
    content = "application/merge-patch+json"
    assert http.request("PATCH", f"{roles}/r", patch, content_type=content).status == 403
    assert http.get(f"{RBAC}/namespaces/default/roles/r").json["rules"] == role["rules"]


def test_roles_outlive_a_scenario_that_is_played(http: Http) -> None:
    bind(http, "cluster-admin")
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("4")).create(make_pod("p")).done()
    assert play(http, scenario.build())["phase"] == "Succeeded"
    assert http.get("/as/alice/api/v1/nodes").status == 200
    assert http.get("/as/bob/api/v1/nodes").status == 403


def test_kubectl_asks_what_it_may(server: Server, http: Http, tmp_path: Path) -> None:
    if not (found := find_kubectls()):
        pytest.skip(MISSING)
    config = tmp_path / "alice.yaml"
    config.write_text(yaml.safe_dump(make_kubeconfig(server.url, as_user="alice")))
    kubectl = found[0].towards(config, tmp_path)
    assert kubectl("auth", "can-i", "list", "pods", fails=True).startswith("no")
    assert "Forbidden" in kubectl("get", "pods", fails=True)
    settled(http, "view")
    bind(http, "view", space="default")
    assert kubectl("auth", "can-i", "list", "pods").startswith("yes")
    assert "configmaps" in kubectl("auth", "can-i", "--list")
    assert "No resources found" in kubectl("get", "pods")
    assert kubectl("auth", "can-i", "delete", "pods", fails=True).startswith("no")
