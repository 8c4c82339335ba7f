"""The requests of one Traffic: who serves them now, and what was measured of them.

Times of the flow count from the beginning of its Traffic: small numbers are fast. Nothing happens
in it but when somebody asks, and it does not matter how often that is.
"""

from collections.abc import Iterator

from kubescene.clock import SECOND, Streams
from kubescene.controllers.builtin.traffic.facts import TrafficMeasured
from kubescene.controllers.builtin.traffic.pods import ServingPod
from kubescene.controllers.builtin.traffic.sharing import Sharing
from kubescene.controllers.builtin.traffic.spec import Begin, ServedSpec
from kubescene.flows.arrivals import OpenArrivals, RecordedArrivals
from kubescene.flows.connections import LeastConnections
from kubescene.flows.fields import Pattern, ReplayTraffic
from kubescene.flows.flow import Flow, Station, processor_of
from kubescene.flows.kernels import NEVER, Service
from kubescene.flows.node_kernel import SharedProcessor
from kubescene.flows.routing import RandomRouting, RoundRobin, Router, Routing
from kubescene.flows.sampling import MetricsTimes, ReplicaSample
from kubescene.flows.sources import PatternWindows, recorded
from kubescene.flows.waiting import WhenNone
from kubescene.flows.windows import WindowCounter
from kubescene.usage.measuring import RESOLUTION
from kubescene.usage.registry import RequestLoad, ScrapedPod


class ServedPod:
    """A pod that serves, or drains."""

    __slots__ = ("drained_at", "flow", "last", "leaves", "number", "pod", "service", "station")

    def __init__(
        self, pod: ServingPod, number: int, flow: Flow, service: Service, station: Station
    ) -> None:
        self.pod = pod
        self.number = number
        self.flow = flow
        self.service = service
        self.station: Station | None = station
        """None: it drains, or has."""
        self.leaves: Station | None = None
        """What it was then."""
        self.drained_at = 0
        self.last: ReplicaSample | None = None
        """What was measured last."""

    @property
    def draining(self) -> Station | None:
        """It drains on a node that it shares, and nobody knows when it is done."""
        leaves = self.leaves
        return leaves if leaves and isinstance(leaves.processor, SharedProcessor) else None


class Serving:
    """The flow of one Traffic."""

    def __init__(
        self,
        name: tuple[str, str],
        spec: ServedSpec,
        streams: Streams,
        sharing: Sharing,
        *,
        origin: int,
        created: int,
        now: int,
    ) -> None:
        """``origin`` is what times of all flows count from, ``now`` is when it is looked at."""
        self.namespace, self.name = name
        self.spec = spec
        self.pods: dict[str, ServedPod] = {}
        """By uid, in the order in which they came."""
        self._sharing = sharing
        self._origin = origin
        self._created = created - origin
        self._stream = f"traffic/{self.namespace}/{self.name}"
        self._streams = streams
        self._open = OpenArrivals(spec.arrivals.spacing, streams.stream(f"{self._stream}/arrivals"))
        self._flow = Flow(
            self._open,
            self._router(),
            spec.service(),
            io=int(spec.request.io_time),
            demand_stream=streams.stream(f"{self._stream}/demands"),
            times=MetricsTimes(0, RESOLUTION, 0, phase=-origin % RESOLUTION),
            halt=NEVER,
            waits=spec.when_none is WhenNone.WAIT,
        )
        self._flow.advance(now - origin)
        sharing.add(self._flow)
        timeout = int(spec.request.timeout)
        objective = int(spec.objective.response_time)
        self._counter = WindowCounter(self._flow.columns, timeout, objective)
        self._measured_at = self._used_at = now - origin
        self._used = 0
        self._joined = 0
        self._began: set[str] = set()
        """Uids of pods that ever served."""
        self._started: list[int] = []
        """How long those took that began since it was measured last."""
        self._begun = False
        self.requests = self.failed = 0
        if spec.begin is Begin.AT_ONCE:
            self._begin(now)

    # -- who serves ------------------------------------------------------------------------------

    def join(self, pod: ServingPod, now: int) -> None:
        """It serves from now on."""
        if not self._begun:
            self._begin(now)
        self._joined += 1
        if pod.uid not in self._began:
            self._began.add(pod.uid)
            self._started.append(now - pod.created)
        at, capacity, service = now - self._origin, pod.cpu_limit, self.spec.service(pod.cpu_limit)
        processor = self._sharing.processor(pod, service, at)
        if processor is not None:
            capacity = processor.capacity
        own = processor or processor_of(service, capacity, at)
        station = self._flow.join(self._joined, capacity, at, own)
        served = self.pods[pod.uid] = ServedPod(pod, self._joined, self._flow, service, station)
        self._sharing.joined(self._known_as(served), served)
        station.room = self._room(pod)

    def resize(self, served: ServedPod, pod: ServingPod, now: int) -> None:
        """It is as it is said from now on."""
        before, served.pod, at = served.pod, pod, now - self._origin
        if served.station is not None:
            served.station.room = self._room(pod)
        amounts = pod.cpu_limit, pod.cpu_request
        if served.station is None or amounts == (before.cpu_limit, before.cpu_request):
            return
        self._flow.advance(at)
        served.service = self.spec.service(pod.cpu_limit)
        self._sharing.resized(pod.node, at)
        processor = served.station.processor
        if isinstance(processor, SharedProcessor):
            processor.weigh(pod.cpu_request)
        self._flow.resize(served.station, pod.cpu_limit, at, served.service)

    def leave(self, served: ServedPod, now: int, deadline: int) -> int:
        """Nobody reaches it any more; when the last of those inside is gone."""
        at = now - self._origin
        end = max(min(deadline - self._origin, NEVER), at)
        if served.station is not None:
            served.leaves, served.station = served.station, None
            drained_at = self._flow.part(served.leaves, at, end).drained_at
            served.drained_at = drained_at + self._origin
        elif served.draining is not None:
            served.drained_at = self._flow.drained_at(served.draining, at, end) + self._origin
        return served.drained_at

    def rejoin(self, served: ServedPod, pod: ServingPod, now: int) -> None:
        """It serves again, with those who are still inside."""
        station, served.station, served.leaves = served.leaves, served.leaves, None
        assert station is not None
        at = now - self._origin
        self._flow.rejoin(station, station.processor.capacity, at)
        if self._sharing.is_shared(pod.node) and not isinstance(station.processor, SharedProcessor):
            # It had nothing to do when its node came to be shared.
            processor = self._sharing.processor(served.pod, served.service, at)
            assert processor is not None
            self._flow.share(station, processor, at)
        self.resize(served, pod, now)

    def end(self, served: ServedPod, now: int) -> None:
        """It is gone, and whoever is inside is killed."""
        if served.station is not None:
            self.leave(served, now, now)
        if served.draining is not None or served.drained_at > now:
            self._flow.advance(now - self._origin)
            self._flow.end(served.number, now - self._origin)
        self.pods = {key: each for key, each in self.pods.items() if each is not served}
        self._sharing.left(self._known_as(served), served.pod.node)

    def _known_as(self, served: ServedPod) -> str:
        return f"{self.namespace}/{self.name}/{served.number}"

    @property
    def flow(self) -> Flow:
        return self._flow

    @property
    def counts_alone(self) -> bool:
        """Whether its router has a model of pods of its own."""
        return self.spec.routing is Routing.LEAST_CONNECTIONS

    @property
    def ready(self) -> int:
        return sum(each.station is not None for each in self.pods.values())

    # -- memory ----------------------------------------------------------------------------------

    def _room(self, pod: ServingPod) -> int:
        """How many requests fit into its memory."""
        memory = self.spec.memory
        if memory is None or not pod.memory_limit:
            return NEVER
        left = pod.memory_limit - memory.base
        if not memory.per_request:
            return NEVER if left >= 0 else -1
        return left // memory.per_request

    def kill_overfull(self, now: int) -> list[ServingPod]:
        """Those out of memory now are killed, with all who are inside; which they are."""
        if self.spec.memory is None:
            return []
        self._flow.advance(now - self._origin)
        full = self._flow.overfull()
        killed = [each for each in self.pods.values() if each.station in full]
        for each in killed:
            self.end(each, now)
        return [each.pod for each in killed]

    def next_doubt(self, until: int) -> int | None:
        """When somebody may be out of memory, if that is before ``until``."""
        if self.spec.memory is None:
            return None
        due = self._flow.next_doubt(until - self._origin)
        return None if due is None else due + self._origin

    # -- what comes ------------------------------------------------------------------------------

    def change(self, spec: ServedSpec, now: int) -> None:
        """Other rates from now on; what requests need stays what it was."""
        self._flow.advance(now - self._origin)
        self.spec = spec
        if self._begun:
            self._begin(now)

    def stop(self, now: int) -> None:
        """Nobody comes any more, and nobody is inside."""
        self._flow.advance(now - self._origin)
        for served in list(self.pods.values()):
            self.end(served, now)
        self._sharing.remove(self._flow)

    def load(self, begin: int, end: int) -> RequestLoad:
        """Who was there between two instants that are over, waiting included, and who came."""
        self._flow.advance(end - self._origin)
        inside, arrived = self._flow.load(begin - self._origin, end - self._origin)
        return RequestLoad(inside, arrived)

    def next_request(self, now: int, until: int) -> int | None:
        """When the next one comes, if that is before ``until``."""
        self._flow.advance(now - self._origin)
        due = self._flow.next_arrival(until - self._origin)
        return None if due is None else due + self._origin

    def _begin(self, now: int) -> None:
        self._begun = True
        begin, arrivals = now - self._origin, self.spec.arrivals
        self._flow.advance(begin)
        path = "spec.arrivals"
        if arrivals.pattern is Pattern.REPLAY:
            instants = recorded(arrivals.replay or ReplayTraffic(), None, NEVER, f"{path}.replay")
            instants = instants + self._created
            self._flow.replace_arrivals(RecordedArrivals(instants[instants >= begin]))
            return
        noise = self._streams.single(f"{self._stream}/noise")
        self._open.begin(PatternWindows(arrivals, noise, path, self._created), begin)
        self._flow.replace_arrivals(self._open)

    def _router(self) -> Router:
        if self.spec.routing is Routing.RANDOM:
            return RandomRouting(self._streams.stream(f"{self._stream}/routing"))
        if self.spec.routing is Routing.LEAST_CONNECTIONS:
            return LeastConnections(self.spec.service(), int(self.spec.request.io_time))
        return RoundRobin()

    # -- what is measured ------------------------------------------------------------------------

    def measure(self, now: int, inexact: str = "") -> TrafficMeasured:
        """The window that ends now. On the machine's clock somebody may have looked later."""
        at = now - self._origin
        self._flow.advance(at)
        used, used_at = self._flow.used(self._flow.now), self._flow.now
        width = at - self._measured_at
        counts = self._counter.count(at)
        self.requests += counts.arrived
        self.failed += counts.failed
        cpu = (used - self._used) // max(used_at - self._used_at, 1)
        self._measured_at, self._used, self._used_at = at, used, used_at
        for served in [each for each in self.pods.values() if self._is_over(each, now)]:
            self.end(served, now)
        objective, started = self.spec.objective, tuple(self._started)
        self._started.clear()
        return TrafficMeasured(
            self.namespace,
            self.name,
            width,
            self.ready,
            cpu,
            int(self.spec.request.timeout),
            int(objective.response_time),
            objective.percentile,
            counts,
            started,
            inexact,
        )

    def _is_over(self, served: ServedPod, now: int) -> bool:
        if served.draining is not None:
            draining = served.draining
            return not draining.processor.held and draining.last_end < now - self._origin
        return served.station is None and served.drained_at < now - RESOLUTION

    def scraped(self, now: int) -> Iterator[ScrapedPod]:
        """What the last scrape has seen of the pods that serve."""
        self._flow.advance(now - self._origin)
        by_number = {each.number: each for each in self.pods.values()}
        for sample in self._flow.samples():
            if (served := by_number.get(sample.replica)) is not None:
                served.last = sample
        for served in by_number.values():
            if served.station is not None and served.last is not None:
                yield self._scraped_pod(served, served.last)

    def _scraped_pod(self, served: ServedPod, sample: ReplicaSample) -> ScrapedPod:
        resources = {"cpu": sample.cpu_millis}
        if (memory := self.spec.memory) is not None:
            resources["memory"] = 1000 * (memory.base + memory.per_request * sample.held)
        return ScrapedPod(
            served.pod.name,
            served.pod.container,
            sample.instant + self._origin,
            RESOLUTION,
            resources,
            {
                "requests_per_second": sample.arrived_millis,
                "concurrent_requests": sample.concurrent_millis,
            },
        )


def rate_text(requests: int, window: int) -> str:
    """Requests a second, with one digit behind the point."""
    tenths = (requests * 10 * SECOND + window // 2) // window if window else 0
    return f"{tenths // 10}.{tenths % 10}"
