"""Evaluating the expressions of a policy, within what they may cost together."""

from collections.abc import Iterator, Mapping
from typing import Any

from kubescene.cel.errors import EvaluationError
from kubescene.cel.programs import DEFAULT_COST
from kubescene.registry.admission.policies.compiling import VARIABLES, Expression

BUDGET = 10_000_000
"""What the expressions of one kind may cost together: for each binding and object of params."""
CONDITIONS_BUDGET = 2_500_000
OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class NoBudgetError(Exception):
    """The expressions of a policy have cost more than they may together."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class FailedExpressionError(Exception):
    """An expression has no value for this request; says why."""


class PolicyEvaluation:
    """Expressions of one policy about one request, one after the other."""

    def __init__(
        self, names: Mapping[str, Any], variables: Mapping[str, Expression], budget: int = BUDGET
    ) -> None:
        self._values = Variables(variables, self)
        self._names = {**names, VARIABLES: self._values}
        self.left = budget

    def value(self, expression: Expression) -> Any:
        """The value of an expression; raises one of the errors of this module."""
        if expression.program is None:
            raise FailedExpressionError(f"compilation error: {expression.fault}")
        value, cost, error = self.attempt(expression)
        for each in (self._values.cost_since(), cost):
            if each > self.left:
                raise NoBudgetError
            self.left -= each
        if error is not None:
            message = f"expression '{expression.text}' resulted in error: {error}"
            raise FailedExpressionError(message)
        return value

    def attempt(self, expression: Expression) -> tuple[Any, int, EvaluationError | None]:
        """The value, what it has cost, and why there is none."""
        assert expression.program is not None
        scope = expression.program.scope(self._names, DEFAULT_COST)
        try:
            value, error = expression.program.root.evaluate(scope), None
        except EvaluationError as failure:
            value, error = None, failure
        return value, DEFAULT_COST - scope.meter.left, error


class Variables(Mapping[str, Any]):
    """The variables of a policy: each is worked out when somebody first asks for it."""

    def __init__(self, expressions: Mapping[str, Expression], evaluation: PolicyEvaluation) -> None:
        self._expressions = expressions
        self._evaluation = evaluation
        self._known: dict[str, Any] = {}
        self._failed: dict[str, EvaluationError] = {}
        self._cost = 0

    def __getitem__(self, name: str) -> Any:
        if name in self._failed:
            raise self._failed[name]
        if name not in self._known:
            self._known[name] = self._found(name, self._expressions[name])
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __iter__(self) -> Iterator[str]:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)

    def cost_since(self) -> int:
        """What was worked out since the last time cost."""
        cost, self._cost = self._cost, 0
        return cost

    def _found(self, name: str, expression: Expression) -> Any:
        said = f'composited variable "{name}" fails to'
        if expression.program is None:
            raise self._failure(name, f"{said} compile: {expression.fault}")
        value, cost, error = self._evaluation.attempt(expression)
        self._cost += cost
        if error is not None:
            raise self._failure(name, f"{said} evaluate: {error}")
        return value

    def _failure(self, name: str, why: str) -> EvaluationError:
        self._failed[name] = EvaluationError(why)
        return self._failed[name]
