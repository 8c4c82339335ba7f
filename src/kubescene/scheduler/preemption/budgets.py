"""PodDisruptionBudgets, as preemption sees them: advice that it may disregard. [PR-7]"""

from collections.abc import Sequence

from msgspec import Struct

from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import NOTHING, LabelSelector, SelectorError, from_label_selector
from kubescene.scheduler.framework.interfaces import Lister
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

DISRUPTION_BUDGET = GroupVersionKind("policy", "v1", "PodDisruptionBudget")


class Budget(Struct, frozen=True):
    """How many of the pods that it selects may go; those in ``disrupted`` count as gone."""

    namespace: str
    selector: LabelSelector
    allowed: int
    disrupted: frozenset[str]

    def covers(self, pod: PodInfo) -> bool:
        return (
            self.namespace == pod.namespace
            and self.selector.matches(pod.labels)
            and pod.name not in self.disrupted
        )


class DisruptionBudgets:
    """All budgets, read when one of them has changed."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._current: tuple[Budget, ...] = ()
        self.version = lister.version
        """Another one whenever a budget has come, gone or changed. As of the last `refresh`."""
        self._read()

    def refresh(self) -> None:
        if self.version != self._lister.version:
            self.version = self._lister.version
            self._read()

    def _read(self) -> None:
        self._current = tuple(map(budget_of, self._lister.list()))

    def split(self, pods: Sequence[PodInfo]) -> tuple[Sequence[PodInfo], Sequence[PodInfo]]:
        """Those whose removal would violate a budget, and the others; order is kept.

        Removals count in the order of ``pods``.
        """
        if not self._current:
            return (), pods
        left = [budget.allowed for budget in self._current]
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            (violating if self._violates(pod, left) else others).append(pod)
        return violating, others

    def _violates(self, pod: PodInfo, left: list[int]) -> bool:
        """Count a removal in ``left``; all budgets that cover the pod are charged."""
        violated = False
        for at, budget in enumerate(self._current if pod.labels else ()):
            if budget.covers(pod):
                left[at] -= 1
                violated |= left[at] < 0
        return violated


def budget_of(obj: ReadOnlyObject) -> Budget:
    status = obj.get("status") or {}
    return Budget(
        obj["metadata"].get("namespace", ""),
        _selector((obj.get("spec") or {}).get("selector")),
        status.get("disruptionsAllowed") or 0,
        frozenset(status.get("disruptedPods") or ()),
    )


def _selector(selector: ReadOnlyObject | None) -> LabelSelector:
    """An absent, empty or unreadable selector selects nothing."""
    if not selector:
        return NOTHING
    try:
        found = from_label_selector(selector)
    except SelectorError:
        return NOTHING
    return NOTHING if found.is_everything else found
