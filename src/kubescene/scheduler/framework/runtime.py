"""The framework of one profile: its plugins, made, checked and wrapped, by extension point.

`POINTS` says what a plugin must have to stand at a point; this is verified when the profile is
built, not when a pod is waiting. Every call into a plugin is guarded (`guarded_calls`). Filter and
Score plugins that are written per node are given the whole-cluster form here, so that the rest of
the scheduler knows only one.

A configuration may leave a plugin at Filter and take it away from PreFilter (G-10). Some of
upstream's plugins then work out what they need, others fail the cycle, each in its own words
(`Unprepared`).
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kubescene.api.records.changes import Change
from kubescene.bounded import KEPT
from kubescene.errors import ConfigurationError
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.extensions import (
    Extension,
    PostFilterExtension,
    PreFilterExtension,
)
from kubescene.scheduler.framework.guarded_calls import guarded, guarded_method
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    Codes,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Hint,
    Plugin,
    QueueingHint,
    Reads,
    Rows,
    ScorePlugin,
    Scores,
    SeesPods,
)
from kubescene.scheduler.framework.plugin_registry import PluginRegistry
from kubescene.scheduler.framework.points import POINTS, implements
from kubescene.scheduler.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kubescene.scheduler.framework.relevance import Relevance
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
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


_log = logging.getLogger(__name__)

EVERY_EVENT = (EventRegistration(ClusterEvent(EventResource.ANY, Action.ALL)),)


@dataclass(frozen=True, slots=True)
class FilterExtension:
    """A Filter plugin in whole-cluster form; ``one`` is its per-node form, if it has both."""

    name: str
    position: int
    reads: Reads
    filter_nodes: Callable[[CycleState, PodInfo, NodeTable, Rows], Codes]
    describe: Callable[[CycleState, PodInfo, int], Status]
    one: Callable[[CycleState, PodInfo, NodeInfo], Status] | None
    stamp: Callable[[CycleState, PodInfo], int] | None = None
    sees_pods: SeesPods = SeesPods.EVERYTHING
    inner: Callable[[CycleState, PodInfo, NodeInfo], Status] | None = None
    """``one`` as the plugin wrote it, for those who see to exceptions and answers themselves."""
    is_blind: bool = False
    """Whether it sees no pods on a node, and takes many nodes at a time."""

    @property
    def per_node(self) -> bool:
        return self.reads is Reads.NODE


@dataclass(frozen=True, slots=True)
class ScoreExtension:
    """A Score plugin in whole-cluster form; ``one`` is its per-node form, if it has both."""

    name: str
    weight: int
    per_node: bool
    score_nodes: Callable[[CycleState, PodInfo, NodeTable, Rows], Scores]
    normalize: Callable[[CycleState, PodInfo, Scores], Scores] | None
    one: Callable[[CycleState, PodInfo, NodeInfo], int] | None
    normalizes_alone: bool = False
    inner: Callable[[CycleState, PodInfo, NodeInfo], int] | None = None
    """As that of a `FilterExtension`."""
    is_blind: bool = False
    """Whether it sees no pods on a node (``rates_by_spec``), and takes many nodes at a time."""


class Framework:
    """The plugins of one profile."""

    def __init__(self, profile: Profile, registry: PluginRegistry, handle: Handle) -> None:
        self.profile = profile
        self.plugins: dict[str, Plugin] = {
            name: registry.make(name, profile.arguments.get(name, {}), handle)
            for name in profile.plugin_names()
        }
        for point in ExtensionPoint:
            for enabled in profile.at(point):
                _require(self.plugins[enabled.name], enabled.name, point)
        self._check_counts()
        self.unprepared = Unprepared(profile)
        self.queue_sort = self._extensions(ExtensionPoint.QUEUE_SORT, "sort_key")[0]
        self.pre_enqueue = self._extensions(ExtensionPoint.PRE_ENQUEUE, "pre_enqueue")
        self.pre_filter = self._pre_filters()
        self.post_filter = self._post_filters()
        self.pre_score = self._extensions(ExtensionPoint.PRE_SCORE, "pre_score")
        self.reserve = tuple(
            self._prepared(each)
            for each in self._extensions(ExtensionPoint.RESERVE, "reserve", "unreserve")
        )
        self.permit = self._extensions(ExtensionPoint.PERMIT, "permit")
        self.pre_bind = tuple(
            replace(each, awaits=self._optional(each.name, "awaits", ExtensionPoint.PRE_BIND))
            for each in self._extensions(ExtensionPoint.PRE_BIND, "pre_bind")
        )
        self.bind = self._extensions(ExtensionPoint.BIND, "bind")
        self.post_bind = self._extensions(ExtensionPoint.POST_BIND, "post_bind")
        self.filters = tuple(
            self._filter(position, enabled)
            for position, enabled in enumerate(profile.at(ExtensionPoint.FILTER), 1)
        )
        self.scores = tuple(self._score(each) for each in profile.at(ExtensionPoint.SCORE))
        self.relevance = Relevance(self)

    @property
    def name(self) -> str:
        return self.profile.scheduler_name

    def events(self) -> dict[str, Sequence[EventRegistration]]:
        """Per plugin, the events that may help a pod it rejected."""
        return {name: _registrations(plugin, name) for name, plugin in self.plugins.items()}

    def _check_counts(self) -> None:
        sorts = self.profile.at(ExtensionPoint.QUEUE_SORT)
        if len(sorts) != 1:
            raise ConfigurationError(
                "only one queue sort plugin required for profile with scheduler name "
                f'"{self.name}", but got {len(sorts)}'
            )
        if not self.profile.at(ExtensionPoint.BIND):
            raise ConfigurationError(
                f'at least one bind plugin is needed for profile with scheduler name "{self.name}"'
            )

    def _extensions(
        self, point: ExtensionPoint, method: str, undo: str = ""
    ) -> tuple[Extension, ...]:
        return tuple(
            Extension(
                enabled.name,
                guarded_method(self.plugins[enabled.name], enabled.name, method, point),
                guarded_method(self.plugins[enabled.name], enabled.name, undo, point)
                if undo
                else None,
            )
            for enabled in self.profile.at(point)
        )

    def _prepared(self, extension: Extension) -> Extension:
        """A Reserve plugin, or one that fails because nothing was prepared for it."""
        text = self.unprepared.reserving(extension.name)
        return replace(extension, call=partial(failing, text)) if text else extension

    def _optional(self, plugin: str, method: str, point: str) -> Any:
        """A guarded method of a plugin, or None if the plugin lacks it."""
        if not implements(self.plugins[plugin], method):
            return None
        return guarded_method(self.plugins[plugin], plugin, method, point)

    def prepare_by_class(self, extensions: Iterable[PreFilterExtension | Extension]) -> bool:
        """Whether the class of a pod decides what all these plugins say."""
        plugins = [self.plugins[each.name] for each in extensions]
        return all(getattr(each, "prepares_by_class", False) for each in plugins)

    def answers(self, method: str, point: str) -> list[tuple[str, Callable[..., Any]]]:
        """An optional method of those plugins that have it and can work, guarded, by name."""
        return [
            (name, guarded(getattr(plugin, method), name, point))
            for name, plugin in self.plugins.items()
            if implements(plugin, method) and not self.unprepared.filtering(name)
        ]

    def _pre_filters(self) -> tuple[PreFilterExtension, ...]:
        point = ExtensionPoint.PRE_FILTER
        return tuple(
            PreFilterExtension(
                each.name,
                self._optional(each.name, "pre_filter", point),
                self._optional(each.name, "add_pod", "AddPod"),
                self._optional(each.name, "remove_pod", "RemovePod"),
            )
            for each in self.profile.at(point)
        )

    def _post_filters(self) -> tuple[PostFilterExtension, ...]:
        point = ExtensionPoint.POST_FILTER
        return tuple(
            PostFilterExtension(
                each.name,
                self._optional(each.name, "post_filter", point),
                self._optional(each.name, "post_filter_answered", point),
            )
            for each in self.profile.at(point)
        )

    def _filter(self, position: int, enabled: EnabledPlugin) -> FilterExtension:
        plugin: Any = self.plugins[enabled.name]
        name, point = enabled.name, ExtensionPoint.FILTER
        if text := self.unprepared.filtering(name):
            plugin = UnpreparedFilter(name, text)
        is_whole = implements(plugin, "filter_nodes")
        whole = plugin if is_whole else adapt_filter(plugin)
        sees_pods = SeesPods(getattr(plugin, "sees_pods", SeesPods.EVERYTHING))
        return FilterExtension(
            name,
            position,
            _reads(plugin, name),
            guarded_method(whole, name, "filter_nodes", point),
            guarded_method(whole, name, "describe", point),
            None if text else self._optional(name, "filter", point),
            None if text else self._optional(name, "stamp", point),
            sees_pods,
            plugin.filter if not text and implements(plugin, "filter") else None,
            is_whole and sees_pods is SeesPods.NOTHING,
        )

    def _score(self, enabled: EnabledPlugin) -> ScoreExtension:
        plugin: Any = self.plugins[enabled.name]
        name, point = enabled.name, ExtensionPoint.SCORE
        is_whole = implements(plugin, "score_nodes")
        whole = plugin if is_whole else adapt_score(plugin)
        return ScoreExtension(
            name,
            enabled.weight,
            _reads(plugin, name) is Reads.NODE,
            guarded_method(whole, name, "score_nodes", point),
            self._optional(name, "normalize", point),
            self._optional(name, "score", point),
            getattr(plugin, "normalizes_alone", False),
            plugin.score if implements(plugin, "score") else None,
            is_whole and getattr(plugin, "rates_by_spec", False),
        )


def _reads(plugin: Any, name: str) -> Reads:
    reads = Reads(getattr(plugin, "reads", Reads.CLUSTER))
    if reads is Reads.DOMAIN and not implements(plugin, "stamp"):
        raise ConfigurationError(
            f'plugin "{name}" reads topology domains but has no method stamp that says when its '
            "answers may have changed"
        )
    return reads


def _require(plugin: Plugin, name: str, point: ExtensionPoint) -> None:
    alternatives = POINTS[point]
    if any(all(implements(plugin, method) for method in methods) for methods in alternatives):
        return
    wanted = " or ".join(" and ".join(methods) for methods in alternatives)
    raise ConfigurationError(
        f'plugin "{name}" does not extend {point} plugin: it has no method {wanted}'
    )


def _hint(hint: QueueingHint, plugin: str, pod: PodInfo, change: Change) -> Hint:
    """What a hint says; one that fails is no reason to leave a pod waiting. [Q-11]"""
    try:
        answer = hint(pod, change)
    except Exception:
        _log.exception("a queueing hint of %s failed: the pod %s is queued", plugin, pod.key)
        return Hint.QUEUE
    return answer


def _registrations(plugin: Any, name: str) -> Sequence[EventRegistration]:
    if not implements(plugin, "events_to_register"):
        return EVERY_EVENT
    register = plugin.events_to_register
    return tuple(
        replace(each, hint=each.hint and partial(_hint, each.hint, name))
        for each in guarded(register, name, "EventsToRegister")()
    )


class AdaptedFilter:
    """Numbers the statuses of a per-node Filter: 1 is the first one ever seen, and so on.

    A plugin that puts ever new numbers into its reasons would fill memory: beyond a limit, statuses
    are numbered for one attempt only, and verdicts with such numbers are not kept.
    """

    def __init__(self, plugin: FilterPlugin, kept: int = KEPT) -> None:
        self._plugin = plugin
        self._kept = kept
        self._numbers: dict[Hashable, int] = {}
        self._statuses: list[Status] = []

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        infos, judge = nodes.infos, self._plugin.filter
        codes = [self._number(state, judge(state, pod, infos[row])) for row in rows.tolist()]
        return np.array(codes, dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        del pod
        if code > self._kept:
            return state.passing_codes[code - self._kept - 1]
        return self._statuses[code - 1]

    def _number(self, state: CycleState, status: Status) -> int:
        if status is SUCCESS:
            return 0
        if not isinstance(status, Status):
            raise TypeError(f"answered with {status!r}, expected a Status")
        if status.code is Code.SUCCESS:
            return 0
        state.filter_errors |= not status.code.is_rejection
        found = self._numbers.get(status)
        if found is not None:
            return found
        if len(self._statuses) >= self._kept:
            state.passing_codes.append(status)
            return self._kept + len(state.passing_codes)
        self._statuses.append(status)
        found = self._numbers[status] = len(self._statuses)
        return found


class AdaptedScore:
    def __init__(self, plugin: ScorePlugin) -> None:
        self._plugin = plugin

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        infos, judge = nodes.infos, self._plugin.score
        scores: list[Any] = [judge(state, pod, infos[row]) for row in rows.tolist()]
        for score in scores:
            # NumPy would cut a fraction off without a word.
            if type(score) is not int and not isinstance(score, np.integer):
                raise TypeError(f"answered with {score!r}, expected an integer")
        return np.array(scores, dtype=np.int64)


def adapt_filter(plugin: Any) -> AdaptedFilter:
    return AdaptedFilter(plugin)


def adapt_score(plugin: Any) -> AdaptedScore:
    return AdaptedScore(plugin)
