"""Scheduler plugins for matrices: in a module, so that other processes can import them."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubescene.scheduler import CycleState, Handle, NodeInfo, PodInfo, ScorePlugin

KILL_FILE = "MATRIX_KILL"
"""The variable that names a file: where it is, whoever scores next takes it and dies."""


class Dice(ScorePlugin):
    """Rates nodes as chance has it."""

    name = "Dice"

    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        self._chance = handle.random

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return self._chance.below(101)


class KilledOnce(Dice):
    """Its process is killed from outside, once."""

    name = "KilledOnce"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        file = Path(os.environ[KILL_FILE])
        if file.exists():
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(state, pod, node)


class Crashing(Dice):
    """Crashes the interpreter when it sees a certain pod."""

    name = "Crashing"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        if pod.name == "crash":
            os._exit(7)
        return super().score(state, pod, node)
