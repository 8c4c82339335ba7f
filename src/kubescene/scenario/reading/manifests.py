"""Files and folders of Kubernetes objects: YAML or JSON, as they are or compressed by gzip."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubescene.errors import ScenarioError
from kubescene.scenario.reading.files import MAX_FILE_BYTES, load_yaml, read_file
from kubescene.scenario.reading.object_files import flattened

SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")


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
    data = read_file(file)
    if file.suffix != ".gz":
        return data
    try:
        return b"".join(members(data))
    except zlib.error as error:
        raise ScenarioError(f"it cannot be unpacked: {error}", where=str(file)) from error
    except ScenarioError as error:
        raise ScenarioError(error.message, where=str(file)) from error


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
