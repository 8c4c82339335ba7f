"""The world's single writer: revisioned objects, an ordered history, synchronous subscribers.

Every accepted write takes the next revision, is handed to the journal if there is one, replaces
one record, is appended to the history and then handed to the subscribers of its resource, in the
order they subscribed. Subscribers may enqueue work, never write: a write during notification
raises `ReentrantWriteError`. The thread that calls `own` is the only one that may write from then
on; other threads read.
"""

from collections.abc import Collection, Iterable
from copy import deepcopy
from threading import get_ident
from types import FunctionType
from typing import Any

from kubescene.api.records import Record, make_record, sharing, successor, versioned
from kubescene.api.records.changes import ADDED, DELETED, MODIFIED, Change, ChangeType
from kubescene.api.records.drafts import Draft, Rebuilt, changed
from kubescene.api.records.parts import PartEncoder, Predecessor, Sections, whole_size
from kubescene.api.records.traits import EVERYTHING, PODS
from kubescene.api.scheme import GroupResource
from kubescene.api.text.encoding import encode
from kubescene.errors import AlreadyExistsError, ConflictError, NotFoundError, ReentrantWriteError
from kubescene.store.history import DEFAULT_WINDOW
from kubescene.store.journals import Acknowledge, Journal
from kubescene.store.reading import StoredObjects
from kubescene.store.subscriptions import Route, Subscriber, Subscription, Subscriptions
from kubescene.types import JsonObject

EVENTS = GroupResource("", "events")
"""Many small members, none of them shared or changed apart: Events are encoded as a whole."""


class Store(StoredObjects):
    """All objects of one world.

    A copy (`copy.deepcopy`) shares the records and is independent otherwise. Components that are
    subscribed are copied along, so a copied controller hears the copied store; watches and plain
    functions stay with the original. The copy has no journal and no owner.
    """

    def __init__(self, *, window: int = DEFAULT_WINDOW, journal: Journal | None = None) -> None:
        super().__init__(window)
        self._journal = journal
        self.notes: dict[str, bytes] = {}
        """What is kept beside the objects (`note`)."""
        self.lives = 0
        """How often it was opened before: names and uids of an earlier life are not given again."""
        self._owner: int | None = None
        self._encoder = PartEncoder()
        self._subscriptions = Subscriptions()

    @property
    def durable_revision(self) -> int:
        """Up to where nothing can be lost; without a journal that is all there is."""
        return self._revision if self._journal is None else self._journal.durable

    # -- writing ---------------------------------------------------------------------------

    def put(
        self, resource: GroupResource, new: JsonObject | Draft, *, expected: int | None = None
    ) -> Record:
        """Store an object, new or changed; its metadata must carry a name.

        ``expected`` is the revision that it must have until now, 0 if there must be none. A draft
        is encoded already.
        """
        if resource in self._deferred:
            self._catch_up(resource)
        self._claim()
        revision = self._revision + 1
        obj: JsonObject | None
        if isinstance(new, dict):
            metadata = new["metadata"]
            name = metadata["name"]
            current = self._objects[resource].get((metadata.get("namespace", ""), name))
            obj = versioned(new, revision)
            record = self._encoded(resource, obj, metadata, current)
        else:
            record = new.at(revision)
            name = record.name
            current = self._objects[resource].get((record.namespace, name))
            obj = None if new.obj is None else versioned(new.obj, revision)
        if expected is not None:
            check_expected(resource, name, current, expected)
        kind = ADDED if current is None else MODIFIED
        return self._commit(Change(kind, record, current, self), obj)

    def shared(self, part: bytes) -> bytes:
        """The part, or the one that is kept already for the same text."""
        return self._encoder.shared(part)

    def defer(self, draft: Rebuilt) -> bool:
        """Put a draft, but only when somebody reads the resource.

        For the newest record of an object that changes far more often than anybody looks at it.
        Refused if the record is not the newest, or if somebody may be looking already: a subscriber
        of the resource, a journal, another thread.
        """
        record = draft.record
        resource = record.resource
        pending = self._deferred.get(resource)
        if pending is not None and pending.record is record:
            # What was deferred once may be so again: whoever comes to look makes it at once.
            pending.waits = False
        else:
            served = self._journal is not None or self._owner is not None
            if served or self._subscriptions.follow(resource) or not self.is_newest(record):
                return False
            self._catch_up(resource)
        self._deferred[resource] = draft
        draft.waits = True
        return True

    def remove(
        self, resource: GroupResource, namespace: str, name: str, *, expected: int | None = None
    ) -> Record:
        """Take an object away.

        The returned record is its last state at the revision of the removal.
        """
        current = self.get(resource, namespace, name)
        if current is None:
            raise missing(resource, name)
        if expected is not None:
            check_expected(resource, name, current, expected)
        self._claim()
        revision, payload = self._revision + 1, current.payload
        if isinstance(payload, Sections):
            last = changed(current, payload.members, current.phase).at(revision)
            return self._commit(Change(DELETED, last, current, self))
        before = self.decoded(current)
        obj = versioned(before, revision)
        last = self._encoded(resource, obj, before["metadata"], current)
        return self._commit(Change(DELETED, last, current, self), obj)

    def mirror(self, resource: GroupResource, obj: JsonObject, version: int) -> Record:
        """Take over an object as another server holds it, new or changed.

        Its ``resourceVersion`` stays that server's ``version``, so that whoever sends the object
        back is understood; here it takes the next revision, as every write does.
        """
        metadata = obj["metadata"]
        current = self._objects[resource].get((metadata.get("namespace", ""), metadata["name"]))
        self._claim()
        copy = versioned(obj, version)
        before = None if current is None else self._known_encoding(current, metadata)
        payload = self._encoder.sections(copy, version, before, node_apart=resource == PODS)
        record = make_record(resource, copy, self._revision + 1, payload)
        kind = ADDED if current is None else MODIFIED
        return self._commit(Change(kind, record, current, self), copy)

    def restore(self, records: Iterable[Record], revision: int) -> None:
        """Fill an empty store with records, in order of creation, as they were at ``revision``.

        Subscribers are told of each as ADDED once all are there. The journal is not: it is where
        they come from. Nothing before ``revision`` is known.
        """
        self._claim()
        if self._revision or any(self._objects.values()):
            raise ValueError("only an empty store can be restored: make a new one")
        restored = [*records]
        if any(record.revision > revision for record in restored):
            raise ValueError(f"a record is newer than revision {revision}, which it is part of")
        self._begun = revision
        changes = [Change(ADDED, record, None, self) for record in restored]
        for change in changes:
            self._objects[change.record.resource][change.record.key] = change.record
            self._membership[change.record.resource] += 1
            self.indexes.update(change)
        self.history.begin_at(revision)
        self._revision = revision
        for change in changes:
            self._subscriptions.tell(change)

    def recall(self, kind: ChangeType, record: Record) -> None:
        """Take in what the journal tells has happened after what was restored."""
        if record.revision > self._revision + 1:
            self.history.lose(self._revision + 1, record.revision - 1)
        current = self._objects[record.resource].get(record.key)
        self._take_in(Change(kind, record, current, self))

    def lose(self, count: int) -> None:
        """Leave out so many revisions: somebody may have seen them, and they are gone."""
        self.history.lose(self._revision + 1, self._revision + count)
        self._revision = self._begun = self._revision + count

    def commit_unheard(self, change: Change, decoded: JsonObject | None = None) -> None:
        """Take in a new object, or a change of the newest record of one; its maker tells others.

        For a writer that knows what each of them would do: see `route_of` and `tell_some`.
        ``decoded`` is the object, if somebody has it.
        """
        if self._journal is not None:
            self._journal.append(change)
        self._take_in(change, decoded)

    def admit(self, size: int) -> None:
        """Raise if writes of so many bytes could not be kept, for who writes many at once."""
        if self._journal is not None:
            self._journal.admit(size)

    def route_of(self, change: Change) -> Route:
        """Those who hear of such a change, in order."""
        return self._subscriptions.route_of(change)

    def tell_some(self, change: Change, route: Route) -> None:
        """Tell some of them what was taken in unheard."""
        self._subscriptions.tell_some(change, route)

    def flush(self) -> None:
        """Return once every write is durable: what has to happen before a client is answered."""
        if self._journal is not None:
            self._journal.flush()

    def keep(self, journal: Journal) -> None:
        """From now on this journal is told of every write."""
        self._journal = journal

    def note(self, name: str, text: bytes) -> None:
        """Keep a text that is no object as long as the objects are kept."""
        if self.notes.get(name) != text:
            if self._journal is not None:
                self._journal.note(name, text)
            self.notes[name] = text

    def compact(self) -> None:
        """Have all that there is written anew, in place of how it came about."""
        if self._journal is not None:
            self._journal.compact()

    def close(self) -> None:
        """Have everything on disk and let go of it; raises if it cannot be."""
        if self._journal is not None:
            self._journal.close()

    def when_durable(self, acknowledge: Acknowledge) -> None:
        """Tell once every write until now is durable; without a journal that is at once."""
        if self._journal is None:
            acknowledge(None)
        else:
            self._journal.when_durable(acknowledge)

    def own(self) -> None:
        """From now on only the calling thread writes."""
        self.catch_up(*self._deferred)
        self._owner = get_ident()

    # -- subscribing -----------------------------------------------------------------------

    def subscribe(
        self,
        handler: Subscriber,
        resources: Iterable[GroupResource] | None = None,
        *,
        goes_with_fork: bool = True,
        patient: Collection[GroupResource] = (),
        traits: int = EVERYTHING,
    ) -> Subscription:
        """Call ``handler`` for every later change (of ``resources``), synchronously.

        Who follows everything may say what it is ``patient`` about: resources of which it need not
        hear what may be deferred (see `defer`). Changes of pods that have none of the
        ``traits`` (`kubescene.api.records.traits`) are left out. A copy of the store has a copy of
        the subscription, unless that is not wanted or the handler is a plain function, which cannot
        be told apart from its copy.
        """
        wanted = None if resources is None else tuple(resources)
        for resource in [*self._deferred] if wanted is None else wanted:
            self._catch_up(resource)
        copied = goes_with_fork and not isinstance(handler, FunctionType)
        subscription = Subscription(self._subscriptions, handler, wanted, copied, patient, traits)
        self._subscriptions.add(subscription)
        return subscription

    # -- inside ----------------------------------------------------------------------------

    def _claim(self) -> None:
        if self._subscriptions.telling is not None:
            told = self._subscriptions.telling
            raise ReentrantWriteError(
                f"a subscriber tried to write while it was being told of {told!r}: "
                "enqueue the work and write when your turn comes"
            )
        if self._owner is not None and self._owner != get_ident():
            raise ReentrantWriteError(
                "this thread does not own the store: submit the write to the engine thread"
            )

    def _encoded(
        self, resource: GroupResource, obj: JsonObject, given: JsonObject, previous: Record | None
    ) -> Record:
        """The record of what `versioned` returned; ``given`` are the metadata that it was given."""
        revision = self._revision + 1
        if resource == EVENTS:
            return make_record(resource, obj, revision, encode(obj))
        if (shared := sharing(previous, obj, revision)) is not None:
            return shared
        before = None if previous is None else self._known_encoding(previous, given)
        payload = self._encoder.sections(obj, revision, before, node_apart=resource == PODS)
        if previous is not None and before is not None and before.same_metadata:
            return successor(previous, obj, revision, payload)
        return make_record(resource, obj, revision, payload)

    def _known_encoding(self, previous: Record, given: JsonObject) -> Predecessor | None:
        """What is known of the encoding of an object that replaces ``previous``."""
        payload = previous.payload
        if not isinstance(payload, Sections):
            return None
        old = self._decoded.get(previous.revision)
        if old is None:
            return Predecessor(payload)
        return Predecessor(payload, old, same_metadata=given is old["metadata"])

    def _commit(self, change: Change, decoded: JsonObject | None = None) -> Record:
        if self._journal is not None:
            self._journal.admit(whole_size(change.record.payload))
            self._journal.append(change)
        self._take_in(change, decoded)
        self._subscriptions.tell(change)
        return change.record

    def _take_in(self, change: Change, decoded: JsonObject | None = None) -> None:
        """Make a change; others are told of it afterwards."""
        record = change.record
        resource = record.resource
        self._begun = record.revision
        if change.type is MODIFIED:
            self._objects[resource][record.namespace, record.name] = record
        else:
            if change.type is DELETED:
                del self._objects[resource][record.namespace, record.name]
            else:
                self._objects[resource][record.namespace, record.name] = record
            self._membership[resource] += 1
        self._revision = record.revision
        if decoded is not None:
            self._decoded[record.revision] = decoded
        if resource in self.indexes.kept:
            self.indexes.update(change)
        self.history.append(change)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Store":
        twin = memo[id(self)] = type(self)()
        twin.history = self.history.copied(twin)
        twin.indexes = self.indexes.copied()
        twin._revision = twin._begun = self._revision
        twin._objects.update((resource, {**held}) for resource, held in self._objects.items())
        twin._membership.update(self._membership)
        twin._deferred.update(deepcopy(self._deferred, memo))
        twin._sorted.update(self._sorted)
        twin._subscriptions = deepcopy(self._subscriptions, memo)
        return twin


def check_expected(
    resource: GroupResource, name: str, current: Record | None, expected: int
) -> None:
    """Refuse a write whose author expects another revision than there is."""
    if current is None:
        if expected:
            raise missing(resource, name)
    elif not expected:
        raise AlreadyExistsError(
            f'{resource} "{name}" already exists',
            name=name,
            group=resource.group,
            kind=resource.resource,
        )
    elif expected != current.revision:
        raise ConflictError(
            f'Operation cannot be fulfilled on {resource} "{name}": the object has been '
            "modified; please apply your changes to the latest version and try again",
            name=name,
            group=resource.group,
            kind=resource.resource,
        )


def missing(resource: GroupResource, name: str) -> NotFoundError:
    return NotFoundError(
        f'{resource} "{name}" not found',
        name=name,
        group=resource.group,
        kind=resource.resource,
    )
