"""Dependents follow their owners: at once, first, or not at all."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kubescene
from kubescene.api.options import DeleteOptions
from kubescene.api.records.changes import Change, ChangeType
from kubescene.client import ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.controllers.builtin.deletion.garbage_collector import GarbageCollector
from kubescene.controllers.builtin.deletion.owner_graph import OwnerGraph
from kubescene.errors import ForbiddenError, NotFoundError
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.testing import make_node, make_pod, make_replica_set
from kubescene.types import JsonObject
from widgets import widget_definition


@pytest.fixture
def world() -> ClusterWorld:
    """Only the controller under test runs."""
    cluster = ClusterWorld()
    cluster.start(["garbage-collector"])
    return cluster


def config_map(
    name: str, *owners: JsonObject, namespace: str = "default", blocks: bool = False, **more: Any
) -> JsonObject:
    references = [reference(owner, blocks=blocks) for owner in owners]
    metadata = {"name": name, "namespace": namespace, "ownerReferences": references, **more}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def reference(owner: JsonObject, *, blocks: bool = False, **changes: Any) -> JsonObject:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **({"blockOwnerDeletion": True} if blocks else {}),
        **changes,
    }


def delete(cluster: ClusterWorld, name: str, policy: str = "", *, kind: str = "configmaps") -> None:
    resource_type = cluster.scheme.resolve(kind)
    namespace = "default" if resource_type.namespaced else ""
    options = DeleteOptions(propagation_policy=policy)
    cluster.client(cluster.actor).delete(
        ObjectRef(resource_type.gvk, name, namespace), options=options
    )


def exists(cluster: ClusterWorld, name: str, kind: str = "configmaps") -> bool:
    try:
        cluster.get(kind, name)
    except NotFoundError:
        return False
    return True


def owners_of(cluster: ClusterWorld, name: str) -> list[str]:
    references = cluster.get("configmaps", name)["metadata"].get("ownerReferences", [])
    return [it["name"] for it in references]


def release(cluster: ClusterWorld, name: str) -> None:
    """Take all finalizers of an object away."""
    cluster.patch("configmaps", name, {"metadata": {"finalizers": None}}, patch_type="merge")
    cluster.settle()


def note_removals(cluster: ClusterWorld) -> list[str]:
    """Names of objects, as they go."""
    gone: list[str] = []

    def note(change: Change) -> None:
        if change.type is ChangeType.DELETED:
            gone.append(change.record.name)

    cluster.store.subscribe(note)
    return gone


# -- in the background -------------------------------------------------------------------------


def test_pods_of_a_deleted_replica_set_go_and_are_not_replaced(cluster: ClusterWorld) -> None:
    cluster.create(make_node("n1").cpu("8").memory("8Gi").pods("10"))
    cluster.create(make_pod("bare"))
    cluster.create(make_replica_set("web").replicas(5))
    assert len(cluster.settle().list("pods")) == 6
    cluster.delete("replicasets", "web")
    assert [it["metadata"]["name"] for it in cluster.settle().list("pods")] == ["bare"]


def test_dependents_of_dependents_go_too(world: ClusterWorld) -> None:
    a = world.create(config_map("a"))
    b = world.create(config_map("b", a))
    world.create(config_map("c", b))
    world.settle()
    delete(world, "a", "Background")
    world.settle()
    assert not exists(world, "b")
    assert not exists(world, "c")


def test_dependents_go_in_order_of_creation(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    names = [f"{'zyx'[i % 3]}{i}" for i in range(50)]
    for name in names:
        world.create(config_map(name, owner))
    world.settle()
    gone = note_removals(world)
    delete(world, "owner")
    world.settle()
    assert gone == ["owner", *names]


def test_collector_that_starts_late_sees_what_is_dangling() -> None:
    cluster = ClusterWorld()
    owner = cluster.create(config_map("owner"))
    for name in ("z", "a", "m"):
        cluster.create(config_map(name, owner))
    delete(cluster, "owner")
    cluster.create(config_map("free"))
    gone = note_removals(cluster)
    cluster.start(["garbage-collector"])
    cluster.settle()
    assert gone == ["z", "a", "m"]
    assert exists(cluster, "free")


def test_dependents_that_come_after_their_owner_has_gone_are_deleted(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("held", owner, finalizers=["example.com/wait"]))
    delete(world, "owner")
    world.settle()
    for name in ("late", "later"):
        world.create(config_map(name, owner))
        assert not exists(world.settle(), name)


def test_another_object_of_the_same_name_is_not_the_owner(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("old", owner))
    delete(world, "owner")
    again = world.create(config_map("owner"))
    world.create(config_map("new", again))
    world.settle()
    assert not exists(world, "old")
    assert exists(world, "new")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"name": "other"}, id="name"),
        pytest.param({"kind": "Secret"}, id="kind"),
        pytest.param({"uid": "0-0"}, id="uid"),
    ],
)
def test_reference_that_leads_elsewhere_is_dangling(
    world: ClusterWorld, changes: dict[str, Any]
) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("good", owner))
    world.settle()
    world.create(config_map("bad", ownerReferences=[reference(owner, **changes)]))
    world.settle()
    assert exists(world, "good")
    assert not exists(world, "bad")


def test_owners_are_looked_for_in_the_namespace_of_the_dependent(world: ClusterWorld) -> None:
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    owner = world.create(config_map("owner"))
    world.create(config_map("near", owner))
    world.settle()
    world.create(config_map("far", owner, namespace="team"))
    world.settle()
    assert [it["metadata"]["name"] for it in world.list("configmaps", "team")] == []
    assert exists(world, "near")


def test_cluster_scoped_owner_has_dependents_in_any_namespace(world: ClusterWorld) -> None:
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    node = world.create(make_node("n1"))
    world.create(config_map("a", node))
    world.create(config_map("b", node, namespace="team"))
    world.settle()
    assert exists(world, "a")
    world.delete("nodes", "n1")
    world.settle()
    assert not exists(world, "a")
    assert world.list("configmaps", "team") == []


def test_cluster_scoped_object_with_an_owner_in_a_namespace_is_left_alone(
    world: ClusterWorld,
) -> None:
    owner = world.create(config_map("owner"))
    for name, uid in (("n1", owner["metadata"]["uid"]), ("n2", "never-seen")):
        node = make_node(name).build()
        node["metadata"]["ownerReferences"] = [reference(owner, uid=uid)]
        world.create(node)
    delete(world.settle(), "owner")
    assert len(world.settle().list("nodes")) == 2


def test_object_is_kept_while_one_owner_is_left(world: ClusterWorld) -> None:
    first, second = world.create(config_map("first")), world.create(config_map("second"))
    world.create(config_map("child", first, second))
    delete(world.settle(), "first")
    assert owners_of(world.settle(), "child") == ["second"]
    delete(world, "second")
    assert not exists(world.settle(), "child")


def test_object_whose_owners_go_together_goes(world: ClusterWorld) -> None:
    first, second = world.create(config_map("first")), world.create(config_map("second"))
    world.create(config_map("child", first, second))
    world.settle()
    delete(world, "first")
    delete(world, "second")
    assert not exists(world.settle(), "child")


def test_owner_that_is_given_later_counts(world: ClusterWorld) -> None:
    first, second = world.create(config_map("first")), world.create(config_map("second"))
    world.create(config_map("child", first))
    world.settle()
    change = {"metadata": {"ownerReferences": [reference(second)]}}
    world.patch("configmaps", "child", change, patch_type="merge")
    delete(world, "first")
    assert exists(world.settle(), "child")
    delete(world, "second")
    assert not exists(world.settle(), "child")


def test_object_that_lost_its_owners_is_kept(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("child", owner))
    world.settle()
    change = {"metadata": {"ownerReferences": None}}
    world.patch("configmaps", "child", change, patch_type="merge")
    delete(world, "owner")
    assert exists(world.settle(), "child")


def test_finalizers_of_dependents_are_honoured(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("child", owner, finalizers=["example.com/wait"]))
    delete(world.settle(), "owner")
    child = world.settle().get("configmaps", "child")
    assert child["metadata"]["deletionTimestamp"]
    assert child["metadata"]["finalizers"] == ["example.com/wait"]
    release(world, "child")
    assert not exists(world, "child")


def test_dependent_that_orphans_its_own_dependents_still_does(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    child = world.create(config_map("child", owner, finalizers=["orphan"]))
    world.create(config_map("grandchild", child))
    delete(world.settle(), "owner")
    world.settle()
    assert not exists(world, "child")
    assert owners_of(world, "grandchild") == []


def test_nothing_is_written_twice(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("child", owner))
    world.create(config_map("stranger", ownerReferences=[reference(owner, kind="Nobody")]))
    revision = world.settle().store.revision
    assert world.settle().store.revision == revision


def test_refused_deletion_is_tried_again_in_the_next_step(world: ClusterWorld) -> None:
    class Refusal:
        name = "refusal"
        active = True

        def admit(self, key: AdmissionRequest) -> JsonObject:
            if self.active and key.verb == "delete" and key.name == "child":
                raise ForbiddenError("not now")
            return key.obj

    refusal = Refusal()
    owner = world.create(config_map("owner"))
    world.create(config_map("child", owner))
    world.create(config_map("other", owner))
    world.registry.admission.add(refusal)
    delete(world.settle(), "owner")
    assert exists(world.settle(), "child")
    assert not exists(world, "other")
    refusal.active = False
    assert not exists(world.settle(), "child")


# -- in the foreground -------------------------------------------------------------------------


def test_foreground_owner_goes_after_its_dependents(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    child = world.create(config_map("child", owner, blocks=True))
    world.create(config_map("grandchild", child, blocks=True))
    gone = note_removals(world.settle())
    delete(world, "owner", "Foreground")
    world.settle()
    assert gone == ["grandchild", "child", "owner"]


def test_foreground_owner_waits_only_for_those_that_block_it(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("blocking", owner, blocks=True, finalizers=["example.com/wait"]))
    world.create(config_map("loose", owner, finalizers=["example.com/wait"]))
    delete(world.settle(), "owner", "Foreground")
    assert exists(world.settle(), "owner")
    release(world, "blocking")
    assert not exists(world, "owner")
    assert world.get("configmaps", "loose")["metadata"]["deletionTimestamp"]


def test_foreground_owner_goes_when_its_last_dependent_stops_blocking(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("child", owner, blocks=True, finalizers=["example.com/wait"]))
    delete(world.settle(), "owner", "Foreground")
    assert exists(world.settle(), "owner")
    change = {"metadata": {"ownerReferences": [reference(owner)]}}
    world.patch("configmaps", "child", change, patch_type="merge")
    assert not exists(world.settle(), "owner")


def test_foreground_owner_without_dependents_goes(world: ClusterWorld) -> None:
    world.create(config_map("owner"))
    delete(world.settle(), "owner", "Foreground")
    assert exists(world, "owner")
    assert not exists(world.settle(), "owner")


def test_dependent_with_another_owner_only_leaves_the_foreground_owner(world: ClusterWorld) -> None:
    first, second = world.create(config_map("first")), world.create(config_map("second"))
    world.create(config_map("child", first, second, blocks=True))
    delete(world.settle(), "first", "Foreground")
    assert owners_of(world.settle(), "child") == ["second"]
    assert not exists(world, "first")


def test_dependent_that_comes_during_foreground_deletion_goes(world: ClusterWorld) -> None:
    owner = world.create(config_map("owner"))
    world.create(config_map("held", owner, blocks=True, finalizers=["example.com/wait"]))
    delete(world.settle(), "owner", "Foreground")
    world.settle()
    for name in ("late", "later"):
        world.create(config_map(name, owner))
        assert not exists(world.settle(), name)


def test_circle_of_owners_does_not_wait_for_itself(world: ClusterWorld) -> None:
    a = world.create(config_map("a"))
    b = world.create(config_map("b", a, blocks=True))
    change = {"metadata": {"ownerReferences": [reference(b, blocks=True)]}}
    world.patch("configmaps", "a", change, patch_type="merge")
    delete(world.settle(), "a", "Foreground")
    world.settle()
    assert not exists(world, "a")
    assert not exists(world, "b")


def test_replica_set_in_the_foreground_waits_for_its_pods(cluster: ClusterWorld) -> None:
    cluster.create(make_node("n1").cpu("8").memory("8Gi").pods("10"))
    cluster.create(make_replica_set("web").replicas(3))
    gone = note_removals(cluster.settle())
    delete(cluster, "web", "Foreground", kind="replicasets")
    cluster.settle()
    assert len(gone) == 4
    assert gone[-1] == "web"


# -- orphans -----------------------------------------------------------------------------------


def test_orphans_lose_the_reference_and_stay(world: ClusterWorld) -> None:
    first, second = world.create(config_map("first")), world.create(config_map("second"))
    world.create(config_map("only", first))
    world.create(config_map("shared", first, second))
    delete(world.settle(), "first", "Orphan")
    world.settle()
    assert not exists(world, "first")
    assert owners_of(world, "only") == []
    assert owners_of(world, "shared") == ["second"]


def test_pods_of_an_orphaning_replica_set_are_adopted_by_the_next(cluster: ClusterWorld) -> None:
    cluster.create(make_replica_set("web").replicas(3))
    before = cluster.settle().list("pods")
    delete(cluster, "web", "Orphan", kind="replicasets")
    assert [it["metadata"]["name"] for it in cluster.settle().list("pods")] == [
        it["metadata"]["name"] for it in before
    ]
    again = cluster.create(make_replica_set("web").replicas(3))
    after = cluster.settle().list("pods")
    assert [it["metadata"]["uid"] for it in after] == [it["metadata"]["uid"] for it in before]
    owners = {it["metadata"]["ownerReferences"][0]["uid"] for it in after}
    assert owners == {again["metadata"]["uid"]}


@pytest.mark.parametrize(
    ("policy", "finalizers", "left"),
    [
        pytest.param("", [], [], id="raw default of a Job is to orphan"),
        pytest.param("", ["foregroundDeletion"], None, id="a finalizer wins over the default"),
        pytest.param("Background", [], None, id="the policy wins over the default"),
        pytest.param("Orphan", ["foregroundDeletion"], [], id="the policy wins over a finalizer"),
    ],
)
def test_policy_of_a_job(
    world: ClusterWorld, policy: str, finalizers: list[str], left: list[str] | None
) -> None:
    template = {
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }
    job = world.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "job", "finalizers": finalizers},
            "spec": {"template": template},
        }
    )
    world.create(config_map("child", job))
    delete(world.settle(), "job", policy, kind="jobs")
    world.settle()
    assert not exists(world, "job", "jobs")
    assert (owners_of(world, "child") if exists(world, "child") else None) == left


# -- custom kinds ------------------------------------------------------------------------------


def widget(name: str, *owners: JsonObject) -> JsonObject:
    references = [reference(it, blocks=True) for it in owners]
    metadata = {"name": name, "ownerReferences": references}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_custom_objects_own_and_are_owned(world: ClusterWorld, policy: str) -> None:
    world.create(widget_definition())
    parent = world.create(widget("parent"))
    child = world.create(widget("child", parent))
    world.create(config_map("map", child, blocks=True))
    delete(world.settle(), "parent", policy, kind="widgets")
    world.settle()
    assert world.list("widgets") == []
    assert not exists(world, "map")


def test_custom_objects_are_orphaned(world: ClusterWorld) -> None:
    world.create(widget_definition())
    parent = world.create(widget("parent"))
    world.create(widget("child", parent))
    delete(world.settle(), "parent", "Orphan", kind="widgets")
    (child,) = world.settle().list("widgets")
    assert child["metadata"]["name"] == "child"
    assert "ownerReferences" not in child["metadata"]


def test_dependents_of_custom_objects_go_with_the_definition(world: ClusterWorld) -> None:
    world.create(widget_definition())
    world.create(config_map("child", world.create(widget("parent"))))
    world.settle()
    world.delete("customresourcedefinitions", "widgets.example.com")
    assert not exists(world.settle(), "child")


def test_owner_of_a_kind_that_nobody_serves_is_not_taken_for_absent(world: ClusterWorld) -> None:
    parent = widget("parent")
    parent["metadata"]["uid"] = "1-2-3"
    world.create(config_map("child", parent))
    assert exists(world.settle(), "child")
    assert exists(world.settle(), "child")
    world.create(widget_definition())
    assert not exists(world.settle(), "child")


# -- in a scenario -----------------------------------------------------------------------------


def test_collected_pods_are_in_the_timeline_of_the_same_step() -> None:
    node = make_node("n1").cpu("8").memory("8Gi").pods("10")
    scenario = kubescene.ScenarioBuilder("collect").create(
        node, make_replica_set("web").replicas(3)
    )
    run = kubescene.run(scenario.next_step().delete("apps/v1", "ReplicaSet", "web").done())
    assert run.ok, run.message
    events = list(run.timeline)
    pods = [
        it["create"]["result"] for it in events if it["actor"] == "replicaset" and "create" in it
    ]
    deletes = [it for it in events if it["actor"] == "garbage-collector"]
    assert [it["operation"] for it in deletes] == ["Delete"] * 3
    assert [it["step"] for it in deletes] == [{"major": 2, "minor": 0}] * 3
    names = [it["delete"]["operation"]["objectMeta"]["name"] for it in deletes]
    assert names == [pod["metadata"]["name"] for pod in pods]
    assert run.cluster.list("pods") == []


# -- the graph ---------------------------------------------------------------------------------


def test_graph_forgets_what_has_gone() -> None:
    graph = OwnerGraph()
    owner: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "o", "uid": "u"},
    }
    for name in ("a", "b"):
        graph.put(graph.decoded(config_map(name, owner, owner, blocks=True, uid=name)))
    assert graph.owners["u"].blocking == 2
    graph.put(graph.decoded(config_map("a", owner, uid="a")))
    assert graph.owners["u"].blocking == 1
    assert [it.name for it in graph.dependents_of("u")] == ["a", "b"]
    for name in ("a", "b"):
        graph.drop(name)
    assert (graph.owners, graph.dependents) == ({}, {})


def test_an_object_at_which_something_breaks_is_looked_at_again(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(make_replica_set("web").replicas(1))
    cluster.settle()
    cluster.delete("replicasets", "web")
    with monkeypatch.context() as broken:
        broken.setattr(GarbageCollector, "_look_at", stumble)
        with pytest.raises(RuntimeError, match="stumbled"):
            cluster.settle()
    cluster.settle()
    assert cluster.list("pods") == []


def stumble(*_: object) -> None:
    raise RuntimeError("stumbled")


class Family:
    """Config maps by number, and which of them should be left: what has lost all owners is not."""

    def __init__(self) -> None:
        self.cluster = ClusterWorld()
        self.cluster.start(["garbage-collector"])
        self.made: list[JsonObject] = []
        self.owners: dict[int, set[int]] = {}

    def create(self, owners: set[int], *, blocks: bool) -> None:
        """With owners that were once there; those that do not exist any more count for nothing."""
        number, owners = len(self.made), {each for each in owners if each < len(self.made)}
        given = [self.made[each] for each in sorted(owners)]
        self.made.append(self.cluster.create(config_map(f"c{number}", *given, blocks=blocks)))
        left = {each for each in owners if each in self.owners}
        if left or not owners:
            self.owners[number] = left

    def delete(self, number: int, policy: str) -> None:
        if number < len(self.made) and exists(self.cluster, f"c{number}"):
            delete(self.cluster, f"c{number}", policy)
            self._lose(number)

    def _lose(self, number: int) -> None:
        if self.owners.pop(number, None) is None:
            return
        for each, owners in [*self.owners.items()]:
            if number in owners:
                owners.remove(number)
                if not owners:
                    self._lose(each)

    def left(self) -> dict[str, list[str]]:
        """Names and owners of what is left; nothing of it is going."""
        found = self.cluster.settle().list("configmaps", namespace="default")
        assert not [it for it in found if "deletionTimestamp" in it["metadata"]]
        return {
            it["metadata"]["name"]: [
                each["name"] for each in it["metadata"].get("ownerReferences", ())
            ]
            for it in found
            if it["metadata"]["name"].startswith("c")
        }


NUMBERS = st.integers(0, 7)
CREATIONS = st.tuples(st.just("create"), st.sets(NUMBERS, max_size=3), st.booleans())
DELETIONS = st.tuples(
    st.just("delete"), NUMBERS, st.sampled_from(["Background", "Foreground", "Orphan"])
)


def played(acts: list[Any]) -> Family:
    family = Family()
    for act in acts:
        match act:
            case ("create", owners, blocks):
                family.create(owners, blocks=blocks)
            case ("delete", number, policy):
                family.delete(number, policy)
            case _:
                family.cluster.settle()
    return family


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        CREATIONS | DELETIONS.filter(lambda it: it[2] != "Orphan") | st.just("settle"), max_size=25
    )
)
def test_however_deletions_fall_together_the_same_is_left(acts: list[Any]) -> None:
    family = played(acts)
    wanted = {
        f"c{number}": [f"c{each}" for each in sorted(owners)]
        for number, owners in family.owners.items()
    }
    assert family.left() == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(CREATIONS | DELETIONS | st.just("settle"), max_size=25))
def test_no_reference_is_left_to_an_owner_that_has_gone(acts: list[Any]) -> None:
    left = played(acts).left()
    assert not [name for name, owners in left.items() if not set(owners) <= set(left)]
