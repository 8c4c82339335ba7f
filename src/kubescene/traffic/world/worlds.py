"""What both modes of a world have in common, and how one is driven.

A world is played with `run_until`; it may be left at any instant and go on later, and it is an
`EventSource`. `finish` closes it. Whatever is known so far can be read at any time.
"""

from typing import NamedTuple

import msgspec

from kubescene.autoscalers import VerticalRecommendationResponse
from kubescene.autoscalers.dispatcher import Partition
from kubescene.errors import AutoscalerError
from kubescene.flows.records import RequestColumns
from kubescene.flows.sampling import MetricsTimes
from kubescene.struct_types import build
from kubescene.traffic.spec.checks import MOST_REPLICAS
from kubescene.traffic.spec.fields import TrafficSpec
from kubescene.traffic.world.decisions import AutoscalerDecision, SizeDecision
from kubescene.traffic.world.entities import Entity, EntityKind
from kubescene.traffic.world.environment import Environment, MovementSchedule, go_on
from kubescene.traffic.world.movements import Movement, MovementKind, MovementLog
from kubescene.traffic.world.stocks import Ticktock

ROUTING_STOCK = "RoutingStock"
"""The name under which autoscalers are told of requests that no replica has."""


class ReplicaCount(NamedTuple):
    """How many replicas there are in each state, from ``time`` on."""

    time: int
    desired: int
    launching: int
    active: int
    terminating: int


class Utilization(NamedTuple):
    """The mean share of their CPU that active replicas use, in percent."""

    time: int
    percent: float


class CpuUse(NamedTuple):
    """CPU that requests used, in the mean since the one before; millicores."""

    time: int
    millicores: int


class ReplicaRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The life of a replica; instants that did not come are -1. Sizes are those at its end.

    ``cpu_before`` is the CPU that was reserved until ``resized_at``, in millicore-nanoseconds;
    ``restarts`` is how often it was killed for want of memory.
    """

    name: str
    cpu: int
    memory: int = 0
    launched_at: int
    activated_at: int = -1
    deactivated_at: int = -1
    terminated_at: int = -1
    resized_at: int = -1
    cpu_before: int = 0
    restarts: int = 0


class Replaced(NamedTuple):
    """The names of those who got another size: with a new replica, or in place."""

    evicted: tuple[str, ...]
    resized: tuple[str, ...] = ()


class Tick(NamedTuple):
    """An instant at which autoscalers are asked, and for what."""

    instant: int
    horizontal: bool
    vertical: bool


def next_tick(spec: TrafficSpec, after: int = 0) -> Tick | None:
    """The first multiple of either interval after an instant; None past the end."""
    horizontal, vertical = int(spec.horizontal_interval), int(spec.vertical_interval)
    instant = min(after - after % each + each for each in (horizontal, vertical))
    if instant >= spec.duration:
        return None
    return Tick(instant, not instant % horizontal, not instant % vertical)


def metrics_times(spec: TrafficSpec) -> MetricsTimes:
    metrics = spec.metrics
    return MetricsTimes(int(metrics.first_after), int(spec.stat_interval), int(metrics.lag))


class TrafficWorld:
    """An environment with autoscalers, and what is written down of it."""

    def __init__(self, spec: TrafficSpec, partition: Partition, schedule: MovementSchedule) -> None:
        self.spec = spec
        self.partition = partition
        self.is_stopped = False
        self.log = MovementLog()
        self.environment = Environment(0, int(spec.duration), schedule, self.log)
        self.decisions: list[AutoscalerDecision] = []
        self.sizes: list[SizeDecision] = []
        self.counts: list[ReplicaCount] = []
        self.utilizations: list[Utilization] = []
        self.cpu_used: list[CpuUse] = []
        """Only where replicas are measured together: in fixed mode."""
        self.ticktock = Ticktock("Autoscaler Ticktock", Entity(EntityKind.AUTOSCALER), self.ticked)

    @property
    def now(self) -> int:
        return self.environment.now

    def begin(self) -> None:
        """Tell autoscalers that they exist, and start the first replicas."""
        raise NotImplementedError

    def peek(self) -> int | None:
        return self.environment.peek()

    def run_until(self, instant: int) -> int:
        return self.environment.run_until(instant)

    def stop(self) -> int:
        """The run was stopped; up to which instant all has happened. Nobody can stop it now."""
        self.environment.stopped = go_on
        self.is_stopped = True
        return self.now

    def finish(self, end: int) -> None:
        """Nothing happens after ``end``."""
        raise NotImplementedError

    def close(self) -> None:
        """Nobody asks it any more: its parts, which know each other, forget what they know.

        They would be left to the garbage collector otherwise, which may come late.
        """
        vars(self.environment).clear()
        vars(self).clear()

    def ticked(self, entity: Entity) -> None:
        """It is time to ask autoscalers."""
        raise NotImplementedError

    @property
    def columns(self) -> RequestColumns:
        raise NotImplementedError

    @property
    def used(self) -> int:
        """CPU work done so far, in millicore-nanoseconds."""
        raise NotImplementedError

    def replicas(self) -> list[ReplicaRecord]:
        raise NotImplementedError

    # -- what autoscalers are asked ------------------------------------------------------------

    @property
    def desired(self) -> int:
        """How many replicas there should be."""
        raise NotImplementedError

    def desire(self, replicas: int) -> None:
        """So many there should be from now on."""
        raise NotImplementedError

    def scale(self, now: int) -> None:
        """Ask for a number of replicas, let it be so, and write down who said it and why."""
        self.environment.check()
        asked = self.partition.horizontal(now)
        if asked is None:
            return
        who, answer = asked
        if answer.rec > MOST_REPLICAS:
            told = f"{answer.rec} replicas are more than the {MOST_REPLICAS} of one run"
            raise AutoscalerError(told, autoscaler=who, call="HorizontalRecommendation")
        before = self.desired
        self.desire(answer.rec)
        self.decisions.append(
            AutoscalerDecision(
                time=now,
                autoscaler=who,
                before=before,
                after=answer.rec,
                reason=answer.reason,
                details=answer.details,
            )
        )

    def replace(self, answer: VerticalRecommendationResponse) -> Replaced | None:
        """Do what a recommendation of a size asks for; None if it asks for nothing."""
        raise NotImplementedError

    def size(self, now: int) -> None:
        """Ask for a size, replace whoever has the wrong one, and write it down."""
        self.environment.check()
        asked = self.partition.vertical(now)
        if asked is None:
            return
        who, answer = asked
        replaced = self.replace(answer)
        if replaced is None:
            return
        self.sizes.append(
            SizeDecision(
                time=now,
                autoscaler=who,
                resources=answer.rec,
                evicted=replaced.evicted,
                resized=replaced.resized,
                reason=answer.reason,
                details=answer.details,
            )
        )

    def ask(self, tick: Tick, now: int) -> None:
        if tick.horizontal:
            self.scale(now)
        if tick.vertical:
            self.size(now)

    # -- what is written down ------------------------------------------------------------------

    def count(self, counted: ReplicaCount) -> None:
        """Write down a change; at one instant the last one counts."""
        if self.counts and self.counts[-1].time == counted.time:
            self.counts.pop()
        if not self.counts or self.counts[-1][1:] != counted[1:]:
            self.counts.append(counted)

    def schedule_tick(self, instant: int) -> None:
        ticktock = self.ticktock
        movement = Movement(
            MovementKind.AUTOSCALER_TICK, instant, ticktock, ticktock, ticktock.entity
        )
        self.environment.add_to_schedule(movement)


build(ReplicaRecord)
