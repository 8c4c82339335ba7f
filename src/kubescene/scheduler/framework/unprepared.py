"""What becomes of a plugin that runs at a point without the one that prepares it (G-10).

A configuration may leave a plugin at Filter and take it away from PreFilter. Some of upstream's
plugins then work out what they need, others fail the cycle, each in its own words.
"""

from collections.abc import Mapping

from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.profile import ExtensionPoint, Profile
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.pods import PodInfo

_NOT_FOUND = "not found"

_WITHOUT_PRE_FILTER: Mapping[str, str] = {
    "DynamicResources": _NOT_FOUND,
    "InterPodAffinity": 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
    "NodeDeclaredFeatures": (
        'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    ),
    "NodePorts": 'reading "PreFilterNodePorts" from cycleState: not found',
    "NodeResourcesFit": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    "PodTopologySpread": 'reading "PreFilterPodTopologySpread" from cycleState: not found',
    "VolumeBinding": _NOT_FOUND,
    "VolumeRestrictions": 'cannot read "PreFilterVolumeRestrictions" from cycleState',
}
_WITHOUT_PRE_SCORE: Mapping[str, str] = {
    "InterPodAffinity": 'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    "PodTopologySpread": 'error reading "PreScorePodTopologySpread" from cycleState: not found',
    "TaintToleration": 'failed to read "PreScoreTaintToleration" from cycleState: not found',
}
_SCORES_FROM_PRE_FILTER = ("DynamicResources",)
_RESERVE_FROM_PRE_FILTER = ("DynamicResources", "VolumeBinding")


class UnpreparedFilter:
    """Stands at Filter for a plugin that cannot work there."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._status = Status.error(text)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        del state, pod, node
        return self._status


class Unprepared:
    """The plugins of a profile that fail, by where they do."""

    def __init__(self, profile: Profile) -> None:
        self._pre_filters = _names(profile, ExtensionPoint.PRE_FILTER)
        self._pre_scores = _names(profile, ExtensionPoint.PRE_SCORE)
        self.scoring = self._scoring(_names(profile, ExtensionPoint.SCORE))
        """The text with which every scoring fails; empty if none does."""

    def filtering(self, name: str) -> str:
        return "" if name in self._pre_filters else _WITHOUT_PRE_FILTER.get(name, "")

    def reserving(self, name: str) -> str:
        return self.filtering(name) if name in _RESERVE_FROM_PRE_FILTER else ""

    def _scoring(self, scores: tuple[str, ...]) -> str:
        for name in scores:
            text = "" if name in self._pre_scores else _WITHOUT_PRE_SCORE.get(name, "")
            text = text or (self.filtering(name) if name in _SCORES_FROM_PRE_FILTER else "")
            if text:
                return f'running Score plugins: plugin "{name}" failed with: {text}'
        return ""


def failing(text: str, *arguments: object) -> Status:
    """What an unprepared plugin says at a point with one answer."""
    del arguments
    return Status.error(text)


def _names(profile: Profile, point: ExtensionPoint) -> tuple[str, ...]:
    return tuple(each.name for each in profile.at(point))
