"""Times that programs outside write become the scenario's; everything else stays."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.clock import SECOND, format_micro_time, format_time, parse_time
from kubescene.outside.times import OPAQUE, is_time, with_scenario_times
from kubescene.types import JsonObject

SINCE = parse_time("2026-11-16T03:00:00.5Z")
UNTIL = parse_time("2026-11-16T03:10:00Z")
NOW = parse_time("2026-01-01T00:00:30.123456789Z")
REAL = "2026-11-16T03:04:05Z"
VIRTUAL = "2026-01-01T00:00:30Z"


def changed(body: Any) -> Any:
    return with_scenario_times(body, SINCE, UNTIL, NOW)


TIMES = [
    pytest.param(REAL, VIRTUAL, id="seconds"),
    pytest.param("2026-11-16T03:04:05.678901Z", "2026-01-01T00:00:30.123456Z", id="microseconds"),
    pytest.param("2026-11-16T03:04:05.1Z", "2026-01-01T00:00:30.1Z", id="one digit"),
    pytest.param("2026-11-16T03:04:05.123456789Z", f"{VIRTUAL[:-1]}.123456789Z", id="nano"),
    pytest.param("2026-11-16T03:04:05+00:00", "2026-01-01T00:00:30+00:00", id="as Python writes"),
    pytest.param("2026-11-16T05:04:05+02:00", VIRTUAL, id="another zone"),
    pytest.param("2026-11-15T22:04:05.25-05:00", "2026-01-01T00:00:30.12Z", id="in the west"),
    pytest.param("2026-11-16T03:00:00Z", VIRTUAL, id="the second in which it began"),
    pytest.param("2026-11-16T03:00:00.4Z", "2026-11-16T03:00:00.4Z", id="just before it began"),
    pytest.param("2026-11-16T02:59:59Z", "2026-11-16T02:59:59Z", id="before it began"),
    pytest.param("2026-11-16T03:10:00Z", VIRTUAL, id="now"),
    pytest.param("2026-11-16T03:10:01Z", "2026-11-16T03:10:01Z", id="ahead"),
    pytest.param(VIRTUAL, VIRTUAL, id="the scenario's own"),
    pytest.param("2026-01-01T00:00:10Z", "2026-01-01T00:00:10Z", id="an earlier one of it"),
    pytest.param("soon", "soon", id="no time"),
    pytest.param("2026-11-16", "2026-11-16", id="a day"),
    pytest.param("", "", id="empty"),
]


@pytest.mark.parametrize(("before", "after"), TIMES)
def test_a_time_of_the_run_becomes_the_scenarios(before: str, after: str) -> None:
    assert changed({"status": {"startTime": before}}) == {"status": {"startTime": after}}


PLACES: list[Any] = [
    {"status": {"conditions": [{"type": "A", "lastTransitionTime": REAL, "lastProbeTime": None}]}},
    {"status": {"conditions": [{"lastUpdateTime": REAL}, {"lastHeartbeatTime": REAL}]}},
    {"status": {"completionTime": REAL, "lastScheduleTime": REAL, "lastSuccessfulTime": REAL}},
    {"status": {"containerStatuses": [{"state": {"running": {"startedAt": REAL}}}]}},
    {"status": {"containerStatuses": [{"state": {"terminated": {"finishedAt": REAL}}}]}},
    {"spec": {"renewTime": REAL, "acquireTime": REAL}},
    {"spec": {"taints": [{"key": "k", "timeAdded": REAL}]}},
    {"metadata": {"creationTimestamp": REAL, "managedFields": [{"manager": "m", "time": REAL}]}},
    {"status": {"lastBackupTime": REAL}},
    [{"op": "replace", "path": "/status/startTime", "value": REAL}],
    [{"op": "add", "path": "/status/conditions/0", "value": {"lastTransitionTime": REAL}}],
    [{"op": "add", "path": "/status/conditions/-", "value": {"lastTransitionTime": REAL}}],
    [{"op": "replace", "path": "/status", "value": {"conditions": [{"lastProbeTime": REAL}]}}],
    [{"op": "replace", "path": "", "value": {"status": {"startTime": REAL}}}],
]


@pytest.mark.parametrize("body", PLACES, ids=str)
def test_times_are_found_in_objects_and_patches(body: Any) -> None:
    before = deepcopy(body)
    assert REAL not in str(changed(body))
    assert str(changed(body)) == str(before).replace(REAL, VIRTUAL)
    assert body == before


LEFT_ALONE: list[Any] = [
    {"metadata": {"annotations": {"example.com/restartedAt": REAL, "startTime": REAL}}},
    {"metadata": {"labels": {"startTime": REAL}}},
    {"kind": "ConfigMap", "data": {"startTime": REAL}},
    {"kind": "Secret", "stringData": {"startTime": REAL}},
    {"spec": {"containers": [{"env": [{"name": "startTime", "value": REAL}], "args": [REAL]}]}},
    {"status": {"message": REAL, "time": REAL, "startTime": [REAL], "endTime": 7}},
    [{"op": "test", "path": "/status/startTime", "value": REAL}],
    [{"op": "remove", "path": "/status/startTime"}],
    [{"op": "replace", "path": "/metadata/annotations/startTime", "value": REAL}],
    [{"op": "replace", "path": "/metadata/annotations", "value": {"startTime": REAL}}],
    [{"op": "add", "path": "/data/x~1startTime", "value": REAL}],
    [{"op": "add", "path": "/spec/args/0", "value": REAL}],
    [{"op": "add", "path": "/spec/startTime/0", "value": REAL}],
    [{"op": "replace", "path": 7, "value": REAL}, "nonsense", None],
    [{"op": "replace", "path": "/status/startTime"}],
    "text",
    None,
]


@pytest.mark.parametrize("body", LEFT_ALONE, ids=str)
def test_what_belongs_to_people_is_left_alone(body: Any) -> None:
    assert changed(body) is body


def test_a_name_with_a_slash_in_a_patch_is_read() -> None:
    patch = [{"op": "add", "path": "/status/a~1bTime", "value": REAL}]
    assert changed(patch) == [{"op": "add", "path": "/status/a~1bTime", "value": VIRTUAL}]


# -- whatever it is given ----------------------------------------------------------------------

NAMES = st.sampled_from(
    ["startTime", "lastTimestamp", "startedAt", "status", "message", "annotations", "data", "a/b"]
)
INSIDE = st.integers(SINCE // SECOND + 1, UNTIL // SECOND).map(lambda each: each * SECOND)
OUTSIDE = st.one_of(
    st.integers(0, SINCE // SECOND - 1), st.integers(UNTIL // SECOND + 1, 2**32)
).map(lambda each: each * SECOND)
STAMPS = st.one_of(
    INSIDE.map(format_time),
    INSIDE.map(format_micro_time),
    OUTSIDE.map(format_time),
    OUTSIDE.map(format_micro_time),
    st.sampled_from(["", "soon", "2026", REAL[:-1]]),
)
BODIES = st.recursive(
    st.one_of(STAMPS, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=20,
)


def as_expected(value: Any, name: str = "", *, opaque: bool = False) -> Any:
    """The rule once more, the slow way."""
    if isinstance(value, dict):
        return {
            key: as_expected(each, key, opaque=opaque or key in OPAQUE)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [as_expected(each, opaque=opaque) for each in value]
    if opaque or not is_time(name) or not isinstance(value, str):
        return value
    try:
        instant = parse_time(value)
    except ValueError:
        return value
    if not SINCE <= instant <= UNTIL:
        return value
    return format_micro_time(NOW) if "." in value else format_time(NOW)


@given(st.dictionaries(NAMES, BODIES, max_size=4))
def test_just_the_times_of_the_run_change(body: JsonObject) -> None:
    before = deepcopy(body)
    after = changed(body)
    assert after == as_expected(body)
    assert body == before
    assert changed(after) is after


@given(st.dictionaries(NAMES, BODIES, max_size=4))
def test_a_patch_says_the_same_as_the_object_that_it_makes(body: JsonObject) -> None:
    patch = [
        {"op": "add", "path": f"/{name.replace('/', '~1')}", "value": value}
        for name, value in body.items()
    ]
    assert changed(patch) == [
        {**each, "value": value} for each, value in zip(patch, changed(body).values(), strict=True)
    ]
