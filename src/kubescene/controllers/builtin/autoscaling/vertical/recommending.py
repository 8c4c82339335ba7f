"""The recommender's loop: what pods used goes in, statuses and checkpoints come out.

What is remembered of usage is one thing for all VPAs of a namespace, and begins with the first of
them. A VPA that is new here goes on from its checkpoints, if there are any.
"""

from collections.abc import Iterable

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.selectors import NOTHING, LabelSelector
from kubescene.autoscalers.vertical.histories import CheckpointError, Usage, checkpoint_object
from kubescene.autoscalers.vertical.kills import OOM_KILLED, OomKill, kills
from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.autoscalers.vertical.recommendations import VerticalCondition
from kubescene.autoscalers.vertical.recommender import Recommender
from kubescene.autoscalers.vertical.targets import TargetError, selector_of, unsupported
from kubescene.client import ObjectRef
from kubescene.clock import parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.autoscaling.flags import VerticalSettings
from kubescene.controllers.builtin.autoscaling.measured import NamespaceMetrics
from kubescene.controllers.builtin.autoscaling.vertical.kinds import CHECKPOINT
from kubescene.controllers.builtin.autoscaling.vertical.objects import (
    Pods,
    WorkloadLookup,
    autoscalers,
)
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.types import JsonObject, Nanoseconds

DEFAULT = "default"
"""The name of this recommender; VPAs that name another one are left to it."""
CONFIG_UNSUPPORTED = "ConfigUnsupported"
MEMORY_UNIT = 1000
"""Memory is measured in thousandths of a byte; samples are whole bytes."""


class Recommending:
    """What the recommender remembers."""

    def __init__(self, context: ControllerContext, settings: VerticalSettings) -> None:
        self._context = context
        self._client = context.client
        self._settings = settings
        self._options = RecommenderOptions(**settings.recommender)
        self._metrics = NamespaceMetrics(context.usage)
        self._usage: dict[str, Usage] = {}
        """By namespace."""
        self._recommenders: dict[tuple[str, str], tuple[str, Recommender]] = {}
        """By namespace and name, with the uid of the object."""
        self._kills: dict[str, list[OomKill]] = {}
        self._collected = context.timers.now()
        self._workloads = WorkloadLookup(context.client)
        self._pods = _KilledPods(context, self._kills)

    def forget(self, namespace: str, name: str) -> None:
        self._recommenders.pop((namespace, name), None)

    def run(self, now: Nanoseconds) -> bool:
        found = [each for each in autoscalers(self._client) if _is_mine(each[1])]
        loaded = [(obj, self._load(obj, vpa, now)) for obj, vpa in found]
        namespaces = list(dict.fromkeys(vpa.namespace for _, vpa in found))
        for namespace in namespaces:
            self._feed(namespace, now)
        wrote = [self._update(obj, recommender, now) for obj, recommender in loaded]
        wrote += [self._save(recommender, now) for _, recommender in loaded]
        if now - self._collected > self._settings.checkpoints_gc_interval:
            self._collected = now
            wrote.append(self._collect_checkpoints({(v.namespace, v.name) for _, v in found}))
        for namespace in namespaces:
            self._usage[namespace].collect_garbage(now, has_controller=True)
        return any(wrote)

    # -- the objects ---------------------------------------------------------------------------

    def _load(self, obj: JsonObject, vpa: VerticalPodAutoscaler, now: Nanoseconds) -> Recommender:
        key, uid = (vpa.namespace, vpa.name), obj["metadata"]["uid"]
        selector, fault = self._selected(vpa)
        known = self._recommenders.get(key)
        if known is not None and known[0] == uid:
            recommender = known[1]
            recommender.vpa, recommender.selector = vpa, selector
        else:
            usage = self._usage.setdefault(vpa.namespace, Usage(self._options))
            recommender = Recommender(vpa, self._options, selector, usage)
            self._recommenders[key] = uid, recommender
            recommender.conditions = _conditions(obj)
            self._go_on(recommender, now)
        if fault:
            said = VerticalCondition(CONFIG_UNSUPPORTED, True, "", fault)
            recommender.set_condition(said, now)
        else:
            recommender.conditions.pop(CONFIG_UNSUPPORTED, None)
        return recommender

    def _selected(self, vpa: VerticalPodAutoscaler) -> tuple[LabelSelector, str]:
        """The pods of a VPA, and why it has none."""
        try:
            selector = selector_of(vpa, self._workloads)
        except TargetError as error:
            return NOTHING, f"Cannot read targetRef. Reason: {error}"
        fault = unsupported(vpa, self._workloads)
        return (NOTHING, fault) if fault else (selector, "")

    def _go_on(self, recommender: Recommender, now: Nanoseconds) -> None:
        """Load what was saved of a VPA; what cannot be read is left out, as upstream does."""
        for saved in self._checkpoints(recommender.vpa.namespace):
            if saved["spec"].get("vpaObjectName") != recommender.vpa.name:
                continue
            try:
                recommender.load(
                    {saved["spec"].get("containerName", ""): saved.get("status") or {}}, now
                )
            except CheckpointError:
                continue

    # -- samples -------------------------------------------------------------------------------

    def _feed(self, namespace: str, now: Nanoseconds) -> None:
        usage = self._usage[namespace]
        records = [record for record in self._pods.of(namespace) if record.phase != "Pending"]
        pods = self._metrics.read(namespace, records)
        for name in [name for name in usage.pods if name not in pods]:
            usage.delete_pod(name)
        for record, pod in pods.values():
            usage.set_pod(
                pod.name,
                labels=pod.labels,
                containers=pod.containers,
                now=now,
                phase=record.phase or "Unknown",
            )
        measured = self._metrics.of(namespace, [pod for _, pod in pods.values()], self._client, now)
        for pod_name, containers in measured.usage().items():
            for container, used in containers.items():
                if "cpu" in used:
                    usage.add_cpu(pod_name, container, used["cpu"], measured.time)
                if "memory" in used:
                    size = -(-used["memory"] // MEMORY_UNIT)
                    usage.add_memory(pod_name, container, size, measured.time)
        for kill in self._kills.pop(namespace, ()):
            usage.add_oom(kill.pod, kill.container, kill.memory, kill.time)

    # -- what is written -----------------------------------------------------------------------

    def _update(self, obj: JsonObject, recommender: Recommender, now: Nanoseconds) -> bool:
        status = recommender.recommend(now).to_status()
        status.setdefault("recommendation", {})
        if status == obj.get("status"):
            return False
        try:
            self._client.update({**obj, "status": status}, subresource="status")
        except ApiError:  # as upstream: it is tried again in the next loop
            return False
        return True

    def _save(self, recommender: Recommender, now: Nanoseconds) -> bool:
        vpa, wrote = recommender.vpa, False
        for container, status in recommender.checkpoints(now).items():
            made = checkpoint_object(vpa.name, container, status)
            made["metadata"]["namespace"] = vpa.namespace
            try:
                wrote = self._write(made) or wrote
            except ApiError:
                continue
        return wrote

    def _write(self, checkpoint: JsonObject) -> bool:
        ref = ObjectRef.to(checkpoint)
        known = self._client.find(ref)
        if known is None:
            self._client.create(checkpoint)
        elif known.get("status") == checkpoint["status"]:
            return False
        else:
            self._client.update({**known, "status": checkpoint["status"]})
        return True

    def _checkpoints(self, namespace: str = "") -> list[JsonObject]:
        try:
            found = self._client.list(CHECKPOINT, namespace=namespace)
        except BadRequestError:
            return []
        return [each for each in found if isinstance(each.get("spec"), dict)]

    def _collect_checkpoints(self, alive: set[tuple[str, str]]) -> bool:
        wrote = False
        for saved in self._checkpoints():
            namespace = saved["metadata"]["namespace"]
            if (namespace, saved["spec"].get("vpaObjectName")) not in alive:
                try:
                    self._client.delete(ObjectRef.to(saved))
                except NotFoundError:
                    continue
                wrote = True
        return wrote


class _KilledPods(Pods):
    """Pods, and the kills that their statuses tell of."""

    def __init__(self, context: ControllerContext, found: dict[str, list[OomKill]]) -> None:
        self._found = found
        super().__init__(context.client)

    def changed(self, change: Change) -> None:
        super().changed(change)
        record, previous = change.record, change.previous
        is_new = change.type is ChangeType.MODIFIED and previous is not None
        if is_new and OOM_KILLED.encode() in record.data:
            assert previous is not None
            told = list(kills(previous.decode(), record.decode()))
            self._found.setdefault(record.namespace, []).extend(told)


def _is_mine(vpa: VerticalPodAutoscaler) -> bool:
    named = vpa.spec.recommenders or ()
    return not named or any(each.name == DEFAULT for each in named)


def _conditions(obj: JsonObject) -> dict[str, VerticalCondition]:
    """Those that the status of an object has."""
    given: Iterable[JsonObject] = (obj.get("status") or {}).get("conditions") or ()
    return {
        each["type"]: VerticalCondition(
            each["type"],
            each.get("status") == "True",
            each.get("reason") or "",
            each.get("message") or "",
            parse_time(each["lastTransitionTime"]) if each.get("lastTransitionTime") else 0,
        )
        for each in given
    }
