"""Builders for the tests of vertical autoscaling."""

from collections.abc import Mapping
from typing import Any

from kubescene.autoscalers.vertical import Recommender, RecommenderOptions, VerticalPodAutoscaler
from kubescene.autoscalers.vertical.objects import decode_vpa
from kubescene.clock import MINUTE, format_time, parse_time

START = parse_time("2026-03-01T00:00:00Z")
MI = 1 << 20


def make_object(
    spec: Mapping[str, Any] | None = None,
    recommended: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """A VerticalPodAutoscaler; ``recommended`` is by container, then by list."""
    obj: dict[str, Any] = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"} | metadata,
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
        | dict(spec or {}),
    }
    if recommended is not None:
        lists = [{"containerName": name} | dict(each) for name, each in recommended.items()]
        obj["status"] = {"recommendation": {"containerRecommendations": lists}}
    return obj


def make_vpa(
    spec: Mapping[str, Any] | None = None,
    recommended: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None,
    **metadata: Any,
) -> VerticalPodAutoscaler:
    return decode_vpa(make_object(spec, recommended, **metadata))


def in_mode(mode: str, **policy: Any) -> dict[str, Any]:
    return {"updatePolicy": {"updateMode": mode} | policy}


def policies(*each: Mapping[str, Any]) -> dict[str, Any]:
    return {"resourcePolicy": {"containerPolicies": list(each)}}


def ranged(target: str, lower: str, upper: str, resource: str = "cpu") -> dict[str, Any]:
    """Lists of one resource for `make_vpa`."""
    return {
        "target": {resource: target},
        "lowerBound": {resource: lower},
        "upperBound": {resource: upper},
    }


def make_pod(
    name: str = "web-0",
    containers: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None,
    *,
    age: int = 0,
    now: int = START,
    phase: str = "Running",
    owner: str = "web-rs",
    kind: str = "ReplicaSet",
    annotations: Mapping[str, str] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """A pod of a controller; ``containers`` are their resources, ``age`` nanoseconds."""
    given = containers if containers is not None else {"app": {"requests": {"cpu": "1"}}}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "ownerReferences": [{"kind": kind, "name": owner, "controller": True}],
    }
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": each, "resources": r} for each, r in given.items()]},
        "status": {"phase": phase, "startTime": format_time(now - age)} | status,
    }


def make_recommender(
    options: RecommenderOptions | None = None,
    *containers: str,
    vpa: VerticalPodAutoscaler | None = None,
) -> Recommender:
    """A recommender that knows of one pod, ``pod``, with these containers (or one, ``app``)."""
    recommender = Recommender(vpa or make_vpa(), options or RecommenderOptions())
    recommender.usage.set_pod(
        "pod", labels={"app": "web"}, containers=containers or ("app",), now=START
    )
    return recommender


def feed(
    recommender: Recommender,
    *,
    cpu: int | None = None,
    memory: int | None = None,
    minutes: int,
    every: int = MINUTE,
    container: str = "app",
) -> None:
    """The same usage over and over, from the start on."""
    for number in range(minutes):
        time = START + number * every
        if cpu is not None:
            assert recommender.usage.add_cpu("pod", container, cpu, time)
        if memory is not None:
            assert recommender.usage.add_memory("pod", container, memory, time)
