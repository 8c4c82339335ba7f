"""What a scheduler outside did, told as attempts: from its writes, since it tells nothing else.

A binding is an attempt that succeeded, a condition ``PodScheduled=False`` one that failed, a pod
that it deletes a victim. Which nodes it looked at and why it chose is not known.
"""

from collections.abc import Callable, Collection
from typing import Any

from kubescene.api.kinds import POD
from kubescene.api.records import Record
from kubescene.instruments.attempts import Preemption, SchedulingAttempt
from kubescene.scenario.outside import scheduler_of
from kubescene.timeline import Instrument, Instruments, ObjectWrite


class OutsideAttempts(Instrument):
    """Listens to the writes of schedulers outside and passes on what they mean."""

    def __init__(self, instruments: Instruments, schedulers: Collection[str]) -> None:
        """``schedulers``: their names as controllers."""
        self._instruments = instruments
        self._schedulers = schedulers
        self._preemptor: dict[str, str] = {}
        """Who was nominated last, NAMESPACE/NAME, by node."""

    def object_written(self, write: ObjectWrite) -> None:
        if write.gvk != POD or write.actor.name not in self._schedulers:
            return
        if write.verb == "bind":
            self._attempted(write, node=write.record.node)
        elif write.verb == "delete":
            self._preempted(write)
        elif write.subresource == "status" and (failure := failure_of(write)):
            self._attempted(write, **failure)

    def _attempted(self, write: ObjectWrite, **told: Any) -> None:
        if nominated := told.get("nominated"):
            self._preemptor[nominated] = f"{write.record.namespace}/{write.record.name}"
        profile = scheduler_of(write.record.decode())
        attempt = SchedulingAttempt(write.actor, write.record, profile, **told)
        for hook in self._instruments.pod_attempted:
            hook(attempt)

    def _preempted(self, write: ObjectWrite) -> None:
        pod: Record = write.record
        preemption = Preemption(write.actor, pod, self._preemptor.get(pod.node, ""))
        hook: Callable[[Preemption], None]
        for hook in self._instruments.pod_preempted:
            hook(preemption)


def failure_of(write: ObjectWrite) -> dict[str, str] | None:
    """What a status says of a failed attempt; None if it is about something else."""
    if "PodScheduled" not in str(write.body):
        return None
    status = write.record.decode().get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return {
                "message": condition.get("message", ""),
                "reason": condition.get("reason", ""),
                "nominated": status.get("nominatedNodeName", ""),
            }
    return None
