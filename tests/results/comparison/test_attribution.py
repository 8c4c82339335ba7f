"""Which plugin moved a pod, from two explained attempts alone."""

from typing import Any

import msgspec
import pytest

from kubescene.instruments.attempts import ExtenderRecord
from kubescene.results.comparison import Side, Why, attribute
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict


def scored(
    node: str,
    *,
    a: dict[str, int],
    b: dict[str, int],
    weights: dict[str, int] | None = None,
    extender: dict[str, int] | None = None,
) -> ExplainedAttempt:
    """An attempt in which plugins gave nodes ``a`` and ``b`` these weighted scores."""
    extra = extender or {}
    verdicts = [
        NodeVerdict(name, scores=tuple(by.values()), total=sum(by.values()) + extra.get(name, 0))
        for name, by in (("a", a), ("b", b))
    ]
    records = (ExtenderRecord("far", "prioritize", scores=extra),) if extra else ()
    return ExplainedAttempt(
        pod="default/p",
        step="1.1",
        node=node,
        message="",
        plugins=tuple(a),
        weights=tuple((weights or {}).get(plugin, 1) for plugin in a),
        verdicts=tuple(verdicts),
        feasible=2,
        explained=True,
        extenders=records,
    )


def refusing(node: str, refused: str, plugin: str) -> ExplainedAttempt:
    verdicts = [NodeVerdict(refused, plugin, "no")] + ([NodeVerdict(node)] if node else [])
    return ExplainedAttempt(
        pod="default/p",
        step="1.1",
        node=node,
        message="" if node else "0/1 nodes are available",
        verdicts=tuple(verdicts),
        feasible=1 if node else 0,
        explained=True,
    )


def test_the_plugin_that_turns_the_order_is_named_with_its_scores() -> None:
    found = attribute(
        scored("a", a={"Fit": 60, "Image": 5}, b={"Fit": 50, "Image": 5}),
        scored("b", a={"Fit": 40, "Image": 4}, b={"Fit": 50, "Image": 5}),
    )
    assert (found.why, found.plugin, found.alone) == (Why.SCORE, "Fit", True)
    (part,) = found.parts
    assert (part.in_a, part.in_b, part.shift) == ((60, 50), (40, 50), 20)
    assert (found.totals_in_a, found.totals_in_b) == ((65, 55), (44, 55))


def test_of_several_that_are_enough_alone_the_first_of_the_profile_is_named() -> None:
    found = attribute(
        scored("a", a={"First": 10, "Second": 10}, b={"First": 9, "Second": 10}),
        scored("b", a={"First": 10, "Second": 10}, b={"First": 20, "Second": 90}),
    )
    assert found.plugin == "First"


def test_a_plugin_that_changed_without_turning_the_order_is_passed_over() -> None:
    found = attribute(
        scored("a", a={"Little": 10, "Much": 50}, b={"Little": 10, "Much": 30}),
        scored("b", a={"Little": 5, "Much": 10}, b={"Little": 10, "Much": 30}),
    )
    assert found.plugin == "Much"


def test_plugins_that_are_enough_only_together_are_all_named_the_largest_first() -> None:
    found = attribute(
        scored("a", a={"X": 40, "Y": 40, "Z": 40}, b={"X": 20, "Y": 20, "Z": 40}),
        scored("b", a={"X": 15, "Y": 10, "Z": 40}, b={"X": 20, "Y": 20, "Z": 41}),
    )
    assert [part.plugin for part in found.parts] == ["Y", "X"]
    assert (found.plugin, found.alone) == ("Y", False)


@pytest.mark.parametrize(
    ("in_a", "in_b", "plugin"),
    [((50, 50), (50, 50), ""), ((50, 50), (40, 50), "Fit"), ((60, 50), (50, 50), "Fit")],
    ids=["a tie in both", "a tie in A", "a tie in B"],
)
def test_ties_are_no_plugin_unless_one_made_or_broke_them(
    in_a: tuple[int, int], in_b: tuple[int, int], plugin: str
) -> None:
    found = attribute(
        scored("a", a={"Fit": in_a[0]}, b={"Fit": in_a[1]}),
        scored("b", a={"Fit": in_b[0]}, b={"Fit": in_b[1]}),
    )
    assert (found.why, found.plugin) == (Why.SCORE if plugin else Why.TIE, plugin)


def test_changes_that_cancel_out_leave_a_tie_a_tie() -> None:
    found = attribute(
        scored("a", a={"X": 30, "Y": 20}, b={"X": 20, "Y": 30}),
        scored("b", a={"X": 20, "Y": 30}, b={"X": 30, "Y": 20}),
    )
    assert (found.why, found.parts) == (Why.TIE, ())


def test_a_new_weight_that_is_enough_by_itself_is_told() -> None:
    near = scored("a", a={"Fit": 60, "Near": 20}, b={"Fit": 30, "Near": 40})
    after = scored("b", a={"Fit": 60, "Near": 100}, b={"Fit": 30, "Near": 200}, weights={"Near": 5})
    found = attribute(near, after)
    assert (found.plugin, found.weight_alone) == ("Near", True)
    nearer = scored("a", a={"Fit": 60, "Near": 20}, b={"Fit": 30, "Near": 22})
    after = scored("b", a={"Fit": 60, "Near": 4}, b={"Fit": 30, "Near": 200}, weights={"Near": 2})
    little = attribute(nearer, after)
    assert (little.plugin, little.weight_alone) == ("Near", False)
    assert little.parts[0].reweighted


def test_a_plugin_of_one_run_only_counts_as_nothing_in_the_other() -> None:
    found = attribute(
        scored("a", a={"Fit": 60}, b={"Fit": 50}),
        scored("b", a={"Fit": 60, "New": 0}, b={"Fit": 50, "New": 20}),
    )
    assert found.plugin == "New"
    assert (found.parts[0].weight_in_a, found.parts[0].weight_in_b) == (None, 1)
    gone = attribute(
        scored("a", a={"Fit": 50, "Old": 20}, b={"Fit": 60, "Old": 0}),
        scored("b", a={"Fit": 50}, b={"Fit": 60}),
    )
    assert (gone.plugin, gone.parts[0].weight_in_b) == ("Old", None)


def test_an_extender_is_named_like_a_plugin() -> None:
    found = attribute(
        scored("a", a={"Fit": 60}, b={"Fit": 50}, extender={"a": 1, "b": 1}),
        scored("b", a={"Fit": 60}, b={"Fit": 50}, extender={"a": 1, "b": 90}),
    )
    assert found.plugin == "far"


def test_a_refusal_comes_before_every_score() -> None:
    chose_a = scored("a", a={"Fit": 60}, b={"Fit": 50})
    chose_b = scored("b", a={"Fit": 10}, b={"Fit": 50})
    left = attribute(chose_a, refusing("b", "a", "Taints"))
    assert (left.why, left.plugin, left.node, left.side) == (Why.VERDICT, "Taints", "a", Side.B)
    opened = attribute(refusing("a", "b", "Taints"), chose_b)
    assert (opened.plugin, opened.node, opened.side) == ("Taints", "b", Side.A)
    both = attribute(refusing("a", "b", "Old"), refusing("b", "a", "New"))
    assert (both.plugin, both.side) == ("New", Side.B)


def test_a_pod_without_a_node_is_told_who_refused_the_one_it_had() -> None:
    found = attribute(scored("a", a={"Fit": 60}, b={"Fit": 50}), refusing("", "a", "Ports"))
    assert (found.why, found.plugin, found.node) == (Why.VERDICT, "Ports", "a")
    back = attribute(refusing("", "b", "Ports"), scored("b", a={"Fit": 1}, b={"Fit": 2}))
    assert (back.plugin, back.side) == ("Ports", Side.A)


def test_a_node_that_nobody_looked_at_is_not_blamed_on_a_plugin() -> None:
    found = attribute(
        scored("a", a={"Fit": 60}, b={"Fit": 50}),
        ExplainedAttempt("default/p", "1.1", "z", "", verdicts=(NodeVerdict("z"),), explained=True),
    )
    assert (found.why, found.node, found.side, found.plugin) == (Why.UNSEEN, "a", Side.B, "")


def test_what_was_not_explained_is_said_for_the_run_that_did_not() -> None:
    explained = scored("a", a={"Fit": 60}, b={"Fit": 50})
    bare = ExplainedAttempt("default/p", "1.1", "b", "")
    assert attribute(explained, bare).sides == (Side.B,)
    assert attribute(bare, bare).sides == (Side.A, Side.B)


def test_scores_that_are_not_all_there_explain_nothing() -> None:
    whole = scored("a", a={"Fit": 60}, b={"Fit": 50})
    bare = (NodeVerdict("a"), NodeVerdict("b"))
    damaged = msgspec.structs.replace(whole, node="b", verdicts=bare)
    found = attribute(whole, damaged)
    assert (found.why, found.sides) == (Why.UNEXPLAINED, (Side.B,))


def test_a_failure_behind_the_filters_is_told_in_its_own_words() -> None:
    failed = ExplainedAttempt(
        "default/p",
        "1.1",
        "",
        "binding rejected",
        verdicts=(NodeVerdict("a", total=1),),
        explained=True,
    )
    found = attribute(scored("a", a={"Fit": 60}, b={"Fit": 50}), failed)
    assert (found.why, found.reasons) == (Why.UNKNOWN, "binding rejected")


@pytest.mark.parametrize(
    ("answer", "reasons"),
    [
        ({"failed": {"a": "no licence"}}, "no licence"),
        ({"unresolvable": {"a": "never"}}, "never"),
        ({"dropped": ("a",)}, "its answer does not name the node"),
    ],
    ids=["failed", "unresolvable", "dropped"],
)
def test_the_extender_that_would_not_have_a_node_is_named(
    answer: dict[str, Any], reasons: str
) -> None:
    asked = ExtenderRecord("http://licences", "filter", asked=2, passed=("b",), **answer)
    refused = refusing("b", "a", "Extender")
    found = attribute(
        scored("a", a={"Fit": 60}, b={"Fit": 50}),
        msgspec.structs.replace(refused, extenders=(asked,)),
    )
    assert (found.why, found.plugin, found.node) == (Why.VERDICT, "http://licences", "a")
    assert found.reasons == reasons
