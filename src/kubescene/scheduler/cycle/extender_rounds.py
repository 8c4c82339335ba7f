"""What extenders say in a cycle: after Filter, about the nodes that are left, and after Score.

A round asks the interested ones one after the other. It is a plain object that knows whom it has
yet to ask, so that a world can be copied while one of them thinks.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubescene.api.records import Record
from kubescene.instruments.score_columns import ScoreColumn
from kubescene.scheduler.cycle.consultations import consultation
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.explanations import Diagnosis
from kubescene.scheduler.cycle.profile_cycles import ProfileCycles
from kubescene.scheduler.cycle.scoring import Scored
from kubescene.scheduler.cycle.search import Found
from kubescene.scheduler.extenders.extenders import (
    MAX_EXTENDER_SCORE,
    Extender,
    ExtenderAnswer,
    ExtenderCall,
    ExtenderVerb,
    PendingCall,
)
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.state.pods import PodInfo


class ExtenderRound:
    """One question to several extenders, about the nodes that are left. Two kinds are below."""

    verb: ExtenderVerb

    def __init__(
        self,
        cycle: ProfileCycles,
        pod: PodInfo,
        decision: Decision,
        extenders: Sequence[Extender],
        found: Found,
        *,
        notes: bool,
    ) -> None:
        self.found = found
        self._cycle = cycle
        self._pod = pod
        self._decision = decision
        self._notes = notes
        self._to_ask = [each for each in extenders if self.verb in each.verbs]
        self._asked: PendingCall | None = None
        if self._to_ask:
            self._ask()

    @property
    def is_waiting(self) -> bool:
        """Whether an extender has to answer first."""
        return self._asked is not None and not self._asked.answered

    def take(self) -> bool:
        """Take the answer that is there and ask the next one; False if nobody is left to ask."""
        if self._asked is None:
            return False
        answer, call = self._asked.result(), self._asked.call
        self._asked = None
        goes_on = self._heard(self._to_ask.pop(0), call, answer)
        if self._to_ask and goes_on:
            self._ask()
            return True
        return False

    def _heard(self, extender: Extender, call: ExtenderCall, answer: ExtenderAnswer) -> bool:
        """Take an answer; returns whether there is a point in asking others."""
        raise NotImplementedError

    def _ask(self) -> None:
        extender = self._to_ask[0]
        infos = [self._cycle.nodes.infos[row] for row in self.found.feasible.tolist()]
        records: tuple[Record, ...] = ()
        if not extender.node_cache_capable:
            records = tuple(info.record for info in infos if info.record is not None)
        names = tuple(info.name for info in infos)
        call = ExtenderCall(extender, self.verb, self._pod, names, records)
        self._asked = self._cycle.extenders.ask(call)

    def _note(self, call: ExtenderCall, answer: ExtenderAnswer, error: str) -> None:
        """Keep what an extender said, if somebody may want to know."""
        if self._notes:
            note(self._decision, call, answer, error)


class FilterRound(ExtenderRound):
    """Extenders refuse nodes; those that are left are ``found``."""

    verb = ExtenderVerb.FILTER

    def __init__(self, *arguments: Any, diagnosis: Diagnosis, notes: bool) -> None:
        self._diagnosis = diagnosis
        self.bare = False
        """Whether an extender sent whole nodes back, without what runs on them (X-5)."""
        super().__init__(*arguments, notes=notes)

    def _heard(self, extender: Extender, call: ExtenderCall, answer: ExtenderAnswer) -> bool:
        # Whoever sends whole nodes back may send others than it got: upstream takes them as new.
        known = self._cycle.nodes.names if answer.bare else call.nodes
        error = answer.error or _foreign(extender.name, answer.nodes, known)
        self._note(call, answer, error)
        if not error:
            self._apply(answer)
        elif not extender.ignorable:
            self._diagnosis.error = error
        return bool(self.found.feasible.size) and not self._diagnosis.error

    def _apply(self, answer: ExtenderAnswer) -> None:
        nodes, found = self._cycle.nodes, self.found
        refuse = self._diagnosis.refused_by_extender
        for name, text in answer.unresolvable.items():
            refuse(name, nodes.row_of(name), Status.unresolvable(text))
        for name, text in answer.failed.items():
            if name not in answer.unresolvable:
                refuse(name, nodes.row_of(name), Status.unschedulable(text))
        rows = [row for name in answer.nodes if (row := nodes.row_of(name)) is not None]
        self.found = Found(found.rows, found.verdicts, np.array(rows, dtype=np.intp))
        self.bare |= answer.bare


class ScoreRound(ExtenderRound):
    """Extenders rate nodes on top of the plugins (X-8)."""

    verb = ExtenderVerb.PRIORITIZE

    def __init__(
        self,
        cycle: ProfileCycles,
        pod: PodInfo,
        decision: Decision,
        extenders: Sequence[Extender],
        found: Found,
        *,
        scored: Scored,
        notes: bool,
        explains: bool,
    ) -> None:
        # Who does not rate nodes gives all of them nothing, which counts as a score.
        silent = any(ExtenderVerb.PRIORITIZE not in each.verbs for each in extenders)
        self.rated: NDArray[np.bool_] = np.full(found.feasible.size, silent, dtype=np.bool_)
        self._scored = scored
        self._explains = explains
        super().__init__(cycle, pod, decision, extenders, found, notes=notes)

    def _heard(self, extender: Extender, call: ExtenderCall, answer: ExtenderAnswer) -> bool:
        self._note(call, answer, answer.error)
        if not answer.error:
            self._add(extender, answer)
        return True

    def _add(self, extender: Extender, answer: ExtenderAnswer) -> None:
        names = [self._cycle.nodes.names[row] for row in self.found.feasible.tolist()]
        told = [_as_int64(answer.scores.get(name, 0)) for name in names]
        scores = np.array(told, dtype=np.int64)
        weight = _as_int64(extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_SCORE))
        self._scored.totals = self._scored.totals + scores * np.int64(weight)
        self.rated |= np.array([name in answer.scores for name in names], dtype=np.bool_)
        if self._explains:
            arrays: tuple[Any, Any] = (scores, scores)
            self._scored.columns.append(ScoreColumn(extender.name, weight, *arrays))


def note(decision: Decision, call: ExtenderCall, answer: ExtenderAnswer, error: str) -> None:
    """Keep what an extender said with the decision."""
    decision.extenders = [*(decision.extenders or ()), consultation(call, answer, error)]


def _as_int64(number: int) -> int:
    """A number as Go's arithmetic leaves it, for extenders that exaggerate."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _foreign(extender: str, answered: Iterable[str], asked: Iterable[str]) -> str:
    """The error of an extender that answers with nodes it was not asked about (X-4)."""
    known = set(asked)
    for name in answered:
        if name not in known:
            return (
                f'extender "{extender}" claims a filtered node "{name}" which is not found in the '
                "input node list"
            )
    return ""
