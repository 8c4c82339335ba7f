"""PodDisruptionBudgets, as far as they keep nodes from being given up."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kubescene.api.disruption_budgets import budget_selector
from kubescene.api.selectors.label_selectors import LabelSelector
from kubescene.karpenter.pods import PodSeen
from kubescene.types import ReadOnlyObject


class PodBudget(NamedTuple):
    key: str
    namespace: str
    selector: LabelSelector
    allowed: int
    blocks_always: bool
    ignores_unready: bool


class EvictionBudgets:
    """All budgets at one moment."""

    def __init__(self, budgets: Iterable[ReadOnlyObject] = ()) -> None:
        self._budgets = [_budget(each) for each in budgets]

    def blocking(self, pods: Iterable[PodSeen], now: int) -> Sequence[str]:
        """The budgets that forbid to evict one of these pods now."""
        for each in pods:
            if found := self._blocking(each, now, lambda budget: budget.allowed == 0):
                return found
        return ()

    def is_currently_reschedulable(self, pod: PodSeen, now: int) -> bool:
        """Whether it will have to go elsewhere: nothing keeps it where it is for good."""
        if not pod.is_reschedulable or (pod.is_active and pod.is_protected(now)):
            return False
        return not self._blocking(pod, now, lambda budget: budget.blocks_always)

    def _blocking(
        self, pod: PodSeen, now: int, blocks: Callable[[PodBudget], bool]
    ) -> Sequence[str]:
        if not pod.is_evictable(now):
            return ()
        found = [
            each
            for each in self._budgets
            if each.namespace == pod.namespace and each.selector.matches(pod.labels)
        ]
        if len(found) > 1:
            return [each.key for each in found]
        for each in found:
            if each.ignores_unready and _is_unready(pod):
                return ()
            if blocks(each):
                return [each.key]
        return ()


def _budget(obj: ReadOnlyObject) -> PodBudget:
    spec, metadata = obj.get("spec") or {}, obj["metadata"]
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    return PodBudget(
        f"{metadata['namespace']}/{metadata['name']}",
        metadata["namespace"],
        budget_selector(obj),
        int((obj.get("status") or {}).get("disruptionsAllowed", 0)),
        most in (0, "0%") or least == "100%",
        spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
    )


def _is_unready(pod: PodSeen) -> bool:
    return any(
        each.get("type") == "Ready" and each.get("status") == "False"
        for each in pod.status.get("conditions") or ()
    )
