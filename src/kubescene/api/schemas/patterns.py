"""Regular expressions of custom schemas, run by RE2.

They are written for Go's engine, which is RE2's: the same syntax, the same meaning of ``$`` and
``\\d``, and a time that grows with the text and never with the ways to match it, so that no
pattern of a user can hold up the server. Complaints are worded as Go words them.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

CACHED = 256
"""Compiled patterns that are kept: each may take up to 8 MiB."""

_GO_WORDS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid character class": "invalid character class",
    "invalid character class range": "invalid character class range",
    "invalid escape sequence": "invalid escape sequence",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "pattern too large - compile failed": "expression too large",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "unexpected )",
}

_SINGLE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""An escape of RE2 that Go's engine does not have."""


class _Compiled(NamedTuple):
    pattern: Any
    problem: str


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text; one that is no pattern occurs in every text."""
    compiled = _compiled(pattern).pattern
    return compiled is None or compiled.search(text) is not None


def occurrences(pattern: str, text: str, limit: int = -1) -> list[str]:
    """Where the pattern occurs in the text, one after the other; the first ``limit``."""
    compiled = _compiled(pattern).pattern
    found: list[str] = []
    end = -1
    for match in compiled.finditer(text) if compiled is not None and limit else ():
        if match.start() == match.end() == end:
            continue  # nothing, right behind the last one
        end = match.end()
        found.append(match.group())
        if len(found) == limit:
            break
    return found


def problem(pattern: str) -> str:
    """Why the text is no pattern, in Go's words; empty if it is one."""
    return _compiled(pattern).problem


@lru_cache(maxsize=CACHED)
def _compiled(pattern: str) -> _Compiled:
    # Only worlds with such schemas need the engine.
    import re2

    if _SINGLE_BYTE.search(pattern):
        return _Compiled(None, _in_go_words("invalid escape sequence: \\C", pattern))
    options = re2.Options()
    options.log_errors = False
    try:
        return _Compiled(re2.compile(pattern, options), "")
    except re2.error as error:
        return _Compiled(None, _in_go_words(error.args[0].decode(), pattern))


def _in_go_words(said: str, pattern: str) -> str:
    what, colon, part = said.partition(": ")
    shown = f": `{part if colon else pattern}`" if not what.startswith("trailing") else ": ``"
    return f"error parsing regexp: {_GO_WORDS.get(what, what)}{shown}"
