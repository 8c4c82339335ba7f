"""The files: gzip-compressed (or plain) JSON Lines, one golden per line, read one at a time."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import orjson

from kubescene.errors import KubesceneError
from kubescene.types import JsonObject


class GoldenFormatError(KubesceneError):
    """A file cannot be read, or is not made of goldens."""


@dataclass(frozen=True, slots=True)
class Golden:
    """One recorded scenario: what there was, and what kube-scheduler did."""

    case: JsonObject
    result: JsonObject

    @property
    def id(self) -> str:
        return str(self.case["id"])

    @property
    def family(self) -> str:
        return str(self.case["family"])


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
    _check(case, result, where)
    return Golden(case, result)


def _part(row: Any, name: str, where: str) -> JsonObject:
    part = row.get(name) if isinstance(row, dict) else None
    if not isinstance(part, dict):
        raise GoldenFormatError(
            f'{where}: no golden: expected an object with "case" and "result", each an object'
        )
    return part


def _check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case is played pod by pod or step by step, and its result is of the same make."""
    if "configError" in result:
        return
    mode, made = ("steps", "steps") if "steps" in case else ("pending", "attempts")
    if not isinstance(case.get(mode), list) or not isinstance(result.get(made), list):
        raise GoldenFormatError(
            f'{where}: case {case["id"]} needs a list "pending" with "attempts" in its result, '
            'or a list "steps" with "steps" in its result'
        )
    for number, obj in enumerate(_objects(case)):
        if not _is_object(obj):
            raise GoldenFormatError(
                f"{where}: object {number} of case {case['id']} lacks apiVersion, kind or a name"
            )
    if made == "attempts":
        _check_pods(case["pending"], result["attempts"], f"{where}: case {case['id']}")


def _objects(case: JsonObject) -> list[Any]:
    """All objects that a case speaks of."""
    steps = [step for step in case.get("steps") or () if isinstance(step, dict)]
    changed = [step[verb] for step in steps for verb in ("create", "update") if verb in step]
    return [*(case.get("objects") or ()), *(case.get("pending") or ()), *changed]


def _is_object(obj: Any) -> bool:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return False
    return bool(obj.get("apiVersion") and obj.get("kind") and obj["metadata"].get("name"))


def _check_pods(pending: list[JsonObject], attempts: list[Any], where: str) -> None:
    """Every attempt is about a pod that the case creates."""
    created = {f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}" for pod in pending}
    for number, attempt in enumerate(attempts):
        pod = attempt.get("pod") if isinstance(attempt, dict) else None
        if pod not in created:
            raise GoldenFormatError(f"{where}: attempt {number} is about {pod!r}, no pending pod")
        if "outcome" not in attempt and not attempt.keys() & {"gated", "ignored", "bypassed"}:
            raise GoldenFormatError(f"{where}: attempt {number} has no outcome")
