"""The turns of a running autoscaler: when it loops, what it tells, and what is left out."""

from collections.abc import Callable, Iterable
from math import isfinite

from kubescene.api.kinds import NODE, POD
from kubescene.control.loops import ControllerContext
from kubescene.durations import format_duration
from kubescene.node_autoscaling.autoscaler import ClusterAutoscaler, LoopReport
from kubescene.node_autoscaling.cluster_state import INSTANCES_KEPT
from kubescene.node_autoscaling.estimation import Option
from kubescene.node_autoscaling.facts import (
    GroupGrown,
    GroupOption,
    KeptOptions,
    NodeRemoved,
    NodesDecided,
)
from kubescene.node_autoscaling.flags import AutoscalerSettings
from kubescene.node_autoscaling.machines import INSTANCE, NODE_GROUP, Machines
from kubescene.node_autoscaling.nodes import SeenNode
from kubescene.node_autoscaling.objects import ObjectWorld
from kubescene.node_autoscaling.provider import Provider, ProviderError
from kubescene.node_autoscaling.provisioning.objects import RequestObjects
from kubescene.node_autoscaling.scale_down import ScaleDownPlanner, Unremovable, UnremovableReason
from kubescene.node_autoscaling.scale_up import ScaleUp, ScaleUpResult
from kubescene.node_autoscaling.status import status_text
from kubescene.node_autoscaling.templates import STABLE
from kubescene.scheduler.options import SchedulerOptions

TOO_EARLY = (UnremovableReason.NOT_LONG_UNNEEDED, UnremovableReason.NOT_LONG_UNREADY)
_TIMES = frozenset({"time", "lastProbeTime", "lastTransitionTime"})


class Turns:
    """One process of the autoscaler in a world of objects."""

    def __init__(
        self,
        context: ControllerContext,
        settings: AutoscalerSettings,
        cloud: Callable[[ControllerContext], Provider] | None = None,
        judges: SchedulerOptions | None = None,
    ) -> None:
        """``cloud`` makes a provider of somebody's own; without one, groups are NodeGroups."""
        self._context = context
        self._timers = context.timers
        self._immediate = settings.immediate
        self._flags = settings.flags
        self._world = ObjectWorld(context, settings.flags.status_config_map_name)
        self._machines = Machines(context.client)
        context.client.watch(NODE_GROUP, self._machines.group_changed, quiet=True)
        context.client.watch(INSTANCE, self._machines.instance_changed, quiet=True)
        answers = settings.flags.enable_provisioning_requests
        self._requests = RequestObjects(context) if answers else None
        self._is_own = cloud is not None
        self._provider: Provider = self._machines if cloud is None else cloud(context)
        now = context.timers.now()
        self._autoscaler = ClusterAutoscaler(
            settings.flags,
            self._provider,
            self._world,
            context.client,
            context.clock,
            now,
            judges,
            immediate=settings.immediate,
            requests=self._requests,
        )
        self._due = now if settings.immediate else now + settings.flags.scan_interval
        self._look_up = now
        self._told: object = None
        self._idle = 0
        self._woken_at: int | None = None
        self._quiet_until: int | None = None
        """The last loop decided nothing, and so will the next ones until then."""
        if settings.immediate:
            for kind in (POD, NODE):
                context.client.watch(kind, self._wake_for_pods, quiet=True)
        else:
            self._timers.at(self._due, _nothing, name="cluster-autoscaler: loop")

    def _wake_for_pods(self, change: object) -> None:
        del change
        if self._world.failed_pods:
            self._context.wake()

    def run(self) -> bool:
        """All that is due; whether something was written."""
        now = self._timers.now()
        self._world.wrote = self._machines.wrote = False
        if self._requests is not None:
            self._requests.begin_turn()
        self._autoscaler.actuator.run(now)
        if self._immediate:
            if self._world.failed_pods or self._is_asked():
                self._loop(now)
        elif now >= self._due:
            self._due = now + self._flags.scan_interval
            self._timers.at(self._due, _nothing, name="cluster-autoscaler: loop")
            if self._may_differ(now):
                self._loop(now)
            else:
                self._idle += 1
        self._wake_for_deletions()
        wrote = self._world.wrote or self._machines.wrote
        return wrote or (self._requests is not None and self._requests.wrote)

    def _is_asked(self) -> bool:
        return self._requests is not None and self._requests.changed

    def _wake_for_deletions(self) -> None:
        due = self._autoscaler.actuator.next_due
        if due is not None and due != self._woken_at:
            self._woken_at = due
            self._timers.at(due, _nothing, name="cluster-autoscaler: deletions")

    # -- whether to loop -------------------------------------------------------------------

    def _may_differ(self, now: int) -> bool:
        if now >= self._look_up:
            self._look_up = now + INSTANCES_KEPT
            before = self._autoscaler.state.known_instances
            try:
                self._autoscaler.state.look_up_instances()
            except ProviderError:
                return True  # The loop says so.
            if before != self._autoscaler.state.known_instances:
                return True
        if self._world.changed or self._machines.changed or self._quiet_until is None:
            return True
        if self._is_asked():
            return True
        if self._is_own:
            return True
        return now >= self._quiet_until

    def _quiet_end(self, report: LoopReport, position: int, now: int) -> int | None:
        """Until when loops would decide the same: nothing; None if nobody can say."""
        own = self._autoscaler
        state, total = own.state, own.state.total
        busy = (
            report.pending,
            report.scale_down.nodes,
            report.scale_down.results,
            report.error,
            own.planner.unneeded,
            state.requests,
            state.unregistered,
            state.wrong_sizes,
            total.not_started,
            total.unready,
            total.deleted,
            [pod for pod in self._world.pods() if pod.deleted is not None or not pod.info.node],
        )
        if any(busy) or position != own.snapshot.position or own.actuator.next_due is not None:
            return None
        if any(state.backoff_of(each.id, now) for each in self._provider.groups()):
            return None
        ends = [*own.planner.rechecks, *_settling(self._world.nodes(), now)]
        last = min(ends, default=now + 365 * 24 * 3600 * 10**9)
        return last if own.requests is None else own.requests.quiet_until(last)

    # -- a loop ----------------------------------------------------------------------------

    def _loop(self, now: int) -> None:
        own = self._autoscaler
        self._world.begin_loop(now)
        self._machines.changed = self._world.failed_pods = False
        if self._requests is not None:
            self._requests.changed = False
        if self._immediate:
            own.state.look_up_instances()
        position = own.snapshot.position
        report = own.run_once(now)
        if self._is_own:
            # What a provider of somebody's own wrote is not seen: whoever gave orders has written.
            ordered = any(each.resizes or each.failed for each in report.scale_ups)
            self._machines.wrote = ordered or bool(report.scale_down.results)
        try:
            if not report.is_cut_off:
                self._write_status(now)
                self._tell(report)
        except ProviderError as error:
            report.error, report.is_cut_off = report.error or str(error), True
        if report.is_cut_off:
            self._context.tell(NodesDecided(idle=self._idle, error=report.error))
            self._idle = 0
        self._quiet_until = self._quiet_end(report, position, now)

    def _write_status(self, now: int) -> None:
        """The ConfigMap is written when more than its times has changed."""
        document = self._autoscaler.status.document(now)
        lasting = _without_times(document)
        if lasting != self._told:
            self._told = lasting
            self._world.write_status(status_text(document), str(document["time"]))

    # -- what is told ----------------------------------------------------------------------

    def _tell(self, report: LoopReport) -> None:
        tried = [each for each in report.scale_ups if each.options or each.resizes or each.failed]
        done = report.scale_down
        grew = any(each.resizes or each.failed for each in tried)
        if not (grew or done.nodes or done.results or report.error):
            self._idle += 1
            return
        self._context.tell(
            NodesDecided(
                ordered=tuple(
                    GroupGrown(group=it.group.id, before=it.before, after=it.after)
                    for each in tried
                    for it in each.resizes
                ),
                removed=tuple(
                    NodeRemoved(
                        node=each.node,
                        group=each.group,
                        utilization=_thousandths(each.utilization.most),
                        evicted=tuple(pod.key for pod in each.evicted or ()),
                        size=self._size_of(each.group),
                    )
                    for each in done.nodes
                ),
                options=tuple(
                    self._option(option, option is each.best)
                    for each in tried
                    for option in each.options
                ),
                expanders=tuple(
                    KeptOptions(name, tuple(kept))
                    for each in tried
                    for name, kept in zip(self._flags.expander.split(","), each.kept, strict=False)
                ),
                triggered=tuple(
                    pod.key for each in tried if each.resizes for pod in each.triggered
                ),
                skipped=_skipped(report.scale_ups),
                unhelped=_unhelped(report.scale_ups),
                staying=self._staying(report.now),
                deleted={
                    name: str(each.outcome) + (f": {each.error}" if each.error else "")
                    for name, each in done.results.items()
                },
                idle=self._idle,
                error=report.error or "; ".join(each.error for each in tried if each.error),
            )
        )
        self._idle = 0

    def _staying(self, now: int) -> dict[str, str]:
        """Why nodes stay, in words."""
        planner = self._autoscaler.planner
        return {
            name: _why(each, planner, now) for name, each in sorted(planner.unremovable.items())
        }

    def _size_of(self, group: str) -> int:
        if not self._is_own:
            return self._machines.size_of(group)
        sizes = (each.target_size() for each in self._provider.groups() if each.id == group)
        return next(sizes, 0)

    def _option(self, option: Option, is_best: bool) -> GroupOption:
        cpu, memory = option.waste
        price = self._provider.node_price(option.template.node.object)
        return GroupOption(
            group=option.group.id,
            nodes=option.nodes,
            pods=len(option.pods),
            waste_cpu=_thousandths(cpu),
            waste_memory=_thousandths(memory),
            per_hour=None if price is None else f"{price * option.nodes:.6g}",
            similar=tuple(each.id for each in option.similar),
            chosen=is_best,
        )


def _why(each: Unremovable, planner: ScaleDownPlanner, now: int) -> str:
    """Why a node stays, and what it is about it."""
    name = each.node.name
    used, unneeded = planner.utilization.get(name), planner.unneeded.get(name)
    if each.blocking is not None:
        return f"{each.reason}: {each.blocking.pod.key} {each.blocking.reason}"
    if each.reason is UnremovableReason.UTILIZED and used is not None:
        return f"{each.reason}: {used.most:.0%} of its {used.resource} is asked for"
    if each.reason in TOO_EARLY and unneeded is not None:
        since, wait = format_duration(now - unneeded.since), format_duration(unneeded.wait)
        return f"{each.reason}: for {since} of {wait}"
    return str(each.reason)


def _nothing() -> None:
    """The timer wakes; what is due is found then."""


def _thousandths(share: float) -> int:
    return round(share * 1000) if isfinite(share) else 0


def _settling(nodes: Iterable[SeenNode], now: int) -> list[int]:
    """When nodes become good examples of their groups."""
    ends = [it.readiness_since + STABLE + 1 for it in nodes if it.readiness_since is not None]
    return [each for each in ends if each > now]


def _skipped(done: Iterable[ScaleUp]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in done:
        found |= each.skipped
    return dict(sorted(found.items()))


def _unhelped(done: Iterable[ScaleUp]) -> dict[str, dict[str, str]]:
    return {
        each.pod.key: {group: ", ".join(why) for group, why in sorted(each.rejected.items())}
        for scale_up in done
        if scale_up.result is not ScaleUpResult.NOT_TRIED
        for each in scale_up.remaining
    }


def _without_times(document: object) -> object:
    if isinstance(document, dict):
        return {name: _without_times(it) for name, it in document.items() if name not in _TIMES}
    if isinstance(document, list):
        return [_without_times(each) for each in document]
    return document
