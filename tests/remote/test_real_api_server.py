"""Scenarios in a world that an API server holds.

Everything runs twice: against our own server in the place of a real one, and against a real
kube-apiserver with etcd where they are there (visibly skipped otherwise).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kubescene
from client.worlds import PATIENCE_S
from kubescene.actors import ENGINE, Actor
from kubescene.api.gates import OpenGate
from kubescene.api.kinds import LEASE, NAMESPACE, NODE, POD, SCENARIO
from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.clock import SECOND, ScaledClock
from kubescene.errors import ForbiddenError, InternalError, InvalidError
from kubescene.remote.webhook.certificates import make_certificate
from kubescene.results import open_run
from kubescene.runs.requests import read
from kubescene.scenario.phases import ResultsStrategy
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.timeline import OperationOutcome, PodScheduled, TimelineLog
from kubescene.types import JsonObject
from remote.api_servers import ApiServer, client_of, make_disposable
from remote.players import Stage, staged
from widgets import widget_definition

pytestmark = pytest.mark.xdist_group("real-api-server")

EXAMPLES = Path(__file__).parents[2] / "examples"
PLAYED = (
    "01-first-scenario",
    "02-rolling-update",
    "04-two-controllers",
    "05-draft-form",
    "06-time-passes",
    "07-node-fails",
    "09-preemption",
    "10-zone-lost",
    "11-devices",
    "12-expectations",
    "14-silent-zone",
)
ENDING = re.compile(r"(?<=-)[a-z0-9]{5}(?![a-z0-9])")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
WEBHOOKS = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


@pytest.fixture(params=["own", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    found: ApiServer = request.getfixturevalue(f"{request.param}_server")
    make_disposable(found)
    yield found
    leave_nothing(found)


@pytest.fixture
def stage(server: ApiServer, tmp_path: Path) -> Iterator[Stage]:
    with staged(server, tmp_path / "out") as found:
        yield found


def leave_nothing(server: ApiServer) -> None:
    """The Scenarios of a test are not there for the next one."""
    with client_of(server.outsider) as user:
        for each in user.list(SCENARIO):
            user.delete(ObjectRef.to(each))


def scenario(name: str, *operations: JsonObject, **spec: Any) -> JsonObject:
    return {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": name},
        "spec": {"operations": list(operations), **spec},
    }


def create(step: int, obj: JsonObject, **more: Any) -> JsonObject:
    id_ = f"{step}-{obj['kind']}-{obj['metadata']['name']}"
    return {"id": id_, "step": step, "createOperation": {"object": obj, **more}}


def done(step: int) -> JsonObject:
    return {"id": f"done-{step}", "step": step, "doneOperation": {}}


NODE_1 = make_node("n1").cpu("4").memory("8Gi").build()
POD_A = make_pod("a").cpu("1").build()


def placements(log: TimelineLog) -> list[tuple[str, str, str]]:
    """Step, pod and node of each bind, in order."""
    return [(str(it.step), it.name, it.node) for it in log if isinstance(it, PodScheduled)]


def told(log: TimelineLog) -> list[tuple[str, str, str]]:
    return [(str(fact.step), fact.actor, type(fact).__name__) for fact in log]


# -- the same as at home ---------------------------------------------------------------------------


@pytest.mark.parametrize("example", PLAYED)
def test_a_scenario_places_pods_as_in_the_embedded_world(stage: Stage, example: str) -> None:
    file = EXAMPLES / example / "scenario.yaml"
    expected = kubescene.run(file)
    played = stage.play(read(file))
    assert played["status"]["phase"] == str(expected.phase), played["status"].get("message")
    run = stage.player.scenarios.run_named(played["metadata"]["name"])
    assert run is not None
    assert placements(run.log) == placements(expected.log)
    assert told(run.log) == told(expected.log)
    assert played["status"]["scenarioResult"]["timeline"].keys() == (
        expected.scenario["status"]["scenarioResult"]["timeline"].keys()
    )


def drained() -> JsonObject:
    """Two nodes are emptied, of which a budget lets go one pod at a time; one has a bare pod."""
    nodes = [make_node(f"n{number}").cpu("8").build() for number in range(3)]
    web = make_deployment("web").replicas(6).build()
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": web["spec"]["selector"]},
    }
    bare = make_pod("bare").cpu("1").select(**{"kubernetes.io/hostname": "n1"}).build()
    drain = {"names": ["n0", "n1"], "timeout": "2m"}
    return scenario(
        "drained",
        *(create(1, obj) for obj in (*nodes, budget, web, bare)),
        {"id": "out", "step": 2, "drainOperation": drain},
        {"id": "wait", "step": 2, "advanceOperation": {"duration": "5m"}},
        done(2),
    )


def test_a_drain_goes_as_in_the_embedded_world(stage: Stage) -> None:
    expected = kubescene.run(drained())
    played = stage.play(drained())
    assert played["status"]["phase"] == str(expected.phase), played["status"].get("message")
    run = stage.player.scenarios.run_named("drained")
    assert run is not None
    outcomes = [fact for fact in expected.log if isinstance(fact, OperationOutcome)]
    states = [(fact.state, fact.subject) for fact in outcomes]
    assert ("Drained", "n0") in states
    assert ("Refused", "n1") in states
    found = [fact for fact in run.log if isinstance(fact, OperationOutcome)]
    assert [without_id(fact) for fact in found] == [without_id(fact) for fact in outcomes]


def test_results_tell_of_workloads_as_in_the_embedded_world(stage: Stage) -> None:
    """Roll-outs, budgets and counts over time: they are read from what was written."""
    asked = read(EXAMPLES / "16-a-rollout" / "scenario.yaml")
    expected = open_run(kubescene.run(asked))
    played = stage.play(asked)
    assert played["status"]["phase"] == "Succeeded", played["status"].get("message")
    run = stage.player.scenarios.run_named("a-rollout")
    assert run is not None
    found = open_run(run.log)
    for name in ("workloads", "rollouts", "budgets", "workload_series"):
        assert [*found.tables()[name]] == [*expected.tables()[name]]


def without_id(fact: OperationOutcome) -> tuple[str, str, str]:
    """What was told, without the endings of names that somebody else makes up."""
    return fact.state, ENDING.sub("?", fact.subject), ENDING.sub("?", fact.message)


def named(kind: str, name: str, api_version: str = "v1", namespace: str = "") -> JsonObject:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"typeMeta": {"apiVersion": api_version, "kind": kind}, "objectMeta": metadata}


def patch(step: int, target: JsonObject, text: str, **more: Any) -> JsonObject:
    id_ = f"{step}-patch-{target['objectMeta']['name']}"
    return {"id": id_, "step": step, "patchOperation": {**target, "patch": text, **more}}


def delete(step: int, target: JsonObject) -> JsonObject:
    id_ = f"{step}-delete-{target['objectMeta']['name']}"
    return {"id": id_, "step": step, "deleteOperation": target}


def mixed() -> JsonObject:
    """One of nearly everything that an operation can do."""
    web = make_deployment("web").replicas(2).template(make_pod("").cpu("100m")).build()
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 0, "selector": {"matchLabels": {"budgeted": "yes"}}},
    }
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}
    guarded = make_pod("b").cpu("100m").label(budgeted="yes").build()
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "by-hand"},
        "target": {"kind": "Node", "name": "n1"},
    }
    gated = make_pod("by-hand").cpu("1").build()
    gated["spec"]["schedulerName"] = "nobody"
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    held = make_pod("held").namespace("team").cpu("1").build()
    stays = make_pod("stays").cpu("1").build()
    stays["metadata"]["finalizers"] = ["example.com/never"]
    node = named("Node", "n1")
    settings = (
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"k": "v"}}'
    )
    apply = {"patchType": "application/apply-patch+yaml"}
    unready = '{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}'
    return scenario(
        "mixed",
        create(1, NODE_1),
        create(1, make_node("n2").cpu("2").memory("4Gi").build()),
        create(1, POD_A),
        create(1, web),
        create(1, guarded),
        create(1, budget),
        create(1, team),
        create(1, gated),
        create(1, stays),
        create(2, held),
        create(2, binding),
        patch(2, named("ConfigMap", "s", namespace="default"), settings, **apply),
        patch(
            2,
            named("Deployment", "web", "apps/v1"),
            '{"spec": {"replicas": 4}}',
            subresource="scale",
        ),
        patch(2, node, '{"metadata": {"labels": {"disk": "ssd"}}}'),
        patch(3, node, '{"metadata": {"labels": {"disk": "ssd"}}}'),  # changes nothing
        create(3, eviction),
        delete(3, named("Namespace", "team")),
        delete(3, named("Pod", "stays")),
        patch(3, named("Node", "n2"), unready, subresource="status"),
        delete(4, named("Deployment", "web", "apps/v1")),
        delete(4, named("Pod", "stays")),  # which is going already
        done(4),
    )


def test_everything_that_operations_do_happens_as_in_the_embedded_world(stage: Stage) -> None:
    asked = mixed()
    expected = kubescene.run(asked)
    assert expected.phase == "Succeeded", expected.message
    played = stage.play(asked)
    assert played["status"]["phase"] == "Succeeded", played["status"].get("message")
    run = stage.player.scenarios.run_named("mixed")
    assert run is not None
    assert placements(run.log) == placements(expected.log)
    assert told(run.log) == told(expected.log)


class Counting(OpenGate):
    """Lets everything through, and counts."""

    def __init__(self) -> None:
        self.asked = 0

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        del actor, resource_type, subresource, name
        self.asked += 1


def test_what_changes_nothing_asks_no_gate(stage: Stage) -> None:
    cluster, gate = stage.cluster, Counting()
    stage.play(scenario("still", create(1, NODE_1), done(1)))
    cluster.guard(gate)
    node = cluster.get("nodes", "n1")
    client = cluster.client(ENGINE)
    client.patch(ObjectRef(NODE, "n1"), {"metadata": {"name": "n1"}})
    client.update(dict(node))
    client.update(dict(node), subresource="status")
    assert gate.asked == 0
    client.patch(ObjectRef(NODE, "n1"), {"metadata": {"labels": {"a": "b"}}})
    assert gate.asked == 1


def test_what_an_object_says_of_time_is_the_scenario_s(stage: Stage) -> None:
    stage.play(scenario("times", create(1, NODE_1), create(1, POD_A), done(1)))
    pod = stage.cluster.get("pods", "a")
    assert pod["metadata"]["creationTimestamp"] == pod["status"]["startTime"]
    (bound,) = [it for it in pod["status"]["conditions"] if it["type"] == "PodScheduled"]
    assert bound["lastTransitionTime"] == pod["status"]["startTime"]
    held = stage.user.get(ObjectRef(POD, "a", "default"))
    assert held["metadata"]["creationTimestamp"] > pod["metadata"]["creationTimestamp"]


def test_kinds_can_be_defined_on_the_way(stage: Stage) -> None:
    definition = widget_definition()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    taken = {
        "id": "away",
        "step": 2,
        "deleteOperation": {
            "typeMeta": {"apiVersion": "apiextensions.k8s.io/v1", "kind": definition["kind"]},
            "objectMeta": {"name": "widgets.example.com"},
        },
    }
    first = [create(1, definition, createOptions={"fieldValidation": "Warn"}), create(1, widget)]
    played = stage.play(scenario("kinds", *first, taken, done(2)))
    assert played["status"]["phase"] == "Succeeded", played["status"].get("message")
    with pytest.raises(kubescene.errors.BadRequestError, match="no kind"):
        stage.cluster.scheme.of_kind("example.com/v1", "Widget")


# -- the wipe --------------------------------------------------------------------------------------


def test_a_cluster_that_is_not_disposable_is_left_alone(stage: Stage) -> None:
    system = ObjectRef(NAMESPACE, "kube-system")
    stage.user.patch(system, {"metadata": {"annotations": {"kubescene.dev/disposable": None}}})
    stage.user.create(make_pod("precious").build())
    try:
        untouched = make_node("untouched").cpu("4").build()
        played = stage.play(scenario("wipes", create(1, untouched), done(1)))
        assert played["status"]["phase"] == "Failed"
        assert "kubectl annotate namespace kube-system" in played["status"]["message"]
        assert stage.user.find(ObjectRef(POD, "precious", "default")) is not None
        assert stage.user.find(ObjectRef(NODE, "untouched")) is None
    finally:
        stage.user.delete(ObjectRef(POD, "precious", "default"))


def test_a_scenario_begins_with_an_empty_cluster(stage: Stage) -> None:
    user = stage.user
    held = make_pod("held").namespace("team").build()
    held["metadata"]["finalizers"] = ["example.com/never"]
    kept = make_node("kept").cpu("1").build()
    kept["metadata"]["annotations"] = {"kubescene.dev/keep": "true"}
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "of-the-system", "namespace": "kube-system"},
    }
    user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    account = {"name": "default", "namespace": "team"}
    if user.find(ObjectRef(GroupVersionKind("", "v1", "ServiceAccount"), **account)) is None:
        user.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    for obj in (held, kept, theirs, make_node("old").cpu("1").build()):
        user.create(obj)
    try:
        played = stage.play(scenario("anew", create(1, NODE_1), done(1)))
        assert played["status"]["phase"] == "Succeeded", played["status"].get("message")
        names = sorted(each["metadata"]["name"] for each in user.list(NODE))
        assert names == ["kept", "n1"]
        assert user.list(POD) == []
        assert user.find(ObjectRef(NAMESPACE, "team")) is None
        assert user.find(ObjectRef(CONFIG_MAP, "of-the-system", "kube-system")) is not None
    finally:
        user.delete(ObjectRef(NODE, "kept"))
        user.delete(ObjectRef(CONFIG_MAP, "of-the-system", "kube-system"))


def test_what_a_scenario_put_into_a_system_namespace_goes_with_the_next(stage: Stage) -> None:
    pod = make_pod("agent").namespace("kube-system").build()
    for name in ("first", "second"):
        played = stage.play(scenario(name, create(1, NODE_1), create(1, pod), done(1)))
        assert played["status"]["phase"] == "Succeeded", played["status"].get("message")


# -- the life of a scenario ------------------------------------------------------------------------


def test_a_paused_scenario_goes_on_when_its_author_adds_to_it(stage: Stage) -> None:
    played = stage.play(scenario("grows", create(1, NODE_1)))
    assert played["status"]["phase"] == "Paused"
    more = [
        {"op": "add", "path": "/spec/operations/-", "value": each}
        for each in (create(1, make_node("late").cpu("1").build()), create(2, POD_A), done(2))
    ]
    stage.user.patch(ObjectRef(SCENARIO, "grows"), more, patch_type=PatchType.JSON)
    while stage.phase("grows") != "Succeeded":
        stage.player.turn(0.2)
    status = stage.user.get(ObjectRef(SCENARIO, "grows"))["status"]
    assert [each["id"] for each in status["ignoredOperations"]] == ["1-Node-late"]
    assert list(status["scenarioResult"]["timeline"]) == ["1", "2"]


def test_another_scenario_waits_for_its_turn(stage: Stage) -> None:
    stage.play(scenario("first", create(1, NODE_1)))
    stage.user.create(scenario("second", create(1, NODE_1), done(1)))
    while stage.phase("second") != "Pending":
        stage.player.turn(0.2)
    status = stage.user.get(ObjectRef(SCENARIO, "second"))["status"]
    assert status["message"] == 'scenario "first" comes first'
    stage.user.delete(ObjectRef(SCENARIO, "first"))
    assert stage.go_on("second")["status"]["phase"] == "Succeeded"


def test_what_another_controller_left_under_way_has_failed(
    server: ApiServer, tmp_path: Path
) -> None:
    with staged(server, tmp_path / "one") as stage:
        stage.play(scenario("left", create(1, NODE_1)))
    with client_of(server.outsider) as user:  # who puts back what a process that is killed leaves
        patch = {"status": {"phase": "Running"}}
        user.patch(ObjectRef(SCENARIO, "left"), patch, subresource="status")
    with staged(server, tmp_path / "two") as stage:
        status = stage.go_on("left")["status"]
    assert status["phase"] == "Failed"
    assert status["message"] == "the controller restarted while the Scenario was running"


def test_a_played_scenario_whose_status_is_set_back_has_failed(stage: Stage) -> None:
    stage.play(scenario("back", create(1, NODE_1), done(1)))
    back = ObjectRef(SCENARIO, "back")
    stage.user.patch(back, {"status": {"phase": "Running"}}, subresource="status")
    while stage.phase("back") == "Running":
        stage.player.turn(0.2)
    status = stage.user.get(back)["status"]
    assert status["phase"] == "Failed"
    assert status["message"] == "the controller restarted while the Scenario was running"


def test_the_end_of_a_scenario_may_be_shown_late(stage: Stage) -> None:
    """What the server shows until then is not taken for somebody else's doing."""
    stage.user.create(scenario("late", create(1, NODE_1), done(1)))
    while stage.player.scenarios.run_named("late") is None:
        stage.player.turn(0.2)
    scenarios = stage.player.scenarios
    scenarios.look()
    assert scenarios.moments() is None
    assert stage.go_on("late")["status"]["phase"] == "Succeeded"
    for _ in range(3):
        stage.player.turn(0.1)
    assert stage.phase("late") == "Succeeded"


def test_who_is_stopped_says_so(server: ApiServer, tmp_path: Path) -> None:
    with staged(server, tmp_path) as stage:
        stage.play(scenario("stopped", create(1, NODE_1)))
    with staged(server, tmp_path) as stage:
        status = stage.user.get(ObjectRef(SCENARIO, "stopped"))["status"]
    assert status["phase"] == "Failed"
    assert status["message"] == "the controller was stopped while the Scenario was running"


def test_programs_outside_are_refused_before_anything_is_touched(stage: Stage) -> None:
    stage.play(scenario("before", create(1, NODE_1), done(1)))
    outside = {"outside": [{"name": "mine", "kind": "operator"}]}
    controllers = {"simulationControllers": {"enabled": [{"name": "kube-scheduler"}]}, **outside}
    played = stage.play(scenario("others", create(1, POD_A), done(1), controllers=controllers))
    assert played["status"]["phase"] == "Failed"
    assert "controllers.outside" in played["status"]["message"]
    assert stage.user.find(ObjectRef(NODE, "n1")) is not None


# -- results ---------------------------------------------------------------------------------------


def test_results_come_when_the_strategy_says(server: ApiServer, tmp_path: Path) -> None:
    with staged(server, tmp_path, results=ResultsStrategy.ON_DONE) as stage:
        played = stage.play(scenario("later", create(1, NODE_1)))
        assert played["status"]["scenarioResult"].get("timeline", {}) == {}
        end = [{"op": "add", "path": "/spec/operations/-", "value": done(2)}]
        stage.user.patch(ObjectRef(SCENARIO, "later"), end, patch_type=PatchType.JSON)
        while stage.phase("later") != "Succeeded":
            stage.player.turn(0.2)
        timeline = stage.user.get(ObjectRef(SCENARIO, "later"))["status"]["scenarioResult"]
        assert list(timeline["timeline"]) == ["1", "2"]


def test_a_timeline_that_is_too_large_stays_in_the_run_directory(
    server: ApiServer, tmp_path: Path
) -> None:
    big = make_pod("big-$(INDEX)").cpu("1m").build()
    big["metadata"]["annotations"] = {"text": "x" * 50_000}
    counted = {"id": "many", "step": 1, "createOperation": {"count": 12, "object": big}}
    with staged(server, tmp_path) as stage:
        played = stage.play(scenario("large", create(1, NODE_1), counted, done(1)))
    assert played["status"]["phase"] == "Succeeded", played["status"].get("message")
    result = played["status"]["scenarioResult"]
    assert result.get("timeline", {}) == {}
    assert "larger than the API server can store" in result["message"]
    bound = [it for it in open_run(result["storedAt"]).facts() if isinstance(it, PodScheduled)]
    assert len(bound) == 12


@pytest.mark.parametrize("server", ["real"], indirect=True)
def test_a_timeline_that_the_server_itself_finds_too_large_stays_out(
    server: ApiServer, tmp_path: Path
) -> None:
    """Our own takes objects of any size."""
    big = make_pod("big-$(INDEX)").cpu("1m").build()
    big["metadata"]["annotations"] = {"text": "x" * 50_000}
    counted = {"id": "many", "step": 1, "createOperation": {"count": 12, "object": big}}
    with staged(server, tmp_path, most_bytes=10_000_000) as stage:
        played = stage.play(scenario("larger", create(1, NODE_1), counted, done(1)))
    assert played["status"]["phase"] == "Succeeded", played["status"].get("message")
    assert "storedAt" in played["status"]["scenarioResult"]


def test_a_node_that_joins_wakes_nobody_whom_it_does_not_help(stage: Stage) -> None:
    """The taint that a real server gives new nodes, and that is taken away again, is not shown."""
    picky = make_pod("picky").cpu("1").build()
    picky["spec"]["nodeSelector"] = {"disk": "ssd"}
    nodes = [make_node(name).cpu("4").memory("8Gi").build() for name in ("n1", "n2")]
    played = scenario("joins", create(1, nodes[0]), create(2, picky), create(3, nodes[1]), done(4))
    expected = kubescene.run(played)
    assert [type(fact).__name__ for fact in expected.log].count("PodUnscheduled") == 1
    stage.play(played)
    run = stage.player.scenarios.run_named("joins")
    assert run is not None
    assert told(run.log) == told(expected.log)


# -- keeping others away ---------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["create", "change", "delete"])
def test_without_a_webhook_what_others_write_ends_the_scenario(stage: Stage, verb: str) -> None:
    stage.play(scenario("mine", create(1, NODE_1), create(1, POD_A)))
    user = stage.user
    if verb == "create":
        user.create(make_pod("intruder").build())
        what = 'pods "intruder" was created by tester'
    elif verb == "change":
        user.patch(ObjectRef(NODE, "n1"), {"metadata": {"labels": {"a": "b"}}})
        what = 'nodes "n1" was changed by tester'
    else:
        user.delete(ObjectRef(NODE, "n1"))
        what = 'nodes "n1" was deleted by'
    while stage.phase("mine") == "Paused":
        stage.player.turn(0.2)
    status = stage.user.get(ObjectRef(SCENARIO, "mine"))["status"]
    assert status["phase"] == "Failed"
    assert status["message"].startswith(what)
    assert "--webhook-port" in status["message"]


@pytest.fixture
def guarded(real_server: ApiServer, tmp_path: Path) -> Iterator[Stage]:
    make_disposable(real_server)
    with staged(real_server, tmp_path / "out") as stage:
        stage.player.admit_by(make_certificate("127.0.0.1"), "127.0.0.1", 0)
        yield stage
    leave_nothing(real_server)


def test_outsiders_are_refused_while_a_scenario_has_the_cluster(guarded: Stage) -> None:
    user = guarded.user
    played = guarded.play(scenario("mine", create(1, NODE_1), create(1, POD_A)))
    assert played["status"]["phase"] == "Paused", played["status"].get("message")
    refusal = 'scenario "mine" is Paused, and somebody is not one of its controllers'
    with pytest.raises(ForbiddenError, match=refusal):
        user.create(make_pod("intruder").build())
    with pytest.raises(ForbiddenError, match=refusal):
        user.delete(ObjectRef(POD, "a", "default"))
    with pytest.raises(ForbiddenError, match=refusal):
        user.patch(ObjectRef(NODE, "n1"), {"metadata": {"labels": {"a": "b"}}})
    lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind}
    user.create({**lease, "metadata": {"name": "l", "namespace": "default"}, "spec": {}})
    user.create(make_pod("dry").build(), options=WriteOptions(dry_run=True))
    user.delete(ObjectRef(SCENARIO, "mine"))
    while user.find(ObjectRef(WEBHOOKS, "kubescene")) is not None:
        guarded.player.turn(0.2)
    user.create(make_pod("welcome").build())


def test_the_same_identity_may_only_do_what_is_being_done(guarded: Stage) -> None:
    """The person at the keyboard has the controller's kubeconfig as well."""
    guarded.play(scenario("mine", create(1, NODE_1)))
    other = HttpClient(guarded.cluster.remote._requests.endpoint, guarded.cluster.remote.actor)
    with pytest.raises(ForbiddenError, match="is not one of its controllers"):
        other.create(make_pod("intruder").build())
    other.close()


def test_edits_that_come_too_late_are_refused_or_warned_of(guarded: Stage) -> None:
    user = guarded.user
    guarded.play(scenario("mine", create(1, NODE_1)))
    with pytest.raises(InvalidError, match="has started and is part of what happened"):
        user.patch(ObjectRef(SCENARIO, "mine"), {"spec": {"operations": [done(2)]}})
    with pytest.raises(ForbiddenError, match="written by the engine"):
        user.patch(
            ObjectRef(SCENARIO, "mine"), {"status": {"phase": "Failed"}}, subresource="status"
        )


def test_what_a_killed_controller_has_locked_the_next_one_unlocks(
    real_server: ApiServer, tmp_path: Path
) -> None:
    make_disposable(real_server)
    with staged(real_server, tmp_path) as stage:
        stage.player.admit_by(make_certificate("127.0.0.1"), "127.0.0.1", 0)
        stage.play(scenario("killed", create(1, NODE_1)))
        registered = stage.user.get(ObjectRef(WEBHOOKS, "kubescene"))
    left = {**registered, "metadata": {"name": "kubescene"}}
    with client_of(real_server.outsider) as user:
        user.create(left)
        clock = ScaledClock(1)
        deadline = clock.now() + int(PATIENCE_S * SECOND)
        while not is_locked(user):  # the server hears of it a moment later
            assert clock.now() < deadline
            clock.wait_until(clock.now() + SECOND // 20)
    with staged(real_server, tmp_path) as stage:
        assert stage.user.find(ObjectRef(WEBHOOKS, "kubescene")) is None
        played = stage.play(scenario("next", create(1, NODE_1), done(1)))
    assert played["status"]["phase"] == "Succeeded", played["status"].get("message")
    leave_nothing(real_server)


def is_locked(user: HttpClient) -> bool:
    try:
        user.create(make_pod("dry").build(), options=WriteOptions(dry_run=True))
    except InternalError as error:
        return "failed calling webhook" in error.message
    return False


def test_an_api_server_that_cannot_reach_the_webhook_fails_the_scenario(
    real_server: ApiServer, tmp_path: Path
) -> None:
    make_disposable(real_server)
    with staged(real_server, tmp_path) as stage:
        stage.player.admit_by(make_certificate("127.0.0.1"), "127.0.0.1", 0)
        registration = stage.player._registration
        assert registration is not None
        registration._url = "https://127.0.0.1:9/admit"
        registration._patience_s = 2.0
        played = stage.play(scenario("unreached", create(1, NODE_1), done(1)))
        assert played["status"]["phase"] == "Failed"
        assert "does not ask the admission webhook" in played["status"]["message"]
        stage.user.create(make_pod("welcome").build(), options=WriteOptions(dry_run=True))
    leave_nothing(real_server)
