"""Asking a plugin about one pod and all nodes, in either of its forms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from kubescene.errors import PluginError
from kubescene.scheduler import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    CycleState,
    NodeTable,
    PodInfo,
    Rows,
    Status,
)
from kubescene.scheduler.framework.guarded_calls import ANSWERS
from kubescene.scheduler.framework.points import implements
from kubescene.scheduler.framework.status import Code
from kubescene.testing.plugins.worlds import PluginWorld

Verdict: TypeAlias = tuple[str, tuple[str, ...]]


class WrongAnswerError(AssertionError):
    """A plugin answered with something that is no answer."""


@dataclass(slots=True)
class PodAnswers:
    """What a plugin says of one pod: by node, what Filter and Score say."""

    pre_filter: Verdict = ("SUCCESS", ())
    nodes: frozenset[str] | None = None
    filters: Mapping[str, Verdict] = field(default_factory=dict)
    pre_score: Verdict = ("SUCCESS", ())
    scores: Mapping[str, int] = field(default_factory=dict)
    normalized: Mapping[str, int] = field(default_factory=dict)

    def about(self, node: str) -> tuple[Verdict | None, int | None]:
        """What depends on one node alone."""
        return self.filters.get(node), self.scores.get(node)


def verdict(status: Status) -> Verdict:
    if not isinstance(status.code, Code):
        raise WrongAnswerError(f"a Status has the code {status.code!r}, expected a Code")
    return status.code.name, status.reasons


def call(plugin: Any, method: str, *arguments: Any) -> Any:
    """Call a method; what is no answer, or an exception, is a `WrongAnswerError`."""
    try:
        answer = getattr(plugin, method)(*arguments)
    except PluginError:
        raise
    except Exception as error:
        raise WrongAnswerError(f"{method} raised {type(error).__name__}: {error}") from error
    expected = ANSWERS.get(method)
    if expected is not None and not expected[0](answer):
        raise WrongAnswerError(f"{method} answered with {answer!r}, expected {expected[1]}")
    return answer


class Asking:
    """One attempt at one pod."""

    def __init__(self, world: PluginWorld, pod: PodInfo, nodes: NodeTable | None = None) -> None:
        self.plugin = world.plugin
        self.pod = pod
        self.nodes = world.nodes if nodes is None else nodes
        self.rows: Rows = np.arange(len(self.nodes), dtype=np.intp)
        self.state = CycleState()
        self.answers = PodAnswers()

    def all(self) -> PodAnswers:
        """All points that decide, in the form that the scheduler would use for many nodes."""
        if self.pre_filter():
            self.answers.filters = self.whole_filter()
        if self.pre_score():
            self.answers.scores = self.whole_score()
            self.answers.normalized = self.normalized(self.answers.scores)
        return self.answers

    def pre_filter(self) -> bool:
        """Run PreFilter, if there is one; whether Filter is to be asked."""
        if implements(self.plugin, "pre_filter"):
            status, names = call(self.plugin, "pre_filter", self.state, self.pod, self.nodes)
            self.answers.pre_filter, self.answers.nodes = verdict(status), names
            if not status.ok:
                return False
        return self.has("filter_nodes") or self.has("filter")

    def pre_score(self) -> bool:
        if implements(self.plugin, "pre_score"):
            status = call(self.plugin, "pre_score", self.state, self.pod, self.nodes, self.rows)
            self.answers.pre_score = verdict(status)
            if not status.ok:
                return False
        return self.has("score_nodes") or self.has("score")

    def has(self, method: str) -> bool:
        return implements(self.plugin, method)

    def whole_filter(self, rows: Rows | None = None) -> dict[str, Verdict]:
        if not self.has("filter_nodes"):
            return self.single_filter()
        rows = self.rows if rows is None else rows
        codes = call(self.plugin, "filter_nodes", self.state, self.pod, self.nodes, rows)
        if len(codes) != len(rows):
            raise WrongAnswerError(f"filter_nodes answered {len(codes)} codes for {len(rows)} rows")
        return {
            self._name(row): self._described(int(code))
            for row, code in zip(rows, codes, strict=True)
        }

    def single_filter(self) -> dict[str, Verdict]:
        infos = self.nodes.infos
        return {
            info.name: verdict(call(self.plugin, "filter", self.state, self.pod, info))
            for info in infos
        }

    def whole_score(self, rows: Rows | None = None) -> dict[str, int]:
        if not self.has("score_nodes"):
            return self.single_score()
        rows = self.rows if rows is None else rows
        scores = call(self.plugin, "score_nodes", self.state, self.pod, self.nodes, rows)
        if len(scores) != len(rows):
            raise WrongAnswerError(
                f"score_nodes answered {len(scores)} scores for {len(rows)} rows"
            )
        return {self._name(row): int(score) for row, score in zip(rows, scores, strict=True)}

    def single_score(self) -> dict[str, int]:
        infos = self.nodes.infos
        return {
            info.name: int(call(self.plugin, "score", self.state, self.pod, info)) for info in infos
        }

    def normalized(self, scores: Mapping[str, int]) -> dict[str, int]:
        """The scores as they count; each has to be within 0..100."""
        found = dict(scores)
        if self.has("normalize") and scores:
            given = np.array([*scores.values()], dtype=np.int64)
            kept = given.copy()
            made = call(self.plugin, "normalize", self.state, self.pod, given)
            if not np.array_equal(given, kept):
                raise WrongAnswerError("normalize changed the scores it was given")
            if len(made) != len(given):
                raise WrongAnswerError(f"normalize answered {len(made)} scores for {len(given)}")
            found = dict(zip(scores, made.tolist(), strict=True))
        for node, score in found.items():
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                raise WrongAnswerError(
                    f"the score of {node} is {score}: bring it into 0..100, or write normalize"
                )
        return found

    def _described(self, code: int) -> Verdict:
        if code == 0:
            return "SUCCESS", ()
        status = call(self.plugin, "describe", self.state, self.pod, code)
        if status.code is Code.SUCCESS:
            raise WrongAnswerError(f"describe calls the code {code} a success; only 0 is one")
        return verdict(status)

    def _name(self, row: Any) -> str:
        return self.nodes.infos[int(row)].name
