"""What a process remembers changes nothing: once it is forgotten, the bytes are the same."""

from collections.abc import Callable
from pathlib import Path

import pytest

import kubescene
from caches import clear_caches, used_caches
from kubescene.traffic.runs import run as simulate
from kubescene.traffic.spec.loading import load_run
from random_scenarios import random_scenario

EXAMPLES = Path(__file__).parents[2] / "examples"


def files_in(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}


def of_an_example(folder: Path) -> dict[str, bytes]:
    kubescene.run(EXAMPLES / "01-first-scenario" / "scenario.yaml", out=folder)
    return files_in(folder)


def by_lot(folder: Path) -> dict[str, bytes]:
    kubescene.run(random_scenario(3), out=folder)
    return files_in(folder)


def of_traffic(folder: Path) -> dict[str, bytes]:
    del folder
    return simulate(load_run(EXAMPLES / "traffic" / "step.yaml")).files()


@pytest.mark.parametrize("play", [of_an_example, by_lot, of_traffic])
def test_a_run_after_all_caches_were_cleared_gives_the_same_bytes(
    play: Callable[[Path], dict[str, bytes]], tmp_path: Path
) -> None:
    before = play(tmp_path / "before")
    clear_caches()
    assert play(tmp_path / "after") == before
    assert before


def test_every_cache_is_listed_and_cleared(tmp_path: Path) -> None:
    of_an_example(tmp_path)
    used = used_caches()
    assert "kubescene.api.builtin._scheme" in used
    assert "kubescene.api.records.traits._FOUND" in used
    assert "kubescene.registry.decoding._BODIES" in used
    clear_caches()
    assert used_caches() == []
