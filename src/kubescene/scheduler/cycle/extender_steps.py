"""The steps of a cycle in which extenders have their say: after Filter and after Score.

A cycle that waits for one stands still (`ExtenderSteps.run` says so) and goes on when it is called
again. It is a plain object that knows its next step, so that a world can be copied in the middle of
it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kubescene.api.records import Record
from kubescene.instruments.score_columns import ScoreColumn
from kubescene.scheduler.cycle.consultations import consultation
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.explanations import Diagnosis
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
from kubescene.timeline.explanations import Explain

if TYPE_CHECKING:
    from kubescene.scheduler.cycle.cycle import Cycle


class ExtenderSteps:
    """The part of a cycle that asks extenders. What is said here is made by the others."""

    __slots__ = (
        "_asked",
        "_bare",
        "_cycle",
        "_diagnosis",
        "_explain",
        "_extenders",
        "_found",
        "_next",
        "_pod",
        "_rated",
        "_scored",
        "_then",
        "_to_ask",
        "decision",
    )

    _asked: PendingCall | None
    _bare: bool
    _cycle: "Cycle"
    _diagnosis: Diagnosis
    _explain: Explain | None
    _extenders: tuple[Extender, ...]
    _found: Found
    _next: Callable[[], None] | None
    _pod: PodInfo
    _rated: NDArray[np.bool_]
    _scored: Scored
    _then: Callable[[], None]
    _to_ask: list[Extender]
    decision: Decision

    @property
    def is_waiting(self) -> bool:
        """Whether an extender has to answer before `run` can go on."""
        return self._asked is not None and not self._asked.answered

    def run(self) -> bool:
        """Go on; False as long as an extender has to answer first."""
        while (step := self._next) is not None:
            if self._asked is not None and not self._asked.answered:
                return False
            self._next = None
            step()
        return True

    def _consult(self, verb: ExtenderVerb, then: Callable[[], None]) -> None:
        """Ask the interested extenders one after the other, then go on."""
        if not self._extenders:
            then()
            return
        self._to_ask: list[Extender] = [each for each in self._extenders if verb in each.verbs]
        if not self._to_ask:
            then()
            return
        self._then = then
        take = self._take_filter if verb is ExtenderVerb.FILTER else self._take_scores
        self._ask(verb, take)

    def _ask(self, verb: ExtenderVerb, take: Callable[[], None]) -> None:
        extender = self._to_ask[0]
        infos = [self._cycle.nodes.infos[row] for row in self._found.feasible.tolist()]
        records: tuple[Record, ...] = ()
        if not extender.node_cache_capable:
            records = tuple(info.record for info in infos if info.record is not None)
        names = tuple(info.name for info in infos)
        call = ExtenderCall(extender, verb, self._pod, names, records)
        self._asked = self._cycle.extenders.ask(call)
        self._next = take

    def _answer(self) -> ExtenderAnswer:
        assert self._asked is not None
        answer, self._asked = self._asked.result(), None
        return answer

    def _take_filter(self) -> None:
        asked, extender, answer = self._asked, self._to_ask.pop(0), self._answer()
        assert asked is not None
        # Whoever sends whole nodes back may send others than it got: upstream takes them as new.
        known = self._cycle.nodes.names if answer.bare else asked.call.nodes
        error = answer.error or _foreign(extender.name, answer.nodes, known)
        self._note(asked.call, answer, error)
        if not error:
            self._apply_filter(answer)
        elif not extender.ignorable:
            self._diagnosis.error = error
        if self._to_ask and self._found.feasible.size and not self._diagnosis.error:
            self._ask(ExtenderVerb.FILTER, self._take_filter)
        else:
            self._to_ask = []
            self._then()

    def _apply_filter(self, answer: ExtenderAnswer) -> None:
        nodes, found = self._cycle.nodes, self._found
        refuse = self._diagnosis.refused_by_extender
        for name, text in answer.unresolvable.items():
            refuse(name, nodes.row_of(name), Status.unresolvable(text))
        for name, text in answer.failed.items():
            if name not in answer.unresolvable:
                refuse(name, nodes.row_of(name), Status.unschedulable(text))
        rows = [row for name in answer.nodes if (row := nodes.row_of(name)) is not None]
        self._found = Found(found.rows, found.verdicts, np.array(rows, dtype=np.intp))
        self._bare |= answer.bare

    def _take_scores(self) -> None:
        asked, extender, answer = self._asked, self._to_ask.pop(0), self._answer()
        assert asked is not None
        self._note(asked.call, answer, answer.error)
        if not answer.error:
            self._add_scores(extender, answer)
        if self._to_ask:
            self._ask(ExtenderVerb.PRIORITIZE, self._take_scores)
        else:
            self._then()

    def _note(self, call: ExtenderCall, answer: ExtenderAnswer, error: str) -> None:
        """Keep what an extender said, if somebody may want to know."""
        if self._explains(failed=True):
            record = consultation(call, answer, error)
            self.decision.extenders = [*(self.decision.extenders or ()), record]

    def _add_scores(self, extender: Extender, answer: ExtenderAnswer) -> None:
        """An extender's scores on top of those of the plugins (X-8)."""
        names = [self._cycle.nodes.names[row] for row in self._found.feasible.tolist()]
        told = [_as_int64(answer.scores.get(name, 0)) for name in names]
        scores = np.array(told, dtype=np.int64)
        weight = _as_int64(extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_SCORE))
        self._scored.totals = self._scored.totals + scores * np.int64(weight)
        self._rated |= np.array([name in answer.scores for name in names], dtype=np.bool_)
        if self._explains():
            arrays: tuple[Any, Any] = (scores, scores)
            self._scored.columns.append(ScoreColumn(extender.name, weight, *arrays))

    def _explains(self, *, failed: bool = False) -> bool:
        explain = self._explain
        return explain is not None and explain.wanted(failed=failed, nodes=len(self._cycle.nodes))


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
