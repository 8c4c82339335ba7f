"""Requests that wait while there is no replica, by hand and beside a loop written for reading."""

from itertools import count

import numpy as np
import pytest

from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.clock import MILLISECOND, SECOND, Stream
from kubescene.errors import TrafficError
from kubescene.flows.arrivals import RecordedArrivals
from kubescene.flows.connections import (
    AnyOrderSlot,
    InOrderSlot,
    LeastConnections,
    RouterSlot,
)
from kubescene.flows.flow import Flow, Station, processor_of
from kubescene.flows.kernels import NEVER, Service
from kubescene.flows.routing import RandomRouting, RoundRobin, Router
from kubescene.traffic import RequestOutcome, TrafficResult, TrafficSpec, run
from kubescene.traffic.runs import objects_of, world_of
from kubescene.traffic.spec.loading import spec_of
from traffic.reference_loop import ReferenceProcessor
from traffic.stubs import Scripted
from traffic.test_knative_rule import knative

NONE = {"initial": 0, "launchDelay": "5s"}
PLAIN = {"cpuTime": "200ms", "ioTime": "200ms", "timeout": "10s"}


def arriving(*instants: str, **fields: object) -> TrafficSpec:
    traffic = {"pattern": "replay", "replay": {"arrivals": list(instants)}}
    asked = {"duration": "60s", "horizontalInterval": "2s", "replicas": NONE, "request": PLAIN}
    return spec_of(asked | {"traffic": traffic, "whenNone": "wait"} | fields)


def times(result: TrafficResult) -> list[float]:
    taken = result.requests.completed - result.requests.arrived
    return [each / SECOND for each in taken.tolist()]


def outcomes(result: TrafficResult) -> list[RequestOutcome]:
    return [RequestOutcome(each) for each in result.requests.outcome.tolist()]


def test_a_request_waits_for_the_first_replica() -> None:
    """Asked for at 4 s, active at 9 s, then CPU and waiting; two share the CPU."""
    one = run(arriving("3s"), [Scripted({0: 0, 4: 1})])
    assert times(one) == [6.4]
    two = run(arriving("3s", "8s"), [Scripted({0: 0, 4: 1})])
    assert times(two) == [6.6, 1.6]
    assert two.requests.replica.tolist() == [1, 1]
    assert two.used == 400 * MILLISECOND * 1000


def test_whoever_waits_is_shared_among_all_that_become_active_at_once() -> None:
    result = run(arriving("3s", "3s", "3s", "3s"), [Scripted({0: 0, 4: 2})])
    assert result.requests.replica.tolist() == [1, 2, 1, 2]
    assert times(result) == [6.6] * 4


def test_a_time_out_counts_from_the_arrival() -> None:
    """One leaves before there is a replica, one while it is served, one is as quick as ever."""
    request = {"cpuTime": "2s", "ioTime": "0s", "timeout": "5s"}
    result = run(arriving("1s", "5s", "30s", request=request), [Scripted({0: 0, 4: 1})])
    assert times(result) == [5.0, 5.0, 2.0]
    assert outcomes(result) == [RequestOutcome.TIMEOUT, RequestOutcome.TIMEOUT, RequestOutcome.OK]
    assert result.requests.replica.tolist() == [0, 1, 1]
    # At one instant a deadline comes first: active at 9 s, and 4 s is too early by nothing.
    edge = run(arriving("4s", request=request), [Scripted({0: 0, 4: 1})])
    assert edge.requests.replica.tolist() == [0]


def test_who_waits_when_the_run_ends_is_open() -> None:
    result = run(arriving("55s"))
    assert outcomes(result) == [RequestOutcome.OPEN]
    assert result.summary.open == 1


def test_by_default_only_an_activator_lets_them_wait() -> None:
    assert run(arriving("3s", whenNone="auto")).summary.refused == 1
    assert run(arriving("3s", whenNone="refuse")).summary.refused == 1
    told = run(knative({"replicas": NONE}, target=20, minScale=0))
    assert (told.summary.refused, told.summary.failed) == (0, 0)
    refused = run(knative({"replicas": NONE, "whenNone": "refuse"}, target=20, minScale=0))
    assert refused.summary.refused > 200


def test_faithful_mode_refuses() -> None:
    with pytest.raises(TrafficError, match="whenNone: faithful mode refuses"):
        arriving("1s", mode="faithful")


def test_an_activator_brings_the_first_replica_and_nobody_is_lost() -> None:
    """One request a minute: 0 to 1 for each, and back after the windows of Knative."""
    spikes = {"rps": 0, "spikeRps": 20, "every": "3m", "width": "10s", "after": "1m"}
    fields: dict[str, object] = {
        "duration": "10m",
        "replicas": NONE,
        "traffic": {"pattern": "spikes", "spikes": spikes},
        "request": {"cpuTime": "20ms", "ioTime": "180ms", "timeout": "60s"},
    }
    result = run(knative(fields, target=10, minScale=0))
    assert result.summary.failed == 0
    assert (result.summary.replicas_least, result.summary.open) == (0, 0)
    ups = [each.time for each in result.decisions if each.before == 0 < each.after]
    assert [each // (60 * SECOND) for each in ups] == [1, 4, 7]
    first = result.requests.arrived[0]
    assert 0 < ups[0] - first <= 2 * SECOND, "at the next tick"


def test_waiting_counts_in_concurrency_as_the_mean_since_the_last_tick() -> None:
    """From 3 s on one, from 5 s on two; ticks every 4 s: 1/4 x 1, then (1 + 3 x 2) / 4."""
    plugin = Scripted({0: 0})
    run(arriving("3s", "5s", horizontalInterval="4s", verticalInterval="4s"), [plugin])
    told = [
        (each.time // SECOND, each.value)
        for request in plugin.stats
        for each in request.stat
        if each.pod_name == "RoutingStock"
    ]
    assert told[:4] == [(4, 250), (8, 1750), (12, 2000), (16, 1000)], "until 13 s and 15 s"
    assert told[-1][1] == 0
    assert len(told) == 5, "nothing is told of nothing"


def test_a_replica_that_cannot_hold_all_who_wait_is_killed() -> None:
    memory = {"limit": "4Mi", "base": "1Mi", "perRequest": "1Mi", "request": "4Mi"}
    replicas = NONE | {"memory": memory}
    plugin = Scripted({0: 0, 4: 1})
    fine = run(arriving("3s", "3s", "3s", replicas=replicas), [plugin])
    assert fine.summary.oom_kills == 0
    over = run(arriving(*["3s"] * 4, replicas=replicas), [Scripted({0: 0, 4: 1})])
    assert (over.summary.oom_kills, over.summary.killed) == (1, 4)


def routers(service: Service, io: int) -> dict[str, Router]:
    return {
        "roundRobin": RoundRobin(),
        "random": RandomRouting(Stream(7)),
        "leastConnections": LeastConnections(service, io),
    }


@pytest.mark.parametrize("routing", ["roundRobin", "random", "leastConnections"])
@pytest.mark.parametrize("limit", [0, 2])
@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("demand", [200, 900])
@pytest.mark.parametrize("step", [SECOND, 37 * MILLISECOND])
def test_a_flow_with_outages_is_that_of_a_loop_written_for_reading(
    routing: str, limit: int, drawn: bool, demand: int, step: int
) -> None:
    """Replicas are there from 5 to 9 s and from 14 s on; whoever the router chose serves."""
    service = Service(demand * MILLISECOND * 1000, 4 * SECOND, drawn=drawn, limit=limit)
    draws = (Stream(3).next_u64s(150) >> np.uint64(32)).astype(np.int64)
    arrivals = np.sort(draws * 20 * SECOND >> 32)
    flow = Flow(
        RecordedArrivals(arrivals),
        routers(service, 0)[routing],
        service,
        io=0,
        demand_stream=Stream(5),
        times=None,
        halt=30 * SECOND,
        waits=True,
    )
    numbers = count(1)
    stations: list[Station] = []
    for now in range(step, 30 * SECOND, step):
        flow.advance(now)
        if not stations and now >= 5 * SECOND and (now < 9 * SECOND or now >= 14 * SECOND):
            stations = [flow.join(next(numbers), 1000, now) for _ in range(2)]
            joined = now
        if stations and now >= 9 * SECOND and joined < 9 * SECOND:
            for each in stations:
                flow.part(each, now, now + 30 * SECOND)
            stations = []
    flow.advance(30 * SECOND)
    flow.columns.close(30 * SECOND)
    expected = by_reference(flow, service, Stream(5), drawn, step)
    found = {
        row: (int(flow.columns.completed[row]), flow.columns.outcome[row] == 2)
        for row in range(len(arrivals))
    }
    assert found == expected
    assert any(late for _, late in found.values())
    if routing == "leastConnections":
        check_fewest(flow, step)


def check_fewest(flow: Flow, step: int) -> None:
    """Who came when the first two were there went to the one with fewer inside, as it was then."""
    up, down = (-(-each * SECOND // step) * step for each in (5, 9))
    columns = flow.columns
    begun = np.maximum(columns.arrived, up)
    for row, at in enumerate(columns.arrived.tolist()):
        if up < at < down:
            inside = (begun[:row] <= at) & (columns.completed[:row] > at)
            counts = [int((inside & (columns.replica[:row] == each)).sum()) for each in (1, 2)]
            assert counts[int(columns.replica[row]) - 1] == min(counts), row


def by_reference(
    flow: Flow, service: Service, stream: Stream, drawn: bool, step: int
) -> dict[int, tuple[int, bool]]:
    """When everybody leaves, if each begins when its replica is there, or has left before."""
    from kubescene.clock.batches import scaled_exponentials, unit_exponentials

    arrived = flow.columns.arrived.tolist()
    demands = [service.demand] * len(arrived)
    if drawn:
        units = unit_exponentials(stream.next_u64s(len(arrived)))
        demands = scaled_exponentials(units, service.demand).tolist()
    up = [-(-each * SECOND // step) * step for each in (5, 14)]
    down = -(-9 * SECOND // step) * step
    replicas = {number: ReferenceProcessor(service, 1000) for number in range(1, 5)}
    gone: dict[int, tuple[int, bool]] = {}
    for row, at in enumerate(arrived):
        begin = at
        if at < up[0]:
            begin = up[0]
        elif down <= at < up[1]:
            begin = up[1]
        number = int(flow.columns.replica[row])
        if begin >= at + service.timeout:
            assert number == 0
            gone[row] = (at + service.timeout, True)
            continue
        assert number in ((1, 2) if begin < down else (3, 4))
        processor = replicas[number]
        processor.arrive(row, begin, demands[row])
        processor.jobs[-1].arrived = at
    for processor in replicas.values():
        processor.run(NEVER)
        gone |= {row: (at, late) for row, at, late in processor.gone}
    return gone


@pytest.mark.parametrize("drawn", [False, True])
def test_a_deadline_that_comes_soon_is_not_overlooked(drawn: bool) -> None:
    """Two begin at 10 s; one leaves at 10.5 s by its time-out, before another comes at 10.8 s."""
    half = SECOND // 10
    service = Service(SECOND * 1000, 4 * SECOND, drawn=drawn)
    processor = processor_of(service, 1000, 100 * half)
    wanted = [service.demand] * 2
    since = [65 * half, 90 * half]
    assert not processor.admit([0, 1], wanted, since, 100 * half).rows
    served = processor.serve([108 * half], [2], wanted[:1], 200 * half)
    assert served.rows == [0, 1, 2]
    # 0.25 s each until then, 0.3 s alone, and twice the 0.45 s that are left; then the last one.
    assert served.instants == [105 * half, 117 * half, 1225 * half // 10]
    assert served.cancelled == [0]


@pytest.mark.parametrize("kind", [InOrderSlot, AnyOrderSlot])
def test_a_router_knows_since_when_they_waited(kind: type[RouterSlot]) -> None:
    service = Service(SECOND * 1000, 4 * SECOND, drawn=kind is AnyOrderSlot)
    for others in (0, 2):
        slot = kind(1, service, 0, 1000, 10 * SECOND)  # type: ignore[call-arg]
        since = [13 * SECOND // 2, *[9 * SECOND] * others]
        for _ in since:
            slot.admit(10 * SECOND, service.demand)
        slot.waited(since)
        assert slot.leave(11 * SECOND) == [21 * SECOND // 2]


def test_the_fewest_connections_are_told_with_deadlines_of_those_who_waited() -> None:
    """The second replica is slow: who waits there since 6.5 s leaves at 10.5 s, unserved."""
    service = Service(SECOND * 1000, 4 * SECOND)
    flow = Flow(
        RecordedArrivals(np.array([6_500, 6_500, 10_750, 10_900]) * MILLISECOND),
        LeastConnections(service, 0),
        service,
        io=0,
        demand_stream=Stream(5),
        times=None,
        halt=30 * SECOND,
        waits=True,
    )
    flow.advance(10 * SECOND)
    for number, capacity in ((1, 10_000), (2, 1000)):
        flow.join(number, capacity, 10 * SECOND)
    flow.advance(30 * SECOND)
    assert flow.columns.replica.tolist() == [1, 2, 1, 2]


def test_a_world_with_waits_may_be_played_in_pieces() -> None:
    asked = arriving("3s", "5s", "9s", "11s", replicas=NONE | {"limit": 1})

    def played(step: int) -> list[int]:
        plugin = Scripted({0: 0, 4: 1, 20: 0, 30: 1})
        world = world_of(asked, Dispatcher([plugin]).partition(objects_of(asked, [plugin])))
        world.begin()
        for instant in range(step, 61 * SECOND, step):
            world.run_until(instant)
        world.finish(60 * SECOND)
        return list(map(int, world.columns.completed))

    assert played(60 * SECOND) == played(777 * MILLISECOND)
