"""Which pods go first when a ReplicaSet has too many: the order of kube-controller-manager."""

from collections import Counter
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

import pytest

from kubescene.clock import SECOND, Stream, format_time, parse_time
from kubescene.controllers.builtin.workloads.replica_sets.pod_ranking import (
    DELETION_COST,
    DeletionOrder,
    RankedPod,
    compare,
    deletion_cost,
    most_restarts,
    ranked,
)
from kubescene.controllers.reconcile import ObjectKey
from kubescene.testing import make_pod
from kubescene.types import JsonObject

NOW = parse_time("2026-01-01T00:00:00Z")


def ago(seconds: int) -> str:
    return format_time(NOW - seconds * SECOND)


def pod(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    ready: int | None = 100,
    age: int = 200,
    cost: str = "",
    restarts: int = 0,
    sidecar_restarts: int = 0,
    uid: str = "",
) -> JsonObject:
    """A running pod, ready for 100 seconds and 200 seconds old, unless said otherwise."""
    obj = make_pod(name).on(node).build() if node else make_pod(name).build()
    metadata: dict[str, Any] = {
        **obj["metadata"],
        "uid": uid or name,
        "creationTimestamp": ago(age),
        "annotations": {DELETION_COST: cost} if cost else {},
    }
    conditions = []
    if ready is not None:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ago(ready)}]
    spec = {**obj["spec"], "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}
    status = {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": [{"name": "main", "restartCount": restarts}],
        "initContainerStatuses": [{"name": "proxy", "restartCount": sidecar_restarts}],
    }
    return {**obj, "metadata": metadata, "spec": spec, "status": status}


SET, OTHER = "set", "other"


def key_of(obj: JsonObject) -> ObjectKey:
    return ObjectKey("default", obj["metadata"]["name"])


def order(*pods: JsonObject, others: Sequence[JsonObject] = (), crowds: bool = False) -> list[str]:
    """The names of a set's pods as they go; ``others`` are pods of a related set."""
    kept = DeletionOrder(relieves_nodes=crowds)
    for owner, some in ((SET, pods), (OTHER, others)):
        for each in some:
            kept.put(owner, key_of(each), each)
    return [each.name for each in kept.first(SET, len(pods), NOW)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            pod("z", node="", cost="9"), pod("a", phase="Pending", ready=None), id="unassigned"
        ),
        pytest.param(
            pod("z", phase="Pending", ready=None),
            pod("a", phase="Unknown", ready=None),
            id="pending",
        ),
        pytest.param(
            pod("z", phase="Unknown", ready=None), pod("a", ready=None), id="unknown before running"
        ),
        pytest.param(pod("z", ready=None, cost="9"), pod("a"), id="not ready"),
        pytest.param(pod("z", cost="-1"), pod("a"), id="lower cost"),
        pytest.param(pod("z"), pod("a", cost="1", ready=1), id="no cost counts as zero"),
        pytest.param(pod("z", ready=10), pod("a", ready=100), id="ready for a shorter time"),
        pytest.param(pod("z", restarts=2), pod("a", restarts=1, age=1), id="more restarts"),
        pytest.param(
            pod("z", sidecar_restarts=2), pod("a", sidecar_restarts=1), id="sidecar restarts"
        ),
        pytest.param(
            pod("z", restarts=1), pod("a", sidecar_restarts=9), id="sidecars only after the others"
        ),
        pytest.param(pod("z", age=10), pod("a", age=200), id="newer"),
    ],
)
def test_the_first_difference_decides(first: JsonObject, second: JsonObject) -> None:
    expected = [p["metadata"]["name"] for p in (first, second)]
    assert order(first, second) == order(second, first) == expected


def test_of_equals_the_newest_goes_whatever_it_is_called() -> None:
    """Names are made by lot: a result must not depend on them, or on uids."""
    assert order(pod("a", uid="9"), pod("z", uid="1")) == ["z", "a"]
    assert order(pod("z", uid="1"), pod("a", uid="9")) == ["a", "z"]


def test_times_that_are_much_the_same_leave_it_to_the_uid() -> None:
    # 100 and 101 seconds are in the same bucket of log2, 100 and 300 are not.
    assert order(pod("a", ready=100, uid="2"), pod("b", ready=101, uid="1")) == ["b", "a"]
    assert order(pod("a", ready=300, uid="1"), pod("b", ready=100, uid="2")) == ["b", "a"]
    assert order(pod("a", age=200, uid="2"), pod("b", age=201, uid="1")) == ["b", "a"]


def test_a_similar_ready_time_decides_before_restarts() -> None:
    first, second = pod("a", ready=101, uid="1"), pod("b", ready=100, uid="2", restarts=5)
    assert order(second, first) == ["a", "b"]


def test_crowded_nodes_lose_pods_first() -> None:
    crowd = [pod(f"crowd-{n}", node="full") for n in range(3)]
    assert order(pod("alone", node="empty"), *crowd, crowds=True)[-1] == "alone"


def test_only_related_pods_make_a_crowd() -> None:
    """Those of all sets of one Deployment; a set without one has no related pods."""
    pods = [pod("b", node="other"), pod("a", node="one")]
    others = [pod("x", node="other"), pod("y", node="other")]
    assert order(*pods, others=others) == ["a", "b"]
    assert order(*pods, others=others, crowds=True) == ["b", "a"]


def plainly_ordered(pods: list[JsonObject], related: list[JsonObject]) -> list[str]:
    """The same by looking at all pods: rank by rank, and within each by comparing any two."""

    def differ(one: RankedPod, other: RankedPod) -> int:
        return compare(one, other, NOW)

    by_node = Counter(each["spec"].get("nodeName", "") for each in related)
    ranks: dict[tuple[int, ...], list[RankedPod]] = {}
    for each in reversed(pods):
        found = ranked(each, 0)
        ranks.setdefault((*found.kind, -by_node[found.node]), []).append(found)
    return [
        each.uid for rank in sorted(ranks) for each in sorted(ranks[rank], key=cmp_to_key(differ))
    ]


def drawn(chance: Stream, uid: str) -> JsonObject:
    """A pod that is much like others."""

    def one_of(*choices: Any) -> Any:
        return choices[chance.below(len(choices))]

    node = one_of("", "n1", "n2", "n3", "n3")
    made = pod(
        f"p-{chance.below(12)}",
        node=node,
        phase=one_of("Running", "Running", "Pending", "Succeeded") if node else "Pending",
        ready=one_of(100, 100, 101, 300, None) if node else None,
        age=one_of(400, 400, 900),
        cost=one_of("", "", "", "5"),
        restarts=one_of(0, 0, 0, 2),
        uid=uid,
    )
    if chance.below(8) == 0:
        made["metadata"]["deletionTimestamp"] = ago(1)
    return made


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("crowds", [False, True])
def test_an_order_that_is_kept_up_is_that_of_all_pods(seed: int, crowds: bool) -> None:
    chance, kept = Stream(seed), DeletionOrder(relieves_nodes=crowds)
    there: dict[str, dict[ObjectKey, JsonObject]] = {SET: {}, OTHER: {}}
    for number in range(300):
        owner, new = (SET, OTHER)[chance.below(4) == 0], drawn(chance, f"{chance.below(1000):03}")
        key = ObjectKey("default", f"{owner}-{new['metadata']['name']}")
        old = there[owner].get(key)
        if old is not None and chance.below(3) == 0:
            kept.remove(key)
            del there[owner][key]
        else:
            if old is not None and chance.below(3):  # The same pod, which has changed.
                new["metadata"]["uid"] = old["metadata"]["uid"]
                changed = {**there[owner], key: new}
            else:
                changed = {k: v for k, v in there[owner].items() if k != key} | {key: new}
            kept.put(owner, key, new)
            ended = new["status"]["phase"] == "Succeeded" or "deletionTimestamp" in new["metadata"]
            there[owner] = {k: v for k, v in changed.items() if k != key or not ended}
        pods = [*there[SET].values()]
        related = [*pods, *there[OTHER].values()] if crowds else []
        uids = {k: v["metadata"]["uid"] for k, v in there[SET].items()}
        count = 1 + number % 4
        found = [uids[each] for each in kept.first(SET, count, NOW)]
        assert found == plainly_ordered(pods, related)[:count]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("asked_every", [1, 5])
def test_of_pods_alike_on_many_nodes_the_newest_on_a_crowded_one_goes(
    seed: int, asked_every: int
) -> None:
    """Nothing but crowds and age tells them apart; one at a time is asked for, now and then."""
    chance, kept = Stream(seed), DeletionOrder(relieves_nodes=True)
    there: dict[str, dict[str, JsonObject]] = {SET: {}, OTHER: {}}
    for number in range(600):
        owner = (SET, OTHER)[chance.below(3) == 0]
        mine, few = there[owner], number % 200 > 120
        if mine and chance.below(3) < (2 if few else 1):
            name = [*mine][-1 - chance.below(min(len(mine), 3))]
            kept.remove(key_of(mine.pop(name)))
        else:
            name = f"{owner}-{number:03}"
            mine[name] = pod(name, node=f"n{chance.below(9)}")
            kept.put(owner, key_of(mine[name]), mine[name])
        if number % asked_every == 0:
            pods = [*there[SET].values()]
            expected = plainly_ordered(pods, [*pods, *there[OTHER].values()])
            assert [each.name for each in kept.first(SET, 1, NOW)] == expected[:1]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0),
        ("0", 0),
        ("7", 7),
        ("-7", -7),
        ("+7", 0),
        ("007", 0),
        ("7.5", 0),
        ("many", 0),
        ("2147483647", 2147483647),
        ("2147483648", 0),
        ("-2147483648", -2147483648),
        ("-2147483649", 0),
    ],
)
def test_a_deletion_cost_is_an_int32_or_zero(text: str, cost: int) -> None:
    assert deletion_cost({"annotations": {DELETION_COST: text}}) == cost
    assert deletion_cost({}) == 0


def test_a_pod_that_tells_no_containers_has_not_restarted() -> None:
    untold = pod("untold", uid="1")
    untold["status"].pop("containerStatuses", None)
    assert most_restarts(untold) == (0, 0)
    assert order(untold, pod("once", restarts=1, uid="2")) == ["once", "untold"]
