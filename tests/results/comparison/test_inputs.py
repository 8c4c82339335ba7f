"""What two runs were given: schedulers plugin by plugin, operations by name."""

from typing import Any

import pytest

from kubescene.results.comparison.inputs import operation_differences, scheduler_differences

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def told(a: Any, b: Any) -> list[tuple[str, str, str]]:
    return [(each.what, each.a, each.b) for each in scheduler_differences(a, b)]


def profile(**members: Any) -> dict[str, Any]:
    return {**HEADER, "profiles": [members]}


def score(**sets: Any) -> dict[str, Any]:
    return profile(plugins={"score": sets})


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (HEADER, []),
        (score(enabled=[{"name": "NodeAffinity", "weight": 2}]), []),
        (
            score(enabled=[{"name": "NodeAffinity", "weight": 9}]),
            [("default-scheduler: NodeAffinity, weight", "2", "9")],
        ),
        (
            score(disabled=[{"name": "ImageLocality"}]),
            [("default-scheduler: ImageLocality", "on at Score, weight 1", "off")],
        ),
        (
            score(enabled=[{"name": "Theirs", "weight": 3}]),
            [("default-scheduler: Theirs", "off", "on at Score, weight 3")],
        ),
        (
            profile(plugins={"multiPoint": {"enabled": [{"name": "Theirs"}]}}),
            [("default-scheduler: Theirs", "off", "on at multiPoint")],
        ),
        (
            {**HEADER, "percentageOfNodesToScore": 50, "leaderElection": {"leaderElect": False}},
            [("percentageOfNodesToScore", "0", "50")],
        ),
        (
            profile(
                pluginConfig=[{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}}]
            ),
            [("default-scheduler: InterPodAffinity, args.hardPodAffinityWeight", "1", "7")],
        ),
        (
            {**HEADER, "profiles": [{"schedulerName": "mine"}]},
            [("profile default-scheduler", "yes", "no"), ("profile mine", "no", "yes")],
        ),
    ],
    ids=[
        "nothing said",
        "the default said in so many words",
        "a weight",
        "a plugin turned off",
        "a plugin of somebody's",
        "one that stands nobody knows where",
        "what decides nothing is left out",
        "an argument",
        "another profile",
    ],
)
def test_what_is_in_force_is_compared(config: Any, expected: list[tuple[str, str, str]]) -> None:
    assert told(None, config) == expected
    assert told(config, None) == [
        (what, b, a) for what, a, b in (expected if "mine" not in str(config) else expected[::-1])
    ]


def test_a_configuration_of_another_version_is_compared_as_it_is_written() -> None:
    newer = {**HEADER, "somethingNew": 1}
    assert told(HEADER, newer) == [("spec.simulation.schedulerConfig.somethingNew", "absent", "1")]


def create(step: int, name: str, **more: Any) -> dict[str, Any]:
    pod = {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, **more}
    return {"step": step, "createOperation": {"object": pod}}


def operations(a: list[Any], b: list[Any]) -> list[tuple[str, str, str]]:
    return [(each.what, each.a, each.b) for each in operation_differences(a, b)]


def test_operations_are_matched_by_what_they_do_not_by_their_place() -> None:
    first, second, third = create(1, "x"), create(1, "y"), create(2, "z")
    assert operations([first, second, third], [second, third]) == [
        ("step 1: create Pod default/x", "given", "none")
    ]


def test_operations_in_another_order_are_told_once() -> None:
    first, second, third = create(1, "x"), create(1, "y"), create(1, "z")
    assert operations([first, second, third], [first, third, second]) == [
        (
            "order of operations, from",
            "step 1: create Pod default/y",
            "step 1: create Pod default/z",
        )
    ]


def test_an_operation_with_an_id_is_matched_by_it() -> None:
    a, b = create(1, "x") | {"id": "o"}, create(3, "x") | {"id": "o"}
    assert operations([a], [b]) == [("operation o.step", "1", "3")]


def test_operations_that_say_the_same_twice_are_told_apart() -> None:
    again = create(1, "x")
    assert operations([again, again], [again]) == [
        ("step 1: create Pod default/x (2)", "given", "none")
    ]


def test_other_operations_have_titles_too() -> None:
    target = {"typeMeta": {"kind": "Node"}, "objectMeta": {"name": "n"}}
    deletion = {"step": 4, "deleteOperation": target}
    file = {"step": 1, "createOperation": {"objectFrom": "pods.yaml"}}
    assert operations([deletion, file, {"step": 5, "doneOperation": {}}], []) == [
        ("step 4: delete Node n", "given", "none"),
        ("step 1: create pods.yaml", "given", "none"),
        ("step 5: done", "given", "none"),
    ]
