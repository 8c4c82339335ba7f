"""Objects with something left out are taken or refused as a kube-apiserver does it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kubescene import Cluster
from kubescene.api.options import WriteOptions
from kubescene.client import DirectClient, ObjectRef
from kubescene.errors import AlreadyExistsError, ApiError, BadRequestError
from kubescene.registry import Registry
from kubescene.testing import make_pod
from real_programs import require_program
from registry.conftest import USER
from registry.recorded_answers import (
    GONE,
    STATUSES,
    Answer,
    ask,
    causes_of,
    objects_asked,
    recorded_answers,
    statuses_asked,
)
from sparse_objects import Sparse, sparse_objects, sparse_statuses, whole_objects

DRY = WriteOptions(dry_run=True)
ANSWERED_ELSEWHERE = ("authentication.k8s.io/", "authorization.k8s.io/", "v1/Binding")
"""Kinds that nobody stores: the API server answers them by itself."""

OTHER_FIELDS = 30
"""Refused by both, but for other fields: probes and definitions mostly."""


def answer_to(registry: Registry, sparse: Sparse) -> Answer:
    resource_type = registry.scheme.of_kind(sparse.object["apiVersion"], sparse.object["kind"])
    place = "default" if resource_type.namespaced else ""
    try:
        registry.create(USER, sparse.object, namespace=place, options=DRY)
    except ApiError as error:
        return Answer(sparse.label, error.code, causes_of(error.to_status()))
    return Answer(sparse.label, 201)


def limits(kind: str, **bounds: dict[str, str]) -> dict[str, Any]:
    return {"type": kind, **bounds}


def made(version: str, kind: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": kind.lower(), **parts.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


DEFAULT = "is-default-class"
LIMITS = [
    limits(
        "Container",
        default={"cpu": "1", "memory": "1Gi"},
        defaultRequest={"cpu": "500m"},
        max={"cpu": "2", "memory": "2Gi"},
        min={"cpu": "1m"},
        maxLimitRequestRatio={"cpu": "10"},
    ),
    limits("Pod", max={"cpu": "9", "memory": "9Gi"}, maxLimitRequestRatio={"memory": "10"}),
    limits("PersistentVolumeClaim", max={"storage": "10Gi"}, min={"storage": "1"}),
]
COUNTED = ("pods", "cpu", "memory", "limits.cpu", "requests.storage", "persistentvolumeclaims")
HARD = dict.fromkeys((*COUNTED, "services.nodeports", "count/deployments.apps"), "1000")
OF_PRIORITIES = {"scopeName": "PriorityClass", "operator": "In", "values": ["priorityclass"]}
LOOKED_AT = [
    made("v1", "LimitRange", spec={"limits": LIMITS}),
    made("v1", "ResourceQuota", spec={"hard": HARD}),
    made(
        "v1",
        "ResourceQuota",
        metadata={"name": "scoped"},
        spec={"hard": {"pods": "9"}, "scopeSelector": {"matchExpressions": [OF_PRIORITIES]}},
    ),
    made("scheduling.k8s.io/v1", "PriorityClass", globalDefault=True, value=5),
    made(
        "storage.k8s.io/v1",
        "StorageClass",
        metadata={"annotations": {f"storageclass.kubernetes.io/{DEFAULT}": "true"}},
        provisioner="x",
    ),
    made(
        "networking.k8s.io/v1",
        "IngressClass",
        metadata={"annotations": {f"ingressclass.kubernetes.io/{DEFAULT}": "true"}},
        spec={"controller": "a.b/c"},
    ),
]
"""Everything that admission looks at."""


def test_admission_takes_sparse_objects_also_where_there_is_much_to_look_at() -> None:
    cluster = Cluster()
    for each in LOOKED_AT:
        cluster.create(each)
    cluster.settle()
    failed = []
    for sparse in sparse_objects():
        try:
            answer_to(cluster.registry, sparse)
        except Exception as error:
            failed.append(f"{sparse.label}: {error!r}")
    assert failed == []


def test_what_the_real_one_refuses_is_refused_and_nothing_else(registry: Registry) -> None:
    recorded = {answer.label: answer for answer in recorded_answers()}
    differing, other_fields = set(), []
    for sparse in sparse_objects():
        theirs = recorded[sparse.label]
        if sparse.label.startswith(ANSWERED_ELSEWHERE) or theirs.code == GONE:
            continue
        ours = answer_to(registry, sparse)
        if ours.accepts != theirs.accepts:
            differing.add(sparse.label)
        elif ours.causes != theirs.causes:
            other_fields.append(sparse.label)
    assert differing == set()
    assert len(other_fields) <= OTHER_FIELDS, other_fields


def answer_to_status(registry: Registry, whole: Sparse, sparse: Sparse) -> Answer:
    resource_type = registry.scheme.of_kind(whole.object["apiVersion"], whole.object["kind"])
    place = "default" if resource_type.namespaced else ""
    name = whole.object["metadata"]["name"]
    ref = ObjectRef(resource_type.gvk, name, place)
    client = DirectClient(registry, USER)
    try:
        client.patch(ref, sparse.object, subresource="status", options=DRY)
    except ApiError as error:
        return Answer(sparse.label, error.code, causes_of(error.to_status()))
    return Answer(sparse.label, 200)


def test_what_the_real_one_refuses_of_a_status_is_refused_and_nothing_else(
    registry: Registry,
) -> None:
    recorded = {answer.label: answer for answer in recorded_answers(STATUSES)}
    differing, other_fields, made = [], [], set()
    for whole, sparse in sparse_statuses():
        if whole.label not in made:
            made.add(whole.label)
            place = whole.object["metadata"].get("namespace", "")
            with suppress(AlreadyExistsError):
                registry.create(USER, whole.object, namespace=place or place_of(registry, whole))
        theirs, ours = recorded[sparse.label], answer_to_status(registry, whole, sparse)
        if ours.accepts != theirs.accepts:
            differing.append(
                f"{sparse.label}: {theirs.code} {theirs.causes}, ours {ours.code} {ours.causes}"
            )
        elif ours.causes != theirs.causes:
            other_fields.append(f"{sparse.label}: {theirs.causes}, ours {ours.causes}")
    assert differing == []
    assert other_fields == []


def place_of(registry: Registry, sparse: Sparse) -> str:
    kind = registry.scheme.of_kind(sparse.object["apiVersion"], sparse.object["kind"])
    return "default" if kind.namespaced else ""


def test_every_sparse_object_has_a_recorded_answer() -> None:
    assert [it.label for it in sparse_objects()] == [it.label for it in recorded_answers()]


def test_nearly_every_kind_that_can_be_made_has_a_whole_object() -> None:
    whole = {it.title.rpartition("/")[0] for it in whole_objects()}
    bare = {it.title for it in sparse_objects() if it.label.endswith(" name-alone")}
    assert bare - whole == {
        "certificates.k8s.io/v1beta1/PodCertificateRequest",
        "resource.k8s.io/v1alpha3/ResourcePoolStatusRequest",
        "v1/Binding",
    }


def test_the_recorded_answers_are_those_of_the_real_one(tmp_path: Path) -> None:
    require_program("kube-apiserver")
    assert ask(tmp_path, objects_asked) == recorded_answers()


def test_the_recorded_answers_to_statuses_are_those_of_the_real_one(tmp_path: Path) -> None:
    require_program("kube-apiserver")
    assert ask(tmp_path, statuses_asked) == recorded_answers(STATUSES)


def test_a_priority_class_without_a_value_is_zero(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "g"},
            "globalDefault": True,
        }
    )
    cluster.create(make_pod("a"))
    assert cluster.get("pods", "a")["spec"]["priority"] == 0


@pytest.mark.parametrize("kind", [["Pod"], 5, None, {}], ids=str)
@pytest.mark.parametrize("member", ["kind", "apiVersion"])
def test_an_import_names_the_item_whose_kind_is_no_text(
    cluster: Cluster, member: str, kind: object
) -> None:
    item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, member: kind}
    with pytest.raises(BadRequestError, match=r"items\[0\].*no kind"):
        cluster.load({"apiVersion": "v1", "kind": "List", "items": [item]})


def test_a_status_has_amounts_in_their_short_form_and_addresses_that_agree(
    registry: Registry,
) -> None:
    client = DirectClient(registry, USER)

    def after(obj: dict[str, Any], **status: Any) -> dict[str, Any]:
        kind = registry.scheme.of_kind("v1", obj["kind"]).gvk
        ref = ObjectRef(kind, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
        found = client.patch(ref, {"status": status}, subresource="status").decode()["status"]
        return {name: found.get(name) for name in status}

    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    client.create(node)
    assert after(node, capacity={"cpu": "2000m"}, allocatable={"cpu": "1000m"}) == {
        "capacity": {"cpu": "2"},
        "allocatable": {"cpu": "1"},
    }
    pod = make_pod("p").build()
    pod["metadata"]["namespace"] = "default"
    client.create(pod)
    one, other = [{"ip": "1.2.3.4"}], [{"ip": "1.2.3.5"}]
    assert after(pod, podIP="1.2.3.4", podIPs=other)["podIPs"] == one
    assert after(pod, podIP=None, podIPs=other)["podIP"] == "1.2.3.5"
    assert after(pod, phase="Running", podIPs=None) == {"phase": "Running", "podIPs": other}
