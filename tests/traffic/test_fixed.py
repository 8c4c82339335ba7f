"""Fixed mode: every defect of Skenario's model that is mended, by its number in the reference."""

from itertools import pairwise

import numpy as np
import pytest

from kubescene.autoscalers import (
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    Pod,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.clock import MILLISECOND, SECOND
from kubescene.traffic import RequestOutcome, TrafficResult, TrafficSpec, run
from kubescene.traffic.runs import objects_of, world_of
from kubescene.traffic.spec.loading import spec_of
from kubescene.traffic.world.fixed import FixedWorld
from traffic.stubs import Scripted, cpu_between

QUIET = {"pattern": "uniform", "uniform": {"numberOfRequests": 0}}
FAST = {"horizontalInterval": "2s", "verticalInterval": "2s"}


def spec(**fields: object) -> TrafficSpec:
    return spec_of({"duration": "60s", "traffic": QUIET, **fields})


def arriving(*instants: str, **fields: object) -> TrafficSpec:
    traffic = {"pattern": "replay", "replay": {"arrivals": list(instants)}}
    return spec(traffic=traffic, **fields)


def steady(rps: float, spacing: str = "poisson") -> dict[str, object]:
    return {"pattern": "constant", "spacing": spacing, "constant": {"rps": rps}}


def moved(result: TrafficResult, kind: str) -> list[tuple[int, str]]:
    return [(each.occurs_at, each.moved) for each in result.movements if each.kind == kind]


def levels(result: TrafficResult) -> list[tuple[int, int]]:
    return [(each.desired, each.active) for each in result.counts]


def test_10_1_1_initial_replicas_are_desired() -> None:
    result = run(spec(replicas={"initial": 2}), [Scripted({0: 2, 30: 3})])
    assert levels(result) == [(2, 2), (3, 2), (3, 3)]


def test_10_1_2_a_scale_down_hits_launching_and_active_ones_as_far_as_needed() -> None:
    times = {"horizontalInterval": "2s"}
    result = run(spec(replicas={"initial": 3}, **times), [Scripted({0: 3, 4: 5, 6: 1})])
    assert len(moved(result, "terminate_launch")) == 2
    assert len(moved(result, "terminate_active")) == 2
    assert not result.movements.ignored
    assert levels(result)[-1] == (1, 1)


def test_10_1_3_a_cancelled_launch_starts_nobody_else_early() -> None:
    times = {"horizontalInterval": "2s"}
    plugin = Scripted({0: 2, 4: 1, 6: 2})
    result = run(spec(**times), [plugin])
    launched = {name: at for at, name in moved(result, "begin_launch")}
    for at, name in moved(result, "finish_launching"):
        assert at - launched[name] == 5 * SECOND
    assert moved(result, "terminate_launch") == [(4 * SECOND, "replica-2")]
    assert moved(result, "finish_launching") == [(11 * SECOND, "replica-3")]


def test_10_1_4_nobody_is_replaced_twice_while_the_new_one_launches() -> None:
    plugin = Scripted(None, {0: cpu_between(150, 500, 250)})
    result = run(spec(replicas={"cpu": "100m", "launchDelay": "7s"}, **FAST), [plugin])
    assert [each.cpu for each in result.replicas] == [100, 250]
    assert moved(result, "create_updated_replica") == [(9 * SECOND, "replica-2")]
    assert moved(result, "evict_replica") == [(9 * SECOND, "replica-1")]


def test_10_1_4_replicas_that_come_later_get_the_target() -> None:
    plugin = Scripted({0: 1, 20: 3}, {0: cpu_between(50, 500, 250)})
    result = run(spec(replicas={"cpu": "100m"}), [plugin])
    assert [each.cpu for each in result.replicas] == [100, 250, 250]


def test_replicas_that_come_later_keep_their_size_where_nothing_is_to_be_admitted() -> None:
    answer = cpu_between(50, 500, 250)
    quiet = VerticalRecommendationResponse(answer.rec, evict=(), admit=False)
    result = run(spec(replicas={"cpu": "100m"}), [Scripted({0: 1, 20: 2}, {0: quiet})])
    assert [each.cpu for each in result.replicas] == [100, 100]


def test_a_replacement_goes_with_the_one_that_it_replaces() -> None:
    plugin = Scripted({0: 2, 4: 1}, {0: cpu_between(150, 500, 250)})
    fields = {"cpu": "100m", "initial": 2, "launchDelay": "9s"}
    result = run(spec(replicas=fields, **FAST), [plugin])
    assert levels(result)[-1] == (1, 1)
    assert [each.cpu for each in result.replicas if each.terminated_at < 0] == [250]


def test_an_updater_evicts_first() -> None:
    answer = cpu_between(0, 5000, 250)
    named = VerticalRecommendationResponse(answer.rec, evict=("replica-2",))
    plugin = Scripted(None, {2: named, 4: VerticalRecommendationResponse(evict=())})
    result = run(spec(replicas={"cpu": "100m", "initial": 2}, **FAST), [plugin])
    assert [(each.name, each.cpu, each.deactivated_at) for each in result.replicas] == [
        ("replica-1", 100, -1),
        ("replica-2", 100, 2 * SECOND),
        ("replica-3", 250, -1),
    ]
    assert result.replicas[2].activated_at == 7 * SECOND


def test_a_resize_in_place_changes_the_speed_at_once() -> None:
    answer = VerticalRecommendationResponse(
        cpu_between(0, 5000, 2000).rec, evict=(), resize=("replica-1",)
    )
    plugin = Scripted(None, {2: answer})
    request = {"cpuTime": "4s", "ioTime": "0s"}
    result = run(arriving("1s", request=request, **FAST), [plugin])
    # One second of the four at full speed, the other three at twice of it.
    assert result.requests.completed.tolist() == [3_500_000_000]
    # Two seconds of one CPU, 58 of two.
    assert result.summary.cpu_hours == pytest.approx((2 + 58 * 2) / 3600)
    assert [each.type for each in plugin.events if isinstance(each.object, Pod)] == [
        EventType.CREATE,
        EventType.UPDATE,
    ]


def test_the_utilization_of_a_window_is_of_the_size_in_it() -> None:
    answer = VerticalRecommendationResponse(
        cpu_between(0, 5000, 500).rec, evict=(), resize=("replica-1",)
    )
    request = {"cpuTime": "100ms", "ioTime": "0s"}
    world = spec(traffic=steady(4, "even"), request=request, duration="61s")
    result = run(world, [Scripted(None, {30: answer})])
    assert [each.percent for each in result.utilizations] == pytest.approx([40, 40, 80, 80], 0.01)


def test_a_run_that_fails_counts_no_cpu_that_draining_replicas_would_have_used() -> None:
    class Failing(Scripted):
        def horizontal_recommendation(
            self, request: HorizontalRecommendationRequest
        ) -> HorizontalRecommendationResponse:
            if request.time_nanos > 4 * SECOND:
                raise RuntimeError("no more")
            return super().horizontal_recommendation(request)

    request = {"cpuTime": "30s", "ioTime": "0s", "timeout": "never"}
    asked = arriving("1s", request=request, **FAST)
    result = run(asked, [Failing({0: 1, 4: 0})])
    assert result.end == 6 * SECOND
    assert result.requests.outcome.tolist() == [RequestOutcome.OPEN]
    assert result.summary.cpu_used_hours == pytest.approx(5 / 3600)


def test_requests_that_are_refused_draw_their_routes_too() -> None:
    """Request i has draw i, whoever is there: the number of replicas shifts nothing for others."""
    asked = {"traffic": steady(20), "routing": "random", "horizontalInterval": "10s"}
    delays = {"launchDelay": "0s", "initial": 4}
    always = run(spec(replicas=delays, **asked))
    gap = run(spec(replicas=delays, **asked), [Scripted({0: 4, 10: 0, 20: 4})])
    after = always.requests.arrived >= 20 * SECOND
    assert RequestOutcome.REFUSED in gap.requests.outcome
    first = int(gap.requests.replica[after].min()) - 1
    assert ((gap.requests.replica - first)[after] == always.requests.replica[after]).all()


def test_requests_that_are_refused_draw_their_demands_too() -> None:
    request = {"cpuTime": "1ms", "ioTime": "0s", "timeout": "never", "demand": "exponential"}
    asked = {"traffic": steady(2), "request": request, "horizontalInterval": "10s"}
    delays = {"launchDelay": "0s", "initial": 4}
    always = run(spec(replicas=delays, **asked)).requests
    gap = run(spec(replicas=delays, **asked), [Scripted({0: 4, 10: 0, 20: 4})]).requests
    after = always.arrived >= 20 * SECOND
    assert RequestOutcome.REFUSED in gap.outcome
    taken = (gap.completed - gap.arrived)[after]
    assert (taken == (always.completed - always.arrived)[after]).all()
    assert len(set(taken.tolist())) > 10


@pytest.mark.parametrize("seconds", [0, 1])
def test_10_1_5_zero_delays_are_legal(seconds: int) -> None:
    delays = {"launchDelay": f"{seconds}s", "terminateDelay": f"{seconds}s"}
    result = run(spec(replicas=delays), [Scripted({0: 3, 30: 1})])
    assert not result.movements.ignored
    assert levels(result)[-1] == (1, 1)
    assert result.counts[-1].terminating == 0
    assert result.counts[-1].launching == 0


def test_10_1_5_a_timeout_of_nothing_fails_at_once() -> None:
    result = run(arriving("1s", "2s", request={"timeout": "0s"}))
    assert result.requests.outcome.tolist() == [RequestOutcome.TIMEOUT] * 2
    assert result.requests.completed.tolist() == [SECOND, 2 * SECOND]


def test_10_1_6_requests_that_need_nothing_take_no_time() -> None:
    request = {"cpuTime": "0s", "ioTime": "0s", "timeout": "0s"}
    result = run(arriving("1s", "2s", request=request))
    assert result.requests.outcome.tolist() == [RequestOutcome.OK] * 2
    assert result.requests.completed.tolist() == [SECOND, 2 * SECOND]


def test_10_1_6_a_target_of_nothing_is_no_recommendation() -> None:
    result = run(spec(), [Scripted(None, {0: cpu_between(2000, 3000, 0)})])
    assert len(result.replicas) == 1
    assert not result.sizes


def test_10_1_7_who_leaves_speeds_up_those_who_stay() -> None:
    request = {"cpuTime": "1s", "ioTime": "0s"}
    result = run(arriving("1s", "1.5s", request=request))
    # Half a second alone, then both at half the speed, then the second alone again.
    assert result.requests.completed.tolist() == [2_500_000_000, 3_000_000_000]


def test_10_1_7_who_times_out_gives_its_cpu_back() -> None:
    request = {"cpuTime": "2500ms", "ioTime": "0s", "timeout": "3s"}
    result = run(arriving("1s", "2s", "4.5s", request=request))
    assert result.requests.outcome.tolist() == [
        RequestOutcome.TIMEOUT,
        RequestOutcome.TIMEOUT,
        RequestOutcome.OK,
    ]
    # The last one has the CPU for itself from 5 s on.
    assert result.requests.completed.tolist() == [4 * SECOND, 5 * SECOND, 7_250_000_000]
    assert result.used == 6_250_000_000 * 1000


def test_10_1_8_samples_are_means_over_their_window() -> None:
    plugin = Scripted({0: 1})
    request = {"cpuTime": "1s", "ioTime": "500ms"}
    run(arriving("1s", "7s", request=request), [plugin])
    told = {
        (each.time, each.type): each.value
        for request_ in plugin.stats
        for each in request_.stat
        if each.pod_name == "replica-1"
    }
    cpu, inside = MetricType.CPU_MILLIS, MetricType.CONCURRENT_REQUESTS_MILLIS
    assert (told[5 * SECOND, cpu], told[5 * SECOND, inside]) == (200, 300)
    assert (told[15 * SECOND, cpu], told[15 * SECOND, inside]) == (100, 150)
    assert (told[25 * SECOND, cpu], told[25 * SECOND, inside]) == (0, 0)


def test_10_1_8_memory_is_base_and_a_share_for_each_request() -> None:
    plugin = Scripted({0: 1})
    memory = {"request": "64Mi", "base": "10Mi", "perRequest": "1Mi"}
    request = {"cpuTime": "9s", "ioTime": "0s"}
    run(arriving("1s", "2s", request=request, replicas={"memory": memory}), [plugin])
    used = [
        each.value >> 20
        for request_ in plugin.stats
        for each in request_.stat
        if each.type is MetricType.MEMORY_BYTES
    ]
    assert used[:2] == [12, 10]
    pod = plugin.events[1].object
    assert isinstance(pod, Pod)
    assert pod.memory_request == 64 << 20


def test_launching_pods_are_told_of_and_become_ready() -> None:
    plugin = Scripted({0: 2})
    run(spec(duration="25s"), [plugin])
    pods = [(e.time, e.type, e.object) for e in plugin.events if isinstance(e.object, Pod)]
    assert pods == [
        (0, EventType.CREATE, Pod("replica-1", "active", 0, 1000)),
        (15 * SECOND, EventType.CREATE, Pod("replica-2", "launching", 15 * SECOND, 1000)),
        (20 * SECOND, EventType.UPDATE, Pod("replica-2", "active", 20 * SECOND, 1000)),
    ]


def test_10_1_9_those_who_are_gone_are_silent() -> None:
    plugin = Scripted({0: 2, 20: 1})
    run(spec(horizontalInterval="5s"), [plugin])
    gone = next(each for each in plugin.events if each.type is EventType.DELETE)
    assert isinstance(gone.object, Pod)
    later = [
        each
        for request in plugin.stats
        for each in request.stat
        if each.pod_name == gone.object.name and each.time > gone.time
    ]
    assert not later


def test_10_1_9_a_replica_ends_when_its_last_request_has_left() -> None:
    request = {"cpuTime": "2s", "ioTime": "1s"}
    plugin = Scripted({0: 0})
    result = run(arriving("1s", request=request, **FAST), [plugin])
    assert moved(result, "terminate_active") == [(2 * SECOND, "replica-1")]
    assert moved(result, "finish_terminating") == [(5 * SECOND, "replica-1")]
    assert result.requests.completed.tolist() == [4 * SECOND]


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        pytest.param({"cpuTime": "8s", "ioTime": "0s"}, 3_500_000_000, id="in the CPU"),
        pytest.param({"cpuTime": "0s", "ioTime": "8s"}, 3_500_000_000, id="waiting"),
    ],
)
def test_10_1_9_the_grace_period_ends_what_is_inside(request_: dict[str, str], left: int) -> None:
    replicas = {"gracePeriod": "1.5s"}
    result = run(arriving("1s", request=request_, replicas=replicas, **FAST), [Scripted({0: 0})])
    assert result.requests.outcome.tolist() == [RequestOutcome.KILLED]
    assert result.requests.completed.tolist() == [left]
    assert moved(result, "finish_terminating") == [(left + SECOND, "replica-1")]


def test_10_1_10_removal_keeps_the_order_of_round_robin() -> None:
    arrivals = [f"{second}.5s" for second in range(12)]
    plugin = Scripted({0: 4, 4: 3})
    result = run(arriving(*arrivals, replicas={"initial": 4}, **FAST), [plugin])
    assert result.requests.replica.tolist()[:4] == [1, 2, 3, 4]
    later = result.requests.replica.tolist()[4:]
    order = [2, 3, 4]
    assert all(order.index(there) == (order.index(here) + 1) % 3 for here, there in pairwise(later))


def test_10_1_10_without_replicas_requests_are_refused_and_autoscalers_hear_of_it() -> None:
    plugin = Scripted({0: 0, 4: 1})
    result = run(arriving("1s", "3s", "20s", replicas={"initial": 0}, **FAST), [plugin])
    assert result.requests.outcome.tolist() == [
        RequestOutcome.REFUSED,
        RequestOutcome.REFUSED,
        RequestOutcome.OK,
    ]
    told = [each.stat[0].value for each in plugin.stats if each.stat[0].pod_name == "RoutingStock"]
    assert told[:3] == [1000, 1000, 0]


def test_ticks_have_intervals_of_their_own() -> None:
    plugin = Scripted({0: 1}, {0: cpu_between(0, 5000, 1000)})
    run(spec(duration="13s", horizontalInterval="3s", verticalInterval="4s"), [plugin])
    asked = [
        (name, at // SECOND) for name, at in plugin.calls if name in ("Horizontal", "Vertical")
    ]
    assert asked == [
        ("Horizontal", 3),
        ("Vertical", 4),
        ("Horizontal", 6),
        ("Vertical", 8),
        ("Horizontal", 9),
        ("Horizontal", 12),
        ("Vertical", 12),
    ]


def test_stats_come_when_the_scenario_says() -> None:
    plugin = Scripted({0: 1})
    metrics = {"firstAfter": "1s", "lag": "0s"}
    run(spec(duration="10s", statInterval="3s", metrics=metrics), [plugin])
    assert [each.stat[0].time // SECOND for each in plugin.stats] == [1, 4, 7, 10]


def test_the_newest_can_go_first() -> None:
    for victims, gone in (("oldest", "replica-1"), ("newest", "replica-3")):
        replicas = {"initial": 3, "victims": victims}
        result = run(spec(replicas=replicas), [Scripted({0: 2})])
        assert [name for _, name in moved(result, "terminate_active")] == [gone]


def test_a_limit_lets_the_others_wait() -> None:
    request = {"cpuTime": "1s", "ioTime": "0s"}
    result = run(arriving("1s", "1s", request=request, replicas={"limit": 1}))
    assert result.requests.completed.tolist() == [2 * SECOND, 3 * SECOND]
    result = run(arriving("1s", "1s", request=request))
    assert result.requests.completed.tolist() == [3 * SECOND, 3 * SECOND]


def test_a_ceiling_for_one_request() -> None:
    request = {"cpuTime": "1s", "ioTime": "0s"}
    result = run(arriving("1s", request=request, replicas={"requestCpu": "250m"}))
    assert result.requests.completed.tolist() == [5 * SECOND]


def test_sharing_collapses_in_overload_and_a_limit_helps() -> None:
    request = {"cpuTime": "10ms", "ioTime": "0s", "timeout": "1s"}
    shares = {}
    for limit in (0, 8, 1):
        asked = spec(traffic=steady(120), request=request, replicas={"limit": limit})
        summary = run(asked).summary
        shares[limit] = summary.succeeded / (summary.requests - summary.open)
    assert shares[0] < 0.25 < shares[8] < shares[1]


def test_work_is_conserved() -> None:
    request = {"cpuTime": "20ms", "ioTime": "0s", "timeout": "never", "demand": "constant"}
    result = run(spec(traffic=steady(40), request=request))
    done = int((result.requests.outcome == RequestOutcome.OK).sum())
    inside = result.requests.count - done
    demand = 20 * MILLISECOND * 1000
    assert done * demand <= result.used * (1 + 1e-6)
    assert result.used <= (done + inside) * demand * (1 + 1e-6)


@pytest.mark.parametrize("routing", ["roundRobin", "random", "leastConnections"])
@pytest.mark.parametrize("demand", ["constant", "exponential"])
def test_littles_law_holds_for_what_was_sampled(routing: str, demand: str) -> None:
    """The samples' mean concurrency is rate times response time, counted by the columns."""
    plugin = Scripted({0: 3})
    request = {"cpuTime": "40ms", "ioTime": "10ms", "timeout": "never", "demand": demand}
    times = {"metrics": {"firstAfter": "10s", "lag": "0s"}}
    result = run(
        spec(
            traffic=steady(50), request=request, routing=routing, replicas={"initial": 3}, **times
        ),
        [plugin],
    )
    sampled = sum(
        each.value * 10
        for request_ in plugin.stats
        for each in request_.stat
        if each.type is MetricType.CONCURRENT_REQUESTS_MILLIS and each.time <= 60 * SECOND
    )
    columns = result.requests
    area = int((np.minimum(columns.completed, 60 * SECOND) - columns.arrived).sum())
    assert sampled / 1000 == pytest.approx(area / SECOND, rel=2e-3)


@pytest.mark.parametrize("mode", ["fixed", "faithful"])
def test_a_request_that_takes_exactly_its_timeout_succeeds(mode: str) -> None:
    request = {"cpuTime": "0s", "ioTime": "200ms", "timeout": "200ms"}
    result = run(arriving("1s", request=request, mode=mode))
    assert result.requests.outcome.tolist() == [RequestOutcome.OK]


@pytest.mark.parametrize(
    ("io", "outcome"), [("500ms", RequestOutcome.OPEN), ("499ms", RequestOutcome.OK)]
)
def test_who_would_leave_at_the_very_end_is_open(io: str, outcome: RequestOutcome) -> None:
    request = {"cpuTime": "500ms", "ioTime": io}
    assert run(arriving("59s", request=request)).requests.outcome.tolist() == [outcome]


def test_who_drains_past_the_end_is_open_and_not_killed() -> None:
    request = {"cpuTime": "10s", "ioTime": "0s"}
    result = run(arriving("57s", request=request, **FAST), [Scripted({0: 1, 58: 0})])
    assert result.requests.outcome.tolist() == [RequestOutcome.OPEN]
    assert result.used == 3 * SECOND * 1000


def test_a_backend_replaces_nobody_twice() -> None:
    plugin = Scripted({0: 1})
    asked = spec()
    world = world_of(asked, Dispatcher([plugin]).partition(objects_of(asked, [plugin])))
    assert isinstance(world, FixedWorld)
    world.begin()
    world.run_until(SECOND)
    for _ in range(2):
        world.backend.evict(world.backend.active, surge=True)
    world.run_until(10 * SECOND)
    assert [each.name for each in world.backend.active] == ["replica-2"]
    assert len(world.backend.everybody) == 2
