"""A form says the same each time, but for what fills it in."""

from pathlib import Path

import orjson

import kubescene
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline.texts import TextForm, blank
from run_directories import files_of


def test_blanks_are_filled_in_by_number() -> None:
    form = TextForm(orjson.dumps({"a": blank(1), "b": [blank(0), blank(1)], "c": "\0 0"}))
    assert form.filled([b"[7]", b"true"]) == b'{"a":true,"b":[[7],true],"c":"\\u0000 0"}'
    assert form.filled([b"1", b"2"]) == b'{"a":2,"b":[1,2],"c":"\\u0000 0"}'


def test_a_text_without_blanks_is_itself() -> None:
    assert TextForm(b'{"a":0}').filled([]) == b'{"a":0}'


def test_a_run_without_it_writes_the_same_bytes(tmp_path: Path) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n-$(INDEX)").cpu("4"), count=5)
    scenario.create(make_pod("p-$(INDEX)").cpu("500m"), count=12).done()
    for name, plain in (("fast", False), ("plain", True)):
        kubescene.run(scenario, out=tmp_path / name, plain=plain)
    fast, plain_files = files_of(tmp_path / "fast"), files_of(tmp_path / "plain")
    assert fast == plain_files
