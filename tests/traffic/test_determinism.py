"""Same seed, same bytes: again, in another process, in other pieces, forked, saved and read."""

import copy
import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.clock import SECOND, EventQueue, Stream, VirtualClock
from kubescene.traffic import TrafficResult, run
from kubescene.traffic.runs import available, objects_of, world_of
from kubescene.traffic.spec.loading import load_run, spec_of
from kubescene.traffic.world.worlds import TrafficWorld

EXAMPLE = Path(__file__).parents[2] / "examples" / "traffic" / "step.yaml"
VARIETY = [
    {},
    {"spec.mode": "faithful"},
    {"spec.routing": "random", "spec.request.demand": "exponential"},
    {"spec.routing": "leastConnections", "spec.traffic.spacing": "poisson"},
    {"spec.replicas.limit": "4", "spec.request.timeout": "2s"},
]


def settings(fields: dict[str, str]) -> list[str]:
    return [f"{path}={value}" for path, value in fields.items()]


def digest(result: TrafficResult) -> str:
    hashed = hashlib.sha256(result.requests.rows().tobytes())
    hashed.update(result.story())
    hashed.update(result.header())
    return hashed.hexdigest()


@pytest.mark.parametrize("fields", VARIETY, ids=str)
def test_twice_the_same_and_another_seed_another(fields: dict[str, str]) -> None:
    asked = load_run(EXAMPLE, settings(fields))
    assert digest(run(asked)) == digest(run(asked))
    other = load_run(EXAMPLE, [*settings(fields), "spec.seed=1"])
    assert digest(run(asked)) != digest(run(other))


def test_a_fresh_process_with_another_hash_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kubescene", "traffic", "run", str(EXAMPLE), "--quiet"]
    for number in (1, 2):
        subprocess.run(
            [*command, "--out", str(tmp_path / str(number))],
            check=True,
            env={"PYTHONHASHSEED": str(number), "PYTHONPATH": ":".join(sys.path)},
        )
    for file in sorted(each.name for each in (tmp_path / "1").iterdir()):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes(), file
    assert digest(TrafficResult.load(tmp_path / "1")) == digest(run(EXAMPLE))


def world() -> TrafficWorld:
    spec = load_run(EXAMPLE).spec
    dispatcher: Dispatcher = available(spec)
    return world_of(spec, dispatcher.partition(objects_of(spec)))


def played(one: TrafficWorld, pieces: list[int]) -> bytes:
    for instant in pieces:
        one.run_until(instant)
    one.finish(180 * SECOND)
    return one.columns.rows().tobytes() + repr(one.decisions + one.counts).encode()


def test_a_world_in_pieces_is_the_same_world() -> None:
    stream = Stream(1)
    whole, pieces = world(), world()
    whole.begin()
    pieces.begin()
    cuts = sorted(stream.below(180 * SECOND) for _ in range(60))
    expected = played(whole, [200 * SECOND])
    for cut in cuts:
        pieces.run_until(cut)
        assert pieces.used >= 0  # looking does not disturb
    assert played(pieces, [200 * SECOND]) == expected


def test_a_fork_goes_on_alike_and_leaves_its_parent_untouched() -> None:
    parent = world()
    parent.begin()
    parent.run_until(47 * SECOND)
    fork = copy.deepcopy(parent)
    assert played(fork, [200 * SECOND]) == played(parent, [200 * SECOND])


def test_a_world_runs_beside_others_on_one_clock() -> None:
    alone, beside = world(), world()
    alone.begin()
    beside.begin()
    queue = EventQueue(VirtualClock(0))
    queue.attach(beside)
    queue.after(33 * SECOND, beside.replicas)
    queue.run(until=180 * SECOND)
    assert beside.peek() is None
    assert played(beside, []) == played(alone, [200 * SECOND])


def test_a_result_can_be_handed_to_another_process() -> None:
    result = run(EXAMPLE)
    assert digest(pickle.loads(pickle.dumps(result))) == digest(result)


def test_samples_and_decisions_do_not_depend_on_who_asks_for_progress() -> None:
    watched: list[int] = []
    result = run(EXAMPLE, watch=lambda progress: watched.append(progress.now))
    assert digest(result) == digest(run(EXAMPLE))
    assert watched == sorted(watched)
    assert watched[-1] == 180 * SECOND


def test_one_dispatcher_serves_many_runs() -> None:
    asked = load_run(EXAMPLE)
    dispatcher = available(asked.spec)
    first = run(asked, dispatcher=dispatcher)
    second = run(asked, dispatcher=dispatcher)
    assert digest(first) == digest(second) == digest(run(asked))
    assert spec_of({}) == spec_of({})
