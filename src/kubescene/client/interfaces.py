"""Reader, Writer, Watcher: what a component may ask of the world.

Every client belongs to one `Actor`. A write is either accepted, and returns the record with its
revision, or raises an `ApiError`; nothing half-done exists. Over the store, the writer's own
watch has seen the write when the call returns; over HTTP it has not: `wait_seen` says when.

Objects that a Reader or Watcher hands out are shared and read-only. Nothing here knows what stands
behind a client: two implementations, `direct` and `http`, keep the promises made here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from kubescene.actors import Actor
from kubescene.api.options import (
    NO_OPTIONS,
    PLAIN_DELETE,
    DeleteOptions,
    OperationOrigin,
    WriteOptions,
)
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector
from kubescene.types import JsonObject


class ObjectRef(msgspec.Struct, frozen=True):
    """Names one object. ``namespace`` is empty for cluster-scoped kinds."""

    gvk: GroupVersionKind
    name: str
    namespace: str = ""

    @classmethod
    def to(cls, obj: Mapping[str, Any]) -> "ObjectRef":
        """The reference to an object that carries apiVersion, kind and metadata."""
        metadata = obj["metadata"]
        gvk = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
        return cls(gvk, metadata["name"], metadata.get("namespace", ""))

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.gvk.kind} {place}{self.name}"


EventHandler: TypeAlias = Callable[[Change], None]
"""Called for one change. May enqueue, must not write."""


Objects: TypeAlias = list[JsonObject]


class ClientSubscription(Protocol):
    """A watch that can be ended; ``handler`` is told of changes."""

    @property
    def handler(self) -> Callable[[Change], None]: ...

    def cancel(self) -> None:
        """Stop. Safe to call twice."""
        ...


class Reader(Protocol):
    """Read what is there now."""

    def get(self, ref: ObjectRef) -> JsonObject:
        """The object; raises `NotFoundError`."""
        ...

    def find(self, ref: ObjectRef) -> JsonObject | None:
        """The object, or None."""
        ...

    def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> Objects:
        """All objects, of one namespace if named, ordered by namespace and name."""
        ...

    def owned(self, gvk: GroupVersionKind, owner_uid: str) -> Objects:
        """Objects whose managing controller has this uid, in order of creation."""
        ...

    def on_node(self, node: str, *, labels: LabelSelector | None = None) -> Objects:
        """The pods that are bound to a node, ordered by namespace and name."""
        ...

    def get_scale(self, ref: ObjectRef) -> JsonObject:
        """The object's autoscaling/v1 ``Scale``.

        Raises `NotFoundError` for an object that is not there and for a kind that has none.
        """
        ...


class Writer(Protocol):
    """Ask for a change. Each call is one request and, if accepted, one revision.

    What is handed over stays the caller's, who may change it afterwards, unless its options carry a
    `Blueprint`: that is the promise not to.
    """

    @property
    def actor(self) -> Actor: ...

    def create(self, obj: JsonObject, *, options: WriteOptions = NO_OPTIONS) -> Record:
        """Create; a namespaced object without a namespace goes to ``default``."""
        ...

    def update(
        self, obj: JsonObject, *, subresource: str = "", options: WriteOptions = NO_OPTIONS
    ) -> Record:
        """Replace; refused with `ConflictError` if ``metadata.resourceVersion`` is stale."""
        ...

    def patch(
        self,
        ref: ObjectRef,
        patch: Any,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Change the object as the patch says."""
        ...

    def delete(
        self,
        ref: ObjectRef,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        """Delete, honouring finalizers and grace: accepted does not mean gone."""
        ...

    def bind(
        self,
        pod: ObjectRef,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> Record:
        """Assign a pending pod to a node (the ``binding`` subresource).

        The pod takes over the ``annotations`` of its binding.
        """
        ...

    def scale(self, ref: ObjectRef, replicas: int, *, options: WriteOptions = NO_OPTIONS) -> Record:
        """Ask for this many replicas (the ``scale`` subresource); returns the scaled object."""
        ...

    def evict(
        self,
        pod: ObjectRef,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        """Delete a pod if its disruption budget allows (the ``eviction`` subresource).

        Returns the pod's newest state, as `delete` does. Raises `TooManyRequestsError` if the
        budget is used up: try again later.
        """
        ...

    def wait_seen(self, revision: int) -> None:
        """Return once this client's own watches have delivered a write of this client.

        ``revision`` is that of the record which the write returned; earlier writes of the client
        have been delivered as well. A kind that is not watched counts as seen. Handlers run
        meanwhile, on this thread. Raises `UnseenWriteError` if it takes too long, and ValueError
        for a revision that cannot have been written yet.
        """
        ...


class Watcher(Protocol):
    """Follow changes."""

    def watch(
        self,
        gvk: GroupVersionKind,
        handler: EventHandler,
        *,
        quiet: bool = False,
        traits: int = EVERYTHING,
    ) -> ClientSubscription:
        """Deliver every object that exists as ADDED, in order of creation, then every change.

        What is delivered wakes the controller that the client belongs to, unless ``quiet``: then
        the controller says itself when there is something to do.

        Changes of pods that have none of the ``traits`` (`kubescene.api.records.traits`) may be
        left out: the handler does nothing with them.

        So a component that starts late sees what one that was always there has seen. Handlers of
        one client run in the order of their `watch` calls.
        """
        ...

    def watch_all(
        self,
        handler: EventHandler,
        *,
        quiet: bool = False,
        patient: bool = False,
        traits: int = EVERYTHING,
    ) -> ClientSubscription:
        """The same for objects of every kind, those included that are defined later.

        What exists is delivered resource by resource in a fixed order, each in order of creation.
        For the few components to which all kinds are alike: the handler is called for every write
        of the world. Bookkeeping (Events, Leases, Scenarios) is delivered but wakes nobody. Who is
        ``patient`` may miss phases of a Scenario that nobody else follows, and costs less. So does
        who names the ``traits`` of pods that matter.
        """
        ...

    def changed_since(self, revision: int) -> bool:
        """Whether anything that this client watches has changed after ``revision``.

        A client that watches nothing may look at everything: for it, any change counts.
        """
        ...

    def close(self) -> None:
        """End all watches of this client."""
        ...


class Client(Reader, Writer, Watcher, Protocol):
    """All three, for one actor."""
