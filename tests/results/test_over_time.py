"""Workloads and series, against what the objects say of themselves at every moment of a run."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kubescene
from kubescene.api.resource_requests import pod_requests
from kubescene.cluster.world import ClusterWorld
from kubescene.errors import ConfigurationError
from kubescene.results import ExpectationOutcome, open_run
from kubescene.results.comparison import compare as compared_runs
from kubescene.results.entries import Entries
from kubescene.results.ledger import Ledger
from kubescene.results.over_time.entries import WorkloadCounts, WorkloadEntry
from kubescene.results.over_time.series import every_of, series_rows, workload_series_rows
from kubescene.results.over_time.workloads import (
    Workloads,
    budget_rows,
    rollout_rows,
    workload_rows,
)
from kubescene.runs.requests import RunRequest
from kubescene.runs.staging import stage
from random_scenarios import API_VERSION, Drawn, Json, Lot

STEPS = 6
KINDS = {
    "Deployment": "deployments.apps",
    "StatefulSet": "statefulsets.apps",
    "DaemonSet": "daemonsets.apps",
    "Job": "jobs.batch",
}


def told(kind: str, made: Json) -> Json:
    """What kubectl would show of it."""
    spec, status = made["spec"], made.get("status") or {}
    if kind == "Job":
        return {
            "desired": spec.get("completions", spec.get("parallelism")),
            "pods": status.get("active", 0),
            "ready": status.get("ready", 0),
            "completions": status.get("succeeded", 0),
            "failures": status.get("failed", 0),
        }
    if kind == "DaemonSet":
        scheduled = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled")
        numbers = [status.get(n, 0) for n in (*scheduled, "numberReady", "numberAvailable")]
        return dict(zip(("desired", "pods", "updated", "ready", "available"), numbers, strict=True))
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    pods, updated, ready, available = (status.get(n, 0) for n in names)
    return {
        "desired": spec["replicas"],
        "pods": pods,
        "updated": updated,
        "ready": ready,
        "available": available,
    }


def standing(ledger: Ledger) -> dict[tuple[str, str], WorkloadEntry]:
    return {(e.kind, e.name): e for e in ledger.workloads if e.end_time is None}


def compare(cluster: ClusterWorld, ledger: Ledger) -> int:
    """How many workloads were compared."""
    known = standing(ledger)
    count = 0
    for kind, resource in KINDS.items():
        for made in cluster.list(resource):
            metadata = made["metadata"]
            if metadata.get("ownerReferences") or metadata.get("deletionTimestamp"):
                continue
            entry = known[kind, metadata["name"]]
            now: WorkloadCounts = entry.now
            assert {n: getattr(now, n) for n in told(kind, made)} == told(kind, made), metadata
            count += 1
    for budget in cluster.list("poddisruptionbudgets.policy"):
        entry_of = [e for e in ledger.budgets if e.end_time is None]
        kept = next(e for e in entry_of if e.name == budget["metadata"]["name"])
        status = budget.get("status") or {}
        healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        assert (kept.healthy, kept.desired) == (healthy, desired)
        if kept.met_time is not None:
            is_below = bool(kept.below) and kept.below[-1][1] is None
            assert is_below == (healthy < desired)
    return count


class Seen:
    """What the store said at every instant that time left, and at the end of every step."""

    def __init__(self) -> None:
        self.pending: dict[tuple[int, int], int] = {}
        self.cpu: dict[tuple[int, int], int] = {}
        self.ready: dict[tuple[int, int], int] = {}
        self.workloads: dict[tuple[str, str], dict[tuple[int, int], Json]] = {}

    def look(self, cluster: ClusterWorld, when: tuple[int, int]) -> None:
        pods = [p for p in cluster.list("pods") if not is_through(p)]
        names = {node["metadata"]["name"] for node in cluster.list("nodes")}
        bound = [p for p in pods if p["spec"].get("nodeName") in names]
        waiting = [p for p in pods if not p["spec"].get("nodeName")]
        self.pending[when] = sum(not p["metadata"].get("deletionTimestamp") for p in waiting)
        self.cpu[when] = sum(int(pod_requests(p).get("cpu", 0)) for p in bound)
        self.ready[when] = sum(map(is_ready, cluster.list("nodes")))
        for kind, resource in KINDS.items():
            for made in cluster.list(resource):
                if not made["metadata"].get("ownerReferences"):
                    own = self.workloads.setdefault((kind, made["metadata"]["name"]), {})
                    own[when] = told(kind, made)


def is_ready(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return all(each["type"] != "Ready" or each["status"] == "True" for each in conditions)


def is_through(pod: Json) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def play(scenario: Json) -> tuple[Ledger, Seen]:
    """A run that is compared after every moment of its engine."""
    run = stage(RunRequest(scenario=scenario))
    entries, position, seen, compared = Entries(), 0, Seen(), 0
    for _ in run.play():
        for fact in run.log.read(position, len(run.log)):
            entries.add(fact)
        position = len(run.log)
        compared += compare(run.cluster, entries.ledger)
        seen.look(run.cluster, (run.cluster.clock.now(), entries.ledger.step.major))
    assert entries.ledger.phase == "Succeeded", entries.ledger.message
    assert compared
    entries.ledger.close()
    return entries.ledger, seen


def check_series(ledger: Ledger, seen: Seen) -> None:
    """A row at each change says what the store said when time went on."""
    began = ledger.started_time or 0
    rows = {(round(r.time_s * 1e9) + began, r.step): r for r in series_rows(ledger)}
    for when, row in rows.items():
        if when in seen.pending:
            assert (row.pods_pending, row.cpu_requested) == (seen.pending[when], seen.cpu[when])
            assert row.nodes_ready == seen.ready[when]
        assert row.pods_pending_peak >= row.pods_pending
    for each in workload_series_rows(ledger):
        own = seen.workloads.get((each.kind, each.name), {})
        said = own.get((round(each.time_s * 1e9) + began, each.step))
        if said is not None:
            assert {name: getattr(each, name) for name in said} == said


# -- scenarios with every kind of workload -----------------------------------------------------


def scenario_of(lot: Lot, seed: int) -> Json:
    operations: list[Json] = []

    def add(step: int, kind: str, body: Json) -> None:
        operations.append({"step": step, f"{kind}Operation": body})

    capacity = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n-$(INDEX)"},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    add(1, "create", {"object": node, "count": 3})
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "Job"):
        for number in range(1 + lot.below(2)):
            add(1, "create", {"object": workload(lot, kind, f"{kind.lower()}-{number}")})
    add(1, "create", {"object": budget(lot, "deployment-0")})
    add(1, "advance", {"duration": lot.of("20s", "1m")})
    for step in range(2, STEPS):
        for _ in range(1 + lot.below(2)):
            add(step, *lot.of(*HAPPENS)(lot))
        add(step, "advance", {"duration": lot.of("7s", "45s", "3m")})
    add(STEPS, "done", {})
    delays = {name: lot.of("0s", "3s") for name in ("startDelay", "readyDelay", "terminateDelay")}
    behaviour = {"selector": {"matchLabels": {"ends": "yes"}}, "runTime": lot.of("5s", "30s")}
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": f"workloads-{seed}"},
        "spec": {
            "operations": operations,
            "simulation": {"seed": seed, "kubelet": delays, "workloads": [behaviour]},
        },
    }


def workload(lot: Lot, kind: str, name: str) -> Json:
    labels = {"app": name, "ends": "yes" if kind == "Job" else lot.of("no", "yes")}
    requests = {"cpu": lot.of("250m", "1500m")}
    template: Json = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [{"name": "c", "image": "i:1", "resources": {"requests": requests}}]
        },
    }
    spec: Json = {"template": template}
    if kind == "Job":
        template["spec"]["restartPolicy"] = lot.of("Never", "OnFailure")
        spec |= {"completions": 1 + lot.below(3), "parallelism": 2}
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
    if kind in ("Deployment", "StatefulSet"):
        spec["replicas"] = 1 + lot.below(4)
    if kind == "StatefulSet":
        spec["serviceName"] = name
    group = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}


def budget(lot: Lot, app: str) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {
            **lot.of({"minAvailable": 1}, {"maxUnavailable": 1}),
            "selector": {"matchLabels": {"app": app}},
        },
    }


def target(kind: str, name: str, group: str) -> Json:
    metadata = {"name": name, **({} if kind == "Node" else {"namespace": "default"})}
    return {"typeMeta": {"apiVersion": group, "kind": kind}, "objectMeta": metadata}


def roll(lot: Lot) -> tuple[str, Json]:
    kind = lot.of("Deployment", "StatefulSet", "DaemonSet")
    patch = f'{{"spec":{{"template":{{"metadata":{{"labels":{{"v":"{lot.below(9)}"}}}}}}}}}}'
    made = target(kind, f"{kind.lower()}-0", "apps/v1")
    return "patch", {**made, "patch": patch, "patchType": "merge"}


def scale(lot: Lot) -> tuple[str, Json]:
    kind, replicas = lot.of("Deployment", "StatefulSet"), lot.below(6)
    made = target(kind, f"{kind.lower()}-0", "apps/v1")
    return "patch", {**made, "patch": f'{{"spec":{{"replicas":{replicas}}}}}', "patchType": "merge"}


def drain(lot: Lot) -> tuple[str, Json]:
    name = f"n-{lot.below(3)}"
    return "drain", {"names": [name], "ignoreDaemonSets": True, "force": True, "timeout": "30s"}


def outage(lot: Lot) -> tuple[str, Json]:
    made = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Outage",
        "metadata": {"generateName": "dark-"},
        "spec": {"what": "NodesSilent", "for": lot.of("30s", "2m"), "nodes": {}, "count": 1},
    }
    return "create", {"object": made}


def silence(lot: Lot) -> tuple[str, Json]:
    answer = lot.of('"stopped"', "null")
    patch = f'{{"metadata":{{"annotations":{{"kubescene.dev/kubelet":{answer}}}}}}}'
    return "patch", {**target("Node", "n-1", "v1"), "patch": patch, "patchType": "merge"}


HAPPENS: tuple[Callable[[Lot], tuple[str, Json]], ...] = (
    roll,
    roll,
    scale,
    drain,
    outage,
    silence,
)


@pytest.mark.parametrize("seed", range(10))
def test_at_every_moment_workloads_are_as_their_objects_say(seed: int) -> None:
    ledger, seen = play(scenario_of(Lot(seed), seed))
    check_series(ledger, seen)


@st.composite
def scenarios(draw: st.DrawFn) -> Any:
    return scenario_of(Drawn(draw), draw(st.integers(0, 9)))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_of_any_run_series_are_what_the_store_said(scenario: Json) -> None:
    check_series(*play(scenario))


# -- what is known of one run ------------------------------------------------------------------


def rollout() -> Json:
    """Four pods that need 12 s to be ready; a new template after two minutes."""
    operations: list[Json] = []

    def add(step: int, kind: str, body: Json) -> None:
        operations.append({"id": f"{kind}-{step}", "step": step, f"{kind}Operation": body})

    capacity = {"cpu": "4", "pods": "20"}
    status = {"capacity": capacity, "allocatable": capacity}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n-$(INDEX)"},
        "status": status,
    }
    web = workload(Lot(1), "Deployment", "web")
    web["spec"]["replicas"] = 4
    (container,) = web["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "250m"}}
    web["spec"]["template"]["metadata"]["labels"] = {"app": "web"}
    web["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    operations.append({"id": "nodes", "step": 1, "createOperation": {"object": node, "count": 3}})
    operations.append({"id": "web", "step": 1, "createOperation": {"object": web}})
    guarded = budget(Lot(1), "web")
    guarded["spec"] = {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}}
    operations.append({"id": "pdb", "step": 1, "createOperation": {"object": guarded}})
    add(1, "advance", {"duration": "2m"})
    patch = '{"spec":{"template":{"metadata":{"labels":{"v":"2"}}}}}'
    add(
        2, "patch", {**target("Deployment", "web", "apps/v1"), "patch": patch, "patchType": "merge"}
    )
    add(2, "advance", {"duration": "2m"})
    add(3, "advance", {"duration": "1m"})
    add(4, "done", {})
    delays = {"startDelay": "2s", "readyDelay": "10s", "terminateDelay": "1s"}
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": "rollout"},
        "spec": {"operations": operations, "simulation": {"kubelet": delays}},
    }


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return open_run(kubescene.run(rollout())).ledger


def test_a_roll_out_takes_as_long_as_its_pods(ledger: Ledger) -> None:
    """25 % of 4 may be missing and 25 % more may be there: two at a time, 12 s each."""
    first, second = rollout_rows(ledger)
    assert (first.number, first.state, first.begin_s, first.end_s) == (1, "Complete", 0.0, 12.0)
    assert (second.number, second.state, second.begin_s) == (2, "Complete", 120.0)
    assert second.seconds == 24.0
    assert second.begin_step == "2.0"


def test_a_workload_knows_its_least_and_its_budget(ledger: Ledger) -> None:
    (row,) = workload_rows(ledger)
    assert (row.kind, row.name, row.desired, row.ready, row.available) == (
        "Deployment",
        "web",
        4,
        4,
        4,
    )
    assert (row.least_available, row.least_available_s, row.full_s) == (3, 120.0, 12.0)
    assert (row.rollouts, row.rollout, row.rollout_s) == (2, "Complete", 24.0)
    # A roll-out does not ask budgets: 3 are there instead of 4 until the new ones are ready.
    assert row.below_budget_s == 24.0
    (guard,) = budget_rows(ledger)
    assert (guard.workloads, guard.least_healthy) == ("Deployment/web", 3)
    assert guard.below_s == 24.0


def test_marks_lose_no_peak(ledger: Ledger) -> None:
    every = every_of("100s")
    minutes = [*series_rows(ledger, every)]
    assert [row.time_s for row in minutes] == [0.0, 100.0, 200.0, 300.0]
    assert [row.pods_ready for row in minutes] == [0, 4, 4, 4]
    changes = [*series_rows(ledger)]
    for row in minutes:
        inside = [each for each in changes if row.time_s <= each.time_s < row.until_s]
        most = max((each.pods_pending_peak for each in inside), default=row.pods_pending)
        assert row.pods_pending_peak == max(most, row.pods_pending)
    least = [row.least_available for row in workload_series_rows(ledger, every)]
    assert least == [0, 3, 4, 4]


def test_a_row_of_a_step_is_its_end(ledger: Ledger) -> None:
    rows = [*workload_series_rows(ledger, every_of("step"))]
    assert [(row.step, row.time_s, row.available, row.least_available) for row in rows] == [
        (1, 120.0, 4, 0),
        (2, 240.0, 4, 3),
        (3, 300.0, 4, 4),
        (4, 300.0, 4, 4),
    ]


def test_changes_tile_the_run(ledger: Ledger) -> None:
    rows = [*series_rows(ledger)]
    assert [row.until_s for row in rows[:-1]] == [row.time_s for row in rows[1:]]
    assert (rows[0].time_s, rows[-1].until_s) == (0.0, 300.0)


@pytest.mark.parametrize("told", ["", "often", "-5s", "0s", "5"])
def test_what_is_no_span_is_named(told: str) -> None:
    with pytest.raises(ConfigurationError, match="'change', 'step' or a duration"):
        every_of(told)


def test_a_series_without_end_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ConfigurationError, match="choose a longer --every"):
        next(series_rows(ledger, 1))


def test_a_roll_out_that_never_ends_says_so() -> None:
    scenario = rollout()
    create = scenario["spec"]["operations"][1]["createOperation"]["object"]
    create["spec"]["progressDeadlineSeconds"] = 60
    patch = '{"spec":{"template":{"spec":{"nodeSelector":{"no":"where"}}}}}'
    scenario["spec"]["operations"][4]["patchOperation"]["patch"] = patch
    ledger = open_run(kubescene.run(scenario)).ledger
    first, second = rollout_rows(ledger)
    assert (first.state, second.state, second.end_s, second.seconds) == (
        "Complete",
        "Stalled",
        None,
        None,
    )
    (row,) = workload_rows(ledger)
    assert (row.rollout, row.rollout_end_s, row.pending) == ("Stalled", None, 2)
    create["spec"]["progressDeadlineSeconds"] = 600
    (_, second) = rollout_rows(open_run(kubescene.run(scenario)).ledger)
    assert second.state == "Unfinished"


def test_a_new_template_supersedes_a_roll_out_that_goes_on() -> None:
    scenario = rollout()
    again = {**scenario["spec"]["operations"][4], "id": "again", "step": 3}
    again["patchOperation"] = {
        **again["patchOperation"],
        "patch": '{"spec":{"template":{"metadata":{"labels":{"v":"3"}}}}}',
    }
    scenario["spec"]["operations"][5]["advanceOperation"] = {"duration": "5s"}
    scenario["spec"]["operations"].insert(6, again)
    rows = [*rollout_rows(open_run(kubescene.run(scenario)).ledger)]
    assert [row.state for row in rows] == ["Complete", "Superseded", "Complete"]


def test_pods_that_nobody_owns_are_a_row_of_their_own() -> None:
    scenario = rollout()
    pod = workload(Lot(1), "Deployment", "web")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": pod["spec"]}
    scenario["spec"]["operations"].insert(1, {"step": 1, "createOperation": {"object": pod}})
    ledger = open_run(kubescene.run(scenario)).ledger
    rows = [*workload_rows(ledger)]
    assert [(row.kind, row.name, row.pods, row.ready) for row in rows] == [
        ("Pod", "*", 1, None),
        ("Deployment", "web", 4, 4),
    ]
    assert [len(group.pods) for group in Workloads(ledger).groups] == [1, 8]


def run_with(*expressions: str) -> list[ExpectationOutcome]:
    scenario = rollout()
    scenario["spec"]["expectations"] = [
        {"name": f"e{number}", "expression": each} for number, each in enumerate(expressions)
    ]
    run = kubescene.run(scenario)
    assert run.ok, run.message
    return run.expectations


WEB = 'workloads["default/web"]'


@pytest.mark.parametrize(
    ("expression", "seen"),
    [
        (f"{WEB}.ready == 4 && {WEB}.least_available == 3", ""),
        (f"{WEB}.series.since({WEB}.full_s).all(s, s.available >= 3)", ""),
        (f"{WEB}.series.all(s, s.available >= 3)", "s = (step 1, +0s): 0 >= 3"),
        (f"{WEB}.series.since(2).all(s, s.available >= 4)", "s = (step 2, +2m): 3 >= 4"),
        (f"{WEB}.series.exists(s, s.updated == 2)", ""),
        (f'{WEB}.series.at(duration("125s")).updated == 2', ""),
        (f"{WEB}.series.at(1).updated == 4 && {WEB}.series.at(144.5).available == 4", ""),
        (f'{WEB}.series.since(duration("1m")).until(1).size() == 1', ""),
        (
            'series.since(duration("13s")).all(s, s.pods_pending_peak == 0)',
            "s = (step 2, +2m): 2 == 0",
        ),
        ("rollouts.all(r, r.seconds <= 24.0) && budgets[0].below_s == 24.0", ""),
    ],
)
def test_expectations_speak_of_time(expression: str, seen: str) -> None:
    (outcome,) = run_with(expression)
    assert (outcome.holds, outcome.seen, outcome.error) == (not seen, seen, "")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (
            'workloads["default/wbe"].ready == 4',
            'no such key: default/wbe: did you mean "default/web"?',
        ),
        ('series.at(duration("2h")).nodes == 3', "nothing is known of 7200 s: it ends at 300 s"),
        ("series.since(9000.0).size() == 0", "nothing is known since 9000 s: it ends at 300 s"),
        ("pods.at(1).name == ''", "at, since and until are for series"),
        (f"{WEB}.series.at(0).ready == 0", "there is nothing yet at the end of step 0"),
        (f"{WEB}.series.since({WEB}.ended_s).size() == 0", "that moment never came: it is null"),
    ],
)
def test_moments_that_are_none_are_named(expression: str, error: str) -> None:
    (outcome,) = run_with(expression)
    assert (outcome.holds, outcome.error) == (False, error)


def test_measures_are_those_of_the_tables(ledger: Ledger) -> None:
    run = kubescene.run(rollout())
    told = open_run(run).measures()
    assert told["least_available_default_web"] == 3
    assert told["below_budget_seconds_default_web"] == told["below_budget_seconds"] == 24.0
    assert told["rollout_seconds_default_web"] == told["rollout_seconds_max"] == 24.0
    assert (told["restarts"], told["rollouts_unfinished"]) == (0, 0)
    assert "completions" not in told
    (outcome,) = run_with('measures["least_available_default_web"] == 3')
    assert outcome.holds


def test_completions_and_restarts_are_counted() -> None:
    scenario = rollout()
    job = workload(Lot(1), "Job", "work")
    job["spec"] |= {"completions": 2, "parallelism": 1, "backoffLimit": 6}
    job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    job["spec"]["template"]["metadata"]["annotations"] = {"kubescene.dev/run-time": "5s"}
    scenario["spec"]["operations"].insert(1, {"step": 1, "createOperation": {"object": job}})
    behaviour = {"selector": {"matchLabels": {"app": "web"}}, "runTime": "90s", "exitCode": 1}
    scenario["spec"]["simulation"]["workloads"] = [behaviour]
    run = kubescene.run(scenario)
    told = open_run(run).measures()
    rows = {row.name: row for row in workload_rows(open_run(run).ledger)}
    assert (told["completions"], told["failures"]) == (2, 0)
    assert (rows["work"].completions, rows["work"].desired) == (2, 2)
    assert told["restarts"] == rows["web"].restarts > 0
    pods = [pod.restarts for pod in open_run(run).ledger.pods]
    assert sum(pods) == rows["web"].restarts


def test_comparing_shows_workloads_that_differ() -> None:
    first, second = rollout(), rollout()
    second["spec"]["operations"][1]["createOperation"]["object"]["spec"]["strategy"] = {
        "rollingUpdate": {"maxUnavailable": 2}
    }
    told = compared_runs(kubescene.run(first), kubescene.run(second))
    found = {each.column: (each.a, each.b) for each in told.workloads}
    assert found["least_available"] == (3, 2)
    assert {each.workload for each in told.workloads} == {"default/web"}
    assert not told.equal
    assert compared_runs(kubescene.run(first), kubescene.run(rollout())).workloads == ()


def test_a_peak_belongs_to_its_mark_alone(ledger: Ledger) -> None:
    """Four pods wait for a node in the first instant, and nobody in the seconds after it."""
    rows = [*series_rows(ledger, every_of("5s"))]
    assert [row.pods_pending_peak for row in rows[:3]] == [4, 0, 0]
