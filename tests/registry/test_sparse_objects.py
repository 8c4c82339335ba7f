"""Objects with something left out are taken or refused as a kube-apiserver does it."""

from pathlib import Path

import pytest

from kubescene import Cluster
from kubescene.api.options import WriteOptions
from kubescene.errors import ApiError, BadRequestError
from kubescene.registry import Registry
from kubescene.testing import make_pod
from real_programs import require_program
from registry.conftest import USER
from registry.recorded_answers import GONE, Answer, ask, causes_of, recorded_answers
from sparse_objects import Sparse, sparse_objects, whole_objects

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
    assert ask(tmp_path) == recorded_answers()


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
