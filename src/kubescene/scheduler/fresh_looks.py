"""Decisions about pods of a class that is seldom seen: nodes are looked at anew, nothing is kept.

What is kept of a class (`routine_rows`) pays if its next pod finds most of it up to date. Among a
thousand classes none does: its next pod comes to a window of nodes about which nothing is known,
or in which much has changed. Then it takes less to judge and rate the whole window by the picture
that all classes share (`paired_amounts`) than to find out what to renew.

A class that has seen as many nodes as there are, and little else happened meanwhile, is worth
keeping results for.
"""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.interfaces import Codes, Rows, Scores
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.paired_amounts import PairedAmounts, Pairs
from kubescene.scheduler.pods import PodClass, PodInfo
from kubescene.scheduler.routine_rows import Course
from kubescene.scheduler.row_results import FEW_OUTDATED, Window
from kubescene.scheduler.search import Found
from kubescene.scheduler.spec_verdicts import SharedVerdicts, SpecVerdicts
from kubescene.scheduler.verdicts import FilterChain, Filtering, judge_rows

VISITS_KEPT = 4096
NO_SCORES: NDArray[np.int8] = np.zeros((0, 0), dtype=np.int8)


class FreshLook:
    """Judges and rates nodes for one pod."""

    __slots__ = (
        "_chain",
        "_course",
        "_pairs",
        "_picture",
        "_pod",
        "_spec",
        "plain",
        "state",
        "visits",
    )

    def __init__(
        self,
        picture: PairedAmounts,
        chain: FilterChain,
        course: Course,
        pod: PodInfo,
        *,
        visits: "Visits",
        spec: SpecVerdicts,
    ) -> None:
        self._picture = picture
        self._chain = chain
        self._course = course
        self._pod = pod
        self._spec = spec
        self._pairs: Pairs | None = None
        self.state = course.state()
        self.visits = visits
        self.plain: NDArray[np.int8] = NO_SCORES
        """One line of scores per plugin, see `ClassScores`."""

    def judge(self, rows: Rows, window: Window | None = None) -> Codes:
        """One verdict per row."""
        filters = self._course.filters
        assert filters is not None
        pairs = self._pairs = self._picture.of(rows, window)
        known = None if self._spec.codes is None else self._spec.codes.take(rows)
        pod_class = self._pod.pod_class
        if all(each.passes_pairs(pod_class, pairs) for each in filters.paired):
            return np.zeros(rows.size, dtype=np.int64) if known is None else known
        verdicts = judge_rows(self.state, self._pod, filters.by_pods, self._chain.nodes, rows)
        return verdicts if known is None else np.where(known == 0, verdicts, known)

    @property
    def filtering(self) -> Filtering:
        """Who knows what the verdicts mean."""
        filters = self._course.filters
        assert filters is not None
        return Filtering(self._chain, self.state, self._pod, filters, self._chain.unkept)

    def sums(self, found: Found, *, explains: bool = False) -> Scores:
        """The totals of the feasible rows, but for what is the same for all of them.

        If somebody wants to know what they are made of, `plain` is.
        """
        scores, rows, pairs = self._course.scores, found.feasible, self._pairs
        assert scores is not None
        if found.window is None or pairs is None:
            pairs = self._picture.of(rows, None)
        pairs, pod_class = pairs.first(rows.size), self._pod.pod_class
        total = np.zeros(rows.size)
        if explains:
            self.plain = np.empty((len(scores.paired), rows.size), dtype=np.int8)
        for line, (weight, plugin) in enumerate(scores.paired):
            rated = plugin.score_pairs(pod_class, pairs)
            if explains:
                self.plain[line] = rated
            total += rated if weight == 1 else np.multiply(rated, weight, out=rated)
        return total.astype(np.int64)


class Visits:
    """What is remembered of a class: how many rows its pods have seen, and when the last came.

    ``spec`` is None if its pods need more than a fresh look.
    """

    __slots__ = ("_course", "_examined", "_position", "spec")

    def __init__(self, course: Course, spec: SpecVerdicts | None) -> None:
        self._course = course
        self._examined = 0
        self._position = -1
        self.spec = spec

    def fits(self, course: Course) -> bool:
        mine = self._course
        return mine.filters is course.filters and mine.scores is course.scores

    def are_rare(self, nodes: NodeTable) -> bool:
        """Whether too much has happened since the last pod, or that was one of the first."""
        position, self._position = self._position, nodes.changes
        if self._position - position > FEW_OUTDATED:
            self._examined = 0
        return self._examined < len(nodes)

    def saw(self, rows: int) -> None:
        """A pod of the class was placed after so many rows were examined."""
        self._examined += rows


class FreshLooks:
    """Those of one profile."""

    def __init__(self, chain: FilterChain, shared: SharedVerdicts) -> None:
        self._chain = chain
        self._nodes = nodes = chain.nodes
        self._shared = shared
        self._picture = nodes.shared(PairedAmounts)
        self._visits: OrderedDict[PodClass, Visits] = OrderedDict()

    def begin(self, course: Course, pod: PodInfo) -> FreshLook | None:
        """A look for a pod; None if what is kept of its class has to decide."""
        nodes, visits = self._nodes, self._of(course, pod)
        spec = visits.spec
        if spec is None or not visits.are_rare(nodes) or not self._picture.is_exact():
            return None
        look = FreshLook(self._picture, self._chain, course, pod, visits=visits, spec=spec)
        spec.sync(nodes, look.state, pod)
        return None if spec.rates else look

    def _of(self, course: Course, pod: PodInfo) -> Visits:
        """What is remembered of the class of a pod."""
        kept, pod_class = self._visits, pod.pod_class
        visits = kept.get(pod_class)
        if visits is None or not visits.fits(course):
            visits = kept[pod_class] = Visits(course, self._spec(course, pod))
            if len(kept) > VISITS_KEPT:
                kept.popitem(last=False)
        return visits

    def _spec(self, course: Course, pod: PodInfo) -> SpecVerdicts | None:
        """What fresh looks need to know of the node objects; None if that is not enough."""
        filters, scores, pod_class = course.filters, course.scores, pod.pod_class
        if filters is None or scores is None or not scores.rates_by_pairs:
            return None
        if len(filters.paired) != len(filters.by_pods):
            return None
        if not all(each.judges_pairs(pod_class) for each in filters.paired):
            return None
        if not all(each.rates_pairs(pod_class) for _, each in scores.paired):
            return None
        return self._shared.of(filters.by_spec, pod, scores.blind)
