"""Charts of a run over virtual time: what they are drawn of, against tables of the same run."""

import pytest

import kubescene
from controllers.test_traffic import deployment, traffic
from kubescene import Run
from kubescene.reports.html.contents import ChartView, OverTimeView
from kubescene.reports.html.over_time import PLACES, over_time_of, thinned
from kubescene.results.opening import open_run
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod


@pytest.fixture(scope="module")
def run() -> Run:
    points = [{"at": "0s", "rps": 20}, {"at": "2m", "rps": 60}, {"at": "6m", "rps": 10}]
    request = {"cpuTime": "20ms", "ioTime": "0s", "timeout": "2s"}
    arrivals = {"pattern": "piecewise", "spacing": "even", "piecewise": {"points": points}}
    load = traffic(arrivals=arrivals, request=request)
    target = {"type": "Utilization", "averageUtilization": 70}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }
    return kubescene.run(
        ScenarioBuilder("over-time")
        .create(make_node("n").cpu("4").memory("8Gi"), deployment(1), load, scaler)
        .advance("15m")
        .build()
    )


@pytest.fixture(scope="module")
def view(run: Run) -> OverTimeView:
    return over_time_of(open_run(run))


def chart(view: OverTimeView, title: str) -> ChartView:
    return next(each for each in view.charts if each.title == title)


def test_requests_and_times_are_those_of_the_windows(run: Run, view: OverTimeView) -> None:
    windows = [*open_run(run).tables()["windows"]]
    came, failed = chart(view, "Requests of default/load").series
    assert [value for _, value in came.points] == [
        round(each.requests / each.window_s, 3) for each in windows
    ]
    assert sum(value for _, value in failed.points) == pytest.approx(
        sum(each.failed / each.window_s for each in windows), abs=0.1
    )
    names = [each.name for each in chart(view, "Response times of default/load").series]
    assert names == ["p50 of all", "p99 of all", "p99 of those served", "objective"]


def test_replicas_are_those_of_the_decisions(run: Run, view: OverTimeView) -> None:
    rows = [*open_run(run).tables()["scaling"]]
    assert [each.what for each in view.decisions] == [
        f"{each.replicas_from} → {each.replicas_to}" for each in rows
    ]
    desired, ready, _ = chart(view, "Replicas of default/Deployment/web").series
    assert max(value for _, value in desired.points) == max(each.replicas_to for each in rows)
    assert max(value for _, value in ready.points) == max(each.replicas_to for each in rows)


def test_each_decision_about_machines_is_shown_once() -> None:
    group = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": "std"},
        "spec": {
            "size": 1,
            "max": 3,
            "boot": {"time": "1m"},
            "template": {"status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "9"}}},
        },
    }
    run = kubescene.run(
        ScenarioBuilder("machines")
        .settings(clusterAutoscaler={})
        .create(group)
        .create(make_pod("p-$(INDEX)").cpu("1500m"), count=2)
        .advance("5m")
        .build()
    )
    source = open_run(run)
    shown = [(each.who, each.what) for each in over_time_of(source).decisions]
    assert shown == [("NodeGroup/std", "1 → 3")]
    assert [row.target for row in source.tables()["scaling"]] == ["NodeGroup/std"]


def test_all_charts_have_one_axis(run: Run, view: OverTimeView) -> None:
    assert view.end == 900.0
    times = [at for each in view.charts for line in each.series for at, _ in line.points]
    assert 0 <= min(times) <= max(times) <= view.end


def test_a_run_without_time_has_no_charts() -> None:
    still = kubescene.run(ScenarioBuilder("still").create(make_node("n")).build())
    assert over_time_of(open_run(still)) == OverTimeView()


def test_a_peak_is_not_lost_where_there_are_many_points() -> None:
    points = [(place / 10, 7.0 if place == 12_345 else float(place % 3)) for place in range(50_000)]
    kept = [*thinned(points, 5000.0)]
    assert len(kept) <= 3 * PLACES
    assert (1234.5, 7.0) in kept
    assert kept == sorted(kept, key=lambda point: point[0])


def test_all_workloads_together_want_and_have_what_each_of_them_says() -> None:
    """Two Deployments, of which one is scaled and the other goes after two minutes."""
    going = deployment(2)
    going["metadata"]["name"] = "going"
    run = kubescene.run(
        ScenarioBuilder("together")
        .create(make_node("n").cpu("4").memory("8Gi"), deployment(1), going)
        .advance("1m")
        .next_step()
        .patch("apps/v1", "Deployment", "web", {"spec": {"replicas": 3}}, namespace="default")
        .advance("1m")
        .next_step()
        .delete("apps/v1", "Deployment", "going", namespace="default")
        .advance("1m")
        .build()
    )
    wanted, ready = chart(over_time_of(open_run(run)), "Pods of all workloads").series
    assert [value for _, value in wanted.points] == [3, 5, 3]
    assert [at for at, _ in wanted.points] == [0, 60, 120]
    at, left = ready.points[-1]
    assert (at, left) == (120, 3)
    assert max(value for _, value in ready.points) == 5


def test_who_waited_for_no_time_is_a_stroke_and_no_level() -> None:
    """Every pod is bound in the instant in which it comes, but for one that waits two minutes."""
    run = kubescene.run(
        ScenarioBuilder("strokes")
        .create(make_node("n").cpu("4").memory("8Gi"))
        .create(make_pod("early-$(INDEX)").cpu("1"), count=2)
        .advance("10m")
        .next_step()
        .create(make_pod("prompt").cpu("1"))
        .advance("10m")
        .next_step()
        .create(make_pod("large").cpu("3"))
        .advance("2m")
        .next_step()
        .create(make_node("other").cpu("4").memory("8Gi"))
        .advance("10m")
        .build()
    )
    view = over_time_of(open_run(run))
    _, waits = chart(view, "Pods").series
    assert [*waits.points] == [(0, 2), (0, 0), (600, 1), (600, 0), (1200, 1), (1320, 0)]
    _, requested = chart(view, "CPU").series
    assert [*requested.points] == [(0, 2), (600, 3), (1320, 6)]
