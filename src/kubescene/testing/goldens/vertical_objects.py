"""Recordings of the vertical pod autoscaler's updater and admission once more, through objects.

Workload, pods, LimitRanges and the VerticalPodAutoscaler with its recommendation are in an API
server of ours. New pods are created in it, with the admission that every world has; the updater is
the loop that worlds run, and what it did is read from the pods and its Events.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from kubescene.actors import Actor, Component
from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import json_patch
from kubescene.api.quantity import parse
from kubescene.autoscalers.vertical.options import updater_options
from kubescene.client import Client, ObjectRef
from kubescene.clock import SECOND, parse_time
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.builtin.autoscaling.flags import VerticalSettings
from kubescene.controllers.builtin.autoscaling.vertical.updating import Updating
from kubescene.errors import ApiError
from kubescene.recording import Notice, NoticeList
from kubescene.testing.goldens.comparisons import GoldenComparison, GoldenTally
from kubescene.testing.goldens.recordings import Golden, UnplayableError
from kubescene.testing.goldens.vertical import UNIT, VerticalAspect, check
from kubescene.types import JsonObject

__all__ = ["UNIT", "check", "replay"]

NAMESPACE, APPS = "default", "apps/v1"
HELD = "kubescene.dev/held"
ACTOR = Actor("vpa-updater", Component.CONTROLLER, inside=True)
UPDATES = "vpaUpdates"


class _Objects:
    """The world of one case."""

    def __init__(self, golden: Golden) -> None:
        case = golden.case
        self.case = case
        self.now = parse_time(case["start"]) + round(case.get("now", 0) * SECOND)
        self.cluster = ClusterWorld(ClusterOptions(start=self.now), plain=golden.plain)
        self.client: Client = self.cluster.client(ACTOR)
        self._write_workload(case)

    def _write_workload(self, case: JsonObject) -> None:
        labels = {"app": "web"}
        pod = {"containers": [{"name": "c", "image": "i"}]}
        spec = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        self.client.create({**_head("Deployment", "web"), "spec": spec})
        owner = self.client.get(_ref("Deployment", "web"))
        above = {"apiVersion": APPS, "kind": "Deployment", "name": "web", "controller": True}
        head = _head("ReplicaSet", "web-rs")
        head["metadata"]["ownerReferences"] = [{**above, "uid": owner["metadata"]["uid"]}]
        replicas = (case.get("replicas") or {}).get("web-rs", 0)
        self.client.create({**head, "spec": {**spec, "replicas": replicas}})
        self._owner_uid = self.client.get(_ref("ReplicaSet", "web-rs"))["metadata"]["uid"]

    def write_vpa(self) -> None:
        """The object, then its status, as users and recommenders write them."""
        given = self.case["vpa"]
        metadata = {**given["metadata"], "namespace": NAMESPACE}
        metadata.pop("creationTimestamp", None)
        obj = {**given, "metadata": metadata}
        ref = ObjectRef.to(obj)
        self.client.create({name: part for name, part in obj.items() if name != "status"})
        if given.get("status"):
            self.client.patch(ref, {"status": given["status"]}, subresource="status")

    def write_ranges(self) -> None:
        for each in self.case.get("limitRanges") or ():
            self.client.create(each)

    def pod(self, given: JsonObject) -> JsonObject:
        """A pod as it is created here: owned by the ReplicaSet that is there."""
        metadata = {
            name: part
            for name, part in given["metadata"].items()
            if name not in ("uid", "creationTimestamp", "deletionTimestamp")
        }
        metadata["namespace"] = NAMESPACE
        if owners := metadata.get("ownerReferences"):
            metadata["ownerReferences"] = [{**each, "uid": self._owner_uid} for each in owners]
        if given["metadata"].get("deletionTimestamp"):
            metadata["finalizers"] = [HELD]
        containers = [{"image": "i", **each} for each in given["spec"]["containers"]]
        spec = {**given["spec"], "containers": containers}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def replay(golden: Golden, tally: GoldenTally) -> None:
    """Replay a case through objects."""
    comparison = GoldenComparison(golden.id, tally)
    try:
        _replay(golden, comparison, tally)
    except UnplayableError as error:
        tally.leave_out(golden.id, str(error))
    except Exception as error:
        # Whatever our autoscaler raises is a difference.
        said = f"{type(error).__name__}: {error}"
        comparison.failed(VerticalAspect.REPLAYED, said, "")


def _replay(golden: Golden, comparison: GoldenComparison, tally: GoldenTally) -> None:
    if "ops" in golden.case or "loops" in golden.case:
        raise UnplayableError("samples and loops of the recording have times of their own")
    tally.attempts += len(golden.case["pods"])
    if golden.case.get("admission"):
        replay_admission(golden, comparison)
    else:
        replay_updater(golden, comparison)


def replay_admission(golden: Golden, comparison: GoldenComparison) -> None:
    """Pods that are created: their resources, and what the annotation says."""
    if golden.case.get("limitRanges"):
        raise UnplayableError("the API server completes and refuses pods by LimitRanges first")
    if (golden.case["vpa"]["spec"].get("updatePolicy") or {}).get("updateMode") == "Off":
        raise UnplayableError("nobody asks about new pods in mode Off, but the recorder did")
    world = _Objects(golden)
    for given in golden.case["pods"]:
        _play(lambda given=given: _check_as_given(world, world.pod(given)))
    _play(world.write_vpa)
    for given, theirs in zip(golden.case["pods"], golden.result["pods"], strict=True):
        comparison.at = f"pod {theirs['name']}"
        owners = given["metadata"].get("ownerReferences") or ()
        if "error" in theirs or not any(each.get("controller") for each in owners):
            continue  # the recorder asked about pods without a controller as well
        pod = world.pod(given)
        made = _play(lambda pod=pod: world.client.create(pod)).decode()
        expected: Any = json_patch(
            {**pod, "metadata": {"annotations": {}, **pod["metadata"]}}, theirs["patches"]
        )
        comparison.equal(VerticalAspect.RESOURCES, _resources(made), _resources(expected))
        told, recorded = (
            (each["metadata"].get("annotations") or {}).get(UPDATES) for each in (made, expected)
        )
        comparison.equal(VerticalAspect.NOTES, told, recorded)


def replay_updater(golden: Golden, comparison: GoldenComparison) -> None:
    """One loop: who was evicted, and the Events."""
    if golden.result.get("panic"):
        return
    names = [each["metadata"]["name"] for each in golden.case["pods"]]
    if names != sorted(names):
        raise UnplayableError("pods are listed by name")
    world, heard = _Objects(golden), list[Notice]()
    _play(lambda: _write_pods(world))
    _play(world.write_ranges)
    _play(world.write_vpa)
    before = _names(world, deleting=False)
    options = asdict(updater_options(golden.case.get("config") or {}))
    context = replace(world.cluster.context(ACTOR), recorder=NoticeList(heard))
    Updating(context, VerticalSettings(updater=options)).run(world.now)
    comparison.at = "loop"
    left = _names(world, deleting=False)
    evicted = [name for name in golden.result["evicted"] if name not in left]
    gone = sorted(name for name in before if name not in left)
    comparison.equal(VerticalAspect.EVICTED, gone, sorted(golden.result["evicted"]))
    told = [each.about["name"] for each in heard if each.reason == "EvictedByVPA"]
    comparison.equal(VerticalAspect.EVICTED, told, evicted)
    comparison.equal(
        VerticalAspect.EVENTS, [each.reason for each in heard], golden.result["events"]
    )


def _write_pods(world: _Objects) -> None:
    for given in world.case["pods"]:
        pod = world.pod(given)
        _check_as_given(world, pod)
        world.client.create(pod)
        ref = ObjectRef.to(pod)
        if given.get("status"):
            world.client.patch(ref, {"status": given["status"]}, subresource="status")
        if given["metadata"].get("deletionTimestamp"):
            world.client.delete(ref)


def _check_as_given(world: _Objects, pod: JsonObject) -> None:
    """The API server completes requests by limits and rounds amounts; not what was recorded."""
    kept = world.client.create(pod, options=WriteOptions(dry_run=True)).decode()
    if _resources(kept) != _resources(pod):
        raise UnplayableError("requests are completed or rounded before anybody sees them")


def _names(world: _Objects, *, deleting: bool) -> list[str]:
    return [
        each["metadata"]["name"]
        for each in world.cluster.list("pods")
        if bool(each["metadata"].get("deletionTimestamp")) == deleting
    ]


def _play(write: Any) -> Any:
    try:
        return write()
    except ApiError as error:
        raise UnplayableError(error.message) from error


def _resources(pod: Mapping[str, Any]) -> list[Any]:
    """Requests and limits of containers by amount."""
    return [
        {
            side: {name: parse(amount).nanos for name, amount in (listed or {}).items()}
            for side, listed in (each.get("resources") or {}).items()
            if listed
        }
        for each in pod["spec"]["containers"]
    ]


def _head(kind: str, name: str) -> JsonObject:
    return {
        "apiVersion": APPS,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
    }


def _ref(kind: str, name: str) -> ObjectRef:
    return ObjectRef.to(_head(kind, name))
