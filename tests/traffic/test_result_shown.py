"""What a traffic result shows of itself: a line, a notebook's view, tables and a page."""

from pathlib import Path

import pytest

from kubescene.clock import SECOND
from kubescene.traffic import TrafficResult, run

STEP = Path(__file__).parents[2] / "examples" / "traffic" / "step.yaml"


@pytest.fixture(scope="module")
def result() -> TrafficResult:
    return run(STEP)


def test_a_line_says_which_and_how_much(result: TrafficResult) -> None:
    assert repr(result) == "<TrafficResult step: SLO missed, 1,700 requests in 3m>"


def test_tables_say_what_the_result_says(result: TrafficResult) -> None:
    tables = result.tables
    requests = tables["requests"]
    assert [*tables] == [
        "requests", "replicas", "counts", "utilization", "decisions", "measures",
    ]  # fmt: skip
    assert len(requests.rows) == result.requests.count
    first = requests.rows[0]
    assert first.arrived_s == result.requests.arrived[0] / SECOND
    assert first.response_s == first.completed_s - first.arrived_s
    measures = {row.measure: row.value for row in tables["measures"]}
    failed = sum(row.outcome in ("timeout", "refused", "killed") for row in requests)
    assert measures["failed"] == failed == result.summary.failed
    assert tables["replicas"].rows[0].terminated_s is None


@pytest.mark.parametrize("name", ["requests", "replicas", "decisions", "measures"])
def test_frames_and_columns_have_the_rows(result: TrafficResult, name: str) -> None:
    table = result.tables[name]
    by_column = table.to_dict()
    assert list(by_column) == table.frame().columns == list(table.columns)
    assert {len(each) for each in by_column.values()} == {len(table.rows)}
    column = table.columns[0]
    assert list(by_column[column]) == table.frame()[column].to_list()


def test_the_page_is_the_one_of_the_command(result: TrafficResult, tmp_path: Path) -> None:
    page = result.report(tmp_path / "page.html")
    assert page == tmp_path / "page.html"
    assert "<h1>step</h1>" in page.read_text()


def test_a_notebook_sees_measures_and_changes(result: TrafficResult) -> None:
    page = result._repr_html_()
    assert "<b>step</b> SLO missed" in page
    assert "1 → 2" in page
