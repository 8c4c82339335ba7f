"""Queue mode: the scheduler runs as it is, and we turn the crank.

It runs on its own decisions, so a case ends at its first difference.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import SECOND
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.queue.waiting_places import Place
from kubescene.testing.goldens.acting import COPIED_LABELS
from kubescene.testing.goldens.comparing import Aspect, Comparison, Tally
from kubescene.testing.goldens.groups import compare_group
from kubescene.testing.goldens.outcomes import NOTHING_SCORED, Outcome
from kubescene.testing.goldens.recordings import Golden
from kubescene.testing.goldens.worlds import Attempt, GroupAttempt, World
from kubescene.types import JsonObject

PLACES = {
    Place.UNSCHEDULABLE: "unschedulable",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "backoff",
}


class QueueReplay:
    """One case, step by step."""

    def __init__(self, golden: Golden, options: SchedulerOptions, tally: Tally) -> None:
        self._golden = golden
        self._tally = tally
        self._comparison = Comparison(golden.id, tally)
        self._world = World(golden.case, options)
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
        Outcome(ours, self._comparison).compare(outcome, scored)

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
