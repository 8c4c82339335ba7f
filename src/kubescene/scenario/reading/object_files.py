"""Files of Kubernetes objects: those beside a scenario, and those that people name themselves.

What ``createOperation.objectFrom`` names stands beside the scenario. That may come from somebody
else, so it reads nothing outside its own folder: no absolute path, no way up, no link that leads
out, no device, nothing of unbounded size. `read_manifests` reads any file or folder: YAML or JSON,
as they are or compressed by gzip.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from kubescene.errors import ScenarioError
from kubescene.scenario.reading.files import MAX_FILE_BYTES, load_yaml, read_file
from kubescene.types import JsonObject

MAX_BYTES = 64 * 1024 * 1024
MAX_OBJECTS = 100_000
SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")


class ScenarioFolder(Struct, frozen=True):
    """The folder of a scenario file."""

    path: Path

    def read(self, name: str) -> tuple[JsonObject, ...]:
        """The objects of a file, those of a ``List`` one by one; raises `ScenarioError`."""
        return _checked(list(flattened(load_yaml(self._bytes(name), name))), name)

    def text(self, name: str) -> str:
        """The text of a file, which may be packed (``.gz``); raises `ScenarioError`."""
        data = self._bytes(name)
        try:
            return decompressed(name, data).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ScenarioError(f"{name} is not text in UTF-8") from error

    def _bytes(self, name: str) -> bytes:
        file = self._inside(name)
        try:
            if not file.is_file():
                raise ScenarioError(f"there is no file {name!r} in {self.path}")
            if (size := file.stat().st_size) > MAX_BYTES:
                raise ScenarioError(f"{name} has {size} bytes, more than {MAX_BYTES}")
            return file.read_bytes()
        except OSError as error:
            raise ScenarioError(f"{name} cannot be read: {error.strerror}") from error

    def file(self, name: str) -> Path:
        """Where a name leads to, which is inside; raises `ScenarioError`."""
        return self._inside(name)

    def holds(self, name: str) -> bool:
        """Whether a name leads to somewhere inside, be there a file or not."""
        try:
            self._inside(name)
        except ScenarioError:
            return False
        return True

    def _inside(self, name: str) -> Path:
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts or "\0" in name:
            raise ScenarioError(f"{name!r} must be a path inside the folder of the scenario")
        try:
            folder, file = self.path.resolve(), (self.path / relative).resolve()
        except (OSError, RuntimeError) as error:
            raise ScenarioError(f"{name!r} cannot be followed: {error}") from error
        if not file.is_relative_to(folder):
            raise ScenarioError(f"{name!r} leads out of the folder of the scenario")
        return file


def flattened(documents: Iterable[Any]) -> Iterator[Any]:
    """Objects in order, those of lists (``kind: List``, ``PodList`` ...) one by one."""
    for document in documents:
        if is_list(document):
            yield from flattened(typed_items(document))
        else:
            yield document


def is_list(document: Any) -> bool:
    """Whether a document is a list of the API: these have items, and no name."""
    if not isinstance(document, Mapping) or not isinstance(document.get("items"), list):
        return False
    kind, metadata = document.get("kind"), document.get("metadata")
    is_named = isinstance(metadata, Mapping) and bool(metadata.get("name"))
    return isinstance(kind, str) and kind.endswith("List") and not is_named


def typed_items(listed: Mapping[str, Any]) -> Iterator[Any]:
    """The items of a list; in a ``PodList``, as an API server sends it, nobody says he is a Pod."""
    kind = listed["kind"].removesuffix("List")
    for item in listed["items"]:
        if kind and isinstance(item, Mapping) and not ("kind" in item or "apiVersion" in item):
            yield {"apiVersion": listed.get("apiVersion"), "kind": kind, **item}
        else:
            yield item


def _checked(objects: list[Any], name: str) -> tuple[JsonObject, ...]:
    if not objects:
        raise ScenarioError(f"{name} holds no object")
    if len(objects) > MAX_OBJECTS:
        raise ScenarioError(f"{name} holds {len(objects)} objects, more than {MAX_OBJECTS}")
    for number, obj in enumerate(objects):
        if not isinstance(obj, dict) or not (obj.get("apiVersion") and obj.get("kind")):
            raise ScenarioError(f"object {number} of {name} needs apiVersion and kind")
    return tuple(objects)


def read_manifests(path: Path) -> Iterator[Any]:
    """All objects of a file, or of a folder's files in the order of their names."""
    for file in manifest_files(path):
        yield from flattened(load_yaml(unpacked(file), str(file)))


def manifest_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.name.endswith(SUFFIXES)]
    if not files:
        raise ScenarioError(
            f"there is no file that ends with {', '.join(SUFFIXES)}", where=str(path)
        )
    return files


def unpacked(file: Path) -> bytes:
    """The text of a file, of bearable size before and after it is unpacked."""
    return decompressed(str(file), read_file(file))


def decompressed(name: str, data: bytes) -> bytes:
    """What a file holds, which is packed if its name says so."""
    if not name.endswith(".gz"):
        return data
    try:
        return b"".join(members(data))
    except zlib.error as error:
        raise ScenarioError(f"it cannot be unpacked: {error}", where=name) from error
    except ScenarioError as error:
        raise ScenarioError(error.message, where=name) from error


def members(data: bytes) -> Iterator[bytes]:
    """What the members of a gzip file hold; half a file is none."""
    size = 0
    while data := data.lstrip(b"\0"):
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = unpacker.decompress(data, MAX_FILE_BYTES + 1 - size)
        size += len(text)
        if size > MAX_FILE_BYTES:
            raise ScenarioError(f"it unpacks to more than {MAX_FILE_BYTES} bytes")
        if not unpacker.eof:
            raise ScenarioError("it ends in the middle of what was packed: copy it again")
        yield text
        data = unpacker.unused_data
