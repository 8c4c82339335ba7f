"""Knative's pod autoscaler on real objects: to zero and back, panic, bounds, waiting requests."""

from copy import deepcopy
from math import ceil
from typing import Any

import numpy as np
import pytest

from controllers.test_traffic import constant, deployment, serving, traffic, world
from kubescene.autoscalers.kpa import Buckets, Scaler
from kubescene.cluster import ClusterWorld
from kubescene.controllers.builtin.autoscaling.facts import ReplicasDecided
from kubescene.controllers.builtin.autoscaling.knative.settings import read_settings
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.flows.records import RequestOutcome
from kubescene.instruments import Instrument
from kubescene.shortcuts import PLAIN
from kubescene.types import JsonObject

SECOND = 10**9
START = "2026-01-01T00:00:00Z"
POD_AUTOSCALERS = "podautoscalers"


def autoscaler(concurrency: int = 0, cls: str = "", **annotations: str) -> JsonObject:
    named = {
        f"autoscaling.knative.dev/{name.replace('_', '-')}": value
        for name, value in {**annotations, **({"class": cls} if cls else {})}.items()
    }
    return {
        "apiVersion": "autoscaling.internal.knative.dev/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": {"name": "web", "annotations": named},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "protocolType": "http1",
            "containerConcurrency": concurrency,
        },
    }


def spells(*points: tuple[str, float], spacing: str = "even") -> JsonObject:
    given = [{"at": at, "rps": rps} for at, rps in points]
    return {"pattern": "piecewise", "spacing": spacing, "piecewise": {"points": given}}


class Decisions(Instrument):
    def __init__(self, cluster: ClusterWorld) -> None:
        self.cluster = cluster
        self.begun = cluster.clock.now()
        self.made: list[tuple[float, int, int]] = []
        self.reasons: list[str] = []

    def fact_told(self, actor: object, fact: object) -> None:
        del actor
        if isinstance(fact, ReplicasDecided):
            at = (self.cluster.clock.now() - self.begun) / SECOND
            self.made.append((at, fact.current, fact.desired))
            self.reasons.append(fact.reason)


def played(*objects: JsonObject, **options: Any) -> tuple[ClusterWorld, Decisions]:
    cluster = world(**options)
    decisions = Decisions(cluster)
    cluster.instruments.attach(decisions)
    for each in objects:
        cluster.create(each)
    cluster.settle()
    return cluster, decisions


def status(cluster: ClusterWorld) -> JsonObject:
    found: JsonObject = cluster.get(POD_AUTOSCALERS, "web").get("status") or {}
    return found


def condition(cluster: ClusterWorld, type: str = "Active") -> tuple[str, str]:
    found = next(each for each in status(cluster)["conditions"] if each["type"] == type)
    return found["status"], found.get("reason", "")


def outcomes(cluster: ClusterWorld) -> dict[str, int]:
    columns = serving(cluster).flow.columns
    counts = np.bincount(columns.outcome, minlength=len(RequestOutcome)).tolist()
    return {each.name: counts[each] for each in RequestOutcome if counts[each]}


def test_nobody_comes_for_a_stable_window_and_the_last_pod_goes() -> None:
    cluster, decisions = played(deployment(1), traffic(arrivals=constant(0)), autoscaler())
    cluster.advance("59s")
    assert condition(cluster) == ("True", "")
    cluster.advance("1s")
    assert decisions.made == [(60.0, 1, 0)]
    assert condition(cluster) == ("False", "NoTraffic")
    assert (status(cluster)["desiredScale"], status(cluster)["actualScale"]) == (0, 0)
    cluster.advance("1h")
    assert decisions.made == [(60.0, 1, 0)]


@pytest.mark.parametrize(
    ("annotations", "goes"),
    [
        ({"scale_to_zero_pod_retention_period": "2m"}, 180.0),
        # The activator is not before the pods, as there is room to spare: it has to be, for 30 s.
        ({"target_burst_capacity": "0"}, 90.0),
        # A window and a grace period that both count from the beginning.
        ({"window": "20s"}, 30.0),
        ({"window": "40s"}, 40.0),
    ],
)
def test_how_long_the_last_pod_stays(annotations: dict[str, Any], goes: float) -> None:
    load = traffic(arrivals=constant(0))
    cluster, decisions = played(deployment(1), load, autoscaler(**annotations))
    cluster.advance("5m")
    assert decisions.made == [(goes, 1, 0)]


def test_the_first_request_brings_a_pod_at_once_and_waits_for_it() -> None:
    """The pod is ready after five seconds; who came meanwhile is served, oldest first."""
    load = traffic(arrivals=spells(("0s", 0), ("100s", 2), ("110s", 0)), whenNone="wait")
    load["spec"]["request"] = {"cpuTime": "20ms", "timeout": "30s"}
    delays = KubeletDelays(start=2 * SECOND, ready=3 * SECOND)
    objects = deployment(1), load, autoscaler(target="10")
    cluster, decisions = played(*objects, kubelet=delays)
    cluster.advance("2m30s")
    columns = serving(cluster).flow.columns
    first = int(columns.arrived[0])
    assert decisions.made == [(65.0, 1, 0), ((first + 1) / SECOND, 0, 1)]
    assert outcomes(cluster) == {"OK": 20}
    waited = columns.arrived < first + 5 * SECOND
    assert waited.sum() == 10
    assert (columns.completed[waited] >= first + 5 * SECOND).all()
    assert (np.diff(columns.completed[waited]) >= 0).all()
    later = (columns.completed - columns.arrived)[~waited][1:]
    assert later.max() == 240_000_000


def test_requests_that_wait_longer_than_their_time_out_leave_by_it() -> None:
    load = traffic(arrivals=spells(("0s", 0), ("10s", 1), ("13s", 0)), whenNone="wait")
    delays = KubeletDelays(ready=60 * SECOND)
    cluster, _ = played(deployment(0), load, autoscaler(), kubelet=delays)
    cluster.advance("2m")
    assert outcomes(cluster) == {"TIMEOUT": 3}
    columns = serving(cluster).flow.columns
    assert set((columns.completed - columns.arrived).tolist()) == {SECOND}


def test_requests_that_are_refused_bring_no_pod() -> None:
    """Without an activator nobody tells of them."""
    load = traffic(arrivals=spells(("0s", 0), ("10s", 1), ("13s", 0)))
    cluster, decisions = played(deployment(0), load, autoscaler())
    cluster.advance("1m")
    assert decisions.made == []
    assert outcomes(cluster) == {"REFUSED": 3}


def test_panic_is_quick_and_ends_a_stable_window_later() -> None:
    load = traffic(arrivals=spells(("0s", 1), ("30s", 100), ("60s", 1)), whenNone="wait")
    objects = deployment(1), load, autoscaler(target="1", min_scale="1", max_scale="50")
    cluster, decisions = played(*objects)
    cluster.advance("5m")
    first = next(each for each in decisions.made if each[2] > 1)
    assert first[0] <= 34
    assert decisions.reasons[0].startswith("panic window: ")
    most = max(desired for _, _, desired in decisions.made)
    falls = [at for at, current, desired in decisions.made if desired < current]
    assert most >= 4
    assert min(falls) > 90
    assert cluster.get("deployments", "web")["spec"]["replicas"] == 1


def by_hand(cluster: ClusterWorld, spec: JsonObject, until: int) -> list[tuple[int, int]]:
    """The decisions of a loop over the same requests: a second at a time, nothing kept."""
    columns, settings = serving(cluster).flow.columns, read_settings(spec, {})
    arrived = columns.arrived.tolist()
    ends = [
        end if outcome else until * SECOND
        for end, outcome in zip(columns.completed.tolist(), columns.outcome.tolist(), strict=True)
    ]
    stable, panic = Buckets(settings.rule.stable_window), Buckets(settings.panic_window)
    begin = cluster.clock.now() - until * SECOND
    scaler, replicas, made = Scaler.beginning(settings.rule, 1, begin), 1, []
    for second in range(1, until + 1):
        low, high = (second - 1) * SECOND, second * SECOND
        inside = sum(
            min(end, high) - max(start, low)
            for start, end in zip(arrived, ends, strict=True)
            if start < high and end > low
        )
        for buckets in (stable, panic):
            buckets.record(begin + high, inside / SECOND)
        if second % 2:
            continue
        now = begin + high
        wanted = scaler.scale(stable.average(now), panic.average(now), replicas, now).desired
        wanted = min(max(wanted, settings.min_scale), settings.max_scale)
        if wanted != replicas:
            made.append((second, wanted))
            replicas = wanted
    return made


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_decisions_are_those_of_a_loop_over_the_same_requests(seed: int) -> None:
    points = ("0s", 5.0), ("60s", 60.0), ("100s", 10.0), ("180s", 90.0), ("200s", 0.0)
    spec = autoscaler(target="2", min_scale="1", max_scale="30")
    load = traffic(arrivals=spells(*points, spacing="poisson"), whenNone="wait")
    cluster, decisions = played(deployment(1, "200m"), load, spec, seed=seed)
    cluster.advance("6m")
    expected = by_hand(cluster, spec, 360)
    assert [(round(at), desired) for at, _, desired in decisions.made] == expected
    assert len(expected) > 6


def test_requests_a_second_may_be_what_counts() -> None:
    load = traffic(arrivals=constant(40), whenNone="wait")
    spec = autoscaler(metric="rps", target="10", target_utilization_percentage="100")
    cluster, _ = played(deployment(1), load, spec)
    cluster.advance("2m")
    assert cluster.get("deployments", "web")["spec"]["replicas"] == 4


def test_bounds_initial_scale_and_the_delay() -> None:
    quiet = traffic(arrivals=constant(0))
    cluster, decisions = played(deployment(1), quiet, autoscaler(initial_scale="3"))
    cluster.advance("5s")
    assert decisions.made[0][1:] == (1, 3)
    assert decisions.reasons[0] == "no measurement yet: bounds make it 3"
    cluster, decisions = played(deployment(1), quiet, autoscaler(min_scale="2", max_scale="5"))
    cluster.advance("10m")
    assert [each[1:] for each in decisions.made] == [(1, 2)]
    delayed = autoscaler(scale_down_delay="3m")
    cluster, decisions = played(deployment(1), quiet, delayed)
    cluster.advance("10m")
    assert decisions.made == [(60.0, 1, 0)]


def test_what_the_config_map_says_holds_for_all_who_say_nothing() -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config-autoscaler", "namespace": "knative-serving"},
        "data": {"enable-scale-to-zero": "false", "stable-window": "30s"},
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "knative-serving"}}
    objects = space, config, deployment(2), traffic(arrivals=constant(0)), autoscaler()
    cluster, decisions = played(*objects)
    cluster.advance("10m")
    assert cluster.get("deployments", "web")["spec"]["replicas"] == 1
    assert decisions.made[-1][2] == 1


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"target": "much"}, "autoscaling.knative.dev/target]: 'much' cannot be read"),
        ({"target": "nan"}, "must be at least 0.01, found 'nan'"),
        ({"window": "1s"}, "must be at least 6s and at most 3600s, found '1s'"),
        ({"metric": "cpu"}, "'cpu' is none of concurrency, rps"),
        ({"min_scale": "5", "max_scale": "2"}, "max-scale=2 is less than min-scale"),
        ({"target_burst_capacity": "-0.5"}, "must be -1, or at least 0"),
        ({"panic_threshold_percentage": "inf"}, "at most 1000, found 'inf'"),
    ],
)
def test_annotations_that_make_no_sense_are_told(annotations: dict[str, Any], words: str) -> None:
    cluster, decisions = played(deployment(2), traffic(), autoscaler(**annotations))
    cluster.advance("2m")
    ready = next(each for each in status(cluster)["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InternalError")
    assert words in ready["message"]
    assert decisions.made == []
    cluster.patch(POD_AUTOSCALERS, "web", {"metadata": {"annotations": None}})
    cluster.advance("2m")
    assert condition(cluster, "Ready")[0] == "True"


def test_a_target_that_is_not_there_is_looked_for_again() -> None:
    cluster, _ = played(traffic(whenNone="wait", arrivals=constant(1)), autoscaler())
    cluster.advance("10s")
    assert condition(cluster, "Ready") == ("False", "InternalError")
    cluster.create(deployment(1))
    cluster.settle().advance("20s")
    assert condition(cluster, "Ready")[0] == "True"


def test_other_classes_and_autoscalers_that_are_deleted_do_nothing() -> None:
    other = autoscaler(cls="hpa.autoscaling.knative.dev")
    cluster, decisions = played(deployment(1), traffic(arrivals=constant(0)), other)
    cluster.advance("5m")
    assert (decisions.made, status(cluster)) == ([], {})
    cluster, decisions = played(deployment(1), traffic(arrivals=constant(0)), autoscaler())
    cluster.advance("30s")
    cluster.delete(POD_AUTOSCALERS, "web")
    cluster.settle().advance("5m")
    assert decisions.made == []


def story(cluster: ClusterWorld) -> tuple[object, ...]:
    columns = serving(cluster).flow.columns
    return columns.rows().tobytes(), status(cluster), cluster.get("deployments", "web")["spec"]


BUSY = spells(
    ("0s", 5.0), ("60s", 60.0), ("100s", 0.0), ("250s", 3.0), ("253s", 0.0), spacing="poisson"
)


def busy(**options: Any) -> ClusterWorld:
    delays = KubeletDelays(start=SECOND, ready=2 * SECOND)
    load = traffic(arrivals=BUSY, whenNone="wait", begin="AtOnce")
    cluster, _ = played(
        deployment(1, "200m"), load, autoscaler(target="2"), kubelet=delays, **options
    )
    return cluster


def test_it_does_not_matter_how_time_is_cut_nor_whether_it_is_forked_nor_shortcuts() -> None:
    whole = busy()
    whole.advance("6m")
    cut = busy()
    for _ in range(24):
        cut.advance("15s")
    assert story(cut) == story(whole)
    begun = busy()
    begun.advance("101300ms")
    twin = begun.fork()
    for each in (begun, twin):
        each.advance("258700ms")
        assert story(each) == story(whole)
    plain = busy(shortcuts=PLAIN)
    plain.advance("6m")
    assert story(plain) == story(whole)


# -- requests that wait, and what is measured of them ---------------------------------------------


@pytest.mark.parametrize("routing", ["roundRobin", "random", "leastConnections"])
@pytest.mark.parametrize("demand", ["constant", "exponential"])
def test_who_waits_for_a_node_alone_is_served_as_by_a_pod_with_that_limit(
    routing: str, demand: str
) -> None:
    """One kernel shares a node, another has a limit: alone on a node they are the same."""
    request = {"cpuTime": "30ms", "timeout": "4s", "demand": demand}
    load = traffic(
        arrivals=spells(("0s", 40), ("20s", 0), spacing="poisson"),
        whenNone="wait",
        request=request,
        routing=routing,
    )
    found = []
    for limit in ("none", "1"):
        cluster = world(deployment(0, "1", limit=limit), load, nodes=1, cpu="1")
        cluster.advance("7s")
        cluster.scale("deployments", "web", 1)
        cluster.settle().advance("1m")
        found.append(serving(cluster).flow.columns.rows())
    assert len(found[0]) > 700
    assert (found[0]["outcome"] == found[1]["outcome"]).mean() > 0.99
    both = (found[0]["outcome"] == 1) & (found[1]["outcome"] == 1)
    gap = np.abs(found[0]["completed"] - found[1]["completed"])[both]
    assert gap.max() <= 1000


def test_who_waits_goes_to_a_pod_that_is_back_with_those_it_still_has() -> None:
    """A pod that is not ready any more, for two seconds: nobody is lost, nobody served twice."""
    request = {"cpuTime": "400ms", "timeout": "60s"}
    load = traffic(arrivals=spells(("0s", 2), ("8s", 0)), whenNone="wait", request=request)
    for limit in ("none", "500m"):
        cluster = world(deployment(1, "500m", limit=limit), load)
        cluster.advance("3s")
        pod = cluster.list("pods")[0]["metadata"]["name"]
        gate = [{"type": "Ready", "status": "False"}]
        cluster.patch("pods", pod, {"status": {"conditions": gate}}, subresource="status")
        cluster.settle().advance("2s")
        gate = [{"type": "Ready", "status": "True"}]
        cluster.patch("pods", pod, {"status": {"conditions": gate}}, subresource="status")
        cluster.settle().advance("1m")
        assert outcomes(cluster) == {"OK": 16}


@pytest.mark.parametrize("timeout", ["2s", None])
def test_the_load_of_a_span_is_what_the_columns_say(timeout: str | None) -> None:
    request = {"cpuTime": "50ms", **({"timeout": timeout} if timeout else {})}
    load = traffic(
        arrivals=constant(30, "poisson"), whenNone="wait", request=request, routing="random"
    )
    cluster = world(deployment(2), load)
    cluster.advance("20s")
    cluster.scale("deployments", "web", 0)
    cluster.settle().advance("5s")
    cluster.scale("deployments", "web", 1)
    cluster.settle().advance("15s")
    served, end = serving(cluster), 40 * SECOND
    begun = cluster.clock.now() - end
    served.load(begun, begun + end)
    rows = served.flow.columns.rows()
    ends = np.where(rows["outcome"] == 0, end, rows["completed"])
    for low in (0, 7, 19, 21, 24, 26, 33, 39, 12):
        for width in (1, 3):
            begin, until = low * SECOND, min((low + width) * SECOND, end)
            spans = np.minimum(ends, until) - np.maximum(rows["arrived"], begin)
            came = (rows["arrived"] >= begin) & (rows["arrived"] < until)
            found = served.load(begun + begin, begun + until)
            assert found == (int(np.maximum(spans, 0).sum()), int(came.sum()))


def test_memory_is_too_small_for_all_who_have_waited() -> None:
    """They come at once, and the pod is out of memory with the first that is too many."""
    load = traffic(
        arrivals=spells(("0s", 10), ("5s", 0)),
        whenNone="wait",
        request={"cpuTime": "100ms", "timeout": "30s"},
        memory={"base": "512Mi", "perRequest": "32Mi"},
    )
    cluster = world(deployment(0), load)
    cluster.advance("5s")
    cluster.scale("deployments", "web", 1)
    cluster.settle().advance("100ms")
    assert outcomes(cluster) == {"KILLED": 50}


def test_how_many_wait_may_not_be_changed_while_requests_flow() -> None:
    cluster = world(deployment(1), traffic())
    cluster.advance("5s")
    cluster.patch("traffics", "load", {"spec": {"whenNone": "wait"}})
    cluster.settle()
    told = cluster.get("traffics", "load")["status"]["message"]
    assert told == "spec.whenNone cannot be changed: create another Traffic"


def test_the_rule_of_the_reference_is_what_a_person_would_compute() -> None:
    """Ten requests a second that take 40 ms each at 0.7 of one a pod: 0.4 inside, one pod."""
    load = traffic(arrivals=constant(50), whenNone="wait")
    spec = autoscaler(target="1")
    cluster, _ = played(deployment(1, "1"), load, spec)
    cluster.advance("4m")
    now = cluster.clock.now()
    inside = serving(cluster).load(now - 40 * SECOND, now).inside / (40 * SECOND)
    assert cluster.get("deployments", "web")["spec"]["replicas"] == ceil(inside / 0.7)
    assert deepcopy(status(cluster))["desiredScale"] == ceil(inside / 0.7)
