"""Modules as one script: each once, what it needs before it, and no import or export left."""

import re
from pathlib import Path

import pytest

from kubescene.ui.bundling import STATIC, one_script


def modules(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.js").write_text(text, "utf-8")
    return folder / "main.js"


def test_what_is_needed_comes_before_and_once(tmp_path: Path) -> None:
    entry = modules(
        tmp_path,
        low="export const LOW = 1;\n",
        left='import { LOW } from "./low.js";\n\nexport const LEFT = LOW;\n',
        right='import { LOW } from "./low.js";\n\nexport function right() { return LOW; }\n',
        main='import { LEFT } from "./left.js";\nimport { right } from "./right.js";\nright(LEFT)',
    )
    script = one_script(entry)
    assert script.count("const LOW") == 1
    places = [
        script.index(each) for each in ("const LOW", "const LEFT", "function right", "right(LEFT)")
    ]
    assert places == sorted(places)
    assert "import" not in script
    assert "export" not in script


@pytest.mark.parametrize(
    "text",
    [
        'import thing from "./low.js";\n',
        'import * as low from "./low.js";\n',
        'import {\n  LOW,\n} from "./low.js";\n',
        'import { LOW } from "https://elsewhere/low.js";\n',
        "export default 1;\n",
        "export { LOW };\n",
    ],
)
def test_other_forms_of_import_and_export_are_refused(tmp_path: Path, text: str) -> None:
    entry = modules(tmp_path, low="export const LOW = 1;\n", main=text)
    with pytest.raises(ValueError, match=r"main\.js: .* cannot be part of one script"):
        one_script(entry)


def test_two_modules_may_not_declare_the_same_name(tmp_path: Path) -> None:
    entry = modules(
        tmp_path,
        low="export const LOW = 1;\nconst same = 2;\n",
        main='import { LOW } from "./low.js";\n\nfunction same() { return LOW; }\n',
    )
    with pytest.raises(ValueError, match="both declare same"):
        one_script(entry)


@pytest.mark.parametrize(
    "entry", sorted((STATIC / "report").glob("*.js")), ids=lambda each: each.stem
)
def test_pages_that_are_one_file_can_be_made(entry: Path) -> None:
    assert one_script(entry).startswith('(() => {\n"use strict";\n')


def test_scripts_ask_nobody_else_and_make_no_html_of_text() -> None:
    """What the browser would refuse is not even written."""
    for file in STATIC.rglob("*.js"):
        text = file.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        )
        assert not re.search(r"https?://(?!www\.w3\.org/)", text)
