"""A snapshot restored and settled once, and a copy of it for each question."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from kubescene.autoscalers.interfaces import AutoscalerPlugin
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.durations import parse_duration
from kubescene.errors import ConfigurationError, SnapshotError
from kubescene.instruments import Instrument
from kubescene.node_autoscaling.flags import AutoscalerSettings, read_settings
from kubescene.results.cost.prices import Prices, read_prices
from kubescene.runs.staging import CONFIGURATION
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration.sources import SchedulerSource, scheduler_options
from kubescene.snapshots.restoring import restore
from kubescene.snapshots.snapshot import Snapshot
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer
from kubescene.what_if.autoscaling import (
    Decisions,
    GroupLimits,
    autoscale,
    pools_of,
    with_machines,
)
from kubescene.what_if.balancing import balance
from kubescene.what_if.changing import applied
from kubescene.what_if.descheduling import Thresholds
from kubescene.what_if.draining import DrainFlags, drain_answer
from kubescene.what_if.fitting import fit
from kubescene.what_if.losing import lose
from kubescene.what_if.placing import Placing, explain, schedule, unplaced
from kubescene.what_if.repacking import NewNode, repack
from kubescene.what_if.rightsizing import rightsize
from kubescene.what_if.shrinking import shrink, shrunk
from kubescene.what_if.sizes import Recommenders, with_sizes
from kubescene.what_if.upgrading import UpgradeFlags, upgrade
from kubescene.what_if.used import recorded_usage
from kubescene.what_if.worlds import (
    controller_of,
    counted,
    is_live,
    placements,
    pods_in,
    waiting_pods,
)


class WhatIf:
    """Questions to one snapshot; each is answered in a copy of the restored world.

    ``start_delay`` is how long a pod takes from its place to being ready; ``scheduler`` is a
    KubeSchedulerConfiguration (a file or an object), else the snapshot's, else the default one.
    ``autoscalers`` are classes that PluginAutoscalers of the snapshot may choose: each copy of the
    world has its own, so another process cannot be one.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        scheduler: SchedulerSource | None = None,
        start_delay: str = "0s",
        prices: Prices | None = None,
        autoscalers: Sequence[type[AutoscalerPlugin]] = (),
        seed: int = 0,
    ) -> None:
        self.snapshot = snapshot
        self._delays = KubeletDelays(parse_duration(start_delay), 0, 0)
        self._start_delay = start_delay
        self._prices = prices
        self._autoscalers = tuple(autoscalers)
        self._seed = seed
        config = snapshot.scheduler_config
        own = None if config is None else CONFIGURATION | config
        self._scheduler = scheduler_options(own if scheduler is None else scheduler)

    # -- the world ---------------------------------------------------------------------------------

    @cached_property
    def world(self) -> ClusterWorld:
        """The cluster as it was, at rest. Nobody changes it: questions take copies."""
        if not any(obj.get("kind") == "Node" for obj in self.snapshot.objects):
            raise SnapshotError(
                "there is no Node in it, so no question can be answered; "
                f"{self.snapshot.missing[-1]}"
            )
        return self._settled(self.snapshot)

    def _settled(
        self,
        snapshot: Snapshot,
        scheduler: SchedulerOptions | None = None,
        autoscaler: AutoscalerSettings | None = None,
        instruments: Sequence[Instrument] = (),
    ) -> ClusterWorld:
        options = ClusterOptions(
            seed=self._seed,
            start=snapshot.taken_at,
            kubelet=self._delays,
            scheduler=scheduler or self._scheduler,
            autoscaler=autoscaler,
            autoscaler_plugins=self._autoscalers,
        )
        world = ClusterWorld(options, instruments=instruments)
        refused = list(restore(world.registry, snapshot))
        if snapshot is self.snapshot:
            self._refused = refused
        return world.settle()

    @cached_property
    def unknown(self) -> list[str]:
        """What no answer can know, said before it."""
        told = [*self.snapshot.unknowns]
        before = {
            f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": str(
                (obj.get("spec") or {}).get("nodeName") or ""
            )
            for obj in self.snapshot.objects
            if obj.get("kind") == "Pod"
        }
        after = placements(self.world)
        told += self._refused
        made, gone = len(after.keys() - before.keys()), len(before.keys() - after.keys())
        placed = sum(not before.get(name, "-") and bool(node) for name, node in after.items())
        if made or gone or placed:
            told.append(
                f"the cluster was not at rest: {made} pods were made, {gone} went and {placed} "
                "were placed before the question was asked"
            )
        running = sum(
            is_live(pod) and (controller_of(pod) or {}).get("kind") == "Job"
            for pod in pods_in(self.world)
        )
        if running:
            told.append(
                f"how long {counted(running, 'pod')} of Jobs will run: here they do not end"
            )
        if self._delays.start == 0:
            told.append("how long pods take to start: here they are ready once they have a place")
        return told

    # -- questions ---------------------------------------------------------------------------------

    def lose(self, *nodes: str, removed: bool = False, within: str = "30m") -> Answer:
        """Nodes fall silent, or are ``removed``: who comes back, and when?"""
        return lose(
            self.world.fork(), nodes, self.unknown, removed=removed, within=parse_duration(within)
        )

    def drain(self, *nodes: str, flags: DrainFlags | None = None) -> Answer:
        """Which pods keep these nodes from being drained, and what does it take?"""
        return drain_answer(self.world.fork(), nodes, self.unknown, flags or DrainFlags())

    def shrink(
        self,
        *nodes: str,
        keep: float = 0.0,
        flags: DrainFlags | None = None,
        tries: int = 3,
    ) -> Answer:
        """How many of these nodes (all, if none is named) can be removed?

        ``keep`` is the share of cpu and memory that stays free; after ``tries`` nodes that cannot
        go no other is tried.
        """
        return shrink(
            self.world,
            nodes,
            self.unknown,
            keep=keep,
            flags=flags or DrainFlags(delete_empty_dir_data=True),
            tries=tries,
            prices=self._prices,
        )

    def upgrade(self, *nodes: str, flags: UpgradeFlags | None = None) -> Answer:
        """These nodes (all, if none is named) are replaced: how long, who waits, who is down?"""
        return upgrade(
            self.world.fork(),
            nodes,
            self.unknown,
            flags=flags or UpgradeFlags(),
            prices=self._prices,
        )

    def balance(
        self,
        *nodes: str,
        policies: Sequence[str] = (),
        thresholds: Thresholds | None = None,
        moves: int = 50,
    ) -> Answer:
        """What would a descheduler with these policies move, and what is gained?"""
        return balance(
            self.world.fork(),
            nodes,
            self.unknown,
            policies=policies,
            thresholds=thresholds or Thresholds(),
            most=moves,
            prices=self._prices,
        )

    def autoscale(
        self,
        groups: Sequence[JsonObject] = (),
        *,
        flags: Mapping[str, object] | None = None,
        limits: GroupLimits | None = None,
        boot: str = "2m",
        within: str = "1h",
    ) -> Answer:
        """What would the cluster autoscaler do in so much time?

        Nodes that are alike are the groups, unless ``groups`` are given, whose names are those of
        pools. ``flags`` are the autoscaler's, by their own names.
        """
        settings = read_settings(flags or {}, "--autoscaler-flags")
        nodes = [obj for obj in self.snapshot.objects if obj.get("kind") == "Node"]
        waited = waiting_pods(self.world)
        pools = pools_of(
            nodes, groups, limits=limits or GroupLimits(), boot=boot, prices=self._prices
        )
        changed = replace(self.snapshot, objects=with_machines(self.snapshot.objects, pools))
        decisions = Decisions()
        world = self._settled(changed, autoscaler=settings, instruments=[decisions])
        return autoscale(
            world,
            decisions,
            pools,
            waited,
            self.unknown,
            within=parse_duration(within),
            has_limits=limits is not None or bool(groups),
            currency=self._prices.currency if self._prices else "",
        )

    def rightsize(
        self,
        usage: Sequence[str | Path] = (),
        *,
        quantile: float = 0.9,
        window: str = "168h",
        flags: DrainFlags | None = None,
        tries: int = 3,
    ) -> Answer:
        """What if pods asked for what they use: how many nodes fewer, and at what risk?

        ``usage`` are files, folders or URLs (`kubescene.what_if.used`), beside what the snapshot
        has of vertical autoscalers. ``quantile`` of the samples is to be asked for, and the
        recommender's margin.
        """
        if not 0 < quantile <= 1:
            raise ConfigurationError(f"--quantile is {quantile}: say a share such as 0.95")
        options = RecommenderOptions(
            target_cpu_percentile=quantile, target_memory_percentile=quantile
        )
        world = self.world
        now = world.clock.now()
        sources = [str(each) for each in usage]
        recorded = recorded_usage(sources, now, parse_duration(window)) if sources else None
        recommenders = Recommenders(self.snapshot, world, recorded, options)
        sizes = list(recommenders.sized())
        if not sizes:
            raise ConfigurationError(
                "nothing is known of what pods use: name files, folders or a URL by --usage, or "
                "take a snapshot with VerticalPodAutoscalers and their checkpoints"
            )
        changed, unplaced = with_sizes(self.snapshot, world, sizes)
        worlds = world, self._settled(changed)
        unknown = [*self.unknown, *(recorded.told() if recorded else ())]
        if unplaced:
            unknown.append(
                f"when pods are replaced: {counted(unplaced, 'pod')} that ask for more were "
                "placed anew at once"
            )
        settings = flags or DrainFlags(delete_empty_dir_data=True)
        now_shrunk, then_shrunk = (
            shrunk(each, (), keep=0.0, flags=settings, tries=tries) for each in worlds
        )
        return rightsize(
            worlds,
            (now_shrunk, then_shrunk),
            recommenders,
            sizes,
            unknown,
            options=options,
            prices=self._prices,
        )

    def schedule(self, scheduler: SchedulerSource | None = None, *, unplace: str = "all") -> Answer:
        """Pods go back to the queue: where would they go, with this configuration or the present?

        ``unplace`` is a label selector, or ``all``; pods of DaemonSets and static pods stay.
        """
        snapshot, number = unplaced(self.snapshot, unplace)
        options = None if scheduler is None else scheduler_options(scheduler)
        mine = self._settled(snapshot)
        other = mine if options is None else self._settled(snapshot, options)
        return schedule(
            Placing(self.world, mine, other), self.unknown, number, has_other=options is not None
        )

    def repack(self, *nodes: str, shape: NewNode) -> Answer:
        """How many nodes of this shape would do in place of these (all, if none is named)?"""
        return repack(
            self.snapshot,
            self.world,
            self._settled,
            nodes,
            self.unknown,
            shape=shape,
            prices=self._prices,
        )

    def explain(self, pod: str) -> Answer:
        """Why does a pod wait, and what would help? Or where would one that is placed go today?"""
        return explain(self.world.fork(), pod, self.unknown)

    def fit(self, objects: Sequence[JsonObject], *, most: int = 100_000) -> Answer:
        """How often do these objects fit, together, without anybody giving way?"""
        return fit(self.world, objects, self.unknown, most=most)

    def apply(self, objects: Sequence[JsonObject], *, within: str = "10m") -> Answer:
        """These objects are created or changed: who moves, who waits, who gives way?"""
        return applied(self.world, objects, self.unknown, within=parse_duration(within))


def price_list(path: Path | None) -> Prices | None:
    """What nodes cost, if a file says so."""
    return None if path is None else read_prices(path)
