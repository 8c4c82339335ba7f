"""The simulated `ReplicaBackend`: replicas move from stock to stock.

Each movement is bound to its replica, so that a launch that is cancelled starts nobody else early.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubescene.traffic.world.entities import Entity, EntityKind
from kubescene.traffic.world.environment import Environment
from kubescene.traffic.world.movements import Movement, MovementKind
from kubescene.traffic.world.replicas import Replica, ReplicaListener, ReplicaSize, ReplicaVictims
from kubescene.traffic.world.stocks import Stock, WatchedStock


class ReplicaTimes(NamedTuple):
    """How long it takes to launch, and to end once no request is left."""

    launch: int
    terminate: int


class ReplicaSource(Stock[Replica]):
    """Makes a new replica for whoever asks, in the size that is admitted."""

    __slots__ = ("_environment", "_made", "size")

    def __init__(self, environment: Environment, size: ReplicaSize) -> None:
        super().__init__("ReplicaSource", EntityKind.REPLICA)
        self.size = size
        self._environment = environment
        self._made = 0

    def remove(self, entity: Replica | None = None) -> Replica:
        if entity is not None:
            return entity
        self._made += 1
        return Replica(self._made, self.size, self._environment.now)


class InMemoryReplicas:
    """The simulated backend."""

    def __init__(
        self,
        environment: Environment,
        size: ReplicaSize,
        times: ReplicaTimes,
        victims: ReplicaVictims,
        listener: ReplicaListener,
    ) -> None:
        self._environment = environment
        self._times = times
        self._victims = victims
        self._listener = listener
        self.everybody: list[Replica] = []
        self.source = ReplicaSource(environment, size)
        self.desired_source: Stock[Entity] = Stock("DesiredSource", EntityKind.DESIRED)
        self.desired_sink: Stock[Entity] = Stock("DesiredSink", EntityKind.DESIRED)
        self.desired_stock: Stock[Entity] = WatchedStock(
            "ReplicasDesired", EntityKind.DESIRED, added=self._increased, removed=self._reduced
        )
        self.launching: Stock[Replica] = WatchedStock(
            "ReplicasLaunching", EntityKind.REPLICA, added=self._launch
        )
        self.active_stock: Stock[Replica] = WatchedStock(
            "ReplicasActive", EntityKind.REPLICA, added=self._activate, removed=self._deactivate
        )
        self.terminating: Stock[Replica] = WatchedStock(
            "ReplicasTerminating", EntityKind.REPLICA, added=self._terminate
        )
        self.terminated: Stock[Replica] = WatchedStock(
            "ReplicasTerminated", EntityKind.REPLICA, added=self._end
        )

    @property
    def desired(self) -> int:
        return self.desired_stock.count

    @property
    def active(self) -> Sequence[Replica]:
        return self.active_stock.entities

    def begin(self, replicas: int) -> None:
        for _ in range(replicas):
            # Straight into their stocks: nobody is told before the run begins.
            self.desired_stock.entities.append(Entity(EntityKind.DESIRED))
            replica = self.source.remove()
            self.everybody.append(replica)
            self.launching.entities.append(replica)
            self._move(
                MovementKind.START_INITIAL_REPLICA, self.launching, self.active_stock, replica
            )

    def scale(self, replicas: int) -> None:
        for _ in range(replicas - self.desired):
            wish = Entity(EntityKind.DESIRED)
            self.desired_source.add(wish)
            self._move(MovementKind.INCREASE_DESIRED, self.desired_source, self.desired_stock, wish)
        for _ in range(self.desired - replicas):
            self._move(MovementKind.REDUCE_DESIRED, self.desired_stock, self.desired_sink)

    def admit(self, size: ReplicaSize) -> None:
        self.source.size = size

    def evict(self, replicas: Iterable[Replica], *, surge: bool) -> None:
        for old in list(replicas):
            if old.doomed or old.replacement is not None:
                continue
            new = self.source.remove()
            if surge:
                old.replacement, new.replaces = new, old
            else:
                self._doom(old, MovementKind.EVICT_REPLICA)
            self.launching.add(new)

    def resize(self, replicas: Iterable[Replica], size: ReplicaSize) -> None:
        for replica in list(replicas):
            if not replica.doomed and replica.size != size:
                now = self._environment.now
                replica.cpu_before += replica.size.cpu * (now - replica.resized_at)
                replica.resized_at = now
                replica.size = size
                self._listener.resized(replica)

    def restart(self, replica: Replica, instant: int, delay: int) -> None:
        if replica.doomed or replica.restarting:
            return
        kind = MovementKind.RESTART_REPLICA
        movement = Movement(kind, instant, self.active_stock, self.launching, replica)
        if self._environment.add_to_schedule(movement):
            replica.restarting = True
            replica.restarts += 1
            replica.restart_delay = delay

    # -- what follows from a movement ----------------------------------------------------------

    def _increased(self, wish: Entity) -> None:
        del wish
        self._move(MovementKind.BEGIN_LAUNCH, self.source, self.launching)
        self._listener.counted()

    def _reduced(self, wish: Entity) -> None:
        del wish
        waiting = [each for each in self.launching.entities if not each.doomed]
        # A replacement belongs to the one that it replaces, and goes with it.
        if own := [each for each in waiting if each.replaces is None]:
            self._doom(self._first(own), MovementKind.TERMINATE_LAUNCH)
        elif staying := [each for each in self.active_stock.entities if not each.doomed]:
            victim = self._first(staying)
            self._doom(victim, MovementKind.TERMINATE_ACTIVE)
            if victim.replacement is not None:
                self._doom(victim.replacement, MovementKind.TERMINATE_LAUNCH)
        self._listener.counted()

    def _first(self, candidates: list[Replica]) -> Replica:
        return candidates[-1] if self._victims is ReplicaVictims.NEWEST else candidates[0]

    def _doom(self, replica: Replica, kind: MovementKind) -> None:
        replica.doomed = True
        launching = kind is MovementKind.TERMINATE_LAUNCH or replica.launch is not None
        if replica.launch is not None:
            self._environment.cancel(replica.launch)
        source = self.launching if launching else self.active_stock
        self._move(kind, source, self.terminating, replica)

    def _launch(self, replica: Replica) -> None:
        delay = self._times.launch
        if replica.doomed:  # while it was about to start again
            self._move(MovementKind.TERMINATE_LAUNCH, self.launching, self.terminating, replica)
            return
        if replica.restarting:
            delay += replica.restart_delay
        else:
            self.everybody.append(replica)
        updated = replica.replaces is not None
        kind = MovementKind.CREATE_UPDATED_REPLICA if updated else MovementKind.FINISH_LAUNCHING
        ready = self._environment.now + delay
        replica.launch = Movement(kind, ready, self.launching, self.active_stock, replica)
        if not self._environment.add_to_schedule(replica.launch):
            replica.launch = None
        if not replica.restarting:
            self._listener.launched(replica)
        self._listener.counted()

    def _activate(self, replica: Replica) -> None:
        replica.launch = None
        replica.restarting = False
        replica.activated_at, replica.deactivated_at = self._environment.now, -1
        self._listener.activated(replica)
        if replica.replaces is not None:
            old, replica.replaces = replica.replaces, None
            if not old.doomed:
                self._doom(old, MovementKind.EVICT_REPLICA)
        self._listener.counted()

    def _deactivate(self, replica: Replica) -> None:
        replica.deactivated_at = self._environment.now
        if replica.restarting:
            self._listener.killed(replica)
        else:
            replica.drained_at = self._listener.deactivated(replica)

    def _terminate(self, replica: Replica) -> None:
        now = self._environment.now
        if replica.activated_at < 0 or replica.restarting:
            replica.drained_at = now
            self._listener.cancelled(replica)
        ended = max(replica.drained_at, now) + self._times.terminate
        movement = Movement(
            MovementKind.FINISH_TERMINATING, ended, self.terminating, self.terminated, replica
        )
        self._environment.add_to_schedule(movement)
        self._listener.counted()

    def _end(self, replica: Replica) -> None:
        replica.terminated_at = self._environment.now
        self._listener.counted()

    def _move(
        self,
        kind: MovementKind,
        source: Stock[Any],
        target: Stock[Any],
        entity: Entity | None = None,
    ) -> None:
        now = self._environment.now
        self._environment.add_to_schedule(Movement(kind, now, source, target, entity))
