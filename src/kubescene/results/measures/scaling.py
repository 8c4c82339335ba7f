"""What horizontal autoscalers decided: how often, and how often the other way round."""

from collections.abc import Callable
from itertools import pairwise

from kubescene.results.measures.measure import Measure, Value
from kubescene.results.over_time.scaling import ScalingRow, ToldRun, scaling_rows

Decisions = list[ScalingRow]


def decisions(source: ToldRun) -> Decisions:
    return [*scaling_rows(source)]


def ups(decisions: Decisions) -> int:
    return sum(each.replicas_to > each.replicas_from for each in decisions)


def downs(decisions: Decisions) -> int:
    return sum(each.replicas_to < each.replicas_from for each in decisions)


def flapping(decisions: Decisions) -> int:
    by_target: dict[tuple[str, str], list[bool]] = {}
    for each in decisions:
        is_up = each.replicas_to > each.replicas_from
        by_target.setdefault((each.namespace, each.target), []).append(is_up)
    return sum(one != other for told in by_target.values() for one, other in pairwise(told))


def if_any(of: Callable[[Decisions], int]) -> Callable[[Decisions], Value]:
    return lambda decisions: of(decisions) if decisions else None


MEASURES = tuple(
    Measure(name=name, meaning=meaning, formula=formula, unit=unit, basis=decisions, of=if_any(of))
    for name, meaning, formula, unit, of in (
        (
            "scale_ups",
            "Decisions of autoscalers for more replicas.",
            "number of decisions with replicas_to > replicas_from",
            "decisions",
            ups,
        ),
        (
            "scale_downs",
            "Decisions of autoscalers for fewer replicas.",
            "number of decisions with replicas_to < replicas_from",
            "decisions",
            downs,
        ),
        (
            "flapping",
            "How often a decision was the other way round than the one before, for one target.",
            "sum over targets of the changes of direction between neighbouring decisions",
            "reversals",
            flapping,
        ),
    )
)
