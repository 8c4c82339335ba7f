"""A TrafficRun as a scenario: the same requests to real Pods, with the same autoscalers.

Evenly spaced requests to replicas that nobody scales are the same to the byte; draws and what
autoscalers see differ, since pods are scraped every 15 seconds and scheduled. What a scenario
cannot say is refused by name, or named as left out where pods and autoscalers have it otherwise.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.durations import SECOND
from kubescene.errors import TrafficError
from kubescene.flows.fields import Pattern
from kubescene.flows.waiting import WhenNone
from kubescene.traffic.spec.fields import AutoscalerObject, Mode, TrafficRun
from kubescene.traffic.spec.objects import autoscaler_of
from kubescene.types import JsonObject

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment"}
_KNATIVE = "autoscaling.knative.dev/"
_CONCURRENCY_NAMES = {
    "target": "target",
    "metric": "metric",
    "metricAggregationAlgorithm": "metric-aggregation-algorithm",
    "targetUtilizationPercentage": "target-utilization-percentage",
    "stableWindow": "window",
    "panicWindowPercentage": "panic-window-percentage",
    "panicThresholdPercentage": "panic-threshold-percentage",
    "scaleDownDelay": "scale-down-delay",
    "activationScale": "activation-scale",
    "initialScale": "initial-scale",
    "minScale": "min-scale",
    "maxScale": "max-scale",
}

_SCRAPED = "pods of a scenario are scraped every 15 seconds"
LEFT_OUT: Mapping[str, str] = {
    "faithful": "only faithful mode knows it",
    "featureGates.HPAConfigurableTolerance": "the `tolerance` of an HPA's behavior counts",
    "featureGates.HPAScaleToZero": "an HPA has at least one replica",
    "featureGates.InPlace": "the VPA's update mode InPlace is refused",
    "metrics.firstAfter": _SCRAPED,
    "metrics.lag": _SCRAPED,
    "replicas.replacement": "the VPA's updater evicts pods or resizes them in place",
    "replicas.victims": "the ReplicaSet ranks pods as Kubernetes does",
    "statInterval": _SCRAPED,
    "updateRule": "the VPA's updater decides by its own rules",
    "verticalInterval": "the VPA's recommender and updater look once a minute",
}
"""Fields that change nothing in the scenario, and what holds there instead."""
SAME: Mapping[str, Any] = {
    "featureGates.HPAConfigurableTolerance": True,
    "featureGates.HPAScaleToZero": False,
    "featureGates.InPlace": False,
    "replicas.replacement": "auto",
    "updateRule": "updater",
}
"""Values of such fields that say what holds there anyway."""


def left_out(document: JsonObject) -> Iterator[str]:
    """What a TrafficRun sets and its scenario does not, each with what holds there instead."""
    for path, instead in LEFT_OUT.items():
        value: Any = document.get("spec")
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None and not (path in SAME and value == SAME[path]):
            yield f"spec.{path} is left out: {instead}"


def scenario_of(run: TrafficRun, document: JsonObject) -> JsonObject:
    """The scenario; ``document`` is the file that ``run`` was read from."""
    spec, given = run.spec, document.get("spec") or {}
    for path, why in _unsaid(run):
        raise TrafficError(f"cannot be said in a scenario: {why}", path=f"spec.{path}")
    name = run.metadata.name or "traffic"
    launch = int(spec.replicas.launch_delay)
    operations = [
        _created("node", 1, _node(run)),
        _created("deployment", 1, _deployment(run, name)),
        *([_advanced("launch", 1, launch)] if launch else ()),
        *(_created(f"metric-{place}", 2, series) for place, series in enumerate(_series(run))),
        *(
            _created(f"autoscaler-{place}", 2, _autoscaler(each, place, name))
            for place, each in enumerate(spec.autoscalers)
        ),
        _created("traffic", 2, _traffic(run, given, name)),
        _advanced("run", 2, int(spec.duration)),
        {"id": "end", "step": 2, "doneOperation": {}},
    ]
    controller = spec.hpa_controller
    return {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": name},
        "spec": {
            "simulation": {
                "seed": spec.seed,
                "kubelet": {
                    "readyDelay": _shown(launch),
                    "terminateDelay": _shown(int(spec.replicas.terminate_delay)),
                },
                "horizontalPodAutoscaler": {
                    "sync-period": _shown(int(spec.horizontal_interval)),
                    "tolerance": controller.tolerance,
                    "downscale-stabilization": _shown(int(controller.downscale_stabilization)),
                    "cpu-initialization-period": _shown(int(controller.cpu_initialization_period)),
                    "initial-readiness-delay": _shown(int(controller.initial_readiness_delay)),
                },
            },
            "operations": operations,
        },
    }


def _unsaid(run: TrafficRun) -> Iterator[tuple[str, str]]:
    """What there is no word for, with the reason."""
    spec, traffic = run.spec, run.spec.traffic
    if spec.mode is not Mode.FIXED:
        yield "mode", "faithful mode is Skenario's world, which has no pods"
    for name in (Pattern.PIECEWISE, Pattern.REPLAY):
        part = getattr(traffic, name)
        if part is not None and part.file:
            yield f"traffic.{name}.file", "the scenario may lie elsewhere: write the numbers"
    if traffic.pattern is Pattern.UNIFORM and (
        traffic.uniform is None or traffic.uniform.width is None
    ):
        yield "traffic.uniform.width", "a Traffic has no end to spread over; say it"
    if spec.replicas.memory is not None:
        yield "replicas.memory", "say it in the Deployment and the Traffic (memory) by hand"
    for place, each in enumerate(spec.metrics.external):
        if each.file:
            yield f"metrics.external[{place}].file", "write its points here"


def _node(run: TrafficRun) -> JsonObject:
    """Room for every replica, so that nobody contends."""
    cpu = max(int(run.spec.replicas.cpu), 1) * 1000
    size = {"cpu": f"{cpu}m", "memory": "4Ti", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node"},
        "status": {"capacity": size, "allocatable": dict(size)},
    }


def _deployment(run: TrafficRun, name: str) -> JsonObject:
    replicas = run.spec.replicas
    cpu = {"cpu": f"{int(replicas.cpu)}m"}
    container = {"name": "app", "image": "app", "resources": {"requests": cpu, "limits": cpu}}
    grace = -(-int(replicas.grace_period) // SECOND)
    return {
        **TARGET,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas.initial,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": grace, "containers": [container]},
            },
        },
    }


def _traffic(run: TrafficRun, given: JsonObject, name: str) -> JsonObject:
    spec = run.spec
    waits = spec.when_none is WhenNone.WAIT or (
        spec.when_none is WhenNone.AUTO
        and any(_kind(each) == "ConcurrencyAutoscaler" for each in spec.autoscalers)
    )
    most = spec.replicas.request_cpu or spec.replicas.cpu
    body: JsonObject = {
        "to": {"deployment": name},
        "arrivals": given.get("traffic") or {},
        "request": {**(given.get("request") or {}), "cpu": f"{int(most)}m"},
        "routing": spec.routing.value,
        "begin": "AtOnce",
        "whenNone": "wait" if waits else "refuse",
    }
    if spec.replicas.limit:
        body["limit"] = spec.replicas.limit
    if "objective" in given:
        body["objective"] = given["objective"]
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Traffic",
        "metadata": {"name": name},
        "spec": body,
    }


def _series(run: TrafficRun) -> Iterator[JsonObject]:
    for place, each in enumerate(run.spec.metrics.external):
        points = [{"at": _shown(int(one.at)), "value": str(one.value)} for one in each.points]
        yield {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "MetricSeries",
            "metadata": {"name": f"external-{place}"},
            "spec": {"metric": each.name, "external": {}, "points": points},
        }


def _kind(given: AutoscalerObject) -> str:
    return str(_object(given, 0).get("kind"))


def _object(given: AutoscalerObject, place: int) -> JsonObject:
    if given.object is not None:
        return given.object
    from kubescene.api.text.yaml_text import read_yaml

    documents = read_yaml(autoscaler_of(given, place).yaml)
    return next((each.value for each in documents if isinstance(each.value, dict)), {})


def _autoscaler(given: AutoscalerObject, place: int, name: str) -> JsonObject:
    """The same object, about the Deployment."""
    path, obj = f"spec.autoscalers[{place}]", _object(given, place)
    target, kind = {**TARGET, "name": name}, obj.get("kind")
    spec: dict[str, Any] = dict(obj.get("spec") or {})
    told = obj.get("metadata") or {}
    metadata: JsonObject = {"name": told.get("name") or name}
    metadata |= {each: told[each] for each in ("labels", "annotations") if told.get(each)}
    if kind == "HorizontalPodAutoscaler":
        spec["scaleTargetRef"] = target
    elif kind == "VerticalPodAutoscaler":
        spec["targetRef"] = target
    elif kind == "ConcurrencyAutoscaler":
        return _pod_autoscaler(spec, metadata, target, path)
    else:
        raise TrafficError(f"{kind} acts in traffic runs alone", path=path)
    return {"apiVersion": obj["apiVersion"], "kind": kind, "metadata": metadata, "spec": spec}


def _pod_autoscaler(
    spec: JsonObject, metadata: JsonObject, target: JsonObject, path: str
) -> JsonObject:
    """Knative's object for Knative's rule."""
    annotations = {}
    for field, value in spec.items():
        if field not in _CONCURRENCY_NAMES:
            raise TrafficError(
                f"{field} is not said by annotations of a PodAutoscaler: leave it away, or see "
                "the ConfigMap config-autoscaler",
                path=f"{path}.spec",
            )
        annotations[f"{_KNATIVE}{_CONCURRENCY_NAMES[field]}"] = str(value)
    # Its own default; Knative's is no pod at all.
    annotations.setdefault(f"{_KNATIVE}min-scale", "1")
    return {
        "apiVersion": "autoscaling.internal.knative.dev/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": {
            **metadata,
            "annotations": {**metadata.get("annotations", {}), **annotations},
        },
        "spec": {"scaleTargetRef": target, "protocolType": "http1"},
    }


def _created(id: str, step: int, obj: JsonObject) -> JsonObject:
    return {"id": id, "step": step, "createOperation": {"object": obj}}


def _advanced(id: str, step: int, length: int) -> JsonObject:
    return {"id": id, "step": step, "advanceOperation": {"duration": _shown(length)}}


def _shown(length: int) -> str:
    return f"{length // SECOND}s" if length % SECOND == 0 else f"{length}ns"
