"""Conformance cases that others publish: where they are, and how they are read.

They are not ours, so none of them is in the repository: ``scripts/fetch-conformance`` brings them
from the registries. ``KUBESCENE_CONFORMANCE`` may name a folder that has them.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
MISSING = "published cases are not here: scripts/fetch-conformance brings them from the registries"


def folder(name: str) -> Path:
    """Where the cases of one publisher are; without them the test is skipped."""
    given = os.environ.get("KUBESCENE_CONFORMANCE")
    root = Path(given) if given else HERE.parents[1] / ".tools" / "conformance"
    if not (root / name).is_dir():
        pytest.skip(MISSING)
    return root / name


def check_pinned(name: str, total: Iterable[str], missed: set[str]) -> None:
    """Who knowingly ends otherwise is on a list; the others pass, and those on it do not."""
    lines = (HERE / "data" / name).read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    known = {each for each in total if each in listed or f"{each.rpartition('/')[0]}/*" in listed}
    assert sorted(missed - known) == [], "these passed before"
    assert sorted(known - missed) == [], "these pass now: take them off the list"


# -- text format of protocol buffers: fields with one value or a message, in any order -------------

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<sign>[{}<>:;,\[\]])|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>[^\s{}<>:;,\[\]"'\#]+)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL
)
_LETTERS = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}

Message = dict[str, list[Any]]
"""The values of each field, in the order of the text; texts are bytes, words are str."""


def read_message(text: str) -> Message:
    return _message(_tokens(text), "")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup:
            yield match.lastgroup, match[0]
    yield "sign", ""


def _message(tokens: Iterator[tuple[str, str]], end: str) -> Message:
    made: Message = {}
    kind, token = next(tokens)
    while token != end:
        if token in (",", ";"):
            kind, token = next(tokens)
            continue
        name = token
        if token == "[":  # the name of an extension or of a type
            name = "".join(part for _, part in iter(lambda: next(tokens), ("sign", "]")))
        kind, token = next(tokens)
        if token == ":":
            kind, token = next(tokens)
        value: Any
        if token == "{":
            value = _message(tokens, "}")
            kind, token = next(tokens)
        elif token == "[":
            value = None
            made.setdefault(name, []).extend(_listed(tokens))
            kind, token = next(tokens)
            continue
        elif kind == "text":
            value = b""
            while kind == "text":
                value += _unescaped(token)
                kind, token = next(tokens)
        else:
            value = token
            kind, token = next(tokens)
        made.setdefault(name, []).append(value)
    return made


def _listed(tokens: Iterator[tuple[str, str]]) -> Iterator[Any]:
    kind, token = next(tokens)
    while token != "]":
        if token == "{":
            yield _message(tokens, "}")
        elif token != ",":
            yield _unescaped(token) if kind == "text" else token
        kind, token = next(tokens)


def _unescaped(token: str) -> bytes:
    return _ESCAPE.sub(_meant, token[1:-1].encode())


def _meant(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] in b"uU" and len(code) > 1:
        return chr(int(code[1:], 16)).encode()
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if code.isdigit():
        return bytes([int(code, 8)])
    return _LETTERS.get(code, code)
