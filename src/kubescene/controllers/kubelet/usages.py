"""What containers use, as their behaviour says: a source for whoever measures pods."""

from collections.abc import Iterable, Iterator

from kubescene.clock import Streams, parse_time
from kubescene.controllers.kubelet.behaviour import PodBehaviour
from kubescene.controllers.kubelet.runs import Draws, used_by_age
from kubescene.types import JsonObject
from kubescene.usage.measuring import RESOLUTION
from kubescene.usage.registry import ScrapedPod, ScrapedService


class BehaviourUsage:
    """The pods that run and of whose usage something is said, by namespace and name.

    A container is seen by the first scrape after its start. CPU is the mean since the scrape
    before, or since its start; memory is what it was at the scrape.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._pods: dict[str, dict[str, tuple[JsonObject, PodBehaviour]]] = {}

    def __bool__(self) -> bool:
        return bool(self._pods)

    def note(self, pod: JsonObject, behaviour: PodBehaviour) -> None:
        """A pod as it is from now on."""
        if not behaviour.uses:
            return
        metadata = pod["metadata"]
        self._pods.setdefault(metadata["namespace"], {})[metadata["name"]] = (pod, behaviour)

    def forget(self, namespace: str, name: str) -> None:
        here = self._pods.get(namespace)
        if here is not None and here.pop(name, None) is not None and not here:
            del self._pods[namespace]

    def scraped(self, namespace: str, now: int) -> Iterator[ScrapedPod]:
        for pod, behaviour in self._pods.get(namespace, {}).values():
            yield from self._of_pod(pod, behaviour, now - now % RESOLUTION)

    def scraped_services(self, namespace: str, now: int) -> Iterable[ScrapedService]:
        del namespace, now
        return ()

    def drained_at(self, uid: str, now: int, deadline: int) -> int | None:
        del uid, now, deadline
        return None

    def _of_pod(self, pod: JsonObject, behaviour: PodBehaviour, time: int) -> Iterator[ScrapedPod]:
        spec, status = pod["spec"], pod["status"]
        for field, told, init in (
            ("initContainers", "initContainerStatuses", True),
            ("containers", "containerStatuses", False),
        ):
            specs = {each["name"]: each for each in spec.get(field) or ()}
            for each in status.get(told) or ():
                used = self._used(pod, specs[each["name"]], each, behaviour, time, init=init)
                if used:
                    name = pod["metadata"]["name"]
                    yield ScrapedPod(name, each["name"], time, RESOLUTION, used, {})

    def _used(
        self,
        pod: JsonObject,
        spec: JsonObject,
        status: JsonObject,
        behaviour: PodBehaviour,
        time: int,
        *,
        init: bool,
    ) -> dict[str, int]:
        """What a container used by the last scrape, if it ran then."""
        usage = behaviour.of(spec["name"], init=init).usage
        running = status["state"].get("running")
        if usage is None or running is None:
            return {}
        age = time - parse_time(running["startedAt"])
        if age < 0:
            return {}
        draws = Draws(self._streams, pod, spec["name"], int(status.get("restartCount", 0)))
        found = {}
        if usage.cpu is not None:
            points = used_by_age(spec, usage.cpu, "cpu", draws)
            found["cpu"] = points.mean(max(age - RESOLUTION, 0), age)
        if usage.memory is not None:
            found["memory"] = used_by_age(spec, usage.memory, "memory", draws).at(age)
        return {name: value for name, value in found.items() if value is not None}
