"""Two traffic runs beside each other, by hand, and as a user types it."""

import json
from pathlib import Path

import pytest

from commands import kubescene
from kubescene.clock import SECOND
from kubescene.errors import TrafficError
from kubescene.experiments.estimates import t_quantile
from kubescene.experiments.traffic_comparison import (
    changes,
    compare_files,
    compare_results,
    compare_sweeps,
    differences,
    spans,
)
from kubescene.traffic import TrafficResult, load_run, run
from kubescene.traffic.spec.loading import spec_of
from traffic.stubs import Scripted

STEP = Path(__file__).parents[2] / "examples" / "traffic" / "step.yaml"
LATE = "spec.replicas.launchDelay=30s"


def scripted(script: dict[int, int]) -> TrafficResult:
    return run(spec_of({"duration": "2m"}), [Scripted(script)])


def test_pairs_tell_more_than_means() -> None:
    """Seeds differ by tens, the two of a pair by 1, 2 and 3: the difference is 2 with its t."""
    pairs = [({"failed": 10}, {"failed": 11}), ({"failed": 50}, {"failed": 52})]
    [found] = differences([*pairs, ({"failed": 90}, {"failed": 93})])
    assert (found.a, found.b, found.difference.mean) == (50, 52, 2)
    half = found.difference.half_width
    assert half == pytest.approx(t_quantile(2) / 3**0.5)
    assert not found.is_certain
    [equal] = differences([({"failed": 10}, {"failed": 12}), ({"failed": 50}, {"failed": 52})])
    assert equal.is_certain
    [same] = differences([({"failed": 10}, {"failed": 10})])
    assert same.is_none


def test_when_other_numbers_were_wanted_and_who_decided_so() -> None:
    """A: 2 from 30 s on; B: 2 from 60 s on and 3 from 90 s on."""
    found = list(spans(scripted({0: 1, 30: 2}), scripted({0: 1, 60: 2, 90: 3})))
    told = [(each.start // SECOND, each.end // SECOND, each.a, each.b, each.why) for each in found]
    assert told == [(30, 60, 2, 1, "A: by the script"), (90, 120, 2, 3, "B: by the script")]


def test_fields_that_differ_are_named() -> None:
    target = "spec.autoscalers[0].object.spec.metrics[0].resource.target.averageUtilization"
    found = list(changes(load_run(STEP), load_run(STEP, [LATE, f"{target}=60"])))
    told = {each.path: (each.a, each.b) for each in found}
    assert told == {"spec.replicas.launchDelay": ("5s", "30s"), target: (50, 60)}


def test_a_run_beside_itself_is_the_same() -> None:
    one = run(STEP)
    assert compare_results(one, run(STEP), ("a", "b")).is_same
    other = compare_results(one, run(load_run(STEP, [LATE])), ("a", "b"))
    assert not other.is_same
    failed = next(each for each in other.measures if each.measure == "failed")
    assert failed.difference.mean == failed.b - failed.a > 0


def test_files_are_compared_seed_by_seed(tmp_path: Path) -> None:
    slow = tmp_path / "slow.yaml"
    slow.write_text(STEP.read_text().replace("launchDelay: 5s", "launchDelay: 30s"))
    found = compare_files(STEP, slow, 3)
    failed = next(each for each in found.measures if each.measure == "failed")
    own = [
        run(load_run(STEP, [LATE, f"spec.seed={seed}"])).summary.failed
        - run(load_run(STEP, [f"spec.seed={seed}"])).summary.failed
        for seed in (1, 2, 3)
    ]
    assert found.pairs == 3
    assert failed.difference.mean == pytest.approx(sum(own) / 3)
    assert compare_files(STEP, STEP, 2).is_same


HEADER = "spec.replicas.initial,seed,phase,message,failed\n"


def sweep(folder: Path, *rows: str) -> Path:
    folder.mkdir()
    (folder / "runs.csv").write_text(HEADER + "".join(f"{each}\n" for each in rows))
    return folder


def test_sweeps_are_compared_by_combination_and_seed(tmp_path: Path) -> None:
    a = sweep(tmp_path / "a", "1,1,Succeeded,,10", "1,2,Succeeded,,20", "2,1,Succeeded,,5")
    b = sweep(tmp_path / "b", "1,2,Succeeded,,21", "1,1,Succeeded,,12", "2,2,Succeeded,,7")
    [found] = compare_sweeps(a, b)
    assert (found.settings, found.pairs) == ({"spec.replicas.initial": "1"}, 2)
    assert found.measures[0].difference.mean == 1.5
    c = sweep(tmp_path / "c", "7,1,Succeeded,,4", "7,2,Failed,oops,0")
    d = sweep(tmp_path / "d", "1,1,Succeeded,,1", "1,2,Succeeded,,1")
    [alone] = compare_sweeps(c, d)
    assert (alone.pairs, alone.unpaired, alone.measures[0].difference.mean) == (1, 1, -3)
    with pytest.raises(TrafficError, match="no combination and seed in common"):
        compare_sweeps(a, sweep(tmp_path / "e", "8,1,Succeeded,,1", "9,1,Succeeded,,1"))


def test_as_a_user_types_it(tmp_path: Path) -> None:
    run(STEP).save(tmp_path / "a")
    run(load_run(STEP, [LATE])).save(tmp_path / "b")
    same = kubescene("traffic", "compare", str(tmp_path / "a"), str(tmp_path / "a"))
    assert (same.returncode, "are the same" in same.stdout) == (0, True)
    done = kubescene("traffic", "compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert done.returncode == 1, done.stderr
    for part in ("spec.replicas.launchDelay  5s  →  30s", "failed", "B - A", "Other numbers were"):
        assert part in done.stdout
    told = kubescene("traffic", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json")
    assert json.loads(told.stdout)[0]["pairs"] == 1
    for wrong in ((str(tmp_path), str(tmp_path)), (str(STEP), str(STEP))):
        assert kubescene("traffic", "compare", *wrong).returncode == 2
