"""The resource quota controller: how much of what it limits a namespace uses.

Admission raises what is used with every creation; here it is counted, and written whenever it is
not what the status says: because something has gone or ended, or the quota is new or changed.
"""

from collections.abc import Iterable, Mapping, Sequence

from kubescene.api.quantity import Quantity, parse
from kubescene.api.quotas import (
    NONE,
    PODS,
    QUOTA,
    QUOTAS,
    Usage,
    is_in_scope,
    overdue_from,
    resource_of,
    usage_of,
)
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource, GroupVersionKind, Scheme
from kubescene.client import ObjectRef, Reader
from kubescene.clock import MINUTE, SECOND
from kubescene.control.loops import ControllerContext, Progress
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.types import JsonObject

Place = tuple[GroupResource, str]
LOOKS_EVERY = 5 * MINUTE
"""How often the real controller looks at all quotas (``--resource-quota-sync-period``)."""


class Tally:
    """What the objects of one namespace use of what one quota limits.

    Not ``filled``: objects that were there before are not in.
    """

    def __init__(self, spec: JsonObject, kinds: Mapping[GroupResource, GroupVersionKind]) -> None:
        self.spec = spec
        self.filled = False
        hard = sorted(spec.get("hard") or ())
        measured = [(name, resource_of(name)) for name in hard]
        self.total: dict[str, Quantity] = {name: NONE for name, each in measured if each in kinds}
        self.resources = tuple(
            dict.fromkeys(each for _, each in measured if each is not None and each in kinds)
        )
        self._usages: dict[Place, Usage] = {}
        self._overdue: dict[str, int] = {}
        """When pods that are being deleted cease to count."""

    def put(self, obj: JsonObject, resource: GroupResource, now: int) -> bool:
        """Count an object as it is now; whether that makes a difference."""
        name = obj["metadata"]["name"]
        used: Usage = {}
        if is_in_scope(obj, resource, self.spec):
            all_used = usage_of(obj, resource, now)
            used = {each: all_used[each] for each in self.total if all_used.get(each)}
        if resource == PODS:
            self._overdue.pop(name, None)
            if (due := overdue_from(obj)) is not None and due >= now:
                self._overdue[name] = due
        return self._replace((resource, name), used) or name in self._overdue

    def remove(self, resource: GroupResource, name: str) -> bool:
        """Forget an object; whether that makes a difference."""
        if resource == PODS:
            self._overdue.pop(name, None)
        return self._replace((resource, name), {})

    def _replace(self, place: Place, used: Usage) -> bool:
        before = self._usages.pop(place, {})
        if used:
            self._usages[place] = used
        if used == before:
            return False
        for name in self.total:
            if name in before:
                self.total[name] -= before[name]
            if name in used:
                self.total[name] += used[name]
        return True

    def overdue(self, now: int) -> list[str]:
        """Pods that should have gone by now."""
        return [name for name, due in self._overdue.items() if due < now]

    @property
    def next_due(self) -> int | None:
        return min(self._overdue.values(), default=None)


class ResourceQuotaReconciler:
    """Keys are quotas. Between passes it remembers what objects use."""

    name = "resourcequota"
    kinds: Sequence[GroupVersionKind] = (QUOTA,)

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._tallies: dict[str, dict[str, Tally]] = {}
        self._measured: dict[GroupResource, GroupVersionKind] = {}

    @property
    def measured(self) -> Iterable[GroupVersionKind]:
        """The kinds that quotas have measured so far."""
        return self._measured.values()

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        is_quota = record.resource == QUOTAS
        if is_quota:
            self._observe_quota(change)
        tallies = self._tallies.get(record.namespace)
        if not tallies:
            return ()
        names = [name for name, tally in tallies.items() if self._differs(tally, change)]
        if is_quota and record.name not in names:
            names.append(record.name)
        return [ObjectKey(record.namespace, name) for name in names]

    def _observe_quota(self, change: Change) -> None:
        record = change.record
        tallies = self._tallies.setdefault(record.namespace, {})
        if change.type is ChangeType.DELETED:
            tallies.pop(record.name, None)
            if not tallies:
                del self._tallies[record.namespace]
            return
        spec = change.object.get("spec") or {}
        known = tallies.get(record.name)
        if known is not None and known.spec == spec:
            return
        for name in sorted(spec.get("hard") or ()):
            self._measure(resource_of(name))
        tallies[record.name] = Tally(spec, self._measured)

    def _measure(self, resource: GroupResource | None) -> None:
        if resource is None or resource in self._measured:
            return
        for each in self._scheme:
            if each.group_resource == resource and each.namespaced and each.stored_as is None:
                self._measured[resource] = each.gvk
                return

    def _differs(self, tally: Tally, change: Change) -> bool:
        """Count a change; whether it makes a difference.

        Who has not counted what was there before waits to do so, and counts this, too.
        """
        record = change.record
        if not tally.filled or record.resource not in tally.resources:
            return False
        if change.type is ChangeType.DELETED:
            return tally.remove(record.resource, record.name)
        return tally.put(change.object, record.resource, 0)

    # -- counting --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        quota = reader.find(ObjectRef(QUOTA, key.name, key.namespace))
        tally = self._tallies.get(key.namespace, {}).get(key.name)
        if quota is None or tally is None:
            return NOTHING
        if not tally.filled:
            for resource in tally.resources:
                for obj in reader.list(self._measured[resource], namespace=key.namespace):
                    tally.put(obj, resource, now)
            tally.filled = True
        for name in tally.overdue(now):
            pod = reader.find(ObjectRef(self._measured[PODS], name, key.namespace))
            if pod is None:
                tally.remove(PODS, name)
            else:
                tally.put(pod, PODS, now)
        due = tally.next_due
        return told(quota, tally.total, None if due is None else next_look(due) - now)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """Gone meanwhile."""
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error


def next_look(due: int) -> int:
    """When it is seen that a pod should have gone: up to the last instant of its grace period it
    counts, and nobody is told of that, so it is found when all quotas are looked at."""
    return -(-(due + SECOND) // LOOKS_EVERY) * LOOKS_EVERY


def told(quota: JsonObject, total: Usage, again: int | None) -> Plan:
    """Write the limits and what is used of them, if the status says something else."""
    status, hard = quota.get("status") or {}, (quota.get("spec") or {}).get("hard") or {}
    known, used = status.get("hard"), status.get("used")
    is_known = known is not None and used is not None
    if is_known and amounts(known or {}) == amounts(hard) and amounts(used or {}) == total:
        return Plan(requeue_after=again)
    texts = {name: str(amount) for name, amount in total.items()}
    patch = {
        "status": {
            "hard": {**dict.fromkeys(known or ()), **hard},
            "used": {**dict.fromkeys(used or ()), **texts},
        }
    }
    return Plan((Patch(ObjectRef.to(quota), patch, subresource="status"),), requeue_after=again)


def amounts(listed: JsonObject) -> Usage:
    return {name: parse(amount) for name, amount in listed.items()}


class ResourceQuotaController(ReconcilerController):
    """Watches what quotas measure, from the moment that one does."""

    def __init__(self, reconciler: ResourceQuotaReconciler, context: ControllerContext) -> None:
        super().__init__(reconciler, context)
        self._quotas = reconciler

    def run_once(self) -> Progress:
        # Not where a quota is told of: who is being told does not look yet.
        for kind in tuple(self._quotas.measured):
            if kind not in self.watches:
                self.watches[kind] = self._client.watch(kind, self._changed, quiet=True)
        return super().run_once()


def resource_quota(context: ControllerContext) -> ResourceQuotaController:
    """The factory of the controller."""
    return ResourceQuotaController(ResourceQuotaReconciler(context.scheme), context)
