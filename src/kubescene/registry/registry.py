"""The verbs. Each is one path from a request to at most one revision (and what that entails).

Create, for example: find the type, decode (unknown fields go, defaults come), run admission, name,
prepare as the kind demands, validate, ask the gate, store, tell the instruments. A dry run takes
the same path and stops before the gate.
"""

from collections.abc import Callable
from typing import Any

import orjson

from kubescene.actors import Actor, Role
from kubescene.api import conversion
from kubescene.api.field_ownership import managed_fields
from kubescene.api.gates import OpenGate, WriteGate
from kubescene.api.kinds import POD
from kubescene.api.options import NO_OPTIONS, DeleteOptions, OperationOrigin, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record, make_record, versioned
from kubescene.api.records.parts import Composite, Predecessor, Sections
from kubescene.api.records.templates import Blueprint
from kubescene.api.records.traits import PODS
from kubescene.api.schemas.strict_decoding import strict_error
from kubescene.api.scheme import GroupVersionKind, ResourceType, Scheme
from kubescene.clock import Clock, Identities, format_time
from kubescene.errors import BadRequestError
from kubescene.instruments import Instruments
from kubescene.registry import decoding, deletion, strategies
from kubescene.registry import definition_status as definitions
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.checks import Checks
from kubescene.registry.clocks import Clocks
from kubescene.registry.consequences import Consequences
from kubescene.registry.custom_resources import DEFINITIONS, CustomResources
from kubescene.registry.metadata import check_unused, free_name, new_metadata, updated_metadata
from kubescene.registry.objects import with_part
from kubescene.registry.ownership import Application, Ownership, check_target
from kubescene.registry.patching import apply_patch
from kubescene.registry.preconditions import (
    check_delete_preconditions,
    check_precondition,
    not_found,
)
from kubescene.registry.preparation import Preparation
from kubescene.registry.shortcuts.bunches import Bunch
from kubescene.registry.shortcuts.encoded_templates import Cast
from kubescene.registry.shortcuts.lane_writes import LaneWrites
from kubescene.registry.shortcuts.node_status_patches import NodeReports
from kubescene.registry.shortcuts.pod_deletions import PodDeletions
from kubescene.registry.shortcuts.status_changes import is_status_change
from kubescene.registry.shortcuts.status_counts import StatusWrites
from kubescene.registry.shortcuts.status_patches import Report, Reports
from kubescene.registry.shortcuts.templates import Mold, Molds
from kubescene.registry.subresources import binding
from kubescene.registry.subresources.eviction import Evictions
from kubescene.registry.subresources.pod_subresources import POD_PARTS, narrowed
from kubescene.registry.subresources.scaling import Scales
from kubescene.registry.writes import WriteRequest, resolve_namespace
from kubescene.store import Store
from kubescene.types import JsonObject

BINDING = GroupVersionKind("", "v1", "Binding")
APPLY, MERGE = PatchType.APPLY, PatchType.MERGE


class Registry:
    """All verbs over one store; ``scales`` and ``evictions`` hold those of two subresources.

    ``track_fields`` says whether every write is noted in ``managedFields``. Off, which is the
    default because it costs time and space, only applies are, and writes of the kinds in
    ``always_tracked`` (design note 0012).
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
        server_clock: Clock | None = None,
    ) -> None:
        self.scheme = scheme
        self.store = store
        self.clock = clock
        self.clocks = Clocks(clock, server_clock)
        self.identities = identities
        self.instruments = instruments or Instruments()
        self.gate: WriteGate = OpenGate()
        self.custom = CustomResources(scheme, store)
        self.admission = admission
        self.checks = Checks(admission, store, clock, self.custom)
        self.preparation = Preparation(store, clock, self.custom)
        self.consequences = Consequences(self)
        self.scales = Scales(self)
        self.evictions = Evictions(self)
        self.track_fields = False
        self.always_tracked: frozenset[GroupVersionKind] = frozenset()
        self._bindings = binding.Bindings(store)
        self._molds = Molds(store, admission)
        self._reports = Reports(admission)
        self.lane_writes = LaneWrites(store, self._bindings, self._reports)
        self._node_reports = NodeReports(admission)
        self._pod_deletions = PodDeletions(store, admission)
        self._status_writes = StatusWrites(store, admission)
        self._ownership = Ownership(scheme, self.custom, self.clocks)

    # -- reading ---------------------------------------------------------------------------

    def record(self, resource_type: ResourceType, namespace: str, name: str) -> Record:
        """The stored record; 404 if there is none."""
        record = self.store.get(resource_type.group_resource, namespace, name)
        if record is None:
            raise not_found(resource_type, name)
        return record

    def type_of(self, gvk: GroupVersionKind) -> ResourceType:
        return self.scheme.of(gvk)

    def decoded(self, record: Record, resource_type: ResourceType) -> JsonObject:
        """The object in the version of ``resource_type``; shared, and therefore read-only."""
        obj = self.store.decoded(record)
        if resource_type.custom or resource_type.stored_as:
            return self._shown(obj, record.revision, resource_type)
        return obj

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
        if options.blueprint is not None:
            tracked = self.track_fields
            mold = self._molds.find(actor, obj, namespace, options, tracked=tracked)
            if mold is not None:
                return self._create_like(mold, actor, obj, options)
        if options.strict:
            self.reject_unknown(obj)
        resource_type, body = self.to_storage(obj)
        if resource_type.gvk == BINDING:
            return self._bind_named(actor, obj, namespace, options)
        request = WriteRequest(actor, "create", resource_type, options=options, body=obj)
        if self._tracks(resource_type):
            body = self._ownership.created(body, self._served(obj), request.manager)
        return self._create(request, body, namespace)

    def bunch_of(self, actor: Actor, obj: JsonObject, options: WriteOptions) -> Bunch | None:
        """How to create pods that differ from this one in nothing but the name.

        None if they may differ in more, or if nothing is known of their template.
        """
        if type(options.blueprint) is not Blueprint or self.track_fields or options.dry_run:
            return None
        mold = self._molds.find(actor, obj, "", options)
        if mold is None or mold.cast is None or PODS in self.admission.reads_for(POD.kind):
            return None
        now = format_time(self.clocks.of(mold.resource_type).now())
        return Bunch(mold, self.store, self.identities, now)

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
        if options.strict:
            self.reject_unknown(obj)
        resource_type, obj = self.to_storage(obj)
        place = resolve_namespace(resource_type, obj, namespace)
        current = self.record(resource_type, place, obj["metadata"].get("name", ""))
        check_precondition(resource_type, current, obj["metadata"])
        request = WriteRequest(actor, "update", resource_type, subresource, options)
        return self._change(request, current, lambda old: self._owned(request, obj, old, served))

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
        stored_type = self._stored_type(resource_type)
        request = WriteRequest(actor, "patch", stored_type, subresource, options, patch, patch_type)
        if patch_type is APPLY:
            return self._apply(request, resource_type, namespace, name)
        current = self.record(resource_type, namespace, name)
        is_own = inspect is None and not self.track_fields and stored_type is resource_type
        if is_own and subresource == "status":
            record = self._in_parts(request, current)
            if record is not None:
                return record

        def change(old: JsonObject) -> JsonObject:
            seen = old if resource_type.custom else conversion.from_storage(old, resource_type)
            new = apply_patch(seen, patch, patch_type, resource_type)
            check_precondition(resource_type, current, new["metadata"])
            new = inspect(new) if inspect else new
            if options.strict:
                self.reject_unknown(new)
            if new is seen:
                return old
            new = decoding.accepted(new, resource_type, self.custom, known=seen)
            return self._owned(request, new, old, resource_type)

        record = self._change(request, current, change)
        if is_own:
            self._reports.keep(request, current, record)
            self._node_reports.keep(request, current, record)
            self._status_writes.keep(request, current, record)
        return record

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
        resource_type = self.type_of(POD)
        current = self.record(resource_type, namespace, name)
        if not options.dry_run and self._bindings.are_quick(current, target):
            return self._assign(actor, resource_type, current, target["target"]["name"], options)
        old = self.store.decoded(current)
        node = binding.target_node(target, old)
        bound = binding.bound(old, target, node, self.store, self.clock)
        if options.dry_run:
            return self._unstored(resource_type, bound)
        self.gate.before_write(actor, resource_type, "binding", name)
        record = self.store.update(resource_type.group_resource, bound)
        body = {"spec": {"nodeName": node}}
        request = WriteRequest(actor, "bind", resource_type, "binding", options, body, MERGE)
        self.tell(request, record, current)
        return record

    def assign(
        self, actor: Actor, namespace: str, name: str, node: str, *, uid: str = ""
    ) -> Record:
        """Bind a pod to a node, and no more: for those who have no Binding to send."""
        resource_type = self.scheme.of(POD)
        current = self.record(resource_type, namespace, name)
        is_meant = not uid or uid == current.uid
        if is_meant and node and self._bindings.may_be_assigned(current):
            return self._assign(actor, resource_type, current, node, NO_OPTIONS)
        return self.bind(actor, namespace, name, binding.binding_to(node, uid))

    def _assign(
        self,
        actor: Actor,
        resource_type: ResourceType,
        current: Record,
        node: str,
        options: WriteOptions,
    ) -> Record:
        """Give a node to a pod that gets nothing else and may have it."""
        self.gate.before_write(actor, resource_type, "binding", current.name)
        record = self._bindings.bind(current, node, format_time(self.clock.now()))
        body = {"spec": {"nodeName": node}}
        request = WriteRequest(actor, "bind", resource_type, "binding", options, body, MERGE)
        self.tell(request, record, current)
        return record

    def _bind_named(
        self, actor: Actor, body: JsonObject, namespace: str, options: WriteOptions
    ) -> Record:
        """Nobody stores a Binding: creating one binds the pod that it names."""
        resource_type = self.type_of(BINDING)
        name = (body.get("metadata") or {}).get("name", "")
        if not name:
            raise BadRequestError("name must be provided")
        place = resolve_namespace(resource_type, body, namespace)
        return self.bind(actor, place, name, body, options=options)

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
        check_delete_preconditions(resource_type, current, options)
        is_plain = origin is None and not options.dry_run
        write = NO_OPTIONS if is_plain else WriteOptions(dry_run=options.dry_run, origin=origin)
        request = WriteRequest(actor, "delete", resource_type, options=write)
        if (seconds := self._pod_deletions.grace_of(current, options)) is not None:
            return self._delete_pod(request, current, seconds)
        old = self.store.decoded(current)
        self.checks.admit(request, old, old)
        grace_s = deletion.grace_of(old, resource_type, options.grace_period_s)
        new = deletion.with_propagation(old, options.propagation_policy)
        if resource_type.group_resource == DEFINITIONS and self._has_instances(name):
            new = definitions.terminating(new, format_time(self.clock.now()))
        if not deletion.must_wait(new, grace_s):
            return self._remove(request, current)
        new = deletion.marked(new, grace_s, self.clocks.of(resource_type).now())
        if resource_type.kind == "Namespace" and not resource_type.custom:
            new = with_part(new, "status", {**new.get("status", {}), "phase": "Terminating"})
        if new is old:
            return current
        if options.dry_run:
            return self._unstored(resource_type, new, current)
        self.gate.before_write(actor, resource_type, "", name)
        record = self.store.update(resource_type.group_resource, new)
        if not current.deleting:
            self.tell(request, record, current)
        self.consequences.updated(record)
        return record

    def role_of(self, actor: Actor) -> Role:
        """What the actor is in the scenario that runs now, if one does."""
        return self.gate.role_of(actor)

    # -- shared by the verbs, and by imports -------------------------------------------------

    def to_storage(self, obj: JsonObject) -> tuple[ResourceType, JsonObject]:
        """The type and form in which an object that a client wrote goes on."""
        served = self._served(obj)
        return self._stored_type(served), decoding.accepted(obj, served, self.custom)

    def reject_unknown(self, obj: JsonObject) -> None:
        """400 for fields that the object's kind does not have: strict field validation."""
        served = self._served(obj)
        if complaints := decoding.unknown_complaints(obj, served, self.custom):
            raise strict_error(served.gvk, complaints)

    def stored(self, obj: JsonObject, resource_type: ResourceType) -> JsonObject:
        """The object as the store keeps it: custom ones in the storage version."""
        return self.custom.stored(obj, resource_type) if resource_type.custom else obj

    def tell(self, request: WriteRequest, record: Record, previous: Record | None) -> None:
        """Let the instruments know of an accepted write."""
        if hooks := self.instruments.object_written:
            write = request.done(record, previous, self.gate.role_of(request.actor))
            for hook in hooks:
                hook(write)

    # -- inside ----------------------------------------------------------------------------

    def _create(self, request: WriteRequest, body: JsonObject, namespace: str) -> Record:
        """Create a decoded object."""
        resource_type = request.resource_type
        place = resolve_namespace(resource_type, body, namespace)
        seen = self._molds.seen(resource_type)
        self.checks.check_open(resource_type, body)
        complete = self.checks.admit(request, body, None, place)
        metadata = complete["metadata"]
        name = free_name(metadata, resource_type, place, self.identities, self.store)
        clock = self.clocks.of(resource_type)
        complete = new_metadata(complete, resource_type, place, name, self.identities, clock)
        complete = self.preparation.create(complete, resource_type)
        self.checks.accept(request, complete, None)
        check_unused(resource_type, place, name, self.store)
        if request.options.dry_run:
            return self._unstored(resource_type, complete)
        record = self._store_new(request, complete)
        if request.options.blueprint is not None:
            self._molds.keep(request, namespace, seen, record, tracked=self.track_fields)
        return record

    def _create_like(
        self, mold: Mold, actor: Actor, obj: JsonObject, options: WriteOptions
    ) -> Record:
        """Create an object of a blueprint whose first one went the long way."""
        resource_type = mold.resource_type
        request = WriteRequest(actor, "create", resource_type, options=options, body=obj)
        place = mold.place
        name = free_name(obj["metadata"], resource_type, place, self.identities, self.store)
        if mold.cast is not None and mold.is_good_name(name):
            return self._create_cast(request, mold.cast, name)
        complete = mold.named(name, obj, self.identities, self.clocks.of(resource_type))
        if not mold.is_good_name(name):
            self.checks.accept(request, complete, None)
        check_unused(resource_type, place, name, self.store)
        return self._store_new(request, complete, mold.encoded)

    def _create_cast(self, request: WriteRequest, cast: Cast, name: str) -> Record:
        """Create a pod of which everything but name, uid and time is encoded already."""
        resource_type, first = request.resource_type, cast.record
        uid = self.identities.uid(resource_type.kind, first.namespace, name)
        metadata = cast.metadata(name, uid, format_time(self.clocks.of(resource_type).now()))
        check_unused(resource_type, first.namespace, name, self.store)
        self.gate.before_write(request.actor, resource_type, "", name)
        members = cast.members(request.body)
        record = self.store.create_like(first, name, uid, metadata, members)
        self.tell(request, record, None)
        return record

    def _store_new(
        self, request: WriteRequest, obj: JsonObject, like: Predecessor | None = None
    ) -> Record:
        resource_type = request.resource_type
        self.gate.before_write(request.actor, resource_type, "", obj["metadata"]["name"])
        stored = self.stored(obj, resource_type)
        record = self.store.create(resource_type.group_resource, stored, like=like)
        self.tell(request, record, None)
        self.consequences.created(record)
        return record

    def _apply(
        self, request: WriteRequest, served: ResourceType, namespace: str, name: str
    ) -> Record:
        """Server-side apply: change the object, or create it."""
        config = check_target(request.body, namespace, name, namespaced=served.namespaced)
        options, subresource = request.options, request.subresource
        application = Application(config, served, options.field_manager, options.force, subresource)
        current = self.store.get(served.group_resource, namespace, name)
        is_tracked = self._tracks(request.resource_type)

        def accept(obj: JsonObject) -> JsonObject:
            return decoding.accepted(obj, served, self.custom)

        def change(old: JsonObject | None) -> JsonObject:
            new = self._ownership.applied(application, old, accept, tracked=is_tracked)
            if current is not None:
                check_precondition(request.resource_type, current, new["metadata"])
            return new

        if current is not None:
            return self._change(request, current, change)
        if subresource:
            raise not_found(request.resource_type, name)
        creation = WriteRequest(
            request.actor, "create", request.resource_type, options=options, body=config
        )
        return self._create(creation, change(None), namespace)

    def _change(
        self,
        request: WriteRequest,
        current: Record,
        change: Callable[[JsonObject], JsonObject],
    ) -> Record:
        resource_type, options = request.resource_type, request.options
        old = self.decoded(current, resource_type)
        changed = change(old)
        if request.subresource == "status" and self._is_quick(changed, old, resource_type):
            new = changed
            self.checks.validate(new, old, resource_type, "status")
            is_same = new["status"] == old["status"]
        else:
            new = self._prepared(changed, old, resource_type, request.subresource)
            new = managed_fields.with_entries_of(new, changed)
            new = self.checks.admit(request, new, old)
            self.checks.accept(request, new, old)
            is_same = new == old or managed_fields.same_but_times(new, old)
        if is_same:
            if options.origin and not options.dry_run:
                # An operation that changes nothing has happened all the same.
                self.tell(request, current, current)
            return current
        if options.dry_run:
            return self._unstored(resource_type, new, current)
        return self._store_changed(request, current, new)

    def _is_quick(self, new: JsonObject, old: JsonObject, resource_type: ResourceType) -> bool:
        """Whether only validation has a say: nothing but the status changes."""
        return self.admission.is_quiet and is_status_change(new, old, resource_type)

    def _in_parts(self, request: WriteRequest, current: Record) -> Record | None:
        """Patch a status of which enough is known; None if it has to go the long way."""
        if (report := self._reports.find(request, current)) is not None:
            return self._report(request, current, report)
        if (members := self._node_reports.find(request, current)) is not None:
            return self._rewrite(request, current, members)
        if (status := self._status_writes.find(request, current)) is not None:
            return self._restate(request, current, status)
        return None

    def _restate(self, request: WriteRequest, current: Record, status: JsonObject) -> Record:
        """Give an object a status that is known to be acceptable."""
        resource_type, name = request.resource_type, current.name
        self.gate.before_write(request.actor, resource_type, request.subresource, name)
        record = self.store.restate(current, status)
        self.tell(request, record, current)
        return record

    def _rewrite(
        self, request: WriteRequest, current: Record, members: tuple[bytes, ...]
    ) -> Record:
        """Make of a node what the same request made of another one like it."""
        resource_type, name = request.resource_type, current.name
        self.gate.before_write(request.actor, resource_type, request.subresource, name)
        record = self.store.rewrite(current, members, node=current.node, phase=current.phase)
        self.tell(request, record, current)
        return record

    def _report(self, request: WriteRequest, current: Record, report: Report) -> Record:
        """Give a pod the status that the same report gave to another one like it."""
        resource_type, name = request.resource_type, current.name
        self.gate.before_write(request.actor, resource_type, request.subresource, name)
        assert isinstance(current.payload, Sections)
        spec, node, _, end = current.payload.members
        members = (spec, node, report.status, end)
        record = self.store.rewrite(current, members, node=current.node, phase=report.phase)
        self.tell(request, record, current)
        return record

    def _store_changed(self, request: WriteRequest, current: Record, new: JsonObject) -> Record:
        resource_type = request.resource_type
        if deletion.is_finished(new):
            # The change took the last thing that held the object; its deletion was told before.
            removed = self._remove(request, current)
            self.tell(request, removed, current)
            return removed
        self.gate.before_write(request.actor, resource_type, request.subresource, current.name)
        record = self.store.update(resource_type.group_resource, self.stored(new, resource_type))
        self.tell(request, record, current)
        self.consequences.updated(record)
        return record

    def _prepared(
        self, new: JsonObject, old: JsonObject, resource_type: ResourceType, subresource: str
    ) -> JsonObject:
        new = updated_metadata(new, old)
        if subresource == "status":
            return strategies.keep_spec(new, old, resource_type)
        if subresource in POD_PARTS:
            new = narrowed(new, old, subresource)
        elif resource_type.has_status:
            new = strategies.keep_status(new, old)
        if subresource == "finalize":
            return new
        new = self.preparation.update(new, old, resource_type)
        if strategies.generation_moves(new, old, resource_type):
            generation = old["metadata"].get("generation", 0) + 1
            new = with_part(new, "metadata", {**new["metadata"], "generation": generation})
        return new

    def _tracks(self, resource_type: ResourceType) -> bool:
        always = self.always_tracked
        return self.track_fields or (bool(always) and resource_type.gvk in always)

    def _owned(
        self, request: WriteRequest, new: JsonObject, old: JsonObject, served: ResourceType
    ) -> JsonObject:
        """A change with the owners that it leads to: those of before if nobody tracks fields."""
        if self._tracks(request.resource_type):
            through = request.owned_through
            return self._ownership.updated(new, old, served, request.manager, through)
        if "managedFields" in old["metadata"] and not new["metadata"].get("managedFields"):
            return managed_fields.with_entries_of(new, old)
        return new

    def _delete_pod(self, request: WriteRequest, current: Record, grace_s: int) -> Record:
        """Delete a pod that nothing holds, after it was given so many seconds to stop."""
        if not grace_s:
            return self._remove(request, current)
        resource_type = request.resource_type
        self.gate.before_write(request.actor, resource_type, "", current.name)
        now = self.clocks.of(resource_type).now()
        record = self._pod_deletions.mark(current, grace_s, now)
        self.tell(request, record, current)
        return record

    def _remove(self, request: WriteRequest, current: Record) -> Record:
        if request.options.dry_run:
            return current
        resource_type = request.resource_type
        self.gate.before_write(request.actor, resource_type, request.subresource, current.name)
        record = self.store.remove(resource_type.group_resource, current.namespace, current.name)
        if current.deleting:
            # The deletion was told when it was accepted.
            for hook in self.instruments.object_removed:
                hook(request.actor, record)
        else:
            self.tell(request, record, current)
        self.consequences.removed(record)
        return record

    def _unstored(
        self, resource_type: ResourceType, obj: JsonObject, current: Record | None = None
    ) -> Record:
        """What a dry run would have stored, in place of ``current``."""
        revision, before = self.store.revision, None if current is None else current.payload
        copy = versioned(self.stored(obj, resource_type), revision)
        payload = before.succeed(copy, revision) if isinstance(before, Composite) else None
        return make_record(resource_type.group_resource, copy, revision, payload)

    def _served(self, obj: JsonObject) -> ResourceType:
        return self.scheme.of_kind(obj.get("apiVersion", ""), obj.get("kind", ""))

    def _stored_type(self, served: ResourceType) -> ResourceType:
        """Built-in kinds go on in the stored version, custom ones in that of the request."""
        if served.custom or not served.stored_as:
            return served
        return self.type_of(served.stored_as)

    def _has_instances(self, definition: str) -> bool:
        kinds = self.custom.kinds_of(definition)
        return bool(kinds) and self.store.count(kinds[0].resource_type.group_resource) > 0
