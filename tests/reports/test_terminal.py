"""What a run looks like in a terminal: what matters first, at any width, and no blanks in pipes."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import kubescene
from kubescene import traffic
from kubescene.reports.explaining import print_attempt
from kubescene.reports.terminal import amount, print_summary
from kubescene.reports.traffic import print_result
from kubescene.results import ExpectationOutcome, NodeUse, Summary
from kubescene.results.summary import CostTold, WorkloadTold
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

EXAMPLES = Path(__file__).parents[2] / "examples"
GPU = "nvidia.com/gpu"
NOTHING: Mapping[str, int] = {}


def shown(summary: Summary, width: int = 80, *, colours: bool = False) -> str:
    file = StringIO()
    options = {"force_terminal": True} if colours else {"force_terminal": False, "no_color": True}
    print_summary(summary, Console(file=file, width=width, **options))  # type: ignore[arg-type]
    return file.getvalue()


def node(
    name: str, *, cpu: int = 0, status: str = "", others: Mapping[str, int] = NOTHING
) -> NodeUse:
    offered = {"cpu": 4000, "memory": 8 << 30, "pods": 110, **dict.fromkeys(others, 8)}
    return NodeUse(name, status, 1, offered, {"cpu": cpu, **others})


@pytest.fixture(scope="module")
def example() -> Summary:
    return kubescene.run(EXAMPLES / "06-time-passes" / "scenario.yaml").summary


@pytest.mark.parametrize("width", [48, 80, 120])
def test_no_line_ends_with_blanks_or_is_wider_than_the_terminal(
    example: Summary, width: int
) -> None:
    lines = shown(example, width).split("\n")
    assert all(line == line.rstrip() and len(line) <= width for line in lines)


def test_traffic_and_explanations_end_no_line_with_blanks() -> None:
    file = StringIO()
    console = Console(file=file, width=80, force_terminal=False)
    print_result(traffic.run(traffic.load_run(EXAMPLES / "traffic" / "step.yaml")), console)
    run = kubescene.run(EXAMPLES / "01-first-scenario" / "scenario.yaml")
    for attempt in run.explain("default/report-2"):
        print_attempt(attempt, console)
    lines = file.getvalue().split("\n")
    assert len(lines) > 30
    assert [line for line in lines if line != line.rstrip()] == []


def test_names_of_pods_are_whole_where_there_is_little_room(example: Summary) -> None:
    text = shown(example, 48)
    assert all(placed.pod in text for placed in example.placements)
    assert "score, runner-up, feasible)" in " ".join(text.split())


def test_decisions_have_their_time_if_time_passed(example: Summary) -> None:
    assert " 2.3  +1 min 35 s  default/shop-" in shown(example)
    still = kubescene.run(EXAMPLES / "01-first-scenario" / "scenario.yaml").summary
    assert " time " not in shown(still)


def test_steps_count_pods_that_wait_and_say_how_often_was_tried() -> None:
    scenario = ScenarioBuilder("w").create(make_node("n").cpu("1"))
    scenario.create(make_pod("p-$(INDEX)").cpu("2"), count=4)
    scenario.step(2).create(make_node("m").cpu("2")).done()
    summary = kubescene.run(scenario).summary
    assert [(s.scheduled, s.failed_attempts, s.pending) for s in summary.steps] == [
        (0, 4, 4),
        (1, 3, 3),
    ]
    lines = [" ".join(line.split()) for line in shown(summary).splitlines()]
    assert "step operations minor steps attempts bound waiting deleted other writes" in lines
    assert lines[5].startswith("2 2 1 4 1 3 ")


def test_a_node_that_keeps_pods_away_is_marked() -> None:
    nodes = [
        node("a", status="unreachable, cordoned"),
        node("b", cpu=2000),
        node("c", status="tainted x:NoSchedule"),
    ]
    text = shown(Summary(nodes=nodes))
    assert "unreachable, cordoned" in text
    assert "tainted x:NoSchedule" in text
    assert "Ready" in text
    assert "status" not in shown(Summary(nodes=[node("b", cpu=2000)]))


def test_extended_resources_and_devices_are_there_at_80_columns() -> None:
    devices = {"devices/gpu.example.com": 2}
    text = shown(Summary(nodes=[node("n-0", cpu=1000, others=devices)]))
    assert "devices/gpu.example.com" in text
    assert "2/8" in text
    text = shown(Summary(nodes=[node("n-0", cpu=1000, others={GPU: 3})]))
    assert GPU in text
    assert "3/8" in text


def test_what_is_counted_has_no_binary_units() -> None:
    assert (amount(GPU, 2048), amount("memory", 2048), amount("cpu", 2048)) == (
        "2048",
        "2Ki",
        "2.048",
    )


def test_many_nodes_are_a_histogram_and_names_are_in_their_natural_order() -> None:
    nodes = [node(f"node-{n}", cpu=2000) for n in range(20)]
    nodes += [node(f"idle-{n}") for n in range(30)]
    nodes += [node("full", cpu=4000), node("lost", cpu=4000, status="NotReady")]
    lines = [" ".join(line.split()) for line in shown(Summary(nodes=nodes)).splitlines()]
    assert "Nodes by cpu requested (52 nodes)" in lines
    counted = {line.rpartition(" ")[0] for line in lines if line.endswith("█")}
    assert counted >= {"90 to 100% 1", "40 to 50% 20", "nothing 30", "NotReady 1"}
    listed = [line.split()[0] for line in lines if "%" in line and "/" in line]
    assert listed[:5] == ["full", "lost", "node-0", "node-1", "node-2"]


def failing() -> Summary:
    held = ExpectationOutcome("fine", "true", True)
    broken = ExpectationOutcome(
        "few",
        "preemptions.size() <= 6",
        False,
        "failed expression: preemptions.size() <= 6",
        "",
        "9 <= 6",
    )
    return Summary(scenario="s", phase="Succeeded", expectations=[held, broken])


def test_an_expectation_that_fails_comes_first_and_tells_once_what_was_seen() -> None:
    text = shown(failing())
    assert text.splitlines()[0] == "s  1 of 2 expectations failed  Succeeded"
    assert text.count("preemptions.size() <= 6") == 1
    assert "  FAILS  few: failed expression: preemptions.size() <= 6 (9 <= 6)" in text


def test_it_is_red_on_a_terminal_and_nothing_is_green_but_what_holds() -> None:
    first, *_, last = shown(failing(), colours=True).splitlines()
    assert "\x1b[1;31m1 of 2 expectations failed" in first
    assert "\x1b[1;32m" not in first
    assert "\x1b[31mfew: " in last


def test_a_run_whose_expectations_hold_is_green() -> None:
    fine = Summary(scenario="s", phase="Succeeded", expectations=failing().expectations[:1])
    assert "\x1b[1;32mSucceeded" in shown(fine, colours=True).splitlines()[0]


# -- workloads -----------------------------------------------------------------------------------


def test_workloads_that_lack_pods_come_first() -> None:
    fine = WorkloadTold("default/a", "Deployment", 2, 2, 2, 2, "Complete", 12.0, 0.0, levels=[2])
    short = WorkloadTold(
        "default/b", "Deployment", 3, 1, 1, 1, "Stalled", None, 61.0, 4, levels=[1]
    )
    done = WorkloadTold("default/c", "Job", 3, completions=2, failures=1, levels=[2])
    text = shown(Summary(workloads=[fine, short, done]), 120)
    first, second, third = (line.split() for line in text.splitlines() if "default/" in line)
    assert first[:2] == ["default/b", "Deployment"]
    assert {"1/3", "Stalled", "4"} <= {*first}
    assert {"2/2", "12", "0"} <= {*second}
    assert {"default/c", "Job", "2", "1"} <= {*third}


def test_runs_without_workloads_say_nothing_of_them() -> None:
    assert "Workloads" not in shown(Summary(scenario="x"), 120)


def test_the_dearest_node_groups_come_first_with_their_sum() -> None:
    cheap = CostTold("spot", 1, 2, 1, 2.5, 0.25, "USD", 0.05)
    dear = CostTold("std", 3, 3, 0, 4.0, 0.75, "USD", 0.6)
    text = shown(Summary(costs=[cheap, dear]), 120)
    assert "Cost: 1 USD" in text
    first, second = (line.split() for line in text.splitlines() if line.startswith("s"))
    assert first == ["std", "3", "3", "4.00", "0.75", "USD", "80%", "-"]
    assert second == ["spot", "1", "2", "2.50", "0.25", "USD", "20%", "1"]
    two = Summary(costs=[cheap, CostTold("std", 3, 3, 0, 4.0, 0.75, "EUR", 0.6)])
    assert "Cost: " not in shown(two, 120)
