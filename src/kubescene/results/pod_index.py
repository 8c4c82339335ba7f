"""``pods.index``: where a pod's lines stand in the timeline and the explanations of a run.

A run of 50,000 pods writes hundreds of megabytes; whoever asks for one pod shall not search them.
After a header of one line come records of three numbers, sorted: a checksum of the pod's name with
the file in its lowest bit, the position of the line, and for an explanation the position of the
list of nodes that it refers to. A checksum may be that of several pods: the line says whose it is.

The header holds the sizes of both files. If they are not these, the index is not theirs and is not
used: the files are what counts.
"""

from array import array
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from zlib import crc32

import msgspec

from kubescene.results.mapped_files import Mapped, mapped

SCHEMA = "kubescene.dev/pod-index"
VERSION = 1
TIMELINE, EXPLANATIONS = 0, 1
ATTEMPTS = ("PodScheduled", "PodUnscheduled")
_RECORD = Struct("<QQQ")


class IndexHeader(msgspec.Struct, frozen=True):
    """The first line."""

    schema: str = SCHEMA
    version: int = VERSION
    timeline_bytes: int = msgspec.field(default=0, name="timelineBytes")
    explanations_bytes: int = msgspec.field(default=0, name="explanationsBytes")


def key_of(pod: str, file: int) -> int:
    return crc32(pod.encode()) << 1 | file


class PodIndexWriter:
    """Notes lines as they are written; `write` sorts them into a file."""

    def __init__(self) -> None:
        self._keys = array("Q")
        self._positions = array("Q")
        self._nodes = array("Q")

    def note(self, pod: str, file: int, position: int, nodes: int = 0) -> None:
        """A line about ``NAMESPACE/NAME`` begins at ``position``."""
        self._keys.append(key_of(pod, file))
        self._positions.append(position)
        self._nodes.append(nodes)

    def write(self, path: Path, header: IndexHeader) -> None:
        """Lines of one pod stand in the order in which they were written."""
        keys = self._keys
        order = sorted(range(len(keys)), key=keys.__getitem__)
        with path.open("wb") as file:
            file.write(msgspec.json.encode(header) + b"\n")
            file.writelines(
                _RECORD.pack(keys[n], self._positions[n], self._nodes[n]) for n in order
            )


class TimelineLine(msgspec.Struct):
    """What the index needs of a line of ``timeline.jsonl``."""

    fact: str = ""
    namespace: str = ""
    name: str = ""


class ExplanationLine(msgspec.Struct):
    """The same for ``explanations.jsonl``; a line without a pod lists nodes."""

    pod: str = ""


def indexed(timeline: bytes, explanations: bytes) -> PodIndexWriter:
    """The index of files that somebody else has written."""
    index, nodes = PodIndexWriter(), 0
    attempt, explained = msgspec.json.Decoder(TimelineLine), msgspec.json.Decoder(ExplanationLine)
    for position, text in _lines(timeline):
        line = attempt.decode(text)
        if line.fact in ATTEMPTS:
            index.note(f"{line.namespace}/{line.name}", TIMELINE, position)
    for position, text in _lines(explanations):
        if pod := explained.decode(text).pod:
            index.note(pod, EXPLANATIONS, position, nodes)
        else:
            nodes = position
    return index


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines after the header, and where each begins."""
    begin = data.find(b"\n") + 1
    while (end := data.find(b"\n", begin)) >= 0:
        yield begin, data[begin:end]
        begin = end + 1


class PodIndex:
    """The index of a run's directory, as far as there is one that fits."""

    def __init__(self, path: Path, header: IndexHeader) -> None:
        self._path = path
        self._header = header

    def find(self, pod: str, file: int) -> list[tuple[int, int]] | None:
        """Positions of lines that may be about the pod, with their node lists; None: no index."""
        if not self._path.exists():
            return None
        with mapped(self._path) as data:
            begin = data.find(b"\n") + 1
            if data[: max(begin - 1, 0)] != msgspec.json.encode(self._header):
                return None
            return list(_records(data, begin, key_of(pod, file)))


def _records(data: Mapped, begin: int, key: int) -> Iterator[tuple[int, int]]:
    count = (len(data) - begin) // _RECORD.size
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if _RECORD.unpack_from(data, begin + middle * _RECORD.size)[0] < key:
            low = middle + 1
        else:
            high = middle
    for number in range(low, count):
        found, position, nodes = _RECORD.unpack_from(data, begin + number * _RECORD.size)
        if found != key:
            return
        yield position, nodes


def index_of(run: Path, timeline: Path, explanations: Path, name: str) -> PodIndex:
    """The index of a run whose files have the sizes that they have now."""
    sizes = [file.stat().st_size if file.exists() else 0 for file in (timeline, explanations)]
    header = IndexHeader(timeline_bytes=sizes[0], explanations_bytes=sizes[1])
    return PodIndex(run / name, header)
