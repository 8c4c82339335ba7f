"""Taints and tolerations: which taints of a node a pod puts up with."""

from collections.abc import Collection, Iterable

from kubescene.types import ReadOnlyObject

SCHEDULING_EFFECTS = ("NoSchedule", "NoExecute")
"""The effects that keep a pod away from a node."""


def tolerates(toleration: ReadOnlyObject, taint: ReadOnlyObject) -> bool:
    """Whether this toleration covers this taint.

    An empty effect or key covers all of them; an empty operator is ``Equal``. ``Lt`` and ``Gt``
    cover nothing: the feature gate TaintTolerationComparisonOperators is off by default.
    """
    if (effect := toleration.get("effect")) and effect != taint.get("effect"):
        return False
    if (key := toleration.get("key")) and key != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists")


def find_untolerated(
    taints: Iterable[ReadOnlyObject],
    tolerations: Collection[ReadOnlyObject],
    effects: Collection[str] = SCHEDULING_EFFECTS,
) -> ReadOnlyObject | None:
    """The first taint with one of ``effects`` that no toleration covers; None if there is none."""
    for taint in taints:
        if taint.get("effect") in effects and not any(
            tolerates(each, taint) for each in tolerations
        ):
            return taint
    return None
