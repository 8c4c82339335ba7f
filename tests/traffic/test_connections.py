"""Least connections: against a search that counts everybody at every arrival."""

import pytest

from kubescene.clock import SECOND, Stream
from kubescene.traffic.arrivals import SpacedArrivals, Spacing
from kubescene.traffic.connections import (
    EqualConnections,
    LeastConnections,
    least_connections,
)
from kubescene.traffic.flow import Flow
from kubescene.traffic.kernels import NEVER, Service
from kubescene.traffic.patterns import constant
from kubescene.traffic.routing import Batch, Router

END = 20 * SECOND


def flow(service: Service, io: int, router: Router | None = None) -> Flow:
    arrivals = SpacedArrivals(constant(60, END), Spacing.POISSON, Stream(4), END)
    router = least_connections(service, io) if router is None else router
    return Flow(arrivals, router, service, io=io, demand_stream=Stream(5), times=None, halt=END)


def play(world: Flow, cuts: list[int]) -> Flow:
    """Four replicas, one of them late and one of them leaving."""
    for number in (1, 2, 3):
        world.join(number, 1000, 0)
    steps = {6 * SECOND: "join", 9 * SECOND: "resize", 13 * SECOND: "part"}
    for instant in sorted({*cuts, *steps, END}):
        world.advance(instant)
        if steps.get(instant) == "join":
            world.join(4, 500, instant)
        if steps.get(instant) == "resize":
            world.resize(world.stations[1], 1500, instant)
        if steps.get(instant) == "part":
            world.part(world.stations[0], instant, instant + SECOND)
    world.columns.close(END)
    return world


@pytest.mark.parametrize("io", [0, 30_000_000])
@pytest.mark.parametrize(
    "service",
    [
        Service(30 * 10**9),
        Service(30 * 10**9, drawn=True),
        Service(60 * 10**9, timeout=400_000_000),
        Service(60 * 10**9, timeout=400_000_000, drawn=True),
        Service(45 * 10**9, limit=2),
    ],
    ids=str,
)
def test_every_request_goes_where_the_fewest_are(service: Service, io: int) -> None:
    columns = play(flow(service, io), []).columns
    arrived, left = columns.arrived.tolist(), columns.completed.tolist()
    replica = columns.replica.tolist()
    for row, now in enumerate(arrived):
        members = [1, 2, 3] if now < 6 * SECOND else [1, 2, 3, 4]
        if now >= 13 * SECOND:
            members = [2, 3, 4]
        inside = dict.fromkeys(members, 0)
        for other in range(row):
            if left[other] > now and replica[other] in inside:
                inside[replica[other]] += 1
        assert inside[replica[row]] == min(inside.values()), row


@pytest.mark.parametrize("drawn", [False, True])
def test_cuts_do_not_show(drawn: bool) -> None:
    service = Service(30 * 10**9, timeout=NEVER, drawn=drawn)
    whole = play(flow(service, 20_000_000), [])
    stream = Stream(3)
    cuts = [stream.below(END) for _ in range(50)]
    pieces = play(flow(service, 20_000_000), cuts)
    assert whole.columns.rows().tobytes() == pieces.columns.rows().tobytes()


@pytest.mark.parametrize("made", [LeastConnections, EqualConnections])
def test_ties_go_on_after_the_last_target_also_when_one_leaves(
    made: type[LeastConnections] | type[EqualConnections],
) -> None:
    router = made(Service(1), 0)
    for number in (1, 2, 3):
        router.joined(number, 1000, 0)
    first = router.divide(Batch([10, 20], 0, None), 3)
    assert first.places.tolist() == [0, 1]
    router.parted(1)
    assert router.divide(Batch([30, 40], 2, None), 2).places.tolist() == [1, 0]


@pytest.mark.parametrize("io", [0, 30_000_000])
@pytest.mark.parametrize("timeout", [NEVER, 400_000_000, 0])
@pytest.mark.parametrize("demand", [0, 30 * 10**9, 60 * 10**9])
def test_the_fast_form_is_the_general_one(demand: int, timeout: int, io: int) -> None:
    service = Service(demand, timeout=timeout)
    fast = play(flow(service, io, EqualConnections(service, io)), [])
    general = play(flow(service, io, LeastConnections(service, io)), [])
    assert fast.columns.rows().tobytes() == general.columns.rows().tobytes()
