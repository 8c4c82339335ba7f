"""When a pod that is deleted frees its room: the log tells it, or nobody could know."""

import kubescene
from kubescene.clock import SECOND
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Fact, ObjectDeleted, PodEnded, PodFinished, PodRestarted
from kubescene.timeline.log import from_lines


def deleting(pause: str = "1m", **kubelet: str) -> ScenarioBuilder:
    return (
        ScenarioBuilder("end")
        .settings(kubelet=kubelet)
        .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
        .step(2)
        .delete("v1", "Pod", "a", namespace="default")
        .advance(pause)
        .done()
    )


def endings(scenario: ScenarioBuilder) -> list[tuple[str, int]]:
    facts: list[Fact] = [
        fact for fact in kubescene.run(scenario).log if isinstance(fact, ObjectDeleted | PodEnded)
    ]
    return [(type(fact).__name__, (fact.time - facts[0].time) // SECOND) for fact in facts]


def test_a_deleted_pod_ends_when_its_kubelet_lets_it_go() -> None:
    told = [("ObjectDeleted", 0), ("PodEnded", 20)]
    assert endings(deleting(terminateDelay="20s")) == told


def test_without_delays_it_ends_at_once() -> None:
    assert endings(deleting()) == [("ObjectDeleted", 0), ("PodEnded", 0)]


def test_one_that_is_still_there_has_not_ended() -> None:
    assert endings(deleting("19s", terminateDelay="20s")) == [("ObjectDeleted", 0)]


def test_one_that_waits_is_removed_with_its_deletion() -> None:
    scenario = ScenarioBuilder("wait").create(make_pod("a")).step(2)
    run = kubescene.run(scenario.delete("v1", "Pod", "a", namespace="default").done())
    (deleted,) = (fact for fact in run.log if isinstance(fact, ObjectDeleted))
    assert not deleted.marked
    assert not [fact for fact in run.log if isinstance(fact, PodEnded)]


def test_a_pod_that_a_finalizer_holds_ends_once_its_kubelet_has_stopped_it() -> None:
    held = make_pod("a").cpu("1").build()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    scenario = (
        ScenarioBuilder("held")
        .create(make_node("n").cpu("4"), held)
        .step(2)
        .delete("v1", "Pod", "a", namespace="default")
        .step(3)
        .patch("v1", "Pod", "a", {"metadata": {"finalizers": None}}, namespace="default")
        .done()
    )
    (ended,) = (fact for fact in kubescene.run(scenario).log if isinstance(fact, PodEnded))
    assert ended.step.major == 2


def test_lines_keep_what_was_marked() -> None:
    log = kubescene.run(deleting()).log
    make, arguments = log.__reduce__()
    assert make is from_lines
    (deleted,) = (fact for fact in make(*arguments) if isinstance(fact, ObjectDeleted))
    assert deleted.marked


def ending(pause: str = "1m", policy: str = "Never", **annotations: str) -> ScenarioBuilder:
    """A pod of 1 of 4 cores whose containers end by themselves."""
    pod = (
        make_pod("a")
        .cpu("1")
        .annotate(
            {
                f"kubescene.dev/{name.replace('_', '-')}": value
                for name, value in annotations.items()
            }
        )
    )
    built = pod.build()
    built["spec"]["restartPolicy"] = policy
    return ScenarioBuilder("end").create(make_node("n").cpu("4"), built).advance(pause).done()


def test_a_pod_that_ends_by_itself_is_told_with_how_it_ended() -> None:
    log = kubescene.run(ending(run_time="30s", exit_code="3")).log
    (fact,) = (fact for fact in log if isinstance(fact, PodFinished))
    assert fact.time - log[0].time == 30 * SECOND
    assert (fact.namespace, fact.name, fact.node, fact.actor) == ("default", "a", "n", "kubelet")
    assert (fact.phase, fact.exit_code, fact.restarts, fact.reason) == ("Failed", 3, 0, "")
    assert [each.name for each in fact.objects()] == ["a"]
    assert [*log.of_object("Pod", "default", "a")][-1] is fact


def test_one_that_ends_well_has_the_exit_code_0() -> None:
    (fact,) = (f for f in kubescene.run(ending(run_time="0s")).log if isinstance(f, PodFinished))
    assert (fact.phase, fact.exit_code) == ("Succeeded", 0)


def test_a_pod_that_was_active_for_too_long_has_finished_for_that_reason() -> None:
    pod = make_pod("a").cpu("1").build()
    pod["spec"]["activeDeadlineSeconds"] = 20
    scenario = ScenarioBuilder("end").create(make_node("n").cpu("4"), pod).advance("1m").done()
    (fact,) = (f for f in kubescene.run(scenario).log if isinstance(f, PodFinished))
    assert (fact.phase, fact.reason, fact.exit_code) == ("Failed", "DeadlineExceeded", 137)


def test_containers_that_begin_again_are_told_each_time() -> None:
    scenario = ending("40s", "Always", run_time="10s", exit_code="1")
    log = kubescene.run(scenario).log
    facts = [fact for fact in log if isinstance(fact, PodRestarted)]
    assert [(f.time - log[0].time) // SECOND for f in facts] == [10, 30]
    assert [(f.container, f.restarts, f.exit_code, f.reason) for f in facts] == [
        ("main", 1, 1, "Error"),
        ("main", 2, 1, "Error"),
    ]
    assert not [fact for fact in log if isinstance(fact, PodFinished)]


def test_restarts_of_all_containers_are_counted_together() -> None:
    pod = make_pod("a").annotate({"kubescene.dev/run-time": "10s"}).build()
    pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "second"})
    scenario = ScenarioBuilder("two").create(make_node("n"), pod).advance("15s").done()
    facts = [f for f in kubescene.run(scenario).log if isinstance(f, PodRestarted)]
    assert [(f.container, f.restarts, f.exit_code) for f in facts] == [
        ("main", 1, 0),
        ("second", 2, 0),
    ]


def test_a_phase_that_an_operation_writes_is_told_once() -> None:
    scenario = (
        ScenarioBuilder("asked")
        .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
        .step(2)
        .patch(
            "v1",
            "Pod",
            "a",
            {"status": {"phase": "Succeeded"}},
            namespace="default",
            subresource="status",
        )
        .done()
    )
    run = kubescene.run(scenario)
    assert run.ok
    assert not [fact for fact in run.log if isinstance(fact, PodFinished)]


def test_a_pod_that_ends_while_it_is_deleted_has_ended_once() -> None:
    scenario = (
        ScenarioBuilder("both")
        .settings(kubelet={"terminateDelay": "20s"})
        .create(make_node("n").cpu("4"))
        .create(make_pod("a").cpu("1").annotate({"kubescene.dev/run-time": "10s"}))
        .step(2)
        .delete("v1", "Pod", "a", namespace="default")
        .advance("1m")
        .done()
    )
    assert [kind for kind, _ in endings(scenario)] == ["ObjectDeleted", "PodEnded"]
    assert not [fact for fact in kubescene.run(scenario).log if isinstance(fact, PodFinished)]
