"""One object's autoscaler: what it was told, what it said, and what went wrong with it."""

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct

from kubescene.api.own_kinds import MOST
from kubescene.autoscalers.dispatcher import Dispatcher, Partition
from kubescene.autoscalers.interfaces import (
    Capability,
    HorizontalRecommendationResponse,
    Stat,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.vertical.amounts import MAX_AMOUNT, RESOURCES
from kubescene.controllers.builtin.autoscaling.plugins.messages import PodMessages
from kubescene.controllers.builtin.autoscaling.plugins.spec import PluginSpec
from kubescene.controllers.reconcile import Write
from kubescene.errors import AutoscalerError, ConfigurationError
from kubescene.types import JsonObject, Nanoseconds
from kubescene.usage.measuring import last_scrape

LONGEST = 1024
"""Of what an autoscaler says, so much is shown."""
UNKNOWN_TYPE, REFUSED, FAILED = "UnknownType", "ObjectRefused", "AutoscalerFailed"
NO_TARGET, NO_SCALE, INVALID = "TargetNotFound", "ScaleRefused", "InvalidSpec"
NO_SIZE, NO_CONTAINER = "SizeRefused", "ContainerNotFound"
QUESTIONS = (Capability.HORIZONTAL_RECOMMENDATION, Capability.VERTICAL_RECOMMENDATION)
A = TypeVar("A")


class PluginFault(Struct, frozen=True):
    """Why it does not work."""

    reason: str
    message: str


class Ticks:
    """Whole multiples of an interval from a beginning on."""

    def __init__(self, begun: Nanoseconds, interval: Nanoseconds) -> None:
        self.begun = begun
        self.interval = interval
        self.due = begun + interval

    def change(self, interval: Nanoseconds, now: Nanoseconds) -> None:
        if interval != self.interval:
            self.interval = interval
            self.pass_by(now)

    def pass_by(self, now: Nanoseconds) -> None:
        """The next one is after ``now``."""
        self.due = now - (now - self.begun) % self.interval + self.interval


class Hosted:
    """What is remembered of one object, from its ``CREATE`` to its ``DELETE``."""

    def __init__(self, uid: str, spec: PluginSpec, now: Nanoseconds) -> None:
        self.uid = uid
        self.spec = spec
        self.pods = PodMessages(spec.container)
        self.faults: dict[str, PluginFault] = {}
        """By what failed last."""
        self.horizontal = Ticks(now, spec.horizontal)
        self.vertical = Ticks(now, spec.vertical)
        self.planned: list[Write] = []
        """What the last pass has done, if nothing was refused."""
        self.said = self.asked_at = now
        """When it was told of a scrape, and asked, last."""
        self.desired: int | None = None
        self.status: JsonObject = {}
        """What it has done: goes into the status."""
        self._partition: Partition | None = None
        self._told_of_nobody = False

    @property
    def is_begun(self) -> bool:
        return self._partition is not None

    def is_of(self, uid: str, spec: PluginSpec) -> bool:
        """Whether it is still this object, with the same words for its autoscaler."""
        known = self.spec
        before = (self.uid, known.autoscaler, known.target, known.container)
        return before == (uid, spec.autoscaler, spec.target, spec.container)

    def follow(self, spec: PluginSpec, now: Nanoseconds) -> None:
        """The same object says other intervals, perhaps."""
        self.spec = spec
        self.horizontal.change(spec.horizontal, now)
        self.vertical.change(spec.vertical, now)

    def begin(self, dispatcher: Dispatcher, now: Nanoseconds) -> None:
        """Choose an autoscaler, and let it see the object."""
        try:
            partition = dispatcher.partition([self.spec.autoscaler])
        except ConfigurationError as error:
            self.faults["begin"] = PluginFault(UNKNOWN_TYPE, shortened(str(error)))
            return
        if not any(map(partition.wants, QUESTIONS)):
            told = f"the autoscaler of type {self.spec.autoscaler.type!r} recommends nothing"
            self.faults["begin"] = PluginFault(REFUSED, told)
            return
        self._partition = partition
        if self._try("begin", lambda: partition.begin(now), REFUSED) is None:
            self.end(now)

    def end(self, now: Nanoseconds) -> None:
        """It has to forget the object; whatever it says to that, nobody is there to hear it."""
        partition, self._partition = self._partition, None
        if partition is not None:
            try:
                partition.end(now)
            except AutoscalerError:
                return

    @property
    def wants_stats(self) -> bool:
        return self._partition is not None and self._partition.wants(Capability.STAT)

    @property
    def due(self) -> Nanoseconds:
        """When it is asked next."""
        return min(ticks.due for _, ticks in self._questions())

    def asked(self, now: Nanoseconds) -> set[Capability]:
        """What it is to be asked now; it is not asked that again before the next time."""
        due = [(question, ticks) for question, ticks in self._questions() if ticks.due <= now]
        for _, ticks in due:
            ticks.pass_by(now)
        return {question for question, _ in due}

    def _questions(self) -> list[tuple[Capability, Ticks]]:
        partition = self._partition
        assert partition is not None
        pairs = zip(QUESTIONS, (self.horizontal, self.vertical), strict=True)
        return [(question, ticks) for question, ticks in pairs if partition.wants(question)]

    def tell_pods(self) -> None:
        """What has happened to pods until now."""
        partition = self._partition
        assert partition is not None
        self.faults.pop("pods", None)
        failed: PluginFault | None = None
        for time, kind, pod in self.pods.news():
            if self._try("pods", partial(partition.pod, time, kind, pod)) is None:
                failed = failed or self.faults["pods"]
        if failed is not None:
            self.faults["pods"] = failed

    def tell_stats(self, now: Nanoseconds, stats: tuple[Stat, ...]) -> None:
        """What a scrape has seen, if that is anything."""
        partition = self._partition
        assert partition is not None
        self.said = last_scrape(now)
        if stats:
            self._try("stats", lambda: partition.stat(now, stats))

    def tell_of_nobody(self, now: Nanoseconds, stats: tuple[Stat, ...]) -> None:
        """Of requests without a pod: as long as there are some, and once that there are none."""
        partition = self._partition
        assert partition is not None
        is_some = any(each.value for each in stats)
        if is_some or self._told_of_nobody:
            self._try("requests", lambda: partition.stat(now, stats))
        self._told_of_nobody = is_some

    def ask(self, now: Nanoseconds) -> HorizontalRecommendationResponse | None:
        """How many pods there should be; None if there is no answer that makes sense."""
        partition = self._partition
        assert partition is not None
        tried = self._try("horizontal", lambda: partition.horizontal(now))
        if tried is None or tried.result is None:
            return None
        _, answer = tried.result
        if answer.rec > MOST:
            told = f"{answer.rec} pods are more than the {MOST} that one target may have"
            self.faults["horizontal"] = PluginFault(FAILED, told)
            return None
        return answer

    def ask_size(self, now: Nanoseconds) -> VerticalRecommendationResponse | None:
        """How large a pod should be; None if there is no answer that makes sense."""
        partition = self._partition
        assert partition is not None
        tried = self._try("vertical", lambda: partition.vertical(now))
        if tried is None or tried.result is None:
            return None
        _, answer = tried.result
        if told := _nonsense(answer):
            self.faults["vertical"] = PluginFault(FAILED, told)
            return None
        return answer

    def _try(self, name: str, call: Callable[[], A], reason: str = FAILED) -> "Answered[A] | None":
        """What came of a call; None if it failed, and then why is kept."""
        try:
            result = call()
        except AutoscalerError as error:
            self.faults[name] = PluginFault(reason, shortened(str(error)))
            return None
        self.faults.pop(name, None)
        return Answered(result)


class Answered(Struct, Generic[A], frozen=True):
    """What somebody else's code gave."""

    result: A


def _nonsense(answer: VerticalRecommendationResponse) -> str:
    """What a pod cannot be sized by."""
    names = [each.resource_name for each in answer.rec]
    for each in answer.rec:
        resource, low, high = each.resource_name, each.lower_bound, each.upper_bound
        if resource not in RESOURCES:
            return f"it sizes {shortened(resource)!r}: only {' and '.join(RESOURCES)} can be"
        if names.count(resource) > 1:
            return f"it says twice how much {resource} there should be"
        if max(each.target, low, high) > MAX_AMOUNT:
            return f"it recommends more {resource} than the {MAX_AMOUNT} that a pod may have"
        # Whoever replaces what is outside of the bounds would never come to an end.
        if answer.evict is None and not low <= each.target <= high:
            return f"its target of {resource}, {each.target}, is not from {low} to {high}"
    return ""


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
