"""Every promise of `kubescene.client.interfaces`, kept by both clients.

What only one of them can promise is in ``test_direct.py`` and ``test_http.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from client.worlds import DirectWorld, HttpWorld, World
from kubescene.actors import Actor
from kubescene.api.gates import OpenGate
from kubescene.api.kinds import NAMESPACE, NODE, POD
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.api.selectors import NOTHING, parse_labels
from kubescene.client import Client, ObjectRef
from kubescene.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ReentrantWriteError,
)
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject
from widgets import widget_definition

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
AUTOSCALER = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
WIDGET = GroupVersionKind("example.com", "v1", "Widget")
A = ObjectRef(POD, "a", "default")


@pytest.fixture
def client(world: World) -> Client:
    return world.client()


@dataclass
class Heard:
    """A handler that remembers."""

    changes: list[Change] = field(default_factory=list)

    def __call__(self, change: Change) -> None:
        self.changes.append(change)

    @property
    def names(self) -> list[str]:
        return [change.record.name for change in self.changes]

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(change.type.value, change.record.name) for change in self.changes]


def config_map(name: str, namespace: str = "", **data: str) -> JsonObject:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def owned_pod(name: str, uid: str) -> JsonObject:
    pod = make_pod(name).build()
    owner = {"apiVersion": "v1", "kind": "X", "name": "o", "uid": uid, "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


def held(name: str) -> JsonObject:
    """An object that a finalizer keeps from going."""
    obj = config_map(name)
    return {**obj, "metadata": {**obj["metadata"], "finalizers": ["example.com/hold"]}}


def widgets() -> JsonObject:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return widget_definition(schema=schema)


def widget(name: str, **rest: Any) -> JsonObject:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        **rest,
    }


# -- reading -------------------------------------------------------------------------------------


def test_what_was_created_can_be_got(client: Client) -> None:
    record = client.create(make_pod("a").build())
    obj = client.get(A)
    assert obj == record.decode()
    assert (obj["apiVersion"], obj["kind"], obj["metadata"]["uid"]) == ("v1", "Pod", record.uid)
    assert obj["metadata"]["resourceVersion"] == str(record.revision)


def test_find_returns_none_where_get_raises(client: Client) -> None:
    assert client.find(A) is None
    with pytest.raises(NotFoundError, match='pods "a" not found') as caught:
        client.get(A)
    assert (caught.value.name, caught.value.kind, caught.value.group) == ("a", "pods", "")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_a_name_that_no_object_can_have_is_not_found(client: Client, name: str) -> None:
    client.create(config_map("a"))
    with pytest.raises(NotFoundError):
        client.get(ObjectRef(CONFIG_MAP, name, "default"))
    with pytest.raises(NotFoundError):
        client.delete(ObjectRef(CONFIG_MAP, name, "default"))
    assert client.find(ObjectRef(CONFIG_MAP, "a", "default"))


def test_lists_are_ordered_by_namespace_and_name(client: Client) -> None:
    for name, namespace in (("b", "default"), ("a", "kube-system"), ("a", "default")):
        client.create(config_map(name, namespace))
    found = [
        (it["metadata"]["namespace"], it["metadata"]["name"]) for it in client.list(CONFIG_MAP)
    ]
    assert found == [("default", "a"), ("default", "b"), ("kube-system", "a")]
    (only,) = client.list(CONFIG_MAP, namespace="kube-system")
    assert (only["kind"], only["apiVersion"]) == ("ConfigMap", "v1")


def test_labels_select(client: Client) -> None:
    client.create(make_pod("a").label(app="web", tier="front").build())
    client.create(make_pod("b").label(app="web").build())
    client.create(make_pod("c").build())

    def chosen(text: str) -> list[str]:
        found = client.list(POD, labels=parse_labels(text))
        return [pod["metadata"]["name"] for pod in found]

    assert chosen("app=web") == ["a", "b"]
    assert chosen("app in (web),!tier") == ["b"]
    assert chosen("") == ["a", "b", "c"]
    assert client.list(POD, labels=NOTHING) == []


def test_a_list_of_nothing_is_empty(client: Client) -> None:
    assert client.list(POD) == []
    assert client.owned(POD, "nobody") == []


@pytest.mark.parametrize("watched", [False, True])
def test_owned_objects_come_in_order_of_creation(client: Client, watched: bool) -> None:
    if watched:
        client.watch(POD, Heard())
    records = [client.create(owned_pod(name, uid)) for name, uid in zip("cab", "112", strict=True)]
    client.wait_seen(records[-1].revision)
    assert [pod["metadata"]["name"] for pod in client.owned(POD, "1")] == ["c", "a"]


def test_an_object_comes_in_the_version_that_is_asked_for(client: Client) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70, "scaleTargetRef": target}
    metadata = {"name": "web", "namespace": "default"}
    client.create(
        {
            "apiVersion": AUTOSCALER.api_version,
            "kind": AUTOSCALER.kind,
            "metadata": metadata,
            "spec": spec,
        }
    )
    ref = ObjectRef(AUTOSCALER, "web", "default")
    for obj in (client.get(ref), client.find(ref) or {}, client.list(AUTOSCALER)[0]):
        assert obj["apiVersion"] == "autoscaling/v1"
        assert obj["spec"]["targetCPUUtilizationPercentage"] == 70


def test_a_kind_that_nobody_serves_is_refused(client: Client) -> None:
    gadget = GroupVersionKind("example.com", "v1", "Gadget")
    asked: list[Callable[[], Any]] = [
        lambda: client.find(ObjectRef(gadget, "a", "default")),
        lambda: client.list(gadget),
        lambda: client.watch(gadget, Heard()),
        lambda: client.create({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {}}),
    ]
    for ask in asked:
        with pytest.raises(BadRequestError, match='no kind "Gadget" is registered for version'):
            ask()


def test_custom_kinds_are_known_once_they_are_defined(client: Client) -> None:
    with pytest.raises(BadRequestError):
        client.list(WIDGET)
    client.create(widgets())
    record = client.create(widget("w", spec="any", status={"phase": 7}))
    assert (record.resource, record.phase) == (("example.com", "widgets"), "")
    assert client.get(ObjectRef(WIDGET, "w", "default"))["status"] == {"phase": 7}


# -- writing -------------------------------------------------------------------------------------


def test_records_repeat_what_is_asked_for_all_the_time(client: Client) -> None:
    pod = make_pod("a").label(app="web").build()
    created = client.create(
        {**pod, "metadata": {**owned_pod("a", "u1")["metadata"], **pod["metadata"]}}
    )
    bound = client.bind(A, "n1")
    status = {"status": {"phase": "Running"}}
    running = client.patch(A, status, subresource="status")
    assert (created.resource, created.key) == (("", "pods"), ("default", "a"))
    assert (created.owner, created.labels, created.node) == ("u1", {"app": "web"}, "")
    assert (bound.node, bound.uid, running.phase) == ("n1", created.uid, "Running")
    assert created.revision < bound.revision < running.revision
    assert not running.deleting
    assert b"resourceVersion" not in running.unversioned_data


def test_without_a_namespace_an_object_goes_to_default(client: Client) -> None:
    assert client.create(config_map("a")).namespace == "default"
    assert client.create(make_node("n").build()).namespace == ""


def test_names_can_be_generated(client: Client) -> None:
    obj = {**config_map(""), "metadata": {"generateName": "web-"}}
    first, second = client.create(obj), client.create(obj)
    assert first.name != second.name
    assert first.name.startswith("web-")


def test_what_exists_cannot_be_created_again(client: Client) -> None:
    client.create(make_pod("a").build())
    with pytest.raises(AlreadyExistsError, match='pods "a" already exists'):
        client.create(make_pod("a").build())


def test_a_stale_update_is_a_conflict(client: Client) -> None:
    stale = client.create(config_map("a", x="1")).decode()
    fresh = client.update({**stale, "data": {"x": "2"}})
    assert fresh.decode()["data"] == {"x": "2"}
    with pytest.raises(ConflictError, match="the object has been modified; please apply"):
        client.update({**stale, "data": {"x": "3"}})


def test_an_update_without_a_version_replaces(client: Client) -> None:
    client.create(config_map("a", x="1"))
    assert client.update(config_map("a", "default", y="2")).decode()["data"] == {"y": "2"}
    with pytest.raises(NotFoundError, match='configmaps "b" not found'):
        client.update(config_map("b", "default"))


def test_a_change_of_nothing_takes_no_revision(client: Client) -> None:
    record = client.create(config_map("a", x="1"))
    assert client.patch(ObjectRef.to(record.decode()), {"data": {"x": "1"}}) == record


@pytest.mark.parametrize(
    ("patch_type", "patch"),
    [
        (PatchType.MERGE, {"metadata": {"labels": {"x": "y"}}}),
        (PatchType.STRATEGIC, {"metadata": {"labels": {"x": "y"}}}),
        (PatchType.JSON, [{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]),
        (
            PatchType.APPLY,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a", "namespace": "default", "labels": {"x": "y"}},
            },
        ),
    ],
    ids=["merge", "strategic", "json", "apply"],
)
def test_all_patch_types_work(client: Client, patch_type: PatchType, patch: Any) -> None:
    client.create(make_pod("a").build())
    record = client.patch(A, patch, patch_type=patch_type)
    assert record.labels == {"x": "y"}
    assert client.get(A)["metadata"]["labels"] == {"x": "y"}


def test_an_apply_creates_and_takes_by_force(client: Client) -> None:
    def apply(value: str, manager: str, *, force: bool = False) -> None:
        client.patch(
            ObjectRef(CONFIG_MAP, "a", "default"),
            config_map("a", "default", x=value),
            patch_type=PatchType.APPLY,
            options=WriteOptions(field_manager=manager, force=force),
        )

    apply("1", "first")
    with pytest.raises(ConflictError, match="conflict with") as caught:
        apply("2", "second")
    assert [cause.reason for cause in caught.value.causes] == ["FieldManagerConflict"]
    apply("2", "second", force=True)
    assert client.get(ObjectRef(CONFIG_MAP, "a", "default"))["data"] == {"x": "2"}


def test_a_patch_that_fits_nothing_is_refused(client: Client) -> None:
    client.create(make_pod("a").build())
    with pytest.raises(InvalidError):
        client.patch(A, [{"op": "test", "path": "/kind", "value": "X"}], patch_type=PatchType.JSON)


def test_status_and_spec_are_written_apart(client: Client) -> None:
    deployment = make_deployment("web").replicas(1).build()
    client.create(deployment)
    ref = ObjectRef.to({**deployment, "metadata": {"name": "web", "namespace": "default"}})
    both = {"spec": {"replicas": 3}, "status": {"observedGeneration": 7}}
    client.patch(ref, both, subresource="status")
    seen = client.get(ref)
    assert (seen["spec"]["replicas"], seen["status"]["observedGeneration"]) == (1, 7)
    client.update({**seen, **{"status": {"observedGeneration": 9}}})
    assert client.get(ref)["status"]["observedGeneration"] == 7
    client.update({**client.get(ref), "status": {"observedGeneration": 9}}, subresource="status")
    assert client.get(ref)["status"]["observedGeneration"] == 9


def test_what_nobody_holds_is_gone_at_once(client: Client) -> None:
    created = client.create(config_map("a"))
    ref = ObjectRef(CONFIG_MAP, "a", "default")
    gone = client.delete(ref)
    assert (gone.resource, gone.key, gone.uid) == (created.resource, created.key, created.uid)
    assert client.find(ref) is None
    with pytest.raises(NotFoundError, match='configmaps "a" not found'):
        client.delete(ref)


def test_a_pod_on_a_node_is_given_time(client: Client) -> None:
    client.create(make_pod("a").build())
    client.bind(A, "n1")
    record = client.delete(A, options=DeleteOptions(grace_period_s=5))
    assert record.deleting
    assert client.get(A)["metadata"]["deletionGracePeriodSeconds"] == 5
    client.delete(A, options=DeleteOptions(grace_period_s=0))
    assert client.find(A) is None


def test_a_finalizer_holds_an_object_until_it_is_taken_away(client: Client) -> None:
    client.create(held("a"))
    ref = ObjectRef(CONFIG_MAP, "a", "default")
    assert client.delete(ref).deleting
    assert client.find(ref) is not None
    client.patch(ref, {"metadata": {"finalizers": None}})
    assert client.find(ref) is None


def test_a_namespace_is_seen_to_be_going_and_to_be_gone(client: Client) -> None:
    """What holds it stands in its spec, and its end is the answer to a change."""
    seen: list[Change] = []
    ref = ObjectRef(NAMESPACE, "team")
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    client.watch(NAMESPACE, seen.append)
    client.wait_seen(client.delete(ref).revision)
    assert seen[-1].record.deleting
    going = client.get(ref)
    done = client.update({**going, "spec": {}}, subresource="finalize")
    client.wait_seen(done.revision)
    assert seen[-1].type == "DELETED"


def test_a_deletion_can_be_bound_to_uid_and_version(client: Client) -> None:
    record = client.create(make_pod("a").build())
    with pytest.raises(ConflictError, match="UID in precondition: somebody-else"):
        client.delete(A, options=DeleteOptions(uid="somebody-else"))
    with pytest.raises(ConflictError, match="ResourceVersion in precondition: 1,"):
        client.delete(A, options=DeleteOptions(resource_version="1"))
    exact = DeleteOptions(uid=record.uid, resource_version=str(record.revision))
    client.delete(A, options=exact)
    assert client.find(A) is None


def test_a_policy_of_propagation_becomes_a_finalizer(client: Client) -> None:
    client.create(config_map("a"))
    ref = ObjectRef(CONFIG_MAP, "a", "default")
    client.delete(ref, options=DeleteOptions(propagation_policy="Foreground"))
    assert client.get(ref)["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_binding_happens_once(client: Client) -> None:
    record = client.create(make_pod("a").build())
    with pytest.raises(ConflictError, match="UID"):
        client.bind(A, "n1", uid="somebody-else")
    assert client.bind(A, "n1", uid=record.uid).node == "n1"
    with pytest.raises(ConflictError, match='already assigned to node "n1"'):
        client.bind(A, "n2")
    with pytest.raises(NotFoundError, match='pods "b" not found'):
        client.bind(ObjectRef(POD, "b", "default"), "n1")


def test_scaling_changes_the_replicas_alone(client: Client) -> None:
    before = client.create(make_deployment("web").replicas(1).build()).decode()
    heard, ref = Heard(), ObjectRef.to(before)
    client.watch(ref.gvk, heard)
    record = client.scale(ref, 3)
    client.wait_seen(record.revision)
    assert record.decode()["spec"] == {**before["spec"], "replicas": 3}
    assert heard.changes[-1].record == record
    scale = client.get_scale(ref)
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 3})
    client.scale(ref, 5, options=WriteOptions(dry_run=True))
    assert client.get(ref)["spec"]["replicas"] == 3


def test_what_has_no_scale_cannot_be_scaled(client: Client) -> None:
    client.create(make_pod("a").build())
    with pytest.raises(NotFoundError):
        client.scale(A, 3)
    with pytest.raises(NotFoundError):
        client.get_scale(A)
    deployment = ObjectRef(GroupVersionKind("apps", "v1", "Deployment"), "web", "default")
    with pytest.raises(NotFoundError, match=r'deployments\.apps "web" not found'):
        client.scale(deployment, 3)


def test_an_evicted_pod_goes(client: Client) -> None:
    heard = Heard()
    client.watch(POD, heard)
    created = client.create(make_pod("a").build())
    client.wait_seen(created.revision)
    gone = client.evict(A)
    client.wait_seen(gone.revision)
    assert (gone.key, gone.uid) == (created.key, created.uid)
    assert heard.told[-1] == ("DELETED", "a")
    client.create(make_pod("a").build())
    client.bind(A, "n1")
    assert client.evict(A, options=DeleteOptions(grace_period_s=9)).deleting
    assert client.get(A)["metadata"]["deletionGracePeriodSeconds"] == 9


def test_an_eviction_asks_the_budget(client: Client) -> None:
    client.create(make_pod("a").label(app="web").build())
    client.bind(A, "n1")
    client.patch(A, {"status": {"phase": "Running"}}, subresource="status")
    for name in ("first", "second"):
        client.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            }
        )
        with pytest.raises(ApiError) as caught:
            client.evict(A)
        assert caught.value.message.startswith(
            "Cannot evict pod as it would violate the pod's disruption budget."
            if name == "first"
            else "This pod has more than one PodDisruptionBudget"
        )
    assert not client.get(A)["metadata"].get("deletionTimestamp")


def test_a_dry_run_changes_nothing(client: Client) -> None:
    dry = WriteOptions(dry_run=True)
    assert client.create(config_map("a"), options=dry).name == "a"
    ref = ObjectRef(CONFIG_MAP, "a", "default")
    assert client.find(ref) is None
    client.create(config_map("a", x="1"))
    assert client.patch(ref, {"data": {"x": "2"}}, options=dry).decode()["data"] == {"x": "2"}
    client.delete(ref, options=DeleteOptions(dry_run=True))
    assert client.get(ref)["data"] == {"x": "1"}


def test_who_wrote_is_noted(client: Client) -> None:
    def managers() -> list[str]:
        entries = client.get(ObjectRef(CONFIG_MAP, "a", "default"))["metadata"]["managedFields"]
        return [entry["manager"] for entry in entries]

    client.create(config_map("a", x="1"))
    assert managers() == ["tester"]
    patch, named = {"data": {"x": "2"}}, WriteOptions(field_manager="somebody")
    client.patch(ObjectRef(CONFIG_MAP, "a", "default"), patch, options=named)
    assert "somebody" in managers()


def test_unknown_fields_are_dropped_unless_the_writer_is_strict(client: Client) -> None:
    odd = {**config_map("a"), "nonsense": 1}
    with pytest.raises(BadRequestError, match='strict decoding error: unknown field "nonsense"'):
        client.create(odd, options=WriteOptions(strict=True))
    assert "nonsense" not in client.create(odd).decode()


class ClosedGate(OpenGate):
    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        raise ForbiddenError(f"{actor} may not write {resource_type.plural} now")


def test_what_the_gate_refuses_is_forbidden(world: World) -> None:
    client = world.client("mallory")
    world.run(lambda: setattr(world.cluster.registry, "gate", ClosedGate()))
    with pytest.raises(ForbiddenError, match="mallory may not write configmaps now"):
        client.create(config_map("a"))
    assert client.list(CONFIG_MAP) == []


REFUSALS: dict[str, Callable[[Client], Any]] = {
    "invalid": lambda client: client.create(make_pod("Not A Name").cpu("-1").build()),
    "no containers": lambda client: client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}
    ),
    "no name": lambda client: client.create(config_map("")),
    "no such namespace": lambda client: client.create(config_map("x", "nowhere")),
    "immutable": lambda client: client.patch(A, {"spec": {"nodeName": "n1"}}),
    "bad json patch": lambda client: client.patch(
        A, [{"op": "remove", "path": "/spec/nothing"}], patch_type=PatchType.JSON
    ),
    "strict": lambda client: client.create(
        {**config_map("x"), "nonsense": 1, "more": 2}, options=WriteOptions(strict=True)
    ),
    "exists": lambda client: client.create(make_pod("a").build()),
    "not found": lambda client: client.delete(ObjectRef(NODE, "n1")),
    "other uid": lambda client: client.bind(A, "n1", uid="other"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_both_clients_refuse_alike(served: HttpWorld, case: str) -> None:
    told: list[tuple[Any, ...]] = []
    for world in (DirectWorld(), served):
        client = world.client()
        client.create(make_pod("a").build())
        with pytest.raises(ApiError) as caught:
            REFUSALS[case](client)
        error = caught.value
        told.append((type(error), error.to_status(), error.causes))
    assert told[0] == told[1]


# -- watching ------------------------------------------------------------------------------------


def test_a_watch_begins_with_what_exists_in_order_of_creation(client: Client) -> None:
    for name in ("b", "c", "a"):
        client.create(config_map(name))
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    assert heard.told == [("ADDED", "b"), ("ADDED", "c"), ("ADDED", "a")]


def test_own_writes_are_heard_once_they_were_waited_for(client: Client) -> None:
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    client.create(config_map("a"))
    changed = client.patch(ObjectRef(CONFIG_MAP, "a", "default"), {"data": {"x": "1"}})
    client.wait_seen(changed.revision)
    assert heard.told == [("ADDED", "a"), ("MODIFIED", "a")]
    gone = client.delete(ObjectRef(CONFIG_MAP, "a", "default"))
    client.wait_seen(gone.revision)
    assert heard.told[2:] == [("DELETED", "a")]


def test_a_change_knows_what_it_replaced(client: Client) -> None:
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    first = client.create(config_map("a", x="1"))
    ref = ObjectRef(CONFIG_MAP, "a", "default")
    second = client.patch(ref, {"data": {"x": "2"}})
    client.wait_seen(client.delete(ref).revision)
    added, modified, deleted = heard.changes
    assert (added.previous, added.previous_object) == (None, None)
    assert (added.record, modified.previous, modified.record) == (first, first, second)
    assert (modified.object["data"], modified.previous_object) == ({"x": "2"}, first.decode())
    assert (deleted.previous, deleted.object["data"]) == (second, {"x": "2"})
    assert added.revision < modified.revision < deleted.revision
    assert deleted.object["metadata"]["resourceVersion"] == str(deleted.revision)


def test_a_binding_is_heard_of(client: Client) -> None:
    heard = Heard()
    client.watch(POD, heard)
    client.create(make_pod("a").build())
    client.wait_seen(client.bind(A, "n1").revision)
    assert [change.record.node for change in heard.changes] == ["", "n1"]


def test_kinds_that_are_not_watched_count_as_seen(client: Client) -> None:
    heard = Heard()
    client.watch(POD, heard)
    client.wait_seen(client.create(config_map("a")).revision)
    assert heard.names == []


def test_a_revision_that_does_not_exist_cannot_be_waited_for(client: Client) -> None:
    client.create(config_map("a"))
    with pytest.raises(ValueError, match="does not exist yet"):
        client.wait_seen(10**9)


def test_a_change_of_nothing_need_not_be_waited_for(client: Client) -> None:
    client.watch(CONFIG_MAP, Heard())
    client.create(config_map("a", x="1"))
    same = client.patch(ObjectRef(CONFIG_MAP, "a", "default"), {"data": {"x": "1"}})
    client.wait_seen(same.revision)


def test_a_dry_run_is_not_waited_for(client: Client) -> None:
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    client.create(config_map("a"), options=WriteOptions(dry_run=True))
    client.wait_seen(client.create(config_map("b")).revision)
    assert heard.names == ["b"]


def test_handlers_hear_in_the_order_of_their_watches(client: Client) -> None:
    calls: list[str] = []
    client.watch(CONFIG_MAP, lambda change: calls.append(f"first {change.record.name}"))
    client.watch(CONFIG_MAP, lambda change: calls.append(f"second {change.record.name}"))
    client.create(config_map("b"))
    client.wait_seen(client.create(config_map("a")).revision)
    assert calls == ["first b", "second b", "first a", "second a"]


def test_who_watches_later_hears_the_same(client: Client) -> None:
    early, late = Heard(), Heard()
    client.watch(CONFIG_MAP, early)
    for name in ("b", "a"):
        record = client.create(config_map(name))
    client.wait_seen(record.revision)
    client.watch(CONFIG_MAP, late)
    client.wait_seen(client.create(config_map("c")).revision)
    assert early.told == late.told == [("ADDED", "b"), ("ADDED", "a"), ("ADDED", "c")]


def test_handlers_may_not_write(client: Client) -> None:
    def handler(change: Change) -> None:
        client.delete(ObjectRef(CONFIG_MAP, change.record.name, "default"))

    client.watch(CONFIG_MAP, handler)
    with pytest.raises(ReentrantWriteError, match="enqueue the work"):
        client.wait_seen(client.create(config_map("a")).revision)
    assert client.find(ObjectRef(CONFIG_MAP, "a", "default")) is not None


def test_handlers_may_read(client: Client) -> None:
    found: list[JsonObject | None] = []
    ref = ObjectRef(CONFIG_MAP, "a", "default")
    client.watch(CONFIG_MAP, lambda change: found.append(client.find(ref)))
    record = client.create(config_map("a"))
    client.wait_seen(record.revision)
    assert found == [record.decode()]


def test_a_cancelled_watch_is_silent(client: Client) -> None:
    ended, going = Heard(), Heard()
    subscription = client.watch(CONFIG_MAP, ended)
    client.watch(CONFIG_MAP, going)
    client.wait_seen(client.create(config_map("a")).revision)
    subscription.cancel()
    subscription.cancel()
    client.wait_seen(client.create(config_map("b")).revision)
    assert (ended.names, going.names) == (["a"], ["a", "b"])


def test_closing_ends_all_watches(client: Client) -> None:
    heard = Heard()
    client.watch(CONFIG_MAP, heard)
    client.watch_all(heard)
    before = list(heard.names)
    client.close()
    client.wait_seen(client.create(config_map("a")).revision)
    assert heard.names == before


def test_clients_hear_of_each_other(world: World) -> None:
    one, other = world.client("one"), world.client("other")
    heard = Heard()
    other.watch(CONFIG_MAP, heard)
    one.create(config_map("a"))
    one.delete(ObjectRef(CONFIG_MAP, "a", "default"))
    world.until(other, lambda: len(heard.changes) == 2)
    assert heard.told == [("ADDED", "a"), ("DELETED", "a")]


def test_what_is_heard_wakes_the_owner_unless_quiet(world: World) -> None:
    turns: list[str] = []
    client = world.client(wake=lambda: turns.append("wake"))
    client.watch(CONFIG_MAP, lambda change: turns.append(change.record.name))
    client.watch(POD, lambda change: turns.append(change.record.name), quiet=True)
    client.wait_seen(client.create(config_map("a")).revision)
    client.wait_seen(client.create(make_pod("b").build()).revision)
    assert turns == ["a", "wake", "b"]


def test_a_client_knows_whether_what_it_watches_has_changed(client: Client) -> None:
    client.watch(CONFIG_MAP, Heard())
    first = client.create(config_map("a"))
    client.wait_seen(first.revision)
    client.create(make_pod("b").build())
    assert client.changed_since(first.revision - 1)
    assert not client.changed_since(first.revision)
    gone = client.delete(ObjectRef(CONFIG_MAP, "a", "default"))
    client.wait_seen(gone.revision)
    assert client.changed_since(first.revision)


def test_a_handler_can_end_its_own_watch(client: Client) -> None:
    heard = Heard()

    def once(change: Change) -> None:
        heard(change)
        subscription.cancel()

    subscription = client.watch(CONFIG_MAP, once)
    client.create(config_map("a"))
    client.wait_seen(client.create(config_map("b")).revision)
    assert heard.names == ["a"]


def test_a_handler_that_raises_is_heard_of(client: Client) -> None:
    def broken(change: Change) -> None:
        raise LookupError(f"nobody knows {change.record.name}")

    client.watch(CONFIG_MAP, broken)
    with pytest.raises(LookupError, match="nobody knows a"):
        client.wait_seen(client.create(config_map("a")).revision)
    assert client.find(ObjectRef(CONFIG_MAP, "a", "default")) is not None


def test_all_kinds_can_be_followed_later_ones_too(world: World) -> None:
    client = world.client()
    client.create(config_map("early"))
    heard = Heard()
    client.watch_all(heard)
    resources = [change.record.resource for change in heard.changes]
    assert resources == sorted(resources)
    assert "early" in heard.names
    client.create(widgets())
    client.create(widget("w"))
    client.create(make_node("n").build())
    world.until(client, lambda: {"w", "n"} <= {*heard.names})
    assert heard.names.count("w") == heard.names.count("early") == 1


def test_a_kind_that_goes_takes_its_objects_along(world: World) -> None:
    client, heard = world.client(), Heard()
    client.watch_all(heard)
    client.create(widgets())
    client.create(widget("w"))
    world.until(client, lambda: "w" in heard.names)
    client.delete(ObjectRef(WIDGET, "w", "default"))
    client.delete(ObjectRef(DEFINITION, "widgets.example.com"))
    wanted = {("DELETED", "w"), ("DELETED", "widgets.example.com")}
    world.until(client, lambda: wanted <= {*heard.told})
    client.wait_seen(client.create(config_map("after")).revision)
    assert heard.names.count("after") == 1


def test_what_was_handed_over_may_be_changed_afterwards(client: Client) -> None:
    obj = config_map("a") | {"data": {"x": "1"}}
    client.create(obj)
    obj["data"]["x"] = "2"
    assert client.get(ObjectRef(CONFIG_MAP, "a", "default"))["data"] == {"x": "1"}
    client.update(obj)
    assert client.get(ObjectRef(CONFIG_MAP, "a", "default"))["data"] == {"x": "2"}
    patch = {"data": {"y": "1"}}
    client.patch(ObjectRef(CONFIG_MAP, "a", "default"), patch)
    patch["data"]["y"] = "2"
    assert client.get(ObjectRef(CONFIG_MAP, "a", "default"))["data"] == {"x": "2", "y": "1"}
