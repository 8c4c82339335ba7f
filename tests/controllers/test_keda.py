"""KEDA's ScaledObjects on real objects: their HPA, polls, activation, cool-down, fallback."""

from typing import Any

import pytest

from controllers.test_horizontal_autoscaler import series
from controllers.test_knative_autoscaler import played, spells
from controllers.test_traffic import deployment, traffic
from kubescene.cluster import ClusterWorld
from kubescene.shortcuts import PLAIN
from kubescene.types import JsonObject

HPAS = "horizontalpodautoscalers"


def prometheus(query: str = "queue", threshold: str = "10", **given: Any) -> JsonObject:
    metadata = {"serverAddress": "http://prometheus", "query": query, "threshold": threshold}
    names = "activationThreshold", "ignoreNullValues"
    extra = {name: given.pop(name) for name in names if name in given}
    return {"type": "prometheus", "metadata": {**metadata, **extra}, **given}


def scaled_object(
    *triggers: JsonObject, name: str = "web", annotations: JsonObject | None = None, **spec: Any
) -> JsonObject:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name, **({"annotations": annotations} if annotations else {})},
        "spec": {
            "scaleTargetRef": {"name": "web"},
            "triggers": list(triggers or (prometheus(),)),
            **spec,
        },
    }


def queue(*points: tuple[str, str], metric: str = "queue", **external: Any) -> JsonObject:
    given = [{"at": at, "value": value} for at, value in points]
    return series(f"s-{metric}", metric=metric, external=external, points=given)


def status(cluster: ClusterWorld, name: str = "web") -> JsonObject:
    found: JsonObject = cluster.get("scaledobjects", name).get("status") or {}
    return found


def condition(cluster: ClusterWorld, type: str) -> tuple[str, str]:
    found = next(each for each in status(cluster)["conditions"] if each["type"] == type)
    return found["status"], found.get("reason", "")


def replicas(cluster: ClusterWorld) -> int:
    found: int = cluster.get("deployments", "web")["spec"]["replicas"]
    return found


def test_it_makes_an_hpa_and_feeds_it() -> None:
    cluster, _ = played(deployment(1), queue(("0s", "45")), scaled_object(maxReplicaCount=8))
    hpa = cluster.get(HPAS, "keda-hpa-web")
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (1, 8)
    [metric] = hpa["spec"]["metrics"]
    assert metric["external"] == {
        "metric": {
            "name": "s0-prometheus",
            "selector": {"matchLabels": {"scaledobject.keda.sh/name": "web"}},
        },
        "target": {"type": "AverageValue", "averageValue": "10"},
    }
    assert hpa["metadata"]["ownerReferences"][0]["kind"] == "ScaledObject"
    cluster.advance("45s")
    assert replicas(cluster) == 5
    assert condition(cluster, "Ready") == ("True", "ScaledObjectReady")
    assert condition(cluster, "Active") == ("True", "ScalerActive")
    cluster.advance("30s")
    assert condition(cluster, "HPAActive") == ("True", "HPAActive")
    assert status(cluster)["externalMetricNames"] == ["s0-prometheus"]
    cluster.delete("scaledobjects", "web")
    cluster.settle()
    assert cluster.list(HPAS) == []


def test_from_zero_and_back_at_polls_once_the_cooldown_is_over() -> None:
    """Polls are at 0, 30, 60, ... seconds; the last active one is at 120; more than 90 later."""
    load = queue(("0s", "0"), ("50s", "5"), ("130s", "0"))
    spec = scaled_object(cooldownPeriod=90)
    cluster, decisions = played(deployment(0), load, spec)
    cluster.advance("10m")
    assert [each for each in decisions.made if 0 in each[1:]] == [(60.0, 0, 1), (240.0, 1, 0)]
    assert decisions.reasons[0] == "KEDA: triggered by s0-prometheus"
    assert condition(cluster, "Active") == ("False", "ScalerNotActive")
    assert condition(cluster, "HPAActive") == ("True", "HPAScalingDisabled")


def test_a_value_at_the_activation_threshold_is_not_active() -> None:
    load = queue(("0s", "5"), ("1m", "5100m"))
    spec = scaled_object(prometheus(activationThreshold="5"), pollingInterval=10)
    cluster, decisions = played(deployment(0), load, spec)
    cluster.advance("2m")
    assert decisions.made[0] == (60.0, 0, 1)


def test_idle_replicas_and_the_least() -> None:
    load = queue(("0s", "0"), ("1m", "100"), ("2m", "0"))
    spec = scaled_object(idleReplicaCount=0, minReplicaCount=3, cooldownPeriod=30)
    cluster, decisions = played(deployment(2), load, spec)
    cluster.advance("55s")
    assert replicas(cluster) == 0
    cluster.advance("10s")
    assert replicas(cluster) == 3
    cluster.advance("10m")
    assert replicas(cluster) == 0
    assert (3, 0) in [each[1:] for each in decisions.made]


def test_too_few_replicas_become_the_least() -> None:
    cluster, _ = played(deployment(1), queue(("0s", "0")), scaled_object(minReplicaCount=2))
    cluster.advance("1s")
    assert replicas(cluster) == 2


def test_a_trigger_that_nobody_answers_is_told_and_nothing_is_scaled_to_zero() -> None:
    cluster, decisions = played(deployment(3), scaled_object(), events=True)
    cluster.advance("10m")
    assert condition(cluster, "Ready") == ("False", "TriggerError")
    assert decisions.made == []
    told = [each for each in cluster.list("events") if each["reason"] == "KEDAScalerFailed"]
    assert "no MetricSeries of default is what 'queue' asks for" in told[0]["message"]
    hpa = cluster.get(HPAS, "keda-hpa-web")
    failed = [each for each in hpa["status"]["conditions"] if each["type"] == "ScalingActive"]
    assert failed[0]["reason"] == "FailedGetExternalMetric"


@pytest.mark.parametrize(
    ("behavior", "wanted"),
    [
        ("static", 6),
        ("currentReplicas", 3),
        ("currentReplicasIfHigher", 6),
        ("currentReplicasIfLower", 3),
    ],
)
def test_fallback_after_more_failures_than_the_threshold(behavior: str, wanted: int) -> None:
    """Polls and passes of the HPA count, as upstream: the third failure is at 30 seconds."""
    fallback = {"failureThreshold": 2, "replicas": 6, "behavior": behavior}
    load = queue(("0s", "30"))
    cluster, _ = played(deployment(3), load, scaled_object(fallback=fallback))
    cluster.advance("5s")
    cluster.delete("metricseries", "s-queue")
    cluster.settle().advance("24s")
    assert condition(cluster, "Fallback") == ("False", "NoFallbackFound")
    cluster.advance("10s")
    assert replicas(cluster) == 3
    assert condition(cluster, "Fallback") == ("True", "FallbackExists")
    cluster.advance("2m")
    assert replicas(cluster) == wanted
    assert condition(cluster, "Fallback") == ("True", "FallbackExists")
    assert status(cluster)["health"]["s0-prometheus"]["status"] == "Failing"
    cluster.create(load)
    cluster.settle().advance("6m")
    assert condition(cluster, "Fallback") == ("False", "NoFallbackFound")
    assert replicas(cluster) == 3


def test_who_only_looks_counts_no_failure() -> None:
    fallback = {"failureThreshold": 3, "replicas": 6}
    cluster, _ = played(deployment(3), scaled_object(fallback=fallback))
    source = cluster.manager.usage.externals
    assert source is not None
    labels = {"scaledobject.keda.sh/name": "web"}
    for _ in range(10):
        with pytest.raises(Exception, match="metric:s0-prometheus encountered error"):
            source.external("default", "s0-prometheus", labels, cluster.clock.now(), counted=False)
    assert condition(cluster, "Fallback") == ("False", "NoFallbackFound")


def test_formulas_make_one_metric_of_all() -> None:
    modifiers = {"formula": "max(a, b) / 2 + (a > 100 ? 10 : 0)", "target": "5"}
    triggers = prometheus("first", name="a"), prometheus("second", name="b")
    loads = queue(("0s", "8"), metric="first"), queue(("0s", "40"), metric="second")
    spec = scaled_object(*triggers, advanced={"scalingModifiers": modifiers})
    cluster, _ = played(deployment(1), *loads, spec)
    cluster.advance("2m")
    [metric] = cluster.get(HPAS, "keda-hpa-web")["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] == "composite-metric"
    assert replicas(cluster) == 4
    assert status(cluster)["compositeScalerName"] == "composite-metric"


def test_a_formula_may_go_on_without_a_trigger_that_fails() -> None:
    modifiers = {"formula": "a ?? b ?? 8", "target": "1"}
    triggers = prometheus("first", name="a"), prometheus("second", name="b")
    fallback = {"failureThreshold": 0, "replicas": 7, "behavior": "scalingModifiers"}
    advanced = {"scalingModifiers": modifiers}
    spec = scaled_object(*triggers, advanced=advanced, fallback=fallback)
    cluster, _ = played(deployment(1), queue(("0s", "3"), metric="second"), spec)
    cluster.advance("3m")
    assert replicas(cluster) == 3


def test_cron_is_a_number_of_replicas_between_two_times() -> None:
    cron = {
        "type": "cron",
        "metadata": {
            "timezone": "Europe/Berlin",
            "start": "10 1 * * *",
            "end": "40 1 * * *",
            "desiredReplicas": "5",
        },
    }
    cluster, decisions = played(deployment(0), scaled_object(cron, cooldownPeriod=60))
    cluster.advance("2h")
    ups = [each for each in decisions.made if each[2] > each[1]]
    assert (ups[0][0], ups[-1][2]) == (600.0, 5)
    assert decisions.made[-1][1:] == (1, 0) or decisions.made[-1][1:] == (5, 0)
    assert 2400 < decisions.made[-1][0] < 2500


def test_cpu_and_requests_of_a_traffic_count_beside_each_other() -> None:
    cpu = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}}
    rate = prometheus('sum(requests_per_second{traffic="load"})', "10")
    load = traffic(arrivals=spells(("0s", 0), ("1m", 40), ("4m", 0)), whenNone="wait")
    load["spec"]["request"] = {"cpuTime": "5ms", "timeout": "2m"}
    spec = scaled_object(cpu, rate, cooldownPeriod=60, maxReplicaCount=9)
    cluster, decisions = played(deployment(0), load, spec)
    cluster.advance("3m")
    assert replicas(cluster) == 4
    first = decisions.made[0]
    assert first[1:] == (0, 1)
    assert 60 < first[0] <= 90
    cluster.advance("10m")
    assert replicas(cluster) == 0
    assert cluster.get("traffics", "load")["status"]["failed"] == 0


def test_a_pause_takes_the_hpa_away_and_may_say_how_many() -> None:
    load = queue(("0s", "45"))
    cluster, _ = played(deployment(1), load, scaled_object())
    cluster.advance("1m")
    assert replicas(cluster) == 5
    paused = {"metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": "2"}}}
    cluster.patch("scaledobjects", "web", paused)
    cluster.settle()
    assert (cluster.list(HPAS), replicas(cluster)) == ([], 2)
    assert condition(cluster, "Paused") == ("True", "ScaledObjectPaused")
    cluster.patch("scaledobjects", "web", {"metadata": {"annotations": None}})
    cluster.settle().advance("1m")
    assert replicas(cluster) == 5
    assert condition(cluster, "Paused")[0] == "False"


def test_the_target_gets_back_what_it_had() -> None:
    advanced = {"restoreToOriginalReplicaCount": True}
    cluster, _ = played(deployment(2), queue(("0s", "45")), scaled_object(advanced=advanced))
    cluster.advance("1m")
    assert replicas(cluster) == 5
    cluster.delete("scaledobjects", "web")
    cluster.settle()
    assert replicas(cluster) == 2


def test_another_spec_is_another_hpa_at_once() -> None:
    cluster, _ = played(deployment(1), queue(("0s", "45")), scaled_object())
    cluster.patch("scaledobjects", "web", {"spec": {"maxReplicaCount": 3}})
    cluster.settle()
    assert cluster.get(HPAS, "keda-hpa-web")["spec"]["maxReplicas"] == 3
    cluster.patch(HPAS, "keda-hpa-web", {"spec": {"maxReplicas": 50}})
    cluster.settle()
    assert cluster.get(HPAS, "keda-hpa-web")["spec"]["maxReplicas"] == 3
    name = {"spec": {"advanced": {"horizontalPodAutoscalerConfig": {"name": "mine"}}}}
    cluster.patch("scaledobjects", "web", name)
    cluster.settle()
    assert [each["metadata"]["name"] for each in cluster.list(HPAS)] == ["mine"]


CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "5"}}
CRON = {"timezone": "UTC", "start": "1 * * * *", "end": "2 * * * *", "desiredReplicas": "2"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"triggers": [{"type": "kafka", "metadata": {}}]}, "kafka is not simulated"),
        ({"minReplicaCount": 5, "maxReplicaCount": 9, "idleReplicaCount": 7}, "IdleReplicaCount=7"),
        ({"triggers": [prometheus(threshold="x")]}, "'x' is no number"),
        ({"triggers": [prometheus(threshold="0")]}, "must be more than 0"),
        ({"triggers": [prometheus(threshold="nan")]}, "no finite number"),
        ({"triggers": [{"type": "prometheus", "metadata": {}}]}, "serverAddress: is needed"),
        ({"triggers": [{"type": "cpu", "metadata": {"value": "5"}}]}, "unknown metric type"),
        (
            {"triggers": [CPU]},
            "only cpu/memory triggers AND minReplica is 0",
        ),
        ({"triggers": [{"type": "cron", "metadata": {**CRON, "timezone": "x"}}]}, "time zone x"),
        (
            {"triggers": [{"type": "cron", "metadata": {**CRON, "start": "1 2"}}]},
            "expected exactly",
        ),
        ({"triggers": [{"type": "cron", "metadata": {**CRON, "end": "1 * * * *"}}]}, "same time"),
        (
            {"advanced": {"scalingModifiers": {"formula": "a + 1", "target": "1"}}},
            "triggers[0].name: is needed",
        ),
        (
            {
                "triggers": [prometheus(name="a")],
                "advanced": {"scalingModifiers": {"formula": "a + x", "target": "1"}},
            },
            "unknown name x",
        ),
        (
            {
                "triggers": [prometheus(name="a")],
                "advanced": {"scalingModifiers": {"formula": "trim(a)", "target": "1"}},
            },
            "the function trim is not known here",
        ),
        (
            {
                "triggers": [prometheus(name="a")],
                "advanced": {"scalingModifiers": {"formula": "a"}},
            },
            "target is empty",
        ),
    ],
)
def test_what_makes_no_sense_is_told(spec: JsonObject, words: str) -> None:
    cluster, decisions = played(deployment(2), queue(("0s", "45")), scaled_object(**spec))
    cluster.advance("2m")
    ready = next(each for each in status(cluster)["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ScaledObjectCheckFailed")
    assert words in ready["message"]
    assert (decisions.made, cluster.list(HPAS)) == ([], [])


def test_two_autoscalers_on_one_target_are_one_too_many() -> None:
    objects = deployment(1), queue(("0s", "45")), scaled_object(), scaled_object(name="other")
    cluster, _ = played(*objects)
    told = status(cluster, "other")["conditions"][0]["message"]
    assert told == (
        "the workload 'web' of type 'apps/v1.Deployment' is already managed by the "
        "ScaledObject 'web'"
    )
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "own"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
    }
    cluster, _ = played(deployment(1), hpa, scaled_object())
    assert "managed by the hpa 'own'" in status(cluster)["conditions"][0]["message"]


def busy(**options: Any) -> ClusterWorld:
    load = queue(("0s", "0"), ("50s", "45"), ("3m", "0"), ("5m", "12"))
    spec = scaled_object(prometheus(useCachedMetrics=True), cooldownPeriod=30, pollingInterval=20)
    cluster, _ = played(deployment(0), load, spec, **options)
    return cluster


def story(cluster: ClusterWorld) -> tuple[object, ...]:
    return status(cluster), replicas(cluster), cluster.get(HPAS, "keda-hpa-web")["status"]


def test_cuts_forks_and_shortcuts_do_not_matter() -> None:
    whole, cut, forked, plain = busy(), busy(), busy(), busy(shortcuts=PLAIN)
    whole.advance("8m")
    for _ in range(32):
        cut.advance("15s")
    forked.advance("2m5s")
    twin = forked.fork()
    for each in (forked, twin):
        each.advance("5m55s")
        assert story(each) == story(whole)
    plain.advance("8m")
    assert story(cut) == story(whole)
    assert story(plain) == story(whole)
