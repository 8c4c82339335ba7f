"""LimitRanger where recordings show nothing: several ranges, sidecars, resizing, pod-level."""

import pytest

from kubescene.cluster import ClusterWorld
from kubescene.errors import ForbiddenError
from kubescene.testing import make_pod
from kubescene.types import JsonObject


@pytest.fixture
def world() -> ClusterWorld:
    return ClusterWorld()


def limit(cluster: ClusterWorld, name: str, *limits: JsonObject) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"limits": list(limits)},
        }
    )


def pod(name: str, own: JsonObject | None = None, **spec: object) -> JsonObject:
    built = make_pod(name).build()
    container = {"name": "c", "image": "i", **({"resources": own} if own else {})}
    return {**built, "spec": {**built["spec"], "containers": [container], **spec}}


def test_the_first_range_by_name_sets_what_the_next_finds_set(world: ClusterWorld) -> None:
    limit(world, "b", {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}})
    limit(world, "a", {"type": "Container", "default": {"cpu": "1"}})
    made = world.create(pod("p"))
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "1Gi"},
    }
    # As on a real cluster, the last range that sets something says what it has set.
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: memory request for container c; "
        "memory limit for container c"
    }


def test_pods_of_other_namespaces_are_left_alone(world: ClusterWorld) -> None:
    limit(world, "a", {"type": "Container", "default": {"cpu": "1"}})
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "free"}})
    made = world.create(make_pod("p").namespace("free"))
    assert "annotations" not in made["metadata"]


def test_a_sidecar_adds_to_the_pod_and_an_init_container_does_not(world: ClusterWorld) -> None:
    limit(world, "a", {"type": "Pod", "max": {"cpu": "1"}})
    own = {"limits": {"cpu": "600m"}}
    before = {"name": "i", "image": "i", "resources": own}
    world.create(pod("ok", own, initContainers=[before]))
    beside = {**before, "restartPolicy": "Always"}
    with pytest.raises(ForbiddenError, match="maximum cpu usage per Pod is 1, but limit is 1200m"):
        world.create(pod("no", own, initContainers=[beside]))


def test_what_a_pod_states_itself_counts_for_it(world: ClusterWorld) -> None:
    limit(world, "a", {"type": "Pod", "max": {"cpu": "1"}})
    world.create(pod("ok", resources={"limits": {"cpu": "1"}}))
    with pytest.raises(ForbiddenError, match="but limit is 2"):
        world.create(pod("no", resources={"limits": {"cpu": "2"}}))


def test_a_pod_may_not_be_resized_beyond_the_bounds(world: ClusterWorld) -> None:
    world.create(pod("p", {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}))
    limit(world, "a", {"type": "Container", "max": {"cpu": "1"}})
    world.patch("Pod", "p", {"metadata": {"labels": {"any": "update"}}}, "default")
    larger = {"name": "c", "resources": {"limits": {"cpu": "2"}}}
    with pytest.raises(ForbiddenError, match="maximum cpu usage per Container is 1"):
        world.patch("Pod", "p", {"spec": {"containers": [larger]}}, "default", subresource="resize")


def test_a_claim_may_not_outgrow_the_bounds(world: ClusterWorld) -> None:
    limit(world, "a", {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "512Mi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}}
    with pytest.raises(ForbiddenError, match="but request is 512Mi"):
        world.create({**claim, "spec": spec})


def test_a_ratio_asks_for_both_sides(world: ClusterWorld) -> None:
    limit(world, "a", {"type": "Container", "maxLimitRequestRatio": {"memory": "2"}})
    rule = "memory max limit to request ratio per Container is 2, but"
    with pytest.raises(ForbiddenError, match=f"{rule} no request is specified or request is 0"):
        world.create(pod("none"))
    with pytest.raises(ForbiddenError, match=f"{rule} no limit is specified or limit is 0"):
        world.create(pod("half", {"requests": {"memory": "1Gi"}}))


def test_a_new_range_counts_for_the_next_pod_of_a_template(world: ClusterWorld) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("")["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    world.create(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec}
    )
    world.settle()
    limit(world, "a", {"type": "Container", "default": {"cpu": "1"}})
    world.scale("ReplicaSet", "web", 6)
    world.settle()
    set_by_plugin = ["annotations" in each["metadata"] for each in world.list("Pod")]
    assert sorted(set_by_plugin) == [False] * 3 + [True] * 3


def test_the_first_range_that_is_broken_speaks_alone(world: ClusterWorld) -> None:
    """Recorded: the others are not asked any more."""
    limit(world, "b", {"type": "Pod", "max": {"cpu": "1"}})
    limit(world, "a", {"type": "Container", "max": {"cpu": "2"}})
    with pytest.raises(ForbiddenError) as refusal:
        world.create(pod("p", {"limits": {"cpu": "3"}}))
    assert "per Pod" not in str(refusal.value)
    assert "maximum cpu usage per Container is 2" in str(refusal.value)
    with pytest.raises(ForbiddenError, match="maximum cpu usage per Pod is 1"):
        world.create(pod("p", {"limits": {"cpu": "1500m"}}))
