"""Pods that share a node: equal to the reference loop, to formulas, and to what limits say."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.clock import Streams
from kubescene.flows.kernels import NEVER, LeastLeftFirst, Service
from kubescene.flows.node_kernel import NodeCpu, SharedProcessor
from traffic.reference_node import Pod, play

CASE = st.fixed_dictionaries(
    {
        "capacity": st.integers(1, 40),
        "pods": st.lists(
            st.fixed_dictionaries(
                {
                    "limit": st.sampled_from([0, 0, 1, 3, 10, 25]),
                    "weight": st.integers(2, 9),
                    "timeout": st.sampled_from([3, 40, 1000, NEVER]),
                    "ceiling": st.sampled_from([0, 0, 2, 7]),
                    "at_once": st.sampled_from([0, 0, 1, 3]),
                    "arrivals": st.lists(
                        st.tuples(st.integers(0, 120), st.integers(1, 300)), max_size=14
                    ),
                }
            ),
            min_size=1,
            max_size=4,
        ),
        "cuts": st.lists(st.integers(0, 400), max_size=4),
    }
)


def node_of(case: dict) -> tuple[NodeCpu, list[SharedProcessor], list[Pod]]:  # type: ignore[type-arg]
    node, shared, plain = NodeCpu(case["capacity"]), [], []
    row = 0
    for given_pod in case["pods"]:
        timeout, limit = given_pod["timeout"], given_pod["limit"]
        service = Service(
            1, timeout, drawn=True, limit=given_pod["at_once"], ceiling=given_pod["ceiling"]
        )
        pod = SharedProcessor(node, service, 0, limit=limit, weight=given_pod["weight"])
        own = Pod(limit, given_pod["weight"], timeout, given_pod["ceiling"], given_pod["at_once"])
        for at, demand in sorted(given_pod["arrivals"]):
            own.arrivals.append((at, row, demand))
            row += 1
        shared.append(pod)
        plain.append(own)
    return node, shared, plain


@settings(max_examples=600, deadline=None)
@given(CASE)
def test_the_kernel_is_the_reference_loop_however_it_is_cut(case: dict) -> None:  # type: ignore[type-arg]
    node, shared, plain = node_of(case)
    given_arrivals = [list(each.arrivals) for each in plain]
    ended: list[list[tuple[int, int, bool]]] = [[] for _ in shared]
    since, end = 0, 3000
    for until in [*sorted(case["cuts"]), end]:
        for pod, arrivals in zip(shared, given_arrivals, strict=True):
            here = [each for each in arrivals if since <= each[0] < until]
            pod.offer([at for at, _, _ in here], [r for _, r, _ in here], [d for _, _, d in here])
        node.play(until)
        for pod, ends in zip(shared, ended, strict=True):
            served = pod.taken()
            gone = set(served.cancelled)
            rows = zip(served.rows, served.instants, strict=True)
            ends += [(row, at, place in gone) for place, (row, at) in enumerate(rows)]
        since = until
    play(case["capacity"], plain, end)
    assert ended == [each.ended for each in plain]
    for pod, own in zip(shared, plain, strict=True):
        used = own.used + own.rate * (end - own.used_until)
        assert pod.used(end) == used >> 20
        assert pod.left() == [each.row for each in own.inside + own.waiting]


def test_what_is_never_contended_is_what_independent_pods_do() -> None:
    node, stream = NodeCpu(2000), Streams(3).stream("s")
    service = Service(1, 90 * 10**6, drawn=True)
    for limit in (500, 1500):
        shared = SharedProcessor(node, service, 0, limit=limit, weight=1)
        alone = LeastLeftFirst(service, limit, 0)
        at, arrivals, demands = 0, [], []
        for _ in range(400):
            at += stream.exponential(20 * 10**6)
            arrivals.append(at)
            demands.append(stream.exponential(limit * 14 * 10**6))
        shared.offer(arrivals, range(400), demands)
        node.play(10**11)
        found, wanted = shared.taken(), alone.serve(arrivals, range(400), demands, 10**11)
        assert found.rows == wanted.rows
        # Rounded at other instants.
        assert all(abs(a - b) <= 400 for a, b in zip(found.instants, wanted.instants, strict=True))


def mean_times(
    capacity: int, weights: tuple[int, int], loads: tuple[float, float], count: int
) -> tuple[float, float]:
    """Mean response times of two pods without limits, in means of their demand."""
    node, streams = NodeCpu(capacity), Streams(11)
    service = Service(1, NEVER, drawn=True)
    pods, came, size = [], [], 10**7
    for number, (weight, load) in enumerate(zip(weights, loads, strict=True)):
        pod = SharedProcessor(node, service, 0, limit=0, weight=weight)
        stream, at, arrivals, demands = streams.stream(f"{number}"), 0, [], []
        for _ in range(round(count * load)):
            at += stream.exponential(round(size / load))
            arrivals.append(at)
            demands.append(stream.exponential(capacity * size))
        pod.offer(arrivals, range(len(arrivals)), demands)
        pods.append(pod)
        came.append(arrivals)
    node.play(1 << 50)
    means = []
    for pod, arrivals in zip(pods, came, strict=True):
        served = pod.taken()
        total = sum(
            end - arrivals[row] for row, end in zip(served.rows, served.instants, strict=True)
        )
        means.append(total / max(len(arrivals), 1) / size)
    return means[0], means[1]


@pytest.mark.parametrize(("load", "error"), [(0.3, 0.04), (0.7, 0.08)])
def test_a_pod_alone_is_a_queue_with_processor_sharing(load: float, error: float) -> None:
    """M/M/1-PS: 1 / (1 - r), within four standard errors of so many requests."""
    mean, _ = mean_times(4000, (2, 2), (load, 1e-9), 60_000)
    assert mean == pytest.approx(1 / (1 - load), rel=error)


def test_work_is_conserved_whoever_gets_it() -> None:
    """In sum the two queues are M/M/1: the mean number inside does not depend on the weights."""
    for weights in ((2, 2), (2, 20)):
        first, second = mean_times(1000, weights, (0.35, 0.35), 60_000)
        assert 0.35 * first + 0.35 * second == pytest.approx(0.7 / 0.3, rel=0.06)


def test_two_pods_of_unequal_weight_are_the_markov_chain_of_their_numbers() -> None:
    """Each pod shares among its own, so the chain of both numbers is solved by iteration."""
    weights, loads = (2, 6), (0.3, 0.4)
    expected = markov(weights, loads)
    found = mean_times(1000, weights, loads, 80_000)
    assert found[0] == pytest.approx(expected[0], rel=0.06)
    assert found[1] == pytest.approx(expected[1], rel=0.06)


def markov(
    weights: tuple[int, int], loads: tuple[float, float], most: int = 60
) -> tuple[float, ...]:
    """Mean times of two classes by Little's law: rates w1:w2 while both are busy, else all."""
    size = most + 1
    p = np.full((size, size), 1.0 / size**2)
    for _ in range(6000):
        new = np.zeros_like(p)
        new[1:, :] += p[:-1, :] * loads[0]
        new[-1, :] += p[-1, :] * loads[0]
        new[:, 1:] += p[:, :-1] * loads[1]
        new[:, -1] += p[:, -1] * loads[1]
        share = weights[0] / sum(weights)
        first = np.zeros_like(p)
        first[1:, 0], first[1:, 1:] = 1.0, share
        second = np.zeros_like(p)
        second[0, 1:], second[1:, 1:] = 1.0, 1 - share
        new[:-1, :] += (p * first)[1:, :]
        new[:, :-1] += (p * second)[:, 1:]
        new += p * (1 - first - second)
        p = new / new.sum()
    numbers = np.arange(size)
    inside = (p.sum(axis=1) @ numbers, p.sum(axis=0) @ numbers)
    return tuple(float(each / load) for each, load in zip(inside, loads, strict=True))


def test_nobody_gets_more_than_its_limit_and_nothing_is_wasted() -> None:
    """1,000 millicores, three pods that are always busy: one has a limit of 100."""
    node, service = NodeCpu(1000), Service(10**12, NEVER)
    pods = [
        SharedProcessor(node, service, 0, limit=limit, weight=weight)
        for limit, weight in ((100, 500), (0, 200), (0, 100))
    ]
    for pod in pods:
        pod.offer([0, 0], [0, 1], None)
    node.play(10**9)
    used = [pod.used(10**9) for pod in pods]
    assert used == [100 * 10**9, 600 * 10**9, 300 * 10**9]


def test_a_copy_goes_on_alike() -> None:
    node, service = NodeCpu(1000), Service(10**9, NEVER)
    pods = [SharedProcessor(node, service, 0, limit=0, weight=w) for w in (2, 5)]
    for pod in pods:
        pod.offer(list(range(0, 10**7, 10**5)), range(100), None)
    node.play(5 * 10**6)
    twin = deepcopy(node)
    node.play(10**9)
    twin.play(10**9)
    assert [pod.taken() for pod in node.pods.values()] == [
        pod.taken() for pod in twin.pods.values()
    ]


def test_a_change_at_the_instant_of_an_end_does_not_put_it_off() -> None:
    """Three sharers of 7 millicores, demands of 10: the end is rounded up, and no further."""
    node, service = NodeCpu(7), Service(10, NEVER)
    pod = SharedProcessor(node, service, 0, limit=0, weight=2)
    pod.offer([0, 0, 0], [0, 1, 2], None)
    node.play(5)
    assert not pod.taken().rows
    node.resize(1000, 5)
    assert pod.least_tag() >= pod.work
    node.play(7)
    assert pod.taken().instants == [5, 5, 5]
