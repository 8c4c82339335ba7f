"""Facts, entered into a ledger: those of a log in memory, or of one that still grows."""

from collections.abc import Callable, Iterable
from typing import Any

from kubescene.api.kinds import NODE, POD
from kubescene.results.ledger import Ledger
from kubescene.results.states import NodeState, States, taken_apart
from kubescene.timeline import (
    Advanced,
    Done,
    ExpectationsEvaluated,
    Fact,
    NotSimulated,
    ObjectCreated,
    ObjectDeleted,
    ObjectKept,
    ObjectPatched,
    OperationsIgnored,
    PodAttempt,
    PodEnded,
    PodPreempted,
    PodScheduled,
    PodUnscheduled,
    ScenarioEnded,
)

BINDING, STATUS = "binding", "status"


class FactEntries:
    """A follower of a log that keeps a ledger."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._states = States()
        self._enter: dict[type[Fact], Callable[[Any], None]] = {
            ObjectCreated: self._created,
            ObjectPatched: self._patched,
            ObjectDeleted: self._deleted,
            PodScheduled: self._attempted,
            PodUnscheduled: self._attempted,
            PodPreempted: self._preempted,
            PodEnded: self._pod_ended,
            Done: self._asked,
            Advanced: self._asked,
        }
        self._note: dict[type[Fact], Callable[[Any], None]] = {
            ObjectKept: self._kept,
            OperationsIgnored: self._ignored,
            ExpectationsEvaluated: self._evaluated,
            NotSimulated: self._warned,
            ScenarioEnded: self._ended,
        }

    def add(self, fact: Fact) -> None:
        """Take in the next fact; kinds that the ledger knows nothing of leave no trace."""
        enter = self._enter.get(type(fact))
        if enter is not None:
            self.ledger.at(fact.step, fact.time)
            enter(fact)
        elif (note := self._note.get(type(fact))) is not None:
            # What is told of the scenario itself happens in no step.
            self.ledger.wait_until(fact.time)
            note(fact)

    def all(self, facts: Iterable[Fact]) -> Ledger:
        """The ledger of a whole run."""
        for fact in facts:
            self.add(fact)
        self.ledger.close()
        return self.ledger

    def _created(self, fact: ObjectCreated) -> None:
        ledger = self.ledger
        ledger.wrote(asked=fact.origin is not None)
        if fact.gvk == POD:
            ledger.pod_created(
                fact.namespace, fact.name, fact.uid, self._states.new_pod(fact.record)
            )
        elif fact.gvk == NODE:
            ledger.node_written(fact.name, self._node(fact))

    def _node(self, fact: ObjectCreated | ObjectPatched) -> NodeState:
        return self._states.node(taken_apart(fact.record.unversioned_data))

    def _kept(self, fact: ObjectKept) -> None:
        ledger = self.ledger
        ledger.begin(fact.time)
        told = taken_apart(fact.record.unversioned_data)
        if fact.gvk == POD:
            ledger.pod_created(fact.namespace, fact.name, fact.uid, self._states.pod(told))
        elif fact.gvk == NODE:
            ledger.node_written(fact.name, self._states.node(told))

    def _patched(self, fact: ObjectPatched) -> None:
        ledger = self.ledger
        ledger.wrote(asked=fact.origin is not None)
        if fact.subresource == BINDING:
            ledger.pod_bound(fact.namespace, fact.name, fact.record.node)
        elif fact.gvk == POD:
            state = self._states.stored_pod(fact.record)
            ledger.pod_written(fact.namespace, fact.name, fact.uid, state)
        elif fact.gvk == NODE:
            ledger.node_written(fact.name, self._node(fact))

    def _deleted(self, fact: ObjectDeleted) -> None:
        ledger = self.ledger
        ledger.wrote(asked=fact.origin is not None)
        ledger.deleted()
        if fact.gvk == POD:
            ledger.pod_deleted(fact.namespace, fact.name, marked=fact.marked)
        elif fact.gvk == NODE:
            ledger.node_removed(fact.name)

    def _attempted(self, fact: PodAttempt) -> None:
        self.ledger.attempted(fact.namespace, fact.name, fact.node, fact.message)

    def _preempted(self, fact: PodPreempted) -> None:
        self.ledger.preempted(fact.namespace, fact.name, fact.node, fact.preempted_by)

    def _pod_ended(self, fact: PodEnded) -> None:
        self.ledger.pod_ended(fact.namespace, fact.name)

    def _asked(self, fact: Fact) -> None:
        del fact
        self.ledger.wrote(asked=True)

    def _ignored(self, fact: OperationsIgnored) -> None:
        self.ledger.ignored += fact.operations

    def _evaluated(self, fact: ExpectationsEvaluated) -> None:
        self.ledger.expectations = fact.outcomes

    def _warned(self, fact: NotSimulated) -> None:
        self.ledger.warnings += fact.warnings

    def _ended(self, fact: ScenarioEnded) -> None:
        self.ledger.end(fact.phase, fact.message)
