"""Policies in a world: who is bound by them, and that they hold on every way to a write."""

from typing import Any

import pytest

from kubescene import Cluster
from kubescene.api.kinds import POD
from kubescene.cluster import ClusterOptions
from kubescene.errors import ApiError, ForbiddenError, InvalidError
from kubescene.shortcuts import ALL, PLAIN, Shortcuts
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject

GROUP = "admissionregistration.k8s.io/v1"


def policy(
    expression: str, resource: str = "pods", *operations: str, name: str = "p", **more: Any
) -> JsonObject:
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": [*(operations or ("CREATE",))],
        "resources": [resource],
    }
    spec = {"matchConstraints": {"resourceRules": [rule]}, **more}
    spec.setdefault("validations", [{"expression": expression, "message": "no"}])
    kind = "ValidatingAdmissionPolicy"
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}


def binding(name: str = "p", *actions: str) -> JsonObject:
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": [*(actions or ("Deny",))]},
    }


def bound(cluster: Cluster, *args: str, **more: Any) -> Cluster:
    cluster.create(policy(*args, **more))
    cluster.create(binding(more.get("name", "p")))
    return cluster


@pytest.fixture(params=[ALL, PLAIN], ids=["short", "long"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    shortcuts: Shortcuts = request.param
    return Cluster(ClusterOptions(shortcuts=shortcuts))


def test_a_policy_holds_from_its_binding_to_the_end_of_it(cluster: Cluster) -> None:
    cluster.create(policy("object.metadata.name != 'a'"))
    cluster.create(make_pod("a"))
    cluster.delete("pods", "a")
    cluster.create(binding())
    with pytest.raises(InvalidError, match="denied request: no"):
        cluster.create(make_pod("a"))
    cluster.delete("validatingadmissionpolicybindings", "p")
    cluster.create(make_pod("a"))


def test_a_policy_that_changes_is_asked_as_it_is_now(cluster: Cluster) -> None:
    bound(cluster, "false")
    cluster.patch(
        "validatingadmissionpolicies", "p", {"spec": {"validations": [{"expression": "true"}]}}
    )
    cluster.create(make_pod("a"))


def test_forks_have_policies_of_their_own(cluster: Cluster) -> None:
    bound(cluster, "object.metadata.name != 'a'")
    fork = cluster.fork()
    fork.delete("validatingadmissionpolicies", "p")
    fork.create(make_pod("a"))
    with pytest.raises(InvalidError):
        cluster.create(make_pod("a"))


def test_pods_of_controllers_are_asked_about_one_by_one(cluster: Cluster) -> None:
    """Those that were made before are the template of none that come after."""
    cluster.create(make_node("n").cpu("64").memory("64Gi").pods("200"))
    cluster.create(make_deployment("before").replicas(3))
    cluster.settle()
    bound(
        cluster,
        "request.userInfo.username != 'system:serviceaccount:kube-system:replicaset-controller'",
    )
    cluster.create(make_deployment("after").replicas(3))
    cluster.patch("deployments", "before", {"spec": {"replicas": 5}})
    cluster.settle()
    assert len(cluster.list("pods")) == 3
    assert cluster.get("deployments", "after")["status"].get("replicas", 0) == 0


def test_nodes_are_no_templates_either(cluster: Cluster) -> None:
    for number in range(3):
        cluster.create(make_node(f"n{number}").cpu("1").memory("1Gi"))
    bound(cluster, "false", "nodes")
    with pytest.raises(InvalidError):
        cluster.create(make_node("n9").cpu("1").memory("1Gi"))


def test_the_scheduler_may_be_kept_from_a_node(cluster: Cluster) -> None:
    bound(
        cluster,
        "object.target.name != 'n0' || request.userInfo.username != 'system:kube-scheduler'",
        "pods/binding",
    )
    cluster.create(make_node("n0").cpu("4").memory("8Gi"))
    cluster.create(make_pod("a").cpu("1"))
    cluster.settle()
    assert not cluster.pod("a").node


def test_kubelets_may_be_kept_from_a_status(cluster: Cluster) -> None:
    bound(cluster, "request.userInfo.username != 'system:node:n0'", "pods/status", "UPDATE")
    cluster.create(make_node("n0").cpu("4").memory("8Gi"))
    cluster.create(make_pod("a").cpu("1"))
    cluster.settle()
    assert cluster.pod("a").node == "n0"
    assert cluster.get("pods", "a")["status"]["phase"] == "Pending"


def test_deletions_are_asked_about_with_the_old_object(cluster: Cluster) -> None:
    bound(cluster, "object == null && oldObject.metadata.name != 'a'", "pods", "DELETE")
    cluster.create(make_pod("a"))
    cluster.create(make_pod("b"))
    with pytest.raises(InvalidError):
        cluster.delete("pods", "a")
    cluster.delete("pods", "b")


def test_a_namespace_comes_although_its_account_may_not(cluster: Cluster) -> None:
    bound(cluster, "false", "serviceaccounts")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    assert cluster.get("namespaces", "team")


def test_policies_are_not_asked_about_policies(cluster: Cluster) -> None:
    bound(cluster, "false", "*", "*")
    cluster.delete("validatingadmissionpolicybindings", "p")
    cluster.create(make_pod("a"))


def test_a_policy_that_cannot_be_compiled_is_refused(cluster: Cluster) -> None:
    with pytest.raises(InvalidError, match="undeclared reference to 'nothing'"):
        cluster.create(policy("nothing == 1"))


def test_a_budget_is_shared_by_all_expressions_of_a_policy(cluster: Cluster) -> None:
    """Each of the validations stays within a million, and all together do not."""
    text = "object.metadata.annotations.text"
    dear = {"expression": f"{text}.contains({text})"}  # 900 * 900
    bound(cluster, "", validations=[dear] * 12)
    cluster.create(make_pod("a").annotate({"text": "x" * 9000}))
    bound(cluster, "", validations=[dear] * 13, name="q")
    with pytest.raises(InvalidError, match=r"'q' with .*running out of cost budget"):
        cluster.create(make_pod("b").annotate({"text": "x" * 9000}))


def test_variables_are_paid_for_from_the_same_budget(cluster: Cluster) -> None:
    text = "object.metadata.annotations.text"
    variables = [
        {"name": f"v{number}", "expression": f"{text}.contains({text})"} for number in range(13)
    ]
    rules = [{"expression": f"variables.v{number}"} for number in range(13)]
    bound(cluster, "", variables=variables, validations=rules)
    with pytest.raises(InvalidError, match="running out of cost budget"):
        cluster.create(make_pod("a").annotate({"text": "x" * 9000}))


def test_what_is_refused_has_happened_nowhere(cluster: Cluster) -> None:
    bound(cluster, "false")
    revision = cluster.store.revision
    with pytest.raises(ApiError):
        cluster.create(make_pod("a"))
    assert cluster.store.revision == revision
    assert not cluster.store.count(cluster.registry.type_of(POD).group_resource)


def test_reasons_are_codes(cluster: Cluster) -> None:
    bound(cluster, "", validations=[{"expression": "false", "reason": "Forbidden"}])
    with pytest.raises(ForbiddenError) as refused:
        cluster.create(make_pod("a"))
    assert refused.value.to_status()["details"]["causes"] == [
        {
            "message": "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed "
            "expression: false"
        }
    ]


def mutating(expression: str, resource: str = "pods", *operations: str) -> list[JsonObject]:
    """A policy that changes objects, and its binding."""
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": [*(operations or ("CREATE",))],
        "resources": [resource],
    }
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "mutations": [mutation],
        "reinvocationPolicy": "Never",
    }
    return [
        {
            "apiVersion": GROUP,
            "kind": f"MutatingAdmissionPolicy{suffix}",
            "metadata": {"name": "m"},
            "spec": each,
        }
        for suffix, each in (("", spec), ("Binding", {"policyName": "m"}))
    ]


def test_pods_of_controllers_are_changed_one_by_one(cluster: Cluster) -> None:
    cluster.create(make_node("n").cpu("64").memory("64Gi"))
    cluster.create(make_deployment("before").replicas(2))
    cluster.settle()
    annotations = "{'of': object.metadata.generateName}"
    for each in mutating("Object{metadata: Object.metadata{annotations: " + annotations + "}}"):
        cluster.create(each)
    cluster.patch("deployments", "before", {"spec": {"replicas": 4}})
    cluster.settle()
    noted = [it for it in cluster.list("pods") if it["metadata"].get("annotations")]
    assert len(noted) == 2


def test_a_mutation_decides_where_a_pod_goes(cluster: Cluster) -> None:
    cluster.create(make_node("n0").cpu("4").memory("8Gi"))
    cluster.create(make_node("n1").cpu("8").memory("16Gi"))
    for each in mutating("Object{spec: Object.spec{nodeName: 'n0'}}"):
        cluster.create(each)
    cluster.create(make_pod("a").cpu("1"))
    cluster.settle()
    assert cluster.pod("a").node == "n0"


def test_forks_mutate_alike(cluster: Cluster) -> None:
    for each in mutating("Object{metadata: Object.metadata{labels: {'team': 'a'}}}"):
        cluster.create(each)
    for world in (cluster.fork(), cluster):
        world.create(make_pod("a"))
        assert world.get("pods", "a")["metadata"]["labels"] == {"team": "a"}
