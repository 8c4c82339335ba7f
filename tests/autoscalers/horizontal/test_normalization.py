"""Windows, rates and bounds: published rows, by their number (H65 to H87)."""

from collections.abc import Iterator, Sequence

import pytest

from kubescene.autoscalers.horizontal.behavior import (
    Limited,
    ReplicaRecommendation,
    ScaleEvent,
    ScalingHistory,
    changed_within,
    down_rate,
    limited,
    limited_down,
    limited_up,
    stabilized,
    stabilized_by_behavior,
    up_rate,
)
from kubescene.autoscalers.horizontal.specs import Policy, ScalingRules
from kubescene.durations import SECOND

NOW = 10**6 * SECOND

LEGACY = {
    "H65": (5, 7, 3, 8, 7, "DesiredWithinRange"),
    "H66": (3, 1, 2, 8, 2, "TooFewReplicas"),
    "H67": (20, 1000, 1, 10, 10, "TooManyReplicas"),
    "H68": (3, 1000, 1, 2000, 6, "ScaleUpLimit"),
    "H68-from-1": (1, 1000, 1, 2000, 4, "ScaleUpLimit"),
    "H68-at-limit": (3, 6, 1, 2000, 6, "DesiredWithinRange"),
    "H68-max-is-limit": (3, 9, 1, 6, 6, "TooManyReplicas"),
}


@pytest.mark.parametrize(
    ("current", "desired", "minimum", "maximum", "replicas", "reason"), LEGACY.values(), ids=LEGACY
)
def test_without_behavior(
    current: int, desired: int, minimum: int, maximum: int, replicas: int, reason: str
) -> None:
    found = limited(desired, current=current, minimum=minimum, maximum=maximum)
    assert (found.replicas, found.reason) == (replicas, reason)


def recommended(*rows: tuple[int, int]) -> ScalingHistory:
    """Recommendations by count and age in seconds."""
    return ScalingHistory(
        tuple(ReplicaRecommendation(count, NOW - age * SECOND) for count, age in rows)
    )


WINDOWS = {
    "H69-higher": (recommended((4, 120), (5, 60)), 5, 3),
    "H69-lower": (recommended((1, 120), (2, 60)), 3, 3),
    "H69-old": (recommended((10, 600), (9, 540)), 3, 2),
    "H69-mixed": (recommended((10, 600), (4, 60), (5, 120), (9, 540)), 5, 4),
    "H69-tie": (recommended((9, 300)), 9, 2),
}


@pytest.mark.parametrize(("history", "replicas", "length"), WINDOWS.values(), ids=WINDOWS)
def test_window_without_behavior(history: ScalingHistory, replicas: int, length: int) -> None:
    found = stabilized(3, history, window=300 * SECOND, now=NOW)
    assert (found.replicas, len(found.history.recommendations)) == (replicas, length)
    assert ReplicaRecommendation(3, NOW) in found.history.recommendations


def test_h69_the_last_old_slot_is_used_again() -> None:
    history = recommended((10, 600), (4, 60), (5, 120), (9, 540))
    found = stabilized(3, history, window=300 * SECOND, now=NOW)
    assert [each.replicas for each in found.history.recommendations] == [10, 4, 5, 3]


# -- rates ------------------------------------------------------------------------------------


def pods(value: int, period: int = 60) -> Policy:
    return Policy("Pods", value, period * SECOND)


def percent(value: int, period: int = 60) -> Policy:
    return Policy("Percent", value, period * SECOND)


def rules(*policies: Policy, select: str = "Max") -> ScalingRules:
    return ScalingRules(policies, select)


def events(*changes: int) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(change, NOW - 10 * SECOND) for change in changes)


DEFAULT_UP = rules(pods(4, 15), percent(100, 15))
NONE = ScalingHistory()
UP = {
    "H70-defaults": (10, 50, DEFAULT_UP, NONE, 20),
    "H70-pods": (10, 50, rules(pods(30)), NONE, 40),
    "H70-percent": (10, 50, rules(percent(200)), NONE, 30),
    "H70-both": (10, 500, rules(pods(100), percent(100)), NONE, 110),
    "H70-both-percent": (10, 500, rules(pods(2), percent(100)), NONE, 20),
    "H71": (3, 1000, rules(percent(1)), NONE, 4),
    "H72-pods": (100, 500, rules(pods(150, 120)), ScalingHistory((), events(1, 5, 9)), 235),
    "H72-percent": (100, 500, rules(percent(200, 120)), ScalingHistory((), events(1, 5, 9)), 255),
    "H72-spent": (100, 500, rules(pods(5, 120)), ScalingHistory((), events(1, 5, 9)), 100),
    "H73": (6, 24, rules(percent(300, 300)), ScalingHistory((), events(4), events(2)), 16),
}


@pytest.mark.parametrize(("current", "desired", "rule", "history", "replicas"), UP.values(), ids=UP)
def test_rate_upwards(
    current: int, desired: int, rule: ScalingRules, history: ScalingHistory, replicas: int
) -> None:
    found = limited_up(desired, rule, history, current=current, maximum=2000, now=NOW)
    assert (found.replicas, found.reason) == (replicas, "ScaleUpLimit")


def test_h74_the_maximum_is_below_the_rate() -> None:
    history = ScalingHistory((), events(1, 5, 9))
    found = limited_up(500, rules(pods(300)), history, current=100, maximum=200, now=NOW)
    assert (found.replicas, found.reason) == (200, "TooManyReplicas")


def test_a_bound_that_equals_the_rate_is_named_before_it() -> None:
    up = limited_up(50, rules(pods(10)), NONE, current=10, maximum=20, now=NOW)
    assert (up.replicas, up.reason) == (20, "TooManyReplicas")
    down = limited_down(0, rules(pods(5)), NONE, current=10, minimum=5, now=NOW)
    assert (down.replicas, down.reason) == (5, "TooFewReplicas")


DOWN = {
    "H75-pods": (100, 2, 0, rules(pods(20), percent(1)), NONE, 80, "ScaleDownLimit"),
    "H75-few": (100, 2, 0, rules(pods(2), percent(1)), NONE, 98, "ScaleDownLimit"),
    "H75-five": (10, 2, 0, rules(pods(5)), NONE, 5, "ScaleDownLimit"),
    "H76-pods": (10, 0, 1, rules(pods(100)), NONE, 1, "TooFewReplicas"),
    "H76-percent": (10, 2, 5, rules(percent(100)), NONE, 5, "TooFewReplicas"),
    "H77": (10, 5, 1, rules(percent(50)), NONE, 5, "DesiredWithinRange"),
    "H78-spent": (
        100, 2, 1, rules(pods(5, 120)), ScalingHistory((), (), events(1, 5, 9)),
        100, "ScaleDownLimit",
    ),
    "H78-percent": (
        100, 0, 1, rules(percent(50, 120)), ScalingHistory((), (), events(2, 4, 6)),
        56, "ScaleDownLimit",
    ),
    "H78-percent-spent": (
        100, 0, 1, rules(percent(10, 120)), ScalingHistory((), (), events(10, 10, 10)), 100,
        "ScaleDownLimit",
    ),
    "H79": (
        10, 1, 1, rules(percent(50, 180)), ScalingHistory((), events(2), events(4)),
        6, "ScaleDownLimit",
    ),
    "H79-wide": (
        10, 5, 1, rules(percent(1000, 120)), ScalingHistory((), (), events(30)),
        5, "DesiredWithinRange",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("current", "desired", "minimum", "rule", "history", "replicas", "reason"),
    DOWN.values(),
    ids=DOWN,
)
def test_rate_downwards(
    current: int,
    desired: int,
    minimum: int,
    rule: ScalingRules,
    history: ScalingHistory,
    replicas: int,
    reason: str,
) -> None:
    found = limited_down(desired, rule, history, current=current, minimum=minimum, now=NOW)
    assert (found.replicas, found.reason) == (replicas, reason)


def test_h80_the_smallest_change_can_be_selected() -> None:
    least = rules(pods(2), percent(50), select="Min")
    assert up_rate(least, NONE, current=1, now=NOW).replicas == 2
    assert down_rate(least, NONE, current=5, now=NOW).replicas == 3


def test_h80_a_direction_can_be_disabled() -> None:
    disabled = rules(pods(2), select="Disabled")
    assert up_rate(disabled, NONE, current=7, now=NOW).replicas == 7
    assert down_rate(disabled, NONE, current=7, now=NOW).replicas == 7


BEHAVIOR_WINDOWS = {
    "H81-down": (100, 3, recommended((4, 120), (5, 60)), 0, 180, 5),
    "H81-up": (1, 7, recommended((4, 120), (5, 60)), 300, 0, 4),
    "H81-up-free": (1, 3, recommended((4, 120), (5, 60)), 0, 300, 3),
    "H81-both-down": (2, 1, recommended((2, 6000), (3, 180)), 300, 300, 2),
    "H81-both-up": (2, 3, recommended((2, 6000), (1, 180)), 300, 300, 2),
    "H81-tie-down": (9, 3, recommended((9, 300)), 0, 300, 3),
    "H81-tie-up": (1, 9, recommended((1, 300)), 300, 0, 9),
}


@pytest.mark.parametrize(
    ("current", "proposal", "history", "up", "down", "replicas"),
    BEHAVIOR_WINDOWS.values(),
    ids=BEHAVIOR_WINDOWS,
)
def test_windows_of_behavior(
    current: int, proposal: int, history: ScalingHistory, up: int, down: int, replicas: int
) -> None:
    found = stabilized_by_behavior(
        proposal,
        history,
        current=current,
        up_window=up * SECOND,
        down_window=down * SECOND,
        now=NOW,
    )
    assert found.replicas == replicas


def test_h82_outdated_slots_are_marked_and_the_last_is_used_again() -> None:
    before = tuple(
        ScaleEvent(change, NOW - age * SECOND)
        for change, age in ((8, 29), (6, 59), (7, 61), (9, 61))
    )
    assert changed_within(before, 60 * SECOND, NOW) == 14
    after = ScalingHistory((), before).with_change(5, NOW, 60 * SECOND)
    slots = [(each.change, each.outdated) for each in after.scale_up_events]
    assert slots == [(8, False), (6, False), (7, True), (5, False)]
    down = ScalingHistory((), (), before).with_change(-5, NOW, 60 * SECOND)
    assert down.scale_down_events == after.scale_up_events


def test_h82_an_event_as_old_as_the_period_is_not_counted_but_not_outdated() -> None:
    before = (ScaleEvent(8, NOW - 60 * SECOND),)
    assert changed_within(before, 60 * SECOND, NOW) == 0
    assert len(ScalingHistory((), before).with_change(5, NOW, 60 * SECOND).scale_up_events) == 2


# -- over time --------------------------------------------------------------------------------


def played(
    start: int,
    proposal: int,
    *,
    up: ScalingRules | None = None,
    down: ScalingRules | None = None,
    up_window: int = 0,
    down_window: int = 0,
    bounds: tuple[int, int] = (1, 100),
) -> Iterator[int]:
    """The count after each tick of 15 s, with a proposal that never changes."""
    count, history, now = start, NONE, NOW
    minimum, maximum = bounds
    while True:
        history = history.seeded(count, now)
        if up is None or down is None:
            held = stabilized(proposal, history, window=down_window * SECOND, now=now)
            found = limited(held.replicas, current=count, minimum=minimum, maximum=maximum)
            history = held.history
        else:
            held = stabilized_by_behavior(
                proposal,
                history,
                current=count,
                up_window=up_window * SECOND,
                down_window=down_window * SECOND,
                now=now,
            )
            history = held.history
            found = Limited(held.replicas, "")
            if held.replicas > count:
                found = limited_up(
                    held.replicas, up, history, current=count, maximum=maximum, now=now
                )
            elif held.replicas < count:
                found = limited_down(
                    held.replicas, down, history, current=count, minimum=minimum, now=now
                )
            if found.replicas != count:
                rule = up if found.replicas > count else down
                history = history.with_change(found.replicas - count, now, rule.longest_period)
        count = found.replicas
        yield count
        now += 15 * SECOND


def first(ticks: Iterator[int], count: int) -> list[int]:
    return [next(ticks) for _ in range(count)]


DEFAULT_DOWN = rules(percent(100, 15))


def test_h83_the_way_up_without_behavior_and_with_its_defaults() -> None:
    assert first(played(1, 100), 6) == [4, 8, 16, 32, 64, 100]
    ticks = played(1, 100, up=DEFAULT_UP, down=DEFAULT_DOWN)
    assert first(ticks, 6) == [5, 10, 20, 40, 80, 100]


def test_h84_a_window_ends_a_tick_later_without_behavior() -> None:
    legacy = first(played(10, 2, down_window=300), 22)
    assert legacy == [10] * 21 + [2]
    ticks = played(10, 2, up=DEFAULT_UP, down=DEFAULT_DOWN, down_window=300)
    assert first(ticks, 21) == [10] * 20 + [2]


def changes(ticks: Sequence[int]) -> list[int]:
    return [count for at, count in enumerate(ticks) if not at or ticks[at - 1] != count]


def test_h85_one_pod_a_minute_and_ten_percent_a_minute() -> None:
    by_pods = first(played(10, 1, up=DEFAULT_UP, down=rules(pods(1))), 9)
    assert by_pods == [9] * 4 + [8] * 4 + [7]
    by_percent = first(played(80, 1, up=DEFAULT_UP, down=rules(percent(10))), 24)
    assert changes(by_percent) == [72, 64, 57, 51, 45, 40]


def test_h86_the_smaller_of_two_policies_upwards() -> None:
    least = rules(pods(5), percent(50), select="Min")
    ticks = first(played(4, 100, up=least, down=DEFAULT_DOWN), 20)
    assert ticks[:4] == [6] * 4
    assert changes(ticks) == [6, 9, 14, 19, 24]


def test_h87_an_upward_window_waits_for_the_lowest_to_leave() -> None:
    ticks = played(2, 10, up=DEFAULT_UP, down=DEFAULT_DOWN, up_window=60)
    assert first(ticks, 6) == [2, 2, 2, 2, 6, 10]


@pytest.mark.parametrize(("change", "stored"), [(2**31, -(2**31)), (2**31 + 4, 4 - 2**31)])
def test_a_change_that_int32_cannot_hold_wraps_around(change: int, stored: int) -> None:
    """From a count that overflowed back to the minimum."""
    assert NONE.with_change(change, NOW, 0).scale_up_events[0].change == stored
    assert NONE.with_change(-change, NOW, 0).scale_down_events[0].change == stored
