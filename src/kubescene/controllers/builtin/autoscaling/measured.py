"""What autoscalers see of a namespace: everything that was declared or simulated, by one scrape."""

from collections.abc import Iterable

from kubescene.api.records import Record
from kubescene.client import Reader
from kubescene.controllers.builtin.outages.definition import OUTAGE
from kubescene.controllers.builtin.outages.effects import unscraped
from kubescene.errors import BadRequestError
from kubescene.types import Nanoseconds
from kubescene.usage.measuring import MeasuredPod, Measurements, last_scrape, measured_pod
from kubescene.usage.registry import UsageRegistry
from kubescene.usage.series import METRIC_SERIES, MetricSeries, readable_series


class NamespaceMetrics:
    """Measurements of namespaces. Series and pods are read again only when they are others."""

    def __init__(self, usage: UsageRegistry) -> None:
        self._usage = usage
        self._series: dict[str, dict[str, tuple[object, MetricSeries | None]]] = {}
        """By namespace and uid, as they were read last."""
        self._pods: dict[str, dict[str, tuple[Record, MeasuredPod]]] = {}
        """By namespace and name, likewise."""

    def of(
        self, namespace: str, pods: Iterable[MeasuredPod], reader: Reader, now: Nanoseconds
    ) -> Measurements:
        """What the last scrape has seen of these pods, and of everything else there."""
        return Measurements(
            self.series(namespace, reader),
            pods,
            now,
            scraped=self._usage.scraped(namespace, now),
            services=self._usage.scraped_services(namespace, now),
            unseen=unseen_pods(namespace, reader, last_scrape(now)),
        )

    def of_records(
        self, namespace: str, records: Iterable[Record], reader: Reader, now: Nanoseconds
    ) -> Measurements:
        """The same, of pods as they are stored."""
        pods = [pod for _, pod in self.read(namespace, records).values()]
        return self.of(namespace, pods, reader, now)

    def read(
        self, namespace: str, records: Iterable[Record]
    ) -> dict[str, tuple[Record, MeasuredPod]]:
        """Pods by name. Records are never changed: one is read again only if it is another."""
        before, known = self._pods.get(namespace, {}), {}
        for record in records:
            pod = before.get(record.name)
            if pod is None or pod[0] is not record:
                pod = record, measured_pod(record.decode())
            known[record.name] = pod
        self._pods[namespace] = known
        return known

    def series(self, namespace: str, reader: Reader) -> list[MetricSeries]:
        """Those of a namespace that make sense."""
        try:
            objects = reader.list(METRIC_SERIES, namespace=namespace)
        except BadRequestError:  # somebody has deleted the definition
            return []
        before, known = self._series.get(namespace, {}), {}
        for obj in objects:
            uid, version = obj["metadata"]["uid"], obj["metadata"].get("generation")
            series = before.get(uid)
            if series is None or series[0] != version:
                series = version, readable_series(obj)
            known[uid] = series
        self._series[namespace] = known
        return [series for _, series in known.values() if series is not None]


def unseen_pods(namespace: str, reader: Reader, time: Nanoseconds) -> set[str]:
    """Those of a namespace on nodes that the scrape at ``time`` did not reach."""
    try:
        nodes = unscraped(reader.list(OUTAGE), time)
    except BadRequestError:  # somebody has deleted the definition
        return set()
    pods = (pod["metadata"] for node in nodes for pod in reader.on_node(node))
    return {pod["name"] for pod in pods if pod["namespace"] == namespace}
