"""Pods that share the CPU of a node, as plainly as can be: one event after the other.

The rules of `kubescene.flows.node_kernel`, without any of its short cuts: at every instant all pods
are looked at, and every rate is worked out anew.
"""

from dataclasses import dataclass, field
from fractions import Fraction

SCALE = 1 << 20


@dataclass
class Request:
    row: int
    arrived: int
    demand: int
    tag: int = -1


@dataclass
class Pod:
    limit: int
    """0 is none."""
    weight: int
    timeout: int
    ceiling: int = 0
    at_once: int = 0
    arrivals: list[tuple[int, int, int]] = field(default_factory=list)
    inside: list[Request] = field(default_factory=list)
    waiting: list[Request] = field(default_factory=list)
    work: int = 0
    time: int = 0
    rate: int = 0
    used: int = 0
    used_until: int = 0
    ended: list[tuple[int, int, bool]] = field(default_factory=list)

    def move(self, now: int) -> None:
        if self.inside:
            self.work += (now - self.time) * self.rate // (len(self.inside) * SCALE)
        self.time = now

    def admit(self) -> None:
        while self.waiting and (not self.at_once or len(self.inside) < self.at_once):
            request = self.waiting.pop(0)
            request.tag = self.work + request.demand
            self.inside.append(request)

    def end(self) -> tuple[int, Request] | None:
        if not self.inside or not self.rate:
            return None
        first = min(self.inside, key=lambda each: each.tag)
        left = (first.tag - self.work) * len(self.inside) * SCALE
        return self.time + -(-left // self.rate), first

    def deadline(self) -> tuple[int, Request] | None:
        everybody = self.inside + self.waiting
        if not everybody:
            return None
        oldest = min(everybody, key=lambda each: (each.arrived, each.row))
        return oldest.arrived + self.timeout, oldest

    def next(self) -> int | None:
        found = [each[0] for each in (self.end(), self.deadline()) if each is not None]
        return min(found, default=None)

    def cap(self, capacity: int) -> int:
        most = self.limit or capacity
        return min(most, len(self.inside) * self.ceiling) if self.ceiling else most

    def leave(self, now: int) -> bool:
        """Let one go whose time it is; whether there was one."""
        end, deadline = self.end(), self.deadline()
        if end is not None and end[0] <= now and (deadline is None or end[0] <= deadline[0]):
            self.work, self.time = end[1].tag, now
            self.inside.remove(end[1])
            self.ended.append((end[1].row, now, False))
        elif deadline is not None and deadline[0] <= now:
            self.move(now)
            self.inside.remove(deadline[1])
            self.ended.append((deadline[1].row, now, True))
        else:
            return False
        self.admit()
        return True


def play(capacity: int, pods: list[Pod], until: int) -> None:
    """Everything before ``until``."""
    while True:
        coming = [pod.arrivals[0][0] for pod in pods if pod.arrivals]
        leaving = [found for pod in pods if (found := pod.next()) is not None]
        now = min(coming + leaving, default=until)
        if now >= until:
            return
        changed = [pod for pod in pods if pod.next() == now]
        if changed:
            for pod in changed:
                while pod.leave(now):
                    pass
        else:
            for pod in pods:
                while pod.arrivals and pod.arrivals[0][0] == now:
                    _, row, demand = pod.arrivals.pop(0)
                    pod.move(now)
                    if not pod.inside:
                        pod.work = 0
                    pod.waiting.append(Request(row, now, demand))
                    pod.admit()
        share(capacity, pods, now)


def share(capacity: int, pods: list[Pod], now: int) -> None:
    busy = [pod for pod in pods if pod.inside]
    caps = {id(pod): pod.cap(capacity) for pod in busy}
    rates = {id(pod): 0 for pod in pods}
    if sum(caps.values()) <= capacity:
        rates.update((key, cap * SCALE) for key, cap in caps.items())
    else:
        left = capacity * SCALE
        order = sorted(busy, key=lambda pod: Fraction(caps[id(pod)], pod.weight))
        while order:
            pod = order.pop(0)
            weights = pod.weight + sum(each.weight for each in order)
            rates[id(pod)] = min(caps[id(pod)] * SCALE, left * pod.weight // weights)
            left -= rates[id(pod)]
    for pod in pods:
        if pod.rate != rates[id(pod)]:
            pod.used += pod.rate * (now - pod.used_until)
            pod.used_until = now
            pod.move(now)
            if pod.inside:
                pod.work = min(pod.work, *(each.tag for each in pod.inside))
            pod.rate = rates[id(pod)]
