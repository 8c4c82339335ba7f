"""Replicas that are killed for want of memory, and what follows from it."""

import copy
from typing import Any

import pytest

from kubescene.autoscalers import (
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    Pod,
    PodState,
)
from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.clock import SECOND
from kubescene.flows.records import RequestOutcome
from kubescene.traffic import TrafficResult, run
from kubescene.traffic.runs import objects_of, world_of
from kubescene.traffic.spec.loading import run_of
from traffic.stubs import Scripted, cpu_between

MEBIBYTE = 1 << 20


def document(arrivals: list[float], memory: dict[str, str] | None = None, **spec: Any) -> Any:
    """Requests of 100 s of CPU on one replica that has room for three of them."""
    told = {"request": "64Mi", "limit": "64Mi", "base": "32Mi", "perRequest": "10Mi"}
    given: dict[str, Any] = {
        "duration": "100s",
        "traffic": {"pattern": "replay", "replay": {"arrivals": [f"{a}s" for a in arrivals]}},
        "request": {"cpuTime": "100s", "ioTime": "0s", "timeout": "never"},
        "replicas": {"launchDelay": "5s", "memory": told | (memory or {})},
    }
    for name, value in spec.items():
        given[name] = given[name] | value if isinstance(given.get(name), dict) else value
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "TrafficRun",
        "metadata": {"name": "memory"},
        "spec": given,
    }


def outcomes(result: TrafficResult) -> list[RequestOutcome]:
    return [RequestOutcome(each) for each in result.requests.outcome.tolist()]


def test_as_many_as_fit_are_no_kill() -> None:
    result = run(document([1, 2, 3]))
    assert outcomes(result) == [RequestOutcome.OPEN] * 3
    assert result.summary.oom_kills == 0


def test_one_more_kills_the_replica_with_all_that_is_inside() -> None:
    result = run(document([1, 2, 3, 4]))
    assert outcomes(result) == [RequestOutcome.KILLED] * 4
    assert result.requests.completed.tolist() == [4 * SECOND + 1] * 4
    assert (result.summary.oom_kills, result.summary.killed) == (1, 4)
    assert [(each.time, each.launching, each.active) for each in result.counts] == [
        (0, 0, 1),
        (4 * SECOND + 1, 1, 0),
        (9 * SECOND + 1, 0, 1),
    ]
    [replica] = result.replicas
    assert (replica.restarts, replica.launched_at, replica.activated_at) == (1, 0, 9 * SECOND + 1)


def test_while_it_starts_again_nobody_is_there() -> None:
    result = run(document([1, 2, 3, 4, 5, 8, 10]))
    assert outcomes(result)[4:] == [
        RequestOutcome.REFUSED,
        RequestOutcome.REFUSED,
        RequestOutcome.OPEN,
    ]


def test_those_that_only_wait_hold_memory_too() -> None:
    waiting = {"cpuTime": "1ms", "ioTime": "50s"}
    assert run(document([1, 2, 3, 4], request=waiting)).summary.oom_kills == 1
    # The first one is gone just before the fourth comes.
    brief = {"cpuTime": "1s", "ioTime": "2s"}
    assert run(document([1, 2, 3, 4], request=brief)).summary.oom_kills == 0
    longer = {"cpuTime": "1s", "ioTime": "2.000000001s"}
    assert run(document([1, 2, 3, 4], request=longer)).summary.oom_kills == 1


def test_without_a_limit_nobody_is_killed() -> None:
    assert run(document([1, 2, 3, 4, 5], {"limit": "0"})).summary.oom_kills == 0


def test_each_kill_is_followed_by_a_longer_wait() -> None:
    bursts = [at + part / 10 for at in (0, 10, 40, 80, 180) for part in range(4)]
    result = run(document(bursts, duration="400s"))
    kills = [at + SECOND * 3 // 10 + 1 for at in (0, 10 * SECOND, 40 * SECOND, 80 * SECOND)]
    movements = [each for each in result.movements if each.kind == "restart_replica"]
    assert [each.occurs_at for each in movements][:4] == kills
    back = [each.occurs_at for each in result.movements if each.kind == "finish_launching"]
    waits = [there - here for here, there in zip(kills, back[:4], strict=True)]
    assert waits == [5 * SECOND, 15 * SECOND, 25 * SECOND, 45 * SECOND]


def test_ten_quiet_minutes_are_a_new_beginning() -> None:
    bursts = [at + part / 10 for at in (0, 700, 710) for part in range(4)]
    result = run(document(bursts, duration="800s"))
    back = [each.occurs_at for each in result.movements if each.kind == "finish_launching"]
    assert [at // SECOND for at in back] == [5, 705, 725]


def random_load(routing: str, io: str = "300ms") -> Any:
    return document(
        [],
        None,
        duration="60s",
        traffic={
            "pattern": "constant",
            "spacing": "poisson",
            "constant": {"rps": 30},
            "replay": None,
        },
        request={"cpuTime": "80ms", "ioTime": io, "timeout": "3s", "demand": "exponential"},
        replicas={
            "initial": 3,
            "launchDelay": "2s",
            "memory": {"request": "64Mi", "limit": "64Mi", "base": "32Mi", "perRequest": "5Mi"},
        },
        routing=routing,
    )


@pytest.mark.parametrize("routing", ["roundRobin", "random", "leastConnections"])
def test_a_replica_holds_more_than_it_can_only_when_it_is_killed(routing: str) -> None:
    """Counted anew from the columns, request by request."""
    result = run(random_load(routing))
    columns, room = result.requests, 32 // 5
    rows = list(
        zip(columns.arrived.tolist(), columns.completed.tolist(), columns.replica, strict=True)
    )
    kills = 0
    for row, (arrived, completed, replica) in enumerate(rows):
        if not replica:
            continue
        inside = 1 + sum(
            end > arrived and number == replica for _, end, number in rows[max(row - 300, 0) : row]
        )
        assert inside <= room + 1
        if inside > room:
            kills += 1
            assert (completed, columns.outcome[row]) == (arrived + 1, RequestOutcome.KILLED)
    assert kills == result.summary.oom_kills > 2


@pytest.mark.parametrize("routing", ["roundRobin", "leastConnections"])
def test_pieces_and_forks_do_not_show(routing: str) -> None:
    asked = run_of(random_load(routing))
    whole = run(asked)

    def world() -> Any:
        objects = objects_of(asked.spec)
        made = world_of(asked.spec, Dispatcher([]).partition(objects))
        made.begin()
        return made

    pieces = world()
    for instant in range(0, 60 * SECOND, SECOND // 3):
        pieces.run_until(instant)
        if instant > 20 * SECOND:
            pieces = copy.deepcopy(pieces)
    pieces.run_until(200 * SECOND)
    pieces.finish(60 * SECOND)
    assert pieces.columns.rows().tobytes() == whole.requests.rows().tobytes()
    assert pieces.counts == whole.counts


class Watching(AutoscalerPlugin):
    types = ("watching.example.com",)
    capabilities = frozenset({Capability.EVENT})

    def __init__(self) -> None:
        self.states: list[str] = []

    def event(self, request: EventRequest) -> None:
        if isinstance(request.object, Pod):
            self.states.append(f"{request.type.name} {request.object.state}")


def test_autoscalers_are_told_of_a_kill() -> None:
    watching = Watching()
    run(document([1, 2, 3, 4]), [watching])
    assert watching.states == [
        "CREATE active",
        f"UPDATE {PodState.OOM_KILLED}",
        "UPDATE active",
    ]


def vpa(minimum: str = "1Mi") -> dict[str, Any]:
    policy = {"containerName": "*", "minAllowed": {"cpu": "1", "memory": minimum}}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "vpa"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": "Recreate", "minReplicas": 1},
            "resourcePolicy": {"containerPolicies": [policy]},
        },
    }


def test_a_vpa_bumps_the_memory_of_who_was_killed_and_replaces_it() -> None:
    """The bump is 100 MiB or a fifth more, whatever is more, of the request that was too small."""
    bursts = [1 + second * 30 + part / 10 for second in range(8) for part in range(4)]
    plain = run(document(bursts, duration="300s"))
    asked = document(
        bursts,
        {"request": "512Mi", "limit": "512Mi", "base": "480Mi"},
        duration="300s",
        autoscalers=[{"object": vpa()}],
    )
    bumped = run(asked)
    killed_at = next(e.occurs_at for e in bumped.movements if e.kind == "restart_replica")
    memory = [
        (each.time, resource.target)
        for each in bumped.sizes
        for resource in each.resources
        if resource.resource_name == "memory"
    ]
    first = next(target for time, target in memory if time > killed_at)
    assert first >= (512 + 102) * MEBIBYTE
    assert bumped.replicas[1].memory == first
    assert bumped.summary.oom_kills < plain.summary.oom_kills


MEMORY = {"request": "64Mi", "limit": "64Mi", "base": "32Mi", "perRequest": "10Mi"}


def test_a_replica_that_is_starting_again_is_the_first_to_go() -> None:
    plugin = Scripted({0: 1})
    replicas = {"initial": 2, "launchDelay": "60s", "memory": MEMORY}
    arrivals = [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    asked = document(arrivals, replicas=replicas, horizontalInterval="10s", duration="30s")
    result = run(asked, [plugin])
    gone = [each for each in result.replicas if each.terminated_at >= 0]
    assert [each.restarts for each in gone] == [1]
    assert result.counts[-1].active == 1
    deleted = [e.object for e in plugin.events if e.type is EventType.DELETE]
    assert Pod(gone[0].name) in deleted


def test_a_replacement_takes_the_place_of_one_that_is_starting_again() -> None:
    plugin = Scripted(None, {0: cpu_between(1500, 3000, 2000)})
    replicas = {"launchDelay": "20s", "memory": MEMORY}
    # Replaced from 15 s to 35 s, killed at 20.3 s: it would be there again at 40.3 s.
    result = run(document([20, 20.1, 20.2, 20.3], replicas=replicas, duration="60s"), [plugin])
    old, new = result.replicas
    assert (old.restarts, new.activated_at) == (1, 35 * SECOND)
    assert old.terminated_at == 36 * SECOND
    assert result.counts[-1].active == 1
