"""Recordings of the horizontal pod autoscaler once more, through objects.

Everything of a case is in an API server of ours: the autoscaler, its target, the pods, their
statuses. The controller that worlds have reads them and writes the scale and the status, and what
is compared is read from there. What the metrics APIs said, and what refused a write, comes from the
recording. Times between passes are the recording's, so the controller is told when to look.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import structs

from kubescene.actors import Actor, Component
from kubescene.api.options import DeleteOptions
from kubescene.api.records import Record
from kubescene.api.records.traits import EVERYTHING
from kubescene.autoscalers.horizontal import (
    HorizontalStatus,
    RecordedMetrics,
    Result,
    ScaledPod,
)
from kubescene.autoscalers.horizontal.behavior import ScalingHistory
from kubescene.client import Client, ObjectRef, Reader
from kubescene.clock import SECOND, format_time
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.builtin.autoscaling.horizontal import (
    AUTOSCALER,
    HorizontalReconciler,
)
from kubescene.controllers.builtin.autoscaling.passes import Passes
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Plan, Write
from kubescene.errors import ApiError, ConflictError, InternalError, NotFoundError
from kubescene.recording import Notice, NoticeList
from kubescene.testing.goldens.comparisons import GoldenTally
from kubescene.testing.goldens.horizontal import (
    SCALABLE,
    UNIT,
    HorizontalWorld,
    check,
    instant_of,
    replay_in,
)
from kubescene.testing.goldens.recordings import Golden, UnplayableError
from kubescene.types import JsonObject
from kubescene.usage.registry import UsageRegistry

__all__ = ["UNIT", "check", "replay"]

NAMESPACE = "default"
HELD = "kubescene.dev/held"
"""The finalizer of pods that are on their way out for the whole of a case."""
CONTROLLER = Actor("horizontalpodautoscaler", Component.CONTROLLER, inside=True)
NOW = DeleteOptions(grace_period_s=0)


class ReplayedObjects(HorizontalWorld):
    """One case, in objects."""

    def __init__(self, case: JsonObject, *, plain: bool = False) -> None:
        super().__init__(case)
        self._cluster = ClusterWorld(ClusterOptions(start=self.start), plain=plain)
        self._made: dict[str, ScaledPod] = {}
        self._seen: list[Notice] = []
        self._entry: JsonObject = {}
        self._written: int | None = None
        self._begin_controller()
        self._write_autoscaler()

    def _begin_controller(self) -> None:
        context = self._cluster.context(CONTROLLER)
        client = _RecordedClient(context.client, self)
        context = replace(context, client=client, recorder=NoticeList(self._seen))
        self._passes = _RecordedPasses(self)
        self._reconciler = _AtOnce(self._passes, self._cluster.usage)
        self._controller = LatePodsController(self._reconciler, context, traits=EVERYTHING)

    # -- what happens before a pass ------------------------------------------------------------

    def apply(self, entry: JsonObject) -> None:
        gone = bool(entry.get("deleteHPA"))
        super().apply(entry)
        self._entry = entry
        self._cluster.clock.wait_until(max(instant_of(self.start, entry["t"]), self.start))
        self._play(self._write_target)
        self._play(self._write_pods)
        if gone or entry.get("recreateHPA"):
            self._cluster.client(CONTROLLER).delete(self._ref) if self._stored else None
        if entry.get("restartController"):
            self._begin_controller()
        if self._exists:
            self._write_autoscaler()

    def _play(self, write: Any) -> None:
        try:
            write()
        except ApiError as error:
            raise UnplayableError(error.message) from error

    @property
    def _ref(self) -> ObjectRef:
        return ObjectRef(AUTOSCALER, "web", NAMESPACE)

    @property
    def _stored(self) -> JsonObject | None:
        return self._cluster.client(CONTROLLER).find(self._ref)

    def _write_autoscaler(self) -> None:
        """The object as it was accepted: created, or its spec changed."""
        stored, client = self._stored, self._cluster.client(CONTROLLER)
        try:
            if stored is None:
                metadata = {"name": "web", "namespace": NAMESPACE}
                client.create({**self._object, "metadata": metadata, "status": {}})
            elif stored["spec"] != self.spec:
                client.update({**stored, "spec": self.spec})
        except ApiError as error:
            raise UnplayableError(error.message) from error

    def _write_target(self) -> None:
        target, client = self.spec["scaleTargetRef"], self._cluster.client(CONTROLLER)
        group, kind = target.get("apiVersion", "").rpartition("/")[0], target["kind"]
        if (group, kind) not in SCALABLE:
            return
        ref = _ref_of(target)
        if client.find(ref) is None:
            client.create(_workload(target, self.replicas))
        else:
            client.scale(ref, self.replicas)

    def _write_pods(self) -> None:
        client = self._cluster.client(CONTROLLER)
        for name in [name for name in self._made if name not in self._pods]:
            self._remove(client, name)
        for name, pod in self._pods.items():
            if self._made.get(name) == pod:
                continue
            if name in self._made:
                self._remove(client, name)
            self._create(client, pod)

    def _remove(self, client: Client, name: str) -> None:
        ref = ObjectRef.to({"apiVersion": "v1", "kind": "Pod", "metadata": _named(name)})
        if self._made.pop(name).deleting:
            client.patch(ref, {"metadata": {"finalizers": None}})
        else:
            client.delete(ref, options=NOW)

    def _create(self, client: Client, pod: ScaledPod) -> None:
        if (pod.started or 0) % SECOND or pod.ready_since % SECOND:
            raise UnplayableError("times of pods have whole seconds in the API")
        metadata = {**_named(pod.name), "labels": dict(pod.labels)}
        if pod.deleting:
            metadata["finalizers"] = [HELD]
        spec = self._spec_of(pod.name)
        made = client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )
        status: JsonObject = {"phase": pod.phase or "Pending"}
        if pod.started is not None:
            status["startTime"] = format_time(pod.started)
        if pod.ready is not None:
            condition = {"type": "Ready", "status": pod.ready}
            condition["lastTransitionTime"] = format_time(pod.ready_since)
            status["conditions"] = [condition]
        obj = {**made.decode(), "status": status}
        ref = ObjectRef.to({**obj, "apiVersion": "v1", "kind": "Pod"})
        client.patch(ref, {"status": status}, subresource="status")
        if pod.deleting:
            client.delete(ref)
        self._made[pod.name] = pod

    def _spec_of(self, name: str) -> JsonObject:
        template = self._case["podTemplates"][self._template_names[name]]
        spec: JsonObject = {
            part: [_container(each) for each in template.get(part) or ()]
            for part in ("containers", "initContainers")
        }
        if template.get("podRequests"):
            spec["resources"] = {"requests": template["podRequests"]}
        return spec

    def _pod(self, pod: JsonObject) -> ScaledPod:
        self._template_names = getattr(self, "_template_names", {})
        self._template_names[pod["name"]] = pod["template"]
        return super()._pod(pod)

    # -- the pass --------------------------------------------------------------------------------

    def run(self, entry: JsonObject) -> Result | None:
        self._seen.clear()
        self._forget_last()
        self._turn()
        self._reconciler.told = True
        self._controller.look_at(ObjectKey(NAMESPACE, "web"))
        self._turn()
        result, stored = self._passes.last_result(), self._stored
        if not self._exists:
            self.history = ScalingHistory()
            return None
        assert result is not None
        assert stored is not None
        self.status = HorizontalStatus.of(stored.get("status") or {})
        self.history = self._passes.history
        target = self.spec["scaleTargetRef"]
        if self._written is not None:
            spec = self._cluster.client(CONTROLLER).get(_ref_of(target))["spec"]
            self.replicas = spec["replicas"]
            self._written = self.replicas
        return structs.replace(result, scaled_to=self._written, events=tuple(self._seen))

    def _forget_last(self) -> None:
        self._written = None
        self._passes.forget_result()

    def _turn(self) -> None:
        while self._controller.run_once().more:
            pass

    def recorded_metrics(self) -> RecordedMetrics:
        """What the metrics APIs said at this pass."""
        now = instant_of(self.start, self._entry["t"])
        return self._metrics(self._entry.get("metrics") or {}, now)

    # -- what its client says --------------------------------------------------------------------

    def seen_scale(self, ref: ObjectRef, read: Any) -> JsonObject:
        """The scale, with the counts and the selector of the recording."""
        if text := self._entry.get("scaleGetError", ""):
            if text == "NotFound":
                raise NotFoundError(
                    f'{SCALABLE[ref.gvk.group, ref.gvk.kind]} "{ref.name}" not found'
                )
            raise InternalError(text)
        scale: JsonObject = read(ref)
        selector = self._entry.get("selector", self._case.get("selector")) or ""
        count = self._entry.get("statusReplicas", self.replicas)
        return {**scale, "status": {"replicas": count, "selector": selector}}

    def refuse_scale(self) -> None:
        if text := self._scale_error(self._entry):
            kind = ConflictError if "cannot be fulfilled" in text else InternalError
            raise kind(text)

    def scaled(self, replicas: int) -> None:
        self._written = replicas

    def refuse_status(self) -> None:
        if text := self._entry.get("statusUpdateError", ""):
            raise InternalError(text)


def replay(golden: Golden, tally: GoldenTally) -> None:
    """Replay a case through objects."""
    replay_in(partial(ReplayedObjects, plain=golden.plain), golden, tally)


class _RecordedClient:
    """A client of which some requests fail, as they did in the recording."""

    def __init__(self, inner: Client, world: ReplayedObjects) -> None:
        self._inner = inner
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get_scale(self, ref: ObjectRef) -> JsonObject:
        return self._world.seen_scale(ref, self._inner.get_scale)

    def scale(self, ref: ObjectRef, replicas: int, **options: Any) -> Record:
        self._world.refuse_scale()
        self._world.scaled(replicas)
        return self._inner.scale(ref, replicas, **options)

    def update(self, obj: JsonObject, *, subresource: str = "", **options: Any) -> Record:
        if subresource == "status":
            self._world.refuse_status()
        return self._inner.update(obj, subresource=subresource, **options)


class _RecordedPasses(Passes):
    """The controller's passes with recorded metrics; what came of the last one is kept."""

    def __init__(self, world: ReplayedObjects) -> None:
        super().__init__(world._cluster.usage, world._options)
        self._world = world
        self.result: Result | None = None

    def forget_result(self) -> None:
        self.result = None

    def last_result(self) -> Result | None:
        return self.result

    @property
    def history(self) -> ScalingHistory:
        return self._histories[ObjectKey(NAMESPACE, "web")]

    def _metrics(
        self, namespace: str, pods: Sequence[ScaledPod], reader: Reader, now: int
    ) -> RecordedMetrics:
        del namespace, pods, reader, now
        return self._world.recorded_metrics()

    def _others(self, key: ObjectKey) -> list[Any]:
        del key
        return list(self._world._others)

    def _planned(
        self,
        key: ObjectKey,
        autoscaler: JsonObject,
        result: Result,
        writes: list[Write],
        told: Sequence[Notice],
        last: Notice | None = None,
    ) -> Plan:
        self.result = result
        return super()._planned(key, autoscaler, result, writes, told, last)


class _AtOnce(HorizontalReconciler):
    """Looks when it is told to."""

    def __init__(self, passes: Passes, usage: UsageRegistry) -> None:
        super().__init__(usage)
        self._passes = passes

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        autoscaler = reader.find(ObjectRef(AUTOSCALER, key.name, key.namespace))
        if not self.told:
            return NOTHING
        self.told = False
        if autoscaler is None:
            self.passes.forget(key)
            return NOTHING
        return self.look(autoscaler, reader, now)

    told = False


def _named(name: str) -> JsonObject:
    return {"name": name, "namespace": NAMESPACE}


def _ref_of(target: JsonObject) -> ObjectRef:
    kind = {"apiVersion": target.get("apiVersion", ""), "kind": target["kind"]}
    return ObjectRef.to({**kind, "metadata": _named(target["name"])})


def _workload(target: JsonObject, replicas: int) -> JsonObject:
    labels = {"app": "web"}
    kind = target["kind"]
    pod = {"containers": [{"name": "c", "image": "i"}]}
    spec: JsonObject = {
        "replicas": replicas,
        "selector": labels if kind == "ReplicationController" else {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    api = {"apiVersion": target["apiVersion"], "kind": kind}
    return {**api, "metadata": _named(target["name"]), "spec": spec}


def _container(container: JsonObject) -> JsonObject:
    given = {"name": container["name"], "image": "i"}
    if container.get("requests"):
        given["resources"] = {"requests": container["requests"]}
    if container.get("restartPolicy"):
        given["restartPolicy"] = container["restartPolicy"]
    return given
