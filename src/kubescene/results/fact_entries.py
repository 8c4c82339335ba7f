"""Facts, entered into a ledger: those of a log in memory, or of one that still grows."""

from collections.abc import Callable, Iterable
from functools import singledispatch

from kubescene.api.kinds import NODE, POD
from kubescene.results.ledger import Ledger
from kubescene.results.states import States
from kubescene.timeline import (
    Advanced,
    Done,
    ExpectationsEvaluated,
    Fact,
    NotSimulated,
    ObjectCreated,
    ObjectDeleted,
    ObjectPatched,
    OperationsIgnored,
    PodAttempt,
    PodEnded,
    PodPreempted,
    ScenarioEnded,
)


class FactEntries:
    """A follower of a log that keeps a ledger."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = Ledger() if ledger is None else ledger
        self.states = States()

    def add(self, fact: Fact) -> None:
        """Take in the next fact; kinds that the ledger knows nothing of leave no trace."""
        self.ledger.at(fact.step, fact.time)
        enter(fact, self)

    def all(self, facts: Iterable[Fact]) -> Ledger:
        """The ledger of a whole run."""
        for fact in facts:
            self.add(fact)
        self.ledger.close()
        return self.ledger


@singledispatch
def enter(fact: Fact, entries: FactEntries) -> None:
    """Enter what a fact tells."""
    del fact, entries


@enter.register
def _(fact: ObjectCreated, entries: FactEntries) -> None:
    _written(fact, entries, entries.ledger.pod_created)


@enter.register
def _(fact: ObjectPatched, entries: FactEntries) -> None:
    _written(fact, entries, entries.ledger.pod_written)


def _written(
    fact: ObjectCreated | ObjectPatched, entries: FactEntries, write_pod: Callable[..., None]
) -> None:
    ledger, states = entries.ledger, entries.states
    ledger.wrote(asked=fact.origin is not None)
    if fact.gvk == POD:
        state = states.pod(fact.record.unversioned_data)
        write_pod(fact.namespace, fact.name, fact.uid, state)
    elif fact.gvk == NODE:
        ledger.node_written(fact.name, states.node(fact.record.unversioned_data))


@enter.register
def _(fact: ObjectDeleted, entries: FactEntries) -> None:
    ledger = entries.ledger
    ledger.wrote(asked=fact.origin is not None)
    ledger.deleted()
    if fact.gvk == POD:
        ledger.pod_deleted(fact.namespace, fact.name, marked=fact.marked)
    elif fact.gvk == NODE:
        ledger.node_removed(fact.name)


@enter.register
def _(fact: PodEnded, entries: FactEntries) -> None:
    entries.ledger.pod_ended(fact.namespace, fact.name)


@enter.register
def _(fact: PodAttempt, entries: FactEntries) -> None:
    entries.ledger.attempted(fact.namespace, fact.name, fact.node, fact.message)


@enter.register
def _(fact: PodPreempted, entries: FactEntries) -> None:
    entries.ledger.preempted(fact.namespace, fact.name, fact.node, fact.preempted_by)


@enter.register
def _(fact: Done | Advanced, entries: FactEntries) -> None:
    del fact
    entries.ledger.wrote(asked=True)


@enter.register
def _(fact: OperationsIgnored, entries: FactEntries) -> None:
    entries.ledger.ignored += fact.operations


@enter.register
def _(fact: ExpectationsEvaluated, entries: FactEntries) -> None:
    entries.ledger.expectations = fact.outcomes


@enter.register
def _(fact: NotSimulated, entries: FactEntries) -> None:
    entries.ledger.warnings += fact.warnings


@enter.register
def _(fact: ScenarioEnded, entries: FactEntries) -> None:
    entries.ledger.end(fact.phase, fact.message)
