"""Documents of a text: YAML, JSON, or JSON documents that follow each other."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from kubescene.api.text.reading import MAX_DEPTH, ReadingError, check_depth, read_json
from kubescene.errors import SnapshotError
from kubescene.scenario.reading.files import check_text, load_yaml
from kubescene.scenario.reading.object_files import flattened

LOGS_BEGIN, LOGS_END = b"==== START logs", b"==== END logs"


class _ListOfRaw(msgspec.Struct, rename="camel"):
    """A ``List`` whose items are still text: of a large one they are made one by one."""

    items: list[msgspec.Raw]
    kind: str
    api_version: str = ""
    metadata: msgspec.Raw = msgspec.Raw()


class _NameOf(msgspec.Struct):
    name: str = ""


def objects_of_text(text: bytes, where: str) -> Iterator[Any]:
    """All objects, those of lists one by one; raises `SnapshotError` with file and line."""
    if text[:1024].lstrip().startswith((b"{", b"[")):
        yield from _json_objects(text, where)
        return
    if not text.strip():
        return
    check_text(text, where)
    yield from flattened(load_yaml(text, where))


def _json_objects(text: bytes, where: str) -> Iterator[Any]:
    listed = _large_list(text)
    if listed is None:
        yield from flattened(_json_documents(text, where))
        return
    kind = listed.kind.removesuffix("List")
    for number, raw in enumerate(listed.items):
        item = _value(raw, f"{where}: items[{number}]")
        if kind and isinstance(item, dict) and not ("kind" in item or "apiVersion" in item):
            item = {"apiVersion": listed.api_version, "kind": kind, **item}
        yield from flattened([item])


def _large_list(text: bytes) -> _ListOfRaw | None:
    try:
        found = msgspec.json.decode(text, type=_ListOfRaw)
        named = msgspec.json.decode(found.metadata or b"{}", type=_NameOf)
    except (RecursionError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.kind.endswith("List") and not named.name else None


def _value(raw: msgspec.Raw, where: str) -> Any:
    try:
        return read_json(bytes(raw)).value
    except ReadingError as error:
        raise SnapshotError(f"not valid JSON: {error}", where=where) from error


def _json_documents(text: bytes, where: str) -> Iterator[Any]:
    """One document after the other, as ``kubectl cluster-info dump`` writes them."""
    try:
        yield read_json(text).value
        return
    except ReadingError as error:
        first = error
    decoder, at = json.JSONDecoder(), 0
    try:
        characters = text.decode()
    except UnicodeDecodeError:
        raise SnapshotError("this is not text in UTF-8", where=where) from None
    begun = _next(characters, 0)
    while begun < len(characters):
        try:
            value, at = decoder.raw_decode(characters, begun)
            check_depth(value, MAX_DEPTH)
        except (json.JSONDecodeError, RecursionError, ReadingError) as error:
            if begun == 0:
                raise _no_json(characters, first, where) from error
            line = characters.count("\n", 0, begun) + 1
            raise SnapshotError(
                f"the document that begins here is not valid JSON: {error}",
                where=f"{where}:{line}",
            ) from error
        yield value
        begun = _next(characters, at)


def _no_json(characters: str, error: ReadingError, where: str) -> SnapshotError:
    try:
        json.loads(characters)
    except json.JSONDecodeError as found:
        return SnapshotError(f"not valid JSON: {found.msg}", where=f"{where}:{found.lineno}")
    except RecursionError:
        pass
    return SnapshotError(f"not valid JSON: {error}", where=where)


def _next(characters: str, at: int) -> int:
    while at < len(characters) and characters[at].isspace():
        at += 1
    return at


def without_logs(text: bytes) -> bytes:
    """What is left without the logs of containers; their lines count, so that places stay right."""
    if LOGS_BEGIN not in text:
        return text
    kept, is_log = [], False
    for line in text.splitlines(keepends=True):
        if line.startswith(LOGS_BEGIN):
            is_log = True
        kept.append(b"\n" if is_log else line)
        if line.startswith(LOGS_END):
            is_log = False
    return b"".join(kept)
