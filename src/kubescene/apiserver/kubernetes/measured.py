"""What pods and nodes use, and custom and external metrics: read-only, and never stored.

``metrics.k8s.io/v1beta1``, ``custom.metrics.k8s.io/v1beta2`` and
``external.metrics.k8s.io/v1beta1`` answer what autoscalers in this world see (`kubescene.usage`):
measured by the last scrape. Whom nobody measures has no metrics.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from kubescene.actors import ENGINE
from kubescene.api.kinds import NODE, POD
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.api.selectors import LabelSelector, parse_labels
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.table import Route, reading
from kubescene.clock import SECOND, format_duration, format_time
from kubescene.controllers.builtin.autoscaling.measured import NamespaceMetrics
from kubescene.errors import BadRequestError, InternalError, NotFoundError
from kubescene.types import JsonObject
from kubescene.usage.measuring import Measurements
from kubescene.usage.registry import MetricRefusedError

METRICS, CUSTOM, EXTERNAL = "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"
RESOURCES = "metrics.k8s.io/v1beta1"
VERBS = ("get", "list")
MEASURED_TYPES = (
    ResourceType(GroupVersionKind(METRICS, "v1beta1", "NodeMetrics"), "nodes", False, verbs=VERBS),
    ResourceType(GroupVersionKind(METRICS, "v1beta1", "PodMetrics"), "pods", True, verbs=VERBS),
    # Metrics come and go with objects: one row stands for all of them.
    ResourceType(
        GroupVersionKind(CUSTOM, "v1beta2", "MetricValueList"),
        "pods/requests_per_second",
        True,
        verbs=("get",),
    ),
    ResourceType(
        GroupVersionKind(EXTERNAL, "v1beta1", "ExternalMetricValueList"),
        "externalmetrics",
        True,
        verbs=("get",),
    ),
)
"""What discovery lists beside the scheme: nothing is stored of it."""
T = TypeVar("T")


class MetricsPages:
    """Answers for all three APIs, on the engine thread: requests may have to flow first."""

    def __init__(self, engine: EngineThread) -> None:
        self._engine = engine

    def routes(self) -> Iterator[Route]:
        root = f"/apis/{RESOURCES}"
        space = f"{root}/namespaces/{{namespace}}/pods"
        yield from reading(f"{root}/nodes", self.nodes, engine=True)
        yield from reading(f"{root}/nodes/{{name}}", self.node, engine=True)
        yield from reading(f"{root}/pods", self.pods, engine=True)
        yield from reading(space, self.pods, engine=True)
        yield from reading(f"{space}/{{name}}", self.pod, engine=True)
        custom = f"/apis/{CUSTOM}/v1beta2/namespaces/{{namespace}}"
        described = f"{custom}/{{resource}}/{{name}}/{{metric}}"
        yield from reading(described, self.custom, engine=True)
        external = f"/apis/{EXTERNAL}/v1beta1/namespaces/{{namespace}}/{{metric}}"
        yield from reading(external, self.external, engine=True)

    # -- resources ---------------------------------------------------------------------------

    async def pods(self, request: Request) -> Response:
        selector, namespace = selector_of(request), request.params.get("namespace", "")
        found = await self._asked(lambda: self._pods(namespace, selector))
        return json_response(listed("PodMetricsList", found))

    async def pod(self, request: Request) -> Response:
        namespace, name = request.params["namespace"], request.params["name"]
        found = await self._asked(lambda: self._pods(namespace, None))
        return json_response(named(found, name, "pods"))

    async def nodes(self, request: Request) -> Response:
        selector = selector_of(request)
        found = await self._asked(lambda: self._nodes(selector))
        return json_response(listed("NodeMetricsList", found))

    async def node(self, request: Request) -> Response:
        found = await self._asked(lambda: self._nodes(None))
        return json_response(named(found, request.params["name"], "nodes"))

    def _pods(self, namespace: str, selector: LabelSelector | None) -> list[JsonObject]:
        found = []
        for name in [namespace] if namespace else self._namespaces():
            measured, records = self._measured(name)
            for pod, containers in measured.usage().items():
                record = records[pod]
                if selector is None or selector.matches(record.labels):
                    found.append(pod_metrics(record, containers, measured))
        return found

    def _nodes(self, selector: LabelSelector | None) -> list[JsonObject]:
        used: dict[str, dict[str, int]] = {}
        measured = None
        for name in self._namespaces():
            measured, records = self._measured(name)
            for pod, containers in measured.usage().items():
                node = used.setdefault(records[pod].node, {})
                for amounts in containers.values():
                    for resource, amount in amounts.items():
                        node[resource] = node.get(resource, 0) + amount
        if measured is None:
            return []
        return [
            node_metrics(record, used[record.name], measured)
            for record in self._records(NODE)
            if record.name in used and (selector is None or selector.matches(record.labels))
        ]

    # -- custom and external metrics -----------------------------------------------------------

    async def custom(self, request: Request) -> Response:
        selector, params = selector_of(request), request.params
        found = await self._asked(lambda: self._custom(params, selector))
        return json_response(
            {
                "kind": "MetricValueList",
                "apiVersion": f"{CUSTOM}/v1beta2",
                "metadata": {},
                "items": found,
            }
        )

    def _custom(self, params: dict[str, str], selector: LabelSelector | None) -> list[JsonObject]:
        measured, records = self._measured(params["namespace"])
        name, metric, resource = params["name"], params["metric"], params["resource"]
        found: list[tuple[str, str, int]] = []
        if resource == "pods":
            for each in measured.of_pods():
                if each.metric == metric:
                    found += [("Pod", pod, value) for pod, value in each.values.items()]
            if name == "*" and selector is not None:
                found = [each for each in found if selector.matches(records[each[1]].labels)]
        else:
            kind = self._engine.cluster.scheme.resolve(resource).kind
            found = [
                (each.kind, each.name, each.value)
                for each in measured.of_objects()
                if (each.kind, each.metric) == (kind, metric)
            ]
        found = [each for each in found if name in ("*", each[1])]
        if not found:
            told = f"the server could not find the metric {metric} for {resource} {name}"
            raise NotFoundError(told)
        return [metric_value(*each, params, measured) for each in found]

    async def external(self, request: Request) -> Response:
        selector, params = selector_of(request), request.params
        found = await self._asked(lambda: self._external(params, selector))
        return json_response(
            {
                "kind": "ExternalMetricValueList",
                "apiVersion": f"{EXTERNAL}/v1beta1",
                "metadata": {},
                "items": found,
            }
        )

    def _external(self, params: dict[str, str], selector: LabelSelector | None) -> list[JsonObject]:
        measured, _ = self._measured(params["namespace"])
        return self._made(params, selector, measured.time) or [
            {
                "metricName": series.metric,
                "metricLabels": dict(series.labels),
                "timestamp": format_time(measured.time),
                "value": f"{value}m",
            }
            for series, value in measured.external()
            if series.metric == params["metric"]
            and (selector is None or selector.matches(series.labels))
        ]

    def _made(
        self, params: dict[str, str], selector: LabelSelector | None, time: int
    ) -> list[JsonObject]:
        """A metric that an autoscaler of the cluster makes for an HPA."""
        cluster, asked = self._engine.cluster, selector.requirements if selector else ()
        labels = {each.key: label for each in asked if (label := each.exact()) is not None}
        source = cluster.usage.externals
        if source is None:
            return []
        namespace, metric, now = params["namespace"], params["metric"], cluster.clock.now()
        try:
            value = source.external(namespace, metric, labels, now, counted=False)
        except MetricRefusedError as error:
            raise InternalError(str(error)) from error
        if value is None:
            return []
        given = {"metricName": metric, "metricLabels": None, "timestamp": format_time(time)}
        return [{**given, "value": f"{value}m"}]

    # -- the world -----------------------------------------------------------------------------

    async def _asked(self, command: Callable[[], T]) -> T:
        return await self._engine.submit(command)

    def _namespaces(self) -> list[str]:
        return sorted({record.namespace for record in self._records(POD)})

    def _records(self, kind: GroupVersionKind, namespace: str = "") -> list[Record]:
        cluster = self._engine.cluster
        place = cluster.scheme.of(kind).group_resource
        return cluster.store.list(place, namespace=namespace)

    def _measured(self, namespace: str) -> tuple[Measurements, dict[str, Record]]:
        cluster = self._engine.cluster
        records = {record.name: record for record in self._records(POD, namespace)}
        reader, now = cluster.client(ENGINE), cluster.clock.now()
        metrics = NamespaceMetrics(cluster.usage)
        return metrics.of_records(namespace, records.values(), reader, now), records


def selector_of(request: Request) -> LabelSelector | None:
    """The labels that a request asks for, None if it does not."""
    if request.query.get("fieldSelector"):
        raise BadRequestError("metrics cannot be selected by fields")
    text = request.query.get("labelSelector", "")
    return parse_labels(text) if text else None


def listed(kind: str, items: list[JsonObject]) -> JsonObject:
    bare = [
        {name: value for name, value in each.items() if name not in ("kind", "apiVersion")}
        for each in items
    ]
    return {"kind": kind, "apiVersion": RESOURCES, "metadata": {}, "items": bare}


def named(items: list[JsonObject], name: str, plural: str) -> JsonObject:
    """The one of that name; raises 404 as metrics-server does."""
    for each in items:
        if each["metadata"]["name"] == name:
            return each
    raise NotFoundError(f'{plural}.{METRICS} "{name}" not found', kind=plural, name=name)


def pod_metrics(
    record: Record, containers: dict[str, dict[str, int]], measured: Measurements
) -> JsonObject:
    return {
        **_head("PodMetrics", record, measured),
        "containers": [
            {"name": name, "usage": amounts_of(used)} for name, used in containers.items()
        ],
    }


def node_metrics(record: Record, used: dict[str, int], measured: Measurements) -> JsonObject:
    return {**_head("NodeMetrics", record, measured), "usage": amounts_of(used)}


def amounts_of(used: dict[str, int]) -> dict[str, str]:
    """CPU in nanocores and memory in Ki, as metrics-server writes them; given in thousandths."""
    written = {}
    if "cpu" in used:
        written["cpu"] = f"{used['cpu'] * 10**6}n"
    if "memory" in used:
        written["memory"] = f"{used['memory'] // 1000 // 1024}Ki"
    return written


def metric_value(
    kind: str, name: str, value: int, params: dict[str, str], measured: Measurements
) -> JsonObject:
    return {
        "describedObject": {
            "kind": kind,
            "namespace": params["namespace"],
            "name": name,
            "apiVersion": "/v1",
        },
        "metric": {"name": params["metric"], "selector": None},
        "timestamp": format_time(measured.time),
        "windowSeconds": measured.window // SECOND,
        "value": f"{value}m",
    }


def _head(kind: str, record: Record, measured: Measurements) -> JsonObject:
    space = {"namespace": record.namespace} if record.namespace else {}
    labels = {"labels": dict(record.labels)} if record.labels else {}
    time = format_time(measured.time)
    return {
        "kind": kind,
        "apiVersion": RESOURCES,
        "metadata": {"name": record.name, **space, **labels, "creationTimestamp": time},
        "timestamp": time,
        "window": format_duration(measured.window),
    }
