"""The runs of a served world: where they are kept, and which are at hand.

With a catalogue every run is written there when it has ended, in the background, and stays until
somebody deletes it, also over a restart of the server. The newest runs are at hand with all their
records; without a catalogue they are all that there is. A record of a run (its facts, every
explanation) is much larger than the Scenario that people see, and a server may play for weeks: of
older ones the Scenario keeps its timeline, packed, and who asks for the rest is told where it is.
"""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import msgspec

from kubescene.clock import WallClock, format_time
from kubescene.errors import ExpiredError, NotFoundError, RunStoreError
from kubescene.live.runs import LiveRun
from kubescene.results.output import (
    EXPLANATIONS_FILE,
    RESULT_FILE,
    SUMMARY_FILE,
    TIMELINE_FILE,
    scenario_yaml,
    summary_file,
    write_results,
)
from kubescene.runs.catalogue import FAILED, RUNNING, RunEntry, RunKind, Runs
from kubescene.scenario.phases import ScenarioPhase
from kubescene.types import JsonObject
from kubescene.version import __version__

MOST_RUNS = 20
MOST_FACTS = 500_000
CUT_SHORT = "the server ended before the run did"
_log = logging.getLogger(__name__)


class FinishedRuns:
    """Runs by the uid of their Scenario, the oldest first. For the engine thread."""

    def __init__(
        self,
        catalogue: Runs | None = None,
        *,
        most_runs: int = MOST_RUNS,
        most_facts: int = MOST_FACTS,
    ) -> None:
        self.catalogue = catalogue
        self.most_runs = most_runs
        self.most_facts = most_facts
        self._numbers = count(1)
        self._runs: dict[str, LiveRun] = {}
        self._dropped: dict[str, tuple[str, str]] = {}
        """Name and id of those that are dropped, as long as their Scenarios exist."""
        self._seen_over: set[str] = set()
        self._background: ThreadPoolExecutor | None = None

    def begin(self, run: LiveRun) -> None:
        """A scenario is about to be played: the run gets its id."""
        run.created = format_time(WallClock().now())
        if self.catalogue is None:
            run.id = f"{RunKind.SCENARIO}-{next(self._numbers)}"
            return
        try:
            run.id = self.catalogue.begin(run.name)
        except RunStoreError as error:
            _log.error("the run of scenario %s is not kept: %s", run.name, error)

    def end(self, run: LiveRun) -> None:
        """It is over: keep it. One whose input was bad has played nothing."""
        run.finished = format_time(WallClock().now())
        if self.catalogue is None or not run.id:
            return
        if run.engine.bad_input:
            # At once, so that the next run gets its number: there is one small file of it.
            logged(partial(self.catalogue.discard, run.id))
        else:
            self.later(partial(save, self.catalogue, run, run.result()))

    def add(self, run: LiveRun) -> None:
        """Have a run at hand that has ended; the oldest ones have to go for it."""
        self._runs[run.uid] = run
        while len(self._runs) > 1 and self._is_too_much():
            self._drop(next(iter(self._runs)))

    def forget(self, uid: str) -> None:
        """Its Scenario is gone, but for the history of the store."""
        run = self._runs.pop(uid, None)
        self._dropped.pop(uid, None)
        self._seen_over.discard(uid)
        if run is not None:
            self.drop_records(run)

    def is_set_back(self, uid: str, *, is_over: bool) -> bool:
        """Whether a Scenario that was played, and was seen to be over, is so no longer.

        Its end must have been seen first: a server that is not ours may show it later than we
        wrote it.
        """
        if is_over and uid in self:
            self._seen_over.add(uid)
        return not is_over and uid in self._seen_over

    def drop_records(self, run: LiveRun) -> None:
        """Nobody asks for them any more; whoever sees the Scenario still sees its timeline."""
        self.later(run.pack)

    def drop(self, id: str) -> None:
        """Somebody has deleted the run: nothing of it is at hand any more."""
        for uid in [uid for uid, run in self._runs.items() if run.id == id]:
            self._drop(uid)

    def named(self, name: str) -> LiveRun | None:
        """The run of the Scenario of that name; 410 if it was dropped, None if there was none."""
        found = next((run for run in self._runs.values() if run.name == name), None)
        dropped = next((id for each, id in self._dropped.values() if each == name), None)
        if found is None and dropped is not None:
            kept = f"; run {dropped} has them" if self.catalogue is not None and dropped else ""
            raise ExpiredError(
                f'the records of scenario "{name}" were dropped: this server keeps those of the '
                f"newest {self.most_runs} scenarios, fewer if they are large; its timeline is "
                f"still in its status{kept}",
                name=name,
            )
        return found

    def at_hand(self) -> list[LiveRun]:
        """Those with all their records."""
        return list(self._runs.values())

    def known(self) -> bytes:
        """Which Scenario had which run, for a server that goes on from here."""
        if self.catalogue is None:
            return b"{}"
        at_hand = {uid: (run.name, run.id) for uid, run in self._runs.items() if run.id}
        return msgspec.json.encode({**self._dropped, **at_hand})

    def recall(self, known: bytes) -> None:
        """What a server knew that has ended: nothing of these runs is at hand."""
        if known and self.catalogue is not None:
            self._dropped = msgspec.json.decode(known, type=dict[str, tuple[str, str]])

    def close(self, current: LiveRun | None = None) -> None:
        """Returns when everything is written; a run that is under way was cut short."""
        if current is not None and self.catalogue is not None and current.id:
            self.later(partial(self.catalogue.end, current.id, FAILED, CUT_SHORT))
        if self._background is not None:
            self._background.shutdown()

    def __contains__(self, uid: str) -> bool:
        return uid in self._runs or uid in self._dropped

    def _is_too_much(self) -> bool:
        facts = sum(len(run.log) for run in self._runs.values())
        return len(self._runs) > self.most_runs or facts > self.most_facts

    def _drop(self, uid: str) -> None:
        run = self._runs.pop(uid)
        self._dropped[uid] = run.name, run.id
        self.drop_records(run)

    def later(self, work: Callable[[], object]) -> None:
        """Seconds, if it is a large run: not on the thread that owns the world."""
        self._background = self._background or ThreadPoolExecutor(1, "kubescene-runs")
        self._background.submit(logged, work)


def logged(work: Callable[[], object]) -> None:
    """In the background nobody would hear of an error."""
    try:
        work()
    except Exception as error:
        _log.error("a run could not be kept: %s", error)


def save(catalogue: Runs, run: LiveRun, result: JsonObject) -> None:
    """The files of a run of its own, and then how it ended."""
    write_results(
        catalogue.path(run.id),
        result,
        timeline=run.timeline_file(),
        explanations=run.explanations_file(),
        summary=summary_file(run.summary()),
    )
    phase = run.phase if run.phase.is_final else ScenarioPhase.FAILED
    catalogue.end(run.id, phase, run.scenario.message, run.seed)


def entry_of(run: LiveRun) -> RunEntry:
    """A run that is at hand, as the catalogue would list it."""
    return RunEntry(
        id=run.id,
        kind=RunKind.SCENARIO,
        name=run.name,
        phase=str(run.phase) if run.finished else RUNNING,
        message=run.scenario.message,
        created=run.created,
        finished=run.finished,
        version=__version__,
        seed=run.seed,
    )


def files_of(run: LiveRun) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """What a run of its own would have written, made when somebody wants it."""
    yield EXPLANATIONS_FILE, run.explanations_file
    yield RESULT_FILE, lambda: b"".join(scenario_yaml(run.result(), None))
    yield SUMMARY_FILE, lambda: summary_file(run.summary())
    yield TIMELINE_FILE, run.timeline_file


def found_among(runs: list[LiveRun], id: str) -> LiveRun:
    for run in runs:
        if run.id == id:
            return run
    raise NotFoundError(f"there is no run {id!r} at this server", name=id, kind="runs")
