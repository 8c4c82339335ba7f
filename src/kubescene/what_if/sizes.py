"""What each container should ask for by what it used, and a snapshot in which it does.

The recommender of the vertical pod autoscaler is told what was measured, and starts from the
checkpoints of a snapshot where there are some; the object's own policies hold. Pods and templates
get its targets, limits in proportion. Pods that ask for more than before leave nodes that would be
too full.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kubescene.api.quantity import Quantity, QuantityError, parse
from kubescene.api.resource_requests import node_allocatable, pod_requests
from kubescene.autoscalers.vertical.amounts import CPU, MEMORY, proportional_limit, units_of
from kubescene.autoscalers.vertical.histograms import DecayingHistogram
from kubescene.autoscalers.vertical.histories import Aggregate
from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler, decode_vpa
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.autoscalers.vertical.recommender import Recommender
from kubescene.cluster import ClusterWorld
from kubescene.errors import ConfigurationError
from kubescene.snapshots.snapshot import Snapshot
from kubescene.types import JsonObject
from kubescene.what_if.placing import as_waiting
from kubescene.what_if.used import UsageSamples, Used, User
from kubescene.what_if.worlds import (
    TopmostOwner,
    TopmostOwners,
    is_live,
    key_of,
    node_of,
    pods_in,
)

RESOURCES = (CPU, MEMORY)
ZERO = parse("0")
VPA, CHECKPOINT = "VerticalPodAutoscaler", "VerticalPodAutoscalerCheckpoint"
TEMPLATED = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job")


class Sized(NamedTuple):
    """One container of a workload."""

    workload: TopmostOwner
    container: str
    pods: int
    before: Mapping[str, int]
    """What it asks for: thousandths of a core and bytes; 0 if it does not say."""
    target: Mapping[str, Quantity]
    limits: Mapping[str, Quantity]
    samples: Mapping[str, Sequence[Used]]

    def after(self, resource: str) -> int:
        found = self.target.get(resource)
        return self.before[resource] if found is None else units_of(resource, found)

    def saved(self, resource: str) -> int:
        """By all its pods; less than 0 if it is to ask for more."""
        return (self.before[resource] - self.after(resource)) * self.pods

    def above(self, resource: str) -> float | None:
        """The share of samples that are above what it is to ask for; None if there are none."""
        samples = self.samples.get(resource)
        if not samples:
            return None
        return sum(each.amount > self.after(resource) for each in samples) / len(samples)

    @property
    def peak(self) -> int:
        """The most memory that was seen."""
        return max((each.amount for each in self.samples.get(MEMORY, ())), default=0)

    @property
    def would_be_killed(self) -> bool:
        """Whether so much memory was used as its new limit forbids."""
        limit = self.limits.get(MEMORY)
        return limit is not None and self.peak > limit.value()


class Recommenders:
    """Who should ask for what, by all that is known of usage."""

    def __init__(
        self,
        snapshot: Snapshot,
        world: ClusterWorld,
        usage: UsageSamples | None,
        options: RecommenderOptions,
    ) -> None:
        self._options = options
        self._now = world.clock.now()
        self._owners = TopmostOwners(world)
        self._pods: defaultdict[TopmostOwner, list[JsonObject]] = defaultdict(list)
        for pod in pods_in(world):
            if is_live(pod):
                self._pods[self._owners.of(pod)].append(pod)
        self._vpas = [each for each in snapshot.objects if each.get("kind") == VPA]
        self._saved = [each for each in snapshot.objects if each.get("kind") == CHECKPOINT]
        self.left_out: Counter[str] = Counter()
        self._users = self._by_workload(usage)

    @property
    def workloads(self) -> int:
        return len(self._pods)

    def sized(self) -> Iterator[Sized]:
        """All containers of which something is known."""
        for workload in sorted(self._pods):
            users = self._users.get(workload, {})
            recommended = self._recommended(workload, users)
            pods = self._pods[workload]
            for container in pods[0]["spec"]["containers"]:
                name = container["name"]
                if name in recommended:
                    yield _sized(workload, container, len(pods), recommended[name], users)

    # -- whose usage it is -------------------------------------------------------------------------

    def _by_workload(
        self, usage: UsageSamples | None
    ) -> dict[TopmostOwner, dict[User, dict[str, list[Used]]]]:
        found: dict[TopmostOwner, dict[User, dict[str, list[Used]]]] = {}
        by_pod = {key_of(pod): owner for owner, pods in self._pods.items() for pod in pods}
        by_name: dict[tuple[str, str], TopmostOwner] = {}
        for owner in self._pods:
            by_name.setdefault((owner.namespace, owner.name), owner)
        for user, samples in (usage.samples if usage else {}).items():
            workload = by_pod.get(f"{user.namespace}/{user.pod}") or _guessed(user, by_name)
            if workload is None:
                self.left_out["containers of pods that no workload here would make"] += 1
                continue
            found.setdefault(workload, {})[user] = samples
        return found

    # -- what is recommended -----------------------------------------------------------------------

    def _recommended(
        self, workload: TopmostOwner, users: Mapping[User, Mapping[str, Sequence[Used]]]
    ) -> dict[str, Mapping[str, Quantity]]:
        """By container; nothing of a resource that nothing was measured of."""
        vpa = self._vpa_of(workload)
        own = vpa or decode_vpa(_nobody(workload))
        saved = self._checkpoints_of(workload.namespace, vpa)
        if not users and not saved:
            known = (vpa.recommendations if vpa else None) or ()
            return {each.container_name: each.target or {} for each in known}
        recommender = Recommender(own, self._options)
        try:
            recommender.load(saved, self._now)
        except ConfigurationError as error:
            self.left_out[f"checkpoints that cannot be read ({error})"] += 1
        now = self._now
        for user, samples in users.items():
            now = max([now, *(each[-1].time for each in samples.values())])
            _feed(recommender, user, samples)
        found = recommender.recommend(now).recommended
        histories = recommender.histories(now)
        return {
            each.container_name: {
                resource: amount
                for resource, amount in (each.target or {}).items()
                if not _of(histories[each.container_name], resource).is_empty
            }
            for each in found
        }

    def _vpa_of(self, workload: TopmostOwner) -> VerticalPodAutoscaler | None:
        for obj in self._vpas:
            ref = (obj.get("spec") or {}).get("targetRef") or {}
            of = obj["metadata"].get("namespace"), ref.get("kind"), ref.get("name")
            if of == (workload.namespace, workload.kind, workload.name):
                try:
                    return decode_vpa(obj)
                except ConfigurationError:
                    self.left_out["VerticalPodAutoscalers that cannot be read"] += 1
        return None

    def _checkpoints_of(
        self, namespace: str, vpa: VerticalPodAutoscaler | None
    ) -> dict[str, JsonObject]:
        found = {}
        for obj in self._saved if vpa is not None else ():
            spec = obj.get("spec") or {}
            of = obj["metadata"].get("namespace"), spec.get("vpaObjectName")
            if vpa is not None and of == (namespace, vpa.name):
                found[str(spec.get("containerName"))] = obj.get("status") or {}
        return found


def _of(history: Aggregate, resource: str) -> DecayingHistogram:
    return history.cpu if resource == CPU else history.memory


def _guessed(user: User, by_name: Mapping[tuple[str, str], TopmostOwner]) -> TopmostOwner | None:
    """The workload of a pod that is gone: as the source says, or by how pods are named."""
    kind, _, name = user.owner.partition("/")
    owner = by_name.get((user.namespace, name)) if name else None
    if owner is not None and owner.kind.lower() == kind:
        return owner
    parts = user.pod.split("-")
    for kinds, cut in ((("Deployment", "CronJob"), 2), (TEMPLATED, 1)):
        owner = by_name.get((user.namespace, "-".join(parts[:-cut])))
        if owner is not None and owner.kind in kinds and (cut == 2 or owner.kind != "Deployment"):
            return owner
    return None


def _nobody(workload: TopmostOwner) -> JsonObject:
    """The object that a workload would have that has none."""
    target = {"apiVersion": "apps/v1", "kind": workload.kind, "name": workload.name}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": VPA,
        "metadata": {"name": workload.name, "namespace": workload.namespace},
        "spec": {"targetRef": target},
    }


def _feed(recommender: Recommender, user: User, samples: Mapping[str, Sequence[Used]]) -> None:
    usage = recommender.usage
    first = min(each[0].time for each in samples.values())
    usage.set_pod(user.pod, labels={}, containers=[user.container], now=first)
    for each in samples.get(CPU, ()):
        usage.add_cpu(user.pod, user.container, each.amount, each.time)
    for each in samples.get(MEMORY, ()):
        usage.add_memory(user.pod, user.container, each.amount, each.time)


def _sized(
    workload: TopmostOwner,
    container: JsonObject,
    pods: int,
    target: Mapping[str, Quantity],
    users: Mapping[User, Mapping[str, Sequence[Used]]],
) -> Sized:
    samples: dict[str, list[Used]] = {}
    for user, of_user in users.items():
        if user.container == container["name"]:
            for resource, listed in of_user.items():
                samples.setdefault(resource, []).extend(listed)
    resources = container.get("resources") or {}
    requests = {each: _amount(resources, "requests", each) for each in RESOURCES}
    limits = {each: _amount(resources, "limits", each) for each in RESOURCES}
    scaled = {
        each: proportional_limit(each, limits[each], requests[each], target[each], ZERO).amount
        for each in RESOURCES
        if each in target and limits[each]
    }
    return Sized(
        workload,
        container["name"],
        pods,
        {each: units_of(each, requests[each] or limits[each]) for each in RESOURCES},
        {each: amount for each, amount in target.items() if each in RESOURCES},
        {each: amount for each, amount in scaled.items() if amount is not None},
        samples,
    )


def _amount(resources: JsonObject, side: str, resource: str) -> Quantity:
    try:
        return parse((resources.get(side) or {}).get(resource, 0))
    except QuantityError:
        return ZERO


# -- applied -------------------------------------------------------------------------------------


def with_sizes(
    snapshot: Snapshot, world: ClusterWorld, sizes: Iterable[Sized]
) -> tuple[Snapshot, int]:
    """The snapshot in which pods and templates ask for that, and how many pods are unplaced."""
    by_workload: defaultdict[TopmostOwner, dict[str, Sized]] = defaultdict(dict)
    for each in sizes:
        by_workload[each.workload][each.container] = each
    owners = TopmostOwners(world)
    objects = [_resized(obj, owners, by_workload) for obj in snapshot.objects]
    changed, unplaced = _placed_anew(snapshot.objects, objects)
    return replace(snapshot, objects=changed), unplaced


def _resized(
    obj: JsonObject,
    owners: TopmostOwners,
    by_workload: Mapping[TopmostOwner, Mapping[str, Sized]],
) -> JsonObject:
    kind = obj.get("kind")
    if kind == "Pod":
        sizes = by_workload.get(owners.of(obj)) if is_live(obj) else None
        return obj if not sizes else {**obj, "spec": _resized_spec(obj["spec"], sizes)}
    if kind not in TEMPLATED:
        return obj
    workload = owners.of(obj)
    if workload.kind == "Pod":  # nobody's: it is the topmost itself
        workload = TopmostOwner(workload.namespace, str(kind), workload.name)
    sizes, template = by_workload.get(workload), obj["spec"].get("template")
    if not sizes or not template:
        return obj
    if kind == "ReplicaSet" and not obj["spec"].get("replicas"):
        return obj  # an earlier revision
    resized = {**template, "spec": _resized_spec(template["spec"], sizes)}
    return {**obj, "spec": {**obj["spec"], "template": resized}}


def _resized_spec(spec: JsonObject, sizes: Mapping[str, Sized]) -> JsonObject:
    containers = [
        _resized_container(each, sizes[each["name"]]) if each.get("name") in sizes else each
        for each in spec.get("containers") or ()
    ]
    return {**spec, "containers": containers}


def _resized_container(container: JsonObject, sized: Sized) -> JsonObject:
    resources: dict[str, Any] = dict(container.get("resources") or {})
    for side, amounts in (("requests", sized.target), ("limits", sized.limits)):
        told = {name: str(amount) for name, amount in amounts.items()}
        if told:
            resources[side] = {**(resources.get(side) or {}), **told}
    return {**container, "resources": resources}


def _placed_anew(
    before: Sequence[JsonObject], after: Sequence[JsonObject]
) -> tuple[list[JsonObject], int]:
    """Who asks for more than before leaves a node on which there would not be enough."""
    left: dict[str, Counter[str]] = {}
    for obj in after:
        if obj.get("kind") == "Node":
            left[obj["metadata"]["name"]] = Counter(node_allocatable(obj))
    for obj in after:
        if obj.get("kind") == "Pod" and is_live(obj) and node_of(obj) in left:
            left[node_of(obj)].subtract(pod_requests(obj))
    found, unplaced = [], 0
    for old, new in zip(before, after, strict=True):
        room = left.get(node_of(new)) if new.get("kind") == "Pod" else None
        if room is not None and new is not old and min(room[CPU], room[MEMORY]) < 0:
            asked = pod_requests(new)
            if any(asked.get(each, 0) > pod_requests(old).get(each, 0) for each in RESOURCES):
                room.update(asked)
                found.append(as_waiting(new))
                unplaced += 1
                continue
        found.append(new)
    return found, unplaced
