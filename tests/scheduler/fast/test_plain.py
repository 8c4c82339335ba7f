"""What is only faster changes no byte: worlds made by lot, with the fast room and without it."""

from pathlib import Path

import pytest

import kubescene
from kubescene.scheduler.cycle.fast_path import StepByStep
from kubescene.shortcuts import ALL, PLAIN
from kubescene.testing import make_node, make_pod
from random_scenarios import random_scenario
from scheduler.staging import Stage, fast_of


def told(seed: int, directory: Path, *, plain: bool) -> dict[str, bytes]:
    """All files of a run."""
    kubescene.run(random_scenario(seed, pods=40), out=directory, plain=plain)
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in sorted(directory.rglob("*"))
        if each.is_file()
    }


@pytest.mark.parametrize("seed", range(100, 106))
def test_worlds_made_by_lot_end_alike(seed: int, tmp_path: Path) -> None:
    fast, plain = (told(seed, tmp_path / str(way), plain=way) for way in (False, True))
    assert fast.keys() == plain.keys()
    different = [name for name in fast if fast[name] != plain[name]]
    assert not different


def test_a_plain_world_keeps_nothing_of_a_class() -> None:
    world = Stage(shortcuts=PLAIN)
    world.create(make_node("a").cpu("4").memory("8Gi"), make_pod("p").cpu("1"))
    world.work()
    cycle = world.scheduler.cycle_of("default-scheduler")
    assert isinstance(cycle.fast, StepByStep)
    assert not cycle.filters.keeps
    assert not cycle.scores.keeps
    assert world.attempts.made[-1].node == "a"


def test_every_other_world_does() -> None:
    cycle = Stage(shortcuts=ALL).scheduler.cycle_of("default-scheduler")
    assert fast_of(cycle).keeps_rows
    assert cycle.filters.keeps
