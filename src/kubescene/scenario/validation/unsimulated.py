"""What a scenario uses and nobody here acts on: said by name, since it would be a wrong answer.

A table says who would act: a plugin of the pod's profile, or a controller. Whether it is there is
asked of the profiles and controllers that the run really has, so an entry is silent as soon as the
plugin or controller exists, and speaks up again where a scenario turns it off.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from kubescene.api.schemas.definition_parts import NOT_CONVERTED
from kubescene.controllers.kubelet.behaviour import WorkloadBehaviour, behaviour_of, in_vain
from kubescene.controllers.kubelet.images import faults_of_pulls
from kubescene.durations import format_duration, parse_duration
from kubescene.errors import ScenarioError
from kubescene.node_autoscaling.flags import AutoscalerSettings
from kubescene.node_autoscaling.provisioning.kinds import CLASSES
from kubescene.scenario.outside import OutsideKind
from kubescene.scenario.reading.alike import SharedBody
from kubescene.scenario.reading.arrival_plans import RUN_TIME, read_plan, with_amounts
from kubescene.scenario.reading.patch_text import decode_patch
from kubescene.scenario.spec import Operation, OperationKind, ScenarioSpec
from kubescene.scenario.validation.scaling import SCALING, VAIN, Created, CreatedObjects
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.framework.profile import ExtensionPoint, Profile
from kubescene.scheduler.plugins.default_profile import default_profile
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.autoscalers.available import PluginSource

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
    ("autoscaling.internal.knative.dev", "PodAutoscaler"): "knative-autoscaler",
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): "vpa-recommender",
    ("batch", "CronJob"): "cronjob",
    ("keda.sh", "ScaledObject"): "keda-operator",
    ("batch", "Job"): "job",
    ("kubescene.dev", "NodeGroup"): "node-provider",
    ("kubescene.dev", "NodeSet"): "nodeset",
    ("kubescene.dev", "Outage"): "outage",
    ("kubescene.dev", "PluginAutoscaler"): "pluginautoscaler",
    ("kubescene.dev", "Traffic"): "traffic",
    ("policy", "PodDisruptionBudget"): "disruption",
    ("resource.k8s.io", "ResourceClaimTemplate"): "resourceclaim",
}
"""Kinds that do nothing by themselves, and the controller that acts on them."""

ADMISSION = "admissionregistration.k8s.io"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
UNCALLED = "nobody calls webhooks on virtual time: only `kubescene serve` does"
INERT: Mapping[tuple[str, str], str] = {
    **{(ADMISSION, kind): UNCALLED for kind in WEBHOOKS},
    ("networking.k8s.io", "NetworkPolicy"): "there is no network to keep apart",
}
"""Kinds that are stored and have no effect."""

ENDING: Mapping[tuple[str, str], str] = {
    ("batch", kind): "nobody says how long its containers run (`spec.simulation.workloads`)"
    for kind in ("CronJob", "Job")
}
"""Kinds whose pods are meant to end by themselves, and what they do instead."""

CONVERSION = "conversion by a webhook"
OUTAGE = ("kubescene.dev", "Outage")
STOLEN, GAP = "the outage CpuStolen", "the outage MetricsGap"
UNSHARED = "only requests of a Traffic run slower on less CPU, and there is none"

PLUGIN_AUTOSCALER = ("kubescene.dev", "PluginAutoscaler")
POD_AUTOSCALER = ("autoscaling.internal.knative.dev", "PodAutoscaler")
KPA_CLASS = "kpa.autoscaling.knative.dev"
OTHER_CLASS = "only the class kpa.autoscaling.knative.dev is simulated"
AUTOSCALERS: Mapping[tuple[str, str], str] = {
    ("autoscaling", "HorizontalPodAutoscaler"): "15 seconds",
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): "minute",
    POD_AUTOSCALER: "2 seconds",
    ("keda.sh", "ScaledObject"): "30 seconds",
    PLUGIN_AUTOSCALER: "15 seconds",
}
"""Who looks at what is measured, and how often."""
TRAFFIC = ("kubescene.dev", "Traffic")
MEASURED = (("kubescene.dev", "MetricSeries"), TRAFFIC)
"""What brings the metrics of autoscalers."""
UNMEASURED = "nobody measures anything: create a MetricSeries or a Traffic"
TIMELESS = "no time passes, and it looks every {}: add an `advanceOperation`"
REQUESTLESS = "no time passes, and no request comes: add an `advanceOperation`"

NODE_GROUP = ("kubescene.dev", "NodeGroup")
JUDGES = "the profile of the scheduler"
UNJUDGED = (
    "the cluster autoscaler judges nodes by kube-scheduler's default plugins, as the real one does "
    "without a configuration of its own: say `schedulerProfile: {}` in "
    "`spec.simulation.clusterAutoscaler` to let it go by that one"
)
GROWTH, BOOTS = "max of a NodeGroup", "boot of a NodeGroup"
UNSCALED = "nobody autoscales nodes: add `spec.simulation.clusterAutoscaler: {}`"
UNLOOPED = (
    "no time passes, and the cluster autoscaler looks every {}: add an `advanceOperation`, or "
    "`mode: Immediate` to `spec.simulation.clusterAutoscaler`"
)
UNBOOTED = "no time passes, so machines that take time do not come: add an `advanceOperation`"

PROVISIONING_REQUEST = ("autoscaling.x-k8s.io", "ProvisioningRequest")
UNANSWERED = (
    "nobody answers it: add `enable-provisioning-requests: true` to "
    "`spec.simulation.clusterAutoscaler`"
)
UNCLASSED = "the cluster autoscaler answers requests of the classes {} alone"

NODE_POOL = ("karpenter.sh", "NodePool")
UNORDERED = "nobody orders machines for it: add `spec.simulation.karpenter: {}`"
UNBATCHED = "no time passes, and Karpenter waits for more pods: add an `advanceOperation`"
STATIC = "static capacity is not simulated, and such a pool orders nothing: leave `replicas` out"
UNCATALOGUED = "nothing is offered: create an InstanceCatalogue"
CATALOGUE = ("kubescene.dev", "InstanceCatalogue")
REPLACING = "replacing nodes of a NodePool by cheaper ones"
SPOTLESS = (
    "no InstanceCatalogue offers spot, and Karpenter asks for a replacement as spot if the pool "
    "allows it: require `karpenter.sh/capacity-type In [on-demand]`"
)

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
    "karpenter": "nobody orders machines for NodePools, or gives them up",
    "kube-scheduler": "pods that say nothing of a node wait",
    "kubelet": "pods that have a node do not start, and nodes do not become ready",
    "kubernetes-service": "nobody makes the Service default/kubernetes",
    "metricseries": "nobody says what is wrong with a MetricSeries",
    "namespace": "namespaces that are deleted stay, with all that is in them",
    "node-heartbeats": "a node lifecycle controller outside takes all nodes for silent",
    "node-lifecycle": "conditions of nodes do not become taints, and silent nodes are not noticed",
    "persistentvolume-binder": "claims for volumes are not bound",
    "pod-garbage-collector": "pods of nodes that are gone stay",
    "root-ca-certificate-publisher": "namespaces have no kube-root-ca.crt",
    "storage-protection": "claims and volumes go while they are used",
    "taint-eviction": "pods stay on nodes with taints that they do not tolerate",
    "ttl-after-finished": "Jobs that have finished stay",
    "vpa-updater": "pods keep their size, whatever their VerticalPodAutoscaler recommends",
}
"""What nobody does without a controller that acts on more than objects of one kind (`KINDS`)."""

_FILTERING = (ExtensionPoint.PRE_FILTER, ExtensionPoint.FILTER)
_JUDGING = (
    ("NodeAffinity", "addedAffinity"),
    ("NodeResourcesFit", "ignoredResources"),
    ("NodeResourcesFit", "ignoredResourceGroups"),
    ("PodTopologySpread", "defaultConstraints"),
)
"""Arguments with which a plugin takes other nodes for fit than without."""

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
    effect: str = VAIN

    def __str__(self) -> str:
        more = f" and {self.times - 1} more" if self.times > 1 else ""
        return f"{self.what} {self.effect}: {self.why} (operation {self.operation.id!r}{more})"

    @property
    def error(self) -> ScenarioError:
        """The same as a fault, which says by itself where it is."""
        place = self.operation
        told = f"{self.what} {self.effect}: {self.why}"
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
    autoscaler: AutoscalerSettings | None = None
    """That of nodes."""
    karpenter: bool = False
    """Whether Karpenter acts on NodePools."""
    offered: bool = False
    """Whether there is a catalogue of instance types."""
    spot: bool = False
    """Whether spot machines are offered, or may be."""
    scales: bool = True
    """Whether anything is created that scales, or goes by load."""
    autoscalers: "Sequence[PluginSource]" = ()
    """Those of whoever started the program, which PluginAutoscalers may choose."""
    judges: str = ""
    """The first profile that filters nodes in another way than the default one."""

    @classmethod
    def of(
        cls,
        spec: ScenarioSpec,
        registered: Iterable[str],
        options: SchedulerOptions,
        autoscalers: "Sequence[PluginSource]" = (),
    ) -> "Players":
        before = spec.presimulation_controllers(list(registered))
        names = (*before, *spec.simulation_controllers)
        outside = [each for each in spec.outside if each.name in names]
        ours = () if SCHEDULER in {each.name for each in outside} else options.profiles
        objects = _made(spec.operations)
        made = {(str(it["apiVersion"]).rpartition("/")[0], it["kind"]) for it in objects}
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
            not made.isdisjoint(MEASURED)
            or any(each.behaviour.uses for each in spec.simulation.workloads),
            any(each.kind is OperationKind.ADVANCE for each in spec.operations),
            TRAFFIC in made,
            spec.simulation.autoscaler,
            spec.simulation.karpenter is not None,
            CATALOGUE in made,
            _offers_spot(spec.operations, objects),
            not SCALING.isdisjoint(made),
            autoscalers,
            next((each.scheduler_name for each in ours if _filters_otherwise(each)), ""),
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
    return [*found.values(), *_of_scaling(spec, players)]


def _of_scaling(spec: ScenarioSpec, players: Players) -> Iterator[Unsimulated]:
    """What autoscalers, and those that they go by, do to each other in vain."""
    if players.bag or not players.timed or not players.scales:
        return
    creating = [each for each in spec.operations if each.kind is OperationKind.CREATE]
    made = [
        (operation, Created(obj, _passing(spec, operation), _is_counted(operation, obj)))
        for operation in creating
        for obj in _objects(operation)
    ]
    is_whole = not spec.simulation.snapshot
    for each in CreatedObjects((created for _, created in made), is_whole=is_whole).remarks():
        yield Unsimulated(each.what, each.why, made[each.number][0], 1, each.effect)


def _is_counted(operation: Operation, obj: JsonObject) -> bool:
    return operation.arrives or "$(" in str(_at(obj, "metadata.name"))


def _passing(spec: ScenarioSpec, operation: Operation) -> int:
    """How much time passes from the step of an operation on."""
    return sum(
        parse_duration(each.body["duration"])
        for each in spec.operations
        if each.kind is OperationKind.ADVANCE and each.step >= operation.step
    )


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


def without_effect(
    group: str, kind: str, controllers: Iterable[str], *, calls_webhooks: bool = False
) -> str:
    """Why objects of a kind do nothing in a world with these controllers; empty if they do."""
    if calls_webhooks and kind in WEBHOOKS and group == ADMISSION:
        return ""
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
    yield from _of_inert((group, kind), obj)
    if (group, kind) == OUTAGE:
        yield from _of_outage(obj, players)
    if (group, kind) in AUTOSCALERS and not players.bag:
        yield from _of_autoscaler((group, kind), players)
    if (group, kind) in (PLUGIN_AUTOSCALER, POD_AUTOSCALER):
        yield from _of_choice((group, kind), obj, players)
    if (group, kind) == NODE_GROUP:
        yield from _of_node_group(obj, players)
    if (group, kind) == PROVISIONING_REQUEST and not players.bag:
        yield from _of_provisioning_request(obj, players)
    if (group, kind) == NODE_POOL and not players.bag:
        yield from _of_node_pool(obj, players)
    if (group, kind) == TRAFFIC and not players.timed:
        yield kind, REQUESTLESS
    if kind in POD_SPECS:
        yield from _of_behaviour(obj, (group, kind), players)
    if (group, kind) == ("", "Node"):
        yield from _of_node(obj, players)
    if (spec := _pod_spec(obj)) is not None:
        yield from _of_pod(spec, players)


def _of_outage(obj: JsonObject, players: Players) -> Iterator[Use]:
    what = _at(obj, "spec.what")
    if "CpuStolen" in what and not players.serving:
        yield STOLEN, UNSHARED
    if "MetricsGap" in what and not players.measured:
        yield GAP, UNMEASURED


def _of_inert(group_kind: tuple[str, str], obj: JsonObject) -> Iterator[Use]:
    """Kinds that do nothing, and a conversion that nobody makes."""
    kind = group_kind[1]
    if group_kind in INERT:
        yield kind, INERT[group_kind]
    is_hook = _at(obj, "spec.conversion.strategy") == ["Webhook"]
    if kind == "CustomResourceDefinition" and is_hook and len(_at(obj, "spec.versions[]")) > 1:
        yield CONVERSION, NOT_CONVERTED


def _of_behaviour(obj: JsonObject, group_kind: tuple[str, str], players: Players) -> Iterator[Use]:
    """What annotations of pods say in vain, and pods that should end and never will."""
    path = POD_SPECS[obj["kind"]].removesuffix("spec") + "metadata"
    given = [each for each in _at(obj, "metadata.namespace") if each]
    namespace = str(given[0]) if given else "default"
    said = {name: _texts(obj, f"{path}.{name}") for name in ("labels", "annotations")}
    behaviour = None
    try:
        behaviour = behaviour_of(players.workloads, said, namespace)
    except ValueError as error:
        what, _, why = str(error).partition(": ")
        yield f"{what} of a {group_kind[1]}", why
    pod = _pod_spec(obj)
    if behaviour is not None and pod is not None:
        yield from in_vain(behaviour, pod)
    if group_kind in ENDING and not (behaviour and behaviour.ends):
        yield f"completion of a {group_kind[1]}", ENDING[group_kind]


def _of_choice(group_kind: tuple[str, str], obj: JsonObject, players: Players) -> Iterator[Use]:
    """An autoscaler that an object wants to have, and that is not there."""
    if group_kind == PLUGIN_AUTOSCALER:
        yield from _of_plugin(obj, players)
        return
    annotations = _texts(obj, "metadata.annotations")
    given = annotations.get("autoscaling.knative.dev/class", KPA_CLASS)
    if given != KPA_CLASS:
        yield f"PodAutoscaler of class {given}", OTHER_CLASS


def _of_plugin(obj: JsonObject, players: Players) -> Iterator[Use]:
    """An autoscaler that nobody brought along."""
    # Who has no such object should not load autoscalers.
    from kubescene.autoscalers.available import type_of, types_in_cluster

    objects = [each for each in _at(obj, "spec.object") if isinstance(each, dict)]
    given = [str(each) for each in _at(obj, "spec.type") if each]
    for each in given or filter(None, map(type_of, objects)):
        if each not in (known := types_in_cluster(players.autoscalers)):
            there = f"available are: {', '.join(known)}"
            yield f"PluginAutoscaler of type {each}", f"no autoscaler takes that type; {there}"


def _of_autoscaler(group_kind: tuple[str, str], players: Players) -> Iterator[Use]:
    if not players.timed:
        yield group_kind[1], TIMELESS.format(AUTOSCALERS[group_kind])
    elif not players.measured and group_kind not in (POD_AUTOSCALER, PLUGIN_AUTOSCALER):
        yield f"metrics of a {group_kind[1]}", UNMEASURED


def _of_node_group(group: JsonObject, players: Players) -> Iterator[Use]:
    settings = players.autoscaler
    is_immediate = settings is not None and settings.immediate
    if _at(group, "spec.max") and not players.bag:
        if settings is None:
            yield GROWTH, UNSCALED
        elif not players.timed and not is_immediate:
            yield GROWTH, UNLOOPED.format(format_duration(settings.flags.scan_interval))
        elif players.judges and not settings.profile:
            yield f"{JUDGES} {players.judges}", UNJUDGED.format(players.judges)
    if any(_at(group, "spec.boot")) and not players.timed and not is_immediate:
        yield BOOTS, UNBOOTED


def _filters_otherwise(profile: Profile) -> bool:
    """Whether nodes that it takes for unfit, or for fit, are not those of the default one."""
    usual = default_profile()
    return any(profile.at(at) != usual.at(at) for at in _FILTERING) or any(
        profile.arguments.get(plugin, {}).get(argument) for plugin, argument in _JUDGING
    )


def _of_provisioning_request(request: JsonObject, players: Players) -> Iterator[Use]:
    settings = players.autoscaler
    kind, named = PROVISIONING_REQUEST[1], _at(request, "spec.provisioningClassName")
    if settings is None or not settings.flags.enable_provisioning_requests:
        yield kind, UNANSWERED
    elif not players.timed and not settings.immediate:
        yield kind, UNLOOPED.format(format_duration(settings.flags.scan_interval))
    elif any(each not in CLASSES for each in named):
        yield f"{kind} of class {named[0]}", UNCLASSED.format(", ".join(CLASSES))


def _of_node_pool(pool: JsonObject, players: Players) -> Iterator[Use]:
    if not players.has("karpenter"):
        yield NODE_POOL[1], "the controller karpenter does not run"
    elif not players.karpenter:
        yield NODE_POOL[1], UNORDERED
    elif not players.timed:
        yield NODE_POOL[1], UNBATCHED
    elif not players.offered:
        yield NODE_POOL[1], UNCATALOGUED
    elif any(each is not None for each in _at(pool, "spec.replicas")):
        yield f"a {NODE_POOL[1]} with replicas", STATIC
    elif not players.spot and _replaces(pool):
        yield REPLACING, SPOTLESS


def _replaces(pool: JsonObject) -> bool:
    """Whether it is consolidated onto cheaper nodes that might be spot or on demand."""
    is_off = "WhenEmpty" in _at(pool, "spec.disruption.consolidationPolicy")
    is_off = is_off or "Never" in _at(pool, "spec.disruption.consolidateAfter")
    is_whole = bool(_at(pool, "spec.template.spec"))
    return is_whole and not is_off and all(_allows(pool, each) for each in ("spot", "on-demand"))


def _allows(pool: JsonObject, capacity_type: str) -> bool:
    label = "karpenter.sh/capacity-type"
    given = _texts(pool, "spec.template.metadata.labels").get(label, capacity_type)
    required = (
        each
        for each in _at(pool, "spec.template.spec.requirements[]")
        if isinstance(each, dict) and each.get("key") == label
    )
    return given == capacity_type and all(
        {
            "In": capacity_type in (each.get("values") or ()),
            "NotIn": capacity_type not in (each.get("values") or ()),
            "DoesNotExist": False,
        }.get(str(each.get("operator")), True)
        for each in required
    )


def _offers_spot(operations: Iterable[Operation], made: Iterable[JsonObject]) -> bool:
    """Whether a catalogue is made that offers spot, or some catalogue is patched."""
    catalogues = [each for each in made if each["kind"] == CATALOGUE[1]]
    types = (_at(each, "spec.instanceTypes[].offers[].capacityType") for each in catalogues)
    return any("spot" in each for each in types) or any(
        each.body["typeMeta"]["kind"] == CATALOGUE[1]
        for each in operations
        if each.kind is OperationKind.PATCH
    )


def _made(operations: Iterable[Operation]) -> Collection[JsonObject]:
    """What operations create; of alike objects one."""
    bodies: dict[int, JsonObject] = {}
    for operation in operations:
        shared = operation.shared_body
        if shared is not None:
            bodies[id(shared)] = shared.body
        elif operation.kind is OperationKind.CREATE:
            bodies.update((id(each), each) for each in _objects(operation))
    return bodies.values()


def _of_node(node: JsonObject, players: Players) -> Iterator[Use]:
    for annotation, why in faults_of_pulls(_texts(node, "metadata.annotations")):
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


def _texts(obj: Any, path: str) -> dict[str, str]:
    """Labels or annotations: what has another type the API refuses in its own words."""
    found = [each for each in _at(obj, path) if isinstance(each, dict)]
    return {name: text for each in found for name, text in each.items() if isinstance(text, str)}


def _steps(path: str) -> list[tuple[str, bool]]:
    """The members that a path names, and whether it goes through a list there."""
    return [(step.removesuffix("[]"), step.endswith("[]")) for step in path.split(".")]
