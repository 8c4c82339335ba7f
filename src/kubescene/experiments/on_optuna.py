"""Proposals of Optuna (``pip install kubescene[tune]``): it learns from what was played."""

from collections.abc import Sequence
from typing import Any

from kubescene.errors import ConfigurationError
from kubescene.experiments.goals import Goal, TuningTrial
from kubescene.experiments.ranges import Axis, Point

FAR = 1e12
"""How far one is from holding of which nothing is known."""


class OptunaProposer:
    """Its sampler for one aim, with the conditions as constraints; alike for the same seed."""

    def __init__(self, axes: Sequence[Axis], goal: Goal, seed: int) -> None:
        self._axes, self._goal = axes, goal
        self._optuna = optuna_module()
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        sampler = self._optuna.samplers.TPESampler(seed=seed)
        way = "maximize" if goal.most else "minimize"
        self._study = self._optuna.create_study(direction=way, sampler=sampler)
        self._asked: dict[Point, Any] = {}
        self._seen: dict[Point, TuningTrial] = {}

    def propose(self, count: int) -> list[Point]:
        """Others than those before; what it proposes again is told from memory."""
        found: list[Point] = []
        for _ in range(100 * count):
            if len(found) == count:
                break
            asked = self._study.ask()
            point = tuple(
                asked.suggest_int(axis.path, 0, len(axis.values) - 1) for axis in self._axes
            )
            if point in self._seen:
                self._tell(asked, self._seen[point])
            elif point not in self._asked:
                self._asked[point] = asked
                found.append(point)
        return found

    def hear(self, point: Point, trial: TuningTrial) -> None:
        self._seen[point] = trial
        self._tell(self._asked.pop(point), trial)

    def _tell(self, asked: Any, trial: TuningTrial) -> None:
        known = trial.values
        for number, condition in enumerate(self._goal.conditions):
            measured = known[condition.name].mean if condition.name in known else None
            asked.set_constraint(f"{number}", min(condition.excess(measured), FAR))
        value = known.get(self._goal.name)
        if value is None:
            self._study.tell(asked, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(asked, value.mean)


def optuna_module() -> Any:
    try:
        import optuna
    except ImportError:
        raise ConfigurationError(
            "--search optuna needs Optuna: pip install 'kubescene[tune]', or --search random"
        ) from None
    return optuna
