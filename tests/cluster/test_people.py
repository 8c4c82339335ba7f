"""A cluster as people meet it: help, time in their words, and what came of it."""

import inspect
from datetime import timedelta
from pathlib import Path

import pytest

from kubescene import Cluster
from kubescene.clock import SECOND
from kubescene.errors import ConfigurationError
from kubescene.results import open_run
from kubescene.testing import make_node, make_pod

CALLED = {
    "advance", "apply", "client", "configure_scheduler", "create", "delete", "evict", "explain",
    "export", "fork", "get", "list", "load", "measures", "node", "observe", "patch", "pod",
    "recording", "remedies", "report", "reset", "scale", "settle", "tables", "update", "watch",
}  # fmt: skip


def test_help_shows_what_people_call_and_nothing_else() -> None:
    assert {name for name, _ in inspect.getmembers(Cluster) if not name.startswith("_")} == CALLED


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("5m", 300), ("1.5s", 1.5), (timedelta(minutes=5), 300), (0.5, 0.5), (5.0, 5), ("0s", 0)],
)
def test_time_passes_as_it_is_said(duration: str | timedelta | float, seconds: float) -> None:
    cluster = Cluster()
    begin = cluster.clock.now()
    assert cluster.advance(duration) is cluster
    assert cluster.clock.now() - begin == seconds * SECOND


@pytest.mark.parametrize(
    ("duration", "told"),
    [
        (5, r'5 is no duration: seconds are "5s", 5.0 or timedelta\(seconds=5\)'),
        (True, "True is no duration$"),
        (None, "None is no duration$"),
        (float("nan"), "nan is no duration$"),
    ],
)
def test_a_number_that_might_be_anything_is_refused(duration: object, told: str) -> None:
    cluster = Cluster()
    begin = cluster.clock.now()
    with pytest.raises(TypeError, match=told):
        cluster.advance(duration)  # type: ignore[arg-type]
    assert cluster.clock.now() == begin


def test_labels_may_be_a_selector_or_the_labels_themselves() -> None:
    cluster = Cluster()
    for name, app, tier in (("a", "web", "x"), ("b", "web", "y"), ("c", "db", "x")):
        cluster.create(make_pod(name).label(app=app, tier=tier))

    def named(labels: str | dict[str, str]) -> str:
        return "".join(each["metadata"]["name"] for each in cluster.list("pods", labels=labels))

    assert named({"app": "web"}) == named("app=web") == "ab"
    assert named({"app": "web", "tier": "x"}) == "a"
    assert named({}) == "abc"


# -- what came of it -----------------------------------------------------------------------------


def full(*, recorded: bool = True) -> Cluster:
    cluster = Cluster(recorded=recorded)
    cluster.create(make_node("n1").cpu("2").memory("8Gi"))
    for number in range(3):
        cluster.create(make_pod(f"p{number}").cpu("1"))
    return cluster.settle()


def test_each_time_that_a_cluster_moves_is_a_step() -> None:
    cluster = full().advance("5m")
    cluster.create(make_node("n2").cpu("2"))
    cluster.settle()
    steps = [(row.step, row.started_s, row.scheduled) for row in cluster.tables["steps"].rows]
    assert steps == [(1, 0.0, 2), (2, 0.0, 0), (3, 300.0, 1)]
    assert (cluster.measures["pods_bound"], cluster.measures["virtual_seconds"]) == (3, 300)
    assert [str(each.step) for each in cluster.explain("p2")] == ["1.0", "3.0"]


def test_results_are_read_from_a_recorded_cluster_as_from_a_run(tmp_path: Path) -> None:
    cluster = full()
    assert open_run(cluster).measures() == cluster.measures
    assert [row.name for row in open_run(cluster).tables()["pods"]] == ["p0", "p1", "p2"]
    page = cluster.report(tmp_path / "page.html")
    assert "n1" in page.read_text()


def test_a_fork_has_the_account_and_goes_on_with_its_own() -> None:
    cluster = full()
    fork = cluster.fork()
    fork.create(make_node("n2").cpu("2"))
    fork.settle()
    assert (cluster.measures["pods_bound"], fork.measures["pods_bound"]) == (2, 3)
    assert len(fork.explain("p2")) == 2
    assert len(cluster.explain("p2")) == 1


def test_a_cluster_that_was_reset_has_a_new_account() -> None:
    cluster = full()
    cluster.reset()
    cluster.create(make_node("n9"))
    cluster.settle()
    assert [row.name for row in cluster.tables["nodes"]] == ["n9"]
    assert cluster.measures["pods_created"] == 0


@pytest.mark.parametrize("ask", [lambda c: c.tables, lambda c: c.report("x"), open_run])
def test_one_that_keeps_no_account_says_how_it_would(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(ConfigurationError, match=r"kubescene.Cluster\(recorded=True\)"):
        ask(full(recorded=False))


def test_a_cluster_shows_itself() -> None:
    cluster = full(recorded=False)
    assert repr(cluster) == "<Cluster at 2026-01-01T00:00:00Z: 1 node, 3 pods, 1 without a node>"
    page = cluster._repr_html_()
    assert "<b>Cluster</b> at 2026-01-01T00:00:00Z" in page
    assert ">default/p2</td>" in page
    assert "Insufficient cpu" in page
    assert page.count("<tr") == 4


def test_many_nodes_are_not_all_shown() -> None:
    cluster = Cluster()
    for number in range(30):
        cluster.create(make_node(f"<n>-{number}".replace("<n>", "n")))
    page = cluster._repr_html_()
    assert "and 10 more nodes" in page


def test_what_is_no_object_and_no_label_is_told_in_words() -> None:
    cluster = Cluster()
    with pytest.raises(TypeError, match=r"an object .* or a builder is expected, not str"):
        cluster.create("pod.yaml")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match="labels are text such as 'app=web', or a mapping, not list"
    ):
        cluster.list("pods", labels=["app"])  # type: ignore[arg-type]
