"""Regular expressions of custom schemas, which are written for Go's RE2.

The syntax is nearly Python's. What differs is translated: ``$`` and ``\\z`` mean the very end of
the text, character classes such as ``[[:alpha:]]`` are spelled out, ``\\d`` and its like are
ASCII. A pattern that still cannot be compiled is not checked.
"""

import re
from functools import lru_cache

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_NAMED_CLASS = re.compile(r"\[:(\w+):\]")
_TOKENS = re.compile(r"\\.|\[:\w+:\]|[\[\]$]|[^\\\[\]$]+", re.DOTALL)


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text."""
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except re.error:
        return None


def _translated(pattern: str) -> str:
    done, inside = [], False
    for token in _TOKENS.findall(pattern):
        if token == "[":
            done.append(r"\[" if inside else "[")
            inside = True
        elif token == "]":
            done.append("]")
            inside = False
        elif inside and (named := _NAMED_CLASS.fullmatch(token)):
            done.append(_CLASSES.get(named[1], ""))
        elif not inside and token in ("$", r"\z"):
            done.append(r"\Z")
        else:
            done.append(token)
    return "".join(done)
