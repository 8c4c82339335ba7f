"""``evictOperation``: budgets count, and a refusal is no failure."""

import pytest

import kubescene
from budgets import budget, messages, outcomes, web
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import ObjectDeleted

APP = {"matchLabels": {"app": "web"}}


def evictions(run: kubescene.Run) -> list[tuple[str, int]]:
    """Ids and seconds since the scenario began, of pods that an operation took away."""
    start = run.log[0].time
    return [
        (fact.id, (fact.time - start) // 10**9)
        for fact in run.log
        if isinstance(fact, ObjectDeleted) and fact.is_asked
    ]


def test_one_pod_by_its_name() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n"), make_pod("a")).step(2)
    run = kubescene.run(scenario.evict("a", id="out").done())
    assert run.ok, run.message
    assert not run.cluster.list("pods")
    assert outcomes(run) == [("out", "Completed", "")]
    (event,) = [each for each in run.timeline if each["id"] == "out" and "delete" in each]
    assert event["delete"]["operation"] == {
        "typeMeta": {"apiVersion": "v1", "kind": "Pod"},
        "objectMeta": {"name": "a", "namespace": "default"},
        "subresource": "eviction",
    }


def test_a_refusal_is_tried_again_every_five_seconds_of_virtual_time() -> None:
    run = kubescene.run(web(maxUnavailable=1).evict(selector=APP, limit=3, id="out").advance("1m"))
    assert run.ok, run.message
    # The next replica is ready 7 s after the last eviction: asked for at 5 s, and at 10 s again.
    assert evictions(run) == [("out[0]", 60), ("out[1]", 70), ("out[2]", 80)]
    waiting = [outcome for outcome in outcomes(run) if outcome[1] == "Waiting"]
    assert len(waiting) == 2, "once for each pod, not for each try"
    assert outcomes(run)[-1] == ("out", "Completed", "")
    (first, _) = messages(run, "Waiting")
    name = waiting[0][2].removeprefix("default/")
    assert first == (
        f'error when evicting pods/"{name}" -n "default" (will retry after 5s): Cannot evict pod '
        "as it would violate the pod's disruption budget. The disruption budget web does not allow "
        "evicting pods currently"
    )


def test_without_time_it_stays_outstanding_and_is_told() -> None:
    run = kubescene.run(web(maxUnavailable=0).evict(selector=APP, limit=1, id="out").done())
    assert run.ok, run.message
    assert evictions(run) == []
    assert [state for _, state, _ in outcomes(run)] == ["Waiting", "Unfinished"]
    (message,) = messages(run, "Unfinished")
    assert "not evicted: default/web-" in message
    assert "The disruption budget web needs 6 healthy pods" in message


def test_what_is_outstanding_goes_on_in_a_later_step() -> None:
    scenario = web(maxUnavailable=1).evict(selector=APP, limit=2, id="out")
    run = kubescene.run(scenario.step(3).create(make_node("more")).advance("1m").done())
    assert [(each, seconds) for each, seconds in evictions(run)] == [("out[0]", 60), ("out[1]", 70)]
    assert outcomes(run)[-1] == ("out", "Completed", "")


@pytest.mark.parametrize(("timeout", "ends"), [("8s", 68), ("5s", 65), ("3s", 63)])
def test_a_timeout_ends_it(timeout: str, ends: int) -> None:
    scenario = web(maxUnavailable=0).evict(selector=APP, limit=1, timeout=timeout, id="out")
    run = kubescene.run(scenario.advance("1m").done())
    assert run.ok
    told = run.tables["outcomes"].rows
    assert [(each.state, each.time_s) for each in told][-1] == ("TimedOut", ends)


def test_a_pod_that_is_not_there_ends_the_scenario() -> None:
    run = kubescene.run(ScenarioBuilder("s").create(make_node("n")).step(2).evict("a", id="out"))
    assert not run.ok
    assert run.message == "step 2, operation 'out': evict was refused: pods \"a\" not found"


def test_a_pod_of_two_budgets_ends_the_scenario() -> None:
    scenario = web(maxUnavailable=1).create(
        {**budget("web", maxUnavailable=1), "metadata": {"name": "b"}}
    )
    run = kubescene.run(scenario.step(3).evict(selector=APP, id="out"))
    assert not run.ok
    assert "more than one PodDisruptionBudget" in run.message


def test_a_pod_that_goes_by_itself_is_not_waited_for() -> None:
    scenario = web(replicas=1, maxUnavailable=0).evict(selector=APP, id="out")
    scenario.step(3).delete_all("v1", "Pod", {"app": "web"}).advance("1m").done()
    run = kubescene.run(scenario)
    assert run.ok, run.message
    assert outcomes(run)[-1] == ("out", "Completed", "")


def test_a_selector_that_matches_no_pod_is_told() -> None:
    run = kubescene.run(web().evict(selector={"matchLabels": {"app": "wbe"}}, id="out").done())
    assert run.ok
    assert outcomes(run) == [("out", "Warning", "")]
    assert messages(run, "Warning") == ["the selector matches no pod"]
    assert run.summary.outcomes[0].message == "the selector matches no pod"
