"""What a new pod gets."""

from typing import Any

import pytest

from autoscalers.vertical.vertical_worlds import in_mode, make_pod, make_vpa, policies
from kubescene.autoscalers.vertical import pod_patches
from kubescene.autoscalers.vertical.admission import admitted, resource_patches
from kubescene.autoscalers.vertical.limits import amount_of, limit_ranges

TARGET = {"app": {"target": {"cpu": "500m", "memory": "200Mi"}}}
HAS = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "200m"}}


def patched(vpa: Any, containers: Any, **given: Any) -> dict[str, Any]:
    pod = make_pod(containers=containers, **given)
    return {each["path"]: each["value"] for each in pod_patches(vpa, pod)}


def test_requests_at_the_target_and_limits_in_proportion() -> None:
    patches = patched(make_vpa(recommended=TARGET), {"app": HAS}, annotations={})
    below = "/spec/containers/0/resources"
    assert patches == {
        f"{below}/requests/cpu": "500m",
        f"{below}/requests/memory": "200Mi",
        f"{below}/limits/cpu": "1",
        "/metadata/annotations/vpaUpdates": (
            "Pod resources updated by web: container 0: cpu limit, cpu request, memory request, "
            "memory: limit NOT set since originalLimit is nil or 0"
        ),
        "/metadata/annotations/vpaObservedContainers": "app",
    }


def test_requests_only_leaves_limits_alone_and_stays_below_them() -> None:
    vpa = make_vpa(
        policies({"containerName": "*", "controlledValues": "RequestsOnly"}), recommended=TARGET
    )
    made = admitted(vpa, make_pod(containers={"app": HAS}))
    assert made.resources[0].limits is None
    assert str(amount_of(made.resources[0].requests, "cpu")) == "200m"
    assert made.notes == {"app": ["cpu capped to container limit"]}


def test_missing_parts_of_a_pod_are_made_first() -> None:
    paths = list(patched(make_vpa(recommended=TARGET), {"app": {}}))
    below = "/spec/containers/0/resources"
    assert paths[:3] == ["/metadata/annotations", below, f"{below}/requests"]


def test_a_container_without_a_recommendation_is_untouched() -> None:
    patches = patched(make_vpa(recommended=TARGET), {"other": HAS})
    assert not any(path.startswith("/spec") for path in patches)


@pytest.mark.parametrize("bound", ["max", "min"])
def test_of_equal_bounds_the_last_one_says_how_they_are_written(bound: str) -> None:
    texts = ({"cpu": "200m", "memory": "1Gi"}, {"cpu": "2e-1", "memory": "1073741824"})
    items = [{"type": "Container", bound: text} for text in texts]
    target = {"max": {"cpu": "9", "memory": "9Gi"}, "min": {"cpu": "1m", "memory": "1Mi"}}[bound]
    vpa, has = (
        make_vpa(recommended={"app": {"target": target}}),
        {"limits": {"cpu": "1", "memory": "1Gi"}},
    )
    made = admitted(
        vpa, make_pod(containers={"app": has}), limit_ranges([{"spec": {"limits": items}}])
    )
    requests = made.resources[0].requests
    assert str(amount_of(requests, "cpu")) == "200e-3"
    assert str(amount_of(requests, "memory")) == "1073741824"


@pytest.mark.parametrize(("mode", "touched"), [("Off", False), ("Initial", True), ("Auto", True)])
def test_only_off_admits_pods_as_they_are(mode: str, touched: bool) -> None:
    vpa, pod = make_vpa(in_mode(mode), TARGET), make_pod(containers={"app": HAS})
    assert bool(pod_patches(vpa, pod)) is touched
    assert bool(resource_patches(vpa, pod)) is touched


def test_a_limit_that_no_int64_can_say_is_capped_and_noted() -> None:
    huge = {"requests": {"memory": "1"}, "limits": {"memory": "4Ei"}}
    made = admitted(make_vpa(recommended=TARGET), make_pod(containers={"app": huge}))
    assert amount_of(made.resources[0].limits, "memory").value() == 2**63 - 1
    assert (
        "memory: failed to keep limit to request ratio; capping limit to int64"
        in (made.notes["app"])
    )
