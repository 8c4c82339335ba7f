"""Data inside a page: JSON that no HTML parser takes for anything else."""

import re
from base64 import b64encode
from hashlib import sha256

import msgspec

# JSON needs none of these outside of strings, where they may be written as escapes.
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_DECEIVING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def embedded(value: object) -> str:
    """A value as the content of a ``script`` element of type ``application/json``.

    Nothing in it ends the element or begins a comment. Characters that turn or hide text arrive as
    their number, as `kubescene.markup.visible` shows them.
    """
    text = msgspec.json.encode(value).decode()
    named = _DECEIVING.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)
    return named.translate(_ESCAPED)


def digest(text: str) -> str:
    """How a Content-Security-Policy names an inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
