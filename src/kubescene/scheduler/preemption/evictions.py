"""Removing the victims of a preemption.

Pods of lower priority that were nominated to the node lose their nomination [PR-13]. Then each
victim gets the condition DisruptionTarget and is deleted with its own grace; one that has a node
but waits for its binding is sent back to the queue instead [E-5]. A victim that is being deleted
already is left alone; if all are, nothing happens at all [PR-14].

While that goes on the preemptor is kept out of the active queue, except for the last victim: the
event that tells of its end may bring it back.
"""

from collections.abc import Sequence

from kubescene.api.kinds import POD
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.templates import Blueprint
from kubescene.client.interfaces import Client, ObjectRef
from kubescene.clock import Clock, format_time
from kubescene.errors import ApiError, NotFoundError
from kubescene.instruments import Instruments
from kubescene.instruments.attempts import Preemption
from kubescene.recording import Recorder
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling import notices
from kubescene.types import JsonObject

CONDITION = "DisruptionTarget"
REASON = "PreemptionByScheduler"


class VictimEvictions:
    """Makes room for pods, one preemptor at a time."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        recorder: Recorder,
        instruments: Instruments,
        *,
        nodes: NodeTable,
        nominations: Nominations,
        waiting_pods: WaitingRoom,
    ) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._instruments = instruments
        self._nodes = nodes
        self._nominations = nominations
        self._waiting_pods = waiting_pods
        self._running: dict[str, PodInfo | None] = {}
        """By preemptor, the last victim, once it is its turn."""
        self._marking: tuple[str, int, int] | None = None

    def is_running_for(self, pod: PodInfo) -> bool:
        """Whether room is being made for a pod, its last victim not yet being deleted."""
        if pod.uid not in self._running:
            return False
        last = self._running[pod.uid]
        if last is None:
            return True
        node = self._nodes.info(last.node)
        known = () if node is None else node.pods
        return any(each.uid == last.uid and not each.terminating for each in known)

    def announce(self, preemptor: PodInfo, victims: Sequence[PodInfo]) -> None:
        """Room is going to be made (`run`): from here on the preemptor is kept out. [PR-14]"""
        if not all(each.terminating for each in victims):
            self._running[preemptor.uid] = None

    def run(self, preemptor: PodInfo, node: str, victims: Sequence[PodInfo]) -> bool:
        """Remove the victims; False if a request was refused, and the preemptor should try anew."""
        remaining = [each for each in victims if not each.terminating]
        if not remaining:
            return True
        self._running[preemptor.uid] = None
        try:
            cleared = self._clear_nominations(preemptor, node)
            return self._remove_all(preemptor, node, remaining) and cleared
        finally:
            del self._running[preemptor.uid]

    def _remove_all(self, preemptor: PodInfo, node: str, victims: Sequence[PodInfo]) -> bool:
        removed = [self._remove(victim, preemptor, node) for victim in victims[:-1]]
        if not all(removed):
            return False
        self._running[preemptor.uid] = victims[-1]
        return self._remove(victims[-1], preemptor, node)

    def _clear_nominations(self, preemptor: PodInfo, node: str) -> bool:
        done = True
        for pod in self._nominations.on(node):
            if pod.priority < preemptor.priority:
                done &= self._patch(pod, {"nominatedNodeName": None})
        return done

    def _remove(self, victim: PodInfo, preemptor: PodInfo, node: str) -> bool:
        if (waiting := self._waiting_pods.get(victim.uid)) is not None:
            waiting.preempt()
            self._tell(victim, preemptor, node, " (in kube-scheduler memory).")
            return True
        try:
            record = self._delete(victim, preemptor)
        except NotFoundError:
            return True
        except ApiError:
            return False
        self._tell(victim, preemptor, node)
        preemption = Preemption(self._client.actor, record, preemptor.key)
        for hook in self._instruments.pod_preempted:
            hook(preemption)
        return True

    def _delete(self, victim: PodInfo, preemptor: PodInfo) -> Record:
        ref = ObjectRef(POD, victim.name, victim.namespace)
        blueprint, options = self._mark(victim, preemptor)
        marked = self._client.patch(
            ref,
            blueprint.body,
            patch_type=PatchType.STRATEGIC,
            subresource="status",
            options=options,
        )
        self._client.delete(ref, options=DeleteOptions(uid=victim.uid))
        return marked

    def _mark(self, victim: PodInfo, preemptor: PodInfo) -> tuple[Blueprint, WriteOptions]:
        """The patch that tells a victim why it goes; the same one for all that go together."""
        name, now = preemptor.scheduler_name, self._clock.now()
        marking = (name, now, victim.generation)
        if self._marking != marking:
            self._marking = marking
            blueprint = Blueprint({"status": {"conditions": [condition(*marking)]}})
            self._mark_of_all = (blueprint, WriteOptions(blueprint=blueprint))
        return self._mark_of_all

    def _tell(self, victim: PodInfo, preemptor: PodInfo, node: str, where: str = "") -> None:
        if self._recorder.on:
            self._recorder.tell(notices.preempted(victim, preemptor, node, where))

    def _patch(self, pod: PodInfo, status: JsonObject) -> bool:
        try:
            self._client.patch(
                ObjectRef(POD, pod.name, pod.namespace),
                {"status": status},
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except ApiError:
            return False
        return True


def condition(scheduler_name: str, now: int, generation: int) -> JsonObject:
    """Why a victim goes. [E-5]"""
    told: JsonObject = {
        "type": CONDITION,
        "status": "True",
        "reason": REASON,
        "message": f"{scheduler_name}: preempting to accommodate a higher priority pod",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
    }
    return {**told, "observedGeneration": generation} if generation else told
