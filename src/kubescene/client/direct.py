"""The embedded client: calls the registry, sees the store, never waits.

Watches are store subscriptions, so when a write returns its events have been delivered:
`wait_seen` has nothing to wait for.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import structs

from kubescene.actors import Actor
from kubescene.api.copies import own_copy
from kubescene.api.kinds import BOOKKEEPING, POD
from kubescene.api.options import (
    NO_OPTIONS,
    PLAIN_DELETE,
    DeleteOptions,
    OperationOrigin,
    WriteOptions,
)
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.api.selectors import LabelSelector
from kubescene.client.interfaces import ClientSubscription, EventHandler, ObjectRef, Objects
from kubescene.client.waking import waking, waking_for_all
from kubescene.registry import Registry
from kubescene.registry.subresources.binding import binding_to
from kubescene.types import JsonObject

OWNER_INDEX = "owner"
NODE_INDEX = "node"

Subscriptions: TypeAlias = list[ClientSubscription]


def owner_of(record: Record) -> str:
    return record.owner


def node_of(record: Record) -> str:
    return record.node


def key_of(record: Record) -> tuple[str, str]:
    return record.key


def is_promised(options: WriteOptions) -> bool:
    """Whether the writer will not change any more what it hands over."""
    return options.is_lasting or options.blueprint is not None


class DirectClient:
    """Reader, Writer and Watcher of one actor over an embedded registry."""

    def __init__(
        self, registry: Registry, actor: Actor, wake: Callable[[], None] | None = None
    ) -> None:
        self._wake = wake
        self._registry = registry
        self._store = registry.store
        self._actor = actor
        self._subscriptions: Subscriptions = []
        self._watched: dict[GroupResource, None] = {}
        self._watches_all = False
        self._own_options = WriteOptions(field_manager=actor.manager)
        self._last_options = (NO_OPTIONS, self._own_options)

    @property
    def actor(self) -> Actor:
        return self._actor

    # -- Reader ----------------------------------------------------------------------------

    def get(self, ref: ObjectRef) -> JsonObject:
        resource_type = self._registry.type_of(ref.gvk)
        record = self._registry.record(resource_type, ref.namespace, ref.name)
        return self._registry.decoded(record, resource_type)

    def find(self, ref: ObjectRef) -> JsonObject | None:
        resource_type = self._registry.type_of(ref.gvk)
        record = self._store.get(resource_type.group_resource, ref.namespace, ref.name)
        return None if record is None else self._registry.decoded(record, resource_type)

    def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> Objects:
        resource_type = self._registry.type_of(gvk)
        records = self._store.list(resource_type.group_resource, namespace)
        if labels is not None:
            records = [record for record in records if labels.matches(record.labels)]
        return [self._registry.decoded(record, resource_type) for record in records]

    def owned(self, gvk: GroupVersionKind, owner_uid: str) -> Objects:
        resource_type = self._registry.type_of(gvk)
        resource = resource_type.group_resource
        self._store.add_index(resource, OWNER_INDEX, owner_of)
        records = self._store.indexes.records(resource, OWNER_INDEX, owner_uid)
        return [self._registry.decoded(record, resource_type) for record in records]

    def on_node(self, node: str, *, labels: LabelSelector | None = None) -> Objects:
        resource_type = self._registry.type_of(POD)
        resource = resource_type.group_resource
        self._store.add_index(resource, NODE_INDEX, node_of)
        found = self._store.indexes.records(resource, NODE_INDEX, node)
        records = [each for each in found if labels is None or labels.matches(each.labels)]
        records.sort(key=key_of)
        return [self._registry.decoded(record, resource_type) for record in records]

    def get_scale(self, ref: ObjectRef) -> JsonObject:
        resource_type = self._registry.type_of(ref.gvk)
        return self._registry.scales.get(resource_type, ref.namespace, ref.name)

    # -- Writer ----------------------------------------------------------------------------

    def create(self, obj: JsonObject, *, options: WriteOptions = NO_OPTIONS) -> Record:
        obj = obj if is_promised(options) else own_copy(obj)
        return self._registry.create(self._actor, obj, options=self._named(options))

    def update(
        self, obj: JsonObject, *, subresource: str = "", options: WriteOptions = NO_OPTIONS
    ) -> Record:
        obj = obj if is_promised(options) else own_copy(obj)
        return self._registry.update(
            self._actor, obj, subresource=subresource, options=self._named(options)
        )

    def patch(
        self,
        ref: ObjectRef,
        patch: Any,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        return self._registry.patch(
            self._actor,
            self._registry.scheme.of(ref.gvk),
            ref.namespace,
            ref.name,
            patch if is_promised(options) else own_copy(patch),
            patch_type,
            subresource=subresource,
            options=self._named(options),
        )

    def delete(
        self,
        ref: ObjectRef,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        return self._registry.delete(
            self._actor,
            self._registry.type_of(ref.gvk),
            ref.namespace,
            ref.name,
            options=options,
            origin=origin,
        )

    def bind(
        self,
        pod: ObjectRef,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> Record:
        body = binding_to(node, uid)
        if annotations:
            body["metadata"] = {**body.get("metadata", {}), "annotations": dict(annotations)}
        return self._registry.bind(self._actor, pod.namespace, pod.name, body)

    def scale(self, ref: ObjectRef, replicas: int, *, options: WriteOptions = NO_OPTIONS) -> Record:
        return self._registry.scales.resize(
            self._actor,
            self._registry.type_of(ref.gvk),
            ref.namespace,
            ref.name,
            replicas,
            options=self._named(options),
        )

    def evict(
        self,
        pod: ObjectRef,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        return self._registry.evictions.evict(
            self._actor, pod.namespace, pod.name, options=options, origin=origin
        )

    def wait_seen(self, revision: int) -> None:
        if revision > self._store.revision:
            raise ValueError(f"revision {revision} does not exist yet")

    # -- Watcher ---------------------------------------------------------------------------

    def watch(
        self,
        gvk: GroupVersionKind,
        handler: EventHandler,
        *,
        quiet: bool = False,
        traits: int = EVERYTHING,
    ) -> ClientSubscription:
        handler = waking(handler, None if quiet else self._wake)
        resource = self._resource(gvk)
        self._watched[resource] = None
        self._replay(resource, handler)
        return self._kept(self._store.subscribe(handler, (resource,), traits=traits))

    def watch_all(
        self,
        handler: EventHandler,
        *,
        quiet: bool = False,
        patient: bool = False,
        traits: int = EVERYTHING,
    ) -> ClientSubscription:
        handler = waking_for_all(handler, None if quiet else self._wake)
        self._watches_all = True
        for resource in self._store.resources():
            self._replay(resource, handler)
        aside = BOOKKEEPING if patient else ()
        return self._kept(self._store.subscribe(handler, patient=aside, traits=traits))

    @property
    def is_watching(self) -> bool:
        return bool(self._watched) or self._watches_all

    def changed_since(self, revision: int) -> bool:
        store = self._store
        if self._watches_all or not self._watched:
            return any(
                store.newest(resource) > revision
                for resource in store.known_resources()
                if resource not in BOOKKEEPING
            )
        return any(store.newest(resource) > revision for resource in self._watched)

    def close(self) -> None:
        """End all watches of this client."""
        for subscription in self._subscriptions:
            subscription.cancel()
        self._subscriptions.clear()

    # -- inside ----------------------------------------------------------------------------

    def _replay(self, resource: GroupResource, handler: EventHandler) -> None:
        for record in self._store.in_order_of_creation(resource):
            handler(Change(ChangeType.ADDED, record, None, self._store))

    def _kept(self, subscription: ClientSubscription) -> ClientSubscription:
        self._subscriptions.append(subscription)
        return subscription

    def _resource(self, gvk: GroupVersionKind) -> GroupResource:
        return self._registry.type_of(gvk).group_resource

    def _named(self, options: WriteOptions) -> WriteOptions:
        """The options with this client's name as field manager, if none is given."""
        if options is NO_OPTIONS:
            return self._own_options
        if options.field_manager:
            return options
        given, named = self._last_options
        if given is not options:
            named = structs.replace(options, field_manager=self._actor.manager)
            self._last_options = (options, named)
        return named
