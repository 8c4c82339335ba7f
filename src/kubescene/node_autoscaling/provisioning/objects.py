"""ProvisioningRequests of a world of objects."""

from collections.abc import Sequence

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.control.loops import ControllerContext
from kubescene.errors import ApiError
from kubescene.node_autoscaling.provisioning.kinds import PROVISIONING_REQUEST
from kubescene.types import JsonObject

POD_TEMPLATE = GroupVersionKind("", "v1", "PodTemplate")


class RequestObjects:
    """Read when they are looked at; their kind may be defined later than the autoscaler starts."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._client = context.client
        self._is_watching = False
        self.changed = False
        """Whether there is a request, or another spec, that no loop has seen."""
        self.wrote = False

    def begin_turn(self) -> None:
        """What was written before is no longer news."""
        self.wrote = False
        if not self._is_watching and PROVISIONING_REQUEST in self._context.scheme:
            self._is_watching = True
            self._client.watch(PROVISIONING_REQUEST, self._heard, quiet=True)

    def _heard(self, change: Change) -> None:
        if change.type is ChangeType.ADDED:
            self.changed = True
            self._context.wake()

    def requests(self) -> Sequence[JsonObject]:
        """The oldest first; the real autoscaler takes them as a map of Go gives them."""
        if not self._is_watching:
            return ()
        return sorted(self._client.list(PROVISIONING_REQUEST), key=_age)

    def request(self, namespace: str, name: str) -> JsonObject | None:
        return self._client.find(ObjectRef(PROVISIONING_REQUEST, name, namespace))

    def pod_template(self, namespace: str, name: str) -> JsonObject | None:
        return self._client.find(ObjectRef(POD_TEMPLATE, name, namespace))

    def write_status(self, request: JsonObject) -> bool:
        """Whether the server took it; what it refuses is tried again in the next loop."""
        try:
            self._client.update(request, subresource="status")
        except ApiError:
            return False
        self.wrote = True
        return True

    def delete(self, request: JsonObject) -> None:
        metadata = request["metadata"]
        try:
            self._client.delete(
                ObjectRef(PROVISIONING_REQUEST, metadata["name"], metadata["namespace"])
            )
        except ApiError:
            return
        self.wrote = True


def _age(request: JsonObject) -> tuple[str, str, str]:
    metadata = request["metadata"]
    return metadata["creationTimestamp"], metadata["namespace"], metadata["name"]
