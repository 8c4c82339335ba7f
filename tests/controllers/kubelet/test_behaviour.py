"""What may be said of pods, and what is wrong with it."""

import pytest

from kubescene.controllers.kubelet.behaviour import (
    ANNOTATIONS,
    POD_FIELDS,
    WORKLOAD_FIELDS,
    annotated,
    in_vain,
    read_behaviour,
    read_workload,
)
from kubescene.controllers.kubelet.images import faults_of_pulls
from kubescene.scenario.fields.table import WORKLOADS
from kubescene.testing import make_node
from kubescene.types import JsonObject


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"terminationTime": "-3s"}, "terminationTime: '-3s' is not a duration"),
        ({"startTime": {"exponential": {"mean": "inf"}}}, "startTime: 'inf' is not a duration"),
        ({"readyTme": "3s"}, "unknown field readyTme; did you mean readyTime?"),
        ({"readinessProbe": "no"}, "readinessProbe: must be an object"),
        ({"readinessProbe": {"failAfte": "1s"}}, "readinessProbe: unknown field failAfte; did you"),
        ({"livenessProbe": {"failFor": "1s"}}, "livenessProbe.failFor: says how long it fails;"),
        ({"livenessProbe": {"share": 2}}, "livenessProbe.share: must be a number from 0 to 1"),
        ({"livenessProbe": {"passAfter": "1"}}, "livenessProbe.passAfter: '1' is not a duration"),
        ({"selector": {"matchLabels": [[]]}}, "selector: matchLabels: must be an object"),
        ({"selector": {"matchLabels": {"app": {}}}}, "selector: matchLabels.app: must be text"),
        ({"selector": {"matchExpressions": [3]}}, "selector: matchExpressions[0]: must be"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "selector: values:"),
        ({"pullError": 3}, "pullError: must be text, not 3"),
        ({"pullFailures": -1}, "pullFailures: must be a whole number from 0 to 1000, not -1"),
        ({"usage": {"cpu": "x"}}, "usage.cpu: "),
        ({"imageSize": "-1Gi"}, "imageSize: '-1Gi' is negative"),
        (
            {"containers": [{"name": "a", "startTime": "1s"}]},
            "containers[0]: unknown field startTime",
        ),
        ({"containers": [{"name": "a", "oomAfter": []}]}, "containers[0].oomAfter: "),
        ({"runTime": {"empirical": {"file": "x.csv"}}}, "runTime: no file can be read here"),
    ],
)
def test_a_fault_begins_with_its_field(workload: JsonObject, words: str) -> None:
    with pytest.raises(ValueError, match=r"^") as caught:
        read_workload(workload)
    assert str(caught.value).startswith(words)


def test_all_of_it_may_be_said_in_annotations() -> None:
    assert {*ANNOTATIONS.values()} == {*POD_FIELDS}
    probe = "{failAfter: 3s, share: 0.5}"
    text = {"readiness-probe": probe, "start-time": "2s", "containers": "[{name: a, exitCode: 3}]"}
    found = annotated({f"kubescene.dev/{name}": value for name, value in text.items()})
    assert found == read_behaviour(
        {
            "readinessProbe": {"failAfter": "3s", "share": 0.5},
            "startTime": "2s",
            "containers": [{"name": "a", "exitCode": 3}],
        }
    )


def test_a_text_in_an_annotation_is_taken_as_it_is() -> None:
    found = annotated({"kubescene.dev/pull-error": 'resolve "x:1": not found'})
    assert found == read_behaviour({"pullError": 'resolve "x:1": not found'})


def test_an_annotation_that_cannot_be_read_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"annotation kubescene\.dev/liveness-probe: share: must be"
    ):
        annotated({"kubescene.dev/liveness-probe": "{share: 7}"})


def test_what_a_pod_says_of_a_container_leaves_the_rest_as_it_was() -> None:
    listed = read_behaviour({"containers": [{"name": "a", "runTime": "3s"}]})
    own = read_behaviour({"containers": [{"name": "a", "exitCode": 3}], "readyTime": "1s"})
    wanted = {"name": "a", "runTime": "3s", "exitCode": 3, "readyTime": "1s"}
    assert own.over(listed).of("a") == read_behaviour({"containers": [wanted]}).of("a")


def test_scenarios_may_say_what_pods_can() -> None:
    assert WORKLOADS.items is not None
    assert {each.name for each in WORKLOADS.items.fields} == {*WORKLOAD_FIELDS}


def test_what_is_said_for_nothing_is_told() -> None:
    said = read_behaviour({"startupProbe": {}, "livenessProbe": {}, "containers": [{"name": "x"}]})
    spec = {"containers": [{"name": "main", "livenessProbe": {"exec": {}}}]}
    assert list(in_vain(said, spec)) == [
        ("what is said of a startupProbe", "no container of the pod has one"),
        ("what is said of the container x", "the pod has none of that name"),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("slow", "must be an object with time, error, pods, namespace"),
        ("{tme: 3s}", "unknown field tme; known are: time, error, pods, namespace"),
        ("{error: no}", "error: must be text, not False"),
        ("{time: -3s}", "'-3s' is not a duration such as 90s, 5m or 1h30m"),
        ("{pods: web}", "pods: must be an object with matchLabels or matchExpressions"),
        ("{pods: {matchLabels: {app: 3}}}", "pods: matchLabels.app: must be text, in quotes if ne"),
        ("{", "while parsing"),
    ],
)
def test_an_annotation_about_pulls_that_cannot_be_read_is_told(text: str, why: str) -> None:
    node = make_node("n").annotate({"pulls.kubescene.dev/x": text}).build()
    ((name, told),) = faults_of_pulls(node["metadata"]["annotations"])
    assert name == "pulls.kubescene.dev/x"
    assert told.startswith(why)
