"""A run is data in, data out: it can be made in another process."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import kubescene
from kubescene.runs.local import RunResult, play
from kubescene.runs.requests import RunRequest, read
from playing import reads_files

EXAMPLES = [
    path
    for path in sorted(Path(__file__).parents[2].glob("examples/*/scenario.yaml"))
    if not reads_files(path)
]


def whole(result: RunResult) -> tuple[object, ...]:
    return (
        result.phase,
        result.summary,
        result.record.unversioned_data,
        list(result.timeline.lines),
        list(result.explanations),
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_requests_and_results_survive_the_way_through_pickle(path: Path) -> None:
    request = pickle.loads(pickle.dumps(RunRequest(scenario=read(path), seed=3)))
    result = pickle.loads(pickle.dumps(play(request)))
    assert whole(result) == whole(kubescene.run(path, seed=3))
    assert result.log.at(1)[0].step.major == 1


def test_other_processes_play_the_same() -> None:
    requests = [RunRequest(scenario=read(path), seed=seed) for path in EXAMPLES for seed in (1, 2)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(play, requests))
    assert [whole(each) for each in results] == [whole(play(each)) for each in requests]
    assert whole(results[0]) != whole(results[1])


def test_a_living_world_is_not_sent() -> None:
    run = kubescene.run(EXAMPLES[0])
    with pytest.raises(TypeError, match="send its `result`"):
        pickle.dumps(run)
    assert whole(run.result) == whole(run)
