"""A run, entered into a ledger: fact by fact, or line by line without making facts of them.

A line is decoded in one pass into the struct that its kind of facts declares (`line_type`), with
the object still as text: a run of 50,000 pods has 160 MB. Both have the same members, so what
follows takes either; where it says a fact, its line may stand. Events of KEP-140 come as lines.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.results.cost.machines import INSTANCE
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import FEEDS, OutcomeEntry, PodEntry
from kubescene.results.over_time.entries import BUDGET, WORKLOADS
from kubescene.results.states import States, text_of
from kubescene.timeline import (
    Advanced,
    CustomFact,
    Done,
    ExpectationsEvaluated,
    Fact,
    NotSimulated,
    ObjectCreated,
    ObjectDeleted,
    ObjectKept,
    ObjectPatched,
    OperationOutcome,
    OperationsIgnored,
    PodAttempt,
    PodEnded,
    PodFact,
    PodFinished,
    PodLifeFact,
    PodPreempted,
    PodRestarted,
    PodScheduled,
    PodUnscheduled,
    ScenarioEnded,
)
from kubescene.timeline.facts import (
    DAMAGED,
    Envelope,
    LineReader,
    is_built_in,
    kind_named,
)
from kubescene.timeline.lines import line_decoder, line_type

BINDING = "binding"
POD, NODE = ("", "Pod"), ("", "Node")
SLICE, CLAIM = ("resource.k8s.io", "ResourceSlice"), ("resource.k8s.io", "ResourceClaim")
"""Kinds of objects that a ledger follows, by group."""
FOLLOWED = frozenset((POD, NODE, SLICE, CLAIM, BUDGET, INSTANCE)) | WORKLOADS
IN_STEPS = (
    ObjectCreated,
    ObjectPatched,
    ObjectDeleted,
    PodScheduled,
    PodUnscheduled,
    PodPreempted,
    PodEnded,
    PodFinished,
    PodRestarted,
    Done,
    Advanced,
    OperationOutcome,
)
"""Kinds of facts that happen in a step."""
OF_THE_RUN = (
    ObjectKept,
    OperationsIgnored,
    ExpectationsEvaluated,
    NotSimulated,
    ScenarioEnded,
)
"""Kinds that tell of the scenario itself, and belong to no step."""
KINDS = frozenset(kind.__name__ for kind in (*IN_STEPS, *OF_THE_RUN))
ENTERED_BY: dict[type[Fact], str] = {
    ObjectCreated: "_created",
    ObjectPatched: "_patched",
    ObjectDeleted: "_deleted",
    PodScheduled: "_scheduled",
    PodUnscheduled: "_attempted",
    PodPreempted: "_preempted",
    PodEnded: "_pod_ended",
    PodFinished: "_pod_finished",
    PodRestarted: "_pod_restarted",
    Done: "_asked",
    Advanced: "_asked",
    OperationOutcome: "_told",
}
NOTED_BY: dict[type[Fact], str] = {
    ObjectKept: "_kept",
    OperationsIgnored: "_ignored",
    ExpectationsEvaluated: "_evaluated",
    NotSimulated: "_warned",
    ScenarioEnded: "_ended",
}
"""Methods of `Entries`, by the kind of facts that they take."""
Takers: TypeAlias = dict[type, Callable[[Any, Any], None]]
_TAKERS: dict[type, tuple[Takers, Takers]] = {}
_LINE = line_decoder(*IN_STEPS, *OF_THE_RUN)
_OTHER = msgspec.json.Decoder(Envelope)
_NO_READER = LineReader([])


class Entries:
    """Keeps a ledger; a follower of a log, or a reader of lines."""

    def __init__(self, *, puts_off: bool = False) -> None:
        """``puts_off``: see `Ledger`."""
        self.ledger = Ledger(puts_off=puts_off)
        self._states = States()
        self._enter, self._note = takers(type(self))

    def add(self, fact: Fact) -> None:
        """Take in the next; kinds that the ledger knows nothing of leave no trace.

        Raises `ValueError` or `msgspec.DecodeError` for a line that makes no sense.
        """
        ledger, kind = self.ledger, type(fact)
        ledger.facts += 1
        enter = self._enter.get(kind)
        if enter is not None:
            ledger.at(fact.step, fact.time)
            enter(self, fact)
        elif (note := self._note.get(kind)) is not None:
            ledger.wait_until(fact.time)
            note(self, fact)
        elif isinstance(fact, CustomFact):
            self._custom(fact)

    def _custom(self, fact: CustomFact) -> None:
        self._count(fact.kind)

    def _count(self, kind: str) -> None:
        known = self.ledger.custom_facts
        known[kind] = known.get(kind, 0) + 1

    def all(self, facts: Iterable[Fact]) -> Ledger:
        """The ledger of a whole run."""
        for fact in facts:
            self.add(fact)
        self.ledger.close()
        return self.ledger

    def read(self, lines: Iterable[bytes], place: str) -> Ledger:
        """The ledger of the lines after the header; `ConfigurationError` names a damaged one."""
        decode, add = _LINE.decode, self.add
        for number, line in enumerate(lines, 2):
            try:
                add(decode(line))
            except ValueError as error:
                if not is_other(line):
                    raise damaged(place, number, error) from error
                self.ledger.facts += 1
                if not is_built_in(kind := kind_named(line)):
                    self._count(kind)
        self.ledger.close()
        return self.ledger

    # -- objects ---------------------------------------------------------------------------

    def _created(self, fact: ObjectCreated) -> None:
        self.ledger.wrote(fact.id)
        self._stored(fact, self.ledger.pod_created)

    def _kept(self, fact: ObjectKept) -> None:
        self.ledger.begin(fact.time)
        self._stored(fact, self.ledger.pod_created)

    def _patched(self, fact: ObjectPatched) -> None:
        self.ledger.wrote(fact.id)
        if fact.subresource == BINDING:
            node = self._states.bound_node(fact)
            self.ledger.pod_bound(fact.namespace, fact.name, node)
        else:
            self._stored(fact, self.ledger.pod_written)

    def _stored(
        self, fact: ObjectCreated | ObjectPatched | ObjectKept, write_pod: Callable[..., None]
    ) -> None:
        kind = fact.group_kind
        if kind not in FOLLOWED:
            return
        if kind == POD:
            write_pod(fact.namespace, fact.name, fact.uid, self._states.pod(fact))
        elif kind == NODE:
            self.ledger.node_written(fact.name, self._states.node(fact))
        elif kind == SLICE:
            self.ledger.slice_written(fact.name, text_of(fact))
        elif kind == CLAIM:
            self.ledger.claim_written(fact.namespace, fact.name, text_of(fact))
        elif kind in WORKLOADS:
            self.ledger.workload_written(kind[1], fact.namespace, fact.name, fact.uid, fact)
        elif kind == INSTANCE:
            self._machine(fact)
        elif kind == BUDGET:
            self.ledger.budget_written(fact.namespace, fact.name, text_of(fact))

    def _machine(self, fact: ObjectCreated | ObjectPatched | ObjectKept) -> None:
        self.ledger.machine_written(fact.name, fact.uid, text_of(fact))
        if body := getattr(fact, "body", b""):
            self.ledger.machine_patched(fact.name, bytes(body))

    def _deleted(self, fact: ObjectDeleted) -> None:
        self.ledger.wrote(fact.id)
        self.ledger.deleted()
        kind = fact.group_kind
        if kind == POD:
            self.ledger.pod_deleted(fact.namespace, fact.name, marked=fact.marked)
        elif kind == NODE:
            self.ledger.node_removed(fact.name)
        elif kind == SLICE:
            self.ledger.slice_removed(fact.name)
        elif kind == CLAIM and not fact.marked:
            self.ledger.claim_removed(fact.namespace, fact.name)
        elif kind == INSTANCE and not fact.marked:
            self.ledger.machine_removed(fact.name)
        elif kind in WORKLOADS:
            self.ledger.workload_removed(kind[1], fact.namespace, fact.name)
        elif kind == BUDGET:
            self.ledger.budget_removed(fact.namespace, fact.name)

    # -- pods ------------------------------------------------------------------------------

    def _attempted(self, fact: PodAttempt) -> None:
        feed(self.ledger.attempted(fact.namespace, fact.name, fact.node), PodAttempt, fact)

    def _scheduled(self, fact: PodScheduled) -> None:
        self._attempted(fact)

    def _preempted(self, fact: PodPreempted) -> None:
        pod = self.ledger.preempted(fact.namespace, fact.name, fact.node, fact.preempted_by)
        feed(pod, PodPreempted, fact)

    def _pod_ended(self, fact: PodEnded) -> None:
        self.ledger.pod_ended(fact.namespace, fact.name)

    def _pod_finished(self, fact: PodFinished) -> None:
        pod = self.ledger.pod_finished(fact.namespace, fact.name, fact.phase)
        feed(pod, PodFinished, fact)

    def _pod_restarted(self, fact: PodRestarted) -> None:
        pod = self.ledger.pod_restarted(fact.namespace, fact.name, fact.restarts)
        feed(pod, PodRestarted, fact)

    # -- the scenario ----------------------------------------------------------------------

    def _asked(self, fact: Fact) -> None:
        self.ledger.asked(fact.id)

    def _told(self, fact: OperationOutcome) -> None:
        self.ledger.told(
            OutcomeEntry(
                fact.id,
                fact.operation,
                fact.state,
                fact.subject,
                fact.message,
                fact.step,
                fact.time,
            )
        )

    def _ignored(self, fact: OperationsIgnored) -> None:
        self.ledger.ignored += fact.operations

    def _evaluated(self, fact: ExpectationsEvaluated) -> None:
        self.ledger.expectations = fact.outcomes

    def _warned(self, fact: NotSimulated) -> None:
        self.ledger.warnings += fact.warnings

    def _ended(self, fact: ScenarioEnded) -> None:
        self.ledger.end(fact.phase, fact.message)


def takers(entries: type[Entries]) -> tuple[Takers, Takers]:
    """Its methods, by what they enter and note: a fact of a kind, or its line.

    Functions, not bound methods: whoever holds its own would be let go of by the garbage collector
    alone, with its ledger.
    """
    known = _TAKERS.get(entries)
    if known is None:
        known = _TAKERS[entries] = of_both(entries, ENTERED_BY), of_both(entries, NOTED_BY)
    return known


def of_both(entries: type[Entries], names: dict[type[Fact], str]) -> Takers:
    found: Takers = {kind: getattr(entries, name) for kind, name in names.items()}
    return found | {line_type(kind): take for kind, take in found.items()}


def feed(
    pod: PodEntry | None, kind: type[PodFact | PodLifeFact], fact: PodFact | PodLifeFact
) -> None:
    """Take over what the entry of a pod says it takes from such facts."""
    if pod is not None:
        for name in FEEDS[kind]:
            setattr(pod, name, getattr(fact, name))


def attempts_in(lines: Iterable[bytes], place: str) -> Iterator[PodAttempt]:
    """The attempts of schedulers among the lines after the header."""
    kinds = (line_type(PodScheduled), line_type(PodUnscheduled))
    for number, line in enumerate(lines, 2):
        try:
            found = _LINE.decode(line)
        except DAMAGED as error:
            if not is_other(line):
                raise damaged(place, number, error) from error
            continue
        if isinstance(found, kinds):
            yield found


def custom_facts(lines: Iterable[bytes], place: str) -> Iterator[CustomFact]:
    """What controllers and plugins of users told; the other lines are not taken apart."""
    for number, line in enumerate(lines, 2):
        try:
            if not is_built_in(kind_named(line)):
                yield CustomFact.from_line(line, _NO_READER)
        except DAMAGED as error:
            raise damaged(place, number, error) from error


def is_other(line: bytes) -> bool:
    """Whether a line that cannot be read is only of a kind that results know nothing of."""
    try:
        return _OTHER.decode(line).fact not in KINDS
    except DAMAGED:
        return False


def damaged(place: str, number: int, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"{place}, line {number}: {error}: the file is damaged; play the scenario again"
    )
