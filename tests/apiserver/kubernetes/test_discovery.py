"""Discovery says what kube-apiserver v1.36 says, in the form the client asks for.

``data/discovery_v1_36.json`` holds a digest of each document that Kubernetes publishes
(``api/discovery`` at v1.36.4), taken by `digest`.
"""

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import GroupVersionKind, ResourceType, Scheme
from kubescene.apiserver.kubernetes.discovery import (
    JSON,
    DiscoveryDocuments,
    DiscoveryReply,
    aggregated_content_type,
    preferred_form,
    storage_version_hash,
)

PUBLISHED: dict[str, str] = orjson.loads(
    (Path(__file__).parent / "data" / "discovery_v1_36.json").read_bytes()
)
V2 = aggregated_content_type("v2")
V2BETA1 = aggregated_content_type("v2beta1")
ADDRESS = "10.10.10.10:8050"

WIDGET = ResourceType(
    GroupVersionKind("example.dev", "v1", "Widget"),
    plural="widgets",
    namespaced=True,
    singular="widget",
    short_names=("wd",),
    categories=("all",),
    subresources=frozenset({"scale", "status"}),
    custom=True,
)


def digest(document: Any) -> str:
    """Of the document without its storage version hashes, which follow from where we store."""
    for resource in document.get("resources", ()):
        resource.pop("storageVersionHash", None)
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


@pytest.fixture
def scheme() -> Scheme:
    return builtin_scheme()


@pytest.fixture
def discovery(scheme: Scheme) -> DiscoveryDocuments:
    return DiscoveryDocuments(scheme, server_address=ADDRESS)


def get(discovery: DiscoveryDocuments, path: str, accept: str = JSON) -> Any:
    return orjson.loads(reply(discovery, path, accept).body)


def reply(discovery: DiscoveryDocuments, path: str, accept: str = JSON) -> DiscoveryReply:
    found = discovery.document(path, accept)
    assert found is not None
    return found


@pytest.mark.parametrize("path", [path for path in PUBLISHED if path != "aggregated"])
def test_legacy_documents_are_those_of_kubernetes(discovery: DiscoveryDocuments, path: str) -> None:
    assert digest(get(discovery, path)) == PUBLISHED[path]


def test_the_aggregated_document_is_that_of_kubernetes(discovery: DiscoveryDocuments) -> None:
    assert digest(get(discovery, "/apis", V2)) == PUBLISHED["aggregated"]


def test_the_core_group_has_an_aggregated_document_of_its_own(
    discovery: DiscoveryDocuments,
) -> None:
    (group,) = get(discovery, "/api", V2)["items"]
    (version,) = group["versions"]
    assert (group["metadata"], version["version"], version["freshness"]) == ({}, "v1", "Current")
    pods = next(r for r in version["resources"] if r["resource"] == "pods")
    assert pods["scope"] == "Namespaced"
    eviction = next(s for s in pods["subresources"] if s["subresource"] == "eviction")
    assert eviction["responseKind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        pytest.param(f"{V2},{V2BETA1},application/json", "v2", id="kubectl 1.30"),
        pytest.param(f"{V2BETA1},application/json", "v2beta1", id="kubectl 1.27"),
        pytest.param("application/json, */*", "", id="client-go, legacy"),
        pytest.param("*/*", "", id="kr8s"),
        pytest.param("", "", id="no header"),
        pytest.param(f"application/json;q=0.5, {V2BETA1};q=0.9", "v2beta1", id="by quality"),
        pytest.param(f"{V2};q=0, {V2BETA1}", "v2beta1", id="refused by quality"),
        pytest.param(f"application/vnd.kubernetes.protobuf,{V2}", "v2", id="no protobuf here"),
        pytest.param("application/json;as=Table;g=meta.k8s.io;v=v1", "", id="another form"),
        pytest.param(V2.replace("v=v2", "v=v3") + "," + V2BETA1, "v2beta1", id="a later version"),
        pytest.param(V2.replace(";", "; "), "v2", id="spaces"),
    ],
)
def test_the_preferred_form_is_negotiated(accept: str, form: str) -> None:
    assert preferred_form(accept) == form


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_replies_name_their_form(
    discovery: DiscoveryDocuments, path: str, version: str
) -> None:
    asked = aggregated_content_type(version)
    found = reply(discovery, path, asked)
    assert found.content_type == asked
    assert orjson.loads(found.body)["apiVersion"] == f"apidiscovery.k8s.io/{version}"


def test_only_the_roots_have_an_aggregated_form(discovery: DiscoveryDocuments) -> None:
    found = reply(discovery, "/apis/apps/v1", V2)
    assert found.content_type == JSON
    assert orjson.loads(found.body)["kind"] == "APIResourceList"


@pytest.mark.parametrize(
    "path",
    ["", "/", "/apix", "/api/v2", "/apis/nope", "/apis/apps/v9", "/apis//v1", "/api/v1/pods"],
)
def test_unknown_paths_have_no_document(discovery: DiscoveryDocuments, path: str) -> None:
    assert discovery.document(path) is None


def test_a_trailing_slash_makes_no_difference(discovery: DiscoveryDocuments) -> None:
    assert discovery.document("/apis/apps/v1/") == discovery.document("/apis/apps/v1")


def test_documents_are_kept_until_the_scheme_changes(
    scheme: Scheme, discovery: DiscoveryDocuments
) -> None:
    before = reply(discovery, "/apis", V2)
    assert reply(discovery, "/apis", V2) is before
    scheme.register(WIDGET)
    during = reply(discovery, "/apis", V2)
    assert during.etag != before.etag
    assert orjson.loads(during.body)["items"][-1]["metadata"]["name"] == "example.dev"
    scheme.unregister(WIDGET.gvk)
    assert reply(discovery, "/apis", V2) == before
    assert discovery.document("/apis/example.dev/v1") is None


def test_custom_resources_are_discovered(scheme: Scheme, discovery: DiscoveryDocuments) -> None:
    scheme.register(WIDGET)
    widgets, scale, status = get(discovery, "/apis/example.dev/v1")["resources"]
    assert widgets["shortNames"] == ["wd"]
    assert widgets["categories"] == ["all"]
    assert (scale["name"], scale["group"], scale["kind"]) == (
        "widgets/scale",
        "autoscaling",
        "Scale",
    )
    assert (status["name"], status["kind"], status["verbs"]) == (
        "widgets/status",
        "Widget",
        ["get", "patch", "update"],
    )
    group = get(discovery, "/apis/example.dev")
    assert group["preferredVersion"] == {"groupVersion": "example.dev/v1", "version": "v1"}
    aggregated = get(discovery, "/apis", V2)["items"][-1]["versions"][0]["resources"][0]
    assert aggregated["responseKind"] == WIDGET.gvk._asdict()


def test_a_default_server_shows_stable_versions_only() -> None:
    stable = DiscoveryDocuments(builtin_scheme(prereleases=False))
    groups = get(stable, "/apis")["groups"]
    assert {v["version"] for group in groups for v in group["versions"]} == {"v1", "v2"}
    assert get(stable, "/api")["serverAddressByClientCIDRs"] == []


def test_storage_version_hashes_are_those_of_kubernetes() -> None:
    assert storage_version_hash(GroupVersionKind("", "v1", "ConfigMap")) == "qFsyl6wFWjQ="
    stored = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
    assert storage_version_hash(stored) == "qwQve8ut294="
