"""When the garbage collector looks."""

import gc
from collections.abc import Iterator

import pytest

from kubescene import garbage


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The generations that were looked at, in a process that is Kubescene's own."""
    monkeypatch.setattr(garbage.Charge, "is_taken", True)
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
        kept = [[each] for each in range(3_000_000)]
        assert 2 not in looks
        assert 1 in looks
        assert garbage.tidy()
        assert looks[-1] == 2
        assert not garbage.tidy()
    assert len(kept) == 3_000_000


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
    monkeypatch.setattr(garbage.Charge, "is_taken", False)
    before = gc.get_threshold()
    with garbage.serving():
        assert gc.get_threshold() == before
        assert not garbage.tidy()
