"""The files: gzip-compressed (or plain) JSON Lines, one golden per line, read one at a time."""

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

import orjson

from kubescene.testing.goldens.formats import format_of
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject


def read_goldens(path: Path) -> Iterator[Golden]:
    """The goldens of a file, one at a time; raises `GoldenFormatError` where one is broken."""
    try:
        with _opened(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _golden(line, f"{path}:{number}")
    except (OSError, EOFError, zlib.error) as error:
        raise GoldenFormatError(f"{path}: cannot be read: {error}") from error


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _golden(line: bytes, where: str) -> Golden:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise GoldenFormatError(f"{where}: not a line of JSON: {error}") from error
    case = _part(row, "case", where)
    result = _part(row, "result", where)
    for name in ("id", "family"):
        if not isinstance(case.get(name), str):
            raise GoldenFormatError(f'{where}: case has no text "{name}"')
    format_of(case).load().check(case, result, where)
    return Golden(case, result)


def _part(row: Any, name: str, where: str) -> JsonObject:
    part = row.get(name) if isinstance(row, dict) else None
    if not isinstance(part, dict):
        raise GoldenFormatError(
            f'{where}: no golden: expected an object with "case" and "result", each an object'
        )
    return part
