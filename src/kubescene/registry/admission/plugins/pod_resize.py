"""PodResizeValidator: a pod on a node cannot ask for more than the whole node has."""

from collections.abc import Sequence

from kubescene.api.resource_requests import node_allocatable, pod_requests
from kubescene.api.scheme import GroupResource
from kubescene.errors import ForbiddenError, StatusCause
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.subresources.binding import NODES
from kubescene.types import JsonObject

_OS_LABEL = "kubernetes.io/os"


class PodResizeValidator:
    name = "PodResizeValidator"
    reads: Sequence[GroupResource] = ()
    is_quiet = True
    kinds = ("Pod",)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        return request.obj

    def validate(self, request: AdmissionRequest) -> None:
        if request.subresource != "resize" or request.old is None:
            return
        pod, node = request.obj, request.obj["spec"].get("nodeName")
        if not node or pod["spec"] == request.old["spec"]:
            return
        record = request.store.get(NODES, "", node)
        if record is None:
            raise request.forbidden(f'node "{node}" not found')
        system = record.labels.get(_OS_LABEL, "linux")
        if system != "linux":
            why = f'pod resize is only supported on linux nodes, node "{node}" is "{system}"'
            raise refused(request, why, "UnsupportedPlatform")
        if shortages := shortages_of(pod, request.store.decoded(record)):
            why = f"node didn't have enough allocatable resources: {'; '.join(shortages)}"
            raise refused(request, why, "NodeCapacity")


def shortages_of(pod: JsonObject, node: JsonObject) -> list[str]:
    asked, offered = pod_requests({"spec": pod["spec"]}), node_allocatable(node)
    return [
        f"{name}, requested: {asked[name]}, allocatable: {offered.get(name, 0)}"
        for name in ("cpu", "memory")
        if asked.get(name, 0) > offered.get(name, 0)
    ]


def refused(request: AdmissionRequest, why: str, reason: str) -> ForbiddenError:
    error = request.forbidden(why)
    return ForbiddenError(
        error.message,
        name=error.name,
        group=error.group,
        kind=error.kind,
        causes=(StatusCause(reason, ""),),
    )
