"""The explanations of a run, in memory or in its file, found by pod.

Every line about a pod begins with its name, so a search through the mapped bytes finds it without
decoding the rest, also while the run goes on. A complete run has an index that makes it quick.
"""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson

from kubescene.errors import ConfigurationError
from kubescene.results.mapped_files import Mapped, line_at, line_number, mapped, occurrences
from kubescene.results.pod_index import EXPLANATIONS, PodIndex
from kubescene.timeline.explanations import FIRST_LINES, READ_VERSIONS, SCHEMA, Line

NODES_BEGIN = b'\n{"nodes":'


class ExplainedLine(NamedTuple):
    """A line, the list of nodes that its indexes point into, and where it stands."""

    nodes: bytes
    line: bytes
    position: int


class Explanations(Protocol):
    """What was explained. Iterating gives all lines."""

    def of(self, pod: str) -> list[ExplainedLine]:
        """The lines about ``NAMESPACE/NAME``, in order."""
        ...

    def place(self, line: ExplainedLine) -> str:
        """Where a line stands, for an error about it."""
        ...

    def __iter__(self) -> Iterator[bytes]: ...


class ExplanationMemory:
    """Explanations of a run without a directory; lines are made for those who read them."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._pods: list[str] = []
        """Whom each line is about."""
        self._node_lists: list[int] = []
        """Which lines list nodes instead."""
        self._by_pod: dict[str, dict[int, None]] = {}
        """Where the lines about a pod are, as far as somebody has asked."""
        self._indexed = 0

    def explain(self, pod: str, line: Line) -> None:
        """The sink of the explanation recorder."""
        if not pod:
            self._node_lists.append(len(self._lines))
        self._lines.append(line)
        self._pods.append(pod)

    def of(self, pod: str) -> list[ExplainedLine]:
        self._index()
        return [
            ExplainedLine(self._line(self._nodes_before(at)), self._line(at), at + 1)
            for at in self._by_pod.get(pod, ())
        ]

    def _index(self) -> None:
        # Several threads may ask: whatever they do twice comes to the same.
        for at in range(self._indexed, len(self._pods)):
            self._by_pod.setdefault(self._pods[at], {})[at] = None
            self._indexed = at + 1

    def _nodes_before(self, at: int) -> int:
        before = bisect_left(self._node_lists, at)
        return self._node_lists[before - 1] if before else -1

    def _line(self, at: int) -> bytes:
        return b"" if at < 0 else bytes(self._lines[at])

    def __getstate__(self) -> dict[str, object]:
        """Other processes get the lines: what they are made from is larger and ours."""
        return {**vars(self), "_lines": [*self]}

    def place(self, line: ExplainedLine) -> str:
        return f"explanation {line.position}"

    def __iter__(self) -> Iterator[bytes]:
        return map(bytes, self._lines)


class ExplanationFile:
    """Explanations in an ``explanations.jsonl``, which may still grow."""

    def __init__(self, path: str | Path, index: PodIndex | None = None) -> None:
        self.path = Path(path)
        self._index = index

    def of(self, pod: str) -> list[ExplainedLine]:
        known = self._index.find(pod, EXPLANATIONS) if self._index is not None else None
        begin = b"\n" + orjson.dumps({"pod": pod})[:-1] + b","
        found = []
        with mapped(self.path) as data:
            self._check(data)
            if known is not None:
                return [
                    ExplainedLine(line_at(data, nodes) if nodes else b"", line, start)
                    for start, nodes in known
                    if (line := line_at(data, start)).startswith(begin[1:])
                ]
            for before in occurrences(data, begin):
                start = before + 1
                end = data.find(b"\n", start)
                if end >= 0:
                    found.append(ExplainedLine(self._nodes(data, start), data[start:end], start))
        return found

    def place(self, line: ExplainedLine) -> str:
        with mapped(self.path) as data:
            return f"{self.path}, line {line_number(data, line.position)}"

    def __iter__(self) -> Iterator[bytes]:
        """All complete lines after the first."""
        with mapped(self.path) as data:
            self._check(data)
            start = data.find(b"\n") + 1
            while (end := data.find(b"\n", start)) >= 0:
                yield data[start:end]
                start = end + 1

    def _check(self, data: Mapped) -> None:
        first = data[: max(data.find(b"\n"), 0)]
        if first not in FIRST_LINES.values():
            versions = " or ".join(map(str, READ_VERSIONS))
            raise ConfigurationError(
                f"{self.path}, line 1: these are not explanations as this Kubescene reads them "
                f"({SCHEMA}, version {versions})"
            )

    @staticmethod
    def _nodes(data: Mapped, before: int) -> bytes:
        """The newest list of nodes before a line; empty if there is none."""
        start = data.rfind(NODES_BEGIN, 0, before)
        return b"" if start < 0 else data[start + 1 : data.find(b"\n", start + 1)]
