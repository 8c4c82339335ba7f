"""What a scenario uses and nobody here acts on: said by name, since it would be a wrong answer.

A table says who would act: a plugin of the pod's profile, or a controller. Whether it is there is
asked of the profiles and controllers that the run really has, so an entry is silent as soon as the
plugin or controller exists, and speaks up again where a scenario turns it off.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kubescene.controllers.kubelet.behaviour import WorkloadBehaviour, behaviour_of, in_vain
from kubescene.controllers.kubelet.images import faults_of_pulls
from kubescene.errors import ScenarioError
from kubescene.scenario.outside import OutsideKind
from kubescene.scenario.reading.alike import SharedBody
from kubescene.scenario.reading.arrival_plans import RUN_TIME, read_plan, with_amounts
from kubescene.scenario.reading.patch_text import decode_patch
from kubescene.scenario.spec import Operation, OperationKind, ScenarioSpec
from kubescene.scheduler import SchedulerOptions
from kubescene.types import JsonObject

Use: TypeAlias = tuple[str, str]
"""What an object uses in vain, and why that is."""
Uses: TypeAlias = tuple[Use, ...]

DEFAULT_SCHEDULER = "default-scheduler"
SCHEDULER = "kube-scheduler"

POD_FIELDS: Mapping[str, str] = {
    "affinity.nodeAffinity": "NodeAffinity",
    "affinity.podAffinity": "InterPodAffinity",
    "affinity.podAntiAffinity": "InterPodAffinity",
    "containers[].ports[].hostPort": "NodePorts",
    "nodeSelector": "NodeAffinity",
    "resourceClaims": "DynamicResources",
    "schedulingGates": "SchedulingGates",
    "schedulingGroup": "GangScheduling",
    "tolerations": "TaintToleration",
    "topologySpreadConstraints": "PodTopologySpread",
    "volumes[].ephemeral": "VolumeBinding",
    "volumes[].persistentVolumeClaim": "VolumeBinding",
    "workloadRef": "GangScheduling",
}
"""Fields of a pod's spec, and the scheduler plugin that makes them count."""
PLUGINS = frozenset(POD_FIELDS.values())

KINDS: Mapping[tuple[str, str], str] = {
    ("", "ReplicationController"): "replicationcontroller",
    ("", "ResourceQuota"): "resourcequota",
    ("apps", "DaemonSet"): "daemonset",
    ("apps", "Deployment"): "deployment",
    ("apps", "ReplicaSet"): "replicaset",
    ("apps", "StatefulSet"): "statefulset",
    ("autoscaling", "HorizontalPodAutoscaler"): "horizontalpodautoscaler",
    ("batch", "CronJob"): "cronjob",
    ("batch", "Job"): "job",
    ("kubescene.dev", "NodeGroup"): "node-provider",
    ("kubescene.dev", "NodeSet"): "nodeset",
    ("kubescene.dev", "Outage"): "outage",
    ("kubescene.dev", "Traffic"): "traffic",
    ("policy", "PodDisruptionBudget"): "disruption",
    ("resource.k8s.io", "ResourceClaimTemplate"): "resourceclaim",
}
"""Kinds that do nothing by themselves, and the controller that acts on them."""

INERT: Mapping[tuple[str, str], str] = {
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "it is not applied",
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): "nobody calls webhooks",
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): "it is not applied",
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): "nobody calls webhooks",
    ("networking.k8s.io", "NetworkPolicy"): "there is no network to keep apart",
}
"""Kinds that are stored and have no effect."""

ENDING: Mapping[tuple[str, str], str] = {
    ("batch", kind): "nobody says how long its containers run (`spec.simulation.workloads`)"
    for kind in ("CronJob", "Job")
}
"""Kinds whose pods are meant to end by themselves, and what they do instead."""

OUTAGE = ("kubescene.dev", "Outage")
STOLEN = "the outage CpuStolen"
UNSHARED = "only requests of a Traffic run slower on less CPU, and there is none"

AUTOSCALER = ("autoscaling", "HorizontalPodAutoscaler")
TRAFFIC = ("kubescene.dev", "Traffic")
MEASURED = (("kubescene.dev", "MetricSeries"), TRAFFIC)
"""What brings the metrics of autoscalers."""
UNMEASURED = "nobody measures anything: create a MetricSeries or a Traffic"
TIMELESS = "no time passes, and it looks every 15 seconds: add an `advanceOperation`"
REQUESTLESS = "no time passes, and no request comes: add an `advanceOperation`"

ARRIVALS = "the time of `arrivals`"
ARRIVED = "no time passes, so only those are there that come at once: add an `advanceOperation`"

TAINTS: Mapping[str, tuple[str, str]] = {
    "NoExecute": ("taint-eviction", "nobody evicts pods that run there already"),
}
"""Effects of taints, the controller that acts on them, and what is missing without it."""

DUTIES: Mapping[str, str] = {
    "cluster-autoscaler": "node groups keep their size",
    "endpoints": "Services have no Endpoints",
    "endpointslice": "Services have no EndpointSlices",
    "endpointslicemirroring": "Endpoints that users write have no EndpointSlices",
    "ephemeral-volume": "ephemeral volumes of pods have no claims",
    "event-expiry": "Events stay",
    "garbage-collector": "what belongs to an object that is gone stays",
    "kube-scheduler": "pods that say nothing of a node wait",
    "kubelet": "pods that have a node do not start, and nodes do not become ready",
    "metricseries": "nobody says what is wrong with a MetricSeries",
    "namespace": "namespaces that are deleted stay, with all that is in them",
    "node-heartbeats": "a node lifecycle controller outside takes all nodes for silent",
    "node-lifecycle": "conditions of nodes do not become taints, and silent nodes are not noticed",
    "persistentvolume-binder": "claims for volumes are not bound",
    "pod-garbage-collector": "pods of nodes that are gone stay",
    "storage-protection": "claims and volumes go while they are used",
    "taint-eviction": "pods stay on nodes with taints that they do not tolerate",
    "ttl-after-finished": "Jobs that have finished stay",
}
"""What nobody does without a controller that acts on more than objects of one kind (`KINDS`)."""

BUILT_IN = frozenset(
    {
        "",
        "apps",
        "autoscaling",
        "batch",
        "networking.k8s.io",
        "policy",
        "resource.k8s.io",
        "storage.k8s.io",
    }
)
"""Groups whose kinds, if they have a status, write it by itself only."""

POD_SPECS: Mapping[str, str] = {
    "Pod": "spec",
    "CronJob": "spec.jobTemplate.spec.template.spec",
    "PodTemplate": "template.spec",
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        "spec.template.spec",
    ),
}
"""Where kinds hold the spec of a pod."""


@dataclass(slots=True)
class Unsimulated:
    """One thing that has no effect, where it is used first and how often."""

    what: str
    why: str
    operation: Operation
    times: int = 0

    def __str__(self) -> str:
        more = f" and {self.times - 1} more" if self.times > 1 else ""
        return f"{self.what} has no effect: {self.why} (operation {self.operation.id!r}{more})"

    @property
    def error(self) -> ScenarioError:
        """The same as a fault, which says by itself where it is."""
        place = self.operation
        told = f"{self.what} has no effect: {self.why}"
        return ScenarioError(told, where=place.where, path=place.path)


@dataclass(frozen=True, slots=True)
class Players:
    """Who plays: the controllers that run, and the plugins of each scheduler's profile.

    What programs outside act on is not known: ``schedulers`` are the scheduler names of some of
    them, and if there is a ``bag`` of controllers, any kind may have found its own.
    """

    controllers: Collection[str]
    plugins: Mapping[str, Collection[str]] = field(default_factory=dict)
    schedulers: Collection[str] = ()
    bag: bool = False
    workloads: Sequence[WorkloadBehaviour] = ()
    measured: bool = True
    """Whether anything is measured that autoscalers can look at."""
    timed: bool = True
    """Whether time passes."""
    serving: bool = False
    """Whether there are requests."""

    @classmethod
    def of(
        cls, spec: ScenarioSpec, registered: Iterable[str], options: SchedulerOptions
    ) -> "Players":
        before = spec.presimulation_controllers(list(registered))
        names = (*before, *spec.simulation_controllers)
        outside = [each for each in spec.outside if each.name in names]
        ours = () if SCHEDULER in {each.name for each in outside} else options.profiles
        return cls(
            names,
            {each.scheduler_name: frozenset(each.plugin_names()) for each in ours},
            [
                name
                for each in outside
                if each.kind is OutsideKind.SCHEDULER
                for name in each.scheduler_names
            ],
            any(each.kind is OutsideKind.BAG for each in outside),
            spec.simulation.workloads,
            any(_makes(each, kind) for each in spec.operations for kind in MEASURED)
            or any(each.behaviour.uses for each in spec.simulation.workloads),
            any(each.kind is OperationKind.ADVANCE for each in spec.operations),
            any(_makes(each, TRAFFIC) for each in spec.operations),
        )

    def has(self, controller: str) -> bool:
        """Whether a controller plays, or may be one of those in a bag."""
        return self.bag or controller in self.controllers


def unsimulated(spec: ScenarioSpec, players: Players) -> list[Unsimulated]:
    """Everything that the scenario's objects and patches use in vain, each once, in order."""
    found: dict[str, Unsimulated] = {}
    known: dict[SharedBody, Uses] = {}
    for operation in spec.operations:
        for what, why in (*_uses(operation, players, known), *_unwritten(operation)):
            use = found.setdefault(what, Unsimulated(what, why, operation))
            use.times += 1
    return list(found.values())


def _uses(operation: Operation, players: Players, known: dict[SharedBody, Uses]) -> Uses:
    """What an operation uses in vain. Of alike objects the first is looked at."""
    shared = operation.shared_body
    if shared is None:
        timeless = [(ARRIVALS, ARRIVED)] if operation.arrives and not players.timed else []
        used = (use for obj in _objects(operation) for use in _of_object(obj, players))
        return (*used, *timeless)
    uses = known.get(shared)
    if uses is None:
        uses = known[shared] = tuple(_of_object(shared.body, players))
    return uses


def _objects(operation: Operation) -> Sequence[JsonObject]:
    """What an operation writes; of a patch, the parts that it gives."""
    body = operation.body
    if operation.arrives:
        said = dict.fromkeys(read_plan(body).said & {RUN_TIME}, "0s")
        return (with_amounts(body["object"], said),)
    if operation.kind is OperationKind.CREATE:
        return operation.objects or (body["object"],)
    patch = decode_patch(body["patch"]) if operation.kind is OperationKind.PATCH else None
    return ({**patch, **body["typeMeta"]},) if isinstance(patch, dict) else ()


def _unwritten(operation: Operation) -> Iterator[Use]:
    """What a patch says of a part that its request leaves as it is, without a word of the API."""
    if operation.kind is not OperationKind.PATCH:
        return
    body, kind = operation.body, operation.body["typeMeta"]["kind"]
    if str(body["typeMeta"]["apiVersion"]).rpartition("/")[0] not in BUILT_IN:
        return
    parts = _parts(decode_patch(body["patch"]))
    if "status" in parts and not operation.subresource:
        yield f"the status of a {kind} in a patch", "say `subresource: status` to write it"
    if "spec" in parts and operation.subresource == "status":
        yield f"the spec of a {kind} in a patch of its status", "leave `subresource` away"


def _parts(patch: Any) -> Collection[str]:
    """The members of an object that a patch changes."""
    if isinstance(patch, dict):
        return patch
    paths = [str(each.get("path")) for each in patch if isinstance(each, dict)]
    return {part for path in paths for part in path.split("/")[1:2]}


def undone(missing: Iterable[str]) -> list[str]:
    """What nobody does in a world without these controllers; of kinds it is said where used."""
    return [f"{name} was left out: {DUTIES[name]}" for name in missing if name in DUTIES]


def without_effect(group: str, kind: str, controllers: Iterable[str]) -> str:
    """Why objects of a kind do nothing in a world with these controllers; empty if they do."""
    controller = KINDS.get((group, kind))
    if controller is not None and controller not in frozenset(controllers):
        return f"{kind} has no effect: the controller {controller} does not run"
    inert = INERT.get((group, kind))
    return "" if inert is None else f"{kind} has no effect: {inert}"


def _of_object(obj: JsonObject, players: Players) -> Iterator[Use]:
    kind = obj["kind"]
    group = str(obj["apiVersion"]).rpartition("/")[0]
    controller = KINDS.get((group, kind))
    if controller is not None and not players.has(controller):
        yield kind, f"the controller {controller} does not run"
        return
    if (group, kind) in INERT:
        yield kind, INERT[group, kind]
    is_theft = (group, kind) == OUTAGE and "CpuStolen" in _at(obj, "spec.what")
    if is_theft and not players.serving:
        yield STOLEN, UNSHARED
    if (group, kind) == AUTOSCALER and not players.bag:
        yield from _of_autoscaler(players)
    if (group, kind) == TRAFFIC and not players.timed:
        yield kind, REQUESTLESS
    if kind in POD_SPECS:
        yield from _of_behaviour(obj, (group, kind), players)
    if (group, kind) == ("", "Node"):
        yield from _of_node(obj, players)
    if (spec := _pod_spec(obj)) is not None:
        yield from _of_pod(spec, players)


def _of_behaviour(obj: JsonObject, group_kind: tuple[str, str], players: Players) -> Iterator[Use]:
    """What annotations of pods say in vain, and pods that should end and never will."""
    path = POD_SPECS[obj["kind"]].removesuffix("spec") + "metadata"
    namespace = str((obj.get("metadata") or {}).get("namespace") or "default")
    found = [each for each in _at(obj, path) if isinstance(each, dict)]
    behaviour = None
    try:
        behaviour = behaviour_of(players.workloads, found[0] if found else {}, namespace)
    except ValueError as error:
        what, _, why = str(error).partition(": ")
        yield f"{what} of a {group_kind[1]}", why
    pod = _pod_spec(obj)
    if behaviour is not None and pod is not None:
        yield from in_vain(behaviour, pod)
    if group_kind in ENDING and not (behaviour and behaviour.ends):
        yield f"completion of a {group_kind[1]}", ENDING[group_kind]


def _of_autoscaler(players: Players) -> Iterator[Use]:
    if not players.timed:
        yield AUTOSCALER[1], TIMELESS
    elif not players.measured:
        yield f"metrics of a {AUTOSCALER[1]}", UNMEASURED


def _makes(operation: Operation, group_kind: tuple[str, str]) -> bool:
    """Whether an operation creates objects of a kind."""
    if operation.kind is not OperationKind.CREATE:
        return False
    body = operation.shared_body.body if operation.shared_body is not None else None
    objects = [body] if body is not None else _objects(operation)
    return any(
        (str(obj["apiVersion"]).rpartition("/")[0], obj["kind"]) == group_kind for obj in objects
    )


def _of_node(node: JsonObject, players: Players) -> Iterator[Use]:
    for annotation, why in faults_of_pulls(node):
        yield f"annotation {annotation} of a Node", why
    effects = _at(node, "spec.taints[].effect")
    for effect, (controller, why) in TAINTS.items():
        if effect in effects and not players.has(controller):
            yield f"the taint effect {effect}", why


def _of_pod(spec: JsonObject, players: Players) -> Iterator[Use]:
    scheduler = spec.get("schedulerName") or DEFAULT_SCHEDULER
    if spec.get("nodeName"):
        return
    plugins = players.plugins.get(str(scheduler))
    if scheduler in players.schedulers:
        return
    if plugins is None:
        names = ", ".join((*players.plugins, *players.schedulers))
        yield (
            f"pod field schedulerName: {scheduler}",
            f"no profile has that name, so such pods wait; there is: {names}",
        )
        return
    if not PLUGINS.issubset(plugins):
        for path, plugin in POD_FIELDS.items():
            if plugin not in plugins and any(_at(spec, path)):
                yield f"pod field {path.replace('[]', '')}", f"the plugin {plugin} is not there"


def _pod_spec(obj: JsonObject) -> JsonObject | None:
    """The spec of a pod, or of the pods that an object makes."""
    path = POD_SPECS.get(obj["kind"])
    specs = [spec for spec in _at(obj, path) if isinstance(spec, dict)] if path else []
    return specs[0] if specs else None


def _at(obj: Any, path: str) -> list[Any]:
    """All values at a path; ``[]`` goes through a list."""
    values = [obj]
    for name, through_list in _steps(path):
        values = [each[name] for each in values if isinstance(each, dict) and name in each]
        if not values:
            break
        if through_list:
            values = [item for each in values if isinstance(each, list) for item in each]
    return values


def _steps(path: str) -> list[tuple[str, bool]]:
    """The members that a path names, and whether it goes through a list there."""
    return [(step.removesuffix("[]"), step.endswith("[]")) for step in path.split(".")]
