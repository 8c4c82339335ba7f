"""ES modules as one script, for pages that must fetch nothing.

A module comes once, after all that it imports. Imports and exports are lines of their own, in one
form each; anything else is refused here rather than by a reader's browser. Names are those of one
scope then, so no two modules may declare the same at their top.
"""

import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_IMPORT = re.compile(r'^import \{[^}\n]+\} from "(?P<path>\.{1,2}/[^"\n]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) )", re.MULTILINE)
_LEFT = re.compile(r"^\s*(?:import|export)\b.*", re.MULTILINE)
_DECLARED = re.compile(r"^(?:async )?(?:function\*?|class|const|let) (\w+)", re.MULTILINE)


@cache
def one_script(entry: Path) -> str:
    """The module and all that it needs, as a script that leaves no names behind."""
    parts: dict[Path, str] = {}
    _gather(entry.resolve(), parts)
    declared: dict[str, Path] = {}
    for path, text in parts.items():
        for name in _DECLARED.findall(text):
            if name in declared:
                raise ValueError(f"{path.name} and {declared[name].name} both declare {name}")
            declared[name] = path
    return '(() => {\n"use strict";\n' + "\n".join(parts.values()) + "})();\n"


@cache
def style_sheet(files: tuple[Path, ...]) -> str:
    return "".join(file.read_text("utf-8") for file in files)


def _gather(path: Path, parts: dict[Path, str]) -> None:
    """What a module imports, then the module, each once."""
    text = path.read_text("utf-8")
    for found in _IMPORT.finditer(text):
        needed = (path.parent / found["path"]).resolve()
        if needed not in parts:
            _gather(needed, parts)
    plain = _EXPORT.sub("", _IMPORT.sub("", text))
    left = _LEFT.search(plain)
    if left is not None:
        raise ValueError(f"{path.name}: {left[0].strip()!r} cannot be part of one script")
    parts[path] = plain
