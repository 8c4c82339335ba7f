"""Time and movements: when something is admitted, and in which order it happens."""

import pytest

from kubescene.clock import SECOND
from kubescene.traffic.world.entities import Entity, EntityKind
from kubescene.traffic.world.environment import (
    Environment,
    MovementSchedule,
    OrderedSchedule,
    ShiftingSchedule,
)
from kubescene.traffic.world.movements import IgnoredReason, Movement, MovementKind, MovementLog
from kubescene.traffic.world.stocks import ArrayStock, Stock, StockError, Ticktock, WatchedStock

KIND = MovementKind.BEGIN_LAUNCH
START, HALT = 1000, 1000 + 100
PAST, LATE, EMPTY = IgnoredReason


class World:
    def __init__(self, schedule: MovementSchedule, start: int = START, run_for: int = 100) -> None:
        self.environment = Environment(start, run_for, schedule, MovementLog())
        self.source: Stock[Entity] = Stock("From", EntityKind.DESIRED)
        self.target: Stock[Entity] = Stock("To", EntityKind.DESIRED)

    def at(self, instant: int, entity: Entity | None = None, notes: tuple[str, ...] = ()) -> bool:
        movement = Movement(KIND, instant, self.source, self.target, entity, notes)
        return self.environment.add_to_schedule(movement)

    def put(self, count: int) -> list[Entity]:
        entities = [Entity(EntityKind.DESIRED, number) for number in range(count)]
        self.source.entities.extend(entities)
        return entities

    def times(self) -> list[int]:
        """When movements of ours took place."""
        log = self.environment.log
        return [each.occurs_at for each in log if each.kind == KIND]


@pytest.mark.parametrize(
    ("instant", "reason"),
    [
        pytest.param(START - 1, PAST, id="1.3 before the start"),
        pytest.param(START, PAST, id="1.3 start"),
        pytest.param(START + 1, None, id="1.3 start+1"),
        pytest.param(HALT - 1, None, id="1.3 halt-1"),
        pytest.param(HALT, LATE, id="1.3 halt"),
        pytest.param(HALT + 1, LATE, id="1.3 after the halt"),
    ],
)
def test_what_faithful_mode_admits(instant: int, reason: IgnoredReason | None) -> None:
    world = World(ShiftingSchedule())
    assert world.at(instant) is (reason is None)
    assert [each.reason for each in world.environment.log.ignored] == ([reason] if reason else [])


def test_1_3_the_past_is_told_first_where_both_are_true() -> None:
    world = World(ShiftingSchedule(), run_for=0)
    assert not world.at(START)
    assert world.environment.log.ignored[0].reason == "ScheduledToOccurInPast"


@pytest.mark.parametrize(
    ("instant", "admitted"), [(START - 1, False), (START, True), (HALT - 1, True), (HALT, False)]
)
def test_in_fixed_mode_now_is_not_the_past(instant: int, admitted: bool) -> None:
    assert World(OrderedSchedule()).at(instant) is admitted


def test_1_3_collisions_are_put_off_and_lose_their_notes() -> None:
    world = World(ShiftingSchedule())
    world.put(4)
    for _ in range(3):
        assert world.at(START + 5, notes=("kept?",))
    assert world.at(START + 6)
    world.environment.run_until(HALT)
    assert world.times() == [START + 5, START + 6, START + 7, START + 8]


def test_1_3_a_collision_before_the_end_lands_after_it_and_still_happens() -> None:
    world = World(ShiftingSchedule())
    world.put(3)
    assert [world.at(HALT - 1) for _ in range(3)] == [True] * 3
    world.environment.run_until(HALT + 100)
    assert world.times() == [HALT - 1, HALT + 1, HALT + 2]
    assert world.environment.halted


def test_in_fixed_mode_one_instant_holds_many_in_order() -> None:
    world = World(OrderedSchedule())
    first, second = world.put(2)
    world.at(START + 5, second)
    world.at(START + 5, first)
    world.environment.run_until(HALT)
    assert world.target.entities == [second, first]
    assert world.times() == [START + 5, START + 5]


def test_1_5_an_empty_stock_is_a_reason() -> None:
    world = World(ShiftingSchedule())
    world.at(START + 1)
    world.environment.run_until(HALT)
    assert [tuple(each) for each in world.environment.log.ignored] == [
        (START + 1, "begin_launch", "From", "To", "FromStockEmptyAtMovementTime")
    ]


def test_1_5_a_movement_is_written_down_after_what_it_causes() -> None:
    world = World(OrderedSchedule())
    seen: list[int] = []
    log = world.environment.log

    def look(entity: Entity) -> None:
        seen.append(len(log))

    world.target = WatchedStock("To", EntityKind.DESIRED, added=look)
    world.put(1)
    world.at(START + 1)
    world.environment.run_until(HALT)
    assert seen == [1]  # only start_to_running was there


def test_1_2_start_and_halt_are_the_first_and_the_last() -> None:
    environment = Environment(0, 10, ShiftingSchedule(), MovementLog())
    environment.run_until(10)
    assert [tuple(each) for each in environment.log] == [
        (0, "start_to_running", "Scenario", "BeforeScenario", "RunningScenario"),
        (10, "running_to_halted", "Scenario", "RunningScenario", "HaltedScenario"),
    ]


def test_what_is_cancelled_does_not_happen() -> None:
    world = World(OrderedSchedule())
    world.put(1)
    movement = Movement(KIND, START + 5, world.source, world.target)
    world.environment.add_to_schedule(movement)
    world.environment.cancel(movement)
    assert world.environment.run_until(HALT) == 2  # start and halt
    assert world.source.count == 1


def test_2_2_the_oldest_leaves_first() -> None:
    stock: Stock[Entity] = ArrayStock("a", EntityKind.DESIRED)
    entities = [Entity(EntityKind.DESIRED, number) for number in range(3)]
    for each in entities:
        stock.add(each)
    assert stock.remove() is entities[0]
    assert stock.remove(Entity(EntityKind.DESIRED, 1)) is None


def test_2_2_the_last_one_fills_the_hole_in_faithful_mode_only() -> None:
    for kind, left in ((ArrayStock, [0, 3, 2]), (Stock, [0, 2, 3])):
        stock: Stock[Entity] = kind("a", EntityKind.DESIRED)
        entities = [Entity(EntityKind.DESIRED, number) for number in range(4)]
        for each in entities:
            stock.add(each)
        stock.remove(entities[1])
        assert [each.number for each in stock.entities] == left
        stock.remove(stock.entities[-1])
        assert [each.number for each in stock.entities] == left[:-1]


def test_2_2_stocks_refuse_other_kinds() -> None:
    with pytest.raises(StockError, match="holds entities of kind Desired, not a Replica"):
        Stock[Entity]("a", EntityKind.DESIRED).add(Entity(EntityKind.REPLICA))


def test_2_3_a_ticktock_holds_its_entity_for_ever() -> None:
    ticks: list[Entity] = []
    entity = Entity(EntityKind.AUTOSCALER)
    ticktock = Ticktock("t", entity, ticks.append)
    assert ticktock.remove(None) is entity
    ticktock.add(entity)
    assert (ticktock.count, ticks) == (1, [entity])
    with pytest.raises(StockError, match="nothing else"):
        ticktock.add(Entity(EntityKind.AUTOSCALER))


def test_a_log_can_be_written_and_read() -> None:
    world = World(OrderedSchedule(), start=0, run_for=SECOND)
    world.put(2)
    world.at(1)
    world.at(5)
    world.at(6)
    world.environment.run_until(SECOND)
    log = world.environment.log
    assert list(MovementLog.of(log, log.ignored)) == list(log)
