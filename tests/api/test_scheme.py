"""Which kinds are served, under which names, in which order."""

import pytest

from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import (
    ALL_VERBS,
    GroupResource,
    GroupVersionKind,
    ResourceType,
    Scheme,
    version_order,
)
from kubescene.errors import BadRequestError, NotFoundError

SCHEME = builtin_scheme()
WIDGET = ResourceType(
    GroupVersionKind("example.com", "v1", "Widget"),
    plural="widgets",
    namespaced=True,
    singular="widget",
    short_names=("po",),
    subresources=frozenset({"status", "scale"}),
    custom=True,
)


def test_all_resources_of_v1_36_are_known() -> None:
    assert len(SCHEME) == 95
    assert sum(t.gvk.group == "" for t in SCHEME) == 17


def test_a_default_server_serves_stable_versions_only() -> None:
    stable = builtin_scheme(prereleases=False)
    assert {t.gvk.version for t in stable} == {"v1", "v2"}
    assert len(stable) == 68
    assert "scheduling.k8s.io" in stable.groups()
    assert "internal.apiserver.k8s.io" not in stable.groups()


@pytest.mark.parametrize(
    ("short", "plural"),
    [
        ("po", "pods"),
        ("no", "nodes"),
        ("ns", "namespaces"),
        ("svc", "services"),
        ("ep", "endpoints"),
        ("cm", "configmaps"),
        ("sa", "serviceaccounts"),
        ("rc", "replicationcontrollers"),
        ("quota", "resourcequotas"),
        ("limits", "limitranges"),
        ("pv", "persistentvolumes"),
        ("pvc", "persistentvolumeclaims"),
        ("ev", "events"),
        ("cs", "componentstatuses"),
        ("deploy", "deployments"),
        ("rs", "replicasets"),
        ("sts", "statefulsets"),
        ("ds", "daemonsets"),
        ("cj", "cronjobs"),
        ("hpa", "horizontalpodautoscalers"),
        ("pdb", "poddisruptionbudgets"),
        ("pc", "priorityclasses"),
        ("ing", "ingresses"),
        ("netpol", "networkpolicies"),
        ("ip", "ipaddresses"),
        ("sc", "storageclasses"),
        ("vac", "volumeattributesclasses"),
        ("csr", "certificatesigningrequests"),
        ("crd", "customresourcedefinitions"),
        ("crds", "customresourcedefinitions"),
    ],
)
def test_short_names_resolve(short: str, plural: str) -> None:
    assert SCHEME.resolve(short).plural == plural


def test_no_other_short_names_exist() -> None:
    assert len({name for t in SCHEME for name in t.short_names}) == 30


def test_category_all_holds_what_kubectl_get_all_shows() -> None:
    shown = {t.plural for t in SCHEME if "all" in t.categories}
    assert shown == {
        "cronjobs",
        "daemonsets",
        "deployments",
        "horizontalpodautoscalers",
        "jobs",
        "pods",
        "replicasets",
        "replicationcontrollers",
        "services",
        "statefulsets",
    }


@pytest.mark.parametrize(
    ("name", "verbs"),
    [
        ("pods", ALL_VERBS),
        ("namespaces", ("create", "delete", "get", "list", "patch", "update", "watch")),
        ("componentstatuses", ("get", "list")),
        ("bindings", ("create",)),
        ("tokenreviews", ("create",)),
        ("selfsubjectaccessreviews", ("create",)),
    ],
)
def test_verbs(name: str, verbs: tuple[str, ...]) -> None:
    assert SCHEME.resolve(name).verbs == verbs


@pytest.mark.parametrize(
    ("name", "namespaced"),
    [
        ("pods", True),
        ("nodes", False),
        ("namespaces", False),
        ("localsubjectaccessreviews", True),
        ("subjectaccessreviews", False),
        ("persistentvolumes", False),
        ("csistoragecapacities", True),
        ("resourceslices", False),
        ("leases", True),
    ],
)
def test_scope(name: str, namespaced: bool) -> None:
    assert SCHEME.resolve(name).namespaced is namespaced


def test_pods_have_all_their_subresources() -> None:
    assert SCHEME.resolve("pods").subresources == {
        "attach",
        "binding",
        "ephemeralcontainers",
        "eviction",
        "exec",
        "log",
        "portforward",
        "proxy",
        "resize",
        "status",
    }


@pytest.mark.parametrize(
    ("resource", "subresource", "body", "verbs"),
    [
        ("pods", "eviction", "policy/v1/Eviction", "create"),
        ("pods", "binding", "v1/Binding", "create"),
        ("pods", "log", "v1/Pod", "get"),
        ("pods", "exec", "v1/PodExecOptions", "create get"),
        ("pods", "proxy", "v1/PodProxyOptions", "create delete get patch update"),
        ("deployments", "scale", "autoscaling/v1/Scale", "get patch update"),
        ("replicationcontrollers", "scale", "autoscaling/v1/Scale", "get patch update"),
        ("serviceaccounts", "token", "authentication.k8s.io/v1/TokenRequest", "create"),
        ("namespaces", "finalize", "v1/Namespace", "update"),
        (
            "certificatesigningrequests",
            "approval",
            "certificates.k8s.io/v1/CertificateSigningRequest",
            "get patch update",
        ),
    ],
)
def test_subresources_know_their_body(
    resource: str, subresource: str, body: str, verbs: str
) -> None:
    found = SCHEME.resolve(resource).subresource(subresource)
    assert (f"{found.gvk.api_version}/{found.gvk.kind}", " ".join(found.verbs)) == (body, verbs)


def test_custom_types_get_the_usual_subresources() -> None:
    assert WIDGET.subresource("status").gvk == WIDGET.gvk
    assert WIDGET.subresource("scale").gvk == GroupVersionKind("autoscaling", "v1", "Scale")
    with pytest.raises(NotFoundError):
        WIDGET.subresource("log")


@pytest.mark.parametrize(
    ("api_version", "kind", "stored"),
    [
        ("v1", "Pod", "v1"),
        ("v1", "Event", "v1"),
        ("events.k8s.io/v1", "Event", "v1"),
        ("autoscaling/v1", "HorizontalPodAutoscaler", "autoscaling/v2"),
        ("autoscaling/v2", "HorizontalPodAutoscaler", "autoscaling/v2"),
        ("resource.k8s.io/v1beta1", "ResourceClaim", "resource.k8s.io/v1"),
        ("resource.k8s.io/v1beta2", "DeviceTaintRule", "resource.k8s.io/v1alpha3"),
    ],
)
def test_storage_version(api_version: str, kind: str, stored: str) -> None:
    assert SCHEME.of_kind(api_version, kind).storage_gvk.api_version == stored


def test_events_of_both_groups_share_one_place_but_not_one_name() -> None:
    events = SCHEME.of_kind("events.k8s.io/v1", "Event")
    assert events.group_resource == GroupResource("", "events")
    assert str(events.named_resource) == "events.events.k8s.io"
    served = {t.api_version for t in SCHEME if t.group_resource == events.group_resource}
    assert served == {"v1", "events.k8s.io/v1"}


def test_what_is_stored_is_served() -> None:
    for scheme in (SCHEME, builtin_scheme(prereleases=False)):
        assert all(t.storage_gvk in scheme for t in scheme)


def test_preferred_version_comes_first() -> None:
    assert SCHEME.versions("autoscaling") == ["v2", "v1"]
    assert SCHEME.versions("resource.k8s.io") == ["v1", "v1beta2", "v1beta1", "v1alpha3"]
    assert SCHEME.resolve("hpa").api_version == "autoscaling/v2"


def test_groups_stand_in_discovery_order_and_custom_ones_last() -> None:
    scheme = builtin_scheme()
    scheme.register(WIDGET)
    groups = scheme.groups()
    assert groups[:4] == ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert groups[-2:] == ["storagemigration.k8s.io", "example.com"]


def test_full_names_win_over_short_names_and_groups_can_be_given() -> None:
    scheme = builtin_scheme()
    scheme.register(WIDGET)
    assert scheme.resolve("po").kind == "Pod"
    assert scheme.resolve("po.example.com") is WIDGET
    assert scheme.resolve("events.events.k8s.io").gvk.group == "events.k8s.io"
    assert scheme.resolve("Deployment").plural == "deployments"
    with pytest.raises(NotFoundError, match='doesn\'t have a resource type "gadgets"'):
        scheme.resolve("gadgets")


def test_each_scheme_can_be_changed_on_its_own() -> None:
    changed = builtin_scheme()
    changed.register(WIDGET)
    changed.unregister(GroupVersionKind("", "v1", "Pod"))
    fresh = builtin_scheme()
    assert WIDGET.gvk not in fresh
    assert GroupVersionKind("", "v1", "Pod") in fresh


def test_registering_again_replaces_even_the_plural() -> None:
    scheme = Scheme([WIDGET])
    scheme.register(ResourceType(WIDGET.gvk, plural="widgetry", namespaced=True))
    assert scheme.of_path("example.com", "v1", "widgetry").gvk == WIDGET.gvk
    with pytest.raises(NotFoundError):
        scheme.of_path("example.com", "v1", "widgets")


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(BadRequestError, match='no kind "Pod" is registered for version "v2"'):
        SCHEME.of_kind("v2", "Pod")


def test_versions_sort_as_kubernetes_does() -> None:
    versions = ["v1alpha1", "foo1", "v10", "v1", "v2beta1", "v11beta2", "v2", "v3alpha1", "v1beta1"]
    assert sorted(versions, key=version_order) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v2beta1",
        "v1beta1",
        "v3alpha1",
        "v1alpha1",
        "foo1",
    ]
