"""A snapshot of a cluster that runs, by GET alone: nothing else can be sent.

Each kind is listed page by page at one revision; the kinds follow each other, so a snapshot is not
of one instant, and what refers to nothing is counted (`kubescene.snapshots.owners`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kubescene.api.scheme import GroupVersionKind
from kubescene.client.http.discovery import ApiResource, Discovery
from kubescene.client.http.endpoints import Endpoint
from kubescene.client.http.listing import list_all
from kubescene.client.http.requests import Reply, Requests
from kubescene.client.http.wire import WireRequest
from kubescene.clock import Clock, ScaledClock
from kubescene.errors import BadRequestError, ForbiddenError, SnapshotError
from kubescene.snapshots.readers.interface import FoundObjects
from kubescene.types import JsonObject

PAGE_SIZE = 500
TIMEOUT_S = 60.0


class ListedKind(NamedTuple):
    gvk: GroupVersionKind
    plural: str


def _kinds(group: str, version: str, **plurals: str) -> Iterator[ListedKind]:
    for kind, plural in plurals.items():
        yield ListedKind(GroupVersionKind(group, version, kind), plural)


KINDS: Sequence[ListedKind] = (
    *_kinds(
        "",
        "v1",
        Namespace="namespaces",
        Node="nodes",
        PersistentVolume="persistentvolumes",
        PersistentVolumeClaim="persistentvolumeclaims",
        ServiceAccount="serviceaccounts",
        Service="services",
        ResourceQuota="resourcequotas",
        LimitRange="limitranges",
        ReplicationController="replicationcontrollers",
    ),
    *_kinds("scheduling.k8s.io", "v1", PriorityClass="priorityclasses"),
    *_kinds(
        "storage.k8s.io",
        "v1",
        StorageClass="storageclasses",
        CSIDriver="csidrivers",
        CSINode="csinodes",
    ),
    *_kinds(
        "resource.k8s.io",
        "v1",
        DeviceClass="deviceclasses",
        ResourceSlice="resourceslices",
        ResourceClaim="resourceclaims",
        ResourceClaimTemplate="resourceclaimtemplates",
    ),
    *_kinds("policy", "v1", PodDisruptionBudget="poddisruptionbudgets"),
    *_kinds("autoscaling", "v2", HorizontalPodAutoscaler="horizontalpodautoscalers"),
    *_kinds(
        "autoscaling.k8s.io",
        "v1",
        VerticalPodAutoscaler="verticalpodautoscalers",
    ),
    *_kinds(
        "apps",
        "v1",
        Deployment="deployments",
        ReplicaSet="replicasets",
        StatefulSet="statefulsets",
        DaemonSet="daemonsets",
        ControllerRevision="controllerrevisions",
    ),
    *_kinds("batch", "v1", CronJob="cronjobs", Job="jobs"),
    *_kinds("", "v1", Pod="pods"),
)
"""What is asked for: owners before what they own. Never Secrets, nor the data of ConfigMaps."""


def cluster_role(name: str = "kubescene-snapshot", verbs: Sequence[str] = ("list",)) -> JsonObject:
    """All that whoever takes a snapshot must be allowed; who records watches as well."""
    groups: dict[str, list[str]] = {}
    for each in KINDS:
        groups.setdefault(each.gvk.group, []).append(each.plural)
    rules = [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": [*verbs]}
        for group, plurals in groups.items()
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }


class ReadingRequests(Requests):
    """Requests that cannot change anything: GET, or nothing at all."""

    def send(self, request: WireRequest) -> Reply:
        if request.method != "GET":
            raise SnapshotError(
                f"{request.method} {request.target} was about to be sent: a snapshot only reads",
                where=self.endpoint.url,
            )
        return super().send(request)


def found_in(
    endpoint: Endpoint,
    *,
    namespace: str = "",
    selector: str = "",
    clock: Clock | None = None,
) -> FoundObjects:
    """The objects of a cluster; raises `UnreachableError` if there is none.

    With ``namespace``, namespaced kinds of that one only; ``selector`` is for labels of them.
    """
    requests = ReadingRequests(endpoint, clock or ScaledClock(1), timeout_s=TIMEOUT_S)
    found = FoundObjects(iter(()))
    found.objects = _objects(requests, namespace, selector, found.remarks)
    return found


def _objects(
    requests: Requests, namespace: str, selector: str, remarks: list[str]
) -> Iterator[Any]:
    discovery = Discovery(requests)
    try:
        for each in KINDS:
            try:
                api = discovery.find(each.gvk)
            except BadRequestError:
                continue  # the server does not have the kind
            yield from _listed(requests, api, namespace, selector, remarks)
    finally:
        requests.close()


def _listed(
    requests: Requests, api: ApiResource, namespace: str, selector: str, remarks: list[str]
) -> Iterator[Any]:
    try:
        page = list_all(
            requests,
            api,
            namespace=namespace if api.namespaced else "",
            labels=selector if api.namespaced else "",
            page_size=PAGE_SIZE,
        )
    except ForbiddenError as error:
        remarks.append(f"{api.plural} may not be listed, and are not in it: {error.message}")
        return
    for item in page.items:
        yield item.record.decode()
