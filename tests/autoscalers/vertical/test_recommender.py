"""The recommender as a value: what it remembers, forgets, saves and explains."""

from copy import deepcopy
from typing import Any

import pytest

from autoscalers.vertical.vertical_worlds import (
    MI,
    START,
    feed,
    make_recommender,
    make_vpa,
    policies,
)
from kubescene.api.selectors.label_selectors import parse_labels
from kubescene.autoscalers.vertical import CheckpointError, Recommender, recommender_options
from kubescene.autoscalers.vertical.histories import checkpoint_object
from kubescene.autoscalers.vertical.options import DAY, HOUR
from kubescene.clock import MINUTE


def target(recommender: Recommender, container: str = "app", now: int = START) -> dict[str, str]:
    found = recommender.recommend(now).container(container)
    assert found is not None
    return {name: str(amount) for name, amount in (found.target or {}).items()}


def add_pod(recommender: Recommender, name: str, labels: dict[str, str], now: int = START) -> None:
    recommender.usage.set_pod(name, labels=labels, containers=["app"], now=now)


def test_a_copy_goes_on_by_itself() -> None:
    recommender = make_recommender()
    feed(recommender, cpu=100, memory=400 * MI, minutes=60)
    copied = deepcopy(recommender)
    before = recommender.recommend(START + HOUR)
    for number in range(600):
        copied.usage.add_cpu("pod", "app", 2000, START + HOUR + number * MINUTE)
    assert target(copied)["cpu"] == "2406m"
    assert recommender.recommend(START + HOUR) == before


def test_the_same_input_gives_the_same_recommendation() -> None:
    made = []
    for _ in range(2):
        recommender = make_recommender(None, "app", "proxy")
        feed(recommender, cpu=333, memory=77 * MI, minutes=90)
        feed(recommender, cpu=12, memory=5 * MI, minutes=90, container="proxy")
        made.append(recommender.recommend(START + 2 * HOUR))
    assert made[0] == made[1]
    assert made[0].explain() == made[1].explain()


def test_without_pods_there_is_no_recommendation_and_a_condition_says_so() -> None:
    recommender = Recommender(make_vpa())
    conditions = recommender.recommend(START).conditions
    assert [(each.type, each.status, each.reason) for each in conditions] == [
        ("NoPodsMatched", True, "NoPodsMatched"),
        ("RecommendationProvided", False, "NoPodsMatched"),
    ]
    add_pod(recommender, "pod", {})
    [provided] = recommender.recommend(START + HOUR).conditions
    assert (provided.type, provided.status, provided.since) == (
        "RecommendationProvided",
        True,
        START + HOUR,
    )
    [again] = recommender.recommend(START + DAY).conditions
    assert again.since == START + HOUR, "the status did not change"


def test_the_status_is_that_of_the_api() -> None:
    recommender = make_recommender(vpa=make_vpa(generation=3))
    feed(recommender, cpu=200, memory=3 * 10**8, minutes=1)
    assert recommender.recommend(START).to_status() == {
        "observedGeneration": 3,
        "conditions": [
            {
                "type": "RecommendationProvided",
                "status": "True",
                "lastTransitionTime": "2026-03-01T00:00:00Z",
            }
        ],
        "recommendation": {
            "containerRecommendations": [
                {
                    "containerName": "app",
                    "target": {"cpu": "247m", "memory": "351198544"},
                    "lowerBound": {"cpu": "25m", "memory": "250Mi"},
                    "upperBound": {"cpu": "100G", "memory": "97656250000Ki"},
                    "uncappedTarget": {"cpu": "247m", "memory": "351198544"},
                }
            ]
        },
    }


def test_pods_that_do_not_match_do_not_count() -> None:
    recommender = Recommender(make_vpa(), selector=parse_labels("app=web"))
    add_pod(recommender, "other", {"app": "db"})
    recommender.usage.add_cpu("other", "app", 4000, START)
    assert recommender.recommend(START).recommended == ()
    add_pod(recommender, "web", {"app": "web"})
    recommender.usage.add_cpu("web", "app", 100, START)
    assert target(recommender)["cpu"] == "126m"


def test_samples_of_a_pod_that_is_gone_still_count() -> None:
    recommender = make_recommender()
    feed(recommender, cpu=1000, minutes=10)
    recommender.usage.delete_pod("pod")
    assert target(recommender)["cpu"] == "1168m"
    assert not recommender.usage.add_cpu("pod", "app", 1, START + HOUR), "nobody knows it any more"


@pytest.mark.parametrize(("days", "left"), [(7, 1), (8, 0)])
def test_garbage_collection_forgets_what_is_eight_days_old(days: int, left: int) -> None:
    recommender = make_recommender()
    recommender.usage.add_cpu("pod", "app", 1000, START)
    recommender.collect_garbage(START + days * DAY)
    assert len(recommender.usage.aggregates) == left


def test_garbage_is_collected_at_most_hourly() -> None:
    recommender = make_recommender()
    recommender.collect_garbage(START)
    recommender.usage.delete_pod("pod")
    recommender.collect_garbage(START + HOUR - 1)
    assert len(recommender.usage.aggregates) == 1
    recommender.collect_garbage(START + HOUR)
    assert not recommender.usage.aggregates


@pytest.mark.parametrize(("phase", "controlled", "left"), [
    ("Running", False, 1), ("Failed", False, 0), ("Succeeded", True, 1),
])  # fmt: skip
def test_an_empty_aggregate_stays_while_somebody_feeds_it(
    phase: str, controlled: bool, left: int
) -> None:
    recommender = Recommender(make_vpa())
    recommender.usage.set_pod("p", labels={}, containers=["app"], now=START, phase=phase)
    recommender.collect_garbage(START, has_controller=controlled)
    assert len(recommender.usage.aggregates) == left


def test_a_relabelled_pod_loses_its_samples_once_its_aggregate_was_collected() -> None:
    recommender = Recommender(make_vpa())
    add_pod(recommender, "pod", {"v": "1"})
    add_pod(recommender, "pod", {"v": "2"})
    recommender.collect_garbage(START + 8 * DAY)
    assert not recommender.usage.aggregates
    assert recommender.usage.add_cpu("pod", "app", 1000, START + 8 * DAY)
    assert recommender.recommend(START + 8 * DAY).recommended == ()


def test_off_leaves_a_container_out_and_its_minimum_to_the_others() -> None:
    vpa = make_vpa(policies({"containerName": "proxy", "mode": "Off"}))
    recommender = make_recommender(None, "app", "proxy", vpa=vpa)
    [only] = recommender.recommend(START).recommended
    assert only.container_name == "app"
    assert target(recommender) == {"cpu": "25m", "memory": "250Mi"}


@pytest.mark.parametrize(
    ("controlled", "left"), [(["memory"], {"memory"}), ([], set()), (["cpu", "gpu"], {"cpu"})]
)
def test_only_controlled_resources_are_recommended(controlled: list[str], left: set[str]) -> None:
    vpa = make_vpa(policies({"containerName": "*", "controlledResources": controlled}))
    assert set(target(make_recommender(vpa=vpa))) == left


def capped(vpa_policy: dict[str, Any], config: dict[str, Any] | None = None) -> list[Any]:
    recommender = make_recommender(
        recommender_options(config or {}), vpa=make_vpa(policies(vpa_policy))
    )
    feed(recommender, cpu=1000, minutes=1440)
    [container] = recommender.recommend(START + DAY).containers
    return [(each.bound, each.by, each.after) for each in container.capped]


def test_policies_cap_everything_but_the_uncapped_target() -> None:
    assert capped({"containerName": "app", "maxAllowed": {"cpu": "1166m"}}) == [
        ("target", "maxAllowed", "1166m"),
        ("upperBound", "maxAllowed", "1166m"),
    ]
    assert capped({"containerName": "app", "minAllowed": {"cpu": "2"}})[:2] == [
        ("target", "minAllowed", "2"),
        ("lowerBound", "minAllowed", "2"),
    ]


def test_the_highest_wins_and_zero_is_no_bound() -> None:
    both = {"minAllowed": {"cpu": "5"}, "maxAllowed": {"cpu": "3"}}
    assert capped({"containerName": "app"} | both)[-1] == ("upperBound", "maxAllowed", "3")
    assert capped({"containerName": "app", "maxAllowed": {"cpu": "0"}}) == []


def test_what_is_at_a_bound_is_not_changed_by_it() -> None:
    at_target = {"minAllowed": {"cpu": "1168m"}, "maxAllowed": {"cpu": "2336m"}}
    assert capped({"containerName": "app"} | at_target) == [("lowerBound", "minAllowed", "1168m")]


def test_the_global_maximum_holds_where_the_policy_says_nothing() -> None:
    general = {"globalMaxAllowed": {"cpu": "100m"}}
    assert capped({"containerName": "app", "maxAllowed": {"memory": "1Gi"}}, general)[0] == (
        "target",
        "globalMaxAllowed",
        "100m",
    )
    assert capped({"containerName": "app", "maxAllowed": {"cpu": "5"}}, general) == []


@pytest.mark.parametrize(("flag", "value", "expected"), [
    (True, "true", "2"), (True, "false", "1168m"), (False, "true", "1168m"),
])  # fmt: skip
def test_whole_cores_need_flag_and_annotation(flag: bool, value: str, expected: str) -> None:
    annotations = {"vpa-post-processor.kubernetes.io/app_integerCPU": value}
    recommender = make_recommender(
        recommender_options({"integerCPUPostProcessor": flag}),
        vpa=make_vpa(annotations=annotations),
    )
    feed(recommender, cpu=1000, minutes=1)
    [recommended] = recommender.recommend(START).recommended
    assert recommended.to_dict()["uncappedTarget"]["cpu"] == expected


def test_amounts_are_rounded_and_humanized() -> None:
    options = recommender_options(
        {"roundCPUMillicores": 100, "roundMemoryBytes": 1000, "humanizeMemory": True}
    )
    recommender = make_recommender(options)
    feed(recommender, cpu=100, memory=500 * MI, minutes=1)
    assert target(recommender) == {"cpu": "200m", "memory": "628694712320m"}, "599.57Mi, as stored"


def test_an_explanation_names_percentile_margin_confidence_and_minimum() -> None:
    vpa = make_vpa(policies({"containerName": "app", "maxAllowed": {"cpu": "120m"}}))
    recommender = make_recommender(vpa=vpa)
    feed(recommender, cpu=100, memory=100 * MI, minutes=60)
    said = recommender.recommend(START + HOUR).explain()
    assert said[:3] == [
        "app cpu lowerBound: percentile 0.5 is 110m, with margin 126m, "
        "times 0.952917 for confidence 0.0409722 is 120m",
        "app cpu target: percentile 0.9 is 110m, with margin 126m",
        "app cpu upperBound: percentile 0.95 is 110m, with margin 126m, "
        "times 25.4068 for confidence 0.0409722 is 3201m",
    ]
    assert said[4].endswith("with margin 126805489 bytes, raised to the minimum 262144000 bytes")
    assert said[-1] == "app cpu upperBound: maxAllowed made 120m of 3201m"


# -- checkpoints -------------------------------------------------------------------------------


def test_a_restarted_recommender_goes_on_from_its_checkpoints() -> None:
    old = make_recommender()
    feed(old, cpu=1000, memory=800 * MI, minutes=3 * 1440)
    now = START + 3 * DAY
    saved = old.checkpoints(now)
    new = Recommender(make_vpa())
    new.load(saved, now)
    assert target(new, now=now) == target(old, now=now)
    assert saved["app"]["totalSamplesCount"] == 3 * 1440


def test_a_checkpoint_leaves_the_running_peak_out() -> None:
    recommender = make_recommender()
    feed(recommender, cpu=100, memory=800 * MI, minutes=10)
    saved = recommender.checkpoints(START + HOUR)
    assert "bucketWeights" not in saved["app"]["memoryHistogram"]
    assert "bucketWeights" in recommender.checkpoints(START + DAY)["app"]["memoryHistogram"]
    assert target(recommender)["memory"] != "250Mi", "saving takes nothing away"


def test_a_checkpoint_object_is_named_after_vpa_and_container() -> None:
    recommender = make_recommender()
    obj = checkpoint_object("web", "app", recommender.checkpoints(START)["app"])
    assert obj["metadata"]["name"] == "web-app"
    assert obj["status"]["version"] == "v3"
    assert obj["status"]["cpuHistogram"] == {"referenceTimestamp": None}
    assert "totalSamplesCount" not in obj["status"], "the API leaves zeros out"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": "v2"}, "version: 'v2'"),
        ({"totalSamplesCount": -1}, "totalSamplesCount: -1"),
        ({"firstSampleStart": "yesterday"}, "firstSampleStart: "),
        ({"cpuHistogram": {"totalWeight": -1.0}}, "cpuHistogram.totalWeight: -1.0"),
        ({"cpuHistogram": {"totalWeight": float("nan")}}, "cpuHistogram.totalWeight: nan"),
        ({"memoryHistogram": {"bucketWeights": {"176": 1}}}, "memoryHistogram.bucketWeights: "),
        ({"memoryHistogram": {"bucketWeights": {"-1": 1}}}, "memoryHistogram.bucketWeights: "),
        ({"memoryHistogram": {"bucketWeights": {"a": 1}}}, "memoryHistogram.bucketWeights: "),
        ({"memoryHistogram": {"bucketWeights": {"1": -1}}}, "memoryHistogram.bucketWeights[1]"),
    ],
)
def test_a_broken_checkpoint_is_refused_whole(change: dict[str, Any], said: str) -> None:
    good = make_recommender().checkpoints(START)["app"]
    recommender = Recommender(make_vpa())
    with pytest.raises(CheckpointError) as refusal:
        recommender.load({"good": good, "app": good | change}, START)
    assert str(refusal.value).startswith(said)
    assert not recommender.recommend(START).recommended


def with_two_label_sets() -> Recommender:
    recommender = Recommender(make_vpa())
    for name in ("a", "b"):
        add_pod(recommender, name, {"app": "web", "v": name})
    return recommender


def test_a_recommendation_does_not_depend_on_the_order_of_histories() -> None:
    """Two label sets, one silent for a month: upstream's maps have no order either."""
    first, second = with_two_label_sets(), with_two_label_sets()
    for recommender, old, young in ((first, "a", "b"), (second, "b", "a")):
        recommender.usage.add_cpu(old, "app", 1000, START)
        recommender.recommend(START)
        recommender.usage.add_cpu(young, "app", 36000, START + 31 * DAY)
    found = [each.histories(START + 31 * DAY)["app"].cpu for each in (first, second)]
    assert [each.percentile(0.0) for each in found] == [found[0].percentile(0.0)] * 2
    assert found[0].percentile(0.0) < 2, "what was seen a month ago has not vanished"


@pytest.mark.parametrize(
    ("cpu", "memory", "left"), [(-1, -1, 0), (0, -1, 1), (-1, 0, 1)], ids=["none", "cpu", "memory"]
)
def test_only_samples_that_are_taken_revive_a_collected_history(
    cpu: int, memory: int, left: int
) -> None:
    recommender = make_recommender()
    recommender.collect_garbage(START + 9 * DAY)
    assert not recommender.usage.aggregates
    recommender.usage.add_cpu("pod", "app", cpu, START + 9 * DAY)
    recommender.usage.add_memory("pod", "app", memory, START + 9 * DAY)
    assert len(recommender.usage.aggregates) == left


def test_a_kill_that_is_refused_revives_a_collected_history() -> None:
    recommender = make_recommender()
    recommender.usage.add_memory("pod", "app", 1, START + 9 * DAY)
    recommender.collect_garbage(START + 20 * DAY)
    assert not recommender.usage.aggregates
    assert not recommender.usage.add_oom("pod", "app", 1, START)
    assert len(recommender.usage.aggregates) == 1
