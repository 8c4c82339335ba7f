"""One run of a matrix as data: what is to be played, and what is kept of it.

Of a run only its numbers are kept: one of 50,000 pods is a few hundred bytes here.
"""

from dataclasses import dataclass, replace

import msgspec

from kubescene.errors import KubesceneError
from kubescene.experiments.executors.interface import told
from kubescene.results.cost.prices import Prices
from kubescene.results.measures import measures
from kubescene.results.measures.measure import Number
from kubescene.runs.local import RunResult, play
from kubescene.runs.requests import RunRequest
from kubescene.scheduler.framework.explain import Explain


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """A run, and the price list that its cost is measured by."""

    request: RunRequest
    prices: Prices | None = None


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a run. One with an ``error`` has no measures."""

    measures: dict[str, Number] = {}
    unmet: list[str] = []
    """The names of expectations that do not hold."""
    error: str = ""

    @property
    def is_fine(self) -> bool:
        return not self.error


def played(job: RunJob) -> RunOutcome:
    """Play a run; also that it failed is an outcome."""
    try:
        return outcome_of(play(unexplained(job.request)), job)
    except KubesceneError as error:
        return RunOutcome(error=" ".join(str(error).split()) or told(error))


def outcome_of(result: RunResult, job: RunJob) -> RunOutcome:
    if not result.ok:
        return RunOutcome(error=" ".join(result.message.split()) or f"it ended {result.phase}")
    unmet = [each.name for each in result.summary.unmet]
    return RunOutcome(measures=measures(result, job.prices, job.request.measures), unmet=unmet)


def unexplained(request: RunRequest) -> RunRequest:
    """The same run, which keeps no explanations: nobody reads them, and they are a third of it."""
    return replace(request, scheduler=replace(request.scheduler, explain=Explain.OFF))
