"""The verbs. Each is one path from a request to at most one revision (and what that entails).

Create, for example: find the type, decode (unknown fields go, defaults come), run admission, name,
prepare as the kind demands, validate, ask the gate, store, tell the instruments. A dry run takes
the same path and stops before the gate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from kubescene.actors import Actor
from kubescene.api import conversion, managed_fields, validation
from kubescene.api.patches import PatchType
from kubescene.api.scheme import GroupVersionKind, ResourceType, Scheme
from kubescene.clock import Clock, Identities, format_time
from kubescene.errors import BadRequestError, ForbiddenError
from kubescene.registry import binding, decoding, deletion, strategies
from kubescene.registry import definition_status as definitions
from kubescene.registry.admission import AdmissionChain, AdmissionRequest
from kubescene.registry.consequences import Consequences
from kubescene.registry.custom_resources import (
    DEFINITIONS,
    CustomResources,
    definition_errors,
)
from kubescene.registry.deletion import DeleteOptions
from kubescene.registry.gates import OpenGate, WriteGate
from kubescene.registry.metadata import (
    check_unused,
    free_name,
    new_metadata,
    updated_metadata,
)
from kubescene.registry.objects import with_part
from kubescene.registry.ownership import Application, Ownership, check_target
from kubescene.registry.patching import apply_patch
from kubescene.registry.preconditions import (
    check_delete_preconditions,
    check_precondition,
    not_found,
)
from kubescene.registry.preparation import Preparation
from kubescene.store import Record, Store
from kubescene.store.records import make_record, versioned
from kubescene.timeline.events import OperationOrigin
from kubescene.timeline.instruments import Instruments, ObjectWrite
from kubescene.types import JsonObject

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What every write may carry."""

    dry_run: bool = False
    origin: OperationOrigin | None = None
    field_manager: str = ""
    force: bool = False
    """Whether an apply takes fields that others own."""
    through: str = ""
    """A subresource that the write came through, such as ``scale``: owners are noted with it."""


NO_OPTIONS = WriteOptions()

KEPT_BY_IMPORT = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


class Registry:
    """All verbs over one store.

    ``track_fields`` says whether every write is noted in ``managedFields``. Off, which is the
    default because it costs time and space, only applies are (design note 0012).
    """

    def __init__(
        self,
        *,
        scheme: Scheme,
        store: Store,
        clock: Clock,
        identities: Identities,
        admission: AdmissionChain,
        instruments: Instruments | None = None,
    ) -> None:
        self.scheme = scheme
        self.store = store
        self.clock = clock
        self.identities = identities
        self.admission = admission
        self.instruments = instruments or Instruments()
        self.gate: WriteGate = OpenGate()
        self.custom = CustomResources(scheme, store)
        self.track_fields = False
        self._ownership = Ownership(scheme, self.custom, clock)
        self._preparation = Preparation(store, clock, self.custom)
        self._consequences = Consequences(self)

    # -- reading ---------------------------------------------------------------------------

    def record(self, resource_type: ResourceType, namespace: str, name: str) -> Record:
        """The stored record; 404 if there is none."""
        record = self.store.get(resource_type.group_resource, namespace, name)
        if record is None:
            raise not_found(resource_type, name)
        return record

    def type_of(self, gvk: GroupVersionKind) -> ResourceType:
        return self.scheme.of_kind(gvk.api_version, gvk.kind)

    def decoded(self, record: Record, resource_type: ResourceType) -> JsonObject:
        """The object in the version of ``resource_type``; shared, and therefore read-only."""
        return self._shown(self.store.decoded(record), record.revision, resource_type)

    def present(self, record: Record, resource_type: ResourceType) -> bytes:
        """The object as JSON in the version of ``resource_type``; the stored bytes if they do.

        Any thread may ask.
        """
        data = record.data
        opening = b'{"apiVersion":"%s","kind":"%s",' % (
            resource_type.api_version.encode(),
            resource_type.kind.encode(),
        )
        if data.startswith(opening) and self.custom.is_current(record, resource_type):
            return data
        return orjson.dumps(self._shown(record.decode(), record.revision, resource_type))

    def _shown(self, obj: JsonObject, revision: int, resource_type: ResourceType) -> JsonObject:
        if resource_type.custom:
            return self.custom.presented(obj, revision, resource_type)
        return conversion.from_storage(obj, resource_type) if resource_type.stored_as else obj

    # -- writing ---------------------------------------------------------------------------

    def create(
        self,
        actor: Actor,
        obj: JsonObject,
        *,
        namespace: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Create an object; its own namespace, if any, must agree with ``namespace``."""
        resource_type, body = self._to_storage(obj)
        if self.track_fields:
            manager = manager_name(actor, options)
            body = self._ownership.created(body, self._served(obj), manager)
        return self._create(actor, resource_type, body, namespace, options, obj)

    def _create(
        self,
        actor: Actor,
        resource_type: ResourceType,
        body: JsonObject,
        namespace: str,
        options: WriteOptions,
        told: JsonObject,
    ) -> Record:
        """Create a decoded object; ``told`` is what the instruments are shown of the request."""
        place = resolve_namespace(resource_type, body, namespace)
        self._check_open(resource_type, body)
        complete = self._admit("create", actor, resource_type, "", body, None, place)
        metadata = complete["metadata"]
        name = free_name(metadata, resource_type, place, self.identities, self.store)
        complete = new_metadata(complete, resource_type, place, name, self.identities, self.clock)
        complete = self._preparation.create(complete, resource_type)
        self._validate(complete, None, resource_type, "")
        self._admit_last("create", actor, resource_type, "", complete, None)
        check_unused(resource_type, place, name, self.store)
        if options.dry_run:
            return self._unstored(resource_type, complete)
        self.gate.before_write(actor, resource_type, "")
        stored = self._stored(complete, resource_type)
        record = self.store.create(resource_type.group_resource, stored)
        self._tell(actor, "create", resource_type, record, None, options, body=told)
        self._consequences.created(record)
        return record

    def update(
        self,
        actor: Actor,
        obj: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Replace an object (or its status), checking ``resourceVersion`` if it is given."""
        served = self._served(obj)
        resource_type, obj = self._to_storage(obj)
        place = resolve_namespace(resource_type, obj, namespace)
        current = self.record(resource_type, place, obj["metadata"].get("name", ""))
        check_precondition(resource_type, current, obj["metadata"])

        def change(old: JsonObject) -> JsonObject:
            manager, through = manager_name(actor, options), subresource or options.through
            return self._owned(obj, old, served, manager, through)

        return self._change(actor, "update", resource_type, subresource, current, change, options)

    def patch(
        self,
        actor: Actor,
        resource_type: ResourceType,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
        inspect: Callable[[JsonObject], JsonObject] | None = None,
    ) -> Record:
        """Change an object as a patch says, in the version of ``resource_type``.

        ``inspect`` sees the patched object before anything else does and returns it, changed or
        not, or refuses it: the API server's field validation.
        """
        if patch_type is PatchType.APPLY:
            return self._apply(actor, resource_type, namespace, name, patch, subresource, options)
        current = self.record(resource_type, namespace, name)

        def change(old: JsonObject) -> JsonObject:
            seen = old if resource_type.custom else conversion.from_storage(old, resource_type)
            new = apply_patch(seen, patch, patch_type, resource_type)
            check_precondition(resource_type, current, new["metadata"])
            new = inspect(new) if inspect else new
            if new is seen:
                return old
            new = decoding.accepted(new, resource_type, self.custom, known=seen)
            manager, through = manager_name(actor, options), subresource or options.through
            return self._owned(new, old, resource_type, manager, through)

        return self._change(
            actor,
            "patch",
            self._stored_type(resource_type),
            subresource,
            current,
            change,
            options,
            body=patch,
            patch_type=patch_type,
        )

    def _apply(
        self,
        actor: Actor,
        served: ResourceType,
        namespace: str,
        name: str,
        config: Any,
        subresource: str,
        options: WriteOptions,
    ) -> Record:
        """Server-side apply: change the object, or create it."""
        config = check_target(config, namespace, name)
        manager = options.field_manager
        request = Application(config, served, manager, options.force, subresource)
        resource_type = self._stored_type(served)
        current = self.store.get(served.group_resource, namespace, name)

        def accept(obj: JsonObject) -> JsonObject:
            return decoding.accepted(obj, served, self.custom)

        def change(old: JsonObject | None) -> JsonObject:
            tracked = self.track_fields
            new = self._ownership.applied(request, old, accept, tracked=tracked)
            if current is not None:
                check_precondition(resource_type, current, new["metadata"])
            return new

        if current is None:
            if subresource:
                raise not_found(resource_type, name)
            return self._create(actor, resource_type, change(None), namespace, options, config)
        return self._change(
            actor,
            "patch",
            resource_type,
            subresource,
            current,
            change,
            options,
            body=config,
            patch_type=PatchType.APPLY,
        )

    def bind(
        self,
        actor: Actor,
        namespace: str,
        name: str,
        target: JsonObject,
        *,
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Assign a pod to a node: the ``binding`` subresource."""
        resource_type = self.scheme.of_kind("v1", "Pod")
        current = self.record(resource_type, namespace, name)
        old = self.store.decoded(current)
        node = binding.target_node(target, old)
        bound = binding.bound(old, target, node, self.store, self.clock)
        if options.dry_run:
            return self._unstored(resource_type, bound)
        self.gate.before_write(actor, resource_type, "binding")
        record = self.store.update(resource_type.group_resource, bound)
        body = {"spec": {"nodeName": node}}
        self._tell(
            actor,
            "bind",
            resource_type,
            record,
            current,
            options,
            subresource="binding",
            body=body,
            patch_type=PatchType.MERGE,
        )
        return record

    def delete(
        self,
        actor: Actor,
        resource_type: ResourceType,
        namespace: str,
        name: str,
        *,
        options: DeleteOptions,
        origin: OperationOrigin | None = None,
    ) -> Record:
        """Delete, or mark for deletion. The record is the object's newest state."""
        current = self.record(resource_type, namespace, name)
        old = self.store.decoded(current)
        check_delete_preconditions(resource_type, current, options)
        self._admit("delete", actor, resource_type, "", old, old)
        grace_s = deletion.grace_of(old, resource_type, options.grace_period_s)
        new = deletion.with_propagation(old, options.propagation_policy)
        if resource_type.group_resource == DEFINITIONS and self._has_instances(name):
            new = definitions.terminating(new, format_time(self.clock.now()))
        write = WriteOptions(dry_run=options.dry_run, origin=origin)
        if not deletion.must_wait(new, grace_s):
            return self._remove(actor, resource_type, current, write)
        new = deletion.marked(new, grace_s, self.clock.now())
        if resource_type.kind == "Namespace" and not resource_type.custom:
            new = with_part(new, "status", {**new.get("status", {}), "phase": "Terminating"})
        if new is old:
            return current
        if options.dry_run:
            return self._unstored(resource_type, new)
        self.gate.before_write(actor, resource_type, "")
        record = self.store.update(resource_type.group_resource, new)
        self._tell(actor, "delete", resource_type, record, current, write)
        self._consequences.updated(record)
        return record

    # -- whole worlds ----------------------------------------------------------------------

    def restorable(self, obj: JsonObject) -> tuple[ResourceType, JsonObject]:
        """An object from elsewhere as it would be stored here, checked but not admitted.

        Its identity, dates and status stay; what is missing of them is made up.
        """
        resource_type, body = self._to_storage(obj)
        place = resolve_namespace(resource_type, body, "")
        own = body["metadata"]
        fresh = new_metadata(
            with_part(body, "metadata", {k: v for k, v in own.items() if k != "resourceVersion"}),
            resource_type,
            place,
            own.get("name", ""),
            self.identities,
            self.clock,
        )
        kept = {name: own[name] for name in KEPT_BY_IMPORT if name in own}
        complete = with_part(fresh, "metadata", {**fresh["metadata"], **kept})
        if "status" not in obj or resource_type.group_resource == DEFINITIONS:
            complete = self._preparation.create(complete, resource_type)
        self._validate(complete, None, resource_type, "")
        return resource_type, self._stored(complete, resource_type)

    def restore(self, actor: Actor, resource_type: ResourceType, obj: JsonObject) -> Record:
        """Store what `restorable` returned; an object of that name gives way."""
        self.gate.before_write(actor, resource_type, "")
        metadata, resource = obj["metadata"], resource_type.group_resource
        current = self.store.get(resource, metadata.get("namespace", ""), metadata["name"])
        put = self.store.create if current is None else self.store.update
        record = put(resource, obj)
        self._tell(actor, "create", resource_type, record, current, NO_OPTIONS, body=obj)
        self._consequences.updated(record)
        return record

    def forget(self, record: Record) -> None:
        """Take an object away without asking, telling or waiting: for a world that begins anew."""
        removed = self.store.remove(record.resource, record.namespace, record.name)
        if record.resource == DEFINITIONS:
            self.custom.uninstall(removed.name)

    # -- inside ----------------------------------------------------------------------------

    def _to_storage(self, obj: JsonObject) -> tuple[ResourceType, JsonObject]:
        """The type and form in which an object that a client wrote goes on."""
        served = self._served(obj)
        return self._stored_type(served), decoding.accepted(obj, served, self.custom)

    def _served(self, obj: JsonObject) -> ResourceType:
        return self.scheme.of_kind(obj.get("apiVersion", ""), obj.get("kind", ""))

    def _owned(
        self,
        new: JsonObject,
        old: JsonObject,
        served: ResourceType,
        manager: str,
        subresource: str,
    ) -> JsonObject:
        """A change with the owners that it leads to: those of before if nobody tracks fields."""
        if self.track_fields:
            return self._ownership.updated(new, old, served, manager, subresource)
        if "managedFields" in old["metadata"] and not new["metadata"].get("managedFields"):
            return managed_fields.with_entries_of(new, old)
        return new

    def _stored_type(self, served: ResourceType) -> ResourceType:
        """Built-in kinds go on in the stored version, custom ones in that of the request."""
        if served.custom or not served.stored_as:
            return served
        return self.type_of(served.stored_as)

    def _has_instances(self, definition: str) -> bool:
        kinds = self.custom.kinds_of(definition)
        return bool(kinds) and self.store.count(kinds[0].resource_type.group_resource) > 0

    def _stored(self, obj: JsonObject, resource_type: ResourceType) -> JsonObject:
        return self.custom.stored(obj, resource_type) if resource_type.custom else obj

    def _check_open(self, resource_type: ResourceType, obj: JsonObject) -> None:
        kind = self.custom.of(resource_type.gvk)
        if kind is not None and kind.terminating:
            resource, name = resource_type.named_resource, obj["metadata"].get("name", "")
            raise ForbiddenError(
                f'{resource} "{name}" is forbidden: create not allowed while custom resource '
                "definition is terminating",
                name=name,
                group=resource.group,
                kind=resource.resource,
            )

    def _validate(
        self,
        new: JsonObject,
        old: JsonObject | None,
        resource_type: ResourceType,
        subresource: str,
    ) -> None:
        if resource_type.custom:
            errors = self.custom.errors(new, old, resource_type, subresource)
        elif old is None:
            place = new["metadata"].get("namespace")
            errors = validation.validate_create(new, resource_type, namespace=place)
        elif subresource == "status":
            errors = validation.validate_status_update(new, old, resource_type)
        elif subresource == "finalize":
            errors = validation.validate_finalize(new, old)
        else:
            errors = validation.validate_update(new, old, resource_type)
        if resource_type.group_resource == DEFINITIONS and not errors:
            errors = definition_errors(new, old)
        validation.raise_if_invalid(errors, resource_type, new["metadata"].get("name", ""))

    def _change(
        self,
        actor: Actor,
        verb: str,
        resource_type: ResourceType,
        subresource: str,
        current: Record,
        change: Callable[[JsonObject], JsonObject],
        options: WriteOptions,
        *,
        body: Any = None,
        patch_type: str = "",
    ) -> Record:
        def tell(record: Record) -> None:
            self._tell(
                actor,
                verb,
                resource_type,
                record,
                current,
                options,
                subresource=subresource,
                body=body,
                patch_type=patch_type,
            )

        old = self.decoded(current, resource_type)
        changed = change(old)
        new = self._prepared(changed, old, resource_type, subresource)
        new = managed_fields.with_entries_of(new, changed)
        new = self._admit("update", actor, resource_type, subresource, new, old)
        self._validate(new, old, resource_type, subresource)
        self._admit_last("update", actor, resource_type, subresource, new, old)
        if new == old or managed_fields.same_but_times(new, old):
            if options.origin and not options.dry_run:
                # An operation that changes nothing has happened all the same.
                tell(current)
            return current
        if options.dry_run:
            return self._unstored(resource_type, new)
        self.gate.before_write(actor, resource_type, subresource)
        if deletion.is_finished(new):
            # The change took the last thing that held the object; its deletion was told before.
            removed = self._remove(actor, resource_type, current, options)
            tell(removed)
            return removed
        record = self.store.update(resource_type.group_resource, self._stored(new, resource_type))
        tell(record)
        self._consequences.updated(record)
        return record

    def _prepared(
        self, new: JsonObject, old: JsonObject, resource_type: ResourceType, subresource: str
    ) -> JsonObject:
        new = updated_metadata(new, old)
        if subresource == "status":
            return strategies.keep_spec(new, old, resource_type)
        if resource_type.has_status:
            new = strategies.keep_status(new, old)
        if subresource == "finalize":
            return new
        new = self._preparation.update(new, old, resource_type)
        if strategies.generation_moves(new, old, resource_type):
            generation = old["metadata"].get("generation", 0) + 1
            new = with_part(new, "metadata", {**new["metadata"], "generation": generation})
        return new

    def _admit(
        self,
        verb: str,
        actor: Actor,
        resource_type: ResourceType,
        subresource: str,
        obj: JsonObject,
        old: JsonObject | None,
        namespace: str = "",
    ) -> JsonObject:
        return self.admission.admit(
            self._asked(verb, actor, resource_type, subresource, obj, old, namespace)
        )

    def _admit_last(
        self,
        verb: str,
        actor: Actor,
        resource_type: ResourceType,
        subresource: str,
        obj: JsonObject,
        old: JsonObject | None,
    ) -> None:
        if self.admission.validators:
            self.admission.validate(self._asked(verb, actor, resource_type, subresource, obj, old))

    def _asked(
        self,
        verb: str,
        actor: Actor,
        resource_type: ResourceType,
        subresource: str,
        obj: JsonObject,
        old: JsonObject | None,
        namespace: str = "",
    ) -> AdmissionRequest:
        metadata = obj["metadata"]
        return AdmissionRequest(
            verb=verb,
            resource_type=resource_type,
            subresource=subresource,
            namespace=namespace or metadata.get("namespace", ""),
            name=metadata.get("name", ""),
            actor=actor,
            obj=obj,
            old=old,
            store=self.store,
            clock=self.clock,
        )

    def _remove(
        self, actor: Actor, resource_type: ResourceType, current: Record, options: WriteOptions
    ) -> Record:
        if options.dry_run:
            return current
        self.gate.before_write(actor, resource_type, "")
        record = self.store.remove(resource_type.group_resource, current.namespace, current.name)
        if not current_is_marked(self.store.decoded(current)):
            self._tell(actor, "delete", resource_type, record, current, options)
        self._consequences.removed(record)
        return record

    def _unstored(self, resource_type: ResourceType, obj: JsonObject) -> Record:
        copy = versioned(self._stored(obj, resource_type), self.store.revision)
        return make_record(resource_type.group_resource, copy, self.store.revision)

    def _tell(
        self,
        actor: Actor,
        verb: str,
        resource_type: ResourceType,
        record: Record,
        previous: Record | None,
        options: WriteOptions,
        *,
        subresource: str = "",
        body: Any = None,
        patch_type: str = "",
    ) -> None:
        if not self.instruments.object_written:
            return
        write = ObjectWrite(
            actor=actor,
            verb=verb,
            subresource=subresource,
            api_version=resource_type.api_version,
            kind=resource_type.kind,
            record=record,
            previous=previous,
            body=body,
            patch_type=patch_type,
            origin=options.origin,
        )
        for hook in self.instruments.object_written:
            hook(write)


def manager_name(actor: Actor, options: WriteOptions) -> str:
    """The field manager of an update: as given, else from the writer's name."""
    return options.field_manager or managed_fields.manager_of(actor.manager)


def current_is_marked(obj: JsonObject) -> bool:
    """Whether the deletion was accepted, and told, before."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def resolve_namespace(resource_type: ResourceType, obj: JsonObject, namespace: str) -> str:
    """Where the object lives: the request's namespace, its own, or ``default``."""
    own = (obj.get("metadata") or {}).get("namespace", "")
    if not resource_type.namespaced:
        return ""
    if namespace and own and namespace != own:
        raise BadRequestError(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return namespace or own or DEFAULT_NAMESPACE


__all__ = ["DeleteOptions", "Registry", "WriteOptions"]
