"""The verbs of an embedded world. Each is one path from a request to at most one revision (and what
that entails).

Create, for example: find the type, decode (unknown fields go, defaults come), run admission, name,
prepare as the kind demands, validate, commit. To commit is to ask the gate, store, and tell the
instruments; a dry run takes the same path and stops before the gate. What is only faster is asked
once by each verb (`kubescene.registry.shortcuts`).
"""

from collections.abc import Callable
from typing import Any, Unpack

from msgspec import structs

from kubescene.actors import ENGINE, Actor
from kubescene.api import conversion
from kubescene.api.field_ownership import managed_fields
from kubescene.api.gates import OpenGate
from kubescene.api.kinds import POD
from kubescene.api.options import ADMITTED, NO_OPTIONS, DeleteOptions, OperationOrigin, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record, make_record, sharing, versioned
from kubescene.api.records.templates import Blueprint
from kubescene.api.records.traits import PODS
from kubescene.api.scheme import ResourceType
from kubescene.clock import format_time
from kubescene.errors import BadRequestError, ForbiddenError
from kubescene.instruments import Instruments
from kubescene.registry import decoding, deletion, strategies
from kubescene.registry import definition_status as definitions
from kubescene.registry.admission.policies import Policies
from kubescene.registry.base import BINDING, RegistryParts
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.registry.interface import Registry
from kubescene.registry.metadata import (
    check_unused,
    free_name,
    new_metadata,
    pinned,
    updated_metadata,
)
from kubescene.registry.objects import with_part
from kubescene.registry.ownership import Application, Ownership, check_target
from kubescene.registry.patching import apply_patch
from kubescene.registry.preconditions import (
    check_delete_preconditions,
    check_precondition,
    not_found,
    overtaken,
)
from kubescene.registry.shortcuts import WriteShortcuts
from kubescene.registry.shortcuts.templates import Bunch
from kubescene.registry.subresources import binding
from kubescene.registry.subresources.pod_subresources import POD_PARTS, narrowed
from kubescene.registry.writes import (
    REMOVAL,
    Result,
    WriteRequest,
    options_of_deletion,
    resolve_namespace,
)
from kubescene.shortcuts import ALL, Shortcuts
from kubescene.types import JsonObject

APPLY, MERGE = PatchType.APPLY, PatchType.MERGE


class EmbeddedRegistry(Registry):
    """Everything that kube-apiserver does with a write, in this process."""

    def __init__(self, *, shortcuts: Shortcuts = ALL, **parts: Unpack[RegistryParts]) -> None:
        super().__init__(**parts)
        self.policies = Policies(self.store, self.scheme, self.custom, self.admission)
        self._ownership = Ownership(self.scheme, self.custom, self.clocks)
        self._shortcuts = WriteShortcuts(
            self.store, self.admission, self.identities, self.clocks, shortcuts
        )
        self.lane_writes = self._shortcuts.lane_writes

    def define(self, definition: JsonObject) -> None:
        """Serve a kind as if it had always been: nobody is asked, and nothing is told of it."""
        asked, told = self.gate, self.instruments
        self.gate, self.instruments = OpenGate(), Instruments()
        try:
            self.create(ENGINE, definition, options=ADMITTED)
        finally:
            self.gate, self.instruments = asked, told

    # -- verbs -----------------------------------------------------------------------------

    def create(
        self,
        actor: Actor,
        obj: JsonObject,
        *,
        namespace: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        served = self._served(obj)
        if served.gvk == BINDING:
            return self._bind_named(actor, obj, namespace, options)
        kind = self._stored_type(served)
        request = WriteRequest(
            actor,
            "create",
            kind,
            options=options,
            body=obj,
            namespace=namespace,
            tracked=self._tracks(kind),
            served=served,
        )
        if (found := self._shortcuts.find(request, None)) is not None:
            return self._commit(request, None, found)
        if options.strict:
            self.reject_unknown(obj)
        body = decoding.accepted(obj, served, self.custom, examined=options.examined)
        if request.tracked:
            body = self._ownership.created(body, served, request.manager)
        return self._create(request, body)

    def bunch_of(self, actor: Actor, obj: JsonObject, options: WriteOptions) -> Bunch | None:
        """How to create pods that differ from this one in nothing but the name.

        None if they may differ in more, or if nothing is known of their template.
        """
        if type(options.blueprint) is not Blueprint or self.track_fields or options.dry_run:
            return None
        kind = self._stored_type(self._served(obj))
        request = WriteRequest(actor, "create", kind, options=options, body=obj)
        template = self._shortcuts.template_of(request)
        if template is None or template.encoded is None:
            return None
        if PODS in self.admission.concerned(POD.kind).reads:
            return None
        now = format_time(self.clocks.of(kind).now())
        return Bunch(template, self.store, self.identities, now)

    def update(
        self,
        actor: Actor,
        obj: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        served = self._served(obj)
        if options.strict:
            self.reject_unknown(obj)
        resource_type, obj = self.to_storage(obj, options.examined)
        place = resolve_namespace(resource_type, obj, namespace)
        current = self.record(resource_type, place, obj["metadata"].get("name", ""))
        check_precondition(resource_type, current, obj["metadata"])
        tracked = self._tracks(resource_type)
        request = WriteRequest(
            actor, "update", resource_type, subresource, options, tracked=tracked, served=served
        )
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
        stored_type = self._stored_type(resource_type)
        tracked = self._tracks(stored_type)
        request = WriteRequest(
            actor,
            "patch",
            stored_type,
            subresource,
            options,
            patch,
            patch_type,
            tracked=tracked,
            served=resource_type,
        )
        if patch_type is APPLY:
            return self._apply(request, resource_type, namespace, name)
        current = self.record(resource_type, namespace, name)
        is_own = inspect is None and stored_type is resource_type
        if is_own and (found := self._shortcuts.find(request, current)) is not None:
            return self._commit(request, current, found)

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
            self._shortcuts.learn(request, current, record)
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
        pods = self.scheme.of(POD)
        current = self.record(pods, namespace, name)
        body = {"spec": {"nodeName": str((target.get("target") or {}).get("name"))}}
        request = WriteRequest(actor, "bind", pods, "binding", options, body, MERGE)
        asked = structs.replace(request, verb="create", body=target)
        target = self.checks.admit_part(asked, target, (namespace, name))
        pod = self.store.decoded(current)
        node = binding.target_node(target, pod)
        return self._commit(
            request, current, binding.bound(pod, target, node, self.store, self.clock)
        )

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
        current = self.record(resource_type, namespace, name)
        check_delete_preconditions(resource_type, current, options)
        write = options_of_deletion(options, origin)
        request = WriteRequest(actor, "delete", resource_type, options=write, wish=options)
        if (found := self._shortcuts.find(request, current)) is not None:
            return self._commit(request, current, found)
        old = self.store.decoded(current)
        self.checks.admit(request, old, old)
        self.checks.release(request, old)
        grace_s = deletion.grace_of(old, resource_type, options.grace_period_s)
        new = deletion.with_propagation(old, options.propagation_policy)
        if resource_type.group_resource == DEFINITIONS and self._has_instances(name):
            new = definitions.terminating(new, format_time(self.clock.now()))
        if not deletion.must_wait(new, grace_s):
            return self._commit(request, current, REMOVAL)
        new = deletion.marked(new, grace_s, self.clocks.of(resource_type).now())
        if resource_type.kind == "Namespace" and not resource_type.custom:
            new = with_part(new, "status", {**new.get("status", {}), "phase": "Terminating"})
        return current if new is old else self._commit(request, current, new)

    # -- committing ------------------------------------------------------------------------

    def _commit(self, request: WriteRequest, current: Record | None, new: Result) -> Record:
        """The one place where something is written: ask the gate, store, tell, see what follows.

        ``new`` replaces ``current``, or is the first; objects are as the store keeps them.
        """
        resource_type = request.resource_type
        if request.options.dry_run:
            return self._unstored(resource_type, new, current)
        if self.webhooks.are_asked:
            self._check_current(request, current)
        if self.most_pods is not None and current is None:
            self._check_room(resource_type, new)
        if current is not None:
            name = current.name
        else:
            name = new["metadata"]["name"] if isinstance(new, dict) else new.name
        self.gate.before_write(request.actor, resource_type, request.subresource, name)
        if new is REMOVAL:
            assert current is not None
            return self._remove(request, current)
        record = self.store.put(resource_type.group_resource, new)
        if current is None or not current.deleting or request.verb != "delete":
            self.tell(request, record, current)
        if isinstance(new, dict):  # nothing follows from what shortcuts know
            self.consequences.charge(request, record, current)
            if current is None:
                self.consequences.created(record)
            else:
                self.consequences.updated(record, current)
        return record

    def _check_room(self, resource_type: ResourceType, new: Result) -> None:
        """403 for one pod more than there may be."""
        if resource_type.gvk != POD or self.store.count(PODS) < (self.most_pods or 0):
            return
        name = new["metadata"]["name"] if isinstance(new, dict) else getattr(new, "name", "")
        error = ForbiddenError(
            f'pods "{name}" is forbidden: this server holds at most {self.most_pods} pods '
            "(kubescene serve --max-pods)",
            name=name,
            kind="pods",
        )
        error.is_by_policy = True
        raise error

    def _check_current(self, request: WriteRequest, current: Record | None) -> None:
        """409 if somebody else was faster while this writer waited for webhooks."""
        if current is None:
            return  # a name that was taken meanwhile was found out by now
        found = self.store.get(current.resource, current.namespace, current.name)
        if found is None or found.revision != current.revision:
            raise overtaken(request.resource_type, current.name)

    def _remove(self, request: WriteRequest, current: Record) -> Record:
        record = self.store.remove(current.resource, current.namespace, current.name)
        if current.deleting:
            # The deletion was told when it was accepted.
            for hook in self.instruments.object_removed:
                hook(request.actor, record)
        else:
            self.tell(request, record, current)
        self.consequences.removed(record)
        return record

    def _unstored(self, resource_type: ResourceType, new: Result, current: Record | None) -> Record:
        """What a dry run would have stored, in place of ``current``."""
        if not isinstance(new, dict):  # no shortcut is taken by a dry run: this is a removal
            assert current is not None
            return current
        revision = self.store.revision
        copy = versioned(self.stored(new, resource_type), revision)
        edited = sharing(current, copy, revision)
        return edited or make_record(resource_type.group_resource, copy, revision)

    # -- the long way ----------------------------------------------------------------------

    def _bind_named(
        self, actor: Actor, body: JsonObject, namespace: str, options: WriteOptions
    ) -> Record:
        """Nobody stores a Binding: creating one binds the pod that it names."""
        if options.strict:
            self.reject_unknown(body)
        self.to_storage(body)  # which refuses what is no Binding
        name = (body.get("metadata") or {}).get("name", "")
        if not name:
            raise BadRequestError("name must be provided")
        place = resolve_namespace(self.type_of(BINDING), body, namespace)
        return self.bind(actor, place, name, body, options=options)

    def _create(self, request: WriteRequest, body: JsonObject) -> Record:
        """Create a decoded object."""
        resource_type = request.resource_type
        place = resolve_namespace(resource_type, body, request.namespace)
        self.checks.check_open(resource_type, body)
        complete = self.checks.admit(request, body, None, place)
        metadata = complete["metadata"]
        identities = pinned(self.identities, request.options.consultation)
        name = free_name(metadata, resource_type, place, identities, self.store)
        clock = self.clocks.of(resource_type)
        complete = new_metadata(complete, resource_type, place, name, identities, clock)
        complete = self.preparation.create(complete, resource_type)
        self.checks.accept(request, complete, None)
        check_unused(resource_type, place, name, self.store)
        record = self._commit(request, None, self.stored(complete, resource_type))
        if not request.options.dry_run:
            self._shortcuts.learn(request, None, record)
        return record

    def _apply(
        self, request: WriteRequest, served: ResourceType, namespace: str, name: str
    ) -> Record:
        """Server-side apply: change the object, or create it."""
        config = check_target(request.body, namespace, name, namespaced=served.namespaced)
        options, subresource = request.options, request.subresource
        application = Application(config, served, options.field_manager, options.force, subresource)
        current = self.store.get(served.group_resource, namespace, name)

        def accept(obj: JsonObject) -> JsonObject:
            return decoding.accepted(obj, served, self.custom)

        def change(old: JsonObject | None) -> JsonObject:
            new = self._ownership.applied(application, old, accept, tracked=request.tracked)
            if current is not None:
                check_precondition(request.resource_type, current, new["metadata"])
            return new

        if current is not None:
            return self._change(request, current, change)
        if subresource:
            raise not_found(request.resource_type, name)
        creation = structs.replace(
            request, verb="create", body=config, patch_type="", namespace=namespace
        )
        return self._create(creation, change(None))

    def _change(
        self,
        request: WriteRequest,
        current: Record,
        change: Callable[[JsonObject], JsonObject],
    ) -> Record:
        """Change what is stored, as ``change`` makes one object of another."""
        resource_type, options = request.resource_type, request.options
        old = self.decoded(current, resource_type)
        changed = change(old)
        new = self._prepared(changed, old, resource_type, request.subresource)
        new = managed_fields.with_entries_of(new, changed)
        admitted = self.checks.admit(request, new, old)
        if admitted is not new and not self.admission.is_quiet:
            # Rules of the user's may change what no writer may, and what moves the generation.
            again = self._prepared(admitted, old, resource_type, request.subresource)
            admitted = managed_fields.with_entries_of(again, changed)
        new = admitted
        self.checks.accept(request, new, old)
        if new == old or managed_fields.same_but_times(new, old):
            if options.origin and not options.dry_run:
                # An operation that changes nothing has happened all the same.
                self.tell(request, current, current)
            return current
        if options.dry_run or not deletion.is_finished(new):
            return self._commit(request, current, self.stored(new, resource_type))
        # The change took the last thing that held the object; its deletion was told before.
        removed = self._commit(request, current, REMOVAL)
        self.tell(request, removed, current)
        return removed

    def _prepared(
        self, new: JsonObject, old: JsonObject, resource_type: ResourceType, subresource: str
    ) -> JsonObject:
        if subresource == "status":
            return strategies.keep_spec(new, old, resource_type)
        new = updated_metadata(new, old)
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
        if request.tracked:
            through = request.owned_through
            return self._ownership.updated(new, old, served, request.manager, through)
        if "managedFields" in old["metadata"] and not new["metadata"].get("managedFields"):
            return managed_fields.with_entries_of(new, old)
        return new

    def _has_instances(self, definition: str) -> bool:
        kinds = self.custom.kinds_of(definition)
        return bool(kinds) and self.store.count(kinds[0].resource_type.group_resource) > 0
