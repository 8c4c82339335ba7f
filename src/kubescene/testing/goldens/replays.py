"""Files of recordings, replayed.

What a file of recordings may be about: each format has a module that checks and replays it.

The field that a case has tells the format. A module of a format (`FormatModule`) is imported with
the first recording that needs it.

The files: gzip-compressed (or plain) JSON Lines, one golden per line, read one at a time.

From files to tallies: every golden is replayed in a world of its own, then forgotten.
"""

import gzip
import importlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, Protocol, cast

import orjson

from kubescene.testing.goldens.comparisons import GoldenTally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject


class FormatModule(Protocol):
    """What the module of a format has."""

    UNIT: str
    """What a case is made of, in the plural: ``attempts``."""

    def check(self, case: JsonObject, result: JsonObject, where: str) -> None:
        """Raise `GoldenFormatError` if a recording is not of this format; ``where`` is its line."""

    def replay(self, golden: Golden, tally: GoldenTally) -> None:
        """Replay one recording and count what comes of it. Must not raise: that is a difference."""


class ReplayFormat(NamedTuple):
    """One kind of recordings: a case that has ``field`` is of it."""

    field: str
    module: str
    through_objects: str = ""
    """The module that replays the same through API objects; none for most."""

    def load(self, *, objects: bool = False) -> FormatModule:
        module = self.through_objects if objects else self.module
        return cast("FormatModule", importlib.import_module(module))


SCHEDULER = ReplayFormat("", "kubescene.testing.goldens.cases")
"""Cases with ``pending`` or ``steps``; also what is of no format, so that it is told why."""

HORIZONTAL = ReplayFormat(
    "hpa",
    "kubescene.testing.goldens.horizontal",
    "kubescene.testing.goldens.horizontal_objects",
)
"""Passes of the horizontal pod autoscaler's controller."""

VERTICAL = ReplayFormat(
    "vpa", "kubescene.testing.goldens.vertical", "kubescene.testing.goldens.vertical_objects"
)
"""Cases of the vertical pod autoscaler: recommender, updater and admission."""

KPA_SCALER = ReplayFormat("initialReady", "kubescene.testing.goldens.kpa")
KPA_BUCKETS = ReplayFormat("granularitySeconds", "kubescene.testing.goldens.kpa")
"""Decisions of Knative's pod autoscaler, and its averages."""

CLUSTER_AUTOSCALER = ReplayFormat("flags", "kubescene.testing.goldens.cluster_autoscaler")
"""Loops of the cluster autoscaler."""

KARPENTER = ReplayFormat("karpenter", "kubescene.testing.goldens.karpenter")
"""Decisions of Karpenter: claims for pods, and commands that give nodes up."""

WORKLOADS = ReplayFormat("about", "kubescene.testing.goldens.workloads")
"""Worlds of kube-controller-manager's workload controllers, step by step."""

FORMATS: tuple[ReplayFormat, ...] = (
    HORIZONTAL,
    VERTICAL,
    KPA_SCALER,
    KPA_BUCKETS,
    CLUSTER_AUTOSCALER,
    KARPENTER,
    WORKLOADS,
)


def format_of(case: JsonObject) -> ReplayFormat:
    return next((each for each in FORMATS if each.field in case), SCHEDULER)


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
    if isinstance(row, dict) and "answers" in row:
        row = _apart(row)
    elif isinstance(row, dict) and WORKLOADS.field in row:
        row = {"case": row, "result": {}}
    case = _part(row, "case", where)
    result = _part(row, "result", where)
    for name in ("id", "family"):
        if not isinstance(case.get(name), str):
            raise GoldenFormatError(f'{where}: case has no text "{name}"')
    format_of(case).load().check(case, result, where)
    return Golden(case, result)


def _apart(row: JsonObject) -> JsonObject:
    """A flat line in two parts; its family is finer in the id than in the field."""
    case = {name: value for name, value in row.items() if name != "answers"}
    if isinstance(row.get("id"), str):
        case["family"] = row["id"].partition("-")[0]
    return {"case": case, "result": {"answers": row["answers"]}}


def _part(row: Any, name: str, where: str) -> JsonObject:
    part = row.get(name) if isinstance(row, dict) else None
    if not isinstance(part, dict):
        raise GoldenFormatError(
            f'{where}: no golden: expected an object with "case" and "result", each an object'
        )
    return part


def replay_files(
    paths: Iterable[Path],
    *,
    case: str = "",
    kept: int = 10,
    plain: bool = False,
    objects: bool = False,
) -> Iterator[GoldenTally]:
    """The tally of each family, as soon as its file is done; ``case`` picks one golden by id.

    ``plain``: worlds play without what is only faster. ``objects``: autoscalers decide
    about API objects.
    """
    for path in paths:
        tallies: dict[str, GoldenTally] = {}
        for golden in read_goldens(path):
            if case and golden.id != case:
                continue
            if objects and not format_of(golden.case).through_objects:
                raise GoldenFormatError(
                    f"{path}: only recordings of the horizontal and the vertical pod autoscaler "
                    "can be replayed through objects"
                )
            tally = tallies.get(golden.family)
            if tally is None:
                tally = tallies[golden.family] = _tally(golden, kept)
            replay(replace(golden, plain=plain), tally, objects=objects)
        yield from tallies.values()


def replay(golden: Golden, tally: GoldenTally, *, objects: bool = False) -> None:
    """Replay one golden and count what comes of it."""
    started = process_time()
    before = tally.differences
    tally.cases += 1
    format_of(golden.case).load(objects=objects).replay(golden, tally)
    tally.equal_cases += tally.differences == before and golden.id not in tally.left_out
    tally.seconds += process_time() - started


def _tally(golden: Golden, kept: int) -> GoldenTally:
    return GoldenTally(golden.family, unit=format_of(golden.case).load().UNIT, kept=kept)
