"""Parity with kube-scheduler v1.36.4: its recorded decisions against ours, without tolerance.

`README.md` says what the recordings hold. In *isolated mode* every attempt is judged on its own:
after it the *recorded* outcome is applied, so a difference never hides behind an earlier one.
Compared are

- the order of nodes, and PreFilter's rejection or set of nodes,
- for every node the first plugin that refuses it, code and reasons. Where the recorded plugin is
  one we do not have, we must not refuse earlier than it,
- for every feasible node the raw and normalised score of each of our Score plugins, and which of
  them are skipped,
- where only our Filter plugins can matter: the numbers of nodes evaluated and found, the next
  start index, or the failure's message and reason, and the plugins that refused,
- where only our Score plugins can matter as well: the chosen node and the totals.

In *queue mode* the scheduler runs as it is, and the order of attempts, their outcomes and the
places where pods wait after each step are compared.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kubescene.actors import Actor, Role
from kubescene.api.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client.interfaces import EventHandler, ObjectRef
from kubescene.clock import SECOND, EventQueue, Streams, VirtualClock
from kubescene.control.loops import ControllerContext, nothing
from kubescene.control.timers import Timers
from kubescene.scheduler import (
    ExtensionPoint,
    Profile,
    Scheduler,
    SchedulerOptions,
    default_profile,
    kube_scheduler,
)
from kubescene.scheduler.cycle import Cycle, Decision
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.pods import PodInfo
from kubescene.scheduler.scoring import ScoreChain
from kubescene.scheduler.search import NominatedFiltering
from kubescene.scheduler.status import Status
from kubescene.scheduler.verdicts import FilterChain, Filtering
from kubescene.scheduler.waiting_places import Place
from kubescene.store import Store, Subscription
from kubescene.timeline.attempts import SchedulingAttempt
from kubescene.timeline.explanations import Explain
from kubescene.timeline.instruments import Instrument, Instruments
from kubescene.types import JsonObject

DATA = Path(__file__).parent / "data" / "scheduler"
COMPARISONS = {
    "basic-resources": 59_761,
    "mixed": 22_723,
    "node-affinity": 56_647,
    "sampling": 14_402,
    "scheduling-gates": 8_629,
    "taints": 57_078,
    "unschedulable": 19_809,
    "vectors": 702,
}
"""How many things are compared per family, so that none gets lost unnoticed."""

QUEUE_COMPARISONS = {"steps": 547, "attempts": 342}

NODES = GroupResource("", "nodes")
PODS = GroupResource("", "pods")
COPIED_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")

FILTER_ORDER = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)
OUR_FILTERS = frozenset(each.name for each in default_profile().at(ExtensionPoint.FILTER))
OUR_SCORES = frozenset(each.name for each in default_profile().at(ExtensionPoint.SCORE))
OUR_PRE_FILTERS = frozenset(each.name for each in default_profile().at(ExtensionPoint.PRE_FILTER))
HARMLESS_KINDS = frozenset({"Namespace", "Node", "Pod", "PriorityClass"})


class StoreClient:
    """The few requests that the scheduler makes, straight to a store: no admission, no defaults."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def actor(self) -> Actor:
        return Actor("kube-scheduler", Role.SIMULATION)

    def watch(
        self, gvk: GroupVersionKind, handler: EventHandler, *, quiet: bool = False
    ) -> Subscription:
        del quiet
        return self._store.subscribe(handler, [GroupResource("", f"{gvk.kind.lower()}s")])

    def bind(self, pod: ObjectRef, node: str, *, uid: str = "") -> Record:
        return bind(self._store, self.get(pod), node)

    def patch(
        self, ref: ObjectRef, patch: Any, *, patch_type: PatchType, subresource: str
    ) -> Record:
        assert (patch_type, subresource) == (PatchType.STRATEGIC, "status")
        pod = self.get(ref)
        pod["status"] = {**pod.get("status", {}), **patch["status"]}
        return self._store.update(PODS, pod)

    def get(self, ref: ObjectRef) -> JsonObject:
        record = self._store.get(PODS, ref.namespace, ref.name)
        assert record is not None
        return record.decode()


def bind(store: Store, pod: JsonObject, node: str, *, start_time: bool = True) -> Record:
    """Place a pod as the reference did: with the node's topology labels and a start time."""
    record = store.get(NODES, "", node)
    assert record is not None
    copied = {label: record.labels[label] for label in COPIED_LABELS if label in record.labels}
    if copied:
        pod["metadata"]["labels"] = pod["metadata"].get("labels", {}) | copied
    pod["spec"]["nodeName"] = node
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    if start_time:
        status["startTime"] = pod["metadata"]["creationTimestamp"]
    return store.update(PODS, pod)


class Attempts(Instrument):
    """Keeps what the scheduler reports, and makes it explain."""

    def __init__(self) -> None:
        self.made: list[SchedulingAttempt] = []

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        self.made.append(attempt)

    def take(self) -> list[SchedulingAttempt]:
        made, self.made = self.made, []
        return made


class World:
    """One recorded case, replayed."""

    def __init__(self, case: JsonObject) -> None:
        self.case = case
        self.store = Store()
        self.clock = VirtualClock()
        self.timers = EventQueue(self.clock)
        self.attempts = Attempts()
        client: Any = StoreClient(self.store)
        context = ControllerContext(
            client, self.clock, Timers(self.timers, nothing), Streams(), Instruments(self.attempts)
        )
        self.scheduler: Scheduler = kube_scheduler(
            context, SchedulerOptions(profiles=(_profile(case),), explain=Explain.FULL)
        )
        self.cycle: Cycle = self.scheduler.cycle_of("default-scheduler")
        self.filters_are_ours = filters_are_ours(case)
        self.scores_are_ours = scores_are_ours(case)
        for obj in case["objects"]:
            self.create(obj)

    def create(self, obj: JsonObject) -> None:
        if obj["kind"] in ("Node", "Pod"):
            resource = NODES if obj["kind"] == "Node" else PODS
            self.store.create(resource, obj)

    def pod(self, key: str) -> JsonObject:
        namespace, name = key.split("/")
        record = self.store.get(PODS, namespace, name)
        assert record is not None
        return record.decode()

    def info(self, key: str) -> PodInfo:
        entry = self.scheduler.queue.get(self.pod(key)["metadata"]["uid"])
        assert entry is not None
        return entry.pod

    # -- the recorded effects ----------------------------------------------------------------

    def apply(self, key: str, outcome: Mapping[str, Any]) -> None:
        """Do what kube-scheduler did."""
        if "node" in outcome:
            started = not self.case.get("noStartTime")
            bind(self.store, self.pod(key), outcome["node"], start_time=started)
        elif "preemption" in outcome and outcome["preemption"].get("victims"):
            self._preempt(key, outcome)
        if "node" not in outcome and "nominated" in outcome:
            self._nominate(key, outcome["nominated"])
        if "nextStart" in outcome:
            self.scheduler.start_index.index = outcome["nextStart"]

    def _preempt(self, key: str, outcome: Mapping[str, Any]) -> None:
        preemption = outcome["preemption"]
        victims = [self.pod(victim) for victim in preemption["victims"]]
        running = [pod for pod in victims if "deletionTimestamp" not in pod["metadata"]]
        if running:
            self._clear_nominations(preemption["node"], self.pod(key)["spec"].get("priority") or 0)
        for pod in running:
            if self.case.get("gracefulVictims"):
                self.store.update(PODS, pod)
                pod["metadata"]["deletionTimestamp"] = "2024-03-01T12:00:00Z"
                self.store.update(PODS, pod)
            else:
                metadata = pod["metadata"]
                self.store.remove(PODS, metadata["namespace"], metadata["name"])

    def _clear_nominations(self, node: str, priority: int) -> None:
        for pod in self.scheduler.nominations.on(node):
            if pod.priority < priority:
                self._nominate(pod.key, "")

    def _nominate(self, key: str, node: str) -> None:
        pod = self.pod(key)
        status = pod.setdefault("status", {})
        status["nominatedNodeName"] = node
        self.store.update(PODS, pod)


class Comparison:
    """One recorded attempt against ours."""

    def __init__(self, world: World, want: Mapping[str, Any], counts: Counter[str]) -> None:
        self.world = world
        self.want = want
        self.counts = counts
        self.where = f"{world.case['id']} {want['pod']}"
        self.pod = world.info(want["pod"])
        self.nodes = world.scheduler.nodes
        self.nodes.refresh()

    def run(self) -> None:
        if {"filters", "feasible", "prefilter"} & self.want.keys():
            self.compare_matrix()
        if self.world.filters_are_ours and not _needs_features(self.pod.object):
            self.compare_outcome()

    def equal(self, what: str, ours: object, theirs: object) -> None:
        self.counts[what] += 1
        assert ours == theirs, f"{self.where}: {what}"

    # -- before the cycle, every node --------------------------------------------------------

    def compare_matrix(self) -> None:
        state = CycleState()
        outcome = self.world.cycle.pre_filter(state, self.pod)
        recorded = self.want.get("prefilter") or {}
        if recorded.get("plugin") in OUR_PRE_FILTERS or not outcome.status.ok:
            self.equal(
                "prefilter rejections",
                _words(outcome.status),
                (recorded.get("plugin"), recorded.get("code"), recorded.get("reasons")),
            )
        if "plugin" in recorded:
            return
        names = outcome.node_names
        ours = None if names is None else sorted(n for n in names if self.nodes.info(n))
        self.equal("prefilter node sets", ours, _sorted(recorded.get("nodes"), self.nodes.names))
        chain = FilterChain(self.world.cycle.framework.filters, self.nodes)
        self.compare_filters(chain.begin(state, self.pod), names)
        if "scores" in self.want:
            self.compare_scores(state)

    def compare_filters(self, filtering: Filtering, names: frozenset[str] | None) -> None:
        rows = [row for row, name in enumerate(self.nodes.names) if names is None or name in names]
        judge = NominatedFiltering(
            filtering, self.nodes, self.world.scheduler.nominations, self.pod
        )
        verdicts = judge.judge(np.array(rows, dtype=np.intp)).tolist()
        theirs: dict[int, tuple[str, int, list[str]]] = {
            row: (group["plugin"], group["code"], group["reasons"])
            for group in self.want.get("filters", ())
            for row in group["nodes"]
        }
        for row, verdict in zip(rows, verdicts, strict=True):
            self.compare_verdict(theirs.get(row), filtering.describe(verdict))

    def compare_verdict(self, theirs: tuple[str, int, list[str]] | None, ours: Status) -> None:
        if theirs is None:
            self.equal("filter passes", _words(ours), (None, None, None))
        elif theirs[0] in OUR_FILTERS:
            self.equal("filter refusals", _words(ours), theirs)
        else:
            later = ours.ok or FILTER_ORDER.index(ours.plugin) > FILTER_ORDER.index(theirs[0])
            self.equal("refusals by plugins we lack", later, True)

    def compare_scores(self, state: CycleState) -> None:
        rows = np.array(self.want["feasible"], dtype=np.intp)
        fault = self.world.cycle.pre_score(state, self.pod, rows)
        assert not fault, self.where
        chain = ScoreChain(self.world.cycle.framework.scores, self.nodes)
        scored = chain.score(state, self.pod, rows, explain=True)
        theirs = {
            name: (column.get("raw", column["norm"]), column["norm"])
            for name, column in self.want["scores"].items()
            if name in OUR_SCORES
        }
        ours = {each.plugin: (list(each.raw), list(each.normalized)) for each in scored.columns}
        self.equal("score columns", ours, theirs)
        self.counts["scores"] += sum(2 * len(raw) for raw, _ in theirs.values())

    # -- the cycle itself --------------------------------------------------------------------

    def compare_outcome(self) -> None:
        theirs = self.want["outcome"]
        decision = self.world.cycle.decide(self.pod, explain=Explain.FULL)
        self.equal("successes", bool(decision.node), "node" in theirs)
        start = self.world.scheduler.start_index.index
        self.equal("start indexes", start, theirs.get("nextStart", start))
        if decision.node:
            self.equal("evaluated nodes", decision.evaluated, theirs["evaluated"])
            self.equal("feasible nodes", decision.feasible, theirs["feasible"])
            if self.world.scores_are_ours:
                self.equal("chosen nodes", decision.node, theirs["node"])
                self.compare_totals(decision, theirs)
        else:
            self.equal("messages", without_claims(decision.message), message_of(theirs))
            self.equal("reasons", decision.reason, theirs["reason"])
            self.equal("refusing plugins", list(decision.plugins), theirs.get("plugins", []))

    def compare_totals(self, decision: Decision, theirs: Mapping[str, Any]) -> None:
        explanation = decision.explanation
        assert explanation is not None
        if scored := theirs.get("scored"):
            self.equal("scored nodes", list(explanation.scored), scored["nodes"])
            self.equal("totals", list(explanation.totals), scored["totals"])
        elif "totals" in self.want and len(explanation.scored) > 1:
            ours = dict(zip(explanation.scored, explanation.totals, strict=True))
            wanted = dict(zip(self.want["feasible"], self.want["totals"], strict=True))
            self.equal("totals", ours, wanted)


def message_of(outcome: Mapping[str, Any]) -> str:
    """The recorded message without its PostFilter part, since we lack a PostFilter plugin."""
    message: str = outcome["message"]
    post_filter = outcome.get("postFilter")
    return message.removesuffix(f" {post_filter}") if post_filter else message


def without_claims(message: str) -> str:
    """Our message without what DynamicResources says at PostFilter."""
    return message.removesuffix(" not found").removesuffix(" no new claims to deallocate")


def all_objects(case: JsonObject) -> list[JsonObject]:
    steps = [step.get("create") or step.get("update") for step in case.get("steps", ())]
    return [*case["objects"], *case.get("pending", ()), *(obj for obj in steps if obj)]


def filters_are_ours(case: JsonObject) -> bool:
    """Whether none of the Filter plugins that we lack can have had a say."""
    pods = [obj for obj in all_objects(case) if obj["kind"] == "Pod"]
    return not any(_interferes(pod) for pod in pods)


def scores_are_ours(case: JsonObject) -> bool:
    """Whether none of the Score plugins that we lack can have had a say."""
    objects = all_objects(case)
    images = any((obj.get("status") or {}).get("images") for obj in objects)
    return not images and all(obj["kind"] in HARMLESS_KINDS for obj in objects)


def _interferes(pod: JsonObject) -> bool:
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return bool(
        affinity.get("podAffinity")
        or affinity.get("podAntiAffinity")
        or spec.get("topologySpreadConstraints")
        or spec.get("volumes")
        or spec.get("resourceClaims")
        or any(port.get("hostPort") for each in containers for port in each.get("ports") or ())
    )


def _needs_features(pod: JsonObject) -> bool:
    """Whether NodeDeclaredFeatures looks at the pod."""
    spec = pod["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    rules = any(each.get("restartPolicyRules") for each in containers)
    return rules or bool(spec.get("hostNetwork") and spec.get("hostUsers") is False)


def _profile(case: JsonObject) -> Profile:
    """The profile of a case; of configurations, the goldens here only set the percentage."""
    config = case.get("schedulerConfig") or {}
    profile = (config.get("profiles") or [{}])[0]
    percentage = profile.get("percentageOfNodesToScore", config.get("percentageOfNodesToScore", 0))
    default = default_profile()
    return Profile(default.scheduler_name, default.points, percentage_of_nodes_to_score=percentage)


def _words(status: Status) -> tuple[str | None, int | None, list[str] | None]:
    if status.ok:
        return None, None, None
    return status.plugin, int(status.code), list(status.reasons)


def _sorted(names: list[str] | None, existing: Any) -> list[str] | None:
    return None if names is None else sorted(name for name in names if name in existing)


def cases(family: str) -> Iterator[JsonObject]:
    with gzip.open(DATA / f"{family}.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)


def replay(golden: JsonObject, counts: Counter[str]) -> None:
    """Compare all attempts of one case."""
    case, result = golden["case"], golden["result"]
    world = World(case)
    world.scheduler.nodes.refresh()
    assert list(world.scheduler.nodes.names) == result.get("nodeOrder", []), case["id"]
    pending = iter(case["pending"])
    for want in result["attempts"]:
        if not want.get("retry"):
            world.create(next(pending))
        if "gated" in want or "ignored" in want or "bypassed" in want:
            counts["pods without a cycle"] += 1
            compare_waiting(world, want)
            continue
        Comparison(world, want, counts).run()
        counts["attempts"] += 1
        world.apply(want["pod"], want["outcome"])


def compare_waiting(world: World, want: Mapping[str, Any]) -> None:
    uid = world.pod(want["pod"])["metadata"]["uid"]
    entry = world.scheduler.queue.get(uid)
    if "gated" in want:
        assert entry is not None
        assert entry.gated_by == "SchedulingGates"
    else:
        assert entry is None


class QueueReplay:
    """A recorded case in queue mode: the scheduler runs, we turn the crank."""

    def __init__(self, golden: JsonObject, counts: Counter[str]) -> None:
        self.case, self.result = golden["case"], golden["result"]
        self.world = World(self.case)
        self.counts = counts

    def run(self, steps: int) -> None:
        for number in range(steps):
            if number:
                self.do(self.case["steps"][number - 1])
            else:
                self.work()
            self.compare(number)

    def work(self) -> None:
        while self.world.scheduler.run_once().more:
            pass

    def do(self, step: Mapping[str, Any]) -> None:
        if "advance" in step:
            self.advance(round(step["advance"] * SECOND))
            return
        if "create" in step:
            self.world.create(step["create"])
        elif "update" in step:
            self.update(step["update"])
        else:
            self.delete(step["delete"])
        self.work()

    def advance(self, duration: int) -> None:
        """Move the clock from one whole second to the next, and work at each of them."""
        clock = self.world.clock
        end = clock.now() + duration
        while clock.now() < end:
            clock.wait_until(min(end, (clock.now() // SECOND + 1) * SECOND))
            self.world.timers.run_due()
            self.work()

    def update(self, obj: JsonObject) -> None:
        metadata = obj["metadata"]
        resource = NODES if obj["kind"] == "Node" else PODS
        record = self.world.store.get(resource, metadata.get("namespace", ""), metadata["name"])
        if record is None:
            return
        if resource is PODS:
            obj = _keeping_placement(record.decode(), obj)
        self.world.store.update(resource, obj)

    def delete(self, named: Mapping[str, str]) -> None:
        resource = NODES if named["kind"] == "Node" else PODS
        namespace = named.get("namespace", "")
        if self.world.store.get(resource, namespace, named["name"]) is not None:
            self.world.store.remove(resource, namespace, named["name"])

    def compare(self, number: int) -> None:
        where = f"{self.case['id']} step {number}"
        want = self.result["steps"][number]
        ours = [_outcome(attempt) for attempt in self.world.attempts.take()]
        theirs = [_recorded(attempt) for attempt in want["attempts"] if "outcome" in attempt]
        assert ours == theirs, where
        assert self.queues() == (want.get("queues") or {}), where
        self.counts["steps"] += 1
        self.counts["attempts"] += len(theirs)

    def queues(self) -> dict[str, str]:
        places = {
            Place.UNSCHEDULABLE: "unschedulable",
            Place.BACKOFF: "backoff",
            Place.ERROR_BACKOFF: "backoff",
        }
        return {
            pod.key: name
            for place, name in places.items()
            for pod in self.world.scheduler.queue.waiting(place)
        }


def _keeping_placement(old: JsonObject, new: JsonObject) -> JsonObject:
    labels = old["metadata"].get("labels", {})
    kept = {label: labels[label] for label in COPIED_LABELS if label in labels}
    metadata = {**new["metadata"], "labels": new["metadata"].get("labels", {}) | kept}
    spec = dict(new["spec"])
    if "nodeName" in old["spec"]:
        spec["nodeName"] = old["spec"]["nodeName"]
    return {**new, "metadata": metadata, "spec": spec, "status": old.get("status", {})}


def _outcome(attempt: SchedulingAttempt) -> tuple[object, ...]:
    key = f"{attempt.pod.namespace}/{attempt.pod.name}"
    if attempt.node:
        return key, attempt.node, attempt.evaluated, attempt.feasible
    return key, without_claims(attempt.message), attempt.reason, list(attempt.plugins)


def _recorded(attempt: Mapping[str, Any]) -> tuple[object, ...]:
    outcome = attempt["outcome"]
    if "node" in outcome:
        return attempt["pod"], outcome["node"], outcome["evaluated"], outcome["feasible"]
    message = message_of(outcome)
    return attempt["pod"], message, outcome["reason"], outcome.get("plugins", [])


def steps_within_reach(golden: JsonObject) -> int:
    """How many steps to replay: until the first one that a plugin which we lack may decide.

    Queue mode runs on its own decisions, so from there on the worlds may differ.
    """
    case, result = golden["case"], golden["result"]
    if not _is_plain(case["objects"]):
        return 0
    for number, step in enumerate(result["steps"]):
        if number and not _is_plain(
            [case["steps"][number - 1].get("create") or case["steps"][number - 1].get("update")]
        ):
            return number
        outcomes = [attempt.get("outcome", {}) for attempt in step["attempts"]]
        if any(outcome.get("preemption", {}).get("victims") for outcome in outcomes):
            return number
    return len(result["steps"])


def _is_plain(objects: list[JsonObject | None]) -> bool:
    """Whether objects concern none but our plugins."""
    return not any(
        obj["kind"] not in HARMLESS_KINDS
        or (obj.get("status") or {}).get("images")
        or (obj["kind"] == "Pod" and (_interferes(obj) or _needs_features(obj)))
        for obj in objects
        if obj is not None
    )


@pytest.mark.parametrize(("family", "comparisons"), COMPARISONS.items(), ids=COMPARISONS)
def test_decisions_equal_those_of_kube_scheduler(family: str, comparisons: int) -> None:
    counts: Counter[str] = Counter()
    for golden in cases(family):
        replay(golden, counts)
    assert sum(counts.values()) == comparisons, counts


def test_the_queue_works_as_that_of_kube_scheduler() -> None:
    counts: Counter[str] = Counter()
    for golden in cases("queueing"):
        QueueReplay(golden, counts).run(steps_within_reach(golden))
    assert counts == QUEUE_COMPARISONS
