"""Whether the event loop has handed over all that it had read at some moment.

A request that was read from its socket and has not reached the engine is nowhere to be seen. So one
asks the loop for a sign, which comes after whatever it had in hand.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

Errand: TypeAlias = Callable[[Callable[[], None]], None]
"""Runs a function on the engine thread after the event loop has done what it had in hand."""


def at_once(back: Callable[[], None]) -> None:
    """The errand where no event loop is."""
    back()


class RoundTrip:
    """One sign after the other. All but the errand itself is for the engine thread."""

    def __init__(self) -> None:
        self._number = 0
        self._asked = 0
        self._back = 0

    def forget(self) -> None:
        """A sign that was asked for before says nothing any more."""
        self._number += 1

    @property
    def is_asked(self) -> bool:
        return self._asked == self._number

    def ask(self, errand: Errand) -> None:
        self._asked = self._number
        errand(partial(self._come_back, self._number))

    @property
    def is_back(self) -> bool:
        """Whether the sign that was asked for last has come."""
        return self._back == self._number

    def _come_back(self, number: int) -> None:
        self._back = number
