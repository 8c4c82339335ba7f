"""Devices for the pods of one profile: what is needed once there is a pod that asks for some."""

from kubescene.scheduler.devices.cluster import DeviceCluster
from kubescene.scheduler.devices.filtering import ClaimFilter
from kubescene.scheduler.devices.pod_claims import PodClaims
from kubescene.scheduler.devices.preparing import prepare
from kubescene.scheduler.devices.reserving import ClaimBinder
from kubescene.scheduler.framework.interfaces import Handle
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.state.pods import PodInfo


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
