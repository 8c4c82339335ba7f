"""What the page shows, as plain data: collected from a run, embedded for the scripts.

Everything is bounded here, so the page stays small whatever the run was; ``..._total`` say how many
there are.
"""

import msgspec

ABSENT = 255
"""A cell of the heat map where there was no such node."""
LEVELS_PER_PERCENT = 2
MOST = 250
"""The largest level: 125 % or more."""


class Struct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How all of them are written."""


class Headline(Struct, frozen=True):
    """What was played, by what, and how it ended."""

    scenario: str
    phase: str
    message: str = ""
    seed: int = 0
    version: str = ""
    started: str = ""
    ended: str = ""
    duration_s: float = 0
    facts: int = 0
    steps: int = 0
    warnings: tuple[str, ...] = ()
    """What is wrong with the record of the run, not with the run."""
    verdict: str = ""
    """What expectations say, if they do not hold."""
    story: str = ""
    """What came of it, in a sentence."""


class Figure(Struct, frozen=True):
    """A number of the headline, in words; ``share`` draws a gauge, ``tone`` colours it."""

    name: str
    value: str
    note: str = ""
    share: float | None = None
    tone: str = ""


class MeasureView(Struct, frozen=True):
    """One measure of the run; ``about`` is its definition in a sentence."""

    name: str
    value: str
    unit: str = ""
    about: str = ""


class StepView(Struct, frozen=True):
    """One major step, or several from ``first`` on; ``what`` are the first of their operations."""

    first: int
    step: int
    time: str = ""
    minor: int = 0
    operations: int = 0
    writes: int = 0
    bound: int = 0
    unschedulable: int = 0
    """Pods that were tried in it and still wait."""
    failed: int = 0
    """Attempts that found no node."""
    deleted: int = 0
    preempted: int = 0
    waiting: int = 0
    nodes: int = 0
    what: tuple[str, ...] = ()


class MarkView(Struct, frozen=True, array_like=True):
    """What kept pods away from a node at the end of some columns, from the first to the last."""

    node: int
    first: int
    last: int
    text: str


class Heat(Struct, frozen=True):
    """Nodes over steps. ``levels`` has for each resource the rows of all nodes, one byte a cell.

    A cell is two per percent of what the node offers, at most `MOST`, or `ABSENT`: the highest at
    any moment of the step. ``ends`` are those of its end, where they are not the same everywhere.
    ``columns`` are the major steps shown, which are not all if there are very many; the highest of
    those between is not lost. ``allocatable`` is by resource and node, in the units of ``units``;
    ``whole`` and ``whole_ends`` are tenths of a percent of all that the cluster offers, -1 if that
    is nothing. ``marks`` say which nodes kept pods away, and when.
    """

    columns: tuple[int, ...] = ()
    resources: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    levels: tuple[bytes, ...] = ()
    allocatable: tuple[tuple[str, ...], ...] = ()
    whole: tuple[tuple[int, ...], ...] = ()
    ends: tuple[bytes, ...] = ()
    whole_ends: tuple[tuple[int, ...], ...] = ()
    marks: tuple[MarkView, ...] = ()


class Reason(Struct, frozen=True):
    """A part of a scheduler's message: so many nodes said this."""

    nodes: int
    text: str


class WaitingView(Struct, frozen=True):
    """Pods that wait at the end for the same reason."""

    message: str
    total: int
    pods: tuple[str, ...]
    attempts: int = 0
    nodes: int = 0
    reasons: tuple[Reason, ...] = ()
    rest: str = ""
    decision: int | None = None
    """Which of the decisions explains one of them."""


class LateBinding(Struct, frozen=True):
    """A pod that had to wait before it was bound."""

    pod: str
    node: str
    waited: str
    attempts: int
    created: str
    bound: str


class Preempted(Struct, frozen=True):
    """Who had to leave for whom."""

    step: str
    preemptor: str
    node: str
    victims: tuple[str, ...]
    criterion: str = ""


class ExpectationView(Struct, frozen=True):
    """One of the scenario's expectations and what became of it."""

    name: str
    holds: bool
    expression: str = ""
    message: str = ""
    error: str = ""
    """Why the expression has no value."""
    seen: str = ""
    """The values that were found instead."""


class OutcomeView(Struct, frozen=True):
    """What came of an operation that takes time, or of a part of it."""

    operation: str
    time: str
    """Empty if no time passes."""
    state: str
    message: str


class RowView(Struct, frozen=True):
    """A node that fitted: its scores, weighted, one per plugin."""

    node: str
    total: int | None = None
    scores: tuple[int, ...] = ()


class RefusalView(Struct, frozen=True):
    """Nodes that one plugin refused for one reason."""

    plugin: str
    reasons: str
    total: int
    nodes: tuple[str, ...]


class TrialView(Struct, frozen=True):
    """A node on which preemption was tried."""

    node: str
    verdict: str
    victims: tuple[str, ...] = ()
    violations: int = 0


class DecisionView(Struct, frozen=True):
    """One attempt at one pod, with why it is worth a look (``tags``) and what was said about it."""

    pod: str
    step: str
    time: str = ""
    attempt: int = 1
    attempts: int = 1
    node: str = ""
    nominated: str = ""
    message: str = ""
    tags: tuple[str, ...] = ()
    explained: bool = False
    evaluated: int = 0
    feasible: int = 0
    plugins: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    rows: tuple[RowView, ...] = ()
    refusals: tuple[RefusalView, ...] = ()
    preemption: str = ""
    criterion: str = ""
    trials: tuple[TrialView, ...] = ()
    told: tuple[str, ...] = ()
    """What extenders said and what the pod waited for, a line each."""
    traceback: str = ""


class NodeAtEnd(Struct, frozen=True):
    """A node as the run left it: percent of what it offers, and the amounts in words."""

    name: str
    marks: str = ""
    shares: tuple[float, ...] = ()
    amounts: tuple[str, ...] = ()


class SpanView(Struct, frozen=True, array_like=True):
    """From when until when, in thousandths of the run."""

    begin: int
    end: int


class WorkloadView(Struct, frozen=True):
    """A workload in words, and its pods in equal parts of the run, with how many it wants.

    ``short``: it lacks pods at the end, or its roll-out is not over.
    """

    name: str
    kind: str
    short: bool = False
    ready: str = ""
    least: str = ""
    rollout: str = ""
    below: str = ""
    restarts: int = 0
    completions: int = 0
    failures: int = 0
    levels: tuple[int, ...] = ()
    desired: tuple[int, ...] = ()
    rollouts: tuple[SpanView, ...] = ()
    spans_below: tuple[SpanView, ...] = ()
    gone: bool = False


class BudgetView(Struct, frozen=True):
    """A PodDisruptionBudget and for how long it was not kept."""

    name: str
    workloads: str
    healthy: str
    least: str
    times: int
    below: str


class SeriesView(Struct, frozen=True):
    """A line; ``step`` keeps its value until the next point, a ``level`` lies across the chart.

    ``dots`` are not joined, what is on the ``right`` has an axis there.
    """

    name: str
    tone: str
    points: tuple[tuple[float, float], ...]
    step: bool = False
    level: bool = False
    dots: bool = False
    right: bool = False


class ChartView(Struct, frozen=True):
    """A chart; times are in seconds since the beginning."""

    title: str
    unit: str
    series: tuple[SeriesView, ...]
    right_unit: str = ""


class DecidedView(Struct, frozen=True):
    """What somebody decided, and why."""

    at: float
    who: str
    what: str
    why: str = ""


class OverTimeView(Struct, frozen=True):
    """All charts have the same axis."""

    end: float = 0
    charts: tuple[ChartView, ...] = ()
    decisions: tuple[DecidedView, ...] = ()
    decisions_total: int = 0


class GroupCostView(Struct, frozen=True):
    """What the machines of a group cost, in words; ``shares`` say what for."""

    group: str
    instances: str
    most: str
    failed: str
    hours: str
    cost: str
    shares: tuple[str, ...]


class CostLineView(Struct, frozen=True):
    """What an hour costs from each time on, in seconds."""

    group: str
    points: tuple[tuple[float, float], ...]


class CostView(Struct, frozen=True):
    """The bill. Without a total there are prices in several currencies."""

    currency: str
    total: str
    groups: tuple[GroupCostView, ...]
    groups_total: int
    lines: tuple[CostLineView, ...]


class Contents(Struct, frozen=True):
    """The whole page."""

    headline: Headline
    figures: tuple[Figure, ...] = ()
    measures: tuple[MeasureView, ...] = ()
    expectations: tuple[ExpectationView, ...] = ()
    outcomes: tuple[OutcomeView, ...] = ()
    """The last ones."""
    outcomes_total: int = 0
    steps: tuple[StepView, ...] = ()
    heat: Heat = Heat()
    nodes: tuple[NodeAtEnd, ...] = ()
    nodes_total: int = 0
    waiting: tuple[WaitingView, ...] = ()
    waiting_total: int = 0
    waiting_groups: int = 0
    late: tuple[LateBinding, ...] = ()
    late_total: int = 0
    preemptions: tuple[Preempted, ...] = ()
    preemptions_total: int = 0
    workloads: tuple[WorkloadView, ...] = ()
    workloads_total: int = 0
    budgets: tuple[BudgetView, ...] = ()
    over_time: OverTimeView = OverTimeView()
    cost: CostView | None = None
    decisions: tuple[DecisionView, ...] = ()
    decisions_total: int = 0
    warnings: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    ignored_total: int = 0
