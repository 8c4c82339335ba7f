"""Whether the event loop has handed over all that it had read at some moment.

A request that was read from its socket and has not reached the engine is nowhere to be seen. So one
asks the loop for a sign, which comes after whatever it had in hand.
"""

from collections.abc import Callable
from typing import TypeAlias

Errand: TypeAlias = Callable[[Callable[[], None]], None]
"""Runs a function on the engine thread after the event loop has done what it had in hand."""


def at_once(back: Callable[[], None]) -> None:
    """The errand where no event loop is."""
    back()


class RoundTrip:
    """One sign after the other. All but the errand itself is for the engine thread."""

    def __init__(self) -> None:
        self._is_away = False
        self._is_back = False

    def forget(self) -> None:
        """The next sign is asked for anew."""
        self._is_back = False

    def is_back(self, errand: Errand) -> bool:
        """Whether a sign that was asked for after `forget` has come; asks if nobody has."""
        if self._is_back:
            return True
        if not self._is_away:
            self._is_away = True
            errand(self._come_back)
        return False

    def _come_back(self) -> None:
        self._is_away = False
        self._is_back = True
