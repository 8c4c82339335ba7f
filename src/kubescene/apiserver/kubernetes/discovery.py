"""Discovery: how clients learn which resources a server has.

Two forms of the same facts. The aggregated form answers ``/api`` and ``/apis`` with everything at
once, to clients whose ``Accept`` names ``APIGroupDiscoveryList`` (kubectl 1.27 and later); they
recognise it only by the same ``g``, ``v`` and ``as`` parameters in ``Content-Type``. The legacy
form spreads over ``/api``, ``/apis`` and one document for each group and group version; kopf,
kr8s and others read nothing else. Negotiation never fails: who asks for a form that does not
exist gets legacy JSON.

All documents are derived from the scheme alone, encoded once, and kept until the scheme changes.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from kubescene.api.scheme import GroupVersionKind, ResourceType, Scheme, Subresource
from kubescene.types import JsonObject

JSON = "application/json"
AGGREGATED_VERSIONS = ("v2", "v2beta1")

_AGGREGATED_GROUP = "apidiscovery.k8s.io"
_AGGREGATED_KIND = "APIGroupDiscoveryList"
_JSON_RANGES = (JSON, "application/*", "*/*")
_ROOTS = ("/api", "/apis")


@dataclass(frozen=True, slots=True)
class DiscoveryReply:
    """One encoded document. ``etag`` is the header value, quotes included."""

    body: bytes
    content_type: str
    etag: str


class DiscoveryDocuments:
    """The discovery documents of a scheme.

    ``server_address`` (``host:port``) is what ``/api`` tells clients to connect to; without
    one it names no address.
    """

    def __init__(
        self, scheme: Scheme, *, server_address: str = "", more: Sequence[ResourceType] = ()
    ) -> None:
        """``more`` is served beside the scheme, and not stored."""
        self._current = scheme
        self._more = more
        self._scheme = self._listed()
        self._server_address = server_address
        self._generation = scheme.generation
        self._replies: dict[tuple[str, str], DiscoveryReply] = {}

    def document(self, path: str, accept: str = JSON) -> DiscoveryReply | None:
        """The document at ``path`` in the form ``accept`` prefers; None if there is no such path.

        A trailing slash makes no difference, neither do forms that only ``/api`` and ``/apis``
        have when another path is asked for them.
        """
        if self._generation != self._current.generation:
            # A copy, so that kinds that come and go meanwhile do not tear a document apart.
            self._replies.clear()
            self._generation = self._current.generation
            self._scheme = self._listed()
        path = path.rstrip("/")
        if not _names_discovery(path):
            return None
        form = preferred_form(accept) if path in _ROOTS else ""
        if found := self._replies.get((path, form)):
            return found
        reply = self._build(path, form)
        if reply is not None:
            self._replies[path, form] = reply
        return reply

    def _listed(self) -> Scheme:
        scheme = self._current.copy()
        for each in self._more:
            scheme.register(each)
        return scheme

    def _build(self, path: str, form: str) -> DiscoveryReply | None:
        if form:
            return _encode(self._aggregated(path, form), aggregated_content_type(form))
        document = self._legacy(path)
        return None if document is None else _encode(document, JSON)

    def _aggregated(self, path: str, version: str) -> JsonObject:
        groups = [group for group in self._scheme.groups() if (group == "") == (path == "/api")]
        return {
            "kind": _AGGREGATED_KIND,
            "apiVersion": f"{_AGGREGATED_GROUP}/{version}",
            "metadata": {},
            "items": [_group_discovery(self._scheme, group) for group in groups],
        }

    def _legacy(self, path: str) -> JsonObject | None:
        match path.split("/")[1:]:
            case ["api"]:
                return self._core_versions()
            case ["apis"]:
                return self._group_list()
            case ["api", version]:
                return self._resource_list("", version)
            case ["apis", group] if group in self._scheme.groups():
                return {"kind": "APIGroup", "apiVersion": "v1", **_group(self._scheme, group)}
            case ["apis", group, version] if group:
                return self._resource_list(group, version)
        return None

    def _core_versions(self) -> JsonObject:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._server_address}
        return {
            "kind": "APIVersions",
            "versions": self._scheme.versions(""),
            "serverAddressByClientCIDRs": [address] if self._server_address else [],
        }

    def _group_list(self) -> JsonObject:
        groups = [_group(self._scheme, group) for group in self._scheme.groups() if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _resource_list(self, group: str, version: str) -> JsonObject | None:
        types = self._scheme.resources(group, version)
        if not types:
            return None
        return {
            "kind": "APIResourceList",
            # The core group predates the field; kube-apiserver leaves it out there to this day.
            **({"apiVersion": "v1"} if group else {}),
            "groupVersion": types[0].api_version,
            "resources": [row for served in types for row in _resource_rows(served)],
        }


class _AcceptClause(NamedTuple):
    media_type: str
    parameters: dict[str, str]

    @property
    def quality(self) -> float:
        try:
            return float(self.parameters.get("q", "1"))
        except ValueError:
            return 0.0


def preferred_form(accept: str) -> str:
    """Which aggregated version ``accept`` prefers; empty for the legacy form.

    Higher ``q`` first, then the order of the header.
    """
    clauses = [_clause(text) for text in accept.split(",")]
    for clause in sorted(clauses, key=lambda c: -c.quality):
        if clause.quality <= 0 or clause.media_type not in _JSON_RANGES:
            continue
        if "as" not in clause.parameters:
            return ""
        if form := _aggregated_form(clause.parameters):
            return form
    return ""


def aggregated_content_type(version: str) -> str:
    return f"{JSON};g={_AGGREGATED_GROUP};v={version};as={_AGGREGATED_KIND}"


def storage_version_hash(gvk: GroupVersionKind) -> str:
    """What tells clients that objects moved to another stored version, in the form of upstream."""
    digest = hashlib.sha256("/".join(gvk).encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _names_discovery(path: str) -> bool:
    parts = path.split("/")
    return len(parts) <= 4 and parts[0] == "" and parts[1:2] in (["api"], ["apis"])


def _clause(text: str) -> _AcceptClause:
    media_type, *rest = (part.strip() for part in text.split(";"))
    pairs = (part.partition("=") for part in rest)
    return _AcceptClause(media_type.lower(), {key: value for key, _, value in pairs})


def _aggregated_form(parameters: dict[str, str]) -> str:
    version = parameters.get("v", "")
    wanted = (parameters.get("g"), parameters["as"])
    known = wanted == (_AGGREGATED_GROUP, _AGGREGATED_KIND) and version in AGGREGATED_VERSIONS
    return version if known else ""


def _encode(document: JsonObject, content_type: str) -> DiscoveryReply:
    body = orjson.dumps(document)
    return DiscoveryReply(body, content_type, f'"{hashlib.sha256(body).hexdigest()}"')


def _group(scheme: Scheme, group: str) -> JsonObject:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in scheme.versions(group)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource_rows(served: ResourceType) -> list[JsonObject]:
    return [_resource_row(served), *(_subresource_row(served, s) for s in _subresources(served))]


def _resource_row(served: ResourceType) -> JsonObject:
    row: JsonObject = {
        "name": served.plural,
        "singularName": _singular(served),
        "namespaced": served.namespaced,
        "kind": served.kind,
        "verbs": served.verbs,
    }
    row |= _names(served)
    if "watch" in served.verbs:
        row["storageVersionHash"] = storage_version_hash(served.storage_gvk)
    return row


def _subresource_row(served: ResourceType, subresource: Subresource) -> JsonObject:
    gvk = subresource.gvk
    row: JsonObject = {
        "name": f"{served.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": served.namespaced,
        "kind": gvk.kind,
        "verbs": subresource.verbs,
    }
    if gvk[:2] != served.gvk[:2]:
        row |= {"group": gvk.group, "version": gvk.version}
    return row


def _group_discovery(scheme: Scheme, group: str) -> JsonObject:
    versions = [
        {
            "version": version,
            "resources": [_resource_discovery(t) for t in scheme.resources(group, version)],
            "freshness": "Current",
        }
        for version in scheme.versions(group)
    ]
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _resource_discovery(served: ResourceType) -> JsonObject:
    row: JsonObject = {
        "resource": served.plural,
        "responseKind": _response_kind(served, served.gvk),
        "scope": "Namespaced" if served.namespaced else "Cluster",
        "singularResource": _singular(served),
        "verbs": served.verbs,
    }
    row |= _names(served)
    if subresources := _subresources(served):
        row["subresources"] = [
            {
                "subresource": subresource.name,
                "responseKind": _response_kind(served, subresource.gvk),
                "verbs": subresource.verbs,
            }
            for subresource in subresources
        ]
    return row


def _response_kind(served: ResourceType, gvk: GroupVersionKind) -> JsonObject:
    """Empty group and version mean those of the list; only custom resources repeat them."""
    if gvk[:2] == served.gvk[:2] and not served.custom:
        return {"group": "", "version": "", "kind": gvk.kind}
    return gvk._asdict()


def _names(served: ResourceType) -> JsonObject:
    names = {"shortNames": served.short_names, "categories": served.categories}
    return {key: value for key, value in names.items() if value}


def _singular(served: ResourceType) -> str:
    return served.singular or served.kind.lower()


def _subresources(served: ResourceType) -> list[Subresource]:
    return [served.subresource(name) for name in sorted(served.subresources)]
