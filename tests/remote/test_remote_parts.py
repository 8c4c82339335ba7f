"""What a wipe spares, whose times objects carry, and what a store takes over from another."""

from typing import Any

import pytest

from kubescene.api.records import Record, make_record, versioned
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.client.http.records import DecodedObjects
from kubescene.clock import SECOND, VirtualClock, format_time
from kubescene.errors import ScenarioError
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.remote.mirror import Intruders, ScenarioTimes, node_last
from kubescene.remote.wiping import check_disposable, order_of_wipe, survives
from kubescene.store import Store
from kubescene.types import JsonObject

PODS = GroupResource("", "pods")
CONFIG_MAPS = GroupResource("", "configmaps")


def obj(name: str = "a", namespace: str = "default", **metadata: Any) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", **metadata},
        "spec": {},
    }


def spared(resource: GroupResource, made: JsonObject, *, is_ours: bool = False) -> bool:
    return survives(make_record(resource, versioned(made, 1), 1), made, is_ours=is_ours)


@pytest.mark.parametrize(
    "metadata",
    [{"annotations": {"kubescene.dev/disposable": "true"}},
     {"labels": {"kubescene.dev/disposable": "true"}}],
    ids=["annotation", "label"],
)  # fmt: skip
def test_a_cluster_says_that_it_is_disposable(metadata: JsonObject) -> None:
    check_disposable({"metadata": metadata})


@pytest.mark.parametrize(
    "system",
    [None, {}, {"metadata": {"annotations": {"kubescene.dev/disposable": "yes"}}},
     {"metadata": {"annotations": None, "labels": {"kubescene.dev/disposable": "True"}}}],
)  # fmt: skip
def test_anything_else_is_no(system: JsonObject | None) -> None:
    with pytest.raises(ScenarioError, match="does not allow that"):
        check_disposable(system)


def test_pods_and_nodes_go() -> None:
    assert not spared(PODS, obj())
    assert not spared(GroupResource("", "nodes"), obj(namespace=""))


@pytest.mark.parametrize(
    ("resource", "made"),
    [
        (PODS, obj(annotations={"kubescene.dev/keep": "true"})),
        (PODS, obj(namespace="kube-system")),
        (CONFIG_MAPS, obj("kube-root-ca.crt")),
        (GroupResource("", "namespaces"), obj("kube-node-lease", "")),
        (GroupResource("", "services"), obj("kubernetes")),
        (GroupResource("discovery.k8s.io", "endpointslices"), obj("kubernetes")),
        (GroupResource("flowcontrol.apiserver.k8s.io", "flowschemas"), obj("exempt", "")),
        (GroupResource("admissionregistration.k8s.io", "validatingadmissionpolicies"), obj()),
        (GroupResource("networking.k8s.io", "servicecidrs"), obj("kubernetes", "")),
        (GroupResource("rbac.authorization.k8s.io", "clusterroles"), obj("admin", "")),
    ],
)
def test_what_is_the_server_s_or_somebody_s_stays(
    resource: GroupResource, made: JsonObject
) -> None:
    assert spared(resource, made)


def test_what_kubescene_put_into_a_system_namespace_goes() -> None:
    assert not spared(PODS, obj(namespace="kube-system"), is_ours=True)


def test_a_service_of_the_same_name_elsewhere_goes() -> None:
    assert not spared(GroupResource("", "services"), obj("kubernetes", "team"))


def test_namespaces_go_last() -> None:
    namespaces, others = GroupResource("", "namespaces"), GroupResource("z.io", "zebras")
    assert sorted([namespaces, others], key=order_of_wipe) == [others, namespaces]


# -- times -----------------------------------------------------------------------------------------


def test_an_object_was_created_when_it_was_heard_of() -> None:
    clock = VirtualClock()
    times = ScenarioTimes(clock)
    made = obj(creationTimestamp="2026-01-01T00:00:00Z")
    times.note_created(made)
    born = format_time(clock.now())
    clock.wait_until(clock.now() + 60 * SECOND)
    assert times.retimed(made)["metadata"]["creationTimestamp"] == born
    times.forget("uid-a")
    assert times.retimed(made)["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_the_grace_of_a_deletion_begins_when_it_was_heard_of() -> None:
    clock = VirtualClock()
    times = ScenarioTimes(clock)
    going = obj(deletionTimestamp="2026-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
    end = format_time(clock.now() + 30 * SECOND)
    assert times.retimed(going)["metadata"]["deletionTimestamp"] == end
    clock.wait_until(clock.now() + 10 * SECOND)
    assert times.retimed(going)["metadata"]["deletionTimestamp"] == end
    sooner = obj(deletionTimestamp="2026-01-01T00:00:05Z", deletionGracePeriodSeconds=1)
    told = times.retimed(sooner)["metadata"]["deletionTimestamp"]
    assert told == format_time(clock.now() + 1 * SECOND)


def test_a_pod_was_bound_when_it_was_heard_of() -> None:
    clock = VirtualClock()
    times = ScenarioTimes(clock)
    pod = obj()
    times.note_created(pod)

    def told(stamped: str) -> str:
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamped}
        shown = times.retimed({**pod, "status": {"conditions": [condition]}})
        return str(shown["status"]["conditions"][0]["lastTransitionTime"])

    bound = format_time(clock.now())
    assert told("2026-01-01T00:00:00Z") == bound
    clock.wait_until(clock.now() + 60 * SECOND)
    assert told("2026-01-01T00:00:00Z") == bound
    assert told(bound) == bound  # as a kubelet sends it back
    assert told("2024-07-01T00:00:00Z") == "2024-07-01T00:00:00Z"  # somebody says otherwise


def test_the_server_s_own_objects_keep_their_times() -> None:
    times = ScenarioTimes(VirtualClock())
    lease = {**obj(creationTimestamp="2026-01-01T00:00:00Z"), "kind": "Lease"}
    times.note_created(lease)
    assert times.retimed(lease) is lease


# -- intruders -------------------------------------------------------------------------------------


class Heard:
    """A server whose changes are heard, and a finder of intruders that is told what was ours."""

    def __init__(self) -> None:
        self.finder = Intruders({"scenario-engine", "kubelet"})
        self.finder.look()
        self._decoder = DecodedObjects()
        self._last: dict[str, Record] = {}

    def record(self, resource: GroupResource, made: JsonObject, revision: int) -> Record:
        return make_record(resource, versioned(made, revision), revision)

    def hear(
        self, made: JsonObject, revision: int, resource: GroupResource = PODS, *, ends: bool = False
    ) -> str:
        record = self.record(resource, made, revision)
        before = self._last.get(record.name)
        kind = ChangeType.ADDED if before is None else ChangeType.MODIFIED
        kind = ChangeType.DELETED if ends else kind
        self._last[record.name] = record
        self.finder.heard(Change(kind, record, before, self._decoder))
        return self.finder.found


def managed(*managers: tuple[str, str]) -> list[JsonObject]:
    return [{"manager": name, "time": time} for name, time in managers]


def test_what_was_answered_to_us_is_ours() -> None:
    heard = Heard()
    heard.finder.answered("create", heard.record(PODS, obj(), 7))
    assert heard.hear(obj(), 7) == ""
    heard.finder.answered("evict", heard.record(PODS, obj(), 12))
    assert heard.hear(obj(), 11) == ""  # what the server wrote on the way
    assert heard.hear(obj(), 12) == ""
    assert heard.hear(obj(), 15, ends=True) == ""


def test_what_is_newer_than_any_answer_is_somebody_else_s() -> None:
    heard = Heard()
    heard.finder.answered("create", heard.record(PODS, obj(), 7))
    heard.hear(obj(), 7)
    entries = managed(("kubelet", "2026-01-02"), ("kubectl-edit", "2026-01-01"), ("a", "2025"))
    found = heard.hear(obj(managedFields=entries), 8)
    assert found == 'pods "a" was changed by kubectl-edit'
    heard.hear(obj("b"), 9)
    assert heard.finder.found == found


def test_a_deletion_that_nobody_asked_for_is_somebody_else_s() -> None:
    heard = Heard()
    heard.finder.answered("patch", heard.record(PODS, obj(), 7))
    heard.hear(obj(), 7)
    assert heard.hear(obj(), 8, ends=True) == 'pods "a" was deleted by somebody'


@pytest.mark.parametrize(
    ("resource", "made"),
    [
        (GroupResource("", "events"), obj()),
        (GroupResource("coordination.k8s.io", "leases"), obj()),
        (CONFIG_MAPS, obj(namespace="kube-system")),
        (GroupResource("", "serviceaccounts"), obj("default")),
        (GroupResource("flowcontrol.apiserver.k8s.io", "flowschemas"), obj("exempt", "")),
    ],
)
def test_what_means_nothing_to_a_scenario_is_not_looked_at(
    resource: GroupResource, made: JsonObject
) -> None:
    assert Heard().hear(made, 3, resource) == ""


def test_objects_go_with_their_definition() -> None:
    heard = Heard()
    definition = heard.record(DEFINITIONS, obj("widgets.example.com", ""), 5)
    heard.finder.answered("delete", definition)
    widgets = GroupResource("example.com", "widgets")
    assert heard.hear(obj("w"), 6, widgets, ends=True) == ""


def test_between_scenarios_nobody_looks() -> None:
    heard = Heard()
    heard.hear(obj(), 3)
    heard.finder.look_away()
    assert heard.hear(obj("b"), 4) == ""


# -- taking over -----------------------------------------------------------------------------------


def test_a_mirrored_object_keeps_the_version_of_its_server() -> None:
    store = Store()
    heard: list[str] = []
    store.subscribe(lambda change: heard.append(f"{change.type}@{change.revision}"), (PODS,))
    first = store.mirror(PODS, obj(), 700)
    second = store.mirror(PODS, obj(labels={"a": "b"}), 900)
    assert (first.revision, second.revision, store.revision) == (1, 2, 2)
    assert store.decoded(second)["metadata"]["resourceVersion"] == "900"
    assert second.decode()["metadata"]["resourceVersion"] == "900"
    assert b"resourceVersion" not in second.unversioned_data
    assert heard == ["ADDED@1", "MODIFIED@2"]
    assert store.newest(PODS) == 2


def test_the_node_of_a_pod_comes_last() -> None:
    pod = {**obj(), "spec": {"nodeName": "n1", "containers": []}}
    assert list(node_last(pod)["spec"]) == ["containers", "nodeName"]
    assert node_last(obj()) == obj()
