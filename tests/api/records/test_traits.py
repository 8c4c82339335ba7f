"""A glance at a pod says the same as a look at it."""

from typing import Any

import pytest

from kubescene.api.records.changes import Change
from kubescene.api.records.traits import (
    CLAIMS,
    COMES,
    DELETING,
    EVERYTHING,
    GOES,
    OWNED,
    PLACED,
    RELABELED,
    REWRITTEN,
    STRAY,
    VOLUMES,
    traits_of,
)
from kubescene.api.scheme import GroupResource
from kubescene.store import Store

PODS = GroupResource("", "pods")
OWNER = {"ownerReferences": [{"uid": "u", "controller": True}]}


def pod(metadata: Any = None, spec: Any = None, status: Any = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", **(metadata or {})},
        "spec": {"schedulerName": "s", **(spec or {})},
        "status": {"phase": "Pending", **(status or {})},
    }


def changes_of(*versions: dict[str, Any]) -> list[Change]:
    """The changes that a pod with these versions brings about."""
    store, told = Store(), list[Change]()
    store.subscribe(told.append, (PODS,))
    store.put(PODS, versions[0], expected=0)
    for version in versions[1:]:
        store.put(PODS, version)
    return told


@pytest.mark.parametrize(
    ("before", "after", "traits"),
    [
        pytest.param({}, {}, 0, id="plain"),
        pytest.param({}, {"metadata": {"labels": {"a": "b"}}}, RELABELED | REWRITTEN, id="labels"),
        pytest.param({"metadata": OWNER}, {}, OWNED | REWRITTEN, id="left by its owner"),
        pytest.param({}, {"metadata": OWNER}, OWNED | REWRITTEN, id="adopted"),
        pytest.param({}, {"spec": {"nodeName": "n"}}, PLACED, id="bound"),
        pytest.param(
            {}, {"metadata": {"deletionTimestamp": "t"}}, DELETING | STRAY | REWRITTEN, id="marked"
        ),
        pytest.param({}, {"spec": {"volumes": [{"name": "v"}]}}, VOLUMES, id="volumes"),
        pytest.param({}, {"spec": {"resourceClaims": []}}, CLAIMS, id="claims"),
        pytest.param({}, {"status": {"extendedResourceClaimStatus": {}}}, CLAIMS, id="extended"),
        pytest.param(
            {"spec": {"volumes": [{"name": "v" * 5000}]}},
            {"spec": {"volumes": [{"name": "v" * 5000}]}},
            VOLUMES,
            id="a long spec",
        ),
    ],
)
def test_traits_of_a_change(before: Any, after: Any, traits: int) -> None:
    first, second = changes_of(pod(**before), pod(**after))
    assert traits_of(first) & (COMES | GOES) == COMES
    assert traits_of(second) == traits


def test_a_pod_that_goes() -> None:
    store, told = Store(), list[Change]()
    store.subscribe(told.append, (PODS,))
    store.put(PODS, pod(), expected=0)
    store.remove(PODS, "default", "p")
    assert traits_of(told[-1]) == GOES


def test_other_kinds_have_every_trait() -> None:
    store, told = Store(), list[Change]()
    store.subscribe(told.append)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    store.put(GroupResource("", "nodes"), node, expected=0)
    assert traits_of(told[0]) == EVERYTHING


def test_a_subscriber_hears_of_changes_with_one_of_its_traits() -> None:
    store, told, all_told = Store(), list[Change](), list[Change]()
    store.subscribe(told.append, (PODS,), traits=PLACED | VOLUMES)
    store.subscribe(all_told.append, (PODS,))
    store.put(PODS, pod(), expected=0)
    store.put(PODS, pod(spec={"nodeName": "n"}))
    assert [change.record.node for change in told] == ["n"]
    assert len(all_told) == 2
