"""What is said of an object by its encoded parts is what its decoded form says."""

import pytest

from kubescene.api.records import Record
from kubescene.api.records.keys import mentions_any, pod_keys, without_claim_names
from kubescene.api.scheme import GroupResource
from kubescene.cluster import Cluster
from kubescene.testing import make_node, make_pod

PODS = GroupResource("", "pods")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def stored(cluster: Cluster, name: str) -> Record:
    record = cluster.store.get(PODS, "default", name)
    assert record is not None
    return record


def test_a_record_tells_generation_and_spec_of_what_it_holds(cluster: Cluster) -> None:
    for made in (make_pod("a").cpu("1"), make_pod("b").cpu("1"), make_pod("c").cpu("2")):
        cluster.create(made)
    a, b, c = (stored(cluster, name) for name in "abc")
    assert a.spec_key == b.spec_key != c.spec_key
    assert [each.generation for each in (a, c)] == [1, 1]
    assert [each.decode()["metadata"]["generation"] for each in (a, c)] == [1, 1]


def test_keys_stay_where_a_pod_is_bound_but_that_of_its_node(cluster: Cluster) -> None:
    cluster.create(make_pod("a"))
    before = pod_keys(stored(cluster, "a"))
    cluster.create(make_node("n"))
    cluster.settle()
    after = pod_keys(stored(cluster, "a"))
    assert before is not None
    assert after is not None
    assert before[0] is after[0]
    assert before[1] != after[1]
    assert mentions_any(after[1], (b'"n"',))


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (b'{"claimName":"x"},{"claimName":"y"}', [b"x", b"y"]),
        (b'{"claimName":"x\\u0041"}', None),
        (b'{"name":"claimName"}', None),
    ],
)
def test_names_of_claims_are_found_if_they_are_plain(
    spec: bytes, names: list[bytes] | None
) -> None:
    found = without_claim_names(spec)
    assert (None if found is None else found.names) == names
    if found is not None:
        assert without_claim_names(spec.replace(b"x", b"z")) == found._replace(names=[b"z", b"y"])
