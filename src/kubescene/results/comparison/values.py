"""What a comparison holds, as data."""

from enum import StrEnum

import msgspec

from kubescene.results.comparison.attribution import Attribution, Side, Why
from kubescene.results.comparison.json_differences import JsonDifference


class Cause(StrEnum):
    """Where a difference comes from."""

    SCHEDULER = "Scheduler"
    """The cluster was the same, with the same pods on it: the scheduler decided otherwise."""
    SCENARIO = "Scenario"
    """The same pods were on it, but not the same nodes or not the same scenario."""
    CONSEQUENCE = "Consequence"
    """Other pods stood elsewhere already: this follows from an earlier difference."""


class _Value(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Values are written as JSON with the names that Kubernetes would give them."""


class PlacedPod(_Value, frozen=True, kw_only=True):
    """A pod that stands elsewhere, or only in one of the runs on a node at all.

    The node is empty in a run that found none; the step is that of the attempt that counts there.
    Without ``attribution`` nobody asked: there are more of them than were looked at.
    """

    pod: str
    pod_in_b: str = ""
    """What it is called in B, if not the same."""
    node_in_a: str = ""
    node_in_b: str = ""
    step_in_a: str = ""
    step_in_b: str = ""
    message: str = ""
    """Of the last attempt in the run that found no node."""
    cause: Cause | None = None
    reconfigured: bool = False
    """Whether the plugin that is named is configured differently."""
    opinion: str | None = None
    """The node that B's scheduler takes in A's cluster, empty for none; None if nobody asked."""
    attribution: Attribution | None = None


class Divergence(_Value, frozen=True, kw_only=True):
    """Where the two runs part: the first pod that was bound differently, counted from 1.

    If they did not even bind the same pod next, ``other_pod`` is the one of B.
    """

    number: int
    pod: str = ""
    other_pod: str = ""
    node_in_a: str = ""
    node_in_b: str = ""
    step_in_a: str = ""
    step_in_b: str = ""
    cause: Cause | None = None
    attribution: Attribution | None = None


class ComparedWait(_Value, frozen=True, kw_only=True):
    """A pod that waits at the end of both runs, and is told something else in each."""

    pod: str
    in_a: str
    in_b: str


class PreemptionDifference(_Value, frozen=True, kw_only=True):
    """A pod that had to leave a node for another one in one of the runs only."""

    side: Side
    pod: str
    node: str
    preemptor: str
    step: str


class ComparedNodeUse(_Value, frozen=True, kw_only=True):
    """What a node, or all of them, offers and what pods ask of it, at the end."""

    pods: int = 0
    cpu: int = 0
    cpu_allocatable: int = 0
    memory: int = 0
    memory_allocatable: int = 0

    @property
    def cpu_share(self) -> float:
        return self.cpu / self.cpu_allocatable if self.cpu_allocatable else 0.0

    @property
    def memory_share(self) -> float:
        return self.memory / self.memory_allocatable if self.memory_allocatable else 0.0


class NodeComparison(_Value, frozen=True, kw_only=True):
    """One node in both runs; None where it does not exist at the end."""

    node: str
    a: ComparedNodeUse | None = None
    b: ComparedNodeUse | None = None


class MeasureComparison(_Value, frozen=True, kw_only=True):
    """One measure in both runs; None where there is nothing to measure."""

    measure: str
    unit: str = ""
    a: int | float | None = None
    b: int | float | None = None


class WorkloadComparison(_Value, frozen=True, kw_only=True):
    """A column of the table ``workloads`` in which a workload differs; None where it has no value.

    Of a workload that only one of the runs has, the column ``present``.
    """

    workload: str
    kind: str
    column: str
    a: int | float | str | None = None
    b: int | float | str | None = None


class ExpectationComparison(_Value, frozen=True, kw_only=True):
    """One expectation in both runs: whether it holds; None where nobody looked."""

    name: str
    in_a: bool | None = None
    in_b: bool | None = None
    why_in_a: str = ""
    """Why it does not hold there."""
    why_in_b: str = ""

    @property
    def is_fine(self) -> bool:
        """Whether there is nothing to say about it."""
        return self.in_a is True and self.in_b is True


class ComparedRun(_Value, frozen=True, kw_only=True):
    """One of the two."""

    name: str
    scenario: str
    seed: int
    version: str
    phase: str
    pods: int
    bound: int
    pending: int
    preemptions: int
    explain: str
    """How much the scenario asked to have explained."""


class Comparison(_Value, frozen=True, kw_only=True):
    """Two runs beside each other: what they were given, what came of it, and why.

    ``placed`` are first those that were placed otherwise in the same cluster, then the others, each
    in the order of A's decisions. Of those, the first ``looked_at`` have an attribution.
    """

    a: ComparedRun
    b: ComparedRun
    warnings: tuple[str, ...] = ()
    inputs: tuple[JsonDifference, ...] = ()
    inputs_known: bool = True
    """Whether both scenarios are there to be compared."""
    divergence: Divergence | None = None
    placed: tuple[PlacedPod, ...] = ()
    looked_at: int = 0
    renamed: int = 0
    """So many pods have another name in B: they were matched by who made them, and their order."""
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    waiting: tuple[ComparedWait, ...] = ()
    preemptions: tuple[PreemptionDifference, ...] = ()
    cluster: NodeComparison | None = None
    nodes: tuple[NodeComparison, ...] = ()
    """Those that are not used alike, the largest difference first."""
    nodes_alike: int = 0
    workloads: tuple[WorkloadComparison, ...] = ()
    measures: tuple[MeasureComparison, ...] = ()
    """Those that differ."""
    measures_alike: int = 0
    expectations: tuple[ExpectationComparison, ...] = ()
    """All of both runs, in the order of their authors."""

    @property
    def equal(self) -> bool:
        """Whether the same happened in both, whatever they were given."""
        differing = (self.placed, self.only_in_a, self.only_in_b, self.waiting, self.preemptions)
        return (
            not any((*differing, self.nodes, self.workloads, self.measures, self.divergence))
            and self.a.phase == self.b.phase
            and all(each.in_a == each.in_b for each in self.expectations)
        )

    @property
    def unmet(self) -> list[ExpectationComparison]:
        """Expectations that do not hold in both runs."""
        return [each for each in self.expectations if not each.is_fine]

    @property
    def moved(self) -> list[PlacedPod]:
        """Pods that have a node in both runs, and not the same one."""
        return [each for each in self.placed if each.node_in_a and each.node_in_b]

    def nowhere(self, side: Side) -> list[PlacedPod]:
        """Pods that found a node in the other run only."""
        return [
            each
            for each in self.placed
            if not (each.node_in_a if side is Side.A else each.node_in_b)
        ]

    @property
    def unexplained(self) -> dict[Side, int]:
        """How many of the pods that were looked at have no explanation in which run."""
        found = dict.fromkeys(Side, 0)
        for each in self.placed:
            if each.attribution is not None and each.attribution.why is Why.UNEXPLAINED:
                for side in each.attribution.sides:
                    found[side] += 1
        return found

    def movers(self) -> dict[str, int]:
        """How many of the moved pods that were looked at each plugin moved, the most first."""
        found: dict[str, int] = {}
        for each in self.moved:
            if each.attribution is not None and each.attribution.plugin:
                found[each.attribution.plugin] = found.get(each.attribution.plugin, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def json(self) -> bytes:
        """One object."""
        told = {"equal": self.equal, **msgspec.to_builtins(self)}
        return msgspec.json.format(msgspec.json.encode(told), indent=2)

    def __repr__(self) -> str:
        outcome = "equal" if self.equal else f"{len(self.placed)} pods placed otherwise"
        return f"<{type(self).__name__} of {self.a.name} and {self.b.name}: {outcome}>"

    def _repr_html_(self) -> str:
        from kubescene.results.notebooks import comparison_html

        return comparison_html(self)
