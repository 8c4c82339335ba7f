"""Skenario's rules by section: the table of its movements, and that no section is left out.

Tests are keyed by the sections of the reference: ``test_3_4_...`` or an id that begins with
``3.5 row 2``. What is missing is listed by the last test here.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kubescene.clock import SECOND
from kubescene.traffic import TrafficResult, run
from kubescene.traffic.spec.loading import spec_of
from kubescene.traffic.world.movements import CompletedMovement, MovementKind
from traffic.stubs import Scripted, cpu_between

TESTS = Path(__file__).parents[1]
MOVEMENTS = """
start_to_running: BeforeScenario -> RunningScenario
running_to_halted: RunningScenario -> HaltedScenario
start_initial_replica: ReplicasLaunching -> ReplicasActive
autoscaler_tick: Autoscaler Ticktock -> Autoscaler Ticktock
increase_desired: DesiredSource -> ReplicasDesired
reduce_desired: ReplicasDesired -> DesiredSink
begin_launch: ReplicaSource -> ReplicasLaunching
finish_launching: ReplicasLaunching -> ReplicasActive
terminate_launch: ReplicasLaunching -> ReplicasTerminating
terminate_active: ReplicasActive -> ReplicasTerminating
finish_terminating: ReplicasTerminating -> ReplicasTerminated
create_updated_replica: ReplicasLaunching -> ReplicasActive
evict_replica: ReplicasActive -> ReplicasTerminating
metrics_tick: Metrics Ticktock -> Metrics Ticktock
send_metrics_to_pipeline: MetricsSource -> MetricsPipeline
send_metrics_to_sink: MetricsPipeline -> MetricsSink
arrive_at_routing_stock: TrafficSource -> RequestsRouting
send_to_replica: RequestsRouting -> RequestsProcessing [N]
request_failed: RequestsRouting -> RequestsFailed
complete_request: RequestsProcessing [N] -> RequestsComplete [N]
request_failed: RequestsProcessing [N] -> RequestsFailed
""".strip().splitlines()
SECTIONS = (
    *("1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"),
    *("2.1", "2.2", "2.3", "2.4", "2.5"),
    *("3.1", "3.2", "3.3", "3.4", "3.5", "3.6"),
    *(f"3.5 row {row}" for row in range(1, 7)),
    *("4.1", "4.2", "4.3"),
    *("5", "5 ramp(1,3)", "5 ramp(2.5,6)", "5 sinusoid(20,20s)", "5 step(10,10s)"),
    *("8.2", "8.3", "8.4", "8.5", "8.6"),
    *(f"10.1.{number}" for number in range(1, 12)),
    *("10.2.12", "10.2.13", "10.2.14", "10.2.15"),
    *("11", "12"),
)
"""Of the reference; 6 and 7 are those of the autoscalers, 9 is a page that we do not have."""


def played(*plugins: Scripted, **fields: Any) -> TrafficResult:
    return run(spec_of({"mode": "faithful", "duration": "120s", **fields}), list(plugins))


@cache
def everything() -> tuple[TrafficResult, ...]:
    """Two runs in which everything happens that can."""
    delays = {"launchDelay": "20s", "terminateDelay": "1s"}
    traffic = {"pattern": "step", "step": {"rps": 20, "after": "1s"}}
    scaled = played(
        Scripted({0: 3, 30: 0, 60: 2, 90: 0}), traffic=traffic, replicas={"initial": 1, **delays}
    )
    nobody = played(traffic=traffic, replicas={"initial": 0})
    resized = played(
        Scripted(None, {0: cpu_between(1500, 3000, 2000)}),
        traffic=traffic,
        replicas={"initial": 2, **delays},
    )
    return scaled, nobody, resized


def told(movement: CompletedMovement) -> str:
    numbered = re.compile(r"\[\d+\]")
    source, target = (numbered.sub("[N]", each) for each in movement[3:])
    return f"{movement.kind}: {source} -> {target}"


@pytest.mark.parametrize("row", MOVEMENTS, ids="2.4 {}".format)
def test_movements_of_the_table_take_place(row: str) -> None:
    assert any(told(each) == row for result in everything() for each in result.movements)


def test_2_4_no_other_movements_take_place() -> None:
    seen = {told(each) for result in everything() for each in result.movements}
    assert seen == set(MOVEMENTS)
    ours = {MovementKind.RESTART_REPLICA}
    assert {row.split(":")[0] for row in MOVEMENTS} == set(MovementKind) - ours


def test_1_1_time_begins_with_1970_and_goes_by_nanoseconds() -> None:
    result = played(duration="1us", replicas={"initial": 1})
    times = [each.occurs_at for each in result.movements]
    assert (times[0], times[1], times[-1]) == (0, 1, 1000)


def test_1_4_one_movement_has_a_nanosecond_and_they_are_played_in_order() -> None:
    for result in everything():
        times = [each.occurs_at for each in result.movements]
        assert times == sorted(set(times))


def test_1_6_utilization_is_written_down_at_every_tick_that_finds_replicas() -> None:
    scaled, nobody, _ = everything()
    ticks = [each.occurs_at for each in scaled.movements if each.kind == "autoscaler_tick"]
    assert [each.time for each in scaled.utilizations] == ticks
    assert nobody.utilizations == []


def test_1_7_notes_are_not_kept_and_the_three_reasons_are_the_only_ones() -> None:
    reasons = {each.reason for result in everything() for each in result.movements.ignored}
    assert reasons <= {
        "ScheduledToOccurInPast",
        "ScheduledToOccurAfterHalt",
        "FromStockEmptyAtMovementTime",
    }


def test_2_1_entities_have_the_names_of_their_kinds_and_numbers_from_1() -> None:
    scaled = everything()[0]
    names = {each.moved for each in scaled.movements}
    plain = {"Scenario", "Autoscaler", "Desired"}
    numbered = {kind: set[int]() for kind in ("replica", "request", "metrics")}
    for name in names - plain:
        kind, _, number = name.rpartition("-")
        numbered[kind].add(int(number))
    assert plain <= names
    for numbers in numbered.values():
        assert numbers == set(range(1, max(numbers) + 1))


def test_2_5_autoscalers_then_replicas_then_ticks_then_traffic() -> None:
    """All of them want the same nanosecond: who was set up first has it."""
    plugin = Scripted({0: 0})
    result = played(
        plugin,
        duration="10s",
        horizontalInterval="1s",
        verticalInterval="1s",
        traffic={"pattern": "replay", "replay": {"arrivals": ["1ns", "1.000000001s"]}},
        metrics={"firstAfter": "5s"},
    )
    kinds = [(each.occurs_at, each.kind) for each in result.movements]
    assert plugin.calls[0] == ("CREATE Autoscaler", 0)
    assert plugin.calls[1] == ("CREATE Pod", 1)
    assert kinds[1:4] == [
        (1, "start_initial_replica"),
        (2, "arrive_at_routing_stock"),
        (3, "send_to_replica"),
    ]
    second = [each for each in kinds if SECOND < each[0] < SECOND + 10]
    assert second[:2] == [
        (SECOND + 1, "autoscaler_tick"),
        (SECOND + 2, "arrive_at_routing_stock"),
    ]


def test_3_1_what_was_hard_wired_is_a_default() -> None:
    spec = spec_of({"mode": "faithful"})
    rules = spec.faithful
    assert (spec.replicas.cpu, spec.metrics.first_after, spec.stat_interval) == (
        1000,
        5 * SECOND,
        10 * SECOND,
    )
    assert (spec.metrics.lag, rules.drain_per_request) == (4 * SECOND, SECOND)
    assert (rules.queue_servers, rules.saturation, rules.epsilon) == (100, 0.96, 0.001)


def test_8_5_the_store_has_the_whole_configuration(tmp_path: Path) -> None:
    from kubescene.traffic.store import RunStore

    result = everything()[2]
    store = RunStore(tmp_path / "runs.db")
    id = store.begin(result.run)
    store.end(id, result)
    assert store.configuration(id) == result.run
    store.close()


def test_10_1_11_where_its_documents_say_otherwise_the_code_counts() -> None:
    scaled = everything()[0]
    assert not any(each.kind == "arrive_at_routing" for each in scaled.movements)
    first = next(each.occurs_at for each in scaled.movements if each.kind == "metrics_tick")
    assert first == 5 * SECOND + 1
    # Collisions are put off, not ignored: arrivals of one instant all come.
    twice = {"pattern": "replay", "replay": {"arrivals": ["1s", "1s", "1s"]}}
    assert played(traffic=twice).requests.arrived.tolist() == [SECOND, SECOND + 1, SECOND + 2]


def test_no_section_is_without_a_test() -> None:
    modules = [TESTS / "traffic", TESTS / "apiserver" / "traffic"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, *map(str, modules)], capture_output=True, text=True, check=True, cwd=TESTS.parent
    )
    missing = [each for each in SECTIONS if not _is_tested(each, done.stdout)]
    assert missing == []


def _is_tested(section: str, collected: str) -> bool:
    name = re.escape("::test_" + re.sub(r"\W+", "_", section).strip("_")) + "_"
    id = re.escape(f"[{section}") + r"[\] ]"
    return re.search(f"{name}|{id}", collected) is not None
