"""What a plugin may ask of its scheduler."""

from collections.abc import Mapping
from typing import Any

import pytest

from kubescene.api.records import make_record
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.errors import ApiError, ConfigurationError
from kubescene.scheduler import (
    SUCCESS,
    Action,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    ExtensionPoint,
    FilterPlugin,
    Handle,
    Hint,
    Memo,
    NodeInfo,
    Plugin,
    PodClass,
    PodInfo,
    PodSignature,
    PreFilterExtensions,
    Profile,
    SchedulerOptions,
    Status,
)
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.interfaces import Reads, Scores
from kubescene.scheduler.framework.points import implements, points_of
from kubescene.scheduler.framework.status import SKIP
from kubescene.scheduler.queue.waiting_places import Place
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodClasses
from kubescene.store import Store
from kubescene.testing.builders import make_pod
from kubescene.timeline.explanations import Explain
from scheduler.staging import Stage, with_plugins

PODS = GroupResource("", "pods")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CLASS = KINDS[EventResource.STORAGE_CLASS]


def storage_class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/disks",
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class NeedsClass(FilterPlugin):
    """Pods need a storage class of their name."""

    name = "NeedsClass"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.classes = handle.lister(CLASS)
        self.hinted: list[str] = []

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        found = self.classes.get(pod.name) is not None
        return SUCCESS if found else Status.unschedulable("no class")

    def events_to_register(self) -> list[EventRegistration]:
        added = ClusterEvent(EventResource.STORAGE_CLASS, Action.ADD | Action.UPDATE)
        return [EventRegistration(added, self.after_class)]

    def after_class(self, pod: PodInfo, change: Change) -> Hint:
        self.hinted.append(pod.name)
        return Hint.QUEUE if change.record.name == pod.name else Hint.SKIP


class NeedsMap(FilterPlugin):
    """Registers a kind that has no name among the resources, and asks for no lister."""

    name = "NeedsMap"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.seen = 0

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if self.seen else Status.unschedulable("no map")

    def events_to_register(self) -> list[EventRegistration]:
        return [EventRegistration(ClusterEvent(CONFIG_MAP, Action.ADD), self.after_map)]

    def after_map(self, pod: PodInfo, change: Change) -> Hint:
        self.seen += 1
        return Hint.QUEUE


def test_a_lister_knows_what_exists_and_follows() -> None:
    stage = Stage(NeedsClass)
    classes = stage.plugin("NeedsClass").classes
    assert len(classes) == 0
    stage.create(storage_class("p"), storage_class("q"))
    assert [each["metadata"]["name"] for each in classes.list()] == ["p", "q"]
    assert classes.get("p") is classes.get("p")
    stage.delete("p", CLASS)
    assert (classes.get("p"), len(classes)) == (None, 1)


def test_a_lister_that_is_asked_for_late_sees_what_is_there() -> None:
    stage = Stage(NeedsClass)
    stage.create(config_map("a"), config_map("b", x="1"))
    handle: Handle = stage.plugin("NeedsClass").handle
    maps = handle.lister(CONFIG_MAP)
    assert maps is handle.lister(CONFIG_MAP)
    found = maps.get("b", "default")
    assert found is not None
    assert found["data"] == {"x": "1"}
    assert [each["metadata"]["name"] for each in maps.list("default")][-2:] == ["a", "b"]
    assert maps.list("elsewhere") == []


def test_objects_of_other_kinds_wake_the_pods_that_wait_for_them() -> None:
    stage = Stage(NeedsClass)
    stage.nodes("a")
    assert stage.place(make_pod("p"), make_pod("q")) == ["p:", "q:"]
    assert stage.place(storage_class("q")) == ["q:a"]
    assert stage.plugin("NeedsClass").hinted == ["p", "q"]


def test_any_kind_can_be_registered() -> None:
    stage = Stage(NeedsMap)
    stage.nodes("a")
    assert stage.place(make_pod("p")) == ["p:"]
    assert stage.place(config_map("m")) == ["p:a"]


def test_a_kind_that_does_not_exist_is_an_error() -> None:
    stage = Stage(NeedsClass)
    with pytest.raises(ApiError):
        stage.plugin("NeedsClass").handle.lister(GroupVersionKind("x.io", "v1", "Nothing"))


def test_pods_can_be_activated() -> None:
    stage = Stage(NeedsClass)
    stage.nodes("a")
    stage.place(make_pod("p"), make_pod("q"), make_pod("gated").gate("g"))
    queue = stage.scheduler.queue
    waiting = queue.waiting(Place.UNSCHEDULABLE)
    stage.plugin("NeedsClass").handle.activate(waiting)
    assert [each.name for each in queue.waiting(Place.ACTIVE)] == ["p", "q"]
    assert [each.name for each in queue.waiting(Place.UNSCHEDULABLE)] == ["gated"]
    assert [each.pod.name for each in stage.work()] == ["p", "q"]


def test_a_pod_in_backoff_can_be_activated() -> None:
    stage = Stage(NeedsClass)
    stage.create(make_pod("p"))
    stage.work()
    queue = stage.scheduler.queue
    assert [each.name for each in queue.waiting(Place.ERROR_BACKOFF)] == ["p"]
    stage.plugin("NeedsClass").handle.activate(queue.waiting(Place.ERROR_BACKOFF))
    assert [each.name for each in queue.waiting(Place.ACTIVE)] == ["p"]
    assert stage.scheduler.run_once().more is False
    assert len(queue) == 1


def test_nominations_can_be_made_and_ended() -> None:
    stage = Stage(NeedsClass)
    stage.nodes("a")
    stage.place(make_pod("p"), make_pod("q"))
    nominations = stage.plugin("NeedsClass").handle.nominations
    p, q = stage.scheduler.queue.waiting(Place.UNSCHEDULABLE)
    nominations.add(p, "a")
    nominations.add(q, "a")
    assert [each.name for each in nominations.on("a")] == ["p", "q"]
    nominations.remove(p)
    assert [each.name for each in nominations.on("a")] == ["q"]
    assert (nominations.node_of(p), nominations.node_of(q)) == ("", "a")


def test_a_handle_has_time_chance_and_a_place_for_events() -> None:
    handle: Handle = Stage(NeedsClass).plugin("NeedsClass").handle
    other: Handle = Stage(NeedsClass).plugin("NeedsClass").handle
    assert handle.clock.now() > 0
    assert handle.random.next_u64() == other.random.next_u64()
    assert handle.events.on is False
    assert handle.scheduler_name == "default-scheduler"


# -- where plugins keep what they compute -----------------------------------------------------


class NoMoreThan(FilterPlugin):
    """Compiles something per class that depends on its arguments."""

    name = "NoMoreThan"

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.allowed: Memo[PodClass, bool] = Memo(self.is_allowed)

    def is_allowed(self, pod_class: PodClass) -> bool:
        return pod_class.requests.get("cpu", 0) <= self.limit

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if self.allowed[pod.pod_class] else Status.unschedulable("too much")


def make_at_most(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    return NoMoreThan(arguments["cpu"])


def test_profiles_with_different_arguments_keep_what_they_compile_apart() -> None:
    points = with_plugins({"NoMoreThan": NoMoreThan}).points
    profiles = tuple(
        Profile(name, points, {"NoMoreThan": {"cpu": limit}})
        for name, limit in (("small", 500), ("large", 5000))
    )
    stage = Stage(profiles=profiles, more={"NoMoreThan": make_at_most})
    stage.nodes("a")
    pods = [make_pod(name).cpu("1").scheduler(name) for name in ("large", "small")]
    assert stage.place(*pods)[:2] == ["large:a", "small:"]


def test_what_depends_on_a_plugin_is_not_kept_with_the_class() -> None:
    plugin = NoMoreThan(500)
    pod = info(make_pod("p").build())
    with pytest.raises(TypeError, match="keep what it makes in a Memo"):
        pod.pod_class.compiled(plugin.is_allowed)


def test_a_memo_forgets_the_oldest() -> None:
    memo: Memo[int, str] = Memo(str, kept=2)
    assert [memo[1], memo[2], memo[3]] == ["1", "2", "3"]
    assert len(memo) == 2
    memo.clear()
    assert len(memo) == 0


CLASSES = PodClasses()


def info(obj: dict[str, Any]) -> PodInfo:
    return PodInfo.read(make_record(PODS, obj, 1), obj, CLASSES)


def pod(name: str = "p", **changes: Any) -> PodInfo:
    obj = make_pod(name).cpu("1").label(app="a").build()
    for path, value in changes.items():
        part, field = path.split("_", 1)
        obj[part][field] = value
    return info(obj)


def test_pods_that_differ_in_name_alone_share_a_signature() -> None:
    first, second = pod("p"), pod("q")
    assert first.signature is second.signature
    assert first.assumed("n").signature is first.signature

    def count_labels(signature: PodSignature) -> int:
        return len(signature.labels)

    assert first.signature.compiled(count_labels) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata_namespace": "other"},
        {"metadata_labels": {"app": "b"}},
        {"spec_priority": 5},
        {"spec_schedulerName": "mine"},
        {"spec_preemptionPolicy": "Never"},
        {"spec_volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"spec_resourceClaims": [{"name": "r", "resourceClaimName": "c"}]},
        {"spec_nodeSelector": {"disk": "ssd"}},
        {
            "metadata_ownerReferences": [
                {"controller": True, "uid": "u", "kind": "ReplicaSet", "name": "r"}
            ]
        },
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_signature_tells_apart_what_plugins_count_and_compare(changes: dict[str, Any]) -> None:
    assert pod(**changes).signature is not pod().signature
    assert pod("p", **changes).signature is pod("q", **changes).signature


def test_what_is_made_for_one_pod_alone_makes_a_signature_of_its_own() -> None:
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]
    assert pod("p", spec_volumes=volumes).signature is not pod("q", spec_volumes=volumes).signature
    claims = [{"name": "r", "resourceClaimTemplateName": "t"}]
    first, second = (pod(name, spec_resourceClaims=claims) for name in "pq")
    assert first.signature is not second.signature
    assert first.signature.claims == tuple(claims)
    assert pod("p", spec_volumes=volumes).signature.volumes == tuple(volumes)


class HalfAPlugin(PreFilterExtensions):
    """Inherits the protocol but writes one of its methods only."""

    name = "HalfAPlugin"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Any) -> tuple[Status, None]:
        return SUCCESS, None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


def test_a_method_inherited_from_a_protocol_is_no_method() -> None:
    half: Any = HalfAPlugin
    assert implements(half(), "add_pod")
    assert not implements(half(), "remove_pod")
    assert points_of(half) == [ExtensionPoint.PRE_FILTER]


def test_options_need_a_profile() -> None:
    with pytest.raises(ConfigurationError, match="at least one profile"):
        SchedulerOptions(profiles=())


def test_pods_that_share_an_encoded_spec_share_what_is_read_from_it() -> None:
    store = Store()
    records = [
        store.put(PODS, make_pod(name).cpu("1").gate("g").build(), expected=0) for name in "pq"
    ]
    first, second = (PodInfo.read(each, each.decode(), CLASSES) for each in records)
    assert first.spec is second.spec
    assert first.gates == ("g",)
    bound = make_pod("p").cpu("1").gate("g").on("n").build()
    record = store.put(PODS, bound)
    assert PodInfo.read(record, record.decode(), CLASSES).spec is first.spec
    urgent = {**bound, "spec": {**bound["spec"], "priority": 5}}
    record = store.put(PODS, urgent)
    assert PodInfo.read(record, record.decode(), CLASSES).priority == 5


class Prepared:
    """Skips itself, and counts how often it is asked."""

    name = "Prepared"

    def __init__(self, handle: Handle) -> None:
        self.asked = 0

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        self.asked += 1
        return SKIP, None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("asked in vain")


class PreparedByClass(Prepared):
    prepares_by_class = True


@pytest.mark.parametrize(("plugin", "asked"), [(Prepared, 3), (PreparedByClass, 2)])
def test_what_depends_on_the_class_is_asked_once(plugin: type, asked: int) -> None:
    stage = Stage(plugin)
    stage.nodes("a")
    pods = [make_pod("p").cpu("1"), make_pod("q").cpu("1"), make_pod("r").cpu("2")]
    assert stage.place(*pods) == ["p:a", "q:a", "r:a"]
    assert stage.plugin(plugin.__name__).asked == asked


class Preferring:
    """Rates nodes by the length of their names beyond one letter, and counts how often."""

    name = "Preferring"
    reads = Reads.NODE
    normalizes_alone = True

    def __init__(self, handle: Handle) -> None:
        self.normalized = 0

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(node.name) - 1

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        self.normalized += 1
        return 100 - scores * 50


def test_scores_that_are_all_zero_are_normalized_once() -> None:
    stage = Stage(Preferring, explain=Explain.OFF)
    stage.nodes("a", "b")
    pods = [make_pod(name).cpu("1") for name in "pqr"]
    assert stage.place(*pods[:2]) == ["p:a", "q:b"]
    assert stage.plugin("Preferring").normalized == 1
    stage.nodes("cc", cpu="5")
    assert stage.place(pods[2]) == ["r:a"]
    assert stage.plugin("Preferring").normalized == 2
