"""The CPU of a node that its pods contend for: exact sharing by weights, in integers.

Every pod is a processor of its own (`SharedProcessor`): its requests share what the pod gets, as in
`kernels`. A pod may use its limit, and so much as its requests can use at once. If all busy pods
may use more than the node has, it is filled like water: each gets in proportion to its weight, none
more than it may use, and what one leaves over goes to the others. The rules beyond those of
`kernels`:

- rates are in ``1 / 2^20`` of a millicore, rounded down; what is lost goes to the next that is
  filled, in order of how soon they are full, and then of their coming;
- at one instant: ends of CPU and deadlines of all pods, then arrivals, then rates anew;
- the work of a pod moves where somebody comes to it or leaves it, and where its rate changes.

Nothing moves where somebody looks: running until a and then until b is running until b. Pods of
several flows may share a node, so arrivals are offered by all of them first, and then it is played.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from operator import attrgetter

from kubescene.flows.kernels import NEVER, Processor, Resident, Served, Service

RATE_BITS = 20
LEAST_WEIGHT = 2
"""As cgroups have it for a container that requests nothing."""
_FULL_BITS = 40


class Inmate:
    """A request inside a pod of a node. It is compared by tag, and then by who came first."""

    __slots__ = ("arrived", "demand", "is_gone", "row", "tag")

    def __init__(self, row: int, arrived: int, demand: int) -> None:
        self.row = row
        self.arrived = arrived
        self.demand = demand
        self.tag = -1
        self.is_gone = False


class SharedProcessor(Processor):
    """The share that one pod has of a node."""

    __slots__ = (
        "cap",
        "ends",
        "foreseen",
        "fullness",
        "heap",
        "inmates",
        "late",
        "limit",
        "node",
        "offered",
        "oldest",
        "order",
        "present",
        "rate",
        "sequence",
        "started",
        "used_until",
        "weight",
    )

    def __init__(
        self, node: "NodeCpu", service: Service, now: int, *, limit: int, weight: int
    ) -> None:
        """``limit`` is 0 if there is none."""
        super().__init__(service, limit or node.capacity, now)
        self.node = node
        self.limit = limit
        self.weight = max(weight, LEAST_WEIGHT)
        self.order = node.enter(self)
        self.rate = 0
        """What it gets, in ``1 / 2^20`` of a millicore."""
        self.cap = 0
        """What it may use, in millicores; 0 while it is idle."""
        self.fullness = 0
        self.used_until = now
        """What it used is in ``spent`` up to here."""
        self.offered: list[tuple[int, int, int]] = []
        """Arrivals that were not played yet: instant, row, demand."""
        self.inmates: list[Inmate] = []
        """In order of arrival."""
        self.heap: list[tuple[int, int, Inmate]] = []
        self.oldest = self.started = self.present = self.sequence = 0
        self.late = False
        self.foreseen: Service | None = None
        """By which rules ``bound`` was found, if nothing has changed since."""
        self.ends: Served = Served([], [], [])

    @property
    def held(self) -> int:
        return self.present

    def left(self) -> list[int]:
        return [each.row for each in self.inmates if not each.is_gone]

    def used(self, now: int) -> int:
        return (self.spent + self.rate * (now - self.used_until)) >> RATE_BITS

    def offer(self, arrivals: list[int], rows: Iterable[int], demands: list[int] | None) -> None:
        """These come before the node is played further."""
        if demands is None:
            demand = self.service.demand
            self.offered += [(at, row, demand) for at, row in zip(arrivals, rows, strict=True)]
        else:
            self.offered += zip(arrivals, rows, demands, strict=True)

    def taken(self) -> Served:
        """Who has left since this was asked last."""
        ends, self.ends = self.ends, Served([], [], [])
        return ends

    def resize(self, capacity: int, now: int) -> None:
        """Another limit from ``now`` on. All that happens before must have been played."""
        self.limit, self.capacity = capacity, capacity or self.node.capacity
        self.node.forget(self)
        self.node.change(self, now)

    def weigh(self, weight: int) -> None:
        """Another weight; it counts from the next change of its limit on."""
        self.weight = max(weight, LEAST_WEIGHT)

    def residents(self, now: int) -> list[Resident]:
        work = self.work
        if self.sharing:
            work += ((now - self.time) * self.rate // self.sharing) >> RATE_BITS
            work = min(work, self.least_tag())
        return [
            Resident(each.row, each.arrived, each.demand if each.tag < 0 else each.tag - work)
            for each in self.inmates
            if not each.is_gone
        ]

    def adopt(self, residents: Iterable[Resident], used: int, now: int) -> None:
        """Requests that have been served elsewhere until now, and what was used for them."""
        self.spent = used << RATE_BITS
        self._take(residents)
        self.node.change(self, now)

    def admit(
        self, rows: Iterable[int], demands: list[int] | None, since: list[int], now: int
    ) -> Served:
        self.go_to(now)
        if not self.sharing:
            self._begin_anew()
        self._take(self.waiting(rows, demands, since))
        # Deadlines are sooner than those of who arrives now: the bound is looked for anew.
        self.bound, self.foreseen = now, None
        self.node.change(self, now)
        return Served([], [], [])

    def _take(self, residents: Iterable[Resident]) -> None:
        for row, arrived, left in residents:
            inmate = Inmate(row, arrived, left)
            self.inmates.append(inmate)
            self.present += 1
            if self.sharing < (self.service.limit or NEVER):
                self.start(inmate)
                self.started += 1

    def _begin_anew(self) -> None:
        """Nobody is inside any more."""
        self.work = 0
        self.heap.clear()
        self.inmates.clear()
        self.oldest = self.started = 0

    # -- what the node does with it ------------------------------------------------------------

    def most(self) -> int:
        """What it may use now, in millicores."""
        ceiling = self.service.ceiling
        if not self.sharing:
            return 0
        return min(self.capacity, self.sharing * ceiling) if ceiling else self.capacity

    def go_to(self, now: int) -> None:
        """Do the work up to now."""
        if self.sharing and now > self.time:
            self.work += ((now - self.time) * self.rate // self.sharing) >> RATE_BITS
        self.time = now

    def gets(self, rate: int, now: int) -> None:
        """Another rate from now on."""
        before = self.rate
        if rate == before:
            return
        self.spent += before * (now - self.used_until)
        self.used_until = now
        if sharing := self.sharing:
            work = self.work
            if now > self.time:
                work += ((now - self.time) * before // sharing) >> RATE_BITS
            # Who ends at this very instant got no more than it wanted.
            least = self.least_tag()
            self.work = work if work < least else least
        self.time = now
        self.rate = rate
        self.bound, self.foreseen = now, None

    def least_tag(self) -> int:
        heap = self.heap
        while heap[0][2].is_gone:
            heappop(heap)
        return heap[0][0]

    def start(self, inmate: Inmate) -> bool:
        """It shares the CPU from now on; whether it is the next to leave."""
        self.sharing += 1
        self.sequence += 1
        inmate.tag = self.work + inmate.demand
        heappush(self.heap, (inmate.tag, self.sequence, inmate))
        return self.heap[0][2] is inmate

    def arrive(self, at: int, row: int, demand: int) -> None:
        inmate, sharing = Inmate(row, at, demand), self.sharing
        if not sharing:
            self._begin_anew()
        elif at > self.time:
            self.work += ((at - self.time) * self.rate // sharing) >> RATE_BITS
        self.time = at
        self.foreseen = None
        self.inmates.append(inmate)
        self.present += 1
        if sharing < (self.service.limit or NEVER):
            self.started += 1
            if self.start(inmate):
                self.bound = at

    def look(self) -> int:
        """When the next one leaves, if nothing changes."""
        sharing, service = self.sharing, self.service
        self.foreseen = service
        if not sharing:
            self.bound = NEVER
            return NEVER
        inmates, oldest = self.inmates, self.oldest
        while inmates[oldest].is_gone:
            oldest += 1
        self.oldest = oldest
        deadline = inmates[oldest].arrived + service.timeout
        end, rate = NEVER, self.rate
        if rate:
            left = self.least_tag() - self.work
            end = self.time
            if left > 0:
                end -= -(left * sharing << RATE_BITS) // rate
        self.late = late = end > deadline
        self.bound = bound = deadline if late else end
        return bound

    def depart(self, now: int) -> None:
        """Let the one go whose turn it is."""
        self.foreseen = None
        if self.late:
            inmate = self.inmates[self.oldest]
            self.go_to(now)
            self.ends.cancelled.append(len(self.ends.rows))
        else:
            self.work = self.least_tag()
            inmate = heappop(self.heap)[2]
            self.time = now
        inmate.is_gone = True
        self.present -= 1
        self.ends.rows.append(inmate.row)
        self.ends.instants.append(now)
        self.sharing -= 1
        if self.started < len(self.inmates):
            self.start(self.inmates[self.started])
            self.started += 1
        self._tidy()

    def _tidy(self) -> None:
        if self.oldest > 1024 and self.oldest > len(self.inmates) // 2:
            del self.inmates[: self.oldest]
            self.started -= self.oldest
            self.oldest = 0


class NodeCpu:
    """A node and the pods that share it."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.pods: dict[int, SharedProcessor] = {}
        self._came = 0
        self._wanted = 0
        """What all pods may use together."""
        self._is_short = False
        self._is_resized = False
        self._bounds: list[tuple[int, int]] = []

    def enter(self, pod: SharedProcessor) -> int:
        """One more pod; its place in order."""
        self._came += 1
        self.pods[self._came] = pod
        return self._came

    def leave(self, pod: SharedProcessor, now: int) -> None:
        """It is gone with all that is inside."""
        pod.gets(0, now)
        pod.sharing = pod.present = 0
        pod.heap.clear()
        self._refill([pod], now)
        del self.pods[pod.order]

    def forget(self, pod: SharedProcessor) -> None:
        """What it may use is asked anew."""
        self._wanted -= pod.cap
        pod.cap = 0

    def change(self, pod: SharedProcessor, now: int) -> None:
        """It may use something else from now on."""
        self._refill([pod], now)

    def resize(self, capacity: int, now: int) -> None:
        """The node has another capacity from now on."""
        self.capacity = capacity
        for pod in self.pods.values():
            if not pod.limit:
                pod.capacity = capacity
        self._is_resized = True
        self._refill(list(self.pods.values()), now)

    def play(self, until: int) -> None:
        """All that happens before ``until``; arrivals up to then have been offered."""
        arrivals = self._offered()
        bounds, place, count = self._bounds, 0, len(arrivals)
        while True:
            at = arrivals[place][0] if place < count else until
            while bounds and bounds[0][0] < until and bounds[0][0] <= at:
                self._depart()
            if place == count:
                return
            _, order, row, demand = arrivals[place]
            pod = self.pods[order]
            pod.arrive(at, row, demand)
            place += 1
            if place == count or arrivals[place][0] != at:
                self._refill_for(pod, at)
                continue
            changed = {order: pod}
            while place < count and arrivals[place][0] == at:
                _, order, row, demand = arrivals[place]
                pod = self.pods[order]
                pod.arrive(at, row, demand)
                changed[order] = pod
                place += 1
            self._refill(changed.values(), at)

    def _offered(self) -> list[tuple[int, int, int, int]]:
        arrivals = []
        for order, pod in self.pods.items():
            if pod.offered:
                arrivals += [(at, order, row, demand) for at, row, demand in pod.offered]
                pod.offered = []
        arrivals.sort()
        return arrivals

    def _depart(self) -> None:
        """All who leave at the next instant at which somebody may."""
        bounds, pods = self._bounds, self.pods
        now = bounds[0][0]
        changed: dict[int, SharedProcessor] = {}
        while bounds and bounds[0][0] == now:
            order = heappop(bounds)[1]
            pod = pods.get(order)
            if pod is None or pod.bound != now:
                continue
            while pod.foreseen is pod.service or pod.look() == now:
                pod.depart(now)
                changed[order] = pod
                if not pod.sharing:
                    break
            if order in changed:
                # It is looked at once rates are known.
                pod.bound, pod.foreseen = now, None
            elif pod.bound < NEVER:
                heappush(bounds, (pod.bound, order))
        if len(changed) == 1:
            [pod] = changed.values()
            self._refill_for(pod, now)
        elif changed:
            self._refill(changed.values(), now)

    def _refill_for(self, pod: SharedProcessor, now: int) -> None:
        """The same where one pod has changed, which is what happens nearly always."""
        most = pod.most()
        if self._is_resized or most != pod.cap:
            wanted = self._wanted + most - pod.cap
            if self._is_resized or self._is_short or wanted > self.capacity:
                self._refill((pod,), now)
                return
            self._wanted, pod.cap = wanted, most
            pod.fullness = (most << _FULL_BITS) // pod.weight
            pod.gets(most << RATE_BITS, now)
        if pod.bound <= now and pod.look() < NEVER:
            heappush(self._bounds, (pod.bound, pod.order))

    def _refill(self, changed: Iterable[SharedProcessor], now: int) -> None:
        """Rates after pods have changed, and when somebody leaves next."""
        touched = {pod.order: pod for pod in changed}
        was_short, is_other = self._is_short, self._is_resized
        for pod in touched.values():
            most = pod.most()
            if most != pod.cap:
                self._wanted += most - pod.cap
                pod.cap, is_other = most, True
                pod.fullness = (most << _FULL_BITS) // pod.weight
        if is_other:
            self._is_resized, self._is_short = False, self._wanted > self.capacity
            if was_short or self._is_short:
                touched = self.pods
            if self._is_short:
                self._share(now)
            else:
                for pod in touched.values():
                    pod.gets(pod.cap << RATE_BITS, now)
        for order, pod in touched.items():
            # Whoever comes later only delays those who are there: other bounds still hold.
            if pod.bound <= now and pod.look() < NEVER:
                heappush(self._bounds, (pod.bound, order))

    def _share(self, now: int) -> None:
        """Fill the node."""
        busy = []
        weights = 0
        for pod in self.pods.values():
            if pod.cap:
                busy.append(pod)
                weights += pod.weight
            elif pod.rate:
                pod.gets(0, now)
        # Of equals those come first that came first: so they are listed.
        busy.sort(key=_how_soon_full)
        left = self.capacity << RATE_BITS
        for pod in busy:
            weight, most = pod.weight, pod.cap << RATE_BITS
            share = left * weight // weights
            rate = share if share < most else most
            left -= rate
            weights -= weight
            if rate != pod.rate:
                pod.gets(rate, now)


_how_soon_full = attrgetter("fullness")
