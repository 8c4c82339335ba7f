"""The updater: which pods go, in which order, and how many at once."""

from typing import Any

import pytest

from autoscalers.vertical.vertical_worlds import (
    START,
    in_mode,
    make_pod,
    make_vpa,
    policies,
    ranged,
)
from kubescene.autoscalers.vertical import UpdaterOptions, limit_ranges, seed_rule, update
from kubescene.autoscalers.vertical.evictions import ResizeAttempts
from kubescene.autoscalers.vertical.limits import amount_of
from kubescene.autoscalers.vertical.options import HOUR
from kubescene.autoscalers.vertical.updater import PaperHands, PodUpdate, assess
from kubescene.clock import MINUTE, format_time

UP = {"app": ranged("2", "1500m", "3")}
"""A pod that requests 1 core is below."""
NEAR = {"app": ranged("1050m", "500m", "3")}
INSIDE = {"app": ranged("2", "500m", "3")}


def pods(count: int, **given: Any) -> list[dict[str, Any]]:
    return [make_pod(f"web-{number}", **given) for number in range(count)]


def evicted(vpa: Any, live: list[dict[str, Any]], configured: int, **given: Any) -> list[str]:
    return list(update(vpa, live, {"web-rs": configured}, START, **given).evicted)


@pytest.mark.parametrize(
    ("live", "least", "allowed"),
    [(1, 2, 0), (1, 1, 1), (2, 2, 1), (3, 2, 1), (4, 2, 2), (5, 2, 2), (10, 2, 5)],
)
def test_evictions_of_one_loop(live: int, least: int, allowed: int) -> None:
    options = UpdaterOptions(min_replicas=least)
    found = update(make_vpa(recommended=UP), pods(live), {"web-rs": live}, START, options)
    assert len(found.evicted) == allowed
    assert found.events == ("EvictedByVPA", "EvictedPod") * allowed


def test_the_vpa_overrules_the_least_replicas() -> None:
    vpa = make_vpa(in_mode("Recreate", minReplicas=1), UP)
    assert evicted(vpa, pods(1), 1) == ["web-0"]


def test_pods_that_are_missing_already_count_against_the_budget() -> None:
    assert evicted(make_vpa(recommended=UP), pods(3), 6) == []


def test_pending_pods_may_always_go() -> None:
    live = [*pods(2), make_pod("web-2", phase="Pending")]
    assert evicted(make_vpa(recommended=UP), live, 4) == ["web-2"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("Job", 1), ("ReplicaSet", 0), ("DaemonSet", 0), ("Fleet", 3)],
)
def test_controllers_whose_count_nobody_told(kind: str, expected: int) -> None:
    """A Job has what it should have; of a kind that is not built in none has to stay."""
    live = pods(3, owner="batch", kind=kind)
    assert len(update(make_vpa(recommended=UP), live, {}, START).evicted) == expected


@pytest.mark.parametrize("mode", ["Off", "Initial"])
def test_some_modes_never_touch_a_pod(mode: str) -> None:
    assert evicted(make_vpa(in_mode(mode), UP), pods(4), 4) == []


def test_pods_without_a_controller_are_never_managed() -> None:
    orphan = make_pod("web-0", phase="Pending")
    orphan["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web-rs"}]
    vpa = make_vpa(recommended=UP)
    assert evicted(vpa, [orphan, *pods(3)[1:]], 2) == ["web-1"]


def test_pods_being_deleted_are_left_out() -> None:
    live = pods(2)
    live[0]["metadata"]["deletionTimestamp"] = format_time(START)
    assert evicted(make_vpa(recommended=UP), live, 2) == []


@pytest.mark.parametrize(
    ("recommended", "age", "accepted", "reason"),
    [
        (UP, 0, True, "outside of the recommended range"),
        (INSIDE, 12 * HOUR - 1, False, "too young"),
        (INSIDE, 12 * HOUR, True, "old enough"),
        (NEAR, 13 * HOUR, False, "near the target"),
    ],
)
def test_within_the_range_age_and_distance_decide(
    recommended: Any, age: int, accepted: bool, reason: str
) -> None:
    # The start of a pod is written in whole seconds.
    pod = make_pod(age=age - age % (60 * MINUTE))
    now = START + age % (60 * MINUTE)
    found = assess(make_vpa(recommended=recommended), pod, now).verdict
    assert found.accepted is accepted
    assert reason in found.reason


def test_a_pod_that_never_started_stays() -> None:
    pod = make_pod(startTime=None)
    assert "not started" in assess(make_vpa(recommended=INSIDE), pod, START).verdict.reason


def killed(after: int, name: str = "app") -> list[dict[str, Any]]:
    ended = {
        "reason": "OOMKilled",
        "startedAt": format_time(START - HOUR),
        "finishedAt": format_time(START - HOUR + after),
    }
    return [{"name": name, "lastState": {"terminated": ended}}]


@pytest.mark.parametrize(("after", "accepted"), [(9 * MINUTE, True), (10 * MINUTE, False)])
def test_a_pod_killed_soon_goes_at_once(after: int, accepted: bool) -> None:
    pod = make_pod(containerStatuses=killed(after))
    assert assess(make_vpa(recommended=INSIDE), pod, START).verdict.accepted is accepted


def test_a_pod_killed_soon_stays_if_it_has_the_target() -> None:
    pod = make_pod(containerStatuses=killed(MINUTE))
    vpa = make_vpa(recommended={"app": ranged("1", "500m", "3")})
    assert "but it has the target" in assess(vpa, pod, START).verdict.reason


def test_kills_of_containers_that_are_off_or_not_observed_do_not_count() -> None:
    off = make_vpa(policies({"containerName": "app", "mode": "Off"}), INSIDE)
    pod = make_pod(containerStatuses=killed(MINUTE))
    assert not assess(off, pod, START).verdict.accepted
    unseen = make_pod(
        containerStatuses=killed(MINUTE), annotations={"vpaObservedContainers": "other"}
    )
    assert not assess(make_vpa(recommended=INSIDE), unseen, START).verdict.accepted


@pytest.mark.parametrize(
    ("annotation", "outside"), [("app", True), ("", False), ("other", False), ("no t", True)]
)
def test_only_observed_containers_count_where_the_annotation_is_sound(
    annotation: str, outside: bool
) -> None:
    pod = make_pod(annotations={"vpaObservedContainers": annotation})
    assert assess(make_vpa(recommended=UP), pod, START).priority.is_outside is outside


@pytest.mark.parametrize(
    ("resources", "change", "goes"),
    [
        (["cpu"], "TargetHigherThanRequests", True),
        (["cpu"], "TargetLowerThanRequests", False),
        (["memory"], "TargetHigherThanRequests", False),
        (["memory", "cpu"], "TargetHigherThanRequests", True),
    ],
)
def test_eviction_requirements(resources: list[str], change: str, goes: bool) -> None:
    requirement = {"resources": resources, "changeRequirement": change}
    vpa = make_vpa(in_mode("Recreate", evictionRequirements=[requirement]), UP)
    requests = {"requests": {"cpu": "1", "memory": "1Gi"}}
    live = pods(2, containers={"app": requests})
    assert bool(evicted(vpa, live, 2)) is goes


def test_all_requirements_have_to_hold_but_a_missing_request_admits() -> None:
    up = {"resources": ["cpu"], "changeRequirement": "TargetHigherThanRequests"}
    down = {"resources": ["cpu"], "changeRequirement": "TargetLowerThanRequests"}
    vpa = make_vpa(in_mode("Recreate", evictionRequirements=[up, down]), UP)
    both = {"app": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    found = update(vpa, pods(2, containers=both), {"web-rs": 2}, START)
    assert found.evicted == ()
    assert found.reasons["web-0"] == "the eviction requirements are not met"
    assert len(evicted(vpa, pods(2), 2)) == 1


def test_the_reality_of_a_pod_is_its_status() -> None:
    resized = [{"name": "app", "resources": {"requests": {"cpu": "2"}}}]
    assert not assess(make_vpa(recommended=UP), make_pod(containerStatuses=resized), START)[
        2
    ].is_outside


# -- in place ----------------------------------------------------------------------------------

IN_PLACE = in_mode("InPlaceOrRecreate")


def resizing(kind: str, reason: str = "", message: str = "") -> list[dict[str, str]]:
    return [{"type": kind, "status": "True", "reason": reason, "message": message}]


def test_pods_are_resized_within_the_budget() -> None:
    found = update(make_vpa(IN_PLACE, UP), pods(4), {"web-rs": 4}, START)
    assert (found.resized, found.evicted) == (("web-0", "web-1"), ())
    assert found.events == ("InPlaceResizedByVPA",) * 2
    assert found.reasons["web-3"] == "the disruption budget of its controller is used up"


def test_without_a_recommendation_nothing_is_resized() -> None:
    options = UpdaterOptions(update_threshold=0.0, pod_lifetime_threshold=0)
    assert update(make_vpa(IN_PLACE), pods(4), {"web-rs": 4}, START, options).resized == ()


@pytest.mark.parametrize(
    ("kind", "reason", "waited", "goes"),
    [
        ("PodResizePending", "Infeasible", 0, True),
        ("PodResizePending", "Deferred", 5 * MINUTE, False),
        ("PodResizePending", "Deferred", 5 * MINUTE + 1, True),
        ("PodResizePending", "Strange", 0, True),
        ("PodResizeInProgress", "", 60 * MINUTE, False),
        ("PodResizeInProgress", "", 60 * MINUTE + 1, True),
        ("PodResizeInProgress", "Error", 0, True),
    ],
)
def test_a_resize_that_does_not_come_about_ends_in_an_eviction(
    kind: str, reason: str, waited: int, goes: bool
) -> None:
    live = [make_pod("web-0", conditions=resizing(kind, reason)), make_pod("web-1")]
    vpa = make_vpa(IN_PLACE, UP)
    seen = {"web-0": START - waited}
    found = update(vpa, live, {"web-rs": 2}, START, attempts=ResizeAttempts(dict(seen)))
    # The budget is for one: who is resized first is not evicted any more.
    assert ("web-0" in found.evicted) is (goes and "web-1" not in found.resized)
    alone = update(vpa, live[:1] * 2, {"web-rs": 2}, START, attempts=ResizeAttempts(dict(seen)))
    assert bool(alone.evicted) is goes


def test_the_first_sight_of_a_resize_is_remembered() -> None:
    attempts = ResizeAttempts()
    live = pods(2, conditions=resizing("PodResizePending", "Deferred"))
    vpa = make_vpa(IN_PLACE, UP)
    update(vpa, live, {"web-rs": 2}, START, attempts=attempts)
    assert attempts.first_seen == {"web-0": START, "web-1": START}
    found = update(vpa, live, {"web-rs": 2}, START + 6 * MINUTE, attempts=attempts)
    assert found.evicted == ("web-0",)


def test_a_resize_that_the_api_refuses_ends_in_an_eviction() -> None:
    vpa = make_vpa(IN_PLACE, UP)
    found = update(vpa, pods(4), {"web-rs": 4}, START, hands=PaperHands(("web-0",)))
    assert found.resized == ("web-1", "web-2")
    assert found.evicted == (), "the budget went to the resizes"
    alone = update(vpa, pods(2), {"web-rs": 2}, START, hands=PaperHands(("web-0", "web-1")))
    assert (alone.resized, alone.evicted) == ((), ("web-0",))


@pytest.mark.parametrize(
    ("resources", "sent"), [({}, True), ({"requests": {"cpu": "1"}}, False)], ids=["none", "some"]
)
def test_a_resize_without_any_amount_is_sent_only_to_fill_in_resources(
    resources: dict[str, Any], sent: bool
) -> None:
    """No resource is controlled; with a threshold of nothing an old pod is due anyway."""
    live = pods(2, containers={"app": resources}, age=13 * HOUR)
    vpa = make_vpa(IN_PLACE, {"app": {"target": {}}})
    found = update(vpa, live, {"web-rs": 2}, START, UpdaterOptions(update_threshold=0.0))
    assert (found.resized, found.evicted) == ((("web-0",), ()) if sent else ((), ("web-0",)))


def test_every_pod_that_was_looked_at_has_a_reason() -> None:
    live = [*pods(2), make_pod("web-2", {"app": {"requests": {"cpu": "2"}}}), make_pod("web-3")]
    found = update(make_vpa(recommended=UP), live, {"web-rs": 4}, START)
    assert found.reasons == {
        "web-0": "its requests are outside of the recommended range",
        "web-1": "its requests are outside of the recommended range",
        "web-2": "within the recommended range and too young",
        "web-3": "the disruption budget of its controller is used up",
    }


ONLY_IN_PLACE = in_mode("InPlace")
GATED = UpdaterOptions(in_place=True)
LESS = {"app": ranged("1900m", "1500m", "3")}


def resized(
    vpa: Any, live: list[dict[str, Any]], attempts: ResizeAttempts | None = None
) -> list[str]:
    found = update(vpa, live, {"web-rs": len(live)}, START, GATED, attempts=attempts)
    assert found.evicted == (), "mode InPlace never evicts"
    return list(found.resized)


def test_mode_in_place_needs_its_feature_gate() -> None:
    assert update(make_vpa(ONLY_IN_PLACE, UP), pods(4), {"web-rs": 4}, START) == PodUpdate()


def test_mode_in_place_resizes_beyond_the_budget() -> None:
    """Upstream tries deferred pods, and without budget a pod is deferred."""
    assert resized(make_vpa(ONLY_IN_PLACE, UP), pods(4)) == ["web-0", "web-1", "web-2", "web-3"]


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible", "Strange"])
def test_mode_in_place_tries_again_whatever_the_node_says(reason: str) -> None:
    live = pods(2, conditions=resizing("PodResizePending", reason))
    assert resized(make_vpa(ONLY_IN_PLACE, UP), live) == ["web-0", "web-1"]


@pytest.mark.parametrize(
    "condition",
    [resizing("PodResizePending", "Infeasible"), resizing("PodResizeInProgress", "Error")],
    ids=["infeasible", "error"],
)
def test_what_was_infeasible_is_tried_again_only_when_less_is_recommended(condition: Any) -> None:
    live, attempts = pods(2, conditions=condition), ResizeAttempts()
    assert resized(make_vpa(ONLY_IN_PLACE, UP), live, attempts) == ["web-0", "web-1"]
    assert resized(make_vpa(ONLY_IN_PLACE, UP), live, attempts) == []
    assert resized(make_vpa(ONLY_IN_PLACE, LESS), live, attempts) == ["web-0", "web-1"]
    found = update(
        make_vpa(ONLY_IN_PLACE, UP), live, {"web-rs": 2}, START, GATED, attempts=attempts
    )
    assert "nothing that is recommended now is lower" in found.reasons["web-0"]


def test_what_was_infeasible_is_forgotten_with_the_pod() -> None:
    live, attempts = (
        pods(2, conditions=resizing("PodResizePending", "Infeasible")),
        ResizeAttempts(),
    )
    resized(make_vpa(ONLY_IN_PLACE, UP), live, attempts)
    resized(make_vpa(ONLY_IN_PLACE, UP), live[:1] * 2, attempts)
    assert list(attempts.infeasible) == ["web-0"]


def test_what_a_policy_makes_of_a_recommendation_has_to_be_lower_too() -> None:
    live, attempts = (
        pods(2, conditions=resizing("PodResizePending", "Infeasible")),
        ResizeAttempts(),
    )
    resized(make_vpa(ONLY_IN_PLACE, UP), live, attempts)
    least = policies({"containerName": "app", "minAllowed": {"cpu": "2500m"}})
    assert resized(make_vpa(ONLY_IN_PLACE | least, LESS), live, attempts) == []


def test_mode_in_place_leaves_a_pod_whose_resize_is_refused() -> None:
    vpa = make_vpa(ONLY_IN_PLACE, UP)
    found = update(vpa, pods(2), {"web-rs": 2}, START, GATED, hands=PaperHands(("web-0",)))
    assert (found.resized, found.evicted) == (("web-1",), ())
    assert found.reasons["web-0"] == "the API refused the resize"


@pytest.mark.parametrize(("restart", "resized"), [("NotRequired", 1), ("RestartContainer", 0)])
def test_skipping_the_budget_needs_pods_that_need_no_restart(restart: str, resized: int) -> None:
    [pod] = pods(1)
    pod["spec"]["containers"][0]["resizePolicy"] = [
        {"resourceName": "cpu", "restartPolicy": restart}
    ]
    options = UpdaterOptions(in_place_skip_disruption_budget=True, eviction_tolerance=0.0)
    found = update(make_vpa(IN_PLACE, UP), [pod], {"web-rs": 2}, START, options)
    assert (len(found.resized), found.evicted) == (resized, ())


# -- the rule of the founding text ----------------------------------------------------------------


@pytest.mark.parametrize("mode", ["Off", "Recreate"])
def test_the_seed_rule_replaces_all_that_are_outside(mode: str) -> None:
    fits = make_pod("fits", {"app": {"requests": {"cpu": "2"}}})
    found = seed_rule(make_vpa(in_mode(mode), UP), [*pods(2), fits])
    assert found.evicted == ("web-0", "web-1")


def test_the_seed_rule_needs_a_recommendation() -> None:
    assert seed_rule(make_vpa(), pods(2)).evicted == ()


# -- limit ranges -------------------------------------------------------------------------------


def make_range(kind: str, **lists: dict[str, str]) -> dict[str, Any]:
    return {"kind": "LimitRange", "spec": {"limits": [{"type": kind} | lists]}}


def test_several_limit_ranges_combine() -> None:
    ranges = limit_ranges(
        [
            make_range("Container", max={"cpu": "4"}, min={"cpu": "1"}, default={"cpu": "3"}),
            make_range("Container", max={"cpu": "2", "memory": "1Gi"}, min={"cpu": "500m"}),
            make_range("Container", default={"cpu": "2"}),
        ]
    )
    assert ranges.pod is None
    assert ranges.container is not None
    assert [
        {name: str(amount) for name, amount in (each or {}).items()} for each in ranges.container
    ] == [{"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "2"}]


def test_a_container_without_a_recommendation_does_not_crash_a_pod_limit_range() -> None:
    """Where upstream dereferences nil."""
    ranges = limit_ranges([make_range("Pod", max={"cpu": "2"})])
    both = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    pod = make_pod(containers={"app": both, "bare": {}, "other": both})
    found = assess(make_vpa(recommended=UP), pod, START, ranges=ranges).fitted
    assert found is not None
    assert {each.container_name: str(amount_of(each.target, "cpu")) for each in found[0]} == {
        "app": "1333m",
        "other": "666m",
    }
    assert found.of("other") is not None
    assert found.of("other").upper_bound is None  # type: ignore[union-attr]


def test_memory_that_nobody_recommends_becomes_minus_one_under_a_pod_limit_range() -> None:
    """Upstream's rounding, which the API then refuses: not to be mended in silence."""
    ranges = limit_ranges([make_range("Pod", max={"memory": "100Mi"})])
    both = {"requests": {"memory": "200Mi"}, "limits": {"memory": "200Mi"}}
    pod = make_pod(containers={"app": both, "other": both})
    lists = {"app": {"target": {"cpu": "1"}}, "other": {"target": {"memory": "200Mi"}}}
    found = assess(make_vpa(recommended=lists), pod, START, ranges=ranges).fitted
    assert found is not None
    assert [str(amount_of(each.target, "memory")) for each in found.recommendations] == [
        "-1",
        "100Mi",
    ]
