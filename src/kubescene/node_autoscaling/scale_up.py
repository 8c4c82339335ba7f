"""Scale-up: which groups grow for the pods that wait, and by how much."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from kubescene.node_autoscaling.balancing import GroupResize, are_similar, balanced
from kubescene.node_autoscaling.cluster_state import ClusterState
from kubescene.node_autoscaling.estimation import (
    EquivalenceGroup,
    NodeEstimate,
    Option,
    ask_plugins,
    like_pods,
)
from kubescene.node_autoscaling.expanders import Expander, ExpanderWorld, Kept, chosen
from kubescene.node_autoscaling.flags import Flags, GroupFlags
from kubescene.node_autoscaling.limits import ResourceTotals
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.provider import InstanceError, NodeGroup, Provider, ProviderError
from kubescene.node_autoscaling.snapshot import ClusterSnapshot
from kubescene.node_autoscaling.telling import Teller
from kubescene.node_autoscaling.templates import NodeTemplate

NOT_READY = "not ready for scale-up"
IN_BACKOFF = "in backoff after failed scale-up"
FULL = "max node group size reached"
ATOMIC_TOO_MANY = "atomic scale-up exceeds cluster node count limit"
FILTERED_OUT = "expansion options filtered out and no longer considered"
FAILED = "scale-up execution failed"
NOT_ALL_FIT = "not all pods would fit and scale-up is using all-or-nothing strategy"


class ScaleUpResult(StrEnum):
    SUCCESSFUL = "ScaleUpSuccessful"
    ERROR = "ScaleUpError"
    NO_OPTIONS = "ScaleUpNoOptionsAvailable"
    NOT_NEEDED = "ScaleUpNotNeeded"
    NOT_TRIED = "ScaleUpNotTried"
    IN_COOLDOWN = "ScaleUpInCooldown"
    AT_MOST_NODES = "ScaleUpLimitedByMaxNodesTotal"


class Unhelped(Struct, frozen=True):
    """A pod that no group helps, and why: groups whose nodes refuse it, groups not asked."""

    pod: SeenPod
    rejected: Mapping[str, tuple[str, ...]]
    skipped: Mapping[str, tuple[str, ...]]


class ScaleUp(Struct):
    """What came of a scale-up."""

    result: ScaleUpResult
    error: str = ""
    resizes: Sequence[GroupResize] = ()
    triggered: Sequence[SeenPod] = ()
    remaining: Sequence[Unhelped] = ()
    awaiting: Sequence[SeenPod] = ()
    """Pods that other groups than the chosen one may help in a later loop."""
    failed: Sequence[str] = ()
    """Groups that refused to grow."""
    considered: bool = False
    """Whether messages to pods count the groups."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Groups that were not asked, and why."""
    options: Sequence[Option] = field(default_factory=list)
    best: Option | None = None
    kept: Sequence[Kept] = ()
    """What the expanders kept, one after the other."""


class ScaleUpFailedError(Exception):
    """Groups cannot grow; told in the status."""


class NotAllFitError(Exception):
    """Not all pods can be helped at once, and so none is to be."""


class ScaleUpPlanner(Struct):
    """All that one scale-up looks at."""

    flags: Flags
    flags_of: Callable[[NodeGroup], GroupFlags]
    provider: Provider
    state: ClusterState
    snapshot: ClusterSnapshot
    templates: Mapping[str, NodeTemplate]
    teller: Teller
    expanders: Sequence[Expander]
    world: ExpanderWorld
    now: int

    # -- for waiting pods ------------------------------------------------------------------

    def for_pods(self, pods: Sequence[SeenPod], *, all_or_none: bool = False) -> ScaleUp:
        """Order nodes for pods that fit nowhere; ``all_or_none``: for all of them or for none."""
        alike = like_pods(pods)
        totals = ResourceTotals.at_most(self.flags, self.snapshot.nodes, self.provider)
        groups, skipped = self._valid(totals)
        fitting = {
            group.id: ask_plugins(self.snapshot, group.id, self.templates[group.id], alike)
            for group in groups
        }
        options = self._options(groups, fitting, all_or_none=all_or_none)
        if all_or_none:
            options = [each for each in options if len(each.pods) >= len(pods)]
        best, kept = chosen(options, self.expanders, self.world) if options else (None, [])
        why = FILTERED_OUT if options else ""
        done = None
        if best is not None and best.nodes > 0:
            try:
                done = self._grow(best, fitting, totals, all_or_none=all_or_none)
            except NotAllFitError:
                why = NOT_ALL_FIT
        if done is None or best is None:
            if why:
                _refuse_all(alike, why)
            done = ScaleUp(ScaleUpResult.NO_OPTIONS, considered=True)
            best = None
        done.options, done.best, done.triggered = options, best, best.pods if best else ()
        done.skipped, done.kept = {each: why for each, (why,) in skipped.items()}, kept
        if done.result is ScaleUpResult.ERROR:
            _refuse_failed(alike, done)
        done.remaining = self._remaining(alike, skipped)
        if best is not None and done.result is ScaleUpResult.SUCCESSFUL:
            done.awaiting = _waiting(alike, best.group.id)
        return done

    def _valid(self, totals: ResourceTotals) -> tuple[list[NodeGroup], dict[str, tuple[str, ...]]]:
        valid: list[NodeGroup] = []
        skipped: dict[str, tuple[str, ...]] = {}
        for group in self.provider.groups():
            reason = self._not_ready(group) or self._no_room(group, totals)
            if reason:
                skipped[group.id] = (reason,)
            else:
                valid.append(group)
        return valid, skipped

    def _not_ready(self, group: NodeGroup) -> str:
        if not self.state.is_group_healthy(group.id):
            return NOT_READY
        return IN_BACKOFF if self.state.backoff_of(group.id, self.now) is not None else ""

    def _no_room(self, group: NodeGroup, totals: ResourceTotals) -> str:
        size = group.target_size()
        if size >= group.max_size:
            return FULL
        count = 1
        if self.flags_of(group).zero_or_max:
            count = group.max_size - size
            most = self.flags.max_nodes_total
            if most and len(self.snapshot) + count > most:
                return ATOMIC_TOO_MANY
        if group.id not in self.templates:
            return NOT_READY
        return self._over_totals(group, totals, count)

    def _over_totals(self, group: NodeGroup, totals: ResourceTotals, count: int) -> str:
        exceeded = totals.allow(group, self.templates[group.id].node, count).exceeded
        if not exceeded:
            return ""
        return f'exceeded quota: "cluster-wide", resources: {", ".join(exceeded)}'

    def _options(
        self,
        groups: Sequence[NodeGroup],
        fitting: Mapping[str, list[EquivalenceGroup]],
        *,
        all_or_none: bool,
    ) -> list[Option]:
        options = []
        for group in groups:
            if not fitting[group.id]:
                continue
            similar = self._similar(group, fitting)
            template = self.templates[group.id]
            limit = self._limit(group, similar)
            nodes, pods = NodeEstimate(self.snapshot, template, limit).run(fitting[group.id])
            if nodes and self.flags_of(group).zero_or_max:
                if all_or_none and nodes > group.max_size:
                    continue
                nodes = group.max_size
            if nodes and pods:
                options.append(Option(group, template, nodes, pods, tuple(similar)))
        return options

    def _limit(self, group: NodeGroup, similar: Sequence[NodeGroup]) -> int | None:
        """How many nodes may be added at most; None if there is no limit."""
        limits = [sum(max(each.max_size - each.target_size(), 0) for each in (group, *similar))]
        if self.flags.max_nodes_per_scaleup:
            limits.append(max(self.flags.max_nodes_per_scaleup, 0))
        if self.flags.max_nodes_total:
            limits.append(max(self.flags.max_nodes_total - len(self.snapshot), 0))
        return min(limits)

    def _similar(
        self, group: NodeGroup, fitting: Mapping[str, list[EquivalenceGroup]]
    ) -> list[NodeGroup]:
        """Groups that can take what this one takes, if they are to share."""
        if not self.flags.balance_similar_node_groups or self.flags_of(group).zero_or_max:
            return []
        mine = {each.sample.uid for each in fitting[group.id]}
        return [
            other
            for other in self.provider.groups()
            if other.id != group.id
            and other.id in self.templates
            and are_similar(self.templates[group.id], self.templates[other.id], self.flags)
            and not self._not_ready(other)
            and mine <= {each.sample.uid for each in fitting.get(other.id, ())}
        ]

    def _grow(
        self,
        best: Option,
        fitting: Mapping[str, list[EquivalenceGroup]],
        totals: ResourceTotals,
        *,
        all_or_none: bool,
    ) -> ScaleUp:
        try:
            count = self._capped(best.nodes, len(self.snapshot))
        except ScaleUpFailedError as error:
            return ScaleUp(ScaleUpResult.ERROR, str(error))
        count = totals.allow(best.group, best.template.node, count).nodes
        if all_or_none and count < best.nodes:
            raise NotAllFitError
        similar = [
            each
            for each in self._similar(best.group, fitting)
            if not self._over_totals(each, totals, 1)
        ]
        resizes = self._within_totals(balanced([best.group, *similar], count), totals)
        if all_or_none and sum(each.after - each.before for each in resizes) < count:
            raise NotAllFitError
        return self.execute(resizes)

    def _capped(self, count: int, there: int) -> int:
        most = self.flags.max_nodes_total
        if not most or count + there <= most:
            return count
        self.teller.about_status(
            "Warning", "MaxNodesTotalReached", f"Max total nodes in cluster reached: {most}"
        )
        if most - there < 1:
            raise ScaleUpFailedError("max node total count already reached")
        return most - there

    def _within_totals(
        self, resizes: Sequence[GroupResize], totals: ResourceTotals
    ) -> list[GroupResize]:
        for each in resizes:
            node = self.templates[each.group.id].node
            allowed = totals.allow(each.group, node, each.after - each.before).nodes
            each.after = each.before + allowed
            if allowed > 0:
                totals.take(each.group, node, allowed)
        return [each for each in resizes if each.after != each.before]

    def execute(self, resizes: Sequence[GroupResize]) -> ScaleUp:
        """Order what was planned, group after group; the first refusal ends it."""
        for each in resizes:
            error = self._increase(each)
            if error:
                failed = (each.group.id,)
                return ScaleUp(ScaleUpResult.ERROR, error, resizes, failed=failed)
        self.state.recalculate()
        return ScaleUp(ScaleUpResult.SUCCESSFUL, resizes=resizes, considered=True)

    def _increase(self, resize: GroupResize) -> str:
        group, by = resize.group, resize.after - resize.before
        size = f"{resize.after} instead of {resize.before} (max: {resize.most})"
        self._tell_growth(f"Scale-up: setting group {group.id} size to {size}")
        try:
            group.increase(by)
        except ProviderError as error:
            failure = f"Scale-up failed for group {group.id}: {error}"
            self.teller.about_status("Warning", "FailedToScaleUpGroup", failure)
            message = f"failed to increase node group size: {error}"
            self.state.back_off(
                group.id, InstanceError("Other", "cloudProviderError", message), self.now
            )
            return message
        self.state.grew(group, by, self.now)
        self._tell_growth(f"Scale-up: group {group.id} size set to {size}")
        return ""

    def _tell_growth(self, message: str) -> None:
        self.teller.about_status("Normal", "ScaledUpGroup", message)

    def _remaining(
        self, alike: Sequence[EquivalenceGroup], skipped: Mapping[str, tuple[str, ...]]
    ) -> list[Unhelped]:
        unhelped = [each for each in alike if not each.is_helped]
        narrow = self.flags.scaleup_simulation_for_skipped_node_groups_enabled
        if narrow:
            for group in sorted(skipped):
                if group in self.templates:
                    ask_plugins(self.snapshot, group, self.templates[group], unhelped)
        return [
            Unhelped(pod, each.refused, _without(skipped, each.refused) if narrow else skipped)
            for each in unhelped
            for pod in each.pods
        ]

    # -- for the least size of groups ------------------------------------------------------

    def to_least_sizes(self) -> ScaleUp:
        """Raise groups to their least size."""
        totals = ResourceTotals.at_most(self.flags, self.snapshot.nodes, self.provider)
        resizes = []
        for group in self.provider.groups():
            size = group.target_size()
            if size >= group.min_size or self._not_ready(group) or group.id not in self.templates:
                continue
            if self._over_totals(group, totals, 1):
                continue
            node = self.templates[group.id].node
            count = totals.allow(group, node, group.min_size - size).nodes
            try:
                count = self._capped(count, size)
            except ScaleUpFailedError:
                continue
            resizes.append(GroupResize(group, size, size + count, group.max_size))
        if not resizes:
            return ScaleUp(ScaleUpResult.NOT_NEEDED)
        done = self.execute(resizes)
        if done.result is ScaleUpResult.ERROR:
            done.resizes = ()
        return done


def _without(
    skipped: Mapping[str, tuple[str, ...]], refused: Mapping[str, object]
) -> dict[str, tuple[str, ...]]:
    return {group: reasons for group, reasons in skipped.items() if group not in refused}


def _refuse_all(alike: Sequence[EquivalenceGroup], reason: str) -> None:
    for each in alike:
        if each.is_helped:
            each.refused |= dict.fromkeys(each.fitting, (reason,))
            each.is_helped = False


def _refuse_failed(alike: Sequence[EquivalenceGroup], failure: ScaleUp) -> None:
    """Pods that only groups could help that were not resized are not helped."""
    if not failure.failed:
        _refuse_all(alike, FAILED)
        return
    ids = [each.group.id for each in failure.resizes]
    unsized = set(ids[ids.index(failure.failed[0]) :])
    failure.resizes = ()
    for each in alike:
        if not each.fitting:
            continue
        each.refused |= {group: (FAILED,) for group in each.fitting if group in unsized}
        if unsized.issuperset(each.fitting):
            each.is_helped = False


def _waiting(alike: Sequence[EquivalenceGroup], group: str) -> list[SeenPod]:
    return [pod for each in alike if each.is_helped and group in each.refused for pod in each.pods]


# -- what pods are told --------------------------------------------------------------------


def tell_pods(teller: Teller, done: ScaleUp) -> None:
    """Tell waiting pods what was ordered for them, or why nothing was."""
    if done.result not in (ScaleUpResult.SUCCESSFUL, ScaleUpResult.ERROR):
        for each in done.remaining:
            message = f"pod didn't trigger scale-up: {_reasons(done, each)}"
            teller.about_pod(each.pod, "Normal", "NotTriggerScaleUp", message)
    if done.resizes:
        resizes = " ".join(map(str, done.resizes))
        for pod in done.triggered:
            message = f"pod triggered scale-up: [{resizes}]"
            teller.about_pod(pod, "Normal", "TriggeredScaleUp", message)


def _reasons(done: ScaleUp, unhelped: Unhelped) -> str:
    if done.result is ScaleUpResult.AT_MOST_NODES:
        return "max total nodes in cluster reached"
    counts = Counter(
        reason
        for groups in (unhelped.rejected, unhelped.skipped)
        for reasons in groups.values()
        for reason in reasons
    )
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
