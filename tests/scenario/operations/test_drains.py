"""``drainOperation``: what ``kubectl drain`` does, on virtual time."""

from typing import Any

import pytest

import kubescene
from budgets import budget, daemon_set, messages, outcomes, web
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.operations.drain_filters import DrainFilters, aggregate
from kubescene.testing import make_deployment, make_node, make_pod, make_replica_set
from kubescene.timeline import ObjectDeleted, ObjectPatched, OperationOutcome
from kubescene.types import JsonObject


def told(run: kubescene.Run) -> list[tuple[str, str, float]]:
    """State, subject and seconds of all that was told but waiting."""
    rows = run.tables["outcomes"].rows
    return [(each.state, each.subject, each.time_s) for each in rows if each.state != "Waiting"]


def on_nodes(run: kubescene.Run) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in run.cluster.list("pods"):
        found[pod["spec"]["nodeName"]] = found.get(pod["spec"]["nodeName"], 0) + 1
    return found


def small(*objects: Any, nodes: int = 2) -> ScenarioBuilder:
    node = make_node("n-$(INDEX)").cpu("8").label(zone="a")
    return ScenarioBuilder("s").create(node, count=nodes).create(*objects).step(2)


# -- the course of it ------------------------------------------------------------------------------


def test_all_nodes_are_cordoned_first_then_emptied_in_turn() -> None:
    run = kubescene.run(web(nodes=3).drain("n-1", "n-0", id="out").advance("1m").done())
    assert run.ok, run.message
    asked = [fact for fact in run.log if fact.is_asked and fact.id.startswith("out[")]
    cordons = [fact.name for fact in asked if isinstance(fact, ObjectPatched)]
    assert cordons == ["n-1", "n-0"]
    assert [fact.id for fact in asked] == [f"out[{number}]" for number in range(len(asked))]
    assert all(isinstance(fact, ObjectDeleted) for fact in asked[2:])
    # Pods take 2 s to end; the next node follows at once.
    assert told(run) == [("Drained", "n-1", 62), ("Drained", "n-0", 64), ("Completed", "", 64)]
    assert on_nodes(run) == {"n-2": 6}
    assert messages(run, "Completed") == ["2 nodes drained; 4 pods evicted"]


def test_the_nodes_of_a_selector_are_drained_by_name() -> None:
    scenario = web(nodes=2).create(make_node("other").cpu("8"))
    scenario.drain(selector={"matchLabels": {"zone": "a"}}, id="out").advance("1m").done()
    run = kubescene.run(scenario)
    assert [name for state, name, _ in told(run) if state == "Drained"] == ["n-0", "n-1"]
    assert on_nodes(run) == {"other": 6}


def test_a_budget_makes_it_wait_and_does_not_fail_the_scenario() -> None:
    run = kubescene.run(web(maxUnavailable=1).drain("n-0", id="out").advance("1m").done())
    assert run.ok, run.message
    assert told(run) == [("Drained", "n-0", 72), ("Completed", "", 72)]
    assert messages(run, "Completed") == [
        "1 node drained; 2 pods evicted, 1 of them had to wait for a budget"
    ]
    assert on_nodes(run).get("n-0", 0) == 0


def test_a_drain_that_can_never_end_is_bounded_by_the_scenario() -> None:
    run = kubescene.run(web(maxUnavailable=0).drain("n-0", "n-1", id="out").advance("1h").done())
    assert run.ok, run.message
    (state, _, seconds) = told(run)[-1]
    assert (state, seconds) == ("Unfinished", 3660)
    (message,) = messages(run, "Unfinished")
    assert message.startswith("node n-0 waits for default/web-")
    assert message.endswith("not begun: n-1; 0 pods evicted, 2 of them had to wait for a budget")
    assert len(messages(run, "Waiting")) == 2


def test_a_timeout_is_that_of_one_node() -> None:
    scenario = web(maxUnavailable=0).drain("n-0", "n-1", timeout="12s", id="out")
    run = kubescene.run(scenario.advance("5m").done())
    # kubectl sees that its time is over when it asks again: after 15 s.
    assert told(run) == [
        ("Warning", "n-0", 75),
        ("TimedOut", "n-0", 75),
        ("Warning", "n-1", 90),
        ("TimedOut", "n-1", 90),
        ("Incomplete", "", 90),
    ]
    pending = messages(run, "Warning")[0]
    assert pending.startswith('There are pending pods in node "n-0" when an error occurred: [error')
    assert pending.count(": pod/web-") == 1
    assert pending.count(", pod/web-") == 1
    first = messages(run, "TimedOut")[0]
    assert first.startswith('error: unable to drain node "n-0" due to error: [error when evicting')
    assert first.endswith(": global timeout reached: 12s], continuing command...")
    assert messages(run, "Incomplete") == ["There are pending nodes to be drained: n-0, n-1"]


def test_pods_that_stay_in_any_case_are_not_pending() -> None:
    scenario = web(maxUnavailable=0).create(daemon_set("agent"))
    scenario.drain("n-0", timeout="2s", ignoreDaemonSets=True, id="out").advance("1m").done()
    run = kubescene.run(scenario)
    pending = [each for each in messages(run, "Warning") if each.startswith("There are pending")]
    assert len(pending) == 1
    assert "pod/web-" in pending[0]
    assert "agent" not in pending[0]


def test_a_pod_that_does_not_end_is_waited_for_until_the_timeout() -> None:
    stuck = make_replica_set("stuck").build()
    stuck["spec"]["template"]["metadata"]["finalizers"] = ["example.com/never"]
    scenario = small(stuck).drain(selector={"matchLabels": {"zone": "a"}}, timeout="90s", id="out")
    run = kubescene.run(scenario.advance("5m").done())
    assert [each[0] for each in told(run)][:2] == ["Warning", "TimedOut"]
    assert told(run)[1][2] == 90, "at once, since it looks every second"
    assert "to terminate: context deadline exceeded, continuing" in messages(run, "TimedOut")[0]


def test_pods_that_should_be_gone_are_skipped_if_asked_for() -> None:
    stuck = make_replica_set("stuck").build()
    stuck["spec"]["template"]["metadata"]["finalizers"] = ["example.com/never"]
    scenario = small(stuck).drain("n-0", "n-1", skipWaitForDeleteTimeoutSeconds=20, id="out")
    run = kubescene.run(scenario.advance("5m").done())
    # Its kubelet has stopped it at once: 20 s later is not enough, more than that is.
    assert next(each for each in told(run) if each[0] == "Warning")[2] == 21
    (warning,) = messages(run, "Warning")
    assert warning.endswith("has DeletionTimestamp older than 20 seconds, skipping")
    assert told(run)[-1] == ("Completed", "", 21)


def test_without_an_advance_it_goes_as_far_as_it_can() -> None:
    scenario = (
        ScenarioBuilder("s")
        .create(make_node("n-$(INDEX)").cpu("8"), count=3)
        .create(make_deployment("web").replicas(6))
        .step(2)
    )
    run = kubescene.run(scenario.drain("n-0", "n-1", id="out").done())
    assert [state for state, _, _ in told(run)] == ["Drained", "Drained", "Completed"]
    assert on_nodes(run) == {"n-2": 6}


def test_a_deleted_pod_of_the_same_name_counts_as_gone() -> None:
    stateful = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": make_deployment("db").build()["spec"]["template"],
        },
    }
    run = kubescene.run(small(stateful, nodes=3).drain("n-0", "n-1", id="out").advance("1m").done())
    assert run.ok, run.message
    assert told(run)[-1][0] == "Completed"
    assert on_nodes(run) == {"n-2": 2}


def test_two_drains_go_on_beside_each_other() -> None:
    scenario = web(nodes=4).drain("n-0", id="one").drain("n-1", id="other").advance("1m").done()
    run = kubescene.run(scenario)
    drained = [each for each in told(run) if each[0] == "Drained"]
    assert drained == [("Drained", "n-0", 62), ("Drained", "n-1", 62)]


def test_a_node_that_is_not_there_ends_the_scenario_before_any_is_cordoned() -> None:
    run = kubescene.run(small().drain("n-0", "n-9", id="out"))
    assert not run.ok
    assert run.message == "step 2, operation 'out': drain was refused: nodes \"n-9\" not found"
    assert not run.cluster.get("nodes", "n-0")["spec"].get("unschedulable")


def test_a_selector_that_matches_no_node_is_told() -> None:
    run = kubescene.run(small().drain(selector={"matchLabels": {"zone": "z"}}, id="out").done())
    assert outcomes(run) == [("out", "Warning", "")]


def test_a_node_that_is_cordoned_already_is_not_written() -> None:
    cordoned = make_node("n").build()
    cordoned["spec"] = {"unschedulable": True}
    scenario = ScenarioBuilder("s").create(cordoned).step(2).drain("n", id="out")
    run = kubescene.run(scenario.done())
    assert [type(fact) for fact in run.log if fact.id.startswith("out")] == [OperationOutcome] * 2


# -- who goes and who stays ------------------------------------------------------------------------


def refused(run: kubescene.Run) -> str:
    (message,) = messages(run, "Refused")
    begins = 'error: unable to drain node "n-0" due to error: '
    assert message.startswith(begins)
    return message.removeprefix(begins).removesuffix(", continuing command...")


def test_a_pod_without_a_controller_keeps_all_others() -> None:
    scenario = small(make_pod("bare").on("n-0"), make_replica_set("web").replicas(4))
    run = kubescene.run(scenario.drain("n-0", "n-1", id="out").done())
    assert run.ok
    assert refused(run) == (
        "cannot delete Pods that declare no controller (use --force to override): default/bare"
    )
    assert [state for state, _, _ in told(run)] == ["Refused", "Drained", "Incomplete"]
    nodes = run.cluster.list("nodes")
    assert all(node["spec"]["unschedulable"] for node in nodes), "cordoned all the same"


def test_force_takes_it_away_with_a_warning() -> None:
    run = kubescene.run(small(make_pod("bare").on("n-0")).drain("n-0", force=True, id="out").done())
    assert messages(run, "Warning") == [
        "Warning: deleting Pods that declare no controller: default/bare"
    ]
    assert not run.cluster.list("pods")


def test_pods_of_daemon_sets_stay_in_any_case() -> None:
    scenario = small(daemon_set("agent"))
    run = kubescene.run(scenario.drain("n-0", id="out").done())
    assert "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)" in refused(
        run
    )
    again = small(daemon_set("agent")).drain("n-0", ignoreDaemonSets=True, id="out").done()
    run = kubescene.run(again)
    assert messages(run, "Warning")[0].startswith("Warning: ignoring DaemonSet-managed Pods: ")
    assert on_nodes(run) == {"n-0": 1, "n-1": 1}
    assert told(run)[-1][0] == "Completed"


def test_local_storage_needs_a_word() -> None:
    data = make_replica_set("data").build()
    data["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    nodes = {"selector": {"matchLabels": {"zone": "a"}}}
    run = kubescene.run(small(data, nodes=1).drain(**nodes, id="out").done())
    assert refused(run).startswith(
        "cannot delete Pods with local storage (use --delete-emptydir-data to override): default/"
    )
    run = kubescene.run(small(data, nodes=1).drain(**nodes, deleteEmptyDirData=True, id="o").done())
    # The last filter has the last word: kubectl loses this warning, too.
    assert messages(run, "Warning") == []
    assert told(run)[-1][0] == "Completed"


def test_several_errors_stand_in_brackets() -> None:
    bare = make_pod("bare").on("n-0")
    data = make_pod("data").on("n-0").build()
    data["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    run = kubescene.run(small(bare, data).drain("n-0", id="out").done())
    assert refused(run) == (
        "[cannot delete Pods that declare no controller (use --force to override): default/bare, "
        "cannot delete Pods with local storage (use --delete-emptydir-data to override): "
        "default/data]"
    )


def test_only_pods_of_the_pod_selector_are_looked_at() -> None:
    scenario = small(make_pod("bare").on("n-0"), make_replica_set("web").replicas(2))
    flags = {"podSelector": {"matchLabels": {"app": "web"}}}
    run = kubescene.run(scenario.drain("n-0", **flags, id="out").done())
    assert told(run)[-1][0] == "Completed"
    assert [
        pod["metadata"]["name"]
        for pod in run.cluster.list("pods")
        if pod["spec"]["nodeName"] == "n-0"
    ] == ["bare"]


def test_deleting_instead_of_evicting_does_not_ask_budgets() -> None:
    scenario = web(maxUnavailable=0).drain("n-0", disableEviction=True, id="out")
    run = kubescene.run(scenario.advance("1m").done())
    assert told(run) == [("Drained", "n-0", 62), ("Completed", "", 62)]
    assert messages(run, "Completed") == ["1 node drained; 2 pods deleted"]


def test_a_grace_period_is_passed_on() -> None:
    scenario = web().settings(kubelet={"terminateDelay": "20s"})
    run = kubescene.run(scenario.drain("n-0", gracePeriodSeconds=5, id="out").advance("1m").done())
    assert told(run)[0] == ("Drained", "n-0", 65)


class Reader:
    """A world without DaemonSets, or with one."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def get(self, ref: Any) -> JsonObject:
        if ref.name in self.names:
            return {}
        raise kubescene.errors.NotFoundError(f'daemonsets.apps "{ref.name}" not found')


def pod(phase: str = "Running", **metadata: Any) -> JsonObject:
    return {
        "metadata": {"name": "p", "namespace": "default", **metadata},
        "spec": {"volumes": metadata.pop("volumes", [])},
        "status": {"phase": phase},
    }


OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}
OWNED: JsonObject = {"ownerReferences": [OWNER]}
MIRRORED: JsonObject = {"annotations": {"kubernetes.io/config.mirror": "x"}}
LATE: JsonObject = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


MISSING = (False, "Error", 'daemonsets.apps "d" not found')
UNMANAGED = (False, "Error", "Pods that declare no controller (use --force to override)")
IGNORED = (False, "Warning", "ignoring DaemonSet-managed Pods")
GOES, STAYS = (True, "Okay", ""), (False, "Skip", "")


@pytest.mark.parametrize(
    ("flags", "given", "there", "expected"),
    [
        ({}, pod("Succeeded"), (), GOES),
        ({}, pod("Failed"), (), GOES),
        ({}, pod("Running"), (), UNMANAGED),
        ({}, pod(**MIRRORED), (), STAYS),
        ({"force": True}, pod(**MIRRORED), (), STAYS),
        ({}, pod(**OWNED), (), MISSING),
        ({"ignoreDaemonSets": True}, pod(**OWNED), (), MISSING),
        # Orphans go with force, and the last filter that is asked has the word.
        ({"force": True}, pod(**OWNED), (), GOES),
        ({}, pod("Succeeded", **OWNED), ("d",), GOES),
        ({"ignoreDaemonSets": True}, pod(**OWNED), ("d",), IGNORED),
        ({"skipWaitForDeleteTimeoutSeconds": 9}, pod(**LATE), (), STAYS),
        ({"skipWaitForDeleteTimeoutSeconds": 10}, pod(**LATE), (), UNMANAGED),
    ],
)
def test_filters(flags: Any, given: JsonObject, there: Any, expected: Any) -> None:
    now = kubescene.clock.parse_time("2026-01-01T00:00:10Z")
    filters = DrainFilters(flags, Reader(*there))  # type: ignore[arg-type]
    assert filters.verdict(given, now) == expected


def test_errors_are_told_once() -> None:
    assert aggregate(["a", "a"]) == "a"
    assert aggregate(["a", "b", "a"]) == "[a, b]"


def test_expectations_and_summary_see_it() -> None:
    scenario = small(make_pod("bare").on("n-0")).drain("n-0", id="out").done()
    scenario.expect("nothing refused", 'outcomes.all(o, o.state != "Refused")')
    scenario.expect("told", 'outcomes.exists(o, o.operation == "out" && o.kind == "Drain")')
    run = kubescene.run(scenario)
    assert [each.holds for each in run.summary.expectations] == [False, True]
    assert [each.state for each in run.summary.outcomes] == ["Refused", "Incomplete"]
    shown = [each for each in run.timeline if "outcome" in each]
    assert [each["outcome"]["state"] for each in shown] == ["Refused", "Incomplete"]
    assert shown[0]["operation"] == "Outcome"
    assert shown[0]["outcome"]["subject"] == "n-0"


def test_a_budget_of_a_pod_that_is_not_ready_lets_it_go() -> None:
    scenario = web(ready="1h", maxUnavailable=0)
    run = kubescene.run(scenario.drain("n-0", id="out").advance("1m").done())
    assert told(run)[-1][0] == "Unfinished"
    always = budget("web", maxUnavailable=0, unhealthyPodEvictionPolicy="AlwaysAllow")
    scenario = web(ready="1h").create(always)
    run = kubescene.run(scenario.drain("n-0", id="out").advance("1m").done())
    assert told(run)[-1][0] == "Completed"
