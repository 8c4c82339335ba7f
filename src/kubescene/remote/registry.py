"""The verbs of a world whose objects are held by an API server that is not ours.

Reads are those of the mirror. A write asks the gate, goes to the server, is waited for, and is then
told to the instruments: when a verb returns, everybody has heard of it, as in an embedded
world. Defaulting, admission and validation are the server's.

What differs, because it must: the gate is asked before the server is. A first write of a loop that
the server refuses has moved the minor step all the same.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

from msgspec import structs

from kubescene.actors import Actor
from kubescene.api.disruption_budgets import BUDGET, BUDGETS, budget_selector
from kubescene.api.kinds import NODE, POD, SERVICE_ACCOUNT
from kubescene.api.options import (
    NO_OPTIONS,
    PLAIN_DELETE,
    DeleteOptions,
    OperationOrigin,
    WriteOptions,
)
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import ResourceType
from kubescene.client import ObjectRef
from kubescene.clock import format_time
from kubescene.errors import AlreadyExistsError, ApiError, BadRequestError, KubesceneError
from kubescene.registry import Registry, RegistryParts
from kubescene.registry.accounts import RESOURCES
from kubescene.registry.admission.plugins.service_account import DEFAULT_ACCOUNT, SERVICE_ACCOUNTS
from kubescene.registry.base import BINDING
from kubescene.registry.consequences import ACCOUNTS_CONTROLLER, Consequences
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.registry.definition_status import is_true
from kubescene.registry.metadata import free_name
from kubescene.registry.objects import set_condition
from kubescene.registry.patching import apply_patch
from kubescene.registry.preconditions import not_found
from kubescene.registry.subresources.eviction import (
    API_SERVER,
    DISRUPTION_TARGET,
    Evictions,
    is_unguarded,
)
from kubescene.registry.writes import WriteRequest, resolve_namespace
from kubescene.remote.link import Announcement, Link
from kubescene.types import JsonObject


class RemoteConsequences(Consequences):
    """Namespaces get their service accounts here, unless a controller manager was faster.

    Without them a server takes no pods. Definitions are waited for; tokens and what else follows is
    left to whoever runs the cluster.
    """

    _registry: "RemoteRegistry"

    def created(self, record: Record) -> None:
        if record.resource == DEFINITIONS:
            self._await_kind(record.name)
        elif record.resource not in RESOURCES:
            super().created(record)

    def updated(self, record: Record, before: Record | None = None) -> None:
        del before
        if record.resource == DEFINITIONS and record.deleting:
            self._registry.wait_gone(record)

    def removed(self, record: Record) -> None:
        if record.resource == SERVICE_ACCOUNTS and record.name == DEFAULT_ACCOUNT:
            self._give_account(record.namespace)
        elif record.resource != DEFINITIONS and record.resource not in RESOURCES:
            super().removed(record)

    def _give_account(self, namespace: str) -> None:
        try:
            super()._give_account(namespace)
        except AlreadyExistsError:
            self._take_account(namespace)

    def _take_account(self, namespace: str) -> None:
        """A controller manager was faster: what it did is told as if it were ours."""
        registry = self._registry
        key = (SERVICE_ACCOUNTS, namespace, DEFAULT_ACCOUNT)
        registry.link.mirror.wait_until(
            lambda: registry.store.get(*key) is not None, f"the service account of {namespace}"
        )
        account = registry.store.get(*key)
        assert account is not None
        kind = registry.type_of(SERVICE_ACCOUNT)
        body = {"apiVersion": kind.api_version, "kind": kind.kind}
        metadata = {"name": DEFAULT_ACCOUNT, "namespace": namespace}
        told = WriteRequest(ACCOUNTS_CONTROLLER, "create", kind, body=body | {"metadata": metadata})
        registry.tell(told, account, None)

    def _await_kind(self, definition: str) -> None:
        registry = self._registry
        registry.link.mirror.wait_until(
            partial(is_in_force, registry, definition), f"that {definition} is in force"
        )


def is_in_force(registry: "RemoteRegistry", definition: str) -> bool:
    """Whether objects of a definition can be created, and are followed."""
    record = registry.store.get(DEFINITIONS, "", definition)
    if record is None or not is_true(registry.store.decoded(record), "Established"):
        return False
    kinds = registry.custom.kinds_of(definition)
    client = registry.link.client
    return all(client.is_following(kind.resource_type.group_resource) for kind in kinds)


EVICT = "evict"
FINALIZE = "finalize"
DATES = ("creationTimestamp", "deletionTimestamp")
"""Which nobody may change, and a server knows if they are left out."""


class RemoteEvictions(Evictions):
    """Evicts by the server's own subresource.

    What the server writes on the way, to the budget and to the pod, is told as in an embedded
    world.
    """

    _registry: "RemoteRegistry"

    def evict(
        self,
        actor: Actor,
        namespace: str,
        name: str,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        return self._registry.evict(actor, namespace, name, options=options, origin=origin)

    def budgets_of(self, pod: Record | None) -> Sequence[Record]:
        """The budgets that have to allow an eviction, as they are before it."""
        if pod is None or is_unguarded(pod):
            return ()
        store = self._registry.store
        budgets = store.list(BUDGETS, pod.namespace)
        return [it for it in budgets if budget_selector(store.decoded(it)).matches(pod.labels)]

    def tell(self, actor: Actor, pod: Record, budgets: Sequence[Record]) -> None:
        """What was written beside the deletion of a pod; ``pod`` and budgets are as before."""
        registry, options = self._registry, WriteOptions(field_manager=API_SERVER)
        for before in budgets:
            after = registry.store.get(before.resource, *before.key)
            if after is not None and after is not before:
                kind = registry.type_of(BUDGET)
                registry.tell(WriteRequest(actor, "update", kind, "status", options), after, before)
        status = registry.store.decoded(pod).get("status") or {}
        now = format_time(registry.clock.now())
        conditions = set_condition(status.get("conditions") or [], DISRUPTION_TARGET, now)
        body, merge = {"status": {"conditions": conditions}}, PatchType.MERGE
        pods = registry.type_of(POD)
        noted = WriteRequest(actor, "patch", pods, "status", options, body, merge)
        registry.tell(noted, registry.store.get(pod.resource, *pod.key) or pod, pod)


class RemoteRegistry(Registry):
    """`connect` it before anybody writes."""

    evictions: RemoteEvictions

    def __init__(self, **parts: Unpack[RegistryParts]) -> None:
        super().__init__(**parts)
        self.consequences = RemoteConsequences(self)
        self.evictions = RemoteEvictions(self)
        self._link: Link | None = None

    def connect(self, link: Link) -> None:
        self._link = link

    @property
    def link(self) -> Link:
        if self._link is None:
            raise KubesceneError("there is no connection to the API server yet")
        return self._link

    # -- verbs -----------------------------------------------------------------------------

    def create(
        self,
        actor: Actor,
        obj: JsonObject,
        *,
        namespace: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Names are generated here, as in an embedded world: so they are the same there."""
        served = self._served(obj)
        if served.gvk == BINDING:
            return self._bind_named(actor, obj, namespace, options)
        place = resolve_namespace(served, obj, namespace)
        given = obj.get("metadata") or {}
        name = free_name(given, served, place, self.identities, self.store)
        body = {**obj, "metadata": {**given, **named(name, place)}}
        request = WriteRequest(actor, "create", self._stored_type(served), "", options, obj)
        ask = partial(self.link.client.create, body, options=plain(request))
        return self._sent(request, place, name, ask)

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
        place = resolve_namespace(served, obj, namespace)
        name = (obj.get("metadata") or {}).get("name", "")
        current = self.record(served, place, name)
        request = WriteRequest(actor, "update", self._stored_type(served), subresource, options)
        if is_same(obj, self.decoded(current, served), subresource):
            return self._unchanged(request, current)
        body = {**obj, "metadata": {**undated(obj["metadata"]), **named(name, place)}}
        update = self.link.client.update
        ask = partial(update, body, subresource=subresource, options=plain(request))
        return self._sent(request, place, name, ask)

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
        del inspect  # only our own API server does that
        stored = self._stored_type(resource_type)
        request = WriteRequest(actor, "patch", stored, subresource, options, patch, patch_type)
        patched = self._foreseen(resource_type, namespace, name, patch, patch_type)
        if patched is not None:
            current, after = patched
            if after == self.decoded(current, resource_type):
                return self._unchanged(request, current)
            if subresource == FINALIZE:  # which a server lets nobody patch
                update = self.link.client.update
                after = {**after, "metadata": undated(after["metadata"])}
                ask = partial(update, after, subresource=FINALIZE, options=plain(request))
                return self._sent(request, namespace, name, ask)
        ask = partial(
            self.link.client.patch,
            ObjectRef(resource_type.gvk, name, namespace),
            patch,
            patch_type=patch_type,
            subresource=subresource,
            options=plain(request),
        )
        return self._sent(request, namespace, name, ask)

    def bind(
        self,
        actor: Actor,
        namespace: str,
        name: str,
        target: JsonObject,
        *,
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        self.record(self.type_of(POD), namespace, name)
        node = (target.get("target") or {}).get("name", "")
        given = target.get("metadata") or {}
        body, merge = {"spec": {"nodeName": node}}, PatchType.MERGE
        pods = self.type_of(POD)
        request = WriteRequest(actor, "bind", pods, "binding", options, body, merge)
        ask = partial(
            self.link.client.bind,
            ObjectRef(POD, name, namespace),
            node,
            uid=given.get("uid", ""),
            annotations=given.get("annotations"),
        )
        return self._sent(request, namespace, name, ask)

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
        self.record(resource_type, namespace, name)
        write = WriteOptions(dry_run=options.dry_run, origin=origin)
        request = WriteRequest(actor, "delete", resource_type, options=write)
        ref = ObjectRef(resource_type.gvk, name, namespace)
        ask = partial(self.link.client.delete, ref, options=options)
        return self._sent(request, namespace, name, ask)

    def evict(
        self,
        actor: Actor,
        namespace: str,
        name: str,
        *,
        options: DeleteOptions,
        origin: OperationOrigin | None,
    ) -> Record:
        """Delete a pod if the server's look at its budgets allows it."""
        pods = self.type_of(POD)
        self.record(pods, namespace, name)
        write = WriteOptions(dry_run=options.dry_run, origin=origin)
        request = WriteRequest(actor, "delete", pods, options=write)
        ask = partial(self.link.client.evict, ObjectRef(POD, name, namespace), options=options)
        return self._sent(request, namespace, name, ask, verb=EVICT)

    # -- inside ----------------------------------------------------------------------------

    def _bind_named(
        self, actor: Actor, body: JsonObject, namespace: str, options: WriteOptions
    ) -> Record:
        """Nobody stores a Binding: creating one binds the pod that it names."""
        name = (body.get("metadata") or {}).get("name", "")
        if not name:
            raise BadRequestError("name must be provided")
        place = resolve_namespace(self.type_of(BINDING), body, namespace)
        return self.bind(actor, place, name, body, options=options)

    def _sent(
        self,
        request: WriteRequest,
        namespace: str,
        name: str,
        ask: Callable[[], Record],
        verb: str = "",
    ) -> Record:
        """Ask the gate, send, wait, and tell those whom it concerns."""
        if request.options.dry_run:
            return ask()
        resource_type = request.resource_type
        resource = resource_type.group_resource
        before = self.store.get(resource, namespace, name)
        self.gate.before_write(request.actor, resource_type, request.subresource, name)
        write = Announcement(
            verb or request.verb,
            resource_type.named_resource,
            namespace,
            name,
            request.subresource,
        )
        budgets = self.evictions.budgets_of(before) if verb == EVICT else ()
        if request.verb == "create" and resource_type.gvk == NODE:
            answered = self._create_node(request, write, ask)
        else:
            answered = self.link.send(write, ask)
        if verb == EVICT and before is not None:
            self.evictions.tell(request.actor, before, budgets)
        after = self.store.get(resource, namespace, name)
        return self._done(request, before, after, answered)

    def _create_node(
        self, request: WriteRequest, write: Announcement, ask: Callable[[], Record]
    ) -> Record:
        """Give a new node the taints that it was to have, no more, and show it with them at once.

        A server's admission keeps pods away from every new node until it is ready. Here a node is
        what its conditions say, and the node lifecycle controller, if there is one, sees to that. A
        taint that goes would make the scheduler try pods again that no new node could help.
        """
        asked = (request.body.get("spec") or {}).get("taints")
        self.link.mirror.nodes_to_be[write.name] = asked
        try:
            answered = self.link.send(write, ask)
            if (answered.decode().get("spec") or {}).get("taints") != asked:
                ref, patch = ObjectRef(NODE, answered.name), {"spec": {"taints": asked}}
                again = partial(self.link.client.patch, ref, patch, options=plain(request))
                self.link.send(Announcement("patch", answered.resource, "", answered.name), again)
        finally:
            del self.link.mirror.nodes_to_be[write.name]
        return answered

    def _done(
        self, request: WriteRequest, before: Record | None, after: Record | None, answered: Record
    ) -> Record:
        """What the mirror shows of a write that was made."""
        if before is None and request.patch_type == PatchType.APPLY.value:
            # An apply that finds nothing creates, and is told so.
            request = structs.replace(request, verb="create", patch_type="")
        if after is not None and (before is None or before.uid == after.uid):
            if after is before:
                return self._unchanged(request, after)
            self._tell_changed(request, before, after)
            return after
        if before is None:
            # Somebody took it away at once, or it is of a kind that nobody can follow.
            self.tell(request, answered, None)
            return answered
        self._tell_removed(request, before)
        return before

    def _tell_changed(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        was_marked = request.verb == "delete" and before is not None and before.deleting
        if not was_marked:
            self.tell(request, after, before)
        if before is None:
            self.consequences.created(after)
        else:
            self.consequences.updated(after)

    def _tell_removed(self, request: WriteRequest, last: Record) -> None:
        if last.deleting:
            # The deletion was told when it was accepted.
            for hook in self.instruments.object_removed:
                hook(request.actor, last)
        if not last.deleting or request.verb != "delete":
            self.tell(request, last, last)
        self.consequences.removed(last)

    def _unchanged(self, request: WriteRequest, current: Record) -> Record:
        is_told = request.verb != "delete" and not request.options.dry_run
        if request.options.origin and is_told:
            # An operation that changes nothing has happened all the same; a deletion had before.
            self.tell(request, current, current)
        return current

    def _foreseen(
        self,
        resource_type: ResourceType,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType,
    ) -> tuple[Record, JsonObject] | None:
        """The object, and what a patch would make of it; None if only the server can tell."""
        current = self.store.get(resource_type.group_resource, namespace, name)
        if patch_type is PatchType.APPLY:
            return None
        if current is None:
            raise not_found(resource_type, name)
        try:
            seen = self.decoded(current, resource_type)
            return current, apply_patch(seen, patch, patch_type, resource_type)
        except ApiError:
            return None

    def wait_gone(self, record: Record) -> None:
        """A change that took the last thing which held an object ends it, a moment later."""
        self.link.mirror.wait_until(
            partial(self.is_gone, record),
            f"the end of {record.resource} {record.namespace}/{record.name}",
        )

    def is_gone(self, record: Record) -> bool:
        found = self.store.get(record.resource, record.namespace, record.name)
        return found is None or found.uid != record.uid


def plain(request: WriteRequest) -> WriteOptions:
    """The options as they can be told over HTTP."""
    options = request.options
    return WriteOptions(
        dry_run=options.dry_run,
        field_manager=request.manager,
        strict=options.strict,
        force=options.force,
    )


def named(name: str, namespace: str) -> JsonObject:
    """The metadata that say which object is meant."""
    return {**({"name": name} if name else {}), **({"namespace": namespace} if namespace else {})}


def undated(metadata: JsonObject) -> JsonObject:
    """Metadata that can be sent back: dates are the scenario's here, and the server's there."""
    return {name: value for name, value in metadata.items() if name not in DATES}


def is_same(new: JsonObject, old: JsonObject, subresource: str) -> bool:
    """Whether an update changes nothing, as far as can be told from here."""
    if subresource == "status":
        return bool(new.get("status") == old.get("status"))
    return new == old
