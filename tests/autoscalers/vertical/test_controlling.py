"""Which of several VerticalPodAutoscalers has the say over a pod."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from autoscalers.vertical.vertical_worlds import in_mode, make_pod, make_vpa
from kubescene.api.selectors.label_selectors import parse_labels
from kubescene.autoscalers.vertical import (
    Candidate,
    VerticalPodAutoscaler,
    controlled_pods,
    controlling,
)
from kubescene.autoscalers.vertical.controlling import for_admission, for_updater

ABOVE = {("ReplicaSet", "web-rs"): ("Deployment", "web")}
DATABASE = {"kind": "StatefulSet", "name": "db"}
OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def candidate(
    name: str,
    created: str | None = OLD,
    mode: str = "Recreate",
    selector: str = "",
    target: Mapping[str, str] = MappingProxyType({}),
) -> Candidate:
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"} | dict(target)
    spec = in_mode(mode) | {"targetRef": whole}
    vpa = make_vpa(spec, name=name, creationTimestamp=created)
    return Candidate(vpa, parse_labels(selector))


def chosen(*candidates: Candidate, **pod: Any) -> str | None:
    return named(controlling(make_pod(**pod), candidates, ABOVE))


def named(vpa: VerticalPodAutoscaler | None) -> str | None:
    return vpa.name if vpa else None


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([candidate("a", NEW), candidate("b", OLD)], "b"),
        ([candidate("b"), candidate("a"), candidate("c")], "a"),
        ([candidate("b", None), candidate("a", OLD)], "b"),
        ([], None),
    ],
    ids=["the oldest", "then the first name", "without a time it is the oldest", "none"],
)
def test_the_strongest_of_several_wins(candidates: list[Candidate], expected: str | None) -> None:
    assert chosen(*candidates) == expected
    assert chosen(*reversed(candidates)) == expected


@pytest.mark.parametrize(
    "target", [{"name": "other"}, {"kind": "StatefulSet"}, {"kind": "ReplicaSet", "name": "web-rs"}]
)
def test_the_topmost_controller_has_to_be_the_target(target: dict[str, str]) -> None:
    assert chosen(candidate("a", target=target), candidate("b", NEW)) == "b"


def test_a_controller_that_nobody_is_above_is_the_topmost() -> None:
    stateful = candidate("a", target=DATABASE)
    assert chosen(stateful, kind="StatefulSet", owner="db") == "a"


def test_labels_and_namespace_have_to_match() -> None:
    assert chosen(candidate("a", selector="app=none"), candidate("b", NEW)) == "b"
    elsewhere = make_pod()
    elsewhere["metadata"]["namespace"] = "other"
    assert controlling(elsewhere, [candidate("a")], ABOVE) is None


def test_a_pod_without_a_controller_has_no_vpa() -> None:
    pod = make_pod()
    del pod["metadata"]["ownerReferences"]
    assert controlling(pod, [candidate("a")], ABOVE) is None


def test_a_vpa_that_may_not_act_stands_in_nobodys_way() -> None:
    candidates = [
        candidate("off", OLD, "Off"),
        candidate("initial", "2026-01-02T00:00:00Z", "Initial"),
        candidate("recreate", NEW, "Recreate"),
    ]
    assert named(controlling(make_pod(), candidates, ABOVE)) == "off"
    assert named(controlling(make_pod(), for_admission(candidates), ABOVE)) == "initial"
    assert named(controlling(make_pod(), for_updater(candidates), ABOVE)) == "recreate"


def test_pods_are_shared_out_among_vpas() -> None:
    ours, theirs = make_pod("web-0"), make_pod("db-0", kind="StatefulSet", owner="db")
    candidates = [
        candidate("web-late", NEW),
        candidate("db", NEW, target=DATABASE),
        candidate("web", OLD),
        candidate("off", None, "Off"),
    ]
    shares = controlled_pods([ours, theirs], candidates, ABOVE)
    assert [(vpa.name, [pod["metadata"]["name"] for pod in own]) for vpa, own in shares] == [
        ("web", ["web-0"]),
        ("db", ["db-0"]),
        ("web-late", []),
    ]
