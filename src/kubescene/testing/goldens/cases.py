"""Cases of kube-scheduler: how one is played.

The scheduler that a case asks for: from its configuration and feature gates to options.

Profiles: the plugins of every extension point in order, and their weights.

Pod groups: one attempt for all pods of a group that wait.

Isolated mode: one pod after the other, each with one cycle of its own.

Each cycle is judged by itself: after one that differs, the world is made anew and brought to where
the recording stands, so that no difference hides behind an earlier one or causes a later one.

Queue mode: the scheduler runs as it is, and we turn the crank.

It runs on its own decisions, so a case ends at its first difference.

Recordings of kube-scheduler: a case is played pod by pod, or step by step.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import SECOND
from kubescene.errors import ApiError, ConfigurationError
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration import read_configuration
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.feature_gates import FeatureGates
from kubescene.scheduler.framework.profile import ExtensionPoint, Profile
from kubescene.scheduler.queue.waiting_places import Place
from kubescene.shortcuts import ALL, PLAIN
from kubescene.testing.goldens.comparisons import Aspect, GoldenComparison, GoldenTally
from kubescene.testing.goldens.environment import COPIED_LABELS
from kubescene.testing.goldens.outcomes import NOTHING_SCORED, RECORDED, GoldenOutcome, Matrix
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.testing.goldens.worlds import Attempt, Effects, GoldenWorld, GroupAttempt
from kubescene.types import JsonObject


def options_of(case: JsonObject, *, plain: bool = False) -> SchedulerOptions:
    """Raises `ConfigurationError` for a configuration that is refused."""
    gates = FeatureGates.of(case.get("featureGates") or {})
    shortcuts = PLAIN if plain else ALL
    base = SchedulerOptions(explain=Explain.FULL, feature_gates=gates, shortcuts=shortcuts)
    config = case.get("schedulerConfig")
    return base if config is None else read_configuration(config, base)


POINTS = {
    "queueSort": ExtensionPoint.QUEUE_SORT,
    "preFilter": ExtensionPoint.PRE_FILTER,
    "filter": ExtensionPoint.FILTER,
    "postFilter": ExtensionPoint.POST_FILTER,
    "preScore": ExtensionPoint.PRE_SCORE,
    "score": ExtensionPoint.SCORE,
    "reserve": ExtensionPoint.RESERVE,
    "preBind": ExtensionPoint.PRE_BIND,
    "bind": ExtensionPoint.BIND,
}
"""The points that are recorded."""


def compare_profiles(
    golden: Golden, options: SchedulerOptions, comparison: GoldenComparison
) -> None:
    recorded = golden.result.get("profiles")
    if recorded is None:
        return
    ours = {profile.scheduler_name: profile for profile in options.profiles}
    comparison.equal(Aspect.PROFILES, sorted(ours), sorted(recorded))
    for name in sorted(ours.keys() & recorded.keys()):
        described, theirs = _described(ours[name]), recorded[name]
        keys = [f"{name} {part}" for part in described]
        values = [theirs.get(part) or type(value)() for part, value in described.items()]
        comparison.each_equal(Aspect.PROFILES, [*described.values()], values, keys)


def _described(profile: Profile) -> dict[str, Any]:
    points: dict[str, Any] = {
        name: [each.name for each in profile.at(point)] for name, point in POINTS.items()
    }
    points["weights"] = {each.name: each.weight for each in profile.at(ExtensionPoint.SCORE)}
    return points


def compare_group(
    ours: GroupAttempt, recorded: Mapping[str, Any], comparison: GoldenComparison
) -> None:
    """Who was tried in which order, what came of each, and what was written."""
    theirs = recorded["members"]
    comparison.equal(Aspect.NEXT_START, ours.next_start, recorded["nextStart"])
    comparison.equal(Aspect.GROUP, ours.condition, recorded.get("condition"))
    comparison.equal(Aspect.DELETED, ours.deleted, recorded.get("deleted") or [])
    names = [member["pod"] for member in theirs]
    if not comparison.equal(Aspect.MEMBERS, [each.pod for each in ours.members], names):
        return
    attempt = comparison.at
    for member, want in zip(ours.members, theirs, strict=True):
        comparison.at = f"{attempt} member {member.pod}"
        outcome = want["outcome"]
        GoldenOutcome(member, comparison).compare(outcome, outcome.get("scored") or NOTHING_SCORED)
    comparison.at = attempt


NO_CYCLE = ("gated", "ignored", "bypassed")


class IsolatedReplay:
    """One case, pod by pod."""

    def __init__(self, golden: Golden, options: SchedulerOptions, tally: GoldenTally) -> None:
        self._golden = golden
        self._options = options
        self._tally = tally
        self._comparison = GoldenComparison(golden.id, tally)
        self._world = GoldenWorld(golden.case, options)

    @property
    def differences(self) -> int:
        return self._comparison.differences

    def run(self) -> None:
        self._compare_order(self._golden.result.get("nodeOrder") or [])
        for number, want in enumerate(self._golden.result["attempts"]):
            self._comparison.at = want["pod"] + (" (retry)" if want.get("retry") else "")
            self._tally.attempts += 1
            if not want.get("retry"):
                self._world.create(self._pending(want["pod"]))
            before = self._comparison.differences
            if self._attempt(want):
                return
            if self._comparison.differences > before and not self._catch_up(number + 1):
                return

    def _attempt(self, want: Mapping[str, Any]) -> bool:
        """Compare one attempt; True if the case ends here."""
        if "nodeOrder" in want:
            self._compare_order(want["nodeOrder"])
        if any(want.get(each) for each in NO_CYCLE):
            self._compare_waiting(want)
            return False
        entry = self._world.entry(want["pod"])
        # The victims of a retry are gone: who was kept out while they went is asked anew (PR-14).
        if entry is None or (entry.gated_by and not want.get("retry")):
            self._comparison.failed(Aspect.NO_CYCLE, "gets no cycle", "gets a cycle")
            return False
        try:
            return self._compare(want)
        except Exception as error:
            self._comparison.failed(Aspect.REPLAYED, f"{type(error).__name__}: {error}", "")
            return False

    def _compare(self, want: Mapping[str, Any]) -> bool:
        entry = self._world.entry(want["pod"])
        assert entry is not None
        scheduler = self._world.scheduler
        cycle = scheduler.cycle_of(entry.pod.scheduler_name)
        if RECORDED & want.keys():
            Matrix(cycle, scheduler.nominations, entry.pod, self._comparison).compare(want)
        self._world.extenders.expect(want["outcome"].get("extenders") or ())
        made = self._world.attempt(want["pod"])
        ours = made[0] if len(made) == 1 else None
        if want["outcome"].get("skipped") and not made:
            return False  # It is being deleted, and left alone.
        if not isinstance(ours, Attempt):
            self._comparison.failed(Aspect.CYCLES, [each.pod for each in made], [want["pod"]])
            return False
        theirs = want["outcome"]
        if _is_tie(ours, theirs):
            return True
        GoldenOutcome(ours, self._comparison).compare(theirs, _scored(want))
        if "bindError" in theirs:
            Effects(self._world).hold(want["pod"], theirs)
        return False

    def _compare_order(self, theirs: list[str]) -> None:
        self._world.scheduler.nodes.refresh()
        ours = list(self._world.scheduler.nodes.names)
        self._comparison.equal(Aspect.NODE_ORDER, ours, theirs)

    def _compare_waiting(self, want: Mapping[str, Any]) -> None:
        """A pod that gets no cycle: who keeps it out of the queue, or where it is."""
        entry = self._world.entry(want["pod"])
        node = self._world.pod(want["pod"])["spec"].get("nodeName", "")
        ours = "ignored"
        if entry is not None:
            ours = "gated" if entry.gated_by else "attempted"
        elif node:
            ours = "bypassed"
        theirs = next(each for each in NO_CYCLE if want.get(each))
        self._comparison.equal(Aspect.NO_CYCLE, ours, theirs)

    def _pending(self, key: str) -> JsonObject:
        return next(pod for pod in self._golden.case["pending"] if _key(pod) == key)

    def _catch_up(self, attempts: int) -> bool:
        """Make a world in which all went as recorded; False if that cannot be."""
        world = self._world = GoldenWorld(self._golden.case, self._options)
        effects = Effects(world)
        for want in self._golden.result["attempts"][:attempts]:
            if not want.get("retry"):
                world.create(self._pending(want["pod"]))
            try:
                effects.apply(want["pod"], want.get("outcome") or {})
            except ApiError as error:
                text = f"the recorded outcome cannot be applied: {error}"
                self._comparison.failed(Aspect.REPLAYED, text, want["outcome"])
                return False
        return True


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _scored(want: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the real cycle scored: as it is said, or else all feasible nodes if there are some."""
    outcome = want["outcome"]
    if "scored" in outcome:
        return dict(outcome["scored"])
    if "node" in outcome and outcome["feasible"] > 1 and "totals" in want:
        return {"nodes": want["feasible"], "totals": want["totals"]}
    return {"nodes": [], "totals": []}


def _is_tie(ours: Attempt, theirs: Mapping[str, Any]) -> bool:
    """Whether chance decided, and has it otherwise with us."""
    if ours.node and ours.node != theirs.get("node"):
        return ours.node in (theirs.get("ties") or ())
    nominated = ours.decision.nominated
    if nominated and nominated != theirs.get("nominated"):
        return nominated in ((theirs.get("preemption") or {}).get("ties") or ())
    return False


PLACES = {
    Place.UNSCHEDULABLE: "unschedulable",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "backoff",
}


class QueueReplay:
    """One case, step by step."""

    def __init__(self, golden: Golden, options: SchedulerOptions, tally: GoldenTally) -> None:
        self._golden = golden
        self._tally = tally
        self._comparison = GoldenComparison(golden.id, tally)
        self._world = GoldenWorld(golden.case, options)
        self._kinds = {obj["kind"]: obj["apiVersion"] for obj in _objects(golden.case)}

    @property
    def differences(self) -> int:
        return self._comparison.differences

    def run(self) -> None:
        self._compare_order(self._golden.result.get("nodeOrder") or [])
        for number, want in enumerate(self._golden.result["steps"]):
            self._comparison.at = f"step {number}"
            self._world.extenders.expect(_extender_calls(want))
            try:
                self._step(number)
                self._compare(want)
            except Exception as error:
                self._comparison.failed(Aspect.REPLAYED, f"{type(error).__name__}: {error}", "")
            if self._comparison.differences:
                return

    def _step(self, number: int) -> None:
        if number:
            self._do(self._golden.case["steps"][number - 1])
        else:
            self._world.work()

    # -- doing -----------------------------------------------------------------------------

    def _do(self, step: Mapping[str, Any]) -> None:
        if "advance" in step:
            self._advance(round(step["advance"] * SECOND))
            return
        if "create" in step:
            self._world.create(step["create"])
        elif "update" in step:
            self._update(step["update"])
        else:
            self._delete(step["delete"])
        self._world.work()

    def _advance(self, duration: int) -> None:
        """Move the clock from one whole second to the next, and work at each of them."""
        clock = self._world.clock
        end = clock.now() + duration
        while clock.now() < end:
            clock.wait_until(min(end, (clock.now() // SECOND + 1) * SECOND))
            self._world.timers.run_due()
            self._world.work()

    def _update(self, obj: JsonObject) -> None:
        held = self._world.client.find(ObjectRef.to(obj))
        if held is None:
            return
        if obj["kind"] == "Pod":
            obj = _keeping_placement(held, obj)
        elif obj["kind"] == "ResourceClaim":
            obj = _keeping_allocation(held, obj)
        self._world.update(obj)

    def _delete(self, named: Mapping[str, str]) -> None:
        gvk = GroupVersionKind.of(self._kinds[named["kind"]], named["kind"])
        ref = ObjectRef(gvk, named["name"], named.get("namespace", ""))
        if self._world.client.find(ref) is not None:
            self._world.remove(ref)

    # -- comparing -------------------------------------------------------------------------

    def _compare(self, want: Mapping[str, Any]) -> None:
        made = self._world.take()
        # A pod that is being deleted is popped and left alone: no attempt of ours.
        recorded = want.get("attempts") or ()
        theirs = [each for each in recorded if not each.get("outcome", {}).get("skipped")]
        self._tally.attempts += len(theirs)
        order = [each["pod"] for each in theirs]
        step = self._comparison.at
        if self._comparison.equal(Aspect.CYCLES, [each.pod for each in made], order):
            for ours, recorded in zip(made, theirs, strict=True):
                self._comparison.at = f"{step} {ours.pod}"
                self._compare_attempt(ours, recorded)
        self._comparison.at = step
        self._comparison.equal(Aspect.QUEUES, self._queues(), want.get("queues") or {})

    def _compare_attempt(self, ours: Attempt | GroupAttempt, recorded: Mapping[str, Any]) -> None:
        if "nodeOrder" in recorded:
            order = list(ours.node_order)
            self._comparison.equal(Aspect.NODE_ORDER, order, recorded["nodeOrder"])
        group = ours.group if isinstance(ours, GroupAttempt) else ""
        if not self._comparison.equal(Aspect.CYCLES, group, recorded.get("podGroup", "")):
            return
        if isinstance(ours, GroupAttempt):
            compare_group(ours, recorded, self._comparison)
            return
        outcome = recorded["outcome"]
        scored = outcome.get("scored") or NOTHING_SCORED
        GoldenOutcome(ours, self._comparison).compare(outcome, scored)

    def _compare_order(self, theirs: list[str]) -> None:
        self._world.scheduler.nodes.refresh()
        ours = list(self._world.scheduler.nodes.names)
        self._comparison.equal(Aspect.NODE_ORDER, ours, theirs)

    def _queues(self) -> dict[str, str]:
        queue = self._world.scheduler.queue
        return {pod.key: name for place, name in PLACES.items() for pod in queue.waiting(place)}


def _objects(case: Mapping[str, Any]) -> list[JsonObject]:
    steps = [step.get("create") or step.get("update") for step in case["steps"]]
    return [*case["objects"], *(obj for obj in steps if obj)]


def _keeping_placement(old: JsonObject, new: JsonObject) -> JsonObject:
    """An update of a pod keeps its node, its status and the labels that came from the node."""
    labels = old["metadata"].get("labels", {})
    kept = {label: labels[label] for label in COPIED_LABELS if label in labels}
    metadata = {**new["metadata"], "labels": new["metadata"].get("labels", {}) | kept}
    spec = dict(new["spec"])
    if "nodeName" in old["spec"]:
        spec["nodeName"] = old["spec"]["nodeName"]
    status = dict(old.get("status", {}))
    if "resourceClaimStatuses" in (new.get("status") or {}):
        status["resourceClaimStatuses"] = new["status"]["resourceClaimStatuses"]
    return {**new, "metadata": metadata, "spec": spec, "status": status}


def _keeping_allocation(old: JsonObject, new: JsonObject) -> JsonObject:
    """An update of a claim keeps what was allocated, unless it says otherwise."""
    if "status" in new:
        return new
    metadata = dict(new["metadata"])
    if "finalizers" in old["metadata"]:
        metadata["finalizers"] = old["metadata"]["finalizers"]
    kept = {"status": old["status"]} if "status" in old else {}
    return {**new, "metadata": metadata, **kept}


def _extender_calls(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All calls of a step, in order."""
    outcomes = [each.get("outcome") or {} for each in step.get("attempts") or ()]
    return [call for outcome in outcomes for call in outcome.get("extenders") or ()]


UNIT = "attempts"


def replay(golden: Golden, tally: GoldenTally) -> None:
    comparison = GoldenComparison(golden.id, tally)
    theirs = golden.result.get("configError", "")
    mode = QueueReplay if "steps" in golden.case else IsolatedReplay
    try:
        options = options_of(golden.case, plain=golden.plain)
        world = mode(golden, options, tally)
    except ConfigurationError as error:
        comparison.equal(Aspect.CONFIG_ERROR, str(error), theirs)
        return
    except Exception as error:
        # Whatever our scheduler raises is a difference.
        comparison.failed(Aspect.REPLAYED, f"{type(error).__name__}: {error}", "")
        return
    if theirs:
        comparison.equal(Aspect.CONFIG_ERROR, "accepted", theirs)
        return
    compare_profiles(golden, options, comparison)
    world.run()


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case is played pod by pod or step by step, and its result is of the same make."""
    if "configError" in result:
        return
    if not isinstance(case.get("objects"), list):
        raise GoldenFormatError(
            f"{where}: case {case['id']} is of no format known here: a recording of the scheduler "
            'has a list "objects", one of an autoscaler an "hpa" or a "vpa"'
        )
    mode, made = ("steps", "steps") if "steps" in case else ("pending", "attempts")
    if not isinstance(case.get(mode), list) or not isinstance(result.get(made), list):
        raise GoldenFormatError(
            f'{where}: case {case["id"]} needs a list "pending" with "attempts" in its result, '
            'or a list "steps" with "steps" in its result'
        )
    for number, obj in enumerate(_all_objects(case)):
        if not _is_object(obj):
            raise GoldenFormatError(
                f"{where}: object {number} of case {case['id']} lacks apiVersion, kind or a name"
            )
    if made == "attempts":
        _check_pods(case["pending"], result["attempts"], f"{where}: case {case['id']}")


def _all_objects(case: JsonObject) -> list[Any]:
    """All objects that a case speaks of."""
    steps = [step for step in case.get("steps") or () if isinstance(step, dict)]
    changed = [step[verb] for step in steps for verb in ("create", "update") if verb in step]
    return [*(case.get("objects") or ()), *(case.get("pending") or ()), *changed]


def _is_object(obj: Any) -> bool:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return False
    return bool(obj.get("apiVersion") and obj.get("kind") and obj["metadata"].get("name"))


def _check_pods(pending: list[JsonObject], attempts: list[Any], where: str) -> None:
    """Every attempt is about a pod that the case creates."""
    created = {f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}" for pod in pending}
    for number, attempt in enumerate(attempts):
        pod = attempt.get("pod") if isinstance(attempt, dict) else None
        if pod not in created:
            raise GoldenFormatError(f"{where}: attempt {number} is about {pod!r}, no pending pod")
        if "outcome" not in attempt and not attempt.keys() & {"gated", "ignored", "bypassed"}:
            raise GoldenFormatError(f"{where}: attempt {number} has no outcome")
