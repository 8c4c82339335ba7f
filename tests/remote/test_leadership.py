"""One controller plays at an API server: whoever holds the Lease."""

from collections.abc import Iterator
from threading import Event

import pytest

from kubescene.clock import SECOND, VirtualClock, WallClock, parse_time
from kubescene.errors import UnreachableError
from kubescene.remote import leadership as module
from kubescene.remote.leadership import LASTS_S, PLACE, Leadership
from remote.api_servers import ApiServer, client_of, endpoint_of

PATIENCE_S = 60


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def server(own_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    monkeypatch.setattr(module, "RENEWS_S", 0.02)
    return own_server


@pytest.fixture
def pair(server: ApiServer, clock: VirtualClock) -> Iterator[tuple[Leadership, Leadership]]:
    endpoint = endpoint_of(server.kubeconfig)
    made = Leadership(endpoint, "one", clock), Leadership(endpoint, "two", clock)
    yield made
    for each in made:
        each.release()


def test_the_second_has_to_wait(pair: tuple[Leadership, Leadership], server: ApiServer) -> None:
    one, two = pair
    assert [one.try_once(), two.try_once(), one.try_once()] == ["", "one", ""]
    with client_of(server.outsider) as user:
        lease = user.get(PLACE)
    assert lease["spec"]["holderIdentity"] == "one"
    assert lease["spec"]["leaseTransitions"] == 0
    assert abs(parse_time(lease["spec"]["renewTime"]) - WallClock().now()) < PATIENCE_S * SECOND
    assert lease["metadata"]["annotations"] == {"kubescene.dev/keep": "true"}


def test_one_that_renews_is_never_taken_for_dead(
    pair: tuple[Leadership, Leadership], clock: VirtualClock
) -> None:
    one, two = pair
    for _ in range(5):
        assert (one.try_once(), two.try_once()) == ("", "one")
        clock.wait_until(clock.now() + (LASTS_S - 1) * SECOND)


def test_one_that_does_not_is_taken_for_dead_after_a_while(
    pair: tuple[Leadership, Leadership], clock: VirtualClock
) -> None:
    one, two = pair
    one.try_once()
    assert two.try_once() == "one"
    clock.wait_until(clock.now() + LASTS_S * SECOND)
    assert two.try_once() == "one"
    clock.wait_until(clock.now() + 1)
    assert [two.try_once(), one.try_once()] == ["", "two"]


def test_one_that_ends_lets_the_next_one_play_at_once(
    server: ApiServer, clock: VirtualClock
) -> None:
    endpoint = endpoint_of(server.kubeconfig)
    one, two = Leadership(endpoint, "one", clock), Leadership(endpoint, "two", clock)
    one.acquire(pytest.fail)
    one.release()
    told: list[str] = []
    two.acquire(told.append)
    two.release()
    assert told == []


def test_whom_it_waits_for_is_told_once(
    pair: tuple[Leadership, Leadership], clock: VirtualClock
) -> None:
    """Its clock goes on while it waits, and nobody renews."""
    one, two = pair
    one.try_once()
    told: list[str] = []
    two.acquire(told.append)
    (line,) = told
    assert line.startswith("one plays here already (Lease kube-system/kubescene-controller)")


def test_one_that_has_lost_it_is_stopped(
    pair: tuple[Leadership, Leadership], server: ApiServer
) -> None:
    one, _ = pair
    stopped = Event()
    one.acquire(pytest.fail)
    one.when_lost(stopped.set)
    with client_of(server.outsider) as user:
        user.patch(PLACE, {"spec": {"holderIdentity": "somebody"}})
    assert stopped.wait(PATIENCE_S)
    assert one.lost.startswith("somebody has taken the Lease kube-system/kubescene-controller")


def test_one_that_cannot_renew_it_is_stopped_before_another_may_take_it(
    pair: tuple[Leadership, Leadership], clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = pair
    stopped = Event()
    one.acquire(pytest.fail)
    start = clock.now()

    def fail() -> str:
        clock.wait_until(clock.now() + SECOND)
        raise UnreachableError("the cable is out")

    monkeypatch.setattr(one, "try_once", fail)
    one.when_lost(stopped.set)
    assert stopped.wait(PATIENCE_S)
    assert "could not be renewed for 30 s" in one.lost
    assert "the cable is out" in one.lost
    assert clock.now() - start < LASTS_S * SECOND
