"""Queueing theory: means of long runs against what is known to be true.

Seeds are fixed, so these never fluctuate: a bound is four standard errors of 50 batch means.
"""

from math import factorial, sqrt

import numpy as np
import pytest

from kubescene.clock import SECOND, Stream
from kubescene.flows.arrivals import SpacedArrivals, Spacing
from kubescene.flows.flow import Flow
from kubescene.flows.kernels import NEVER, Service
from kubescene.flows.patterns import constant
from kubescene.flows.records import RequestColumns
from kubescene.flows.routing import RandomRouting

CAPACITY = 1000
RPS = 1000
BATCHES = 50


def simulate(
    load: float, count: int, *, drawn: bool = False, limit: int = 0, servers: int = 0
) -> tuple[RequestColumns, float]:
    """Columns of requests at one replica, and the service time in nanoseconds."""
    duration = count // RPS * SECOND
    demand = int(load * CAPACITY * SECOND / RPS)
    ceiling = CAPACITY // servers if servers else 0
    service = Service(demand, NEVER, drawn=drawn, limit=limit, ceiling=ceiling)
    arrivals = SpacedArrivals(constant(RPS, duration), Spacing.POISSON, Stream(17), duration)
    flow = Flow(
        arrivals,
        RandomRouting(Stream(18)),
        service,
        io=0,
        demand_stream=Stream(19),
        times=None,
        halt=duration,
    )
    flow.join(1, CAPACITY, 0)
    flow.advance(duration)
    flow.columns.close(duration)
    return flow.columns, demand / (ceiling or CAPACITY)


def mean_and_error(columns: RequestColumns, service_time: float) -> tuple[float, float]:
    """The mean response in units of the service time, and its standard error by batch means."""
    times = (columns.completed - columns.arrived)[columns.count // 20 :] / service_time
    means = [float(each.mean()) for each in np.array_split(times, BATCHES)]
    centre = sum(means) / BATCHES
    spread = sqrt(sum((each - centre) ** 2 for each in means) / (BATCHES - 1))
    return centre, spread / sqrt(BATCHES)


def holds(expected: float, columns: RequestColumns, service_time: float) -> bool:
    centre, error = mean_and_error(columns, service_time)
    return abs(centre - expected) <= 4 * error and error < expected / 10


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.8])
@pytest.mark.parametrize("drawn", [False, True], ids=["M/D/1-PS", "M/M/1-PS"])
def test_processor_sharing_is_insensitive_to_the_demands(load: float, drawn: bool) -> None:
    assert holds(1 / (1 - load), *simulate(load, 200_000, drawn=drawn))


@pytest.mark.parametrize("load", [0.5, 0.7])
def test_one_at_a_time_is_m_d_1(load: float) -> None:
    assert holds(1 + load / (2 * (1 - load)), *simulate(load, 100_000, limit=1))


@pytest.mark.parametrize("load", [0.5, 0.7])
def test_one_at_a_time_with_random_demands_is_m_m_1(load: float) -> None:
    assert holds(1 / (1 - load), *simulate(load, 100_000, limit=1, drawn=True))


@pytest.mark.parametrize(
    ("servers", "load", "known"),
    # Where servers are idle most of the time, the bounds are narrowest.
    [(2, 0.7, 1.9608), (4, 0.8, 1.7455), (4, 0.4, 1.0378), (8, 0.5, 1.0148)],
)
def test_a_ceiling_for_each_request_is_m_m_c(servers: int, load: float, known: float) -> None:
    expected = 1 + erlang_c(servers, load * servers) / (servers * (1 - load))
    assert expected == pytest.approx(known, abs=1e-4)
    assert holds(expected, *simulate(load, 100_000, drawn=True, servers=servers))


def erlang_c(servers: int, offered: float) -> float:
    """The probability that all servers are busy."""
    waiting = offered**servers / factorial(servers) * servers / (servers - offered)
    return waiting / (sum(offered**k / factorial(k) for k in range(servers)) + waiting)


def test_the_number_found_at_arrival_is_geometric() -> None:
    columns, _ = simulate(0.7, 200_000)
    gone = np.searchsorted(np.sort(columns.completed), columns.arrived)
    found = np.arange(columns.count) - gone
    for number, expected in enumerate((0.3, 0.21, 0.147)):
        assert float((found == number).mean()) == pytest.approx(expected, abs=0.006)


def test_the_variance_of_m_m_1_processor_sharing() -> None:
    load = 0.5
    columns, service_time = simulate(load, 400_000, drawn=True)
    times = (columns.completed - columns.arrived) / service_time
    known = (2 + load) / ((2 - load) * (1 - load) ** 2)
    assert float(times.var()) == pytest.approx(known, rel=0.05)


@pytest.mark.parametrize(("load", "growth"), [(1.2, 0.3764), (1.5, 0.8742)])
def test_the_queue_of_an_overload_grows_as_it_should(load: float, growth: float) -> None:
    """Equal demands, even arrivals, no timeouts: n(t) = x t / S with x = r (1 - exp(-x))."""
    seconds = 20
    end = seconds * SECOND
    demand = int(load * CAPACITY * SECOND / RPS)
    arrivals = SpacedArrivals(constant(RPS, end), Spacing.EVEN, Stream(0), end)
    flow = Flow(
        arrivals,
        RandomRouting(Stream(0)),
        Service(demand),
        io=0,
        demand_stream=Stream(0),
        times=None,
        halt=seconds * SECOND,
    )
    station = flow.join(1, CAPACITY, 0)
    flow.advance(seconds * SECOND)
    expected = growth * seconds * SECOND / (demand / CAPACITY)
    assert station.processor.held == pytest.approx(expected, rel=0.01)
