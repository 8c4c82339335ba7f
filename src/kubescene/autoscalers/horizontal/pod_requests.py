"""How much a pod asks for, as utilization counts it: not as the scheduler does.

Containers and sidecars add up. Every one of them has to ask for the resource, else utilization
has no meaning and the metric fails. A pod that has requests of its own is counted by those;
what they leave out comes from the containers, which then need not all have it.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kubescene.api.quantity import Quantity, milli_value
from kubescene.api.resource_requests import exact_requests, has_pod_level_requests
from kubescene.errors import KubesceneError
from kubescene.types import JsonObject


class RequestError(KubesceneError):
    """A pod has no request to compare its usage with. The text is the controller's."""


class ContainerRequests(Struct, frozen=True):
    """Thousandths by resource."""

    name: str
    requests: Mapping[str, int]


class PodRequests(Struct, frozen=True):
    """What one pod asks for; pods of one template may share it.

    ``containers`` are those that run beside each other, sidecars last; ``pod_level`` is there
    if the pod has requests of its own.
    """

    containers: tuple[ContainerRequests, ...]
    pod_level: Mapping[str, int] | None = None

    @classmethod
    def of(cls, spec: JsonObject) -> "PodRequests":
        """The requests of a pod's spec."""
        running = [*(spec.get("containers") or ()), *_sidecars(spec)]
        pod: JsonObject = {"spec": spec}
        pod_level = None
        if has_pod_level_requests(pod):
            total = exact_requests(pod)
            pod_level = {name: Quantity(nanos).milli_value() for name, nanos in total.items()}
        return cls(tuple(map(_container, running)), pod_level)

    @classmethod
    def single(cls, container: str, requests: Mapping[str, int]) -> "PodRequests":
        """A pod of one container."""
        return cls((ContainerRequests(container, requests),))

    def amount(self, resource: str, *, container: str, pod: str, pod_level: bool) -> int:
        """What is asked for, of one container or (``""``) all; `RequestError` if it is not.

        ``pod`` is the name for the text.
        """
        if self.pod_level is not None and pod_level and not container:
            if resource not in self.pod_level:
                raise RequestError(f"missing pod-level request for {resource} in Pod {pod}")
            return self.pod_level[resource]
        if not container:
            return sum(_amount(each, resource, pod) for each in self.containers)
        for each in self.containers:
            if each.name == container:
                return _amount(each, resource, pod)
        raise RequestError(f"container {container} not found in Pod {pod}")


def _amount(container: ContainerRequests, resource: str, pod: str) -> int:
    amount = container.requests.get(resource)
    if amount is None:
        raise RequestError(
            f"missing request for {resource} in container {container.name} of Pod {pod}"
        )
    return amount


def _sidecars(spec: JsonObject) -> Iterable[JsonObject]:
    return (
        each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
    )


def _container(container: JsonObject) -> ContainerRequests:
    requests = (container.get("resources") or {}).get("requests") or {}
    return ContainerRequests(
        container.get("name", ""), {name: milli_value(text) for name, text in requests.items()}
    )
