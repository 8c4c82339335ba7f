"""What the report shows of a run, compared with the run itself."""

import base64
import json
import re
from pathlib import Path

import pytest

import kubescene
from kubescene.markup import visible
from kubescene.reports.amounts import natural, told_amount, told_duration
from kubescene.reports.html import report_html
from kubescene.reports.html.collection import contents_of, told_operation
from kubescene.reports.html.contents import ABSENT, Contents
from kubescene.reports.html.decisions import digested, picked
from kubescene.reports.html.heat import columns_of, level
from kubescene.reports.html.page import SHELL
from kubescene.reports.html.waits import parted
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import StepEntry
from kubescene.results.measures import measures
from kubescene.results.opening import open_run
from kubescene.results.tables import tables
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Outcome
from kubescene.ui.bundling import style_sheet
from reported_runs import HOSTILE, example, failing, hostile, many_nodes, nothing
from run_directories import read_summary


def contents(run: Path | kubescene.Run) -> Contents:
    return contents_of(open_run(run))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example("first-scenario", tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_nodes(60, 9, tmp_path_factory.mktemp("many"))


def test_the_headline_is_that_of_the_run(first: Path) -> None:
    told = contents(first).headline
    assert (told.scenario, told.phase, told.seed, told.steps) == (
        "first-scenario",
        "Succeeded",
        0,
        5,
    )


def test_the_figures_are_those_of_the_summary_and_the_measures(first: Path) -> None:
    told = {each.name: (each.value, each.note) for each in contents(first).figures}
    summary, known = read_summary(first), measures(first)
    assert told["Pods bound"][0] == str(sum(node.pods for node in summary.nodes))
    assert told["Pods waiting"] == (str(len(summary.pending)), "of 10 that came")
    assert told["Nodes"] == ("3", "1 more was removed")
    assert told["CPU requested"] == (f"{100 * known['allocation_cpu']:.1f} %", "6.4 of 12")
    assert told["Memory requested"][1] == "14 GiB of 48 GiB"
    assert told["Attempts"] == ("11", "2 of them found no node")
    assert "Pods preempted" not in told


def test_virtual_time_is_told_where_it_passes(tmp_path: Path) -> None:
    told = contents(example("time-passes", tmp_path))
    assert told.headline.duration_s > 60
    assert told.steps[-1].time.startswith("+")
    assert {"Longest wait"} <= {each.name for each in told.figures} or not told.late


def test_the_row_of_all_nodes_is_the_allocation_of_the_cluster(many: Path) -> None:
    heat = contents(many).heat
    steps = tables(many)["steps"].rows
    peaks = [pytest.approx(100 * row.cpu_peak, abs=0.05) for row in steps]
    ends = [pytest.approx(100 * row.cpu_allocation, abs=0.05) for row in steps]
    assert [share / 10 for share in heat.whole[0]] == peaks
    assert [share / 10 for share in (heat.whole_ends or heat.whole)[0]] == ends


def test_large_numbers_are_written_alike(tmp_path: Path) -> None:
    builder = (
        ScenarioBuilder("large")
        .create(make_node("node").cpu("1"))
        .create(make_pod("web-$(INDEX)").cpu("10"), count=1_000)
    )
    assert kubescene.run(builder.done(), out=tmp_path).ok
    assert contents(tmp_path).headline.story.startswith(
        "Of 1,000 pods that came, 0 are bound, 1,000 wait for a node."
    )


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    told = contents(failing(tmp_path)).headline
    assert told.phase == "Failed"
    assert 'nodes "nobody" not found' in told.message
    assert "nodes &quot;nobody&quot; not found" in report_html(tmp_path)


def test_a_run_that_was_cut_short_says_so(first: Path, tmp_path: Path) -> None:
    whole = (first / "timeline.jsonl").read_bytes()
    (tmp_path / "timeline.jsonl").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "explanations.jsonl").write_bytes((first / "explanations.jsonl").read_bytes())
    page = report_html(tmp_path)
    assert "cut short" in re.findall(r'<span class="phase bad">(.*?)</span>', page)[0]
    assert "what happened until then" in page


def test_steps_count_what_the_summary_counts(first: Path) -> None:
    shown, told = contents(first).steps, read_summary(first).steps
    assert [(s.step, s.minor, s.bound, s.failed, s.deleted) for s in shown] == [
        (s.major, s.minor_steps, s.scheduled, s.failed_attempts, s.deleted) for s in told
    ]


def test_steps_say_what_was_asked_for(first: Path) -> None:
    steps = {each.step: each.what for each in contents(first).steps}
    assert steps[1] == ("create 3 × Node node-$(INDEX)", "create Node batch-0")
    assert steps[4] == ("patch ReplicaSet web",)
    assert steps[5][-1] == "done"


def test_every_cell_of_the_heat_map_is_the_utilisation_of_its_node(many: Path) -> None:
    heat = contents(many).heat
    assert heat.columns == tuple(range(1, 10))
    rows = tables(many)["utilization"].rows
    place = {name: number for number, name in enumerate(heat.nodes)}
    cpu = heat.levels[heat.resources.index("cpu")]
    pods = heat.levels[heat.resources.index("pods")]
    assert len(rows) == len(cpu) == 60 * 9
    for row in rows:
        cell = place[row.node] * 9 + row.step - 1
        assert cpu[cell] / 2 == pytest.approx(100 * row.cpu_utilization, abs=0.25)
        assert pods[cell] / 2 == pytest.approx(100 * row.pods / row.pods_allocatable, abs=0.25)


def test_a_node_that_is_gone_has_no_colour(first: Path) -> None:
    heat = contents(first).heat
    row = heat.nodes.index("batch-0")
    cells = heat.levels[0][row * 5 : row * 5 + 5]
    assert [each == ABSENT for each in cells] == [False, False, False, False, True]


def test_nodes_stand_in_the_order_people_count(many: Path) -> None:
    assert contents(many).heat.nodes[:3] == ("node-0", "node-1", "node-2")
    assert sorted(["n-10", "n-9", "m-1x"], key=natural) == ["m-1x", "n-9", "n-10"]


def test_what_is_over_all_is_not_shown_as_all() -> None:
    assert [level(each) for each in (0, 50, 99.9, 100, 100.1, 104, 900)] == [
        0,
        100,
        200,
        200,
        201,
        208,
        250,
    ]


def test_the_columns_of_a_long_run_are_thinned_and_end_with_the_last_step() -> None:
    steps = [StepEntry(major, 0) for major in range(1, 1001)]
    shown = columns_of(steps, cells=10)
    assert len(shown) <= 400
    assert shown[-1] == 1000
    assert columns_of(steps[:30], cells=10) == tuple(range(1, 31))
    assert len(columns_of(steps, cells=30_000)) == 50
    assert columns_of([], cells=0) == ()


def test_who_waits_is_who_is_pending(first: Path) -> None:
    told = contents(first)
    (group,) = told.waiting
    (pending,) = read_summary(first).pending
    assert (group.pods, group.message) == ((pending.pod,), pending.message)
    assert [(part.nodes, part.text) for part in group.reasons] == [
        (3, "Insufficient cpu"),
        (2, "Insufficient memory"),
    ]
    assert group.decision is not None
    assert told.decisions[group.decision].pod == pending.pod


def test_pods_with_the_same_message_are_one_group(tmp_path: Path) -> None:
    builder = ScenarioBuilder("crowd").create(make_node("n").cpu("1"))
    builder.step(2).create(make_pod("big-$(INDEX)").cpu("4"), count=50)
    builder.create(make_pod("picky").select(disk="ssd")).create(make_pod("gated").gate("later"))
    builder.create(make_pod("foreign").scheduler("other"))
    kubescene.run(builder.done(), out=tmp_path)
    groups = contents(tmp_path).waiting
    assert [(each.total, each.pods[0]) for each in groups] == [
        (50, "default/big-0"),
        (1, "default/picky"),
        (1, "default/gated"),
        (1, "default/foreign"),
    ]
    assert len(groups[0].pods) == 40
    assert groups[2].message == "it waits for its scheduling gates: later"
    assert "schedulerName 'other'" in groups[3].message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu.", (3, ["3 Insufficient cpu"], "")),
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint {a: b}, 3 Insufficient cpu. "
            "preemption: 0/4 nodes are available: 4 No victims.",
            (
                4,
                ["3 Insufficient cpu", "1 node(s) had untolerated taint {a: b}"],
                "preemption: 0/4 nodes are available: 4 No victims.",
            ),
        ),
        ("0/2 nodes are available: 2 pairs, 3 in all.", (2, ["3 in all", "2 pairs"], "")),
        ("0/2 nodes are available: some reason.", (0, [], "")),
        ("gated", (0, [], "")),
    ],
)
def test_a_message_is_taken_apart_only_if_it_can_be_put_together(
    message: str, expected: tuple[int, list[str], str]
) -> None:
    nodes, parts, rest = parted(message)
    assert (nodes, [f"{part.nodes} {part.text}" for part in parts], rest) == expected


def test_a_pod_that_waited_first_is_named(first: Path) -> None:
    told = contents(first)
    (late,) = told.late
    assert (late.pod, late.waited, late.attempts) == ("default/search", "1 step", 2)


def test_all_decisions_of_a_small_run_are_shown_with_their_scores(first: Path) -> None:
    told = contents(first)
    assert len(told.decisions) == told.decisions_total == 11
    run = open_run(first)
    for decision in told.decisions:
        attempt = run.explain(decision.pod)[decision.attempt - 1]
        assert (decision.step, decision.node) == (attempt.step, attempt.node)
        best = [each for each in attempt.verdicts if not each.rejected_by]
        assert [(row.node, row.total, row.scores) for row in decision.rows] == [
            (each.node, each.total, each.scores) for each in best
        ]
        refused = sum(group.total for group in decision.refusals)
        assert refused == len(attempt.verdicts) - len(best)


def test_a_tie_is_not_called_close(many: Path) -> None:
    tags = [each.tags for each in contents(many).decisions]
    assert ("tie",) in tags
    assert not any({"tie", "close"} <= set(each) for each in tags)


def attempted(node: str, verdicts: tuple[NodeVerdict, ...]) -> ExplainedAttempt:
    return ExplainedAttempt(
        pod="p", step="1.1", node=node, message="", verdicts=verdicts, explained=True
    )


@pytest.mark.parametrize(("ahead", "tags"), [(0, ("tie",)), (5, ("close",)), (6, ())])
def test_how_close_it_was(ahead: int, tags: tuple[str, ...]) -> None:
    verdicts = (NodeVerdict("a", total=100 + ahead), NodeVerdict("b", total=100))
    attempt = attempted("a", verdicts)
    assert digested(attempt, number=1, attempts=1, last_waits=False).tags == tags


def test_refused_nodes_are_counted_by_plugin_and_reason_also_without_one() -> None:
    refused = [NodeVerdict(f"n-{each}", "Silent") for each in range(9)]
    attempt = attempted("", (*refused, NodeVerdict("x", "A", "no")))
    told = digested(attempt, number=1, attempts=1, last_waits=True).refusals
    assert [(each.plugin, each.reasons, each.total) for each in told] == [
        ("Silent", "", 9),
        ("A", "no", 1),
    ]
    assert told[0].nodes == tuple(f"n-{each}" for each in range(6))


def test_the_chosen_node_is_shown_even_if_others_are_better() -> None:
    """As an extender may have it."""
    verdicts = [NodeVerdict(f"n-{each}", total=100 - each) for each in range(30)]
    attempt = attempted("n-29", tuple(verdicts))
    rows = digested(attempt, number=1, attempts=1, last_waits=False).rows
    assert [each.node for each in rows] == [*(f"n-{each}" for each in range(9)), "n-29"]


def test_nothing_is_expected_of_a_run_that_failed() -> None:
    ledger = Ledger()
    ledger.expectations = (Outcome("all is well", "true", True),)
    ledger.end("Failed", "it broke")
    assert not len(ledger.expectations)


def test_the_most_urgent_decisions_come_first(first: Path) -> None:
    tags = [each.tags for each in contents(first).decisions]
    assert tags[0] == ("waits",)
    assert tags[1] == ("refused",)
    assert not tags[-1]


def test_a_large_run_shows_some_of_its_decisions(many: Path) -> None:
    told = contents(many)
    assert told.decisions_total == 160
    assert len(told.decisions) == 80
    assert all(len(each.rows) <= 10 for each in told.decisions)
    assert all(each.rows[0].node == each.node for each in told.decisions)


def test_of_many_attempts_at_a_pod_three_are_shown() -> None:
    assert picked([]) == []
    assert picked([False] * 3) == [1, 2, 3]
    assert picked([False] * 9) == [1, 9]
    assert picked([True, False, True, True, False, True]) == [1, 4, 6]


def test_a_preemption_names_who_left_for_whom_and_why_there(tmp_path: Path) -> None:
    (told,) = contents(example("preemption", tmp_path)).preemptions
    assert (told.preemptor, told.node, told.step) == ("default/urgent", "node-0", "3.1")
    assert len(told.victims) == 2
    assert told.criterion
    page = report_html(tmp_path)
    assert all(victim in page for victim in told.victims)
    assert f"<td>{told.criterion}</td>" in page


def test_what_nobody_acts_on_is_said(tmp_path: Path) -> None:
    builder = ScenarioBuilder("vain").create(make_node("n"))
    builder.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {
                "template": {
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
                }
            },
        }
    )
    kubescene.run(builder.done(), out=tmp_path)
    told = contents(tmp_path)
    assert told.warnings == tuple(read_summary(tmp_path).warnings) != ()
    assert "Not simulated" in report_html(tmp_path)


def test_expectations_that_fail_come_first_and_say_why(tmp_path: Path) -> None:
    builder = ScenarioBuilder("hopes").create(make_node("n").cpu("1"))
    builder.step(2).create(make_pod("a").cpu("1")).create(make_pod("b").cpu("1"))
    builder.expect("someone runs", "measures.pods_bound > 0")
    builder.expect("<all> run", "measures.pods_pending == 0", "not enough room")
    run = kubescene.run(builder.done(), out=tmp_path)
    told = contents(tmp_path)
    assert [(each.name, each.holds) for each in told.expectations] == [
        ("someone runs", True),
        ("<all> run", False),
    ]
    page = report_html(tmp_path)
    assert page == report_html(run)
    assert page.index("&lt;all&gt; run") < page.index("someone runs")
    assert "1 of 2 do not hold" in page
    assert "not enough room" in page


def test_steps_of_a_very_long_run_are_taken_together(tmp_path: Path) -> None:
    builder = ScenarioBuilder("long").create(make_node("n").pods("2000"))
    builder.create(make_node("aside").pods("4").unschedulable())
    for major in range(2, 1002):
        builder.step(major).create(make_pod(f"p-{major}"))
    builder.step(3).create(make_pod("placed").on("aside")).step(1001)
    kubescene.run(builder.create(make_pod("big").cpu("1000")).done(), out=tmp_path)
    told = contents(tmp_path)
    assert told.headline.steps == 1001
    assert len(told.steps) == len(told.heat.columns) <= 400
    assert [each.step for each in told.steps] == list(told.heat.columns)
    assert [each.first for each in told.steps[1:]] == [each.step + 1 for each in told.steps[:-1]]
    assert sum(each.bound for each in told.steps) == 1000
    assert all(each.waiting == 0 for each in told.steps[:-1])
    assert told.steps[-1].waiting == 1
    assert 3 not in told.heat.columns
    pods = told.heat.levels[told.heat.resources.index("pods")]
    assert [each / 2 for each in pods[:3]] == [0, 25, 25]
    assert told.steps[-1].step == 1001
    page = report_html(tmp_path)
    assert "999 to 1,001" in page
    assert len(page) < 400_000


def test_the_page_of_a_run_is_that_of_its_directory(tmp_path: Path) -> None:
    (scenario,) = Path(__file__).parents[2].glob("examples/*-zone-lost/scenario.yaml")
    run = kubescene.run(scenario, out=tmp_path)
    assert report_html(run) == report_html(run.result) == report_html(tmp_path)


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    page = report_html(nothing(tmp_path))
    assert "<h1>nothing</h1>" in page
    assert 'id="waiting"' not in page


def test_where_there_is_no_pod_none_is_said_to_have_a_node(tmp_path: Path) -> None:
    kubescene.run(ScenarioBuilder("empty").done(), out=tmp_path)
    notes = {each.name: each.note for each in contents(tmp_path).figures}
    assert notes["Pods waiting"] == "no pod needs one"


@pytest.mark.parametrize("name", ["n-\u00b2", "n-" + "7" * 5000, "n-\u0663", ""])
def test_strange_names_have_a_place_in_the_order_too(name: str) -> None:
    assert sorted([name, "n-10", "n-2"], key=natural).index("n-2") < 2


def test_ten_thousand_nodes_stay_small(tmp_path: Path) -> None:
    page = report_html(many_nodes(10_000, 1, tmp_path))
    assert len(page.encode()) < 700_000


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        ("cpu", 0, "0"),
        ("cpu", 1500, "1.5"),
        ("cpu", 1_000_000, "1,000"),
        ("memory", 0, "0 B"),
        ("memory", 1536 * 1024**2, "1.5 GiB"),
        ("memory", 1023, "1,023 B"),
        ("memory", 2**80, "1.049e+06 EiB"),
        ("ephemeral-storage", 2**30, "1 GiB"),
        ("example.com/gpu", 12345, "12,345"),
    ],
)
def test_amounts_in_words(resource: str, amount: int, words: str) -> None:
    assert told_amount(resource, amount) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.25, "250 ms"),
        (1.5, "1.5 s"),
        (59.99, "60 s"),
        (60, "1 min"),
        (3725, "1 h 2 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert told_duration(seconds) == words


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (
            {
                "createOperation": {
                    "count": 9,
                    "object": {"kind": "Pod", "metadata": {"name": "w", "namespace": "x"}},
                }
            },
            "create 9 × Pod x/w",
        ),
        ({"advanceOperation": {"duration": "1m"}}, "let time pass: 1m"),
        (
            {"deleteOperation": {"typeMeta": {"kind": "Node"}, "objectMeta": {"name": "n"}}},
            "delete Node n",
        ),
        ({"doneOperation": {}}, "done"),
        ({"createOperation": {}}, "create"),
        ({"createOperation": {"objectFrom": "hpa.yaml"}}, "create what hpa.yaml holds"),
        (
            {
                "patchOperation": {
                    "typeMeta": {"kind": "Pod"},
                    "selector": {"matchLabels": {"app": "web"}},
                    "namespace": "shop",
                    "limit": 2,
                    "share": "25%",
                }
            },
            "patch at most 2 of 25% of every Pod in shop with app=web",
        ),
        (
            {"evictOperation": {"selector": {"matchLabels": {}}}},
            "evict every Pod with any labels",
        ),
        ({"evictOperation": {"objectMeta": {"name": "web-0"}}}, "evict Pod web-0"),
        ({"drainOperation": {"names": ["a", "b"]}}, "drain Node a, b"),
        (
            {
                "drainOperation": {
                    "selector": {"matchExpressions": [{"key": "z", "operator": "Exists"}]}
                }
            },
            "drain every Node with z",
        ),
    ],
)
def test_operations_in_words(operation: dict[str, object], words: str) -> None:
    assert told_operation(operation) == words


def data_of(page: str) -> dict[str, object]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    found: dict[str, object] = json.loads(text)
    return found


def test_names_that_mean_harm_are_text_in_the_page(tmp_path: Path) -> None:
    page = report_html(hostile(tmp_path))
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    assert "<!--" not in page.replace("<!doctype", "")
    assert "\u2028" not in data_text(page)
    assert "\u202e" not in page
    assert HOSTILE.replace("\u202e", "\\u202e") in contents_nodes(page)


def data_text(page: str) -> str:
    return page.partition('id="data">')[2].partition("</script>")[0]


def contents_nodes(page: str) -> list[str]:
    heat = data_of(page)["heat"]
    assert isinstance(heat, dict)
    return list(heat["nodes"])


def test_harmful_names_read_back_as_they_are(tmp_path: Path) -> None:
    told = contents(hostile(tmp_path))
    assert HOSTILE in told.heat.nodes
    assert any(HOSTILE in each.pod for each in told.decisions)
    assert visible(HOSTILE) != HOSTILE


def test_the_policy_names_the_one_script_and_the_one_style(first: Path) -> None:
    page = report_html(first)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    assert "default-src &#x27;none&#x27;" in policy
    assert "unsafe" not in policy
    assert len(re.findall(r"sha256-[\w+/=]{44}", policy)) == 2
    assert " style=" not in page
    assert not re.search(r" on\w+=", re.sub(r"<script.*?</script>", "", page, flags=re.S))
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_levels_are_one_byte_a_cell(first: Path) -> None:
    heat = data_of(report_html(first))["heat"]
    assert isinstance(heat, dict)
    assert [len(base64.b64decode(each)) for each in heat["levels"]] == [4 * 5] * 3


STYLE = style_sheet(SHELL.styles)


def tone(name: str, place: int) -> str:
    """A colour of the style sheet, in the light theme (0) or the dark one (1)."""
    (value,) = re.findall(rf"--{name}: (.*?);", STYLE)[:1]
    found: list[str] = re.findall(r"#[0-9a-f]{6}", value)
    return found[place] if len(found) > 1 else found[0]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    ]
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("words", ["text", "soft", "good", "bad", "wait", "odd", "link"])
@pytest.mark.parametrize("ground", ["page", "panel", "raised"])
def test_words_can_be_read_on_every_ground(words: str, ground: str, place: int) -> None:
    """The contrast that WCAG 2 asks for at level AA."""
    low, high = sorted((luminance(tone(words, place)), luminance(tone(ground, place))))
    assert (high + 0.05) / (low + 0.05) >= 4.5


def between() -> ScenarioBuilder:
    """A pod that is gone before its step ends, a node that is lost, one that is cordoned."""
    scenario = ScenarioBuilder("between").settings(kubelet={"terminateDelay": "30s"})
    scenario.create(make_node("n-$(INDEX)").cpu("4").memory("8Gi"), count=3)
    scenario.create(make_pod("a").cpu("3").on("n-0"))
    scenario.step(2).delete("v1", "Pod", "a").advance("5m")
    lost = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    scenario.step(3).patch("v1", "Node", "n-1", lost, subresource="status")
    scenario.patch("v1", "Node", "n-2", {"spec": {"unschedulable": True}})
    return scenario.step(4).patch("v1", "Node", "n-2", {"spec": {"unschedulable": None}}).done()


def test_the_heat_map_shows_what_is_between_two_ends_of_steps(tmp_path: Path) -> None:
    kubescene.run(between(), out=tmp_path)
    heat = contents(tmp_path).heat
    first = slice(0, len(heat.columns))
    assert [*heat.levels[0][first]] == [150, 150, 0, 0]
    assert [*heat.ends[0][first]] == [150, 0, 0, 0]
    assert (heat.whole[0], heat.whole_ends[0]) == ((250, 250, 0, 0), (250, 0, 0, 0))


def test_nodes_that_keep_pods_away_are_marked(tmp_path: Path) -> None:
    kubescene.run(between(), out=tmp_path)
    told = contents(tmp_path)
    assert [(m.node, m.first, m.last, m.text) for m in told.heat.marks] == [
        (1, 2, 3, "unreachable"),
        (2, 2, 2, "cordoned"),
    ]
    assert [each.marks for each in told.nodes] == ["", "unreachable", ""]
    assert "1 node of 3 kept pods away at the end." in told.headline.story


def test_columns_of_several_steps_keep_the_highest_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubescene.reports.html.heat.COLUMNS", 2)
    heat = contents(kubescene.run(between())).heat
    assert heat.columns == (2, 4)
    assert ([*heat.levels[0][:2]], [*heat.ends[0][:2]]) == ([150, 0], [0, 0])


def test_expectations_that_fail_are_the_verdict_of_the_page() -> None:
    scenario = ScenarioBuilder("unmet").create(make_node("n").cpu("1")).done()
    scenario.expect("many", "nodes.size() > 6").expect("fine", "true")
    run = kubescene.run(scenario)
    told = contents(run)
    assert told.headline.verdict == "1 of 2 expectations failed"
    (many, _) = told.expectations
    assert (many.expression, many.message, many.seen) == ("nodes.size() > 6", "", "1 > 6")
    page = report_html(run)
    assert page.index("1 of 2 expectations failed") < page.index(">Succeeded<")
    assert 'class="phase good"' not in page


def test_devices_and_extended_resources_have_figures(tmp_path: Path) -> None:
    told = contents(example("devices", tmp_path))
    figure = next(each for each in told.figures if each.name == "devices/gpu.example.com")
    assert (figure.value, figure.note) == ("66.7 %", "2 of 3")
    assert "devices/gpu.example.com" in told.heat.resources


def test_the_page_counts_facts_as_the_run_does() -> None:
    run = kubescene.run(between())
    assert contents(run).headline.facts == len(run.log)


def test_steps_count_pods_that_were_tried_in_vain_once(tmp_path: Path) -> None:
    scenario = ScenarioBuilder("vain").create(make_node("n").cpu("1"))
    scenario.create(make_pod("p-$(INDEX)").cpu("2"), count=4)
    scenario.step(2).create(make_node("m").cpu("2")).done()
    first, second = contents(kubescene.run(scenario)).steps
    assert (first.bound, first.unschedulable, first.failed) == (0, 4, 4)
    assert (second.bound, second.unschedulable, second.failed) == (1, 3, 3)


def test_decisions_have_their_time_if_time_passed(tmp_path: Path) -> None:
    times = {each.time for each in contents(example("time-passes", tmp_path)).decisions}
    assert times == {"", "+1 min", "+1 min 35 s"}


# -- workloads -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rollout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example("a-rollout", tmp_path_factory.mktemp("rollout"))


def test_workloads_are_drawn_on_the_axis_of_the_run(rollout: Path) -> None:
    """Of 720 s: a roll-out from 0 to 25 s and one from 120 to 195 s, five of six pods meanwhile."""
    (shop,) = contents(rollout).workloads
    assert [(each.begin, each.end) for each in shop.rollouts] == [(0, 35), (166, 271)]
    assert (len(shop.levels), min(shop.levels[10:]), shop.levels[-1]) == (200, 5, 6)
    assert (shop.ready, shop.least, shop.rollout) == ("6 of 6", "5", "1 min 15 s, 2 in all")
    assert (shop.below, shop.spans_below, shop.short) == ("0 s", (), False)
    (budget,) = contents(rollout).budgets
    assert (budget.workloads, budget.healthy, budget.below) == ("Deployment/shop", "6 of 5", "0 s")
    page = report_html(rollout)
    assert page.count('class="over-time"') == 1
    assert page.count('class="rolling"') == 2


def test_what_came_of_operations_stands_on_the_page(rollout: Path) -> None:
    told = contents(rollout)
    (drain,) = told.outcomes
    assert (drain.operation, drain.time, drain.state) == ("drain", "+3 min 20 s", "Completed")
    assert drain.message.startswith("1 node drained; 2 pods evicted, 1 of them had to wait")
    assert told.outcomes_total == 1
    page = report_html(rollout)
    assert 'href="#operations"' in page
    assert drain.message in page


def test_of_many_outcomes_the_last_are_shown_and_the_others_counted(
    rollout: Path, tmp_path: Path
) -> None:
    lines = (rollout / "timeline.jsonl").read_text().splitlines()
    (place,) = (number for number, line in enumerate(lines) if '"state":"Completed"' in line)
    refused = lines[place].replace('"state":"Completed"', '"state":"Refused"')
    lines[place:place] = [refused] * 60
    (tmp_path / "timeline.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "explanations.jsonl").write_bytes((rollout / "explanations.jsonl").read_bytes())
    told = contents(tmp_path)
    assert (len(told.outcomes), told.outcomes_total) == (50, 61)
    assert told.outcomes[-1].state == "Completed"
    assert "11 more before" in report_html(tmp_path)


def test_a_page_without_such_operations_has_no_section_for_them(first: Path) -> None:
    assert contents(first).outcomes == ()
    assert "Operations" not in visible(report_html(first))


def test_names_of_workloads_are_text(rollout: Path, tmp_path: Path) -> None:
    quoted = json.dumps(HOSTILE, ensure_ascii=False)[1:-1]
    for name in ("timeline.jsonl", "summary.json", "explanations.jsonl"):
        text = (rollout / name).read_text().replace("shop", quoted)
        (tmp_path / name).write_text(text)
    (shop,) = contents(tmp_path).workloads
    assert HOSTILE in shop.name
    page = report_html(tmp_path)
    assert "<script>document.title" not in page
    assert "<img" not in page


# -- money ---------------------------------------------------------------------------------------


def test_what_machines_cost_is_drawn_and_listed(tmp_path: Path) -> None:
    folder = example("nodes-follow", tmp_path)
    cost = contents(folder).cost
    assert cost is not None
    measured = open_run(folder).measures()
    assert (cost.total, cost.currency) == (f"{measured['cost']:,.2f}", "USD")
    assert [each.group for each in cost.groups] == ["spot-a", "spot-b", "steady-a", "steady-b"]
    everything, *groups = cost.lines
    times = [at for at, _ in everything.points]
    rates = [rate for _, rate in everything.points]
    ends = [*times[1:], 7200.0]
    spent = sum(r * (end - at) for at, end, r in zip(times, ends, rates, strict=True)) / 3600
    assert spent == pytest.approx(measured["cost"])
    assert (everything.group, len(groups)) == ("*", 4)
    page = report_html(folder)
    assert page.count('id="cost"') == 1
    assert "USD per hour" in page


def test_a_run_without_prices_says_nothing_of_cost(rollout: Path) -> None:
    assert contents(rollout).cost is None
    assert 'id="cost"' not in report_html(rollout)
