"""What instruments are told of an attempt."""

from typing import TypeVar

from kubescene.api.records import Record
from kubescene.client.interfaces import Client
from kubescene.instruments import Instruments
from kubescene.instruments.attempts import Explanation, SchedulingAttempt
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo
from kubescene.timeline.explanations import Explain

T = TypeVar("T")


class AttemptReports:
    """Tells of attempts, as much as is wanted."""

    def __init__(
        self,
        client: Client,
        instruments: Instruments,
        explain: Explain,
        nodes: NodeTable,
        *,
        annotates: bool,
    ) -> None:
        self._client = client
        self._instruments = instruments
        self._explain = explain
        self._nodes = nodes
        self._annotates = annotates

    @property
    def wanted(self) -> Explain | None:
        """Nobody listens, nobody explains; somebody may come at any time."""
        if self._annotates:
            return Explain.FULL
        return self._explain if self._instruments.pod_attempted else None

    def tell(self, pod: PodInfo, decision: Decision, record: Record) -> None:
        """An attempt is over."""
        hooks = self._instruments.pod_attempted
        if not hooks:
            return
        attempt = SchedulingAttempt(
            actor=self._client.actor,
            pod=record,
            profile=pod.scheduler_name,
            node=decision.node,
            message=decision.message,
            reason=decision.reason,
            nominated=decision.nominated or "",
            plugins=decision.plugins,
            evaluated=decision.evaluated,
            feasible=decision.feasible,
            explanation=decision.explanation and self._explanation(decision),
            victims=tuple([victim.record for victim in decision.victims]),
            preemption=decision.preemption,
            traceback=decision.traceback,
            extenders=self._beside(decision, decision.extenders) if decision.extenders else (),
            waits=self._beside(decision, decision.waits) if decision.waits else (),
        )
        for hook in hooks:
            hook(attempt)

    def _explanation(self, decision: Decision) -> Explanation | None:
        """Annotations explain every attempt to themselves; to others only what they want."""
        if not self._annotates:
            return decision.explanation
        return decision.explanation if self._explains(decision) else None

    def _beside(self, decision: Decision, records: list[T]) -> tuple[T, ...]:
        """What is told beside the nodes: with the failures, or where successes are explained."""
        return tuple(records) if self._explains(decision) else ()

    def _explains(self, decision: Decision) -> bool:
        return self._explain.wanted(failed=not decision.node, nodes=len(self._nodes))
