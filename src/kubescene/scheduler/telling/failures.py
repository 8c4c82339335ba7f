"""What a failed attempt leaves behind: the pod's condition, and the words in it."""

from functools import lru_cache

from kubescene.api.options import NO_OPTIONS, WriteOptions
from kubescene.api.records.parts import pod_members, split_nomination, status_of
from kubescene.api.records.templates import NOMINATION, Blueprint, NominatingBlueprint
from kubescene.scheduler.cycle.decisions import UNSCHEDULABLE, Decision
from kubescene.scheduler.framework.status import Code, Status
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject, ReadOnlyObject

STATUSES_KEPT = 256


def failure_patch(pod: PodInfo, decision: Decision, now: str) -> JsonObject | None:
    """The change of status that a failed attempt asks for; None if there is none. [E-2, E-6]"""
    held = scheduled_condition(pod)
    patch: JsonObject = {}
    condition: JsonObject = {
        "type": "PodScheduled",
        "status": "False",
        "reason": decision.reason,
        "message": decision.message,
    }
    if generation := pod.generation:
        condition["observedGeneration"] = generation
    if any(held.get(field) != value for field, value in condition.items()):
        changed = held.get("status") != "False"
        moment = now if changed else held.get("lastTransitionTime", now)
        patch["conditions"] = [condition | {"lastProbeTime": None, "lastTransitionTime": moment}]
    nominated = decision.nominated
    if nominated is not None and nominated != pod.nominated_node:
        patch["nominatedNodeName"] = nominated or None
    return patch or None


def scheduled_condition(pod: PodInfo) -> JsonObject:
    """The condition that tells of the last attempt; empty if there was none."""
    members = pod_members(pod.record.payload)
    if members is None:
        return _scheduled(pod.object.get("status") or {})
    split = split_nomination(members[2])
    return _scheduled_in(members[2] if split is None else split[0])


@lru_cache(STATUSES_KEPT)
def _scheduled_in(status: bytes) -> JsonObject:
    return _scheduled(status_of(status))


def _scheduled(status: JsonObject) -> JsonObject:
    conditions = status.get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "PodScheduled"), {})


class StatusNotes:
    """What is written into pods that wait: those that do so alike, one after the other, share it.

    The registry merges and validates it once (`Blueprint`), wherever each pod is nominated to.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], WriteOptions] = {}
        """The newest of each form, by its members."""

    def of(self, patch: JsonObject) -> tuple[ReadOnlyObject, WriteOptions]:
        """The body that writes a patch of the status, and the options to write it with."""
        body: JsonObject = {"status": patch}
        if not patch or not patch.get(NOMINATION, True):
            return body, NO_OPTIONS
        form = tuple(patch)
        options = self._known.get(form)
        known = None if options is None or options.blueprint is None else options.blueprint.body
        if options is None or known is None or not _is_alike(patch, known["status"]):
            kind = NominatingBlueprint if NOMINATION in patch else Blueprint
            options = self._known[form] = WriteOptions(blueprint=kind(body))
            return body, options
        if NOMINATION not in patch:
            return known, options
        return {"status": {**known["status"], NOMINATION: patch[NOMINATION]}}, options


def _is_alike(patch: JsonObject, known: JsonObject) -> bool:
    """Whether two patches of one form differ in nothing but the nomination."""
    return all(value == known[name] for name, value in patch.items() if name != NOMINATION)


def refuse(decision: Decision, status: Status) -> None:
    """The chosen node did not work out. [M-8]"""
    if status.code.is_rejection:
        decision.plugins = (status.plugin,) if status.code is not Code.PENDING else ()
        decision.pending_plugins = (status.plugin,) if status.code is Code.PENDING else ()
        reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
        decision.fail(f"0/1 nodes are available: {reasons}.", UNSCHEDULABLE)
    else:
        decision.fail(status.message)
