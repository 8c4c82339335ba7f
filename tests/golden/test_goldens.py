"""Parity with kube-scheduler v1.36.4: recorded decisions against ours, without tolerance.

`README.md` says what the recordings hold; `kubescene.testing.goldens` replays them.
"""

from pathlib import Path

import pytest

from kubescene.testing.goldens import replay_files

DATA = Path(__file__).parent / "data" / "scheduler"
CASES = {
    "basic-resources": 34,
    "batching": 20,
    "claims": 40,
    "config-errors": 100,
    "custom-config": 20,
    "extenders": 32,
    "findings": 15,
    "gangs": 30,
    "host-ports": 25,
    "image-locality": 20,
    "inter-pod-affinity": 17,
    "mixed": 10,
    "node-affinity": 34,
    "preemption": 20,
    "queueing": 50,
    "sampling": 18,
    "scheduling-gates": 34,
    "taints": 34,
    "topology-spread": 17,
    "unschedulable": 100,
    "vectors": 21,
    "volumes": 17,
}
"""How many cases each file has, so that none gets lost unnoticed."""


@pytest.mark.parametrize("family", CASES)
def test_decisions_equal_those_of_kube_scheduler(family: str) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"])
    assert tally.cases == CASES[family]
    assert tally.is_equal, "\n".join(str(each) for each in tally.first)


@pytest.mark.parametrize("family", CASES)
def test_so_do_those_without_any_shortcut(family: str) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"], plain=True)
    assert tally.cases == CASES[family]
    assert tally.is_equal, "\n".join(str(each) for each in tally.first)
