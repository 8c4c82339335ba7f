"""Vectors 6 and 7 of the published arithmetic, and the corner cases around them."""

from typing import Any

import pytest

from kubescene.api.resource_requests import (
    is_counted,
    names_its_requests,
    node_allocatable,
    nonzero_requests,
    pod_requests,
    scoring_requests,
)
from kubescene.types import JsonObject

MI = 1024 * 1024


def container(name: str = "c", **requests: str) -> JsonObject:
    return {"name": name, "resources": {"requests": requests}}


def sidecar(**requests: str) -> JsonObject:
    return container(**requests) | {"restartPolicy": "Always"}


def pod(*containers: JsonObject, init: tuple[JsonObject, ...] = (), **spec: Any) -> JsonObject:
    return {"spec": {"containers": list(containers), "initContainers": list(init), **spec}}


def test_r_1_sidecars_add_up_and_init_containers_raise_the_floor() -> None:
    init = (sidecar(cpu="500m"), container(cpu="3"), sidecar(cpu="1"))
    subject = pod(container(cpu="1"), container(cpu="1"), init=init)
    assert pod_requests(subject)["cpu"] == 3500
    subject["spec"]["overhead"] = {"cpu": "250m"}
    assert pod_requests(subject)["cpu"] == 3750


def test_an_init_container_runs_beside_the_sidecars_before_it() -> None:
    init = (sidecar(memory="1"), container(memory="5"), sidecar(memory="1"))
    assert pod_requests(pod(container(memory="2"), init=init))["memory"] == 6


def test_s_5_sums_are_rounded_once() -> None:
    assert pod_requests(pod(container(cpu="500u"), container(cpu="500u")))["cpu"] == 1


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(container(cpu="0")), (0, 200 * MI), id="explicit zero is kept"),
        pytest.param(pod(container()), (100, 200 * MI), id="nothing asked"),
        pytest.param(pod(container(), container(cpu="1")), (1100, 400 * MI), id="per container"),
        pytest.param(
            pod(container(), resources={"requests": {"cpu": "1"}}),
            (1000, 200 * MI),
            id="pod-level cpu leaves the memory default",
        ),
        pytest.param(
            pod(
                container(),
                resources={"requests": {"cpu": "1"}},
                overhead={"cpu": "1m", "memory": "7"},
            ),
            (1001, 7),
            id="overhead counts as asked for",
        ),
    ],
)
def test_r_2_nonzero_requests(subject: JsonObject, expected: tuple[int, int]) -> None:
    assert nonzero_requests(subject) == expected


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(container(cpu="0", memory="7")), True, id="all named"),
        pytest.param(pod(container(cpu="1")), False, id="no memory"),
        pytest.param(pod(container(memory="1")), False, id="no cpu"),
        pytest.param(
            pod(container(cpu="1", memory="7"), init=(sidecar(cpu="1", memory="3"),)),
            True,
            id="init containers as well",
        ),
        pytest.param(
            pod(container(cpu="1", memory="7"), init=(sidecar(cpu="1"),)),
            False,
            id="one init container does not",
        ),
        pytest.param(
            pod(container(cpu="3", memory="1Gi"), resources={"requests": {"cpu": "1"}}),
            False,
            id="pod-level requests",
        ),
        pytest.param(
            pod(container(cpu="3", memory="1Gi"), overhead={"cpu": "1"}), True, id="overhead"
        ),
    ],
)
def test_r_3_defaults_play_no_part_where_every_container_names_its_requests(
    subject: JsonObject, expected: bool
) -> None:
    assert names_its_requests(subject["spec"]) is expected
    requests = pod_requests(subject)
    counted = (requests.get("cpu", 0), requests.get("memory", 0))
    is_same = scoring_requests(subject) == requests and nonzero_requests(subject) == counted
    assert is_same is expected


def test_who_has_no_containers_names_no_requests() -> None:
    assert not names_its_requests(pod(overhead={"cpu": "1"})["spec"])


def test_r_7_pod_level_requests_replace_those_of_containers_except_in_fit_scoring() -> None:
    subject = pod(container(cpu="3", memory="1Gi"), resources={"requests": {"cpu": "1"}})
    assert pod_requests(subject) == {"cpu": 1000, "memory": 1024 * MI}
    assert scoring_requests(subject) == {"cpu": 3000, "memory": 1024 * MI}


def test_r_4_a_resize_in_progress_counts_the_larger_side() -> None:
    subject = pod(container(cpu="1"))
    reported = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    subject["status"] = {"containerStatuses": [reported]}
    assert pod_requests(subject)["cpu"] == 2000
    pending = {"type": "PodResizePending", "reason": "Infeasible"}
    subject["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5"
    subject["status"]["conditions"] = [pending]
    assert pod_requests(subject)["cpu"] == 2000


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("cpu", True),
        ("example.com/gpu", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi", True),
        ("node.kubernetes.io/thing", True),
        ("storage", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_r_5_only_known_kinds_of_resources_count(name: str, counted: bool) -> None:
    assert is_counted(name) is counted


def test_a_node_without_pod_capacity_offers_none() -> None:
    assert node_allocatable({"status": {"allocatable": {"cpu": "1"}}}) == {"cpu": 1000, "pods": 0}
