"""Speaking to a world the way people do: by names, with plain dicts or builders.

The verbs of kubectl over an embedded registry. A kind is named as kubectl names it: ``Pod``,
``pods``, ``po``, ``deployments.apps``.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from kubescene.actors import Actor
from kubescene.api.copies import own_copy
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType, diff_merge_patch
from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.api.scheme import ResourceType
from kubescene.api.selectors import LabelSelector, from_labels, parse_fields, parse_labels
from kubescene.errors import NotFoundError
from kubescene.registry import Registry
from kubescene.registry.writes import DEFAULT_NAMESPACE, resolve_namespace
from kubescene.store import Watch
from kubescene.types import JsonObject

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Objects: TypeAlias = list[JsonObject]


@runtime_checkable
class Buildable(Protocol):
    """Anything that can be turned into an API object, such as ``kubescene.testing.make_pod``."""

    def build(self) -> JsonObject: ...


AnyObject: TypeAlias = Buildable | Mapping[str, Any]


class Verbs:
    """Create, apply, get, list, watch, patch, scale, evict and delete, in one actor's name."""

    def __init__(self, registry: Registry, actor: Actor) -> None:
        self.registry = registry
        self.actor = actor

    def create(self, obj: AnyObject, *, dry_run: bool = False) -> JsonObject:
        """Create an object; a namespaced one without a namespace goes to ``default``."""
        options = WriteOptions(dry_run=dry_run, strict=True)
        return self._fresh(self.registry.create(self.actor, plain(obj), options=options))

    def update(self, obj: AnyObject, *, subresource: str = "") -> JsonObject:
        """Replace an object; refused if it changed since its ``resourceVersion``."""
        return self._fresh(
            self.registry.update(
                self.actor, plain(obj), subresource=subresource, options=WriteOptions(strict=True)
            )
        )

    def apply(self, obj: AnyObject) -> JsonObject:
        """Create the object, or change it to what is given.

        Fields that an earlier `apply` set and this one leaves out are removed; fields that others
        set are left alone. That is ``kubectl apply``, with its annotation.
        """
        wanted = plain(obj)
        resource_type = self.registry.scheme.of_kind(
            wanted.get("apiVersion", ""), wanted.get("kind", "")
        )
        namespace = resolve_namespace(resource_type, wanted, "")
        noted = with_last_applied(wanted)
        try:
            current = self.registry.record(resource_type, namespace, wanted["metadata"]["name"])
        except NotFoundError:
            return self.create(noted)
        patch = apply_patch(self._fresh(current), noted)
        patch_type = PatchType.MERGE if resource_type.custom else PatchType.STRATEGIC
        return self._fresh(
            self.registry.patch(
                self.actor,
                resource_type,
                namespace,
                current.name,
                patch,
                patch_type,
                options=WriteOptions(strict=True),
            )
        )

    def get(self, kind: str, name: str, namespace: str = DEFAULT_NAMESPACE) -> JsonObject:
        """The object; raises `NotFoundError`."""
        resource_type = self._type(kind)
        return self._fresh(
            self.registry.record(resource_type, place(resource_type, namespace), name)
        )

    def list(
        self,
        kind: str,
        namespace: str = "",
        *,
        labels: str | Mapping[str, str] = "",
        fields: str = "",
    ) -> Objects:
        """All objects, of one namespace if named, that match the selectors.

        ``labels`` are a selector as kubectl has it, ``"app=web,tier!=cache"``, or those that an
        object must have: ``{"app": "web"}``.
        """
        resource_type = self._type(kind)
        records = self.registry.store.list(resource_type.group_resource, namespace)
        if labels:
            selector = label_selector(labels)
            records = [record for record in records if selector.matches(record.labels)]
        found = [self._fresh(record) for record in records]
        if fields:
            wanted = parse_fields(fields).for_resource(resource_type.group_resource)
            found = [obj for obj in found if wanted.matches_object(obj)]
        return found

    def watch(self, kind: str, *, since: int | None = None) -> "ObjectWatch":
        """Changes from now on, or after a revision. Call `ObjectWatch.drain` to get them."""
        resource = self._type(kind).group_resource
        store = self.registry.store
        return ObjectWatch(
            Watch(store, [resource], since=store.revision if since is None else since)
        )

    def patch(
        self,
        kind: str,
        name: str,
        patch: Any,
        namespace: str = DEFAULT_NAMESPACE,
        *,
        patch_type: str = "",
        subresource: str = "",
    ) -> JsonObject:
        """Change an object: strategic merge for built-in kinds, merge for custom ones."""
        resource_type = self._type(kind)
        default = PatchType.MERGE if resource_type.custom else PatchType.STRATEGIC
        return self._fresh(
            self.registry.patch(
                self.actor,
                resource_type,
                place(resource_type, namespace),
                name,
                own_copy(patch),
                PatchType.parse(patch_type) if patch_type else default,
                subresource=subresource,
                options=WriteOptions(strict=True, field_manager=self.actor.manager),
            )
        )

    def delete(
        self,
        kind: str,
        name: str,
        namespace: str = DEFAULT_NAMESPACE,
        *,
        grace_period_s: int | None = None,
    ) -> JsonObject:
        """Delete, honouring finalizers and grace; returns the object's newest state.

        Dependents go too, in the background, as with kubectl.
        """
        resource_type = self._type(kind)
        return self._fresh(
            self.registry.delete(
                self.actor,
                resource_type,
                place(resource_type, namespace),
                name,
                options=DeleteOptions(
                    grace_period_s=grace_period_s, propagation_policy="Background"
                ),
            )
        )

    def scale(
        self, kind: str, name: str, replicas: int, namespace: str = DEFAULT_NAMESPACE
    ) -> JsonObject:
        """Ask for this many replicas of a kind that can be scaled; returns the object."""
        resource_type = self._type(kind)
        where = place(resource_type, namespace)
        return self._fresh(
            self.registry.scales.resize(self.actor, resource_type, where, name, replicas)
        )

    def evict(
        self,
        name: str,
        namespace: str = DEFAULT_NAMESPACE,
        *,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> JsonObject:
        """Delete a pod if its disruption budget allows; `TooManyRequestsError` if it does not."""
        options = DeleteOptions(grace_period_s=grace_period_s, dry_run=dry_run)
        return self._fresh(
            self.registry.evictions.evict(self.actor, namespace, name, options=options)
        )

    def _type(self, kind: str) -> ResourceType:
        return self.registry.scheme.resolve(kind)

    def _fresh(self, record: Record) -> JsonObject:
        """An object of the caller's own: changing it changes nothing in the world."""
        return record.decode()


def label_selector(labels: str | Mapping[str, str]) -> LabelSelector:
    """What is meant by text, or by the labels that an object must have."""
    if isinstance(labels, str):
        return parse_labels(labels)
    if isinstance(labels, Mapping):
        return from_labels(labels)
    raise TypeError(f"labels are text such as 'app=web', or a mapping, not {_kind(labels)}")


class ObjectWatch:
    """A watch that yields ``(type, object)``, such as ``("ADDED", {...})``."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def drain(self) -> Iterator[tuple[str, JsonObject]]:
        """What has happened since the last call, without waiting."""
        changes: list[Change] = self._watch.drain()
        return ((str(change.type), change.record.decode()) for change in changes)

    def close(self) -> None:
        self._watch.close()


def built(obj: AnyObject) -> JsonObject:
    """The object that is meant."""
    if isinstance(obj, Buildable):
        return obj.build()
    if isinstance(obj, Mapping):
        return dict(obj)
    raise TypeError(f"an object (such as a dict) or a builder is expected, not {_kind(obj)}")


def _kind(given: object) -> str:
    return type(given).__name__


def plain(obj: AnyObject) -> JsonObject:
    """An object of our own: whoever gave it may go on changing it."""
    copied: JsonObject = own_copy(built(obj))
    return copied


def place(resource_type: ResourceType, namespace: str) -> str:
    return namespace if resource_type.namespaced else ""


def with_last_applied(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata") or {}
    kept = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != LAST_APPLIED}
    noted = json.dumps(obj, separators=(",", ":"), sort_keys=True) + "\n"
    return {**obj, "metadata": {**metadata, "annotations": {**kept, LAST_APPLIED: noted}}}


def apply_patch(current: JsonObject, wanted: JsonObject) -> JsonObject:
    """What is wanted, plus a null for everything the last apply had and this one has not."""
    text = (current["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    removals = nulls_of(diff_merge_patch(json.loads(text), wanted)) if text else {}
    return overlay(removals, wanted)


def nulls_of(patch: Any) -> JsonObject:
    """Only the removals of a merge patch."""
    found: JsonObject = {}
    for key, value in patch.items():
        if value is None:
            found[key] = None
        elif isinstance(value, dict) and (inner := nulls_of(value)):
            found[key] = inner
    return found


def overlay(base: JsonObject, top: JsonObject) -> JsonObject:
    result = dict(base)
    for key, value in top.items():
        below = result.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        result[key] = overlay(below, value) if both and below is not None else value
    return result
