"""Which path belongs to a kind: asked once for each group version, again for kinds unheard of."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote

from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client.http.records import ReplyForm
from kubescene.client.http.requests import Reply, Requests
from kubescene.client.http.wire import MalformedResponseError
from kubescene.errors import BadRequestError, NotFoundError
from kubescene.types import JsonObject

DEFAULT_NAMESPACE = "default"
SHADOWS = frozenset({GroupResource("events.k8s.io", "events")})
"""The same objects as another resource: who follows everything follows them once."""


@dataclass(frozen=True, slots=True)
class ApiResource:
    """One kind as the server serves it."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    verbs: tuple[str, ...]
    resource: GroupResource = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "resource", GroupResource(self.gvk.group, self.plural))

    @property
    def form(self) -> ReplyForm:
        return ReplyForm(self.resource, self.gvk)

    @property
    def can_be_watched(self) -> bool:
        return "list" in self.verbs and "watch" in self.verbs

    def place(self, namespace: str) -> str:
        """The namespace that objects of this kind live in if this one is named."""
        return (namespace or DEFAULT_NAMESPACE) if self.namespaced else ""

    def collection(self, namespace: str = "") -> str:
        """The path of all objects, of one namespace if named."""
        group, version, _ = self.gvk
        base = f"/apis/{segment(group)}/{version}" if group else f"/api/{version}"
        if not (namespace and self.namespaced):
            return f"{base}/{self.plural}"
        self.check_name(namespace)
        return f"{base}/namespaces/{segment(namespace)}/{self.plural}"

    def path(self, namespace: str, name: str, subresource: str = "") -> str:
        """The path of one object; 404 for a name that no object can have."""
        self.check_name(name)
        path = f"{self.collection(self.place(namespace))}/{segment(name)}"
        return f"{path}/{subresource}" if subresource else path

    def check_name(self, name: str) -> None:
        """A name must not lead to another path than its own."""
        if name in ("", ".", "..") or "/" in name or "%" in name:
            raise NotFoundError(
                f'{self.resource} "{name}" not found',
                name=name,
                group=self.gvk.group,
                kind=self.plural,
            )


Kinds: TypeAlias = dict[str, ApiResource]


class Discovery:
    """The resources of one server, as far as they were asked for."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._known: dict[tuple[str, str], Kinds] = {}

    def find(self, gvk: GroupVersionKind) -> ApiResource:
        """How a kind is reached; 400 if the server does not have it."""
        found = self._known.get(gvk[:2], {}).get(gvk.kind)
        if found is None:
            self._known[gvk[:2]] = kinds = self._ask(gvk.group, gvk.version)
            found = kinds.get(gvk.kind)
        if found is None:
            raise BadRequestError(
                f'no kind "{gvk.kind}" is registered for version "{gvk.api_version}": '
                f"check apiVersion and kind, or create its CustomResourceDefinition first"
            )
        return found

    def all_watched(self) -> list[ApiResource]:
        """Everything that can be followed, in the preferred version, in a fixed order."""
        found: dict[GroupResource, ApiResource] = {}
        self._known.clear()
        for group, version in self._group_versions():
            self._known[group, version] = kinds = self._ask(group, version)
            for served in kinds.values():
                if served.can_be_watched and served.resource not in SHADOWS:
                    found.setdefault(served.resource, served)
        return [found[resource] for resource in sorted(found)]

    def _group_versions(self) -> Iterator[tuple[str, str]]:
        """All of them, the preferred version of a group first."""
        for version in self._requests.read("/api", _versions):
            yield "", version
        for group in self._requests.read("/apis", _groups):
            preferred = _text(group.get("preferredVersion"), "version")
            versions = [_text(each, "version") for each in group.get("versions") or ()]
            for version in sorted(versions, key=lambda each: each != preferred):
                yield _text(group, "name"), version

    def _ask(self, group: str, version: str) -> Kinds:
        path = f"/apis/{segment(group)}/{segment(version)}" if group else f"/api/{segment(version)}"
        try:
            rows = self._requests.read(path, _resources)
        except NotFoundError:
            return {}
        found: Kinds = {}
        for row in rows:
            plural, kind = _text(row, "name"), _text(row, "kind")
            if plural and kind and "/" not in plural:
                gvk = GroupVersionKind(group, version, kind)
                verbs = tuple(row.get("verbs") or ())
                found.setdefault(
                    kind, ApiResource(gvk, segment(plural), bool(row.get("namespaced")), verbs)
                )
        return found


def segment(text: str) -> str:
    """One part of a path, quoted."""
    return quote(text, safe="")


def _versions(reply: Reply) -> list[str]:
    return [str(version) for version in _list(reply, "versions")]


def _groups(reply: Reply) -> list[JsonObject]:
    return [group for group in _list(reply, "groups") if isinstance(group, dict)]


def _resources(reply: Reply) -> list[JsonObject]:
    return [row for row in _list(reply, "resources") if isinstance(row, dict)]


def _list(reply: Reply, name: str) -> list[Any]:
    rows = reply.object().get(name)
    if not isinstance(rows, list):
        raise MalformedResponseError(f"a discovery document has no {name}")
    return rows


def _text(obj: Any, name: str) -> str:
    value = obj.get(name) if isinstance(obj, dict) else None
    return value if isinstance(value, str) else ""
