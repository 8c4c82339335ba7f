"""Faithful mode: Skenario's rules, by the sections of the reference."""

import math

import pytest

from kubescene.autoscalers import Autoscaler, EventType, MetricType, Pod
from kubescene.clock import SECOND
from kubescene.flows.records import RequestOutcome
from kubescene.traffic import TrafficResult, TrafficSpec, run
from kubescene.traffic.skenario.series import movement_tallies
from kubescene.traffic.spec.loading import spec_of
from kubescene.traffic.world.movements import CompletedMovement, MovementLog
from traffic.stubs import Scripted, cpu_between

QUIET = {"pattern": "uniform", "uniform": {"numberOfRequests": 0}}


def spec(**fields: object) -> TrafficSpec:
    return spec_of({"mode": "faithful", "duration": "60s", "traffic": QUIET, **fields})


def one_request(at: str, **fields: object) -> TrafficSpec:
    traffic = {"pattern": "replay", "replay": {"arrivals": [at]}}
    return spec(traffic=traffic, **fields)


def moved(result: TrafficResult, kind: str) -> list[tuple[int, str]]:
    return [(each.occurs_at, each.moved) for each in result.movements if each.kind == kind]


def ignored(result: TrafficResult, kind: str) -> list[tuple[int, str]]:
    return [(each.occurs_at, each.reason) for each in result.movements.ignored if each.kind == kind]


def test_2_4_initial_replicas_start_one_nanosecond_after_the_other() -> None:
    result = run(spec(replicas={"initial": 3}))
    assert moved(result, "start_initial_replica") == [
        (1, "replica-1"),
        (2, "replica-2"),
        (3, "replica-3"),
    ]


def test_11_sixty_second_ticks_over_an_hour_are_59() -> None:
    times = {"horizontalInterval": "60s", "verticalInterval": "60s"}
    result = run(spec(duration="1h", replicas={"initial": 0}, **times))
    ticks = [at for at, _ in moved(result, "autoscaler_tick")]
    assert ticks == [60 * SECOND * number + 1 for number in range(1, 60)]


def test_4_1_a_replica_is_sampled_5_s_after_it_started_and_told_of_4_s_later() -> None:
    plugin = Scripted({0: 0})
    # Ticks out of the way: they would take some of these nanoseconds.
    times = {"horizontalInterval": "59s", "verticalInterval": "59s"}
    result = run(spec(**times), [plugin])
    assert [at for at, _ in moved(result, "metrics_tick")] == [
        number * 10 * SECOND + 5 * SECOND + 1 for number in range(6)
    ]
    samples = [each for each in plugin.stats if each.stat[0].pod_name == "replica-1"]
    assert [each.stat[0].time for each in samples] == [
        number * 10 * SECOND + 5 * SECOND + 2 for number in range(6)
    ]
    assert moved(result, "send_metrics_to_sink")[0] == (9 * SECOND + 2, "metrics-1")
    assert [(each.type, each.value) for each in samples[0].stat] == [
        (MetricType.CONCURRENT_REQUESTS_MILLIS, 0),
        (MetricType.CPU_MILLIS, 0),
    ]


def test_4_1_a_sample_is_of_one_instant() -> None:
    plugin = Scripted({0: 0})
    request = {"cpuTime": "200ms", "ioTime": "200ms"}
    run(one_request("4.9s", request=request), [plugin])
    first = next(each for each in plugin.stats if each.stat[0].pod_name == "replica-1")
    assert [each.value for each in first.stat] == [1000, 500]


def test_4_3_the_sequence_of_calls() -> None:
    plugin = Scripted({0: 1}, {0: cpu_between(0, 5000, 700)})
    run(spec(duration="16s", replicas={"initial": 2}), [plugin])
    assert plugin.calls == [
        ("CREATE Autoscaler", 0),
        ("CREATE Pod", 1),
        ("CREATE Pod", 2),
        ("Stat", 5 * SECOND + 3),
        ("Stat", 5 * SECOND + 4),
        ("Stat", 15 * SECOND + 1),
        ("Horizontal", 15 * SECOND + 1),
        ("Vertical", 15 * SECOND + 1),
        ("DELETE Autoscaler", 16 * SECOND),
    ]
    assert plugin.events[1].object == Pod("replica-1", "active", 1, 1000)


def test_3_3_active_replicas_are_desired_ones_and_the_initial_ones() -> None:
    result = run(spec(replicas={"initial": 2}), [Scripted({0: 3})])
    assert (result.counts[-1].desired, result.counts[-1].active) == (3, 5)


def test_3_3_a_launch_begins_after_2_ns_and_ends_after_its_delay() -> None:
    result = run(spec(metrics={"firstAfter": "6s"}), [Scripted({0: 1})])
    tick = 15 * SECOND + 1
    assert [at - tick for at, _ in moved(result, "increase_desired")] == [1]
    assert [at - tick for at, _ in moved(result, "begin_launch")] == [2]
    assert [at - tick for at, _ in moved(result, "finish_launching")] == [5 * SECOND + 1]


def test_3_3_who_is_launching_is_terminated_first() -> None:
    times = {"horizontalInterval": "2s"}
    result = run(spec(duration="30s", **times), [Scripted({0: 2, 4: 1})])
    assert len(moved(result, "terminate_launch")) == 1
    assert not moved(result, "terminate_active")
    # The launch of the one that is gone starts the other early, and then finds nobody.
    assert len(moved(result, "finish_launching")) == 1
    assert [reason for _, reason in ignored(result, "finish_launching")] == [
        "FromStockEmptyAtMovementTime"
    ]


def test_3_4_the_first_request_goes_to_the_second_replica() -> None:
    arrivals = ["1s", "2s", "3s", "4s"]
    traffic = {"pattern": "replay", "replay": {"arrivals": arrivals}}
    result = run(spec(traffic=traffic, replicas={"initial": 3}))
    assert result.requests.replica.tolist() == [2, 3, 1, 2]


def test_3_4_without_replicas_requests_fail_after_a_nanosecond() -> None:
    result = run(one_request("1s", replicas={"initial": 0}))
    assert result.requests.outcome.tolist() == [RequestOutcome.REFUSED]
    assert result.requests.completed.tolist() == [SECOND + 1]
    assert moved(result, "request_failed") == [(SECOND + 1, "request-1")]


def test_3_5_a_request_that_gets_no_cpu_stays_until_its_timeout() -> None:
    arrivals = ["1s", "1.001s"]
    traffic = {"pattern": "replay", "replay": {"arrivals": arrivals}}
    request = {"cpuTime": "5s", "ioTime": "0s", "timeout": "3s"}
    result = run(spec(traffic=traffic, request=request))
    assert result.requests.outcome.tolist() == [RequestOutcome.TIMEOUT] * 2
    assert result.requests.completed.tolist() == [4 * SECOND + 1, 4_001_000_001]


def test_3_5_without_epsilon_requests_that_get_next_to_nothing_time_out() -> None:
    """The bound of their delay is beyond 64 bits."""
    result = run(spec(traffic={"pattern": "step"}, faithful={"epsilon": 0.0}))
    assert result.ok
    assert result.summary.timed_out > 100


def test_3_2_draining_takes_a_second_for_each_request() -> None:
    arrivals = ["14.9s", "14.95s"]
    traffic = {"pattern": "replay", "replay": {"arrivals": arrivals}}
    plugin = Scripted({0: 1, 30: 0})
    times = {"horizontalInterval": "5s"}
    request = {"cpuTime": "1s", "ioTime": "19s", "timeout": "60s"}
    result = run(spec(traffic=traffic, request=request, replicas={"initial": 1}, **times), [plugin])
    ((left, who),) = moved(result, "terminate_active")
    ended = moved(result, "finish_terminating")
    inside = sum(1 for number in result.requests.replica if f"replica-{number}" == who)
    assert ended == [(left + inside * SECOND + SECOND, who)]
    assert result.summary.killed == 0


def test_3_2_those_who_are_gone_still_send_metrics() -> None:
    plugin = Scripted({0: 1, 20: 0})
    times = {"horizontalInterval": "5s"}
    run(spec(duration="60s", **times), [plugin])
    gone = next(each for each in plugin.events if each.type is EventType.DELETE)
    assert isinstance(gone.object, Pod)
    name = gone.object.name
    assert any(
        each.stat[0].time > gone.time + 10 * SECOND and each.stat[0].pod_name == name
        for each in plugin.stats
    )


@pytest.mark.parametrize(
    ("bounds", "replaced"),
    [
        pytest.param((150, 500, 250), True, id="11 below the lower bound"),
        pytest.param((50, 500, 250), False, id="11 within the bounds"),
        pytest.param((50, 99, 250), True, id="11 above the upper bound"),
    ],
)
def test_vertical_replacement(bounds: tuple[int, int, int], replaced: bool) -> None:
    plugin = Scripted(None, {0: cpu_between(*bounds)})
    result = run(spec(duration="16s", replicas={"cpu": "100m", "launchDelay": "1s"}), [plugin])
    assert [each.cpu for each in result.replicas] == ([100, 250] if replaced else [100])


def test_4_2_the_new_replica_is_active_a_nanosecond_before_the_old_one_leaves() -> None:
    plugin = Scripted(None, {0: cpu_between(150, 500, 250)})
    result = run(spec(duration="29s", replicas={"cpu": "100m", "initial": 2}), [plugin])
    created = [at for at, _ in moved(result, "create_updated_replica")]
    evicted = [at for at, _ in moved(result, "evict_replica")]
    first = 20 * SECOND + 1
    assert (created, evicted) == ([first, first + 2], [first + 1, first + 3])


def test_10_1_5_zero_delays_are_refused() -> None:
    fields = {"replicas": {"launchDelay": "0s", "initial": 1}, "metrics": {"firstAfter": "6s"}}
    result = run(spec(**fields), [Scripted({0: 1})])
    assert ignored(result, "finish_launching") == [(15 * SECOND + 2, "ScheduledToOccurInPast")]
    assert result.counts[-1].launching == 1


def test_3_6_mean_utilization_of_a_busy_and_an_idle_replica_is_a_quarter() -> None:
    times = {"horizontalInterval": "5s", "verticalInterval": "5s"}
    result = run(one_request("4.9s", replicas={"initial": 2}, **times))
    assert result.utilizations[0].percent == 25.0
    assert result.utilizations[1].percent == 0.0
    assert not math.copysign(1, result.utilizations[1].percent) < 0


def test_8_6_tally_of_two_replicas_of_which_one_ends() -> None:
    start, end = "start_initial_replica", "terminate_active"
    launching, active, ending = "ReplicasLaunching", "ReplicasActive", "ReplicasTerminating"
    completed = [
        CompletedMovement(0, "start_to_running", "Scenario", "BeforeScenario", "RunningScenario"),
        CompletedMovement(1, start, "replica-1", launching, active),
        CompletedMovement(2, start, "replica-2", launching, active),
        CompletedMovement(7, end, "replica-1", active, ending),
    ]
    assert list(movement_tallies(MovementLog.of(completed, []), 100)) == [
        (1, active, "Replica", 1),
        (2, active, "Replica", 2),
        (7, active, "Replica", 1),
        (100, active, "Replica", 1),
    ]


def test_a_run_repeats_itself_and_begins_with_number_one() -> None:
    traffic = {"pattern": "step", "step": {"rps": 5}}
    asked = spec(traffic=traffic)
    first, again = run(asked, [Scripted({0: 2})]), run(asked, [Scripted({0: 2})])
    assert list(first.movements) == list(again.movements)
    assert first.requests.rows().tobytes() == again.requests.rows().tobytes()
    other = run(spec(traffic=traffic, seed=1), [Scripted({0: 2})])
    assert first.requests.rows().tobytes() != other.requests.rows().tobytes()


def test_the_autoscaler_object_is_passed_on_as_it_is() -> None:
    plugin = Scripted({0: 1})
    objects = [{"type": "scripted.example.com", "yaml": "a: 1\n"}]
    run(spec(autoscalers=objects), [plugin])
    assert plugin.events[0].object == Autoscaler("scripted.example.com", "a: 1\n")
    assert plugin.events[-1].object == Autoscaler("scripted.example.com", "a: 1\n")


def hpa(most: int) -> list[dict[str, object]]:
    target = {"type": "Utilization", "averageUtilization": 50}
    return [
        {
            "object": {
                "apiVersion": "autoscaling/v2beta2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "hpa"},
                "spec": {
                    "minReplicas": 1,
                    "maxReplicas": most,
                    "scaleTargetRef": {
                        "apiVersion": "extensions/v1beta1",
                        "kind": "Deployment",
                        "name": "deployment",
                    },
                    "metrics": [
                        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
                    ],
                },
            }
        }
    ]


def test_12_seen_live_eleven_replicas_with_a_maximum_of_ten() -> None:
    traffic = {"pattern": "ramp", "ramp": {"deltaV": 1, "maxRps": 50}}
    result = run(spec(duration="180s", traffic=traffic, autoscalers=hpa(10)))
    assert (result.counts[-1].desired, result.counts[-1].active) == (10, 11)
    active = [each.active for each in result.counts]
    assert active == sorted(active)  # it never scales down


def test_12_seen_live_399_milliseconds_and_more_than_fifty_replicas() -> None:
    """A hundred requests a second: 6.6 % took 399 ms by a remainder, and 50 to 59 replicas came."""
    traffic = {"pattern": "step", "step": {"rps": 100, "after": "10s"}}
    result = run(spec(duration="10m", traffic=traffic, autoscalers=hpa(60)))
    columns = result.requests
    took = (columns.completed - columns.arrived) // 1_000_000
    assert float((took == 399).mean()) == pytest.approx(0.066, abs=0.006)
    assert 48 <= result.summary.replicas_most <= 60
