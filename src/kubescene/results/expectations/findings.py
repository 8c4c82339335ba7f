"""What came out, as far as an expression asks: read from the log a piece at a time."""

from collections.abc import Iterable, Sequence
from typing import Any

from kubescene.cel import EvaluationError
from kubescene.errors import ConfigurationError
from kubescene.results.entries import Entries
from kubescene.results.expectations.variables import MEASURES, VARIABLES
from kubescene.results.explaining import ExplainedAttempt
from kubescene.results.ledger import Ledger
from kubescene.results.measures import measures
from kubescene.results.measures.own import OwnFunction
from kubescene.results.sources import LogSource
from kubescene.scenario.expectations import Ending
from kubescene.timeline import TimelineLog

PIECE = 500
"""Facts: a few milliseconds."""


class EndingRun(LogSource):
    """A run that is about to end: its last fact is not written yet."""

    def __init__(self, log: TimelineLog, ending: Ending) -> None:
        super().__init__(log)
        self._ending = ending
        self._read_so_far = Ledger()

    @property
    def phase(self) -> str:
        return self._ending.phase

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        raise ConfigurationError(
            "attempts are not explained while expectations are looked at: take such a measure of "
            "the run directory (kubescene results --measure)"
        )

    def _read(self) -> Ledger:
        return self._read_so_far

    def end(self, ledger: Ledger) -> None:
        """All is read. Time may have passed since the last fact."""
        ledger.wait_until(self._ending.time)
        ledger.close()
        self._read_so_far = ledger


class Findings:
    """The variables of one hearing; each is made when an expression asks for it."""

    def __init__(self, log: TimelineLog, ending: Ending, own: Sequence[OwnFunction] = ()) -> None:
        self._log = log
        self._own = own
        self._length = len(log)
        self._position = 0
        self._entries = Entries()
        self._run = EndingRun(log, ending)
        self._made: dict[str, Any] = {}
        self._missing: dict[str, str] = {}
        """Why there is none of a variable."""

    def read_on(self) -> bool:
        """Read some facts; whether there was something to read."""
        if self._position > self._length:
            return False
        until = min(self._position + PIECE, self._length)
        for fact in self._log.read(self._position, until):
            self._entries.add(fact)
        self._position = until
        if until == self._length:
            self._position += 1
            self._run.end(self._entries.ledger)
        return True

    def prepare(self, names: Iterable[str]) -> bool:
        """Make one of these variables; whether one was missing."""
        known = self._made.keys() | self._missing.keys()
        missing = next((name for name in sorted(names) if name not in known), None)
        if missing is not None:
            self._make(missing)
        return missing is not None

    def values(self, names: Iterable[str]) -> dict[str, Any]:
        """What expressions need; raises `EvaluationError` where a measure could not be taken."""
        while self.prepare(names):
            pass
        for name in sorted(self._missing.keys() & names):
            raise EvaluationError(self._missing[name])
        return {name: self._made[name] for name in sorted(names)}

    def _make(self, name: str) -> None:
        try:
            if name == MEASURES:
                self._made[name] = measures(self._run, own=self._own)
            else:
                self._made[name] = VARIABLES[name].make(self._run)
        except ConfigurationError as error:
            self._missing[name] = str(error)  # a measure of somebody's own went wrong
