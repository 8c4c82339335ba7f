"""The dispatcher: who is told what, in which order, and what becomes of those who fail."""

from collections.abc import Callable
from typing import Any

import pytest

from kubescene.autoscalers import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    Pod,
    RecommendedPodResources,
    Stat,
    StatRequest,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.dispatcher import Dispatcher, Partition
from kubescene.autoscalers.references import load_autoscaler
from kubescene.errors import AutoscalerError, ConfigurationError

STAT = Stat(5, "replica-1", MetricType.CPU_MILLIS, 500)
HORIZONTAL, VERTICAL = Capability.HORIZONTAL_RECOMMENDATION, Capability.VERTICAL_RECOMMENDATION


class Noting(AutoscalerPlugin):
    """Notes calls; answers what it is given, or raises it."""

    def __init__(self, kind: str, *capabilities: Capability, answer: Any = None) -> None:
        self.types = (kind,)
        self.capabilities = frozenset(capabilities or {Capability.EVENT, Capability.STAT})
        self.answer = answer
        self.notes: list[tuple[str, str]] = []
        self.fails_at = ""
        self.closed = False

    def event(self, request: EventRequest) -> None:
        self.note(f"{request.type.name} {type(request.object).__name__}", request.partition)

    def stat(self, request: StatRequest) -> None:
        self.note("Stat", request.partition)

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        self.note("Horizontal", request.partition)
        answer: HorizontalRecommendationResponse = self.answer
        return answer

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        self.note("Vertical", request.partition)
        answer: VerticalRecommendationResponse = self.answer
        return answer

    def close(self) -> None:
        self.closed = True

    def note(self, call: str, partition: str) -> None:
        self.notes.append((call, partition))
        if call == self.fails_at:
            raise ValueError("on purpose")

    @property
    def calls(self) -> list[str]:
        return [call for call, _ in self.notes]


def begun(partition: Partition) -> Partition:
    partition.begin(0)
    return partition


def test_autoscaler_events_go_by_type_pods_and_stats_to_all_of_the_run() -> None:
    one, two, idle = Noting("one"), Noting("two"), Noting("idle")
    dispatcher = Dispatcher([one, two, idle])
    with dispatcher.partition([Autoscaler("one"), Autoscaler("two")]) as partition:
        partition.begin(0)
        partition.pod(1, EventType.CREATE, Pod("replica-1"))
        partition.stat(2, (STAT,))
    expected = ["CREATE Autoscaler", "CREATE Pod", "Stat", "DELETE Autoscaler"]
    assert one.calls == two.calls == expected
    assert idle.calls == []


def test_capabilities_say_who_is_called() -> None:
    stats, events = Noting("stats", Capability.STAT), Noting("events", Capability.EVENT)
    with Dispatcher([stats, events]).partition(
        [Autoscaler("stats"), Autoscaler("events")]
    ) as partition:
        partition.begin(0)
        partition.stat(2, (STAT,))
        assert partition.horizontal(3) is None
        assert partition.vertical(3) is None
    assert stats.calls == ["Stat"]
    assert events.calls == ["CREATE Autoscaler", "DELETE Autoscaler"]
    assert partition.wants(Capability.STAT)
    assert not partition.wants(HORIZONTAL)


def test_partitions_are_numbered_and_kept_apart() -> None:
    plugin = Noting("one")
    dispatcher = Dispatcher([plugin])
    first, second = (dispatcher.partition([Autoscaler("one")]) for _ in range(2))
    first.begin(0)
    second.begin(0)
    first.end(9)
    second.end(9)
    assert [name for _, name in plugin.notes] == ["1", "2", "1", "2"]


def test_the_last_event_is_delete_also_when_something_fails() -> None:
    good, bad = Noting("good"), Noting("bad")
    bad.fails_at = "Stat"
    partition = Dispatcher([bad, good]).partition([Autoscaler("bad"), Autoscaler("good")])
    with (
        pytest.raises(AutoscalerError, match="autoscaler 'bad' at Stat: ValueError: on purpose"),
        begun(partition),
    ):
        partition.stat(1, (STAT,))
    assert bad.calls[-1] == good.calls[-1] == "DELETE Autoscaler"


def test_one_that_fails_to_forget_keeps_nobody_else_from_it() -> None:
    good, bad = Noting("good"), Noting("bad")
    bad.fails_at = "DELETE Autoscaler"
    partition = Dispatcher([bad, good]).partition([Autoscaler("bad"), Autoscaler("good")])
    partition.begin(0)
    with pytest.raises(AutoscalerError, match="'bad' at Event DELETE Autoscaler"):
        partition.end(1)
    assert good.calls[-1] == "DELETE Autoscaler"


def test_ended_once_is_ended() -> None:
    plugin = Noting("one")
    with Dispatcher([plugin]).partition([Autoscaler("one")]) as partition:
        partition.begin(0)
        partition.end(5)
    assert plugin.calls == ["CREATE Autoscaler", "DELETE Autoscaler"]


def test_an_object_that_nobody_takes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no autoscaler takes objects of type 'x'; avail"):
        Dispatcher([Noting("one")]).partition([Autoscaler("x")])


@pytest.mark.parametrize("capability", [HORIZONTAL, VERTICAL])
def test_at_most_one_of_a_run_recommends(capability: Capability) -> None:
    dispatcher = Dispatcher([Noting("one", capability), Noting("two", capability)])
    with pytest.raises(ConfigurationError, match=f"at most one .* {capability.name}: one, two"):
        dispatcher.partition([Autoscaler("one"), Autoscaler("two")])


def test_one_object_for_each_autoscaler() -> None:
    plugin = Noting("one")
    plugin.types = ("one", "uno")
    with pytest.raises(ConfigurationError, match="one object for each autoscaler"):
        Dispatcher([plugin]).partition([Autoscaler("one"), Autoscaler("uno")])


def test_a_later_one_takes_the_place_of_an_earlier_of_its_type() -> None:
    first, second = Noting("one"), Noting("one")
    dispatcher = Dispatcher([first, second])
    dispatcher.partition([Autoscaler("one")]).begin(0)
    assert (first.calls, second.calls) == ([], ["CREATE Autoscaler"])
    dispatcher.close()
    assert first.closed
    assert second.closed


@pytest.mark.parametrize("value", [float("nan"), 2.0, -1, True, "3", None, 1 << 31])
def test_a_number_of_pods_that_is_none(value: object) -> None:
    answer = HorizontalRecommendationResponse(value)  # type: ignore[arg-type]
    partition = Dispatcher([Noting("one", HORIZONTAL, answer=answer)]).partition(
        [Autoscaler("one")]
    )
    with pytest.raises(AutoscalerError, match=r"'one' at HorizontalRecommendation: .* no number"):
        partition.horizontal(1)


@pytest.mark.parametrize("field", ["lower_bound", "upper_bound", "target"])
@pytest.mark.parametrize("value", [float("nan"), -5, "1"])
def test_an_amount_that_is_none(field: str, value: object) -> None:
    amounts: dict[str, Any] = {"lower_bound": 1, "upper_bound": 2, "target": 1, field: value}
    rec = RecommendedPodResources(resource_name="cpu", **amounts)
    answer = VerticalRecommendationResponse((rec,))
    partition = Dispatcher([Noting("one", VERTICAL, answer=answer)]).partition([Autoscaler("one")])
    with pytest.raises(AutoscalerError, match=f"{field} of cpu is .* not an amount"):
        partition.vertical(1)


@pytest.mark.parametrize("capability", [HORIZONTAL, VERTICAL])
def test_an_answer_that_is_no_response(capability: Capability) -> None:
    partition = Dispatcher([Noting("one", capability, answer=7)]).partition([Autoscaler("one")])
    ask: Callable[[int], object] = (
        partition.horizontal if capability is HORIZONTAL else partition.vertical
    )
    with pytest.raises(AutoscalerError, match="the answer is no response but 7"):
        ask(1)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"rec": None}, "rec is None, not a tuple of recommendations"),
        ({"evict": "replica-1"}, "evict is 'replica-1', not a tuple of names of pods"),
        ({"evict": (1,)}, "not a tuple of names"),
        ({"resize": None}, "resize is None, not a tuple of names of pods"),
        ({"reason": None}, "reason is None, not a text"),
        ({"reason": "\ud800"}, "cannot be written as JSON"),
        ({"details": None}, "details is None, not a dictionary"),
        ({"details": {"seen": 1j}}, "cannot be written as JSON"),
    ],
    ids=str,
)
def test_an_answer_that_no_result_could_hold(fields: dict[str, Any], told: str) -> None:
    answer = VerticalRecommendationResponse(**fields)
    partition = Dispatcher([Noting("one", VERTICAL, answer=answer)]).partition([Autoscaler("one")])
    with pytest.raises(AutoscalerError, match=told):
        partition.vertical(1)


@pytest.mark.parametrize("fields", [{"reason": 3}, {"details": {"seen": 1j}}], ids=str)
def test_words_that_no_result_could_hold(fields: dict[str, Any]) -> None:
    answer = HorizontalRecommendationResponse(1, **fields)
    plugin = Noting("one", HORIZONTAL, answer=answer)
    with pytest.raises(AutoscalerError, match="'one' at HorizontalRecommendation: "):
        Dispatcher([plugin]).partition([Autoscaler("one")]).horizontal(1)


class Typeless(AutoscalerPlugin):
    capabilities = frozenset({Capability.EVENT})


class Incapable(AutoscalerPlugin):
    types = ("incapable",)


class Raising(AutoscalerPlugin):
    def __init__(self) -> None:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("nothing", "must be written as module:Class"),
        ("no.such.module:X", "cannot be imported"),
        ("autoscalers.test_dispatcher:Missing", "has no class Missing"),
        ("autoscalers.test_dispatcher:STAT", "has no class STAT"),
        ("autoscalers.test_dispatcher:Typeless", "Typeless needs types"),
        ("autoscalers.test_dispatcher:Incapable", "Incapable needs capabilities"),
        ("autoscalers.test_dispatcher:Raising", "cannot be made: RuntimeError"),
        ("pathlib:PurePath", "PurePosixPath needs types"),
    ],
)
def test_references_that_lead_to_no_autoscaler(reference: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        load_autoscaler(reference)


def test_a_reference_is_an_autoscaler() -> None:
    assert load_autoscaler("kubescene.autoscalers.concurrency:ConcurrencyPlugin").types
