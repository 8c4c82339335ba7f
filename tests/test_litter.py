"""Many runs in one process: the worlds of those that are over go away."""

import gc
import weakref

import pytest

import kubescene
from kubescene.garbage import (
    Litter,
    ProcessCharge,
    rare_collections,
    serving,
    uncollected,
)
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessCharge, "is_taken", True)


def played() -> "weakref.ref[object]":
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("4"), make_pod("p").cpu("1")).done()
    return weakref.ref(kubescene.run(scenario).cluster)


def test_worlds_that_nobody_holds_go_before_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Litter, "MOST", 10)
    worlds = [played() for _ in range(12)]
    assert [each() for each in worlds[:6]] == [None] * 6


def test_what_a_long_run_leaves_is_old_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Litter, "MOST", 0)
    gc.unfreeze()  # A server that has run in this process may have frozen what was there.
    with rare_collections():
        left: list[list[int]] = [[] for _ in range(2000)]
    assert any(each is left for each in gc.get_objects(generation=2))


def test_what_somebody_has_frozen_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Litter, "MOST", 0)
    gc.freeze()
    try:
        with rare_collections():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_whoever_calls_the_library_keeps_the_settings_of_their_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ProcessCharge, "is_taken", False)
    monkeypatch.setattr(Litter, "MOST", 0)
    seen: list[object] = []
    before = gc.get_threshold(), gc.isenabled()
    with rare_collections(), uncollected(), serving():
        seen.append((gc.get_threshold(), gc.isenabled()))
        left: list[list[int]] = [[] for _ in range(10)]
    assert seen == [before]
    assert not any(each is left for each in gc.get_objects(generation=2))


def test_what_was_loaded_once_is_not_loaded_again() -> None:
    assert vars(kubescene)["run"] is kubescene.run
