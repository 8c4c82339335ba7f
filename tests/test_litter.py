"""Many runs in one process: the worlds of those that are over go away."""

import weakref

import pytest

import kubescene
from kubescene.running import Litter
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod


def played() -> "weakref.ref[object]":
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("4"), make_pod("p").cpu("1")).done()
    return weakref.ref(kubescene.run(scenario).cluster)


def test_worlds_that_nobody_holds_go_before_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Litter, "MOST", 10)
    worlds = [played() for _ in range(12)]
    assert [each() for each in worlds[:6]] == [None] * 6


def test_what_was_loaded_once_is_not_loaded_again() -> None:
    assert vars(kubescene)["run"] is kubescene.run
