"""A recording, and what is said of a file that holds none."""

from dataclasses import dataclass

from kubescene.errors import KubesceneError
from kubescene.types import JsonObject


class GoldenFormatError(KubesceneError):
    """A file cannot be read, or is not made of goldens."""


class UnplayableError(Exception):
    """A case with something that no API server takes, or has in another form."""


@dataclass(frozen=True, slots=True)
class Golden:
    """One recorded scenario: what there was, and what was decided."""

    case: JsonObject
    result: JsonObject
    plain: bool = False
    """Whether our scheduler is to decide without what is only faster (`kubescene.shortcuts`)."""

    @property
    def id(self) -> str:
        return str(self.case["id"])

    @property
    def family(self) -> str:
        return str(self.case["family"])
