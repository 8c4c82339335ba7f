"""The ordered admission chain: plugins that complete or refuse a request.

It has two rounds, as in kube-apiserver. `AdmissionChain.admit` runs before the object is named and
prepared: each plugin sees who asks and returns the object, changed or not; objects are read-only,
so a change is a copy. `AdmissionChain.validate` runs last, on the object as it would be stored, and
can only refuse. The order within each round is kube-apiserver's.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeGuard

import msgspec

from kubescene.actors import Actor
from kubescene.api.options import NO_OPTIONS, WriteOptions
from kubescene.api.scheme import GroupResource, ResourceType
from kubescene.clock import Clock
from kubescene.errors import ForbiddenError
from kubescene.store import Store
from kubescene.types import JsonObject


def silent(warning: str) -> None:
    """Where nobody listens to warnings."""


class Reinvocation:
    """What plugins that are asked twice about one request remember of the first time."""

    __slots__ = ("invoked", "is_due", "is_second", "outputs")

    def __init__(self) -> None:
        self.invoked: set[tuple[str, ...]] = set()
        self.outputs: dict[str, JsonObject] = {}
        """The object as plugins left it the last time."""
        self.is_due = False
        self.is_second = False


class AdmissionRequest(msgspec.Struct, frozen=True):
    """One request on its way to the store. ``verb`` is create, update, delete or connect.

    In the first round of a create, ``name`` is empty if the server is to generate it.
    """

    verb: str
    resource_type: ResourceType
    subresource: str
    namespace: str
    name: str
    actor: Actor
    obj: JsonObject
    old: JsonObject | None
    store: Store
    clock: Clock
    options: WriteOptions = NO_OPTIONS
    reinvocation: "Reinvocation | None" = None
    sent_as: ResourceType | None = None
    """The version in which the client speaks, if the object stands in another one here."""

    def warn(self, message: str) -> None:
        """Say something to the client although its request is admitted."""
        (self.options.warn or silent)(message)

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Say something to an audit log."""
        if (consultation := self.options.consultation) is not None:
            consultation.annotations.update(annotations)

    @property
    def served(self) -> ResourceType:
        """The resource as the request names it."""
        return self.sent_as or self.resource_type

    def is_create(self, kind: str) -> bool:
        """Whether this creates an object of a built-in kind (not a subresource)."""
        return self.verb == "create" and self.is_for(kind)

    def is_write(self, kind: str) -> bool:
        """Whether this creates or updates an object of a built-in kind (not a subresource)."""
        return self.verb in ("create", "update") and self.is_for(kind)

    def is_for(self, kind: str) -> bool:
        """Whether this is about the main resource of a built-in kind."""
        resource_type = self.resource_type
        return resource_type.kind == kind and not self.subresource and not resource_type.custom

    def with_object(self, obj: JsonObject) -> "AdmissionRequest":
        """The same request for a changed object."""
        return AdmissionRequest(
            self.verb,
            self.resource_type,
            self.subresource,
            self.namespace,
            self.name,
            self.actor,
            obj,
            self.old,
            self.store,
            self.clock,
            self.options,
            self.reinvocation,
            self.sent_as,
        )

    def forbidden(self, why: str) -> ForbiddenError:
        """The refusal of this request, in kube-apiserver's form."""
        resource = self.resource_type.named_resource
        name = self.name or self.obj["metadata"].get("generateName") or "Unknown"
        return ForbiddenError(
            f'{resource} "{name}" is forbidden: {why}',
            name=name,
            group=resource.group,
            kind=resource.resource,
        )


class AdmissionPlugin(Protocol):
    @property
    def name(self) -> str: ...

    def admit(self, request: AdmissionRequest) -> JsonObject:
        """The object as it should be, or an `ApiError` that refuses the request."""
        ...


class ValidatingPlugin(Protocol):
    """A plugin that also looks at the final object."""

    def validate(self, request: AdmissionRequest) -> None:
        """Raise an `ApiError` to refuse the request."""
        ...


class DeclaredPlugin(Protocol):
    """A plugin that says what it looks at, so that its answer can be taken for many alike objects.

    Its answers to a create, in both rounds, depend on nothing but the object without its name, the
    writer, the namespace and the objects of ``reads``. Other plugins are asked about each object.
    """

    @property
    def reads(self) -> Sequence[GroupResource]: ...


class QuietPlugin(Protocol):
    """A plugin that never says anything to a change of status or to the deletion of a pod.

    If one in the chain is not quiet, all of them are asked about each.
    """

    @property
    def is_quiet(self) -> bool: ...


class SelectivePlugin(Protocol):
    """A plugin that leaves objects of all kinds but these as they are, and never refuses them.

    It is not asked about others.
    """

    @property
    def kinds(self) -> Sequence[str]: ...


class Concerned(NamedTuple):
    """Those who have a say about objects of one kind, and what they look at.

    ``reads`` is empty if one of them does not say.
    """

    plugins: tuple[AdmissionPlugin, ...]
    validators: tuple[ValidatingPlugin, ...]
    reads: tuple[GroupResource, ...]


class AdmissionChain:
    """Plugins in order; each sees what the one before returned.

    ``reads`` is what all of them together look at; None if one of them does not say. ``is_quiet``:
    none has anything to say to a change of status or to the deletion of a pod.
    """

    reads: tuple[GroupResource, ...] | None
    is_quiet: bool

    def __init__(self, plugins: Sequence[AdmissionPlugin]) -> None:
        self._take(tuple(plugins))

    def _take(self, plugins: tuple[AdmissionPlugin, ...]) -> None:
        self.plugins = plugins
        self.reads = declared_reads(self.plugins)
        self.is_quiet = all(getattr(it, "is_quiet", False) for it in self.plugins)
        self._reinvokes = any(getattr(it, "reinvokes", False) for it in self.plugins)
        self._concerned: dict[str, Concerned] = {}

    def add(self, plugin: AdmissionPlugin) -> None:
        """Ask one more, after all others."""
        self._take((*self.plugins, plugin))

    def insert(self, plugin: AdmissionPlugin, *, before: str) -> None:
        """Ask one more, before the plugin of this name; last if there is none."""
        names = [each.name for each in self.plugins]
        place = names.index(before) if before in names else len(names)
        self._take((*self.plugins[:place], plugin, *self.plugins[place:]))

    def remove(self, *plugins: AdmissionPlugin) -> None:
        """Ask these no more."""
        self._take(tuple(each for each in self.plugins if each not in plugins))

    def concerned(self, kind: str) -> Concerned:
        """Who has a say about objects of a kind."""
        known = self._concerned.get(kind)
        if known is None:
            asked = tuple(plugin for plugin in self.plugins if _concerns(plugin, kind))
            validators = tuple(plugin for plugin in asked if _validates(plugin))
            known = Concerned(asked, validators, declared_reads(asked) or ())
            self._concerned[kind] = known
        return known

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if not self._reinvokes:
            return self._round(request)
        again = Reinvocation()
        request = msgspec.structs.replace(request, reinvocation=again)
        obj = self._round(request)
        if not again.is_due:
            return obj
        again.is_second = True
        return self._round(request.with_object(obj))

    def _round(self, request: AdmissionRequest) -> JsonObject:
        obj = request.obj
        for plugin in self.concerned(request.resource_type.kind).plugins:
            admitted = plugin.admit(request)
            if admitted is not obj:
                obj = admitted
                request = request.with_object(obj)
        return obj

    def validate(self, request: AdmissionRequest) -> None:
        for plugin in self.concerned(request.resource_type.kind).validators:
            plugin.validate(request)


def declared_reads(plugins: Sequence[AdmissionPlugin]) -> tuple[GroupResource, ...] | None:
    declared = [plugin for plugin in plugins if _declares(plugin)]
    if len(declared) < len(plugins):
        return None
    return tuple(dict.fromkeys(resource for plugin in declared for resource in plugin.reads))


def _declares(plugin: AdmissionPlugin) -> TypeGuard[DeclaredPlugin]:
    # Every world asks, and `isinstance` of a protocol takes ten times as long.
    return hasattr(plugin, "reads")


def _concerns(plugin: AdmissionPlugin, kind: str) -> bool:
    selected: Sequence[str] | None = getattr(plugin, "kinds", None)
    return selected is None or kind in selected


def _validates(plugin: AdmissionPlugin) -> TypeGuard[ValidatingPlugin]:
    return callable(getattr(plugin, "validate", None))
