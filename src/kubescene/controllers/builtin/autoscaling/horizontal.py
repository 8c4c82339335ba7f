"""The horizontal pod autoscaler of kube-controller-manager, on real objects.

It looks at every HorizontalPodAutoscaler a sync period (15 seconds) after it came, and as long
after each pass, whatever happens meanwhile. A world without such objects pays nothing: neither pods
are watched nor the rules of autoscaling loaded (`passes`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.autoscaling.flags import DEFAULTS, HorizontalSettings
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Plan, Write
from kubescene.errors import ApiError
from kubescene.types import JsonObject
from kubescene.usage.registry import UsageRegistry

if TYPE_CHECKING:
    from kubescene.controllers.builtin.autoscaling.passes import Passes

AUTOSCALER = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")


class HorizontalReconciler:
    """When autoscalers are looked at, and which pods there are."""

    name = "horizontalpodautoscaler"
    kinds: Sequence[GroupVersionKind] = (AUTOSCALER,)

    def __init__(
        self, usage: UsageRegistry, settings: HorizontalSettings = DEFAULTS.horizontal
    ) -> None:
        self.needs_pods = False
        self._usage = usage
        self._settings = settings
        self._due: dict[ObjectKey, int] = {}
        """When each is looked at next."""
        self._pods: dict[str, dict[str, Record]] = {}
        """By namespace and name."""
        self._passes: Passes | None = None

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource == "pods":
            pods = self._pods.setdefault(record.namespace, {})
            if change.type is ChangeType.DELETED:
                pods.pop(record.name, None)
            else:
                pods[record.name] = record
            return ()
        key = ObjectKey(record.namespace, record.name)
        self.needs_pods = True
        if change.type is ChangeType.DELETED:
            # Who is back by the time of the next pass goes on with the history.
            if self._passes is not None:
                self._passes.deleted(key)
            return ()
        return () if key in self._due else (key,)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        period = self._settings.sync_period
        due = self._due.setdefault(key, now + period)
        if now < due:
            return Plan(requeue_after=due - now)
        autoscaler = reader.find(ObjectRef(AUTOSCALER, key.name, key.namespace))
        if autoscaler is None:
            del self._due[key]
            self.passes.forget(key)
            return NOTHING
        self._due[key] = now + period
        plan = self.look(autoscaler, reader, now)
        return Plan(plan.writes, period, plan.notices, plan.facts)

    def look(self, autoscaler: JsonObject, reader: Reader, now: int) -> Plan:
        """A pass, whether it is time or not."""
        pods = list(self._in(autoscaler["metadata"]["namespace"]))
        return self.passes.run(autoscaler, pods, reader, now)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A pass whose write was refused says so in the status, and tries again in its time."""
        plan = self.passes.refused(key, write, error, reader, now)
        return Plan(plan.writes, self._settings.sync_period, plan.notices, plan.facts)

    @property
    def passes(self) -> "Passes":
        """Loaded with the first autoscaler: it takes longer than many a run."""
        if self._passes is None:
            from kubescene.autoscalers.horizontal import HorizontalOptions
            from kubescene.controllers.builtin.autoscaling.passes import Passes

            self._passes = Passes(self._usage, HorizontalOptions(**self._settings.options))
        return self._passes

    def _in(self, namespace: str) -> Iterator[Record]:
        pods = self._pods.get(namespace, {})
        return (pods[name] for name in sorted(pods))


def horizontal_autoscaler(
    context: ControllerContext, settings: HorizontalSettings = DEFAULTS.horizontal
) -> LatePodsController:
    """The factory of the controller."""
    reconciler = HorizontalReconciler(context.usage, settings)
    return LatePodsController(reconciler, context, traits=EVERYTHING)
