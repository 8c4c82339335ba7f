"""The arithmetic of rollouts, by tables; rows are derived by hand from the rules of Kubernetes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.controllers.builtin.workloads.deployments.revisions import (
    HISTORY_ANNOTATION,
    lengthened,
)
from kubescene.controllers.builtin.workloads.deployments.rolling import (
    Limits,
    limits_of,
    new_size,
    old_sizes,
    proportional_sizes,
    resolve,
)
from kubescene.controllers.builtin.workloads.deployments.sets import OwnedSet, count_in
from kubescene.controllers.builtin.workloads.deployments.status import has_progressed
from kubescene.controllers.builtin.workloads.deployments.templates import (
    same_template,
    template_hash,
)
from kubescene.testing import make_deployment
from kubescene.types import JsonObject

# -- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        ("0%", "0%", 0, (0, 1)),
        ("39%", "39%", 10, (4, 3)),
        (None, "39%", 10, (0, 3)),
        ("39%", None, 10, (4, 0)),
        (None, None, 10, (0, 1)),
        ("25%", "25%", 4, (1, 1)),
        ("25%", "25%", 1, (1, 0)),
        ("1%", "1%", 100, (1, 1)),
        ("0%", "1%", 2, (0, 1)),
        (3, 2, 0, (3, 2)),
        ("100%", "0%", 7, (7, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailable_down(
    surge: int | str | None, unavailable: int | str | None, replicas: int, expected: tuple[int, int]
) -> None:
    assert resolve(surge, unavailable, replicas) == expected


def test_no_more_than_all_replicas_may_be_unavailable() -> None:
    few = make_deployment("web").replicas(2).rolling(max_surge=0, max_unavailable=5)
    assert limits_of(few.build()) == Limits(2, 0, 2)
    assert limits_of(few.replicas(0).build()).least == 0


def test_recreate_has_no_surge() -> None:
    assert limits_of(make_deployment("web").replicas(3).recreate().build()) == Limits(
        3, 0, 0, rolling=False
    )


# -- rolling -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "surge", "old", "new", "expected"),
    [
        (10, 0, 10, 0, 0),
        (10, 2, 10, 0, 2),
        (10, 2, 5, 0, 7),
        (10, 2, 10, 2, 2),
        (10, 2, 2, 11, 10),
        (6, 10, 5, 2, 6),
        (10, 3, 8, 3, 5),
        (10, 3, 20, 0, 0),
        (0, 1, 0, 3, 0),
    ],
)
def test_the_new_set_grows_into_the_surge(
    replicas: int, surge: int, old: int, new: int, expected: int
) -> None:
    assert new_size(new, old + new, Limits(replicas, surge, 0)) == expected


@pytest.mark.parametrize(
    ("limits", "olds", "new", "expected"),
    [
        pytest.param(Limits(10, 0, 1), [(10, 10)], (0, 0), [9], id="one by one"),
        pytest.param(Limits(10, 0, 2), [(10, 10)], (0, 0), [8], id="two at a time"),
        pytest.param(Limits(10, 0, 2), [(10, 8)], (0, 0), [8], id="unhealthy ones go"),
        pytest.param(Limits(10, 0, 2), [(10, 9)], (0, 0), [8], id="one unhealthy, one healthy"),
        pytest.param(Limits(10, 0, 2), [(8, 8)], (2, 0), [8], id="new ones not ready yet"),
        pytest.param(Limits(10, 3, 2), [(8, 7)], (5, 0), [8], id="a bad template gets no further"),
        pytest.param(Limits(10, 3, 2), [(5, 0)], (8, 7), [1], id="rolled back from it"),
        pytest.param(Limits(10, 3, 2), [(8, 8), (5, 0)], (0, 0), [8, 0], id="rolled over"),
        pytest.param(Limits(8, 4, 0), [(3, 3), (4, 4)], (5, 5), [0, 3], id="oldest first"),
        pytest.param(Limits(10, 3, 2), [(8, 10)], (3, 3), [8], id="still shrinking"),
        pytest.param(Limits(8, 4, 0), [(3, 1), (4, 6)], (5, 5), [1, 4], id="second one shrinking"),
        pytest.param(Limits(10, 2, 2), [(10, 1)], (0, 0), [8], id="mostly unhealthy"),
        pytest.param(Limits(10, 3, 2), [(0, 4)], (10, 10), [0], id="nothing left"),
    ],
)
def test_old_sets_shrink_as_availability_allows(
    limits: Limits, olds: list[tuple[int, int]], new: tuple[int, int], expected: list[int]
) -> None:
    sets = [OwnedSet(f"old-{n}", *figures) for n, figures in enumerate(olds)]
    healthy, sizes = old_sizes(OwnedSet("new", *new), sets, limits)
    assert [sizes.get(old.name, old.size) for old in sets] == expected
    for old, size in zip(sets, expected, strict=True):
        assert old.size >= healthy.get(old.name, old.size) >= size


@settings(deadline=None, max_examples=150)
@given(
    replicas=st.integers(0, 20),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    becoming=st.lists(st.integers(0, 4), max_size=40),
)
def test_a_rollout_never_leaves_its_limits_and_ends(
    replicas: int, surge: int, unavailable: int, becoming: list[int]
) -> None:
    surge, unavailable = resolve(surge, unavailable, replicas)
    limits = Limits(replicas, surge, min(unavailable, replicas))
    old, new = OwnedSet("old", replicas, replicas), OwnedSet("new", 0, 0)
    for ready in [*becoming, *[replicas] * (4 * replicas + 4)]:
        size = new_size(new.size, old.size + new.size, limits)
        if size != new.size:
            new = OwnedSet("new", size, new.available)
        else:
            shrunk = old_sizes(new, [old], limits)[1].get("old", old.size)
            old = OwnedSet("old", shrunk, min(old.available, shrunk))
        new = OwnedSet("new", new.size, min(new.size, new.available + ready))
        assert old.size + new.size <= limits.most
        assert old.available + new.available >= limits.least
    assert (old.size, new.size) == (0, replicas)


# -- proportions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "before", "sizes", "expected"),
    [
        pytest.param(Limits(10), 5, [3, 2], [6, 4], id="5 to 10"),
        pytest.param(Limits(3), 5, [3, 2], [2, 1], id="5 to 3"),
        pytest.param(Limits(4), 9, [1, 8], [0, 4], id="9 to 4"),
        pytest.param(Limits(10), 7, [2, 3, 2], [3, 4, 3], id="7 to 10"),
        pytest.param(Limits(8), 13, [3, 8, 2], [2, 5, 1], id="13 to 8"),
        pytest.param(Limits(4), 3, [1, 1, 1], [1, 1, 2], id="leftover to the newest"),
        pytest.param(Limits(2), 3, [1, 1, 1], [0, 1, 1], id="leftover from the oldest"),
        pytest.param(Limits(5), 4, [2, 2], [2, 3], id="4 to 5"),
        pytest.param(Limits(0), 6, [1, 2, 3], [0, 0, 0], id="6 to 0"),
        pytest.param(Limits(20, 2), 12, [6, 6], [11, 11], id="with surge"),
        pytest.param(Limits(50, 6), 13, [8, 5], [34, 22], id="surge changed, too"),
        pytest.param(Limits(14), 10, [3, 7], [4, 10], id="10 to 14"),
        pytest.param(Limits(5), 5, [2, 3], [2, 3], id="nothing to do"),
        pytest.param(Limits(20), None, [5, 5], [10, 10], id="annotation lost"),
    ],
)
def test_every_set_keeps_its_share(
    limits: Limits, before: int | None, sizes: list[int], expected: list[int]
) -> None:
    sets = [OwnedSet(f"s{n}", size, most=before) for n, size in enumerate(sizes)]
    found = proportional_sizes(sets, limits, sum(sizes))
    assert [found[it.name] for it in sets] == expected


def test_shares_are_of_what_each_set_was_told_last() -> None:
    sets = [OwnedSet("v1", 1, most=5), OwnedSet("v2", 1, most=3), OwnedSet("v3", 2, most=5)]
    assert proportional_sizes(sets, Limits(5), 4) == {"v1": 1, "v2": 2, "v3": 2}


def test_without_any_figure_the_newest_takes_all() -> None:
    sets = [OwnedSet("v1", 5), OwnedSet("v2", 5)]
    assert proportional_sizes(sets, Limits(20), 0) == {"v1": 5, "v2": 15}


# -- templates, annotations, progress ----------------------------------------------------------

TEMPLATE = make_deployment("web").build()["spec"]["template"]


def changed(**metadata: Any) -> JsonObject:
    return {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], **metadata}}


def test_the_hash_label_and_empty_members_make_no_difference() -> None:
    labels = {**TEMPLATE["metadata"]["labels"], "pod-template-hash": "abc"}
    assert same_template(TEMPLATE, changed(labels=labels))
    assert same_template(TEMPLATE, changed(annotations={}))
    assert same_template(TEMPLATE, changed(finalizers=[]))
    assert not same_template(TEMPLATE, changed(annotations={"a": "b"}))


def test_an_empty_object_can_make_a_difference() -> None:
    bare = {**TEMPLATE["spec"], "securityContext": {}}
    assert not same_template(TEMPLATE, {**TEMPLATE, "spec": bare})


def test_the_hash_depends_on_the_content_only() -> None:
    reordered = dict(reversed(TEMPLATE.items()))
    assert template_hash(reordered, None) == template_hash(TEMPLATE, None)
    hashes = {template_hash(TEMPLATE, count) for count in (None, 1, 2)}
    hashes.add(template_hash(changed(annotations={"a": "b"}), None))
    assert len(hashes) == 4
    assert all(len(it) == 10 and set(it) <= set("bcdfghjklmnpqrstvwxz2456789") for it in hashes)


@pytest.mark.parametrize("text", [None, "", "x", "-1", "+1", "1.5", "2147483648", "²"])
def test_a_tampered_count_is_none(text: str | None) -> None:
    assert count_in(text) is None
    assert count_in("2147483647") == 2147483647


def test_a_long_history_forgets_its_beginning() -> None:
    revision = "deployment.kubernetes.io/revision"
    history = ",".join(["1234"] * 400)
    longer = lengthened({HISTORY_ANNOTATION: history, revision: "99"})
    assert len(longer) <= 2000
    assert longer.endswith(",1234,99")
    assert lengthened({revision: "3"}) == "3"
    assert lengthened({HISTORY_ANNOTATION: "1,3", revision: "5"}) == "1,3,5"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"updatedReplicas": 1, "replicas": 1}, True),
        ({"replicas": 5, "updatedReplicas": 2}, {"replicas": 4, "updatedReplicas": 2}, True),
        ({"readyReplicas": 1}, {"readyReplicas": 2}, True),
        ({"availableReplicas": 1}, {"availableReplicas": 2}, True),
        ({"readyReplicas": 2}, {"readyReplicas": 1}, False),
        ({"replicas": 5, "updatedReplicas": 2}, {"replicas": 5, "updatedReplicas": 1}, False),
        ({"replicas": 5}, {"replicas": 5}, False),
    ],
)
def test_what_is_progress(before: JsonObject, after: JsonObject, *, expected: bool) -> None:
    assert has_progressed(before, after) is expected
