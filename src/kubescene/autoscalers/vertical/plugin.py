"""The VPA behind the autoscaler interface: events and stats in, recommendations out.

Of a world that knows pods and their usage it makes what the autoscaler sees: pods of one container
with equal labels, one controller that should have the pods it has, and samples. A resource is
recommended once it was measured: nothing is said before the first stat, and nothing of memory where
the world does not model it.

Two rules say which pods get the new size. ``updater``, the default, is that of the real updater
and its update modes: too few replicas, too young or too near to the target, and a pod stays.
``seed`` leaves it to the world, which replaces every pod outside of the bounds, unless the update
mode is Off or Initial.

``faithful`` repeats what Skenario's plugin did where that differs: the latest stat of each pod is
one sample at every request for a recommendation, memory is 1 MiB, and the update mode is ignored.
"""

from collections.abc import Iterator
from typing import Literal

from kubescene.autoscalers.interfaces import (
    VPA_TYPES,
    Autoscaler,
    Capability,
    EventRequest,
    EventType,
    MetricType,
    Pod,
    PodState,
    RecommendedPodResources,
    Stat,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.partitioned import PartitionedPlugin
from kubescene.autoscalers.vertical.amounts import CPU, MEMORY, RESOURCES, as_quantity, units_of
from kubescene.autoscalers.vertical.evictions import ResizeAttempts
from kubescene.autoscalers.vertical.limits import amount_of
from kubescene.autoscalers.vertical.objects import (
    WILDCARD,
    ContainerRecommendation,
    ResourceList,
    VerticalPodAutoscaler,
    read_vpa,
)
from kubescene.autoscalers.vertical.options import RecommenderOptions, UpdaterOptions
from kubescene.autoscalers.vertical.recommendations import Recommendation
from kubescene.autoscalers.vertical.recommender import DEFAULT_OPTIONS, Recommender
from kubescene.autoscalers.vertical.updater import DEFAULT_OPTIONS as DEFAULT_UPDATER
from kubescene.autoscalers.vertical.updater import PodUpdate, update
from kubescene.clock import format_time
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject

CONTAINER = "container"
CONTROLLER = "target"
MEBIBYTE = 1024 * 1024

Rule = Literal["updater", "seed"]

_LABELS = {"key": "value"}
_OWNER = {"kind": "ReplicaSet", "name": CONTROLLER, "controller": True}
_MEASURED_BY = {MetricType.CPU_MILLIS: CPU, MetricType.MEMORY_BYTES: MEMORY}
_PATIENT_MODES = ("Off", "Initial")


class VerticalPartition:
    """What one run told, as recommender and updater would see it."""

    def __init__(
        self, recommender: Recommender, updater: UpdaterOptions, *, rule: Rule, faithful: bool
    ) -> None:
        self.recommender = recommender
        self._updater = updater
        self._rule = rule
        self._faithful = faithful
        self._pods: dict[str, JsonObject] = {}
        self._specs: dict[tuple[int, int], JsonObject] = {}
        self._measured: set[str] = set()
        self._latest: dict[str, int] = {}
        self._attempts = ResizeAttempts()
        self._active_since: dict[str, int] = {}
        self._killed: dict[str, list[JsonObject]] = {}

    def pod_event(self, request: EventRequest, pod: Pod) -> None:
        known = self._pods.get(pod.name)
        if request.type is EventType.CREATE:
            if known is not None:
                raise ConfigurationError(f"pod {pod.name!r} exists already")
            self._set_pod(pod, format_time(request.time), request.time)
        elif known is None:
            raise ConfigurationError(f"there is no pod {pod.name!r}")
        elif request.type is EventType.UPDATE:
            if pod.state == PodState.OOM_KILLED:
                self._note_kill(pod, request.time)
            self._set_pod(pod, known["status"]["startTime"], request.time)
        else:
            self._killed.pop(pod.name, None)
            self._active_since.pop(pod.name, None)
            del self._pods[pod.name]
            self._latest.pop(pod.name, None)
            self._attempts.first_seen.pop(pod.name, None)
            self.recommender.usage.delete_pod(pod.name)

    def stat(self, stat: Stat) -> None:
        """Take a measurement in; of pods that are gone, and of other kinds, nothing is wanted."""
        resource = _MEASURED_BY.get(stat.type)
        if resource is None or stat.pod_name not in self._pods:
            return
        if stat.value < 0:
            raise ConfigurationError(
                f"stat {MetricType(stat.type).name} of pod {stat.pod_name!r} is negative: "
                f"{stat.value}"
            )
        if self._faithful:
            if resource == CPU:
                self._latest[stat.pod_name] = stat.value
            return
        usage = self.recommender.usage
        add = usage.add_cpu if resource == CPU else usage.add_memory
        if add(stat.pod_name, CONTAINER, stat.value, stat.time):
            self._measured.add(resource)

    def recommend(self, now: int) -> VerticalRecommendationResponse:
        if self._faithful:
            self._sample(now)
        recommendation = self.recommender.recommend(now)
        self.recommender.collect_garbage(now, has_controller=True)
        container = self._measured_part(recommendation.container(CONTAINER))
        if container is None:
            nothing = "nothing was measured yet" if not self._measured else "nothing is controlled"
            return VerticalRecommendationResponse(evict=(), admit=False, reason=nothing)
        vpa = self.recommender.vpa.with_recommendation([container])
        done = self._update(vpa, now)
        return VerticalRecommendationResponse(
            rec=tuple(_answers(container)),
            evict=done.evicted if done else None,
            resize=done.resized if done else (),
            admit=self._faithful or vpa.update_mode != "Off",
            reason=_reason(container, recommendation, done),
            details=_details(recommendation, done),
        )

    def _note_kill(self, pod: Pod, now: int) -> None:
        """A kill raises the peak of its container; the updater looks for it in the status."""
        if self.recommender.usage.add_oom(pod.name, CONTAINER, pod.memory_request, now):
            self._measured.add(MEMORY)
        began = self._active_since.get(pod.name, now)
        ended = {
            "reason": "OOMKilled",
            "startedAt": format_time(began),
            "finishedAt": format_time(now),
        }
        self._killed[pod.name] = [{"name": CONTAINER, "lastState": {"terminated": ended}}]

    def _set_pod(self, pod: Pod, started: str, now: int) -> None:
        found = self._pods[pod.name] = _pod_object(pod, self._spec(pod), started)
        if pod.state == PodState.ACTIVE:
            self._active_since[pod.name] = pod.last_transition
        if pod.name in self._killed:
            found["status"]["containerStatuses"] = self._killed[pod.name]
        if pod.state != PodState.LAUNCHING:
            self.recommender.usage.set_pod(
                pod.name, labels=_LABELS, containers=(CONTAINER,), now=now
            )

    def _spec(self, pod: Pod) -> JsonObject:
        """One spec for all pods of a size, so that the updater looks at it once."""
        size = (pod.cpu_request, pod.memory_request)
        if size not in self._specs:
            self._specs[size] = _spec_of(size)
        return self._specs[size]

    def _sample(self, now: int) -> None:
        usage = self.recommender.usage
        for name, millicores in self._latest.items():
            usage.add_cpu(name, CONTAINER, millicores, now)
            usage.add_memory(name, CONTAINER, MEBIBYTE, now)
            self._measured.update(RESOURCES)

    def _measured_part(
        self, container: ContainerRecommendation | None
    ) -> ContainerRecommendation | None:
        """The recommendation without resources of which nothing is known."""
        if container is None:
            return None
        lists = (container.target, container.lower_bound, container.upper_bound)
        target, lower, upper = (self._only_measured(each) for each in lists)
        if not target:
            return None
        return ContainerRecommendation(container.container_name, target, lower, upper)

    def _only_measured(self, amounts: ResourceList | None) -> ResourceList:
        pairs = (amounts or ResourceList()).items()
        return ResourceList((name, amount) for name, amount in pairs if name in self._measured)

    def _update(self, vpa: VerticalPodAutoscaler, now: int) -> PodUpdate | None:
        """What the updater does; None leaves it to the world."""
        if self._rule == "seed":
            patient = vpa.update_mode in _PATIENT_MODES and not self._faithful
            return PodUpdate() if patient else None
        pods = list(self._pods.values())
        replicas = {CONTROLLER: len(pods)}
        return update(vpa, pods, replicas, now, self._updater, attempts=self._attempts)


def _spec_of(size: tuple[int, int]) -> JsonObject:
    """A request of 0 is none."""
    given = zip(RESOURCES, size, strict=True)
    requests = {name: str(as_quantity(name, units)) for name, units in given if units}
    return {"containers": [{"name": CONTAINER, "resources": {"requests": requests}}]}


def _pod_object(pod: Pod, spec: JsonObject, started: str) -> JsonObject:
    phase = "Pending" if pod.state == PodState.LAUNCHING else "Running"
    return {
        "metadata": {"name": pod.name, "labels": _LABELS, "ownerReferences": [_OWNER]},
        "spec": spec,
        "status": {"phase": phase, "startTime": started},
    }


def _answers(container: ContainerRecommendation) -> Iterator[RecommendedPodResources]:
    for resource, target in (container.target or ResourceList()).items():
        yield RecommendedPodResources(
            lower_bound=units_of(resource, amount_of(container.lower_bound, resource)),
            upper_bound=units_of(resource, amount_of(container.upper_bound, resource)),
            target=units_of(resource, target),
            resource_name=resource,
        )


WORDS = {"lowerBound": "lower bound", "upperBound": "upper bound"}


def _reason(
    container: ContainerRecommendation, recommendation: Recommendation, done: PodUpdate | None
) -> str:
    targets = [f"{name} {amount}" for name, amount in (container.target or {}).items()]
    said = "target " + ", ".join(targets)
    changed = [each for one in recommendation.containers for each in one.capped]
    by = sorted({each.by for each in changed if each.bound == "target"})
    if by:
        said += f", limited by {', '.join(by)}"
    else:
        bounds = {(WORDS[each.bound], each.by) for each in changed if each.bound in WORDS}
        said += "".join(f"; its {bound} limited by {by}" for bound, by in sorted(bounds))
    if done and done.evicted:
        said += f"; evicting {', '.join(done.evicted)}"
    if done and done.resized:
        said += f"; resizing {', '.join(done.resized)}"
    return said


def _details(recommendation: Recommendation, done: PodUpdate | None) -> JsonObject:
    details: JsonObject = {
        "containers": [each.to_dict() for each in recommendation.containers],
        "explanation": recommendation.explain(),
    }
    if done is not None:
        details["pods"] = done.reasons
    return details


DEFAULT_RECOMMENDER = "default"


class VerticalPlugin(PartitionedPlugin[VerticalPartition]):
    """Any number of runs, each in its partition."""

    types = VPA_TYPES
    capabilities = frozenset(
        {Capability.EVENT, Capability.STAT, Capability.VERTICAL_RECOMMENDATION}
    )

    def __init__(
        self,
        options: RecommenderOptions = DEFAULT_OPTIONS,
        updater: UpdaterOptions = DEFAULT_UPDATER,
        *,
        rule: Rule = "updater",
        faithful: bool = False,
        any_container: bool = True,
    ) -> None:
        """Without ``any_container``, a policy for a container that pods here do not have, which
        are all but `CONTAINER`, is refused instead of having no effect."""
        super().__init__()
        self._any_container = any_container
        self._options = options
        self._updater = updater
        self._rule: Rule = "seed" if faithful else rule
        self._faithful = faithful

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        return self._partition(request.partition).recommend(request.time_nanos)

    def recommender(self, partition: str) -> Recommender:
        """The recommender of a run, to look at its history."""
        return self._partition(partition).recommender

    def _created(self, autoscaler: Autoscaler) -> VerticalPartition:
        recommender = Recommender(self._read(autoscaler), self._options)
        return VerticalPartition(
            recommender, self._updater, rule=self._rule, faithful=self._faithful
        )

    def _changed(self, partition: VerticalPartition, autoscaler: Autoscaler) -> None:
        partition.recommender.vpa = self._read(autoscaler)

    def _read(self, autoscaler: Autoscaler) -> VerticalPodAutoscaler:
        vpa = read_vpa(autoscaler.yaml, in_place=self._updater.in_place)
        for each in vpa.spec.recommenders or ():
            if each.name != DEFAULT_RECOMMENDER:
                raise ConfigurationError(
                    f"spec.recommenders[0].name: there is no recommender {each.name!r} here, only "
                    f"{DEFAULT_RECOMMENDER!r}; leave the field out, or take an autoscaler plugin"
                )
        for number, policy in enumerate(vpa.policies):
            if not self._any_container and policy.container_name not in (WILDCARD, CONTAINER):
                raise ConfigurationError(
                    f"spec.resourcePolicy.containerPolicies[{number}].containerName: behind the "
                    f"interface a pod has one container: say {WILDCARD!r}, "
                    f"not {policy.container_name!r}"
                )
        return vpa
