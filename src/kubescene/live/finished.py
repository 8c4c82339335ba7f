"""The scenarios that are over: the newest with all their records, the older ones as objects only.

A record of a run (its facts, every explanation) is much larger than the Scenario that people see,
and a server may play for weeks. The Scenario keeps its timeline, packed; the rest is dropped, and
who asks for it is told.
"""

from concurrent.futures import ThreadPoolExecutor

from kubescene.errors import ExpiredError
from kubescene.live.runs import LiveRun

MOST_RUNS = 20
MOST_FACTS = 500_000


class FinishedRuns:
    """Runs by the uid of their Scenario, the oldest first."""

    def __init__(self, most_runs: int = MOST_RUNS, most_facts: int = MOST_FACTS) -> None:
        self.most_runs = most_runs
        self.most_facts = most_facts
        self._runs: dict[str, LiveRun] = {}
        self._dropped: dict[str, str] = {}
        """The names of those that are dropped, as long as their Scenarios exist."""
        self._packing: ThreadPoolExecutor | None = None

    def add(self, run: LiveRun) -> None:
        """Keep a run that has ended; the oldest ones have to go for it."""
        self._runs[run.uid] = run
        while len(self._runs) > 1 and self._is_too_much():
            self._drop(next(iter(self._runs)))

    def forget(self, uid: str) -> None:
        """Its Scenario is gone."""
        self._runs.pop(uid, None)
        self._dropped.pop(uid, None)

    def named(self, name: str) -> LiveRun | None:
        """The run of the Scenario of that name; 410 if it was dropped, None if there was none."""
        found = next((run for run in self._runs.values() if run.name == name), None)
        if found is None and name in self._dropped.values():
            raise ExpiredError(
                f'the records of scenario "{name}" were dropped: this server keeps those of the '
                f"newest {self.most_runs} scenarios, fewer if they are large; its timeline is "
                "still in its status",
                name=name,
            )
        return found

    def __contains__(self, uid: str) -> bool:
        return uid in self._runs or uid in self._dropped

    def _is_too_much(self) -> bool:
        facts = sum(len(run.log) for run in self._runs.values())
        return len(self._runs) > self.most_runs or facts > self.most_facts

    def _drop(self, uid: str) -> None:
        run = self._runs.pop(uid)
        self._dropped[uid] = run.name
        # Seconds, if it is a large one: not on the thread that owns the world.
        self._packing = self._packing or ThreadPoolExecutor(1, "packing")
        self._packing.submit(run.pack)
