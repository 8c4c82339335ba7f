"""Turns what instruments see into timeline events.

Which writes are recorded follows the table "What counts" of the Scenario API: everything that
operations and controllers do, except status written by the kubelet stand-in, node status, and
objects that are bookkeeping rather than cluster state (Events, Leases, reviews).
"""

from collections.abc import Callable
from typing import Any

import orjson

from kubescene.actors import Actor
from kubescene.api.options import OperationOrigin
from kubescene.api.patches import PatchType, diff_merge_patch
from kubescene.api.records import Record, cut_revision
from kubescene.clock import Clock, ScenarioStep
from kubescene.errors import RecorderError
from kubescene.timeline.attempts import SchedulingAttempt
from kubescene.timeline.events import GENERATED_ID, TimelineEvent
from kubescene.timeline.instruments import Instrument, ObjectWrite, StepPhaseChange
from kubescene.timeline.pod_results import PodHistories
from kubescene.timeline.significance import is_significant

Sink = Callable[[TimelineEvent], None]


class TimelineRecorder(Instrument):
    """Keeps events, encoded, by major step until they are taken; ``sink`` receives each at once."""

    def __init__(self, clock: Clock, sink: Sink | None = None) -> None:
        self.events: dict[int, list[TimelineEvent]] = {}
        self.step = ScenarioStep(0, 0)
        self._clock = clock
        self._sink = sink
        self._pods = PodHistories()
        self._ordinal = 0
        self._ordinal_step = self.step

    def phase_changed(self, change: StepPhaseChange) -> None:
        self.step = change.step

    def object_written(self, write: ObjectWrite) -> None:
        self._pods.observe(write, self.step)
        if is_significant(write.actor, write.gvk, write.subresource):
            operation, body = describe_write(write)
            self.record(operation, body, actor=write.actor, origin=write.origin)

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        result = self._pods.attempted(attempt, self.step)
        operation = "PodScheduled" if attempt.node else "PodUnscheduled"
        self.record(operation, result, actor=attempt.actor)

    def record(
        self,
        operation: str,
        body: dict[str, Any],
        *,
        actor: Actor,
        origin: OperationOrigin | None = None,
    ) -> None:
        """Append one event at the current step."""
        event = TimelineEvent.encode(
            event_id=origin.id if origin else self._next_id(),
            step=self.step,
            time=self._clock.now(),
            actor=actor.name,
            operation=operation,
            body=body,
        )
        self.events.setdefault(self.step.major, []).append(event)
        if self._sink is not None:
            self._pass_on(event)

    def take(self) -> list[tuple[int, list[TimelineEvent]]]:
        """Hand over the events by major step; the recorder forgets them."""
        taken, self.events = sorted(self.events.items()), {}
        return taken

    def _pass_on(self, event: TimelineEvent) -> None:
        assert self._sink is not None
        try:
            self._sink(event)
        except OSError as error:
            raise RecorderError(
                f"the timeline could not be written at step {event.step}: {error}"
            ) from error

    def _next_id(self) -> str:
        if self._ordinal_step != self.step:
            self._ordinal_step = self.step
            self._ordinal = 0
        self._ordinal += 1
        return f"{GENERATED_ID}{self.step}-{self._ordinal}"


def describe_write(write: ObjectWrite) -> tuple[str, dict[str, Any]]:
    """The operation type and the event body of a write."""
    origin = write.origin
    if write.verb == "create":
        return "Create", {
            "operation": origin.operation if origin else {"object": write.body},
            "result": fragment(write.record),
        }
    if write.verb == "delete":
        return "Delete", {"operation": origin.operation if origin else target(write)}
    operation = origin.operation if origin else {**target(write), **described_patch(write)}
    return "Patch", {"operation": operation, "result": fragment(write.record)}


def described_patch(write: ObjectWrite) -> dict[str, str]:
    """The patch as sent; an update as the merge patch that would have done the same."""
    patch, patch_type = write.body, write.patch_type
    if write.verb == "update" and write.previous is not None:
        patch, patch_type = update_patch(write.previous, write.record), PatchType.MERGE.value
    return {"patch": orjson.dumps(patch).decode(), "patchType": patch_type}


def update_patch(old: Record, new: Record) -> Any:
    before, after = (orjson.loads(cut_revision(record.data)) for record in (old, new))
    return diff_merge_patch(before, after)


def target(write: ObjectWrite) -> dict[str, Any]:
    """The typeMeta and objectMeta that KEP-140 uses to name an object."""
    metadata = {"name": write.record.name}
    if write.record.namespace:
        metadata["namespace"] = write.record.namespace
    return {
        "typeMeta": {"apiVersion": write.gvk.api_version, "kind": write.gvk.kind},
        "objectMeta": metadata,
    }


def fragment(record: Record) -> orjson.Fragment:
    """The stored bytes without their revision, embedded as they are."""
    return orjson.Fragment(cut_revision(record.data))
