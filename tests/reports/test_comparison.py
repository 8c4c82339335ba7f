"""A comparison for people: in a terminal, and in a pull request."""

import io
import re

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

import kubescene
from kubescene.reports.comparison import print_comparison
from kubescene.reports.comparison_markdown import markdown, text
from kubescene.results.comparison import Cause, Comparison, Side, compare
from kubescene.results.comparison.attribution import Attribution, PluginPart, Why
from kubescene.results.comparison.json_differences import JsonDifference
from kubescene.results.comparison.values import (
    ComparedNodeUse,
    ComparedRun,
    ComparedWait,
    MeasureComparison,
    NodeComparison,
    PlacedPod,
    PreemptionDifference,
)
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
COMMENT = 65_536
"""So many characters fit into a comment."""


def played(weight: int, explain: str = "Auto") -> kubescene.Run:
    builder = ScenarioBuilder("spread").settings(explain=explain)
    builder.create(make_node("wide").cpu("16").memory("8Gi"))
    builder.create(make_node("even").cpu("8").memory("16Gi")).step(2)
    builder.create(make_pod("p-$(INDEX)").cpu("1").memory("2Gi"), count=3).done()
    enabled = [{"name": "NodeResourcesBalancedAllocation", "weight": weight}]
    profile = {"plugins": {"score": {"enabled": enabled}}}
    return kubescene.run(builder, scheduler={**HEADER, "profiles": [profile]})


def shown(comparison: Comparison, width: int = 120) -> str:
    text = io.StringIO()
    print_comparison(comparison, Console(file=text, width=width), replayable=True)
    return text.getvalue()


@pytest.fixture(scope="module")
def differing() -> Comparison:
    return compare(played(1), played(90), names=("one", "ninety"))


def test_equal_runs_are_one_calm_line() -> None:
    same = compare(played(1), played(1), names=("one", "other"))
    assert shown(same) == "one and other are equal: 3 pods, no difference\n"
    assert markdown(same) == "✅ one and other are equal: 3 pods, no difference\n"


def test_what_differs_is_not_cut_in_a_narrow_terminal() -> None:
    a, b = (
        ScenarioBuilder("s").create(make_pod("p").cpu(cpu), id="a-rather-long-id-of-an-operation")
        for cpu in ("1", "2")
    )
    told = shown(compare(kubescene.run(a.done()), kubescene.run(b.done())), width=60)
    assert "createOperation.object.spec.containers[0].resources.requests.cpu" in (
        re.sub(r"\s+(1 +2\n)?", "", told)
    )


def test_a_title_is_not_broken_at_the_width_of_a_narrow_table() -> None:
    builder = ScenarioBuilder("s").create(make_node("n")).create(make_pod("p")).done()
    runs = [kubescene.run(builder, seed=seed) for seed in (1, 2)]
    assert "What they were given" in shown(compare(*runs, names=("one", "other")))


def test_equal_outcomes_of_different_inputs_show_the_inputs() -> None:
    same = compare(played(80), played(90), names=("one", "two"))
    assert same.equal
    text = shown(same)
    assert "no difference" in text.splitlines()[0]
    assert "NodeResourcesBalancedAllocation, weight  80  90" in text


def test_a_terminal_has_inputs_parting_pods_and_numbers_in_that_order(
    differing: Comparison,
) -> None:
    text = shown(differing)
    order = [
        text.index(each)
        for each in (
            "A one",
            "What they were given",
            "The runs part at decision",
            "went elsewhere; moved by NodeResourcesBalancedAllocation",
            "Nodes at the end, where they differ",
        )
    ]
    assert order == sorted(order)
    assert "(weight 1 → 90)" in " ".join(text.split())


def test_a_narrow_terminal_loses_nothing_of_the_names(differing: Comparison) -> None:
    text = shown(differing, 80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(each.pod in text for each in differing.moved)


def test_what_was_not_explained_comes_with_what_to_do() -> None:
    silent = compare(played(1, "Off"), played(90, "Off"))
    text = " ".join(shown(silent).split())
    assert "spec.simulation.explain is Off" in text
    assert "play it with spec.simulation.explain: Full" in text
    assert "or compare with --replay" in text


def test_a_page_has_a_short_table_first_and_folds_the_rest(differing: Comparison) -> None:
    page = markdown(differing)
    lines = page.splitlines()
    assert lines[0].startswith("### one → ninety: ")
    assert lines[2] == "| 3 pods | A: one | B: ninety |"
    assert page.count("<details>") == page.count("</details>") >= 2
    assert page.index("| bound |") < page.index("<details>")
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(page)
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") == len(re.findall(r"^\|---", page, re.MULTILINE))
    assert kinds.count("html_block") == 2 * page.count("<details>")
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1, table


def test_a_page_of_any_size_fits_into_a_comment_and_says_what_is_left_out() -> None:
    long = "0/5000 nodes are available: " + ", ".join(f"{n} Insufficient x" for n in range(500))
    part = PluginPart("Plugin" * 9, (1, 2), (3, 4), 1, 2)
    why = Attribution(Why.SCORE, part.plugin, parts=(part, part), totals_in_a=(1, 2))
    pods = [
        PlacedPod(
            pod=f"namespace/{'pod' * 60}-{number}",
            node_in_a="node" * 40,
            node_in_b="" if number % 2 else "other" * 40,
            message=long,
            cause=Cause.CONSEQUENCE,
            attribution=why,
        )
        for number in range(50_000)
    ]
    run = ComparedRun(
        name="x" * 200,
        scenario="s",
        seed=0,
        version="1",
        phase="Succeeded",
        pods=50_000,
        bound=1,
        pending=2,
        preemptions=3,
        explain="Full",
    )
    page = markdown(
        Comparison(
            a=run,
            b=run,
            inputs=tuple(
                JsonDifference(f"step {n}: {'z' * 300}", long, long) for n in range(9_000)
            ),
            placed=tuple(pods),
            only_in_a=tuple(each.pod for each in pods),
            waiting=tuple(ComparedWait(pod=each.pod, in_a=long, in_b=long) for each in pods),
            preemptions=tuple(
                PreemptionDifference(
                    side=Side.B, pod=each.pod, node="n" * 200, preemptor=each.pod, step="1.1"
                )
                for each in pods
            ),
            nodes=tuple(NodeComparison(node="n" * 250, a=ComparedNodeUse()) for _ in range(5_000)),
            measures=tuple(MeasureComparison(measure="m" * 60, a=1, b=2) for _ in range(500)),
        )
    )
    assert len(page) < COMMENT
    listed = page.split("50,000 pods in A only")[1].split("</details>")[0].count("| namespace/")
    assert f"… and {50_000 - listed:,} more." in page
    assert page.count(" more.") == 8
    assert page.count("<details>") == page.count("</details>")


def test_what_others_wrote_cannot_become_markup() -> None:
    nasty = "a|b\n</details><script>alert(1)</script> `x` @everyone [l](http://x) *s*"
    run = compare(played(1), played(1)).a
    page = markdown(
        Comparison(a=run, b=run, placed=(PlacedPod(pod="ns/p", node_in_a="n", message=nasty),))
    )
    assert "<script" not in page
    assert "&lt;script" in page
    assert page.count("</details>") == 1
    assert "@everyone" not in page
    assert "a\\|b" in page


def test_a_run_that_merely_goes_on_has_no_other_order() -> None:
    def pods(count: int) -> kubescene.Run:
        builder = ScenarioBuilder("more").create(make_node("n").cpu("8"))
        return kubescene.run(builder.create(make_pod("p-$(INDEX)").cpu("1"), count=count).done())

    told = " ".join(shown(compare(pods(1), pods(2))).split())
    assert "part at decision 2: A binds no further pod, B binds default/p-1 to n." in told
    assert "same order" not in told


def test_text_is_cut_to_the_length_that_is_asked_for() -> None:
    assert [text("abcdef", longest) for longest in (0, 4, 5, 6)] == [
        "abcdef",
        "abc…",
        "abcd…",
        "abcdef",
    ]
