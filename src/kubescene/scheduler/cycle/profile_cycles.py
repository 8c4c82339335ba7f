"""What cycles of one profile share: the node table, its plugins, the start of the next search.

A `FastPath` may know the outcome of a cycle, or of some of its steps, without them.
"""

from collections.abc import Callable, Hashable

import numpy as np

from kubescene.clock import Clock, Stream, VirtualClock
from kubescene.scheduler.cycle.batching import Batch, Signing
from kubescene.scheduler.cycle.fast_path import FastPath, StepByStep
from kubescene.scheduler.cycle.preparation import PreFilterOutcome, Preparing
from kubescene.scheduler.cycle.scoring import ScoreChain, Scored
from kubescene.scheduler.cycle.search import Found, StartIndex
from kubescene.scheduler.cycle.suppositions import BareNodes, Supposition
from kubescene.scheduler.cycle.trials import TryingOut
from kubescene.scheduler.cycle.verdicts import FilterChain, Filtering
from kubescene.scheduler.extenders.extenders import (
    NO_EXTENDERS,
    Extenders,
)
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.informers import Informers
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodInfo


class ProfileCycles:
    """What is common to them. The start index of the search is shared by all profiles.

    Ties between nodes that an extender had a look at are broken by ``random``.
    """

    def __init__(
        self,
        framework: Framework,
        nodes: NodeTable,
        nominations: Nominations,
        start: StartIndex,
        *,
        extenders: Extenders = NO_EXTENDERS,
        random: Stream | None = None,
        informers: Informers | None = None,
        clock: Clock | None = None,
        fast: "Callable[[ProfileCycles], FastPath] | None" = None,
    ) -> None:
        self.framework = framework
        self.nodes = nodes
        self.nominations = nominations
        self.start = start
        self.extenders = extenders
        self.random = random or Stream(0)
        self.filters = FilterChain(framework.filters, nodes, framework.pre_filter)
        self.scores = ScoreChain(framework.scores, nodes)
        self._ring: Rows = np.zeros(0, dtype=np.intp)
        self._ring_layout = -1
        self._preparing = Preparing(framework, nodes)
        self._informers = informers
        signing = Signing(framework, possible=extenders.is_empty)
        self.batch = Batch(signing, clock or VirtualClock())
        self.fast = StepByStep() if fast is None else fast(self)
        """Who may know the outcome of a cycle without it."""

    def stamp(self) -> Hashable:
        """Another one whenever something has changed that a decision may depend on."""
        others = 0 if self._informers is None else self._informers.version
        nodes = self.nodes
        return (nodes.version, nodes.layout, self.nominations.version, others, self.start.index)

    def suppose(self, state: CycleState, pod: PodInfo) -> Supposition:
        """Filter for a pod under other circumstances; its PreFilters have run."""
        filtering = self.filter(state, pod)
        return Supposition(filtering, self.nodes, self.nominations, pod)

    def try_out(self, state: CycleState, pod: PodInfo) -> TryingOut:
        """Filter for a pod as if others were gone; its PreFilters have run."""
        filtering = self.filter(state, pod)
        return TryingOut(filtering, self.nodes, self.nominations, pod)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterOutcome:
        """What the PreFilters say about a pod."""
        return self._preparing.pre_filter(state, pod)

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> str:
        """Run PreScore; returns the text of what went wrong or is bound to, or nothing."""
        fault = self._preparing.pre_score(state, pod, rows)
        return fault or self.framework.unprepared.scoring

    def filter(self, state: CycleState, pod: PodInfo) -> Filtering:
        """Filter for one attempt; the PreFilters have run."""
        return self.fast.filtering(state, pod) or self.filters.begin(state, pod)

    def score(
        self, state: CycleState, pod: PodInfo, found: Found, *, explain: bool = False
    ) -> Scored:
        """Rate the nodes that passed; the PreScores have run."""
        rows, window = found.feasible, found.window
        known = self.fast.score(state, pod, rows, window, explain=explain)
        return known or self.scores.score(state, pod, rows, explain=explain)

    def bare_scores(self) -> ScoreChain:
        """The Score plugins over nodes on which nothing runs (X-5)."""
        return ScoreChain(self.framework.scores, BareNodes(self.nodes))

    def candidates(self, names: frozenset[str] | None) -> Rows:
        """The rows to search, twice in a row."""
        nodes = self.nodes
        if names is not None:
            rows = sorted(row for name in names if (row := nodes.row_of(name)) is not None)
            return np.array([*rows, *rows], dtype=np.intp)
        if self._ring_layout != nodes.layout:
            self._ring = np.tile(np.arange(len(nodes), dtype=np.intp), 2)
            self._ring_layout = nodes.layout
        return self._ring
