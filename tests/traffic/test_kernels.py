"""The CPU model: known small cases, and the fast loops against the slow one."""

from typing import NamedTuple

import pytest

from kubescene.clock import MILLISECOND, Stream
from kubescene.flows.flow import processor_of
from kubescene.flows.kernels import NEVER, Service
from traffic.reference_loop import ReferenceProcessor

DEMAND = 10**10


def ends(service: Service, capacity: int, arrivals: list[int], resize: int = 0) -> list[int]:
    cpu = processor_of(service, capacity, 0)
    if not resize:
        return cpu.serve(arrivals, range(len(arrivals)), None, NEVER).instants
    served = cpu.serve(arrivals, range(len(arrivals)), None, resize).instants
    cpu.resize(2 * capacity, resize)
    return served + cpu.serve([], [], None, NEVER).instants


def ms(*instants: int) -> list[int]:
    return [each * MILLISECOND for each in instants]


@pytest.mark.parametrize(
    "options",
    [{}, {"drawn": True}, {"limit": 1000}, {"drawn": True, "limit": 1000}, {"ceiling": 5000}],
    ids=str,
)
def test_oracles_of_processor_sharing(options: dict[str, int]) -> None:
    service = Service(DEMAND, **options)  # type: ignore[arg-type]
    assert ends(service, 1000, ms(0, 4, 30)) == ms(16, 20, 40)
    assert ends(service._replace(timeout=15 * MILLISECOND), 1000, ms(0, 4, 30)) == ms(15, 19, 40)
    assert ends(service, 1000, ms(0, 4), resize=10 * MILLISECOND) == ms(13, 15)
    assert ends(service, 1000, ms(0, 0, 0)) == ms(30, 30, 30)
    assert ends(service._replace(demand=1000), 300, [0, 1, 5]) == [6, 8, 10]


@pytest.mark.parametrize("options", [{}, {"drawn": True}, {"ceiling": 5000}], ids=str)
def test_who_ends_as_it_is_resized_does_not_end_before_that(options: dict[str, int]) -> None:
    # At 4 ns the first has got 16,000, which is more than it wanted; one CPU is left of 4,000.
    cpu = processor_of(Service(14_500, **options), 4000, 0)  # type: ignore[arg-type]
    assert cpu.serve([0], [0], [14_500], 4).instants == []
    cpu.resize(1, 4)
    assert cpu.serve([], [], None, NEVER).instants == [4]
    assert cpu.used(9) == 16_000


def test_a_deadline_cancels_and_says_so() -> None:
    cpu = processor_of(Service(DEMAND, timeout=15 * MILLISECOND), 1000, 0)
    served = cpu.serve(ms(0, 4, 30), [7, 8, 9], None, NEVER)
    assert (served.rows, served.cancelled) == ([7, 8, 9], [0, 1])


def test_one_at_a_time_is_first_come_first_served() -> None:
    assert ends(Service(DEMAND, limit=1), 1000, ms(0, 4, 5)) == ms(10, 20, 30)


def test_a_ceiling_leaves_capacity_unused() -> None:
    cpu = processor_of(Service(DEMAND, ceiling=500), 1000, 0)
    assert cpu.serve(ms(0), [0], None, NEVER).instants == ms(20)
    assert cpu.used(20 * MILLISECOND) == DEMAND


def test_nothing_is_needed_and_nothing_is_waited_for() -> None:
    cpu = processor_of(Service(0, timeout=0), 1, 0)
    assert cpu.serve([5, 5, 7], [0, 1, 2], None, NEVER) == ([0, 1, 2], [5, 5, 7], [])


class Case(NamedTuple):
    service: Service
    capacity: int
    arrivals: list[int]
    demands: list[int]


def case(seed: int) -> Case:
    """A small random world with many ties; some are large enough to be tidied up."""
    stream = Stream(seed)
    scale = (1, 3, 50, 1000)[stream.below(4)]
    drawn, limited = stream.below(2) == 1, stream.below(3) == 0
    service = Service(
        demand=stream.below(2000),
        timeout=(NEVER, stream.below(40 * scale))[stream.below(2)],
        drawn=drawn,
        limit=stream.below(4) if limited else 0,
        ceiling=stream.below(3) * 100 if limited else 0,
    )
    count = stream.below(60) if seed % 50 else 250
    arrivals = sorted(stream.below(40 * scale) for _ in range(count))
    demands = [stream.below(3000) if drawn else service.demand for _ in range(count)]
    return Case(service, (1, 7, 300, 1000)[stream.below(4)], arrivals, demands)


def play(world: Case, cuts: list[int], resize: tuple[int, int]) -> tuple[object, ...]:
    """Everything a processor answers, served in parts."""
    cpu = processor_of(world.service, world.capacity, 0)
    gone, start = [], 0
    for cut in [*cuts, NEVER]:
        stop = start
        while stop < len(world.arrivals) and world.arrivals[stop] < cut:
            stop += 1
        part = slice(start, stop)
        served = cpu.serve(
            world.arrivals[part], range(start, stop), world.demands[part], min(cut, 10**9)
        )
        late = set(served.cancelled)
        for place, (row, at) in enumerate(zip(served.rows, served.instants, strict=True)):
            gone.append((row, at, place in late))
        if cut == resize[0]:
            cpu.resize(resize[1], cut)
        start = stop
    return gone, cpu.used(10**9), sorted(cpu.left())


def refer(world: Case, resize: tuple[int, int]) -> tuple[object, ...]:
    cpu = ReferenceProcessor(world.service, world.capacity)
    resized = False
    for row, at in enumerate(world.arrivals):
        if not resized and at >= resize[0]:
            cpu.resize(resize[1], resize[0])
            resized = True
        cpu.arrive(row, at, world.demands[row])
    if not resized:
        cpu.resize(resize[1], resize[0])
    cpu.run(10**9)
    cpu.advance(10**9)
    return cpu.gone, cpu.used, sorted(job.row for job in cpu.jobs)


@pytest.mark.parametrize("block", range(8))
def test_fast_loops_equal_the_slow_one_however_they_are_cut(block: int) -> None:
    for seed in range(block * 150, block * 150 + 150):
        world = case(seed)
        stream = Stream(10**6 + seed)
        resize = (stream.below(200), 1 + stream.below(2000))
        more = sorted({stream.below(4000) for _ in range(stream.below(12))} | {resize[0]})
        expected = refer(world, resize)
        assert play(world, [resize[0]], resize) == expected, seed
        assert play(world, more, resize) == expected, seed
