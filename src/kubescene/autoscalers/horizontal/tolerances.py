"""The band around the target in which nothing happens: a closed interval, one width each way."""

from msgspec import Struct


class Tolerances(Struct, frozen=True):
    down: float
    up: float

    def holds(self, ratio: float) -> bool:
        """Whether a ratio of usage and target is too close to 1 to act upon."""
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)
