"""Runs a reconciler as a control loop: watches fill the queue, `run_once` handles one key."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import Client
from kubescene.control.loops import IDLE, ControllerContext, Progress, went
from kubescene.controllers.reconcile import (
    NOTHING,
    Counting,
    Create,
    Delete,
    Evict,
    ObjectKey,
    Patch,
    Plan,
    Reconciler,
    Recount,
    Scale,
    Selective,
    Update,
    Write,
)
from kubescene.errors import ApiError


class ReconcilerController:
    """A `Controller` around a `Reconciler`."""

    def __init__(self, reconciler: Reconciler, context: ControllerContext) -> None:
        self.name = reconciler.name
        self.reconciler = self._reconciler = reconciler
        self._counting = reconciler if isinstance(reconciler, Counting) else None
        self._context = context
        self._client: Client = context.client
        self.actor = context.actor
        self._queue = WorkQueue()
        self._refused = WorkQueue()
        self._written: Record | None = None
        self._due: set[tuple[ObjectKey, int]] = set()
        """Which keys are to be looked at again, and when."""
        traits = reconciler.pod_traits if isinstance(reconciler, Selective) else EVERYTHING
        self.watches = {
            kind: self._client.watch(kind, self._changed, quiet=True, traits=traits)
            for kind in self._watched(reconciler.kinds)
        }

    def run_once(self) -> Progress:
        if not self._queue.waiting:
            return IDLE
        key = self._queue.pop()
        try:
            if self._written is not None:  # in a turn that failed
                self._see(self._written)
            plan = self._reconciler.reconcile(key, self._client, self._context.clock.now())
            wrote = self._carry_out(key, plan)
            if self._written is not None:
                self._see(self._written)
        except Exception:
            # Nothing is lost: where an exception does not end the run, the key is tried again.
            self._queue.add(key)
            raise
        return went(wrote=wrote, more=bool(self._queue.waiting))

    def _watched(self, kinds: Sequence[GroupVersionKind]) -> Sequence[GroupVersionKind]:
        """The kinds to watch from the start."""
        return kinds

    def recount(self) -> Recount | None:
        """What the only turn that is left would write, if these are counts alone."""
        waiting, counting = self._queue.waiting, self._counting
        if counting is None or len(waiting) != 1 or self._written is not None:
            return None
        return counting.recount(next(iter(waiting)), self._context.clock.now())

    def recounted(self, recount: Recount) -> None:
        """That turn need not be had any more: it was written, and nobody told us of the change."""
        assert self._counting is not None
        self._counting.recounted(recount)
        del self._queue.waiting[recount.key]

    def begin_step(self) -> None:
        """What was refused is tried once more in every step."""
        self.retry_refused()

    def retry_refused(self) -> None:
        """The reason may have gone."""
        while self._refused:
            self._queue.add(self._refused.pop())

    def look_at(self, key: ObjectKey) -> None:
        """Put a key into the queue: somebody knows that it is time."""
        self._queue.add(key)
        self._context.wake()

    def _changed(self, change: Change) -> None:
        for key in self._reconciler.observe(change):
            self._queue.add(key)
            self._context.wake()

    def _see(self, written: Record) -> None:
        """A reconciler that has not heard of what it created would create it once more."""
        self._client.wait_seen(written.revision)
        self._written = None

    def _carry_out(self, key: ObjectKey, plan: Plan) -> bool:
        wrote = False
        recorder = self._context.recorder
        if recorder.on:
            for notice in plan.notices:
                recorder.tell(notice)
        for fact in plan.facts:
            self._context.tell(fact)
        for write in plan.writes:
            try:
                record = self._written = make(write, self._client)
                wrote = True
            except ApiError as error:
                repair = self._repair(key, write, error)
                self._refused.add(key)
                return self._carry_out(key, repair) or wrote
            if recorder.on and write.notice is not None:
                recorder.tell(write.notice.naming(record.name))
            if isinstance(write, Scale | Evict | Patch) and write.fact is not None:
                self._context.tell(write.fact)
        if plan.requeue_after is not None:
            self._look_again(key, self._context.clock.now() + plan.requeue_after)
        return wrote

    def _repair(self, key: ObjectKey, write: Write, error: ApiError) -> Plan:
        """What a controller does about a refusal; it can live with a rule of the user's."""
        now = self._context.clock.now()
        try:
            return self._reconciler.refused(key, write, error, self._client, now)
        except ApiError as raised:
            if raised is error and error.is_by_policy:
                return NOTHING
            raise

    def _look_again(self, key: ObjectKey, due: int) -> None:
        """Put a key into the queue at an instant; once, however many passes ask for it."""
        if (key, due) in self._due:
            return
        self._due.add((key, due))
        name = f"{self.name} {key.namespace}/{key.name}"
        self._context.timers.at(due, self._is_due, key, due, name=name)

    def _is_due(self, key: ObjectKey, due: int) -> None:
        self._due.discard((key, due))
        self._queue.add(key)


def make(write: Write, client: Client) -> Record:
    """Carry out one planned write; returns the object's newest state."""
    # Attributes are read one by one: to match a pattern of five takes four times as long.
    if isinstance(write, Patch):
        return client.patch(
            write.ref,
            write.patch,
            patch_type=write.patch_type,
            subresource=write.subresource,
            options=write.options,
        )
    if isinstance(write, Create):
        return client.create(write.obj, options=write.options)
    match write:
        case Update(obj, subresource):
            return client.update(obj, subresource=subresource)
        case Scale(ref, replicas):
            return client.scale(ref, replicas)
        case Evict(pod, deletion):
            return client.evict(pod, options=deletion)
        case Delete(ref, deletion):
            return client.delete(ref, options=deletion)


class WorkQueue:
    """First in, first out, deduplicated. A key that comes again while it waits keeps its place."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        # A plain dict would walk over the holes of all keys taken before.
        self.waiting: OrderedDict[ObjectKey, None] = OrderedDict()

    def add(self, key: ObjectKey) -> None:
        self.waiting.setdefault(key)

    def pop(self) -> ObjectKey:
        """The key that waits longest; KeyError if none does."""
        if not self.waiting:
            raise KeyError("no key is waiting")
        return self.waiting.popitem(last=False)[0]

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self.waiting)
