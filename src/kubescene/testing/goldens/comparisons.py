"""Comparisons, counted and told.

What is compared, how often it was equal, and what was not.

An aspect is one kind of comparison; each format of recordings has its own (`Aspect` are those of
the scheduler). Every comparison counts; the first differences are kept for people to read.

Tallies for people.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubescene.types import JsonObject

LONGEST_SHOWN = 600
SHOWN_REASONS = 3


class Aspect(StrEnum):
    """What can differ in the scheduler, from coarse to fine."""

    REPLAYED = "replayed"
    CONFIG_ERROR = "config error"
    PROFILES = "profiles"
    NODE_ORDER = "node order"
    NO_CYCLE = "pods without a cycle"
    CYCLES = "order of cycles"
    PREFILTER = "prefilter"
    FILTERS = "filter verdicts"
    FEASIBLE = "feasible"
    RAW_SCORES = "raw scores"
    SCORES = "normalised scores"
    TOTALS = "totals"
    SCORE_ERROR = "score error"
    NODE = "chosen node"
    EVALUATED = "evaluated nodes"
    FOUND = "feasible nodes"
    NEXT_START = "next start"
    SCORED = "scored"
    MESSAGE = "message"
    REASON = "reason"
    PLUGINS = "plugins"
    POST_FILTER = "post filter message"
    NOMINATED = "nomination"
    VICTIMS = "victims"
    DRY_RUN = "dry run"
    PDB_VIOLATIONS = "pdb violations"
    BIND_ERROR = "bind error"
    VOLUMES = "volumes"
    ALLOCATIONS = "claim allocations"
    CLAIM_CALLS = "claim calls"
    CLAIMS_AFTER = "claims after"
    EXTENDERS = "extender requests"
    QUEUES = "queues"
    MEMBERS = "gang members"
    GROUP = "pod group condition"
    DELETED = "evicted pods"


@dataclass(frozen=True, slots=True)
class GoldenDifference:
    """One thing that is not as recorded. ``attempt`` says where in its case."""

    case: str
    attempt: str
    aspect: StrEnum
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        where = f"{self.case} {self.attempt}".rstrip()
        return (
            f"{where}: {self.aspect}\n    ours:   {shown(self.ours)}\n"
            f"    theirs: {shown(self.theirs)}"
        )

    def to_dict(self) -> JsonObject:
        return {
            "case": self.case,
            "attempt": self.attempt,
            "aspect": str(self.aspect),
            "ours": self.ours,
            "theirs": self.theirs,
        }


def shown(value: Any) -> str:
    """A value in one line that is not too long."""
    text = repr(value)
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}... ({len(text)} characters)"


@dataclass(slots=True)
class GoldenTally:
    """The comparisons of one family."""

    family: str
    unit: str = "attempts"
    cases: int = 0
    equal_cases: int = 0
    attempts: int = 0
    seconds: float = 0.0
    compared: Counter[StrEnum] = field(default_factory=Counter)
    equal: Counter[StrEnum] = field(default_factory=Counter)
    differences: int = 0
    first: list[GoldenDifference] = field(default_factory=list)
    kept: int = 10
    left_out: dict[str, str] = field(default_factory=dict)
    """Cases that could not be replayed in this way, and why."""

    def leave_out(self, case: str, why: str) -> None:
        self.left_out[case] = why

    @property
    def is_equal(self) -> bool:
        return not self.differences

    def aspects(self) -> list[tuple[StrEnum, int, int]]:
        """What was compared: how often, and how often it was equal."""
        kinds = dict.fromkeys(type(each) for each in self.compared)
        return [
            (each, self.compared[each], self.equal[each])
            for kind in kinds
            for each in kind
            if self.compared[each]
        ]

    def to_dict(self) -> JsonObject:
        return {
            "cases": self.cases,
            "equalCases": self.equal_cases,
            "attempts": self.attempts,
            "seconds": round(self.seconds, 2),
            "aspects": {
                str(aspect): {"compared": compared, "equal": equal}
                for aspect, compared, equal in self.aspects()
            },
            "differences": self.differences,
            **({"leftOut": self.left_out} if self.left_out else {}),
        }


class GoldenComparison:
    """The comparisons of one case. ``at`` says which attempt they are about."""

    def __init__(self, case: str, tally: GoldenTally) -> None:
        self.case = case
        self.at = ""
        self.differences = 0
        self._tally = tally

    def equal(self, aspect: StrEnum, ours: Any, theirs: Any) -> bool:
        """Compare one thing."""
        self._tally.compared[aspect] += 1
        if ours == theirs:
            self._tally.equal[aspect] += 1
            return True
        self._differ(aspect, ours, theirs)
        return False

    def each_equal(
        self, aspect: StrEnum, ours: Sequence[Any], theirs: Sequence[Any], names: Sequence[Any]
    ) -> bool:
        """Compare as many things as there are names; those that differ are one difference."""
        tally, count = self._tally, len(names)
        tally.compared[aspect] += count
        if ours == theirs:
            tally.equal[aspect] += count
            return True
        differing = [at for at in range(count) if ours[at] != theirs[at]]
        tally.equal[aspect] += count - len(differing)
        self._differ(
            aspect,
            {names[at]: ours[at] for at in differing},
            {names[at]: theirs[at] for at in differing},
        )
        return False

    def failed(self, aspect: StrEnum, ours: Any, theirs: Any) -> None:
        """Something cannot even be compared."""
        self._tally.compared[aspect] += 1
        self._differ(aspect, ours, theirs)

    def _differ(self, aspect: StrEnum, ours: Any, theirs: Any) -> None:
        self.differences += 1
        self._tally.differences += 1
        if len(self._tally.first) < self._tally.kept:
            self._tally.first.append(GoldenDifference(self.case, self.at, aspect, ours, theirs))


def lines(tally: GoldenTally) -> Iterator[str]:
    """One family: a heading, a line per aspect, the first differences."""
    verdict = "equal" if tally.is_equal else f"{tally.differences:,} differences"
    yield (
        f"{tally.family}: {tally.equal_cases:,} of {tally.cases:,} cases equal, "
        f"{tally.attempts:,} {tally.unit}, {verdict} ({tally.seconds:.1f} s)"
    )
    for aspect, compared, equal in tally.aspects():
        mark = "" if compared == equal else "   <-- differs"
        yield f"  {aspect:22} {equal:>9,} / {compared:,}{mark}"
    for difference in tally.first:
        yield f"  {difference}"
    if tally.left_out:
        yield f"  {len(tally.left_out):,} cases left out, which no API server has like that:"
        for why, times in Counter(tally.left_out.values()).most_common(SHOWN_REASONS):
            yield f"    {times:,}: {shown(why)}"
    if left := tally.differences - len(tally.first):
        yield f"  ... and {left:,} more differences (--differences N shows more)"
