"""Requests in faithful mode: where they come from, what they need, and what becomes of them."""

from array import array

import numpy as np

from kubescene.clock import Stream
from kubescene.flows.records import NO_REPLICA, RequestColumns, RequestOutcome
from kubescene.traffic.faithful.queueing import CpuRules, admit
from kubescene.traffic.world.entities import Entity, EntityKind
from kubescene.traffic.world.environment import Environment
from kubescene.traffic.world.movements import Movement, MovementKind
from kubescene.traffic.world.stocks import ArrayStock, Stock


class FaithfulRequest(Entity):
    """A request, and the CPU that it holds while it is processed."""

    __slots__ = ("use",)

    def __init__(self, number: int) -> None:
        super().__init__(EntityKind.REQUEST, number)
        self.use = 0.0


class RequestDemand:
    """What every request needs, the rules of the model, and where its delays come from."""

    __slots__ = ("cpu_ms", "delays", "io_ms", "rules", "timeout")

    def __init__(
        self, cpu_ms: float, io_ms: float, timeout: int, rules: CpuRules, delays: Stream
    ) -> None:
        self.cpu_ms = cpu_ms
        self.io_ms = io_ms
        self.timeout = timeout
        self.rules = rules
        self.delays = delays


class RequestLog:
    """The columns of requests while they grow row by row."""

    def __init__(self) -> None:
        self.arrived = array("q")
        self.completed = array("q")
        self.replica = array("i")
        self.outcome = array("B")

    def arrive(self, now: int) -> int:
        """A new request; answers its number."""
        self.arrived.append(now)
        self.completed.append(now)
        self.replica.append(NO_REPLICA)
        self.outcome.append(RequestOutcome.OPEN)
        return len(self.arrived)

    def end(self, request: FaithfulRequest, now: int, outcome: RequestOutcome) -> None:
        self.completed[request.number - 1] = now
        self.outcome[request.number - 1] = outcome

    def columns(self) -> RequestColumns:
        columns = RequestColumns(len(self.arrived))
        columns.append(np.array(self.arrived, dtype=np.int64))
        columns.completed[:] = self.completed
        columns.replica[:] = self.replica
        columns.outcome[:] = self.outcome
        return columns


class TrafficSource(Stock[FaithfulRequest]):
    """Whoever takes a request from here makes one."""

    __slots__ = ("_environment", "_log")

    def __init__(self, environment: Environment, log: RequestLog) -> None:
        super().__init__("TrafficSource", EntityKind.REQUEST)
        self._environment = environment
        self._log = log

    def remove(self, entity: FaithfulRequest | None = None) -> FaithfulRequest:
        del entity
        return FaithfulRequest(self._log.arrive(self._environment.now))


class EndStock(Stock[FaithfulRequest]):
    """Where requests end: only counted."""

    __slots__ = ("_environment", "_log", "_outcome", "ended")

    def __init__(
        self, name: str, environment: Environment, log: RequestLog, outcome: RequestOutcome
    ) -> None:
        super().__init__(name, EntityKind.REQUEST)
        self._environment = environment
        self._log = log
        self._outcome = outcome
        self.ended = 0

    @property
    def count(self) -> int:
        return self.ended

    def add(self, entity: FaithfulRequest) -> None:
        self.check(entity)
        self.ended += 1
        self._log.end(entity, self._environment.now, self._outcome)


class RequestsProcessing(ArrayStock[FaithfulRequest]):
    """The requests inside one replica. Each is timed once, when it comes, by the CPU left then."""

    __slots__ = (
        "_complete",
        "_demand",
        "_environment",
        "_failed",
        "_log",
        "_replica",
        "occupied",
        "total",
    )

    def __init__(
        self,
        replica: int,
        total: int,
        environment: Environment,
        demand: RequestDemand,
        log: RequestLog,
        failed: EndStock,
    ) -> None:
        super().__init__(f"RequestsProcessing [{replica}]", EntityKind.REQUEST)
        self.total = float(total)
        self.occupied = 0.0
        self._replica = replica
        self._environment = environment
        self._demand = demand
        self._log = log
        self._failed = failed
        self._complete = EndStock(
            f"RequestsComplete [{replica}]", environment, log, RequestOutcome.OK
        )

    def add(self, entity: FaithfulRequest) -> None:
        self._log.replica[entity.number - 1] = self._replica
        demand, now = self._demand, self._environment.now
        got = admit(self.total, self.occupied, demand.cpu_ms, demand.io_ms, demand.rules)
        took = demand.timeout + 1
        if got is not None:
            entity.use = got.use
            self.occupied += got.use
            # Where the bound is beyond 64 bits the base is past any timeout.
            took = got.base + demand.delays.below(min(got.delay_bound, 1 << 64))
        if took <= demand.timeout:
            kind, at, to = MovementKind.COMPLETE_REQUEST, now + took, self._complete
        else:
            kind, at, to = MovementKind.REQUEST_FAILED, now + demand.timeout, self._failed
        self._environment.add_to_schedule(Movement(kind, at, self, to, entity))
        super().add(entity)

    def remove(self, entity: FaithfulRequest | None = None) -> FaithfulRequest | None:
        removed = super().remove(entity)
        if removed is not None:
            self.occupied -= removed.use
        return removed
