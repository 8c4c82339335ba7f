"""What is only faster changes no byte: worlds made by lot, with the fast room and without it."""

from pathlib import Path

import pytest

import kubescene
import kubescene.scheduler
from kubescene.api.records import make_record
from kubescene.scheduler.cycle.fast_path import StepByStep
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.fast.kept_filtering import KeptFiltering
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.state.pods import PodInfo
from kubescene.shortcuts import ALL, PLAIN
from kubescene.testing import make_node, make_pod
from random_scenarios import random_scenario
from scheduler.staging import Stage, fast_of
from scheduler.tables import PODS


def probe(world: Stage) -> PodInfo:
    obj = {**make_pod("q").cpu("1").build(), "metadata": {"name": "q", "uid": "q"}}
    return PodInfo.read(make_record(PODS, obj, 1), obj, world.scheduler.watcher.classes)


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
    assert type(cycle.filter(CycleState(), probe(world))) is Filtering
    assert world.attempts.made[-1].node == "a"


def test_every_other_world_does() -> None:
    world = Stage(shortcuts=ALL)
    world.create(make_node("a").cpu("4").memory("8Gi"), make_pod("p").cpu("1"))
    world.work()
    cycle = world.scheduler.cycle_of("default-scheduler")
    assert len(fast_of(cycle)._kept) == 1
    assert isinstance(cycle.filter(CycleState(), probe(world)), KeptFiltering)


def test_the_plain_way_does_without_the_fast_room() -> None:
    """Nothing below it imports it: a scheduler could be made without the folder."""
    folder = Path(kubescene.scheduler.__file__).parent
    users = [
        str(each.relative_to(folder))
        for each in sorted(folder.rglob("*.py"))
        if "import" in each.read_text()
        and "kubescene.scheduler.fast." in each.read_text()
        and each.parent.name != "fast"
    ]
    assert users == ["scheduler.py"]
