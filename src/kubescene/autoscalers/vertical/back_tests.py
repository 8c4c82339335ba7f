"""What would have been recommended: a VerticalPodAutoscaler against a recorded series of samples.

::

    vpa = read_vpa(Path("vpa.yaml").read_text())
    result = back_test(vpa, [UsageSample(t * MINUTE, cpu=250, memory=3e8) for t in range(1440)])
    print(result.steps[-1].to_status())
    print(result.steps[-1].explain())

Pure: the same object, samples and options give the same result; no clock is read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from kubescene.autoscalers.vertical.amounts import CPU, MEMORY, units_of
from kubescene.autoscalers.vertical.histories import SampleError, UsageSample, checked
from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.autoscalers.vertical.recommendations import Recommendation
from kubescene.autoscalers.vertical.recommender import DEFAULT_OPTIONS, Recommender
from kubescene.clock import MINUTE
from kubescene.errors import ConfigurationError

MOST_STEPS = 1_000_000
"""Between two samples; more than that is a mistake in their times."""


class BackTestSubject(NamedTuple):
    """One resource of one container: ``cpu`` in millicores, ``memory`` in bytes."""

    container: str
    resource: str


class BackTestOutcome(msgspec.Struct, frozen=True):
    """How the target in force at the time would have served the samples that came under it.

    ``above`` samples used more than the target. The means are of usage and of the target.
    ``requested`` is what was requested in fact, if that was told; ``above_request`` samples used
    more than that.
    """

    samples: int
    above: int
    mean_usage: float
    mean_target: float
    requested: int | None = None
    above_request: int = 0


@dataclass(frozen=True, slots=True)
class VerticalBackTest:
    """All recommendations in order of time, and how they would have served.

    ``rejected`` counts samples that the recommender did not take: duplicates, or older than the
    last of their container.
    """

    steps: tuple[Recommendation, ...]
    outcomes: dict[BackTestSubject, BackTestOutcome]
    rejected: int


def back_test(
    vpa: VerticalPodAutoscaler,
    samples: Iterable[UsageSample],
    options: RecommenderOptions = DEFAULT_OPTIONS,
    *,
    every: int = MINUTE,
    requests: Mapping[str, int] | None = None,
) -> VerticalBackTest:
    """Replay samples, recommending after every ``every`` nanoseconds and at the end.

    A recommendation at a time knows all samples up to it, that time included. ``requests`` are
    what was requested in fact: millicores of ``cpu`` (or ``app/cpu`` of one container) and bytes
    of ``memory``.
    """
    if every <= 0:
        raise ConfigurationError(f"every: {every!r}; the interval has to be more than 0")
    replay = _Replay(Recommender(vpa, options), every, requests or {})
    for number, sample in enumerate(checked(samples)):
        replay.check_gap(sample.time, f"samples[{number}].time")
        replay.advance(sample.time)
        replay.take(sample)
    return replay.done()


@dataclass(slots=True)
class _Sums:
    samples: int = 0
    above: int = 0
    usage: int = 0
    target: int = 0
    requested: int | None = None
    above_request: int = 0


@dataclass(slots=True)
class _Replay:
    recommender: Recommender
    every: int
    requests: Mapping[str, int]
    due: int | None = None
    last: int = 0
    rejected: int = 0
    steps: list[Recommendation] = field(default_factory=list)
    targets: dict[BackTestSubject, int] = field(default_factory=dict)
    sums: dict[BackTestSubject, _Sums] = field(default_factory=dict)

    def check_gap(self, time: int, where: str) -> None:
        missing = 0 if self.due is None else (time - self.due) // self.every
        if missing > MOST_STEPS:
            raise SampleError(
                f"{where}: {missing:,} recommendations would be made before this sample; "
                "is the time in nanoseconds? Else take a longer interval"
            )

    def advance(self, time: int) -> None:
        """Make the recommendations that are due before a sample of this time."""
        if self.due is None:
            self.due = time + self.every
        while self.due < time:
            self._recommend(self.due)
            self.due += self.every
        self.last = time

    def take(self, sample: UsageSample) -> None:
        usage, where = self.recommender.usage, (sample.pod, sample.container)
        known = usage.pods.get(sample.pod)
        if known is None or sample.container not in known.containers:
            usage.set_pod(sample.pod, labels={}, containers=[sample.container], now=sample.time)
        if sample.oom:
            self.rejected += not usage.add_oom(*where, int(sample.memory or 0), sample.time)
            return
        if sample.cpu is not None:
            self._judge(BackTestSubject(sample.container, CPU), int(sample.cpu))
            self.rejected += not usage.add_cpu(*where, int(sample.cpu), sample.time)
        if sample.memory is not None:
            self._judge(BackTestSubject(sample.container, MEMORY), int(sample.memory))
            self.rejected += not usage.add_memory(*where, int(sample.memory), sample.time)

    def done(self) -> VerticalBackTest:
        if self.due is not None:
            self._recommend(max(self.last, self.due - self.every))
        outcomes = {subject: _outcome(sums) for subject, sums in sorted(self.sums.items())}
        return VerticalBackTest(tuple(self.steps), outcomes, self.rejected)

    def _recommend(self, now: int) -> None:
        recommendation = self.recommender.recommend(now)
        self.recommender.collect_garbage(now, has_controller=True)
        self.steps.append(recommendation)
        self.targets = _targets(recommendation)

    def _judge(self, subject: BackTestSubject, used: int) -> None:
        target = self.targets.get(subject)
        if target is None:
            return
        sums = self.sums.setdefault(subject, _Sums(requested=self._requested(subject)))
        sums.samples += 1
        sums.above += used > target
        sums.usage += used
        sums.target += target
        sums.above_request += sums.requested is not None and used > sums.requested

    def _requested(self, subject: BackTestSubject) -> int | None:
        of_all = self.requests.get(subject.resource)
        return self.requests.get(f"{subject.container}/{subject.resource}", of_all)


def _targets(recommendation: Recommendation) -> dict[BackTestSubject, int]:
    return {
        BackTestSubject(each.container_name, resource): units_of(resource, amount)
        for each in recommendation.recommended
        for resource, amount in (each.target or {}).items()
    }


def _outcome(sums: _Sums) -> BackTestOutcome:
    count = float(sums.samples)
    return BackTestOutcome(
        sums.samples,
        sums.above,
        sums.usage / count,
        sums.target / count,
        sums.requested,
        sums.above_request,
    )
