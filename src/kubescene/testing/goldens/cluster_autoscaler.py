"""The cluster autoscaler: every loop of a case, and what follows from it until the next.

A recording names all that changes in its world; what the autoscaler did is repeated there, so a
loop that differs does not spoil those after it, but for what the autoscaler remembers.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from kubescene.api.quantity import milli_value, value
from kubescene.api.records import make_record
from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.api.scheme import GroupResource
from kubescene.clock import VirtualClock
from kubescene.clock.timestamps import format_time, parse_time
from kubescene.durations import SECOND
from kubescene.node_autoscaling import ClusterAutoscaler, LoopReport, ProviderError, read_flags
from kubescene.node_autoscaling.actuation import WriteRefusedError
from kubescene.node_autoscaling.autoscaler import DeletedNode
from kubescene.node_autoscaling.balancing import GroupResize
from kubescene.node_autoscaling.cluster_state import INSTANCES_KEPT, Readiness
from kubescene.node_autoscaling.estimation import Option
from kubescene.node_autoscaling.expanders import EXPANDERS
from kubescene.node_autoscaling.nodes import SeenNode
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.priorities import CONFIG_MAP
from kubescene.node_autoscaling.provider import Instance, InstanceError, InstanceState
from kubescene.node_autoscaling.scale_up import ScaleUp
from kubescene.node_autoscaling.templates import NodeTemplate
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.store import Store
from kubescene.testing.goldens.comparisons import GoldenComparison, GoldenTally
from kubescene.testing.goldens.environment import ReplayClient
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject

UNIT = "loops"
START = parse_time("2000-01-01T00:00:00Z")
PODS = GroupResource("", "pods")
NAMESPACES = GroupResource("", "namespaces")
ENDED = ("Succeeded", "Failed")
STATUS = "configmap cluster-autoscaler-status"
_KINDS = {
    "ReplicaSet": "replicaSets",
    "StatefulSet": "statefulSets",
    "Job": "jobs",
    "DaemonSet": "daemonSets",
}
_ERRORS = {"other": "Other", "outOfResources": "OutOfResource"}


class AutoscalerAspect(StrEnum):
    """What can differ."""

    REPLAYED = "replayed"
    PACKING = "pending after packing"
    OPTIONS = "expansion options"
    BEST = "best of each expander"
    CHOSEN = "chosen option"
    SCALE_UP = "scale-ups"
    CANDIDATES = "candidates"
    UNNEEDED = "unneeded"
    UNREMOVABLE = "unremovable"
    UTILIZATION = "utilization"
    SCALE_DOWN = "scale-down"
    ACTIONS = "actions"
    LATER = "later actions"
    HEALTH = "health"
    GROUPS = "groups"
    TEMPLATES = "templates"
    TIMES = "times"
    ERROR = "error"
    STEPS = "equal steps"


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case has as many results as steps."""
    given, told = case.get("steps"), result.get("steps")
    if not isinstance(given, list) or not isinstance(told, list) or len(given) != len(told):
        raise GoldenFormatError(
            f'{where}: {case["id"]} needs lists "steps" in case and result, equally long'
        )


def replay(golden: Golden, tally: GoldenTally) -> None:
    comparison = GoldenComparison(golden.id, tally)
    try:
        _replay(golden, comparison, tally)
    except Exception as error:
        # Whatever our autoscaler raises is a difference.
        comparison.failed(AutoscalerAspect.REPLAYED, f"{type(error).__name__}: {error}", "")


def _replay(golden: Golden, comparison: GoldenComparison, tally: GoldenTally) -> None:
    process = _Process(golden.case)
    for step, theirs in zip(golden.case["steps"], golden.result["steps"], strict=True):
        comparison.at = f"at {step['t']} s"
        tally.attempts += 1
        before = comparison.differences
        process.step(step, theirs, comparison)
        same = comparison.differences == before
        tally.compared[AutoscalerAspect.STEPS] += 1
        tally.equal[AutoscalerAspect.STEPS] += same


def _instant(seconds: float) -> int:
    return START + round(seconds * 1000) * SECOND // 1000


def _seconds(instant: int | None) -> float | None:
    if instant is None:
        return None
    seconds = (instant - START) / SECOND
    return int(seconds) if seconds == int(seconds) else seconds


class _Process:
    """An autoscaler, the world that a case tells of, and the time between its steps."""

    def __init__(self, case: JsonObject) -> None:
        self._case = case
        self._clock = VirtualClock()
        self._world = _World(case)
        self._client = _client(case)
        self._shown: dict[str, JsonObject] = {}
        self._start(START)

    def _start(self, now: int) -> None:
        case = self._case
        flags = read_flags({**case["flags"], **(case.get("lists") or {})})
        self._autoscaler = ClusterAutoscaler(
            flags, self._world, self._world, self._client, self._clock, now
        )
        self._refresh = now

    def step(self, step: JsonObject, theirs: JsonObject, comparison: GoldenComparison) -> None:
        now, until = _instant(step["t"]), _instant(step["until"])
        self._until(now)
        self._world.now = now
        self._world.take(step)
        if step.get("restart"):
            self._start(now)
        if not step.get("noRun"):
            report = self._autoscaler.run_once(now)
            self._compare(report, theirs, comparison)
        self._world.actions = []
        self._until(until)
        later = sorted(self._world.actions, key=_later_order)
        comparison.equal(AutoscalerAspect.LATER, later, _sorted_later(theirs["later"]))
        self._world.actions = []

    def _until(self, end: int) -> None:
        """Let time pass: look up instances when that is due, go on with deletions."""
        own = self._autoscaler
        while True:
            due = own.actuator.next_due
            at = self._refresh if due is None else min(due, self._refresh)
            if at > end:
                return
            self._world.now = at
            if at == self._refresh:
                own.state.look_up_instances()
                self._refresh += INSTANCES_KEPT
            own.actuator.run(at)

    def _compare(
        self, report: LoopReport, theirs: JsonObject, comparison: GoldenComparison
    ) -> None:
        equal, own, aspect = comparison.equal, self._autoscaler, AutoscalerAspect
        equal(aspect.ERROR, report.error, theirs.get("error") or "")
        pending = [pod.key for pod in report.pending or ()]
        equal(aspect.PACKING, pending, theirs["pendingAfterPacking"] or [])
        self._compare_expansion(report, theirs.get("expansion"), comparison)
        equal(aspect.SCALE_UP, [_scale_up(it) for it in report.scale_ups], theirs["scaleUps"])
        equal(aspect.CANDIDATES, [*report.candidates], theirs["candidates"] or [])
        unneeded = [_unneeded(each) for each in own.planner.unneeded.values()]
        equal(aspect.UNNEEDED, unneeded, theirs["unneeded"] or [])
        unremovable = [
            _unremovable(own.planner.unremovable[name]) for name in sorted(own.planner.unremovable)
        ]
        equal(aspect.UNREMOVABLE, unremovable, theirs["unremovable"] or [])
        used = {name: round(it.most, 12) for name, it in sorted(own.planner.utilization.items())}
        recorded = {name: round(it, 12) for name, it in (theirs["utilization"] or {}).items()}
        equal(aspect.UTILIZATION, used, recorded)
        equal(aspect.SCALE_DOWN, _scale_down(report), _rounded(theirs["scaleDown"]))
        equal(aspect.ACTIONS, self._world.actions, theirs["actions"] or [])
        equal(aspect.HEALTH, own.status.cluster.health.condition, theirs["health"])
        self._compare_groups(theirs, comparison, report.now)
        self._compare_templates(theirs, comparison)
        times = (own.last_scale_up, own.last_scale_down, own.last_failure)
        names = ("lastScaleUp", "lastScaleDownDelete", "lastScaleDownFail")
        equal(aspect.TIMES, [*map(_seconds, times)], [theirs[name] for name in names])

    def _compare_expansion(
        self, report: LoopReport, theirs: JsonObject | None, comparison: GoldenComparison
    ) -> None:
        tried = next((each for each in report.scale_ups if each.options), None)
        ours = [] if tried is None else [_option(each) for each in tried.options]
        recorded = [_recorded(each) for each in (theirs or {}).get("options") or ()]
        if not ours and not recorded:
            return
        comparison.equal(AutoscalerAspect.OPTIONS, ours, recorded)
        if theirs is None or tried is None:
            return
        best = "" if tried.best is None else tried.best.group.id
        comparison.equal(AutoscalerAspect.CHOSEN, best, theirs["chosen"])
        listed = _Quiet(self._world)
        kept = {
            name: [each.group.id for each in EXPANDERS[name](tried.options, listed)]
            for name in theirs.get("best") or {}
        }
        comparison.equal(AutoscalerAspect.BEST, kept, theirs.get("best") or {})

    def _compare_groups(self, theirs: JsonObject, comparison: GoldenComparison, now: int) -> None:
        ours = {name: self._group(name, now) for name in self._world.group_ids}
        names = [*self._world.group_ids]
        recorded = theirs["groups"]
        comparison.each_equal(
            AutoscalerAspect.GROUPS,
            [ours[name] for name in names],
            [recorded.get(name) for name in names],
            names,
        )

    def _group(self, name: str, now: int) -> JsonObject:
        own, state = self._autoscaler, self._autoscaler.state
        status, request = own.status.groups[name], state.requests.get(name)
        shown: JsonObject = {
            "health": status.health.condition,
            "target": status.target,
            "scaleUp": status.scale_up.condition,
            "scaleUpSince": _seconds(status.scale_up.since),
            "scaleDown": status.scale_down.condition,
            "scaleDownSince": _seconds(status.scale_down.since),
        }
        if status.candidates:
            shown["candidates"] = status.candidates
        shown |= _names(state.readiness.get(name))
        if request is not None:
            shown["request"] = {
                "increase": request.increase,
                "time": _seconds(request.time),
                "expected": _seconds(request.expected),
            }
        if (backoff := state.backoff_of(name, now)) is not None:
            shown["backoff"] = f"{backoff.error.code}: {backoff.error.message}"
        if coming := state.upcoming(now).get(name):
            shown["upcoming"] = coming
        if name in state.wrong_sizes:
            shown["wrongSizeSince"] = _seconds(state.wrong_sizes[name].since)
        return shown

    def _compare_templates(self, theirs: JsonObject, comparison: GoldenComparison) -> None:
        shown = {name: _template(each) for name, each in self._autoscaler.templates.items()}
        recorded = theirs.get("templates")
        changed = {name: it for name, it in shown.items() if self._shown.get(name) != it}
        if changed or recorded is not None:
            comparison.equal(AutoscalerAspect.TEMPLATES, shown, recorded)
        self._shown = shown


def _client(case: JsonObject) -> ReplayClient:
    store = Store()
    for name in ("default", "kube-system", "team-a"):
        labels = {"kubernetes.io/metadata.name": name}
        store.put(NAMESPACES, {"metadata": {"name": name, "labels": labels}}, expected=0)
    return ReplayClient(store, case)


# -- the world -----------------------------------------------------------------------------


class _Group:
    """A node group of the recorded provider."""

    def __init__(self, world: "_World", given: JsonObject) -> None:
        self._world = world
        self.id: str = given["id"]
        self.min_size: int = given["min"]
        self.max_size: int = given["max"]
        self.options: Mapping[str, object] = given.get("options") or {}
        self._template: JsonObject | None = given.get("template")
        self.target = 0
        self.machines: list[Instance] = []

    def take(self, given: JsonObject) -> None:
        self.target = given.get("target", 0)
        self.machines = [_instance(each) for each in given.get("instances") or ()]

    def target_size(self) -> int:
        return self.target

    def instances(self) -> Sequence[Instance]:
        return tuple(self.machines)

    def template(self) -> JsonObject | None:
        return self._template

    def increase(self, by: int) -> None:
        refusal = self._world.refusal("increase", self.id)
        self._world.act("increase", group=self.id, delta=by, error=refusal)
        if refusal:
            raise ProviderError(refusal)
        self.target += by

    def decrease_target(self, by: int) -> None:
        self._world.act("decrease", group=self.id, delta=-by)
        self.target -= by

    def delete(self, nodes: Sequence[str]) -> None:
        refusal = self._world.refusal("delete", self.id)
        self._world.act("delete", group=self.id, nodes=[*nodes], error=refusal)
        if refusal:
            raise ProviderError(refusal)
        self.machines = [each for each in self.machines if each.id not in nodes]
        self.target -= len(nodes)


def _instance(given: JsonObject) -> Instance:
    error = given.get("error")
    if error is not None:
        error = InstanceError(_ERRORS[error["class"]], error["code"], error["message"])
    return Instance(given["id"], InstanceState(given.get("state", "running")), error)


class _World:
    """What a case tells of: objects, the provider, who refuses what. Notes what is done to it."""

    def __init__(self, case: JsonObject) -> None:
        self.now = START
        self.actions: list[JsonObject] = []
        self._groups = [_Group(self, each) for each in case["groups"]]
        self._prices = case.get("prices") or {}
        self._priorities: str | None = case.get("priorities")
        self._classes = PodClasses()
        self._objects: dict[str, dict[str, JsonObject]] = {}
        self._seen_nodes: dict[str, SeenNode] = {}
        self._seen_pods: dict[str, SeenPod] = {}
        self._fail: JsonObject = {}

    @property
    def group_ids(self) -> list[str]:
        return [each.id for each in self._groups]

    def take(self, step: JsonObject) -> None:
        for kind, keys in (step.get("remove") or {}).items():
            for key in keys:
                self._drop(kind, key)
        for kind, objects in (step.get("set") or {}).items():
            for obj in objects:
                self._put(kind, obj)
        for group in self._groups:
            if group.id in (step.get("groups") or {}):
                group.take(step["groups"][group.id])
        self._fail = step.get("fail") or {}

    def _drop(self, kind: str, key: str) -> None:
        self._objects.get(kind, {}).pop(key, None)
        self._seen_nodes.pop(key, None)
        if kind == "pods":
            self._seen_pods.pop(key, None)

    def _put(self, kind: str, obj: JsonObject) -> None:
        metadata = obj["metadata"]
        name = metadata["name"]
        if kind == "nodes":
            obj = {**obj, "spec": {**(obj.get("spec") or {}), "providerID": name}}
            self._objects.setdefault(kind, {})[name] = obj
            self._seen_nodes[name] = SeenNode(obj)
            return
        key = f"{metadata['namespace']}/{name}"
        if kind == "daemonSets":
            obj = {**obj, "metadata": {**metadata, "uid": f"DaemonSet-{name}"}}
        if kind == "pods":
            obj = {**obj, "metadata": {**metadata, "uid": f"pod-{key}"}}
            info = PodInfo.read(make_record(PODS, obj, 1), obj, self._classes)
            self._seen_pods[key] = SeenPod(info, obj)
        self._objects.setdefault(kind, {})[key] = obj

    def refusal(self, kind: str, name: str) -> str:
        return str((self._fail.get(kind) or {}).get(name) or "")

    def act(self, kind: str, **fields: Any) -> None:
        told = {name: value for name, value in fields.items() if value not in ("", None)}
        self.actions.append({"t": _seconds(self.now), "kind": kind, **told})

    # -- what is seen ----------------------------------------------------------------------

    def nodes(self) -> Sequence[SeenNode]:
        return [self._seen_nodes[name] for name in self._objects.get("nodes", ())]

    def pods(self) -> Sequence[SeenPod]:
        return [
            self._seen_pods[key]
            for key, obj in self._objects.get("pods", {}).items()
            if (obj.get("status") or {}).get("phase") not in ENDED
        ]

    def budgets(self) -> Sequence[JsonObject]:
        return [*self._objects.get("pdbs", {}).values()]

    def daemon_sets(self) -> Sequence[JsonObject]:
        return [*self._objects.get("daemonSets", {}).values()]

    def controller(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        return self._objects.get(_KINDS.get(kind, ""), {}).get(f"{namespace}/{name}")

    def config_map(self, name: str) -> JsonObject | None:
        if name != CONFIG_MAP or self._priorities is None:
            return None
        return {"data": {"priorities": self._priorities}}

    # -- what is done ----------------------------------------------------------------------

    def change_node(self, name: str, change: Callable[[JsonObject], JsonObject | None]) -> bool:
        node = self._objects.get("nodes", {}).get(name)
        if node is None:
            raise WriteRefusedError(f'nodes "{name}" not found')
        changed = change(node)
        if changed is None:
            return False
        refusal = self.refusal("taint", name)
        taints = [
            f"{each['key']}={each.get('value', '')}:{each['effect']}"
            for each in changed["spec"].get("taints") or ()
        ]
        cordoned = changed["spec"].get("unschedulable") or None
        if refusal:
            self.act("taint", node=name, taints=taints or None, error=refusal)
            raise WriteRefusedError(refusal)
        self.act("taint", node=name, taints=taints or None, cordoned=cordoned)
        self._objects["nodes"][name] = changed
        self._seen_nodes[name] = SeenNode(changed)
        return True

    def evict(self, pod: SeenPod, grace: int) -> None:
        refusal = self.refusal("evict", pod.key)
        lingers = pod.key in (self._fail.get("linger") or ())
        there = self._seen_pods.get(pod.key)
        if there is None or (lingers and there.deleted is not None):
            return
        told = grace if lingers else None
        self.act("evict", pod=pod.key, grace=told, error=refusal)
        if refusal:
            raise WriteRefusedError(refusal)
        if not lingers:
            self._drop("pods", pod.key)
            return
        obj = self._objects["pods"][pod.key]
        ends = format_time(self.now + grace * SECOND)
        self._put("pods", {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": ends}})

    def node_of(self, pod: SeenPod) -> str | None:
        obj = self._objects.get("pods", {}).get(pod.key)
        return None if obj is None else str(obj["spec"].get("nodeName") or "")

    def about_status(self, kind: str, reason: str, message: str) -> None:
        self._tell(STATUS, kind, reason, message)

    def about_node(self, node: str, kind: str, reason: str, message: str) -> None:
        self._tell(f"node {node}", kind, reason, message)

    def about_pod(self, pod: SeenPod, kind: str, reason: str, message: str) -> None:
        self._tell(f"pod {pod.key}", kind, reason, message)

    def warn(self, config_map: str, reason: str, message: str) -> None:
        self._tell(f"configmap {config_map}", "Warning", reason, message)

    def _tell(self, obj: str, kind: str, reason: str, message: str) -> None:
        self.act("event", type=kind, reason=reason, object=obj, message=message)

    # -- the provider ----------------------------------------------------------------------

    def groups(self) -> Sequence[_Group]:
        return self._groups

    def group_of(self, provider_id: str, name: str) -> _Group | None:
        return next(
            (group for group in self._groups if any(it.id == name for it in group.machines)), None
        )

    def has_instance(self, provider_id: str, name: str) -> bool:
        return self.group_of(provider_id, name) is not None

    def node_price(self, node: JsonObject) -> float | None:
        kind = node["metadata"]["labels"].get("node.kubernetes.io/instance-type")
        price = (self._prices.get("types") or {}).get(kind)
        return None if price is None else float(price)

    def pod_price(self, pod: JsonObject) -> float:
        total = 0.0
        for container in pod["spec"]["containers"]:
            requests = (container.get("resources") or {}).get("requests") or {}
            cpu, memory = milli_value(requests.get("cpu", 0)), value(requests.get("memory", 0))
            total += cpu / 1000 * float(self._prices.get("cpu", 0))
            total += memory / 1024**3 * float(self._prices.get("memoryGiB", 0))
        return total


class _Quiet:
    """What an expander sees when it is asked alone."""

    def __init__(self, world: _World) -> None:
        self._world = world
        self.provider = world

    def config_map(self, name: str) -> JsonObject | None:
        return self._world.config_map(name)

    def node_count(self) -> int:
        return len(self._world.nodes())

    def warn(self, config_map: str, reason: str, message: str) -> None:
        """Nobody listens."""


# -- what is compared ----------------------------------------------------------------------


def _option(option: Option) -> JsonObject:
    cpu, memory = option.waste
    return {
        "group": option.group.id,
        "nodes": option.nodes,
        "pods": [pod.key for pod in option.pods],
        "similar": [each.id for each in option.similar],
        "waste": (round(cpu, 12), round(memory, 12)),
    }


def _recorded(option: JsonObject) -> JsonObject:
    return {
        "group": option["group"],
        "nodes": option["nodes"],
        "pods": option["pods"],
        "similar": option.get("similar") or [],
        "waste": (round(option["wasteCPU"], 12), round(option["wasteMemory"], 12)),
    }


def _scale_up(done: ScaleUp) -> JsonObject:
    shown: JsonObject = {"result": str(done.result)}
    told = {
        "error": done.error,
        "groups": [_resize(each) for each in done.resizes],
        "triggered": [pod.key for pod in done.triggered],
        "remaining": [
            _present(
                {
                    "pod": each.pod.key,
                    "rejected": {group: [*why] for group, why in each.rejected.items()},
                    "skipped": {group: [*why] for group, why in each.skipped.items()},
                }
            )
            for each in done.remaining
        ],
        "awaiting": [pod.key for pod in done.awaiting],
        "failedGroups": [*done.failed],
    }
    return shown | _present(told)


def _present(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value}


def _resize(resize: GroupResize) -> JsonObject:
    return {
        "group": resize.group.id,
        "from": resize.before,
        "to": resize.after,
        "max": resize.most,
    }


def _unneeded(unneeded: Any) -> JsonObject:
    shown: JsonObject = {"node": unneeded.node.name, "since": _seconds(unneeded.since)}
    if unneeded.moved:
        shown["podsToMove"] = len(unneeded.moved)
    if unneeded.risky:
        shown["risky"] = True
    return shown


def _unremovable(unremovable: Any) -> JsonObject:
    shown: JsonObject = {"node": unremovable.node.name, "reason": str(unremovable.reason)}
    if unremovable.blocking is not None:
        shown |= {"pod": unremovable.blocking.pod.key, "why": unremovable.blocking.reason}
    return shown


def _scale_down(report: LoopReport) -> JsonObject:
    done = report.scale_down
    shown: JsonObject = {"result": done.result}
    if done.nodes:
        shown["nodes"] = [_deleted(each) for each in done.nodes]
    if done.results:
        shown["deleteResults"] = {
            name: f"{it.outcome}: {it.error}" if it.error else str(it.outcome)
            for name, it in done.results.items()
        }
    return shown


def _deleted(deleted: DeletedNode) -> JsonObject:
    shown = {
        "node": deleted.node,
        "group": deleted.group,
        "utilization": round(deleted.utilization.most, 12),
    }
    if deleted.evicted is None:
        return shown
    return {**shown, "evicted": [pod.key for pod in deleted.evicted]}


def _rounded(scale_down: JsonObject) -> JsonObject:
    if not scale_down.get("nodes"):
        return scale_down
    nodes = [
        {**each, "utilization": round(each["utilization"], 12)} for each in scale_down["nodes"]
    ]
    return {**scale_down, "nodes": nodes}


def _names(readiness: Readiness | None) -> JsonObject:
    if readiness is None:
        return {}
    return _present(
        {
            "ready": readiness.ready,
            "unready": readiness.unready,
            "notStarted": readiness.not_started,
            "unregistered": readiness.unregistered,
            "longUnregistered": readiness.long_unregistered,
            "deleted": readiness.deleted,
        }
    )


def _template(template: NodeTemplate) -> JsonObject:
    offered = template.node.allocatable
    shown: JsonObject = {
        "cpu": milli_value(offered.get("cpu", 0)),
        "memory": value(offered.get("memory", 0)),
        "pods": value(offered.get("pods", 0)),
        "usedCPU": sum(pod.info.requests.get(CPU, 0) for pod in template.pods),
        "usedMemory": sum(pod.info.requests.get(MEMORY, 0) for pod in template.pods),
        "usedPods": len(template.pods),
    }
    if template.node.taints:
        shown["taints"] = [
            f"{each['key']}={each.get('value', '')}:{each['effect']}"
            for each in template.node.taints
        ]
    return shown


def _later_order(action: JsonObject) -> tuple[Any, ...]:
    names = [str(action.get(name) or "") for name in ("group", "node", "pod", "object", "message")]
    return action["t"], action["kind"], action.get("nodes") or [], names


def _sorted_later(actions: Sequence[JsonObject] | None) -> list[JsonObject]:
    return sorted(actions or (), key=_later_order)
