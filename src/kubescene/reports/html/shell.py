"""What the pages that can be passed around have in common: one file that fetches nothing.

The Content-Security-Policy names the one style and the one script by their digests and forbids
everything else: requests of any kind, other scripts, and HTML made of strings. Data stand in it as
JSON that no HTML parser takes for anything else.
"""

import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.markup import Markup, h
from kubescene.ui.bundling import STATIC, one_script, style_sheet

PAGES = STATIC / "report"
STYLE = STATIC / "shared" / "style.css"
CHARTS = STATIC / "shared" / "charts.css"
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E"
    "%3Cpath fill='%23009e73' d='M0 0h3v3H0z'/%3E%3Cpath fill='%2356b4e9' d='M4 0h4v3H4z'/%3E"
    "%3Cpath fill='%230072b2' d='M0 4h3v4H0z'/%3E%3Cpath fill='%23e69f00' d='M4 4h4v4H4z'/%3E"
    "%3C/svg%3E"
)
# JSON needs none of these outside of strings, where they may be written as escapes.
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_DECEIVING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


class Shell(NamedTuple):
    """The styles of a kind of page, and the module that it begins with; files of `PAGES`."""

    styles: tuple[Path, ...]
    script: Path

    def document(self, title: str, version: str, body: Iterable[Markup]) -> str:
        """The whole page, made by that version of Kubescene."""
        style, script = style_sheet(self.styles), one_script(self.script)
        head = (
            h("meta", charset="utf-8"),
            h("meta", http_equiv="Content-Security-Policy", content=policy(style, script)),
            h("meta", name="viewport", content="width=device-width, initial-scale=1"),
            h("meta", name="color-scheme", content="light dark"),
            h("meta", name="referrer", content="no-referrer"),
            h("meta", name="generator", content=f"Kubescene {version}"),
            h("title", f"{title} · Kubescene"),
            h("link", rel="icon", href=ICON),
            h("style", Markup(style)),
        )
        content = h("body", body, h("script", Markup(script)))
        return f"<!doctype html>\n{h('html', h('head', head), content, lang='en')}\n"


def footer(version: str) -> Markup:
    made = f"Made by Kubescene {version}. This page is complete: it fetches nothing."
    return h("footer", made)


def policy(style: str, script: str) -> str:
    rules = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": digest(style),
        "script-src": digest(script),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def digest(text: str) -> str:
    """How a Content-Security-Policy names an inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def embedded(value: object) -> Markup:
    """A value as a ``script`` element of type ``application/json``."""
    return h("script", Markup(embedded_text(value)), type="application/json", id="data")


def embedded_text(value: object) -> str:
    """The content of such an element.

    Nothing in it ends the element or begins a comment. Characters that turn or hide text arrive as
    their number, as `kubescene.markup.visible` shows them.
    """
    text = msgspec.json.encode(value).decode()
    named = _DECEIVING.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)
    return named.translate(_ESCAPED)


def write_page(text: str, path: str | Path) -> Path:
    """Write a page; an existing file is replaced."""
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the report cannot be written to {file}: {error.strerror}; choose another --out"
        ) from error
    return file
