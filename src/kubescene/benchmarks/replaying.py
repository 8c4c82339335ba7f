"""Doing what a workload says, operation by operation."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kubescene.api.copies import own_copy
from kubescene.api.selectors import LabelSelector, from_label_selector
from kubescene.benchmarks.backgrounds import Churn, Deletions
from kubescene.benchmarks.measurements import WorkloadResult, begin, peak_mb
from kubescene.benchmarks.objects import (
    PodMaker,
    allocate_claims,
    create_driver,
    create_nodes,
    create_pods,
)
from kubescene.benchmarks.operations import OpCode, WorkloadOperation
from kubescene.benchmarks.stage import ReplayStage
from kubescene.benchmarks.templates import ObjectTemplate
from kubescene.benchmarks.workloads import Workload
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import SECOND, parse_duration
from kubescene.errors import ApiError, ConfigurationError, WorkloadError
from kubescene.garbage import rare_collections
from kubescene.scheduler import FeatureGates, SchedulerOptions
from kubescene.scheduler.configuration.sources import scheduler_options
from kubescene.timeline import Instrument
from kubescene.types import JsonObject

SCHEDULED, ATTEMPTED = "Scheduled", "Attempted"

RESIZE = "resize"
ADMITTED = ("serviceAccountName", "serviceAccount", "priority", "preemptionPolicy")
"""What admission gives to every pod, and no update may take away."""


def replay(workload: Workload, *onlookers: Instrument) -> WorkloadResult:
    """Replay one workload in a world of its own; raises `WorkloadError`."""
    gates, refused = _gates(workload.feature_gates)
    result = WorkloadResult(workload.test_case, workload.name, workload.threshold)
    result.not_replayed.extend(refused)
    watch = begin()
    with rare_collections():
        stage = ReplayStage(_scheduler(workload, gates), *onlookers)
        began = stage.now
        player = _Player(workload, stage, result)
        for operation in workload.operations:
            player.play(operation)
    if stage.collecting is not None:
        stage.stop_collecting()
    result.measurements = stage.measurements
    result.virtual_s = (stage.now - began) / SECOND
    result.wall_s, result.cpu_s = watch.read()
    result.peak_mb = peak_mb()
    return result


def _gates(wanted: Mapping[str, bool]) -> tuple[FeatureGates, list[str]]:
    """The gates that can be turned here, and those that cannot, in words."""
    turned: dict[str, bool] = {}
    refused = []
    for name, value in wanted.items():
        try:
            FeatureGates.of({**turned, name: value})
        except ConfigurationError:
            refused.append(f"feature gate {name}={str(value).lower()}")
        else:
            turned[name] = value
    return FeatureGates.of(turned), refused


def _scheduler(workload: Workload, gates: FeatureGates) -> SchedulerOptions:
    options = SchedulerOptions(feature_gates=gates)
    if workload.scheduler_config is None:
        return options
    configured: SchedulerOptions = scheduler_options(workload.scheduler_config, options)
    return configured


class _Player:
    """The operations of one workload."""

    def __init__(self, workload: Workload, stage: ReplayStage, result: WorkloadResult) -> None:
        self._workload = workload
        self._stage = stage
        self._result = result
        self._templates: dict[Path, ObjectTemplate] = {}

    def play(self, operation: WorkloadOperation) -> None:
        try:
            _PLAYED[operation.code](self, operation)
        except WorkloadError as error:
            raise self._placed(error.message, operation) from error
        except (ApiError, ConfigurationError, ValueError) as error:
            raise self._placed(str(error), operation) from error

    def _placed(self, message: str, operation: WorkloadOperation) -> WorkloadError:
        workload = self._workload
        return WorkloadError(
            f"{operation.code}: {message}",
            file=str(workload.file),
            workload=workload.full_name,
            path=operation.path,
        )

    def _template(self, path: str | Path | None) -> ObjectTemplate | None:
        if path is None:
            return None
        file = self._workload.beside(path) if isinstance(path, str) else path
        if file not in self._templates:
            self._templates[file] = ObjectTemplate.load(file)
        return self._templates[file]

    def _named(self, operation: WorkloadOperation, field: str) -> ObjectTemplate:
        template = self._template(operation.get(field))
        assert template is not None
        return template

    # -- one method per op code --------------------------------------------------------------

    def create_nodes(self, operation: WorkloadOperation) -> None:
        template = self._template(operation.get("nodeTemplatePath"))
        self._result.nodes += create_nodes(self._stage, operation, template)

    def create_namespaces(self, operation: WorkloadOperation) -> None:
        template = self._template(operation.get("namespaceTemplatePath"))
        plain: JsonObject = {"apiVersion": "v1", "kind": "Namespace"}
        body = plain if template is None else template.fill()
        given = {**(body.get("metadata") or {})}
        given.pop("generateName", None)
        for number in range(operation.get("count")):
            metadata = {**given, "name": f"{operation.get('prefix')}-{number}"}
            self._stage.create({**body, "metadata": metadata})

    def create_pods(self, operation: WorkloadOperation) -> None:
        own = operation.get("podTemplatePath") or self._workload.default_pod_template
        volume = self._template(operation.get("persistentVolumeTemplatePath"))
        claim = self._template(operation.get("persistentVolumeClaimTemplatePath"))
        if (volume is None) != (claim is None):
            raise WorkloadError("a volume needs a claim, and a claim a volume: give both templates")
        volumes = None if volume is None or claim is None else (volume, claim)
        maker = PodMaker(self._stage, operation, self._template(own), volumes)
        create_pods(self._stage, maker, operation)

    def delete_pods(self, operation: WorkloadOperation) -> None:
        pods = self._stage.pods(operation.get("namespace"), _selector(operation))
        rate = operation.get("deletePodsPerSecond") or 0
        if not rate:
            for record in pods:
                self._stage.delete_pod(record)
            self._stage.settle()
            return
        self._stage.add(Deletions(self._stage, pods, rate))
        if not operation.get("skipWaitToCompletion"):
            self._stage.advance(len(pods) * (SECOND // rate))

    def churn(self, operation: WorkloadOperation) -> None:
        namespace = operation.get("namespace") or f"namespace-{operation.index}"
        self._stage.ensure_namespace(namespace)
        templates = []
        for path in operation.get("templatePaths"):
            template = self._template(path)
            assert template is not None
            templates.append(template.fill())
        interval = operation.get("intervalMilliseconds") or 500
        churn = Churn(
            self._stage,
            templates,
            mode=operation.get("mode"),
            number=operation.get("number") or 0,
            interval_ms=interval,
            namespace=namespace,
        )
        self._stage.add(churn)

    def barrier(self, operation: WorkloadOperation) -> None:
        stage, wanted = self._stage, operation.get("stageRequirement") or SCHEDULED
        if wanted not in (SCHEDULED, ATTEMPTED):
            raise WorkloadError(f"stageRequirement is {SCHEDULED} or {ATTEMPTED}, not {wanted!r}")
        names = operation.get("namespaces") or list(stage.remembered)
        for name in names:
            if name not in stage.remembered:
                raise WorkloadError(f"no pods wait in the namespace {name!r}")
            self._wait(name, stage.remembered[name], wanted, _selector(operation))
        if wanted == SCHEDULED:
            for name in names:
                del stage.remembered[name]

    def _wait(self, name: str, count: int, wanted: str, labels: LabelSelector | None) -> None:
        stage = self._stage

        def reached() -> int:
            pods = stage.pods(name, labels)
            return sum(1 for each in pods if each.node or (wanted == ATTEMPTED and _tried(each)))

        if labels is not None:
            count = min(count, len(stage.pods(name, labels)))
        complaint = f"pods of the namespace {name} are {wanted.lower()}"
        stage.wait(lambda: reached() >= count, lambda: f"{reached()} of {count} {complaint}")

    def sleep(self, operation: WorkloadOperation) -> None:
        self._stage.settle()
        self._stage.advance(parse_duration(operation.get("duration")))

    def start_collecting(self, operation: WorkloadOperation) -> None:
        namespaces = tuple(operation.get("namespaces"))
        self._stage.start_collecting(operation.get("name"), namespaces, _selector(operation))

    def stop_collecting(self, operation: WorkloadOperation) -> None:
        del operation
        self._stage.settle()
        self._stage.stop_collecting()

    def create_any(self, operation: WorkloadOperation) -> None:
        for obj in self._objects(operation):
            self._stage.create(obj)
        self._stage.settle()

    def update_any(self, operation: WorkloadOperation) -> None:
        """Replace each object, or a part of it, then what is its status."""
        parts = operation.get("subresources") or ()
        for each in parts:
            if each not in ("status", RESIZE):
                self._result.not_replayed.append(f"updateAny of subresource {each}")
        rate = operation.get("updatePerSecond") or 0
        for obj in self._objects(operation):
            self._update(obj, RESIZE if RESIZE in parts else "")
            if rate:
                self._stage.advance(SECOND // rate)
        self._stage.settle()

    def _update(self, obj: JsonObject, part: str) -> None:
        client = self._stage.client
        existing = client.get(ObjectRef.to(obj))
        kept = {
            name: existing["metadata"][name]
            for name in ("resourceVersion", "uid", "creationTimestamp")
            if name in existing["metadata"]
        }
        obj["metadata"] = {**obj["metadata"], **kept}
        if obj["kind"] == "Pod":
            # scheduler_perf runs without the admission that has set these here.
            given = {name: existing["spec"].get(name) for name in ADMITTED}
            obj["spec"] = {**given, **(obj.get("spec") or {})}
        record = client.update(obj, subresource=part)
        if "status" in obj:
            obj["metadata"]["resourceVersion"] = str(record.revision)
            client.update(obj, subresource="status")

    def _objects(self, operation: WorkloadOperation) -> list[JsonObject]:
        template, count = self._named(operation, "templatePath"), operation.get("count", 1)
        made = []
        for index in range(count):
            obj: JsonObject = own_copy(template.fill(index, count))
            metadata = obj.setdefault("metadata", {})
            namespace = operation.get("namespace")
            if namespace and self._is_namespaced(obj):
                self._stage.ensure_namespace(namespace)
                metadata["namespace"] = namespace
            prefix = f"{str(obj['kind']).lower()}-"
            metadata["name"] = self._stage.name_for(metadata, prefix, namespace or "")
            made.append(obj)
        return made

    def _is_namespaced(self, obj: JsonObject) -> bool:
        return self._stage.cluster.scheme.of_kind(obj["apiVersion"], obj["kind"]).namespaced

    def create_driver(self, operation: WorkloadOperation) -> None:
        create_driver(self._stage, operation)
        self._stage.settle()

    def allocate_claims(self, operation: WorkloadOperation) -> None:
        allocate_claims(self._stage, operation)
        self._stage.settle()


_PLAYED: Mapping[OpCode, Callable[[_Player, WorkloadOperation], None]] = {
    OpCode.CREATE_NODES: _Player.create_nodes,
    OpCode.CREATE_NAMESPACES: _Player.create_namespaces,
    OpCode.CREATE_PODS: _Player.create_pods,
    OpCode.DELETE_PODS: _Player.delete_pods,
    OpCode.CHURN: _Player.churn,
    OpCode.BARRIER: _Player.barrier,
    OpCode.SLEEP: _Player.sleep,
    OpCode.START_COLLECTING: _Player.start_collecting,
    OpCode.STOP_COLLECTING: _Player.stop_collecting,
    OpCode.CREATE_ANY: _Player.create_any,
    OpCode.UPDATE_ANY: _Player.update_any,
    OpCode.CREATE_DRIVER: _Player.create_driver,
    OpCode.CREATE_CLAIMS: _Player.create_any,
    OpCode.ALLOCATE_CLAIMS: _Player.allocate_claims,
}
"""createPodSets is not here: reading unrolls it."""


def _selector(operation: WorkloadOperation) -> LabelSelector | None:
    given: Any = operation.get("labelSelector")
    return None if given is None else from_label_selector(given)


def _tried(record: Any) -> bool:
    """Whether somebody has said something about a pod's scheduling."""
    conditions = (record.decode().get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "PodScheduled" for each in conditions)
