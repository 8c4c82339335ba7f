"""The vertical pod autoscaler on real objects: recommender, updater, admission."""

from typing import Any

import pytest

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import ForbiddenError, InvalidError
from kubescene.instruments import Instrument
from kubescene.scenario.validation.unsimulated import KINDS
from kubescene.testing import make_node
from kubescene.types import JsonObject

VPAS, CHECKPOINTS = "verticalpodautoscalers", "verticalpodautoscalercheckpoints"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def deployment(replicas: int = 4, **container: Any) -> JsonObject:
    resources = {"requests": {"cpu": "500m", "memory": "128Mi"}}
    app = {"name": "app", "image": "web", "resources": resources, **container}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [app]}},
        },
    }


def vpa(mode: str = "Recreate", name: str = "web", **spec: Any) -> JsonObject:
    spec = {"targetRef": TARGET, "updatePolicy": {"updateMode": mode}, **spec}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name},
        "spec": spec,
    }


def load(resource: str = "cpu", value: str = "1", **spec: Any) -> JsonObject:
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "MetricSeries",
        "metadata": {"name": f"used-{resource}"},
        "spec": {
            "resource": resource,
            "perPod": True,
            "pods": {"matchLabels": {"app": "web"}},
            "points": [{"at": "0s", "value": value}],
            **spec,
        },
    }


def world(*objects: JsonObject, **options: Any) -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(**options))
    for number in range(4):
        cluster.create(make_node(f"n{number}").cpu("16").memory("64Gi"))
    for each in objects:
        cluster.create(each)
    return cluster.settle()


def requests(cluster: ClusterWorld, resource: str = "cpu") -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["spec"]["containers"][0]["resources"]["requests"][resource]
        for each in cluster.list("pods")
        if not each["metadata"].get("deletionTimestamp")
    }


def status(cluster: ClusterWorld) -> JsonObject:
    found: JsonObject = cluster.get(VPAS, "web").get("status") or {}
    return found


def target(cluster: ClusterWorld) -> JsonObject:
    found: JsonObject = status(cluster)["recommendation"]["containerRecommendations"][0]["target"]
    return found


def conditions(cluster: ClusterWorld) -> dict[str, tuple[str, str]]:
    return {
        each["type"]: (each["status"], each.get("message", ""))
        for each in status(cluster)["conditions"]
    }


def test_the_first_minute_brings_a_recommendation_and_half_of_the_pods_go() -> None:
    """One core each: bucket 36 ends at 1.016, times 1.15. Of four pods two may be missing."""
    cluster = world(deployment(), load(), vpa())
    cluster.advance("59s")
    assert status(cluster) == {}
    cluster.advance("1s")
    assert target(cluster) == {"cpu": "1168m", "memory": "250Mi"}
    assert sorted(requests(cluster).values()) == ["1168m", "1168m", "500m", "500m"]
    cluster.advance("1m")
    assert set(requests(cluster).values()) == {"1168m"}


def test_pods_are_resized_where_they_are() -> None:
    cluster = world(deployment(), load(), vpa("InPlaceOrRecreate"))
    before = set(requests(cluster))
    cluster.advance("2m")
    assert set(requests(cluster)) == before
    assert set(requests(cluster).values()) == {"1168m"}
    pod = cluster.list("pods")[0]
    assert pod["metadata"]["annotations"]["vpaInPlaceUpdated"] == "true"
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.parametrize(("mode", "evicts", "admits"), [("Off", 0, 0), ("Initial", 0, 1)])
def test_modes_that_leave_pods_alone(mode: str, evicts: int, admits: int) -> None:
    cluster = world(deployment(), load(), vpa(mode))
    cluster.advance("3m")
    assert set(requests(cluster).values()) == {"500m"}
    assert target(cluster)["cpu"] == "1168m"
    cluster.delete("pods", next(iter(requests(cluster))))
    cluster.settle()
    assert sorted(requests(cluster).values()).count("1168m") == admits + evicts


def test_limits_follow_in_proportion_and_annotations_say_what_was_done() -> None:
    resources = {"requests": {"cpu": "500m", "memory": "128Mi"}, "limits": {"cpu": "1"}}
    cluster = world(deployment(resources=resources), load(), vpa())
    cluster.advance("2m")
    pod = cluster.list("pods")[0]
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2336m"}
    annotations = pod["metadata"]["annotations"]
    assert annotations["vpaObservedContainers"] == "app"
    assert annotations["vpaUpdates"] == (
        "Pod resources updated by web: container 0: cpu limit, cpu request, memory request, "
        "memory: limit NOT set since originalLimit is nil or 0"
    )


def test_disruption_budgets_hold_and_leave_the_place_to_nobody_else() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}},
    }
    cluster = world(deployment(), budget, load(), vpa())
    cluster.advance("3m")
    assert set(requests(cluster).values()) == {"500m"}
    cluster.patch("poddisruptionbudgets", "web", {"spec": {"minAvailable": 3}})
    cluster.advance("1m")
    assert sorted(requests(cluster).values()) == ["1168m", "500m", "500m", "500m"]


def test_a_single_pod_stays_unless_the_object_says_otherwise() -> None:
    cluster = world(deployment(1), load(), vpa())
    cluster.advance("3m")
    assert set(requests(cluster).values()) == {"500m"}
    policy = {"spec": {"updatePolicy": {"minReplicas": 1}}}
    cluster.patch(VPAS, "web", policy)
    cluster.advance("1m")
    assert set(requests(cluster).values()) == {"1168m"}


def test_memory_peaks_count_too() -> None:
    cluster = world(deployment(), load("memory", "1Gi"), vpa("Off"))
    cluster.advance("1m")
    # 1 Gi is in the bucket that ends at 1077095457 bytes; with a margin of 15 %.
    assert target(cluster)["memory"] == str(1077095457 + int(1077095457 * 0.15))


def test_a_kill_for_want_of_memory_raises_the_target() -> None:
    cluster = world(deployment(), vpa("Off"))
    pod = cluster.list("pods")[0]
    ended = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:05Z",
    }
    statuses = pod["status"]["containerStatuses"]
    cluster.advance("70s")
    killed = [{**statuses[0], "restartCount": 1, "lastState": {"terminated": ended}}]
    cluster.patch(
        "pods",
        pod["metadata"]["name"],
        {"status": {"containerStatuses": killed}},
        subresource="status",
    )
    cluster.advance("1m")
    # max(128 Mi + 100 Mi, 128 Mi * 1.2) is above the minimum of 250 Mi with its margin.
    assert int(target(cluster)["memory"]) > 262144000


@pytest.mark.parametrize(
    ("ref", "told"),
    [
        ({**TARGET, "name": "other"}, "Deployment default/other does not exist"),
        ({**TARGET, "kind": "Nothing"}, 'no matches for kind "Nothing" in group "apps"'),
    ],
)
def test_a_target_that_is_not_there_is_told(ref: JsonObject, told: str) -> None:
    cluster = world(deployment(), load(), vpa(targetRef=ref))
    cluster.advance("1m")
    said = conditions(cluster)
    assert told in said["ConfigUnsupported"][1]
    assert said["NoPodsMatched"][0] == "True"
    assert said["RecommendationProvided"] == ("False", "No pods match this VPA object")
    assert status(cluster)["recommendation"] == {}
    good = {"spec": {"targetRef": TARGET}}
    cluster.patch(VPAS, "web", good)
    cluster.advance("1m")
    assert conditions(cluster) == {"RecommendationProvided": ("True", "")}


def test_a_target_that_has_an_owner_is_unsupported() -> None:
    cluster = world(deployment())
    name = cluster.list("replicasets")[0]["metadata"]["name"]
    cluster.create(vpa(targetRef={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name}))
    cluster.advance("1m")
    assert conditions(cluster)["ConfigUnsupported"][1] == (
        f"The target apps/v1.ReplicaSet/{name} has a parent controller but it should point to a "
        "topmost well-known or scalable controller"
    )


def test_of_two_the_older_has_the_say() -> None:
    small = {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "700m"}}]}
    cluster = world(deployment(), load(), vpa(name="web", resourcePolicy=small))
    cluster.advance("10s")
    cluster.create(vpa(name="a-later-one"))
    cluster.advance("3m")
    assert set(requests(cluster).values()) == {"700m"}


def test_what_admission_refuses_and_completes() -> None:
    cluster = world()
    cluster.create({**vpa(), "spec": {"targetRef": TARGET}})
    assert cluster.get(VPAS, "web")["spec"]["updatePolicy"] == {"updateMode": "Recreate"}
    bad = {"containerPolicies": [{"containerName": "c", "minAllowed": {"cpu": "1u"}}]}
    with pytest.raises(ForbiddenError, match="must be a whole number of milli CPUs"):
        cluster.create(vpa(name="b", resourcePolicy=bad))
    with pytest.raises(ForbiddenError, match="feature gate InPlace"):
        cluster.create(vpa("InPlace", name="b"))


@pytest.mark.parametrize("spec", [True, 1.5, "x", [], 0, ""])
def test_a_spec_that_is_no_object_is_refused_as_it_was_written(spec: Any) -> None:
    with pytest.raises(InvalidError, match="spec in body must be of type object"):
        world().create({**vpa(), "spec": spec})


def test_history_goes_on_from_checkpoints() -> None:
    """A history from another cluster: a day of 100 millicores in bucket 8 (0.110 cores)."""
    saved = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": "web-app", "namespace": "default"},
        "spec": {"vpaObjectName": "web", "containerName": "app"},
        "status": {
            "version": "v3",
            "firstSampleStart": "2025-12-31T00:00:00Z",
            "lastSampleStart": "2026-01-01T00:00:00Z",
            "totalSamplesCount": 1440,
            "cpuHistogram": {
                "referenceTimestamp": "2026-01-01T00:00:00Z",
                "bucketWeights": {"8": 10000},
                "totalWeight": 144,
            },
            "memoryHistogram": {"referenceTimestamp": None},
        },
    }
    cluster = world(deployment(), saved, vpa("Off"))
    cluster.advance("1m")
    assert target(cluster)["cpu"] == "126m"
    kept = cluster.get(CHECKPOINTS, "web-app")["status"]
    assert kept["totalSamplesCount"] == 1440
    assert kept["lastUpdateTime"] == "2026-01-01T00:01:00Z"


def test_checkpoints_without_an_object_go() -> None:
    cluster = world(deployment(), load(), vpa("Off"), vpa("Off", name="other"))
    cluster.advance("1m")
    names = {each["metadata"]["name"] for each in cluster.list(CHECKPOINTS)}
    assert names == {"web-app", "other-app"}
    cluster.delete(VPAS, "other")
    cluster.advance("20m")
    assert {each["metadata"]["name"] for each in cluster.list(CHECKPOINTS)} == {"web-app"}


def test_another_recommender_is_left_to_itself() -> None:
    cluster = world(deployment(), load(), vpa(recommenders=[{"name": "mine"}]))
    cluster.advance("2m")
    assert status(cluster) == {}
    recommended = [{"containerName": "app", "target": {"cpu": "900m", "memory": "300Mi"}}]
    cluster.patch(
        VPAS,
        "web",
        {"status": {"recommendation": {"containerRecommendations": recommended}}},
        subresource="status",
    )
    cluster.advance("2m")
    cluster.delete("pods", next(iter(requests(cluster))))
    cluster.settle()
    assert "900m" in requests(cluster).values()


def test_events_are_those_of_the_updater() -> None:
    cluster = world(deployment(), load(), vpa(), events=True)
    cluster.advance("1m")
    told = {(e["reason"], e["source"].get("component")) for e in cluster.list("events")}
    assert {("EvictedByVPA", "vpa-updater"), ("EvictedPod", "vpa-updater")} <= told


class Listener(Instrument):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def fact_told(self, actor: Any, fact: Any) -> None:
        del actor
        self.told.append(fact)


def test_decisions_are_facts() -> None:
    cluster = world(deployment(2), load(), vpa("InPlaceOrRecreate"))
    cluster.advance("5m")
    listener = Listener()
    cluster.observe(listener)
    cluster.patch(
        VPAS,
        "web",
        {
            "spec": {
                "resourcePolicy": {
                    "containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "800m"}}]
                }
            }
        },
    )
    cluster.advance("2m")
    sized = [fact for fact in listener.told if type(fact).__name__ == "SizesDecided"]
    assert [each.action for each in sized] == ["resized", "resized"]
    assert sized[0].before["app"]["cpu"] == "1168m"
    assert sized[0].after["app"]["cpu"] == "800m"
    assert sized[0].reason == "its requests are outside of the recommended range"


def test_a_world_without_objects_knows_neither_kind() -> None:
    cluster = world(deployment())
    assert not any("vertical" in each["metadata"]["name"] for each in cluster.list("crd"))
    cluster.create(vpa())
    assert any("vertical" in each["metadata"]["name"] for each in cluster.list("crd"))
    assert KINDS["autoscaling.k8s.io", "VerticalPodAutoscaler"] in cluster.registrations


def test_who_brings_the_definition_himself_is_not_in_its_way() -> None:
    from kubescene.controllers.builtin.autoscaling.definitions import load as definition

    cluster = world()
    cluster.create(definition("verticalpodautoscalers.autoscaling.k8s.io"))
    cluster.create(deployment())
    cluster.create(load())
    cluster.create(vpa("Off"))
    cluster.advance("1m")
    assert target(cluster)["cpu"] == "1168m"


@pytest.mark.parametrize("cuts", [["5m"], ["1m"] * 5, ["7s"] * 42 + ["6s"]])
def test_how_time_is_cut_changes_nothing(cuts: list[str]) -> None:
    whole, cut = (world(deployment(), load(), vpa()) for _ in range(2))
    whole.advance("5m")
    for each in cuts:
        cut.advance(each)
    assert whole.export() == cut.export()


def test_a_fork_goes_on_alike() -> None:
    cluster = world(deployment(), load(), vpa())
    cluster.advance("90s")
    twin = cluster.fork()
    for each in (cluster, twin):
        each.advance("5m")
    assert cluster.export() == twin.export()
