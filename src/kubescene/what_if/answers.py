"""What an answer is: first what could not be known, then one sentence, tables, how to look closer.

``measures`` are the numbers that a pipeline may fail on; every answer has ``pending``: pods that
wait and did not before.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from kubescene.errors import ConfigurationError

Cell = str | int | float


class AnswerTable(msgspec.Struct, frozen=True):
    """Rows below names of columns."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as plain data."""

    question: str
    unknown: list[str]
    """What could not be known, in sentences."""
    sentence: str
    tables: list[AnswerTable]
    measures: dict[str, int | float]
    closer: list[str] = []
    """How to look closer."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON: tables as lists of objects."""
        return {
            "question": self.question,
            "unknown": self.unknown,
            "sentence": self.sentence,
            "tables": {
                each.title: [dict(zip(each.columns, row, strict=True)) for row in each.rows]
                for each in self.tables
            },
            "measures": self.measures,
            "closer": self.closer,
        }

    def table(self, title: str) -> AnswerTable:
        """The table of that title; raises `KeyError`."""
        for each in self.tables:
            if each.title == title:
                return each
        raise KeyError(title)

    def __repr__(self) -> str:
        return f"<{self.question}: {self.sentence}>"


CONDITION = re.compile(r"([a-z_]+)(?:(>=|>)(\d+(?:\.\d+)?))?")


def failures(answer: Answer, conditions: str) -> Sequence[str]:
    """Which of ``pending,unavailable>3`` hold: a name alone means more than zero.

    Raises `ConfigurationError` for what is no measure of the answer.
    """
    failed = []
    for text in filter(None, (each.strip() for each in conditions.split(","))):
        found = CONDITION.fullmatch(text)
        if found is None:
            raise ConfigurationError(f"--fail-on: {text!r} is no NAME, NAME>NUMBER or NAME>=NUMBER")
        name, sign, limit = found[1], found[2] or ">", float(found[3] or 0)
        if name not in answer.measures:
            known = ", ".join(answer.measures)
            raise ConfigurationError(f"--fail-on: the answer has no {name}; it has: {known}")
        value = answer.measures[name]
        if value > limit or (sign == ">=" and value >= limit):
            failed.append(f"{name} is {value:g}, and {text} fails")
    return failed
