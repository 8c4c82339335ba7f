"""What a controller author writes: look at one object, say what should be done.

A `Reconciler` gets a key and a `Reader` and returns a `Plan`: writes in order, and perhaps a time
to look again. It writes nothing itself, so it can be tested with a store and nothing else; the
runtime makes the writes and comes back when they have changed something.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from kubescene.api.options import NO_OPTIONS, PLAIN_DELETE, DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.errors import ApiError
from kubescene.recording import Notice
from kubescene.types import JsonObject


class ObjectKey(NamedTuple):
    """The key of the object to look at, never the object: it may have changed since."""

    namespace: str
    name: str

    def __deepcopy__(self, memo: object) -> "ObjectKey":
        return self  # nothing of it ever changes


class Create(Struct, frozen=True):
    obj: JsonObject
    notice: Notice | None = None
    options: WriteOptions = NO_OPTIONS


class Update(Struct, frozen=True):
    """Replace an object; refused if it has changed since its ``resourceVersion``."""

    obj: JsonObject
    subresource: str = ""
    notice: Notice | None = None


class Patch(Struct, frozen=True):
    ref: ObjectRef
    patch: Any
    patch_type: PatchType = PatchType.MERGE
    subresource: str = ""
    notice: Notice | None = None
    options: WriteOptions = NO_OPTIONS
    fact: Struct | None = None


class Scale(Struct, frozen=True):
    """Ask for this many replicas, through the ``scale`` subresource."""

    ref: ObjectRef
    replicas: int
    notice: Notice | None = None
    fact: Struct | None = None


class Evict(Struct, frozen=True):
    """Delete a pod if its disruption budget allows; refused with `TooManyRequestsError` if not."""

    pod: ObjectRef
    options: DeleteOptions = PLAIN_DELETE
    notice: Notice | None = None
    fact: Struct | None = None


class Delete(Struct, frozen=True):
    ref: ObjectRef
    options: DeleteOptions = PLAIN_DELETE
    notice: Notice | None = None


Write = Create | Update | Patch | Scale | Evict | Delete
"""One request. Its ``notice``, and its ``fact``, are told once it has been accepted."""


class Plan(Struct, frozen=True):
    """What to do now, in order, and after how many nanoseconds to look again (None: when told).

    ``notices`` are told in any case, before the writes; those of single writes when these are made.
    ``facts`` are told before the writes, too: structs of the author's own, for the timeline.
    """

    writes: Sequence[Write] = ()
    requeue_after: int | None = None
    notices: Sequence[Notice] = ()
    facts: Sequence[Struct] = ()


NOTHING = Plan()


class Reconciler(Protocol):
    """Moves one kind of object closer to what it asks for."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> Sequence[GroupVersionKind]:
        """The kinds to watch; the first is the one whose keys are reconciled."""
        ...

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        """Note what a change of a watched object says, and name the keys it concerns.

        Called synchronously on every write, before any `reconcile` that could depend on it: the
        place for counters that would otherwise be recounted each time. Must be cheap.
        """
        ...

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        """Compare what is with what should be."""
        ...

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A planned write was refused.

        Re-raise ``error`` unless the controller can live with it.
        """
        ...


@runtime_checkable
class Selective(Protocol):
    """A reconciler that has nothing to do with most pods."""

    @property
    def pod_traits(self) -> int:
        """Those traits (`kubescene.api.records.traits`) of which a change of a pod has to have one.

        Other changes of pods need not be observed, but may be.
        """
        ...


class Recount(Struct, frozen=True):
    """A pass that would write other counts into a status, and nothing else.

    ``counts`` are those that are new, ``status`` is what the patch says.
    """

    gvk: GroupVersionKind
    key: ObjectKey
    counts: JsonObject
    status: JsonObject


@runtime_checkable
class Counting(Protocol):
    """A reconciler that can say without a pass what becomes of the counts of an object."""

    def recount(self, key: ObjectKey, now: int) -> Recount | None:
        """What a pass would do; None if it has to be made."""
        ...

    def recounted(self, recount: Recount) -> None:
        """It was done, and need not be observed."""
        ...
