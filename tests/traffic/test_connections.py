"""Least connections: against a search that counts everybody at every arrival."""

import pytest

from kubescene.clock import SECOND, Stream
from kubescene.flows.arrivals import SpacedArrivals, Spacing
from kubescene.flows.connections import (
    AnyOrderSlot,
    InOrderSlot,
    LeastConnections,
    RouterSlot,
)
from kubescene.flows.flow import Flow
from kubescene.flows.kernels import NEVER, LeastLeftFirst, Service
from kubescene.flows.patterns import constant
from kubescene.flows.routing import RequestBatch

END = 20 * SECOND


def flow(service: Service, io: int) -> Flow:
    arrivals = SpacedArrivals(constant(60, END), Spacing.POISSON, Stream(4), END)
    router = LeastConnections(service, io)
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
        Service(45 * 10**9, limit=2, drawn=True, timeout=300_000_000),
        Service(30 * 10**9, ceiling=600),
        Service(0),
        Service(0, timeout=0),
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


def test_ties_go_on_after_the_last_target_also_when_one_leaves() -> None:
    router = LeastConnections(Service(1), 0)
    for number in (1, 2, 3):
        router.joined(number, 1000, 0)
    first = router.divide(RequestBatch([10, 20], 0, None), 3)
    assert first.places.tolist() == [0, 1]
    router.parted(1)
    assert router.divide(RequestBatch([30, 40], 2, None), 2).places.tolist() == [1, 0]


@pytest.mark.parametrize("kind", [InOrderSlot, AnyOrderSlot])
def test_who_ends_at_the_instant_of_a_resize_does_not_leave_before_it(
    kind: type[RouterSlot],
) -> None:
    slot = kind(1, Service(14_500), 0, 4000, 0)  # type: ignore[call-arg]
    slot.admit(0, 14_500)
    assert slot.leave(4) == []
    slot.resize(1, 4)
    assert slot.leave(NEVER) == [4]


def left_slot(slot: RouterSlot, seed: int) -> list[int]:
    """When those who came at random instants left a slot that is resized once."""
    stream, now, over = Stream(seed), 0, []
    for step in range(300):
        now += stream.below(30)
        over += slot.leave(now + 1)
        assert slot.admit(now, slot.service.demand) > now - 1
        if step == 150:
            over += slot.leave(now)
            slot.resize(3, now)
    return over + slot.leave(1 << 40)


@pytest.mark.parametrize("seed", range(12))
def test_slots_in_order_are_like_those_in_any_order(seed: int) -> None:
    stream = Stream(100 + seed)
    timeout = (NEVER, 0, stream.below(200))[stream.below(3)]
    service = Service(stream.below(100), timeout=timeout, limit=stream.below(3))
    io = stream.below(2) * 25
    fast = left_slot(InOrderSlot(1, service, io, 2, 0), seed)
    assert fast == left_slot(AnyOrderSlot(1, service, io, 2, 0), seed)
    assert len(fast) == 300


@pytest.mark.parametrize("seed", range(40))
def test_slots_in_any_order_are_like_the_processors_of_replicas(seed: int) -> None:
    stream = Stream(500 + seed)
    timeout = (NEVER, stream.below(40), stream.below(400))[stream.below(3)]
    limit, ceiling = stream.below(4) * stream.below(2), stream.below(3)
    service = Service(1, timeout=timeout, drawn=True, limit=limit, ceiling=ceiling)
    slot, now, over = AnyOrderSlot(1, service, 0, 3, 0), 0, []
    arrivals, demands = [], []
    for _ in range(1500):  # many enough that the slot forgets some
        now += stream.below(1 + seed)
        over += slot.leave(now + 1)
        arrivals.append(now)
        demands.append(stream.below(60))
        slot.admit(now, demands[-1])
    over += slot.leave(1 << 40)
    served = LeastLeftFirst(service, 3, 0).serve(arrivals, range(1500), demands, 1 << 40)
    assert over == served.instants
