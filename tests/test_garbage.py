"""When the garbage collector looks."""

import gc
from collections.abc import Iterator

import pytest

from kubescene import garbage


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The generations that were looked at, in a process that is Kubescene's own."""
    monkeypatch.setattr(garbage.ProcessCharge, "is_taken", True)
    seen: list[int] = []

    def note(phase: str, told: dict[str, int]) -> None:
        if phase == "start":
            seen.append(told["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)
    gc.unfreeze()


def test_while_a_server_runs_nothing_but_tidying_looks_at_everything(looks: list[int]) -> None:
    with garbage.serving():
        looks.clear()
        kept = [[each] for each in range(1_500_000)]
        assert set(looks) == {0}
        assert garbage.tidy()
        assert looks[-1] == 2
        assert not garbage.tidy()
    assert len(kept) == 1_500_000


def test_tidying_finds_garbage_among_what_was_put_by(looks: list[int]) -> None:
    class World:
        pass

    with garbage.serving():
        world: list[object] = [World()]
        world.append(world)
        before = sum(isinstance(each, World) for each in gc.get_objects())
        gc.freeze()
        del world
        assert looks
        filling = [[each] for each in range(1_200_000)]
        assert garbage.tidy()
        after = sum(isinstance(each, World) for each in gc.get_objects())
    assert (before, after) == (1, 0)
    assert filling


def test_whoever_uses_the_library_keeps_their_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage.ProcessCharge, "is_taken", False)
    before = gc.get_threshold()
    with garbage.serving():
        assert gc.get_threshold() == before
        assert not garbage.tidy()


def test_what_a_world_has_made_goes_when_it_ends_however_busy_the_server(looks: list[int]) -> None:
    class World:
        pass

    def worlds() -> int:
        return sum(isinstance(each, World) for each in gc.get_objects())

    with garbage.serving():
        world: list[object] = [World()]
        world.append(world)
        garbage.world_is_made()
        assert worlds() == 1
        del world
        frozen = gc.get_freeze_count()
        kept = [[each] for each in range(100_000)]
        looks.clear()
        garbage.end_of_world()
        assert (worlds(), looks) == (0, [2])
        assert gc.get_freeze_count() > frozen + 100_000  # not looked at when the next one ends
    assert kept


def test_a_server_that_is_never_quiet_looks_at_what_came_after_its_world(looks: list[int]) -> None:
    with garbage.serving():
        kept = [[each] for each in range(100_000)]
        garbage.world_is_made()
        looks.clear()
        assert not garbage.tidy(is_busy=True)
        kept += [[each] for each in range(150_000)]
        garbage.tidy(is_busy=True)
        assert 2 not in looks
        kept += [[each] for each in range(100_000)]
        frozen = gc.get_freeze_count()
        garbage.tidy(is_busy=True)
        assert looks.count(2) == 1
        assert gc.get_freeze_count() > frozen + 300_000  # not looked at the next time
        garbage.tidy(is_busy=True)
        assert looks.count(2) == 1
    assert kept


def test_while_somebody_is_connected_nobody_looks_at_everything(looks: list[int]) -> None:
    with garbage.serving():
        kept = [[each] for each in range(1_200_000)]
        gc.freeze()
        gc.collect(1)
        kept += [[each] for each in range(250_000)]
        looks.clear()
        assert not garbage.tidy(is_alone=False)
        assert looks.count(2) == 1
        assert gc.get_freeze_count() > 1_450_000
        kept += [[each] for each in range(1_200_000)]
        assert garbage.tidy(is_alone=True)
    assert kept


@pytest.mark.parametrize("by", ["the end of a world", "tidying"])
def test_too_much_is_put_by_unseen_until_nobody_is_connected(looks: list[int], by: str) -> None:
    class World:
        pass

    with garbage.serving():
        world: list[object] = [World()]
        world.append(world)
        del world
        kept = [[each] for each in range(1_200_000)]
        looks.clear()
        for _ in range(2):
            if by == "tidying":
                assert not garbage.tidy(is_busy=True)
            else:
                garbage.end_of_world()
        assert next(each for each in looks if each) == 1  # at nothing: all of it was put by before
        assert gc.get_freeze_count() > 1_200_000
        assert garbage.tidy()
        assert not any(isinstance(each, World) for each in gc.get_objects())
        gc.unfreeze()
        assert not any(isinstance(each, World) for each in gc.get_objects())
    assert kept


def test_elsewhere_the_end_of_a_world_is_nothing_to_look_at(looks: list[int]) -> None:
    garbage.world_is_made()
    garbage.end_of_world()
    assert 2 not in looks
    assert not gc.get_freeze_count()


def test_what_an_earlier_server_has_left_is_looked_at_by_the_next(looks: list[int]) -> None:
    with garbage.serving():
        kept = [[each] for each in range(1_200_000)]
        garbage.end_of_world()
    with garbage.serving():
        assert not garbage.tidy()
    assert kept
    assert looks


def test_a_run_is_put_by_unseen_and_what_many_have_left_is_looked_at_before_the_next(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class World:
        pass

    def worlds() -> int:
        return sum(isinstance(each, World) for each in gc.get_objects())

    monkeypatch.setattr(garbage, "LITTER", garbage.Litter())
    for run in range(1, 6):
        looks.clear()
        with garbage.rare_collections():
            expected = [2] if run == 5 else []
            assert (looks, worlds()) == (expected, 0 if run == 5 else run - 1)
            world: list[object] = [World(), [[each] for each in range(100_000)]]
            world.append(world)
            del world
