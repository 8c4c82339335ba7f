"""What a file of recordings may be about: each format has a module that checks and replays it.

The field that a case has tells the format. A module of a format (`FormatModule`) is imported with
the first recording that needs it.
"""

import importlib
from typing import NamedTuple, Protocol, cast

from kubescene.testing.goldens.comparing import Tally
from kubescene.testing.goldens.recordings import Golden
from kubescene.types import JsonObject


class FormatModule(Protocol):
    """What the module of a format has."""

    UNIT: str
    """What a case is made of, in the plural: ``attempts``."""

    def check(self, case: JsonObject, result: JsonObject, where: str) -> None:
        """Raise `GoldenFormatError` if a recording is not of this format; ``where`` is its line."""

    def replay(self, golden: Golden, tally: Tally) -> None:
        """Replay one recording and count what comes of it. Must not raise: that is a difference."""


class Format(NamedTuple):
    """One kind of recordings: a case that has ``field`` is of it."""

    field: str
    module: str

    def load(self) -> FormatModule:
        return cast("FormatModule", importlib.import_module(self.module))


SCHEDULER = Format("", "kubescene.testing.goldens.scheduling")
"""Cases with ``pending`` or ``steps``; also what is of no format, so that it is told why."""

HORIZONTAL = Format("hpa", "kubescene.testing.goldens.horizontal")
"""Passes of the horizontal pod autoscaler's controller."""

VERTICAL = Format("vpa", "kubescene.testing.goldens.vertical")
"""Cases of the vertical pod autoscaler: recommender, updater and admission."""

FORMATS: tuple[Format, ...] = (HORIZONTAL, VERTICAL)


def format_of(case: JsonObject) -> Format:
    return next((each for each in FORMATS if each.field in case), SCHEDULER)
