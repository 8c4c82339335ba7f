"""The scenario's own time: major steps made of minor steps (KEP-140, "ScenarioStep")."""

from typing import NamedTuple


class ScenarioStep(NamedTuple):
    """Ordered like hours and minutes.

    Major: the user's operations. Minor: a controller's writes.
    """

    major: int
    minor: int

    def next_minor(self) -> "ScenarioStep":
        return ScenarioStep(self.major, self.minor + 1)

    def to_dict(self) -> dict[str, int]:
        return {"major": self.major, "minor": self.minor}

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"
