"""A run directory with wrong bytes in it: an error that says where, or what can still be read."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import kubescene
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.reports.comparison_markdown import markdown
from kubescene.reports.html import report_html
from kubescene.results import compare, open_run
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod, make_priority_class
from run_directories import read_log

FILES = ("timeline.jsonl", "explanations.jsonl", "result.yaml", "pods.index", "ledger.jsonl")
POSITIONS = 12
"""Of each file; all of them were tried once, and take an hour."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    scenario = ScenarioBuilder("damaged").settings(explain="Full")
    scenario.create(make_priority_class("high", 10), make_node("n").cpu("2"), make_node("m"))
    scenario.step(2).create(make_pod("a").cpu("2"), make_pod("b").cpu("3")).advance("1m")
    scenario.step(3).create(make_pod("c").cpu("2").priority_class("high"))
    built = scenario.done().build()
    built["spec"]["expectations"] = [{"name": "e", "expression": "pending.size() == 0"}]
    kubescene.run(built, out=folder)
    return folder


def read_everything(folder: Path, whole: Path) -> None:
    source = open_run(folder)
    for table in source.tables().values():
        table.csv()
    for pod in ("a", "b", "c"):
        source.explain(pod)
    report_html(folder)
    markdown(compare(whole, folder))
    list(read_log(folder))


def cut(data: bytes, at: int) -> bytes:
    return data[:at]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harmed", [cut, flipped], ids=["cut", "flipped"])
def test_damage_anywhere_is_an_error_of_ours_or_none(
    whole: Path,
    tmp_path: Path,
    name: str,
    harmed: Callable[[bytes, int], bytes],
) -> None:
    data = (whole / name).read_bytes()
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    for at in range(len(data) // (2 * POSITIONS), len(data), len(data) // POSITIONS):
        (folder / name).write_bytes(harmed(data, at))
        try:
            read_everything(folder, whole)
        except KubesceneError:
            continue  # It says what is wrong; anything else is a defect.


def with_changed(whole: Path, tmp_path: Path, name: str, old: bytes, new: bytes) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    data = (whole / name).read_bytes()
    assert old in data
    (tmp_path / "run" / name).write_bytes(data.replace(old, new, 1))
    return tmp_path / "run"


def test_a_header_that_is_no_text_is_no_timeline(whole: Path, tmp_path: Path) -> None:
    run = with_changed(whole, tmp_path, "timeline.jsonl", b"kubescene.dev", b"\xebubescene.dev")
    with pytest.raises(ConfigurationError, match="line 1: this is no timeline"):
        open_run(run)


def test_a_kind_that_is_no_text_is_named_by_its_line(whole: Path, tmp_path: Path) -> None:
    run = with_changed(whole, tmp_path, "timeline.jsonl", b'"PodPreempted"', b'"PodPreempted\xa2')
    for read in (lambda: open_run(run).ledger, lambda: read_log(run)):
        with pytest.raises(ConfigurationError, match=r"timeline\.jsonl, line \d+: "):
            read()
    with pytest.raises(ConfigurationError, match=r"timeline\.jsonl, line \d+: "):
        list(open_run(run).attempts())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"step":1,', b'{"{tep":1,'),
        (b'{"step":2,', b'{"step":"2",'),
        (b'"createOperation":{', b'"createOperation":["x"],"x":{'),
        (b'"metadata":{', b'"metadata":"{","x":{'),
    ],
    ids=["no step", "a text as step", "no body", "no metadata"],
)
def test_operations_that_nobody_played_are_damage(
    whole: Path, tmp_path: Path, old: bytes, new: bytes
) -> None:
    run = with_changed(whole, tmp_path, "result.yaml", old, new)
    for use in (report_html, lambda run: compare(whole, run)):
        with pytest.raises(ConfigurationError, match="spec of the Scenario beside it is damaged"):
            use(run)
