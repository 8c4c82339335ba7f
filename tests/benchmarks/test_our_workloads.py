"""Our own workload files: each test case is replayed, a tenth of its size."""

from dataclasses import replace
from pathlib import Path

import pytest

from kubescene.benchmarks import Workload, load_workloads, replay
from kubescene.benchmarks.operations import OpCode, WorkloadOperation
from kubescene.benchmarks.reports import THRESHOLDS

FILES = sorted((Path(__file__).parents[2] / "bench/scheduler-perf").glob("*.yaml"))
ALL = [each for file in FILES for each in load_workloads(file)]
SHRUNK_BY = 10


def smallest() -> list[Workload]:
    first: dict[str, Workload] = {}
    for each in ALL:
        first.setdefault(each.test_case, each)
    return [*first.values()]


def shrunk(operation: WorkloadOperation) -> WorkloadOperation:
    count = operation.get("count")
    fields = dict(operation.fields)
    # All classes are needed: pods ask for devices of each of them.
    if count is not None and count >= 50 and operation.code is not OpCode.CREATE_ANY:
        fields["count"] = count // SHRUNK_BY
    if "duration" in fields:
        fields["duration"] = "100ms"
    return replace(operation, fields=fields)


@pytest.mark.parametrize("workload", smallest(), ids=lambda each: each.test_case)
def test_a_test_case_ends_with_all_measured_pods_on_nodes(workload: Workload) -> None:
    small = replace(workload, operations=tuple(map(shrunk, workload.operations)))
    result = replay(small)
    (measured,) = result.measurements
    creating = [each for each in small.operations if each.code is OpCode.CREATE_PODS]
    collecting = [each for each in creating if each.get("collectMetrics")] or creating
    counts = [each.get("count") for each in collecting]
    assert measured.pods >= counts[0] > 0
    assert result.not_replayed == []


def test_every_figure_that_is_known_has_a_workload() -> None:
    assert set(THRESHOLDS) <= {each.full_name for each in ALL}


def test_there_is_a_large_and_a_small_size_of_every_test_case() -> None:
    cases = {each.test_case for each in ALL}
    assert all(sum(each.test_case == case for each in ALL) > 1 for case in cases)
