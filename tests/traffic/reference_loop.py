"""Processor sharing written for reading: one event after the other, everything searched anew.

The rules of `kubescene.flows.kernels`, without any of its short cuts, to compare it with.
"""

from kubescene.flows.kernels import NEVER, Service


class Job:
    def __init__(self, row: int, arrived: int, demand: int) -> None:
        self.row, self.arrived, self.demand = row, arrived, demand
        self.tag: int | None = None


class ReferenceProcessor:
    """Same answers as `Processor`, slowly."""

    def __init__(self, service: Service, capacity: int) -> None:
        self.service, self.capacity = service, capacity
        self.time = self.work = self.used = 0
        self.jobs: list[Job] = []
        self.gone: list[tuple[int, int, bool]] = []

    @property
    def sharers(self) -> list[Job]:
        return [job for job in self.jobs if job.tag is not None]

    @property
    def speed(self) -> int:
        sharing = len(self.sharers)
        if not self.service.ceiling:
            return self.capacity if sharing else 0
        return min(self.capacity, sharing * self.service.ceiling)

    def advance(self, now: int) -> None:
        if sharing := len(self.sharers):
            self.used += self.speed * (now - self.time)
            self.work += (now - self.time) * self.speed // sharing
        self.time = now

    def start(self) -> None:
        if not self.sharers:
            self.work = 0
        for job in self.jobs:
            if job.tag is None and len(self.sharers) < (self.service.limit or NEVER):
                job.tag = self.work + job.demand

    def ends(self) -> list[tuple[int, int, int, Job]]:
        """Instant, 0 for an end and 1 for a deadline, order, job."""
        found = []
        sharers = self.sharers
        for order, job in enumerate(self.jobs):
            if job.tag is not None:
                needed = (job.tag - self.work) * len(sharers)
                found.append((self.time + -(-needed // self.speed), 0, job.tag, order, job))
            found.append((job.arrived + self.service.timeout, 1, 0, order, job))
        return [(at, late, order, job) for at, late, _, order, job in sorted(found, key=_rank)]

    def run(self, until: int) -> None:
        while self.jobs:
            at, late, _, job = self.ends()[0]
            if at >= until:
                return
            self.advance(at)
            if not late:
                assert job.tag is not None
                self.work = job.tag
            self.jobs.remove(job)
            self.gone.append((job.row, at, bool(late)))
            self.start()

    def arrive(self, row: int, at: int, demand: int) -> None:
        self.run(at + 1)
        self.advance(at)
        self.jobs.append(Job(row, at, demand))
        self.start()

    def resize(self, capacity: int, now: int) -> None:
        self.run(now)
        self.advance(now)
        self.work = min([self.work, *(job.tag for job in self.jobs if job.tag is not None)])
        self.capacity = capacity


def _rank(found: tuple[int, int, int, int, Job]) -> tuple[int, int, int, int]:
    return found[:4]
