"""The dispatcher: which autoscaler gets which message, in which order, and what it may answer.

To the world it looks like one autoscaler. `Dispatcher` holds all that are available; a run chooses
by the types of its objects and gets a `Partition`, which keeps the order that authors are promised:
``CREATE`` Autoscaler first, ``DELETE`` Autoscaler last, also when something failed in between.

- An event about an `Autoscaler` goes to the one that takes its type, one about a `Pod` to all of
  the run that want events, a stat to all that want stats.
- At most one of a run recommends numbers, and at most one sizes.
- Whatever an autoscaler raises is an `AutoscalerError` that names it and the call. So is an answer
  that makes no sense.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

import msgspec

from kubescene.autoscalers.interfaces import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    Pod,
    RecommendedPodResources,
    Stat,
    StatRequest,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.errors import AutoscalerError, ConfigurationError, KubesceneError

MOST_REPLICAS = (1 << 31) - 1
MOST_RESOURCES = (1 << 63) - 1
A = TypeVar("A")
Explained: TypeAlias = HorizontalRecommendationResponse | VerticalRecommendationResponse
_encode = msgspec.json.Encoder().encode


class Chosen(NamedTuple):
    """An autoscaler of a run, and the object that configures it."""

    plugin: AutoscalerPlugin
    object: Autoscaler

    def can(self, capability: Capability) -> bool:
        return capability in self.plugin.capabilities


class Dispatcher:
    """All autoscalers that runs can choose from. One dispatcher serves many runs."""

    def __init__(
        self,
        plugins: Sequence[AutoscalerPlugin] = (),
        *,
        partitions: Iterator[int] | None = None,
    ) -> None:
        self._plugins: list[AutoscalerPlugin] = []
        self._own: list[AutoscalerPlugin] = []
        self._by_type: dict[str, AutoscalerPlugin] = {}
        # Counted without a lock: runs may begin in several threads.
        self._partitions = count(1) if partitions is None else partitions
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: AutoscalerPlugin, *, shared: bool = False) -> None:
        """Make an autoscaler available. A later one takes the place of an earlier of its type.

        One that is ``shared`` with other dispatchers is left open by `close`; these need the same
        ``partitions``, for a plugin tells runs apart by them.
        """
        check_plugin(plugin)
        self._plugins.append(plugin)
        if not shared:
            self._own.append(plugin)
        for each in plugin.types:
            self._by_type[each] = plugin

    @property
    def types(self) -> list[str]:
        return sorted(self._by_type)

    def choose(self, object: Autoscaler) -> Chosen:
        """The autoscaler that takes this object; raises `ConfigurationError` if none does."""
        plugin = self._by_type.get(object.type)
        if plugin is None:
            known = ", ".join(self.types) or "none"
            raise ConfigurationError(
                f"no autoscaler takes objects of type {object.type!r}; available are: {known}"
            )
        return Chosen(plugin, object)

    def partition(self, objects: Sequence[Autoscaler]) -> "Partition":
        """A run of its own over the autoscalers that take these objects."""
        chosen = [self.choose(each) for each in objects]
        for capability in (
            Capability.HORIZONTAL_RECOMMENDATION,
            Capability.VERTICAL_RECOMMENDATION,
        ):
            able = [each.object.type for each in chosen if each.can(capability)]
            if len(able) > 1:
                raise ConfigurationError(
                    f"at most one autoscaler of a run can do {capability.name}: "
                    f"{', '.join(able)} all do"
                )
        for plugin in self._plugins:
            if sum(each.plugin is plugin for each in chosen) > 1:
                raise ConfigurationError(
                    f"a run has one object for each autoscaler, not several of {plugin.types[0]}"
                )
        return Partition(str(next(self._partitions)), chosen)

    def close(self) -> None:
        """Nobody will ask any more: every autoscaler may give back what it holds.

        Each is told, whoever fails; the first failure is an `AutoscalerError`.
        """
        failures = []
        for plugin in self._own:
            try:
                call(Chosen(plugin, Autoscaler(plugin.types[0])), "close", _close, plugin)
            except AutoscalerError as error:
                failures.append(error)
        if failures:
            raise failures[0]


class Partition:
    """One run's way to its autoscalers. A context manager: what was begun is ended."""

    def __init__(self, name: str, chosen: Sequence[Chosen]) -> None:
        self.name = name
        self._chosen = chosen
        self._measured = [each for each in chosen if each.can(Capability.STAT)]
        self._begun: list[Chosen] = []
        self._now = 0

    def wants(self, capability: Capability) -> bool:
        return any(each.can(capability) for each in self._chosen)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.end(self._now)
        except AutoscalerError:
            # What failed first is what is told.
            if error is None:
                raise

    def begin(self, now: int) -> None:
        """``CREATE`` Autoscaler, for each in the order of the run's objects."""
        for each in self._chosen:
            # Also one that fails in the middle of its creation is told to forget it.
            self._begun.append(each)
            self._tell(each, now, EventType.CREATE, each.object)

    def end(self, now: int) -> None:
        """``DELETE`` Autoscaler, once for each that was created; all are told, whoever fails."""
        begun, self._begun = self._begun, []
        failures = []
        for each in begun:
            try:
                self._tell(each, now, EventType.DELETE, each.object)
            except AutoscalerError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def pod(self, now: int, event: EventType, pod: Pod) -> None:
        for each in self._chosen:
            self._tell(each, now, event, pod)

    def stat(self, now: int, stats: tuple[Stat, ...]) -> None:
        self._now = now
        request = StatRequest(self.name, stats)
        for each in self._measured:
            call(each, "Stat", each.plugin.stat, request)

    def horizontal(self, now: int) -> tuple[str, HorizontalRecommendationResponse] | None:
        """Who recommends how many pods; None if nobody does."""
        self._now = now
        for each in self._chosen:
            if each.can(Capability.HORIZONTAL_RECOMMENDATION):
                request = HorizontalRecommendationRequest(self.name, now)
                name = "HorizontalRecommendation"
                answer = call(each, name, each.plugin.horizontal_recommendation, request)
                return each.object.type, checked_horizontal(each, name, answer)
        return None

    def vertical(self, now: int) -> tuple[str, VerticalRecommendationResponse] | None:
        """Who recommends which size; None if nobody does."""
        self._now = now
        for each in self._chosen:
            if each.can(Capability.VERTICAL_RECOMMENDATION):
                request = VerticalRecommendationRequest(self.name, now)
                name = "VerticalRecommendation"
                answer = call(each, name, each.plugin.vertical_recommendation, request)
                return each.object.type, checked_vertical(each, name, answer)
        return None

    def _tell(self, to: Chosen, now: int, event: EventType, object: Autoscaler | Pod) -> None:
        self._now = now
        if to.can(Capability.EVENT):
            request = EventRequest(self.name, now, event, object)
            call(to, f"Event {event.name} {type(object).__name__}", to.plugin.event, request)


def _close(plugin: AutoscalerPlugin) -> None:
    plugin.close()


def call(chosen: Chosen, name: str, method: Callable[[Any], A], request: Any) -> A:
    """Ask; whatever goes wrong is told with the autoscaler's type."""
    try:
        return method(request)
    except AutoscalerError:
        raise  # It is told already: one in another process has more to say about itself.
    except KubesceneError as error:
        raise AutoscalerError(str(error), autoscaler=chosen.object.type, call=name) from error
    except Exception as error:
        # Whatever the author's code raises.
        told = f"{type(error).__name__}: {error}"
        raise AutoscalerError(told, autoscaler=chosen.object.type, call=name) from error


def check_plugin(plugin: AutoscalerPlugin) -> None:
    """Raises `ConfigurationError` for what is no autoscaler."""
    name = type(plugin).__name__
    types, capabilities = getattr(plugin, "types", None), getattr(plugin, "capabilities", None)
    if not isinstance(types, tuple) or not types or not all(isinstance(t, str) for t in types):
        raise ConfigurationError(f"{name} needs types, such as types = ('hpa.v2.example.com',)")
    if not isinstance(capabilities, frozenset | set) or not capabilities:
        raise ConfigurationError(
            f"{name} needs capabilities, such as frozenset({{Capability.STAT}})"
        )
    for method in ("event", "stat", "horizontal_recommendation", "vertical_recommendation"):
        if not callable(getattr(plugin, method, None)):
            raise ConfigurationError(
                f"{name} has no method {method}: derive it from AutoscalerPlugin"
            )


def checked_horizontal(
    chosen: Chosen, name: str, answer: HorizontalRecommendationResponse
) -> HorizontalRecommendationResponse:
    if not isinstance(answer, HorizontalRecommendationResponse):
        raise _nonsense(chosen, name, f"the answer is no response but {answer!r}")
    if not _is_whole(answer.rec, MOST_REPLICAS):
        raise _nonsense(chosen, name, f"{answer.rec!r} is no number of pods")
    _check_words(chosen, name, answer)
    return answer


def checked_vertical(
    chosen: Chosen, name: str, answer: VerticalRecommendationResponse
) -> VerticalRecommendationResponse:
    if not isinstance(answer, VerticalRecommendationResponse):
        raise _nonsense(chosen, name, f"the answer is no response but {answer!r}")
    if not isinstance(answer.rec, tuple | list):
        raise _nonsense(chosen, name, f"rec is {answer.rec!r}, not a tuple of recommendations")
    for each in answer.rec:
        if not isinstance(each, RecommendedPodResources):
            raise _nonsense(chosen, name, f"{each!r} is no recommendation")
        for field in ("lower_bound", "upper_bound", "target"):
            value = getattr(each, field)
            if not _is_whole(value, MOST_RESOURCES):
                told = f"{field} of {each.resource_name} is {value!r}, not an amount"
                raise _nonsense(chosen, name, told)
    for field in ("evict", "resize"):
        names = getattr(answer, field)
        if not _are_names(names) and not (field == "evict" and names is None):
            raise _nonsense(chosen, name, f"{field} is {names!r}, not a tuple of names of pods")
    _check_words(chosen, name, answer)
    return answer


def _check_words(chosen: Chosen, name: str, answer: Explained) -> None:
    """They are written into the results, where they have to be read again."""
    if not isinstance(answer.reason, str):
        raise _nonsense(chosen, name, f"reason is {answer.reason!r}, not a text")
    if not isinstance(answer.details, dict):
        raise _nonsense(chosen, name, f"details is {answer.details!r}, not a dictionary")
    try:
        _encode((answer.reason, answer.details))
    except (TypeError, ValueError, RecursionError) as error:
        told = f"reason and details cannot be written as JSON: {error}"
        raise _nonsense(chosen, name, told) from error


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(each, str) for each in value)


def _is_whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _nonsense(chosen: Chosen, name: str, told: str) -> AutoscalerError:
    return AutoscalerError(told, autoscaler=chosen.object.type, call=name)
