"""Waiters that a scenario declares: sentences in CEL about objects of a kind.

A sentence that speaks of ``object`` must hold for every object of the kind, one that speaks of
``objects`` alone is looked at once. A sentence without a value, since a field is not there, does
not hold.
"""

from collections.abc import Iterator

from kubescene.api.scheme import GroupVersionKind
from kubescene.cel import DYN, EvaluationError, compile_expression, list_of
from kubescene.client import Reader
from kubescene.errors import ApiError, ScenarioError
from kubescene.outside.waiters.waiter import listed, name_of
from kubescene.scenario.outside import OutsideController, WaiterCondition
from kubescene.types import JsonObject

TYPES = {"object": DYN, "objects": list_of(DYN)}
COST = 10_000_000
"""A sentence about all objects may look at many."""


class ConditionsWaiter:
    """All conditions of one controller."""

    name = "conditions"

    def __init__(
        self, declared: OutsideController, conditions: tuple[WaiterCondition, ...]
    ) -> None:
        self._sentences = [
            Sentence(condition, f"controller {declared.name}, waiter.conditions[{index}]")
            for index, condition in enumerate(conditions)
        ]

    def condition(self, reader: Reader) -> bool:
        return all(next(each.unmet(reader), None) is None for each in self._sentences)

    def unmet(self, reader: Reader) -> str:
        return listed(told for each in self._sentences for told in each.unmet(reader))


class Sentence:
    """One condition, compiled."""

    def __init__(self, condition: WaiterCondition, where: str) -> None:
        self._condition = condition
        self._where = where
        self._kind = GroupVersionKind.of(condition.api_version, condition.kind)
        self._program = compile_expression(condition.expression, TYPES)

    def unmet(self, reader: Reader) -> Iterator[str]:
        """Each object for which it does not hold, or the kind."""
        objects = self._objects(reader)
        if "object" not in self._program.names:
            yield from self._judged({"objects": objects}, f"{self._kind.kind}s")
            return
        for obj in objects:
            yield from self._judged({"object": obj, "objects": objects}, name_of(obj))

    def _objects(self, reader: Reader) -> list[JsonObject]:
        try:
            return reader.list(self._kind, namespace=self._condition.namespace)
        except ApiError as error:
            # To wait for a kind that nobody knows, or a typo, would be to wait for ever.
            raise ScenarioError(error.message, where=self._where) from error

    def _judged(self, names: JsonObject, subject: str) -> Iterator[str]:
        said = self._condition.message or f"{self._condition.expression!r} does not hold"
        try:
            if self._program.evaluate(names, COST) is not True:
                yield f"{subject}: {said}"
        except EvaluationError as error:
            yield f"{subject}: {said} ({error})"
