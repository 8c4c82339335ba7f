"""createPods: many pods of one template, with volumes of their own if the workload says so."""

from collections.abc import Iterator
from typing import Any

from kubescene.api.copies import own_copy
from kubescene.api.records.templates import Blueprint, ClaimingBlueprint
from kubescene.benchmarks.operations import WorkloadOperation
from kubescene.benchmarks.stage import CREATED_PER_S, ReplayStage
from kubescene.benchmarks.templates import ObjectTemplate
from kubescene.clock import SECOND, parse_duration
from kubescene.errors import WorkloadError
from kubescene.types import JsonObject

CONTAINER: JsonObject = {
    "name": "pause",
    "image": "registry.k8s.io/pause:3.10",
    "ports": [{"containerPort": 80}],
    "resources": {
        "requests": {"cpu": "100m", "memory": "500Mi"},
        "limits": {"cpu": "100m", "memory": "500Mi"},
    },
}
BASE_POD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {"containers": [CONTAINER]},
}
_CHUNK = CREATED_PER_S // 10
_VOLUME = "vol"


class PodMaker:
    """The pods of one createPods, one after the other."""

    def __init__(
        self,
        stage: ReplayStage,
        operation: WorkloadOperation,
        template: ObjectTemplate | None,
        volumes: tuple[ObjectTemplate, ObjectTemplate] | None,
    ) -> None:
        self._stage = stage
        self.namespace: str = operation.get("namespace") or f"namespace-{operation.index}"
        self.count: int = operation.get("count")
        self._template = template
        self._volumes = volumes
        self._blueprint: Blueprint | None = None
        self._made = 0

    def create(self, amount: int) -> None:
        """Create so many more."""
        for index in range(self._made, self._made + amount):
            self._create(index)
        self._made += amount

    def _create(self, index: int) -> None:
        body = BASE_POD if self._template is None else self._template.fill(index, self.count)
        if self._volumes is not None:
            self._create_volume(index)
        if self._template is not None and self._template.varies:
            self._stage.create(self._named(self._prepared(body), index))
            return
        if self._blueprint is None:
            prepared = self._prepared(body)
            made = Blueprint if self._volumes is None else ClaimingBlueprint
            self._blueprint = made(prepared)
        pod = self._named(self._blueprint.body, index)
        self._stage.create(pod, self._blueprint)

    def _prepared(self, body: JsonObject) -> JsonObject:
        """The template as our API takes it: with a name, a namespace, and a class for its priority.

        Keys that upstream's decoder takes in any case are brought into theirs.
        """
        pod: JsonObject = own_copy(body)
        metadata = pod.setdefault("metadata", {})
        metadata["namespace"] = self.namespace
        if not metadata.get("name"):
            metadata["name"] = ""
        spec = pod["spec"]
        if spec.get("priority") and not spec.get("priorityClassName"):
            spec["priorityClassName"] = self._stage.priority_class(spec["priority"])
        for constraint in spec.get("topologySpreadConstraints") or ():
            for key in [each for each in constraint if each[:1].isupper()]:
                constraint[key[:1].lower() + key[1:]] = constraint.pop(key)
        if self._volumes is not None:
            claim = {"claimName": "pvc-0"}
            spec["volumes"] = [{"name": _VOLUME, "persistentVolumeClaim": claim}]
        return pod

    def _named(self, body: Any, index: int) -> JsonObject:
        metadata = body["metadata"]
        name = self._stage.name_for(metadata, "pod-", self.namespace)
        pod = {**body, "metadata": {**metadata, "name": name}}
        if self._volumes is not None:
            (volume,) = body["spec"]["volumes"]
            claim = {**volume["persistentVolumeClaim"], "claimName": f"pvc-{index}"}
            volumes = [{**volume, "persistentVolumeClaim": claim}]
            pod["spec"] = {**body["spec"], "volumes": volumes}
        return pod

    def _create_volume(self, index: int) -> None:
        """A volume and a claim that are bound to each other."""
        assert self._volumes is not None
        volume, claim = (own_copy(each.fill()) for each in self._volumes)
        own, wanted = f"{self.namespace}-vol-{index}", f"pvc-{index}"
        volume["metadata"] = {**(volume.get("metadata") or {}), "name": own}
        if "csi" in volume["spec"]:
            volume["spec"]["csi"]["volumeHandle"] = own
        if "awsElasticBlockStore" in volume["spec"]:
            volume["spec"]["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
        claim["metadata"] = {
            **(claim.get("metadata") or {}),
            "name": wanted,
            "namespace": self.namespace,
        }
        claim["spec"]["volumeName"] = own
        claim["status"] = {"phase": "Bound"}
        record = self._stage.create(claim)
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": wanted}
        volume["spec"]["claimRef"] = {
            **reference,
            "namespace": self.namespace,
            "uid": record.uid,
        }
        volume["status"] = {"phase": "Bound"}
        self._stage.create(volume)


def create_pods(stage: ReplayStage, maker: PodMaker, operation: WorkloadOperation) -> None:
    """createPods: create them, and wait until they have nodes."""
    if operation.get("collectMetrics") and operation.get("skipWaitToCompletion"):
        raise WorkloadError("collectMetrics and skipWaitToCompletion exclude each other")
    stage.ensure_namespace(maker.namespace)
    if operation.get("collectMetrics"):
        stage.start_collecting(maker.namespace, (maker.namespace,))
    if operation.get("steadyState"):
        _keep_steady(stage, maker, operation)
    else:
        _create_all(stage, maker)
        if operation.get("skipWaitToCompletion"):
            stage.remembered[maker.namespace] += maker.count
        else:
            wait_for_nodes(stage, maker.namespace, maker.count)
    if operation.get("collectMetrics"):
        stage.stop_collecting()


def wait_for_nodes(stage: ReplayStage, namespace: str, count: int) -> None:
    def bound() -> int:
        return sum(1 for each in stage.pods(namespace) if each.node)

    def complaint() -> str:
        return f"{bound()} of {count} pods of the namespace {namespace} have a node"

    stage.wait(lambda: bound() >= count, complaint)


def _create_all(stage: ReplayStage, maker: PodMaker) -> None:
    """At once if nothing else goes on; otherwise time passes meanwhile."""
    if not stage.is_busy:
        maker.create(maker.count)
        return
    for amount in _chunks(maker.count):
        maker.create(amount)
        stage.advance(amount * SECOND // CREATED_PER_S)


def _chunks(count: int) -> Iterator[int]:
    for made in range(0, count, _CHUNK):
        yield min(_CHUNK, count - made)


def _keep_steady(stage: ReplayStage, maker: PodMaker, operation: WorkloadOperation) -> None:
    """Delete all pods as soon as they have nodes, and create others, until the time is over."""
    end = stage.now + parse_duration(operation.get("duration") or "0s")
    scheduled = 0
    while True:
        maker.create(maker.count)
        stage.settle()
        stage.advance(max(1, maker.count * SECOND // CREATED_PER_S))
        records = stage.pods(maker.namespace)
        scheduled += sum(1 for each in records if each.node)
        if stage.now >= end:
            break
        for record in records:
            stage.delete_pod(record, at_once=True)
        stage.settle()
    if not scheduled:
        raise WorkloadError(f"no pod of the namespace {maker.namespace} got a node")
