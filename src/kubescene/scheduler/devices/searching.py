"""Devices for the pods of one profile: what is needed once there is a pod that asks for some."""

from kubescene.scheduler.devices.classes import backed_resources
from kubescene.scheduler.devices.cluster import DeviceCluster
from kubescene.scheduler.devices.extended import ExtendedResources, extended_resources
from kubescene.scheduler.devices.filtering import ClaimFilter
from kubescene.scheduler.devices.named_claims import ClaimError, find_claims, key_of
from kubescene.scheduler.devices.pod_claims import PodClaims
from kubescene.scheduler.devices.requests import Demand, claim_spec
from kubescene.scheduler.devices.reserving import ClaimBinder
from kubescene.scheduler.framework.interfaces import Handle
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject


class DeviceSearch:
    """``filter`` judges nodes, ``binder`` takes devices of the chosen one and gives them back."""

    def __init__(self, handle: Handle, binding_timeout: int) -> None:
        self._cluster = handle.shared(DeviceCluster)
        self.filter = ClaimFilter(self._cluster, handle.nodes, handle.clock, binding_timeout)
        self.binder = ClaimBinder(self._cluster, self.filter, handle, binding_timeout)

    def begin(self, pod: PodInfo) -> tuple[PodClaims, Status]:
        """The claims of a pod, and whether they can be looked for at all."""
        held = PodClaims()
        return held, prepare(pod, self._cluster, held)


def prepare(pod: PodInfo, cluster: DeviceCluster, held: PodClaims) -> Status:
    """Look up the claims of a pod. ``held`` stays empty unless all of them can be looked for."""
    try:
        claims = find_claims(pod, cluster.claims)
    except ClaimError as error:
        return Status.unresolvable(str(error))
    extended = _extended(pod, cluster)
    if not claims and extended is None:
        return SKIP
    found = PodClaims()
    found.take(claims, extended)
    for position in found.open:
        claim = found.claims[position]
        if cluster.is_promised(claim["metadata"].get("uid", "")):
            text = f"resource claim {key_of(claim)} is in the process of being allocated"
            return Status.unresolvable(text)
        if position != found.extended_at:
            status = _check_requests(claim, cluster)
            if not status.ok:
                return status
    held.take(claims, extended)
    return SUCCESS


def _extended(pod: PodInfo, cluster: DeviceCluster) -> ExtendedResources | None:
    if not backed_resources(pod.requests, cluster.classes):
        return None
    left_over = cluster.extended_claim_of(pod.uid, pod.name)
    return extended_resources(pod, cluster.classes, left_over)


def _check_requests(claim: ReadOnlyObject, cluster: DeviceCluster) -> Status:
    for demand in claim_spec(claim).demands:
        status = _check_demand(claim, demand, cluster)
        if not status.ok:
            return status
    return SUCCESS


def _check_demand(claim: ReadOnlyObject, demand: Demand, cluster: DeviceCluster) -> Status:
    if not demand.alternatives:
        text = f"resource claim {key_of(claim)}, request {demand.name}: unknown request type"
        return Status.unresolvable(text)
    for request in demand.alternatives:
        where = f"request {request.full_name}"
        if not request.class_name:
            return Status.error(f"{where}: unsupported request type")
        if request.class_name not in cluster.classes.by_name:
            text = f"{where}: device class {request.class_name} does not exist"
            return Status.unresolvable(text)
    return SUCCESS
