"""Which kinds exist, and how each is addressed.

A `ResourceType` ties a kind (what an object says it is) to a resource (how a URL names it). The
`Scheme` holds all of them: the built-in kinds from the start, custom ones as their
definitions come and go. Storage is keyed by group and plural, so that all versions of a
resource share one place; a kind that is stored in another version or group than it is served
in says so by ``stored_as`` (autoscaling/v1 is stored as v2, events.k8s.io as core events).

Order is that of discovery: groups as registered, custom ones by name after the built-in ones;
within a group the preferred version first (v2, v1, v1beta1, v1alpha1).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from kubescene.errors import BadRequestError, NotFoundError

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_WRITE_VERBS = ("get", "patch", "update")

_KUBE_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}
_UNKNOWN_STAGE = 3


class GroupVersionKind(NamedTuple):
    """``apps/v1 ReplicaSet``; the core group is the empty string."""

    group: str
    version: str
    kind: str

    def __deepcopy__(self, memo: object) -> "GroupVersionKind":
        return self  # nothing of it ever changes

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    def of(cls, api_version: str, kind: str) -> "GroupVersionKind":
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)


class GroupResource(NamedTuple):
    """``replicasets.apps``: where objects of all versions of a resource are stored."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class Subresource(Struct, frozen=True):
    """``pods/eviction``: which kind its body has, and what can be done with it."""

    name: str
    gvk: GroupVersionKind
    verbs: tuple[str, ...] = READ_WRITE_VERBS


SCALE = Subresource("scale", GroupVersionKind("autoscaling", "v1", "Scale"))


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One served version of a resource.

    ``subresources`` names them all. ``subresource_types`` describes those whose body or verbs
    are not the usual ones; leave it empty where only ``status`` and ``scale`` exist.
    """

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: frozenset[str] = frozenset()
    custom: bool = False
    stored_as: GroupVersionKind | None = None
    subresource_types: tuple[Subresource, ...] = ()
    group_resource: GroupResource = field(init=False, repr=False, compare=False)
    """Where objects are stored: one place for all versions, and for both kinds of events."""

    def __post_init__(self) -> None:
        place = GroupResource(self.storage_gvk.group, self.plural)
        object.__setattr__(self, "group_resource", place)

    @property
    def named_resource(self) -> GroupResource:
        """The resource as URLs and messages name it."""
        return GroupResource(self.gvk.group, self.plural)

    @property
    def storage_gvk(self) -> GroupVersionKind:
        """The kind that stored objects have; convert from and to it where it is not ``gvk``."""
        return self.stored_as or self.gvk

    @property
    def kind(self) -> str:
        return self.gvk.kind

    @property
    def api_version(self) -> str:
        return self.gvk.api_version

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def subresource(self, name: str) -> Subresource:
        """One of ``subresources``; 404 if there is no such subresource."""
        for described in self.subresource_types:
            if described.name == name:
                return described
        if name not in self.subresources:
            raise NotFoundError("the server could not find the requested resource")
        return SCALE if name == SCALE.name else Subresource(name, self.gvk)


class Scheme:
    """All served resource types. Later registrations of the same kind replace earlier ones."""

    def __init__(self, types: Iterable[ResourceType] = ()) -> None:
        self._by_gvk: dict[GroupVersionKind, ResourceType] = {}
        self._by_path: dict[tuple[str, str, str], ResourceType] = {}
        self._generation = 0
        self.offered: Callable[[GroupVersionKind], None] | None = None
        """Asked for a kind that nobody serves: it may register it now."""
        for resource_type in types:
            self.register(resource_type)

    def copy(self) -> "Scheme":
        """A scheme of the same types that can be changed on its own."""
        scheme = Scheme()
        scheme._by_gvk = self._by_gvk.copy()
        scheme._by_path = self._by_path.copy()
        return scheme

    @property
    def generation(self) -> int:
        """Counts changes: what was derived from the scheme holds as long as this stays the same."""
        return self._generation

    def register(self, resource_type: ResourceType) -> None:
        gvk = resource_type.gvk
        replaced = self._by_gvk.get(gvk)
        self._by_gvk[gvk] = resource_type
        self._by_path[gvk.group, gvk.version, resource_type.plural] = resource_type
        if replaced is not None and replaced.plural != resource_type.plural:
            del self._by_path[gvk.group, gvk.version, replaced.plural]
        # Counted last: a reader on another thread that sees the number sees the change as well.
        self._generation += 1

    def unregister(self, gvk: GroupVersionKind) -> None:
        resource_type = self._by_gvk.pop(gvk)
        del self._by_path[gvk.group, gvk.version, resource_type.plural]
        self._generation += 1

    def __iter__(self) -> Iterator[ResourceType]:
        # A copy, made at one go: the API server reads while definitions come and go.
        return iter(tuple(self._by_gvk.values()))

    def __len__(self) -> int:
        return len(self._by_gvk)

    def __contains__(self, gvk: GroupVersionKind) -> bool:
        return gvk in self._by_gvk

    def of_kind(self, api_version: str, kind: str) -> ResourceType:
        """The type an object names by ``apiVersion`` and ``kind``; 400 if nobody serves it."""
        try:
            wanted = GroupVersionKind.of(api_version, kind)
            found = self._by_gvk.get(wanted)
            if found is None and self.offered is not None:
                self.offered(wanted)
                found = self._by_gvk.get(wanted)
        except (AttributeError, TypeError):  # what a client sent may be anything
            found = None
        if found is None:
            raise BadRequestError(
                f'no kind "{kind}" is registered for version "{api_version}": '
                f"{self._meant(str(api_version), str(kind))}"
                f"check apiVersion and kind, or create its CustomResourceDefinition first"
            )
        return found

    def _meant(self, api_version: str, kind: str) -> str:
        """What a name was meant to be: a kind of another version, or one that is spelt alike."""
        versions = [gvk.api_version for gvk in self._by_gvk if gvk.kind == kind]
        if versions:
            return f"{kind} is of {' and '.join(versions)}; "
        alike = [gvk.kind for gvk in self._by_gvk if gvk.api_version == api_version]
        from difflib import get_close_matches  # only for those who are wrong

        nearest = get_close_matches(kind, alike, 1)
        return f"did you mean {nearest[0]}? " if nearest else ""

    def of(self, gvk: GroupVersionKind) -> ResourceType:
        """The type of a kind; 400 if nobody serves it."""
        return self._by_gvk.get(gvk) or self.of_kind(gvk.api_version, gvk.kind)

    def of_path(self, group: str, version: str, plural: str) -> ResourceType:
        """The type a URL names; 404 if nobody serves it."""
        found = self._by_path.get((group, version, plural))
        if found is None:
            raise NotFoundError("the server could not find the requested resource")
        return found

    def groups(self) -> list[str]:
        """Served groups in discovery order, the core group among them."""
        built_in = dict.fromkeys(t.gvk.group for t in self if not t.custom)
        custom = {t.gvk.group for t in self} - built_in.keys()
        return [*built_in, *sorted(custom)]

    def versions(self, group: str) -> list[str]:
        """Served versions of a group, the preferred one first."""
        return sorted({t.gvk.version for t in self if t.gvk.group == group}, key=version_order)

    def resources(self, group: str, version: str) -> list[ResourceType]:
        """What one group version serves, by plural name."""
        found = [t for t in self if t.gvk.group == group and t.gvk.version == version]
        return sorted(found, key=lambda t: t.plural)

    def resolve(self, name: str) -> ResourceType:
        """The type a person means: plural, singular, kind or short name, maybe with ``.group``.

        Full names win over short names, earlier groups over later ones; 404 if nothing fits.
        """
        word, _, group = name.lower().partition(".")
        candidates = [t for t in self._preferred_order() if not group or t.gvk.group == group]
        for found in candidates:
            if word in (found.plural, found.singular, found.kind.lower()):
                return found
        for found in candidates:
            if word in found.short_names:
                return found
        raise NotFoundError(f'the server doesn\'t have a resource type "{name}"')

    def _preferred_order(self) -> list[ResourceType]:
        rank = {group: position for position, group in enumerate(self.groups())}
        return sorted(self, key=lambda t: (rank[t.gvk.group], version_order(t.gvk.version)))


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sort key that puts v2 before v1 before v1beta2 before v1alpha1, other names last."""
    matched = _KUBE_VERSION.fullmatch(version)
    if matched is None:
        return _UNKNOWN_STAGE, 0, 0, version
    major, stage, minor = matched.groups()
    return _STAGES[stage], -int(major), -int(minor or 0), ""
