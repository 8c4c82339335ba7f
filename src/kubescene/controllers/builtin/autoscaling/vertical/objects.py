"""The world as recommender and updater see it: workloads by name, pods by namespace."""

from collections.abc import Iterable, Iterator

from kubescene.api.kinds import POD
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.autoscalers.vertical.limits import ContainerResources, containers_of
from kubescene.autoscalers.vertical.objects import (
    VerticalPodAutoscaler,
    VerticalPodAutoscalerError,
    decode_vpa,
)
from kubescene.client import Client, ObjectRef, Reader
from kubescene.controllers.builtin.autoscaling.vertical.kinds import AUTOSCALER
from kubescene.errors import BadRequestError
from kubescene.types import JsonObject


class WorkloadLookup:
    """What targets and owners are looked up in."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def find(self, kind: GroupVersionKind, name: str, namespace: str) -> JsonObject | None:
        try:
            return self._reader.find(ObjectRef(kind, name, namespace))
        except BadRequestError:  # nobody serves that kind
            return None

    def scale(self, kind: GroupVersionKind, name: str, namespace: str) -> JsonObject:
        return self._reader.get_scale(ObjectRef(kind, name, namespace))


class Pods:
    """All pods, by namespace in order of names."""

    def __init__(self, client: Client) -> None:
        self._pods: dict[str, dict[str, Record]] = {}
        client.watch(POD, self.changed, quiet=True, traits=EVERYTHING)

    def changed(self, change: Change) -> None:
        """Note what a change says."""
        record = change.record
        pods = self._pods.setdefault(record.namespace, {})
        if change.type is ChangeType.DELETED:
            pods.pop(record.name, None)
        else:
            pods[record.name] = record

    def of(self, namespace: str) -> Iterator[Record]:
        """Those of a namespace."""
        pods = self._pods.get(namespace, {})
        return (pods[name] for name in sorted(pods))


def autoscalers(reader: Reader) -> Iterator[tuple[JsonObject, VerticalPodAutoscaler]]:
    """Every VPA that can be read, as it is stored and as it is meant."""
    try:
        objects = reader.list(AUTOSCALER)
    except BadRequestError:  # somebody has deleted the definition
        return
    for obj in objects:
        try:
            yield obj, decode_vpa(obj)
        except VerticalPodAutoscalerError:
            continue


def sizes(pod: JsonObject, resources: Iterable[ContainerResources]) -> dict[str, dict[str, str]]:
    """Requests by container, of those that have any."""
    return {
        container["name"]: {name: str(amount) for name, amount in each.requests.items()}
        for container, each in zip(containers_of(pod), resources, strict=True)
        if each.requests
    }
