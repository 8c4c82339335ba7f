"""Recordings of which one thing is altered, and files of them."""

import gzip
import json
from pathlib import Path
from typing import Any

from kubescene.testing.goldens import Golden


def altered(value: Any) -> Any:
    """Something else of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return f"{value}?"
    if isinstance(value, list):
        return [altered(value[0]), *value[1:]] if value else ["?"]
    first = next(iter(value))
    return {**value, first: altered(value[first])}


def places(value: Any, path: list[str]) -> list[tuple[Any, Any]]:
    """Containers and keys that a path leads to; ``*`` stands for every key."""
    if isinstance(value, list):
        keys: list[Any] = list(range(len(value))) if path[0] == "*" else []
    elif isinstance(value, dict):
        keys = list(value) if path[0] == "*" else [key for key in (path[0],) if key in value]
    else:
        return []
    if len(path) == 1:
        return [(value, key) for key in keys]
    return [place for key in keys for place in places(value[key], path[1:])]


def written(path: Path, *rows: Any) -> str:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return str(path)


def as_row(golden: Golden) -> dict[str, Any]:
    return {"case": golden.case, "result": golden.result}
