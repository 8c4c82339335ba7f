"""Back-tests as the command line asks for them: files and texts to values, faults by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kubescene.autoscalers import concurrency, horizontal, vertical
from kubescene.autoscalers.back_tests import PodUsageSample, ReplicaBackTest, Why, milli
from kubescene.autoscalers.usage_files import (
    CONTAINER,
    POD,
    RangeSeries,
    UsageRow,
    by_container,
    read_range,
    read_usage,
    summed,
)
from kubescene.durations import parse_duration
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.reports import back_tests
from kubescene.types import JsonObject, Nanoseconds

A = TypeVar("A")

OOM = "oom"
"""The column of a vertical back-test that says whether a container was killed."""
REPLICAS = "replicas"
"""The column, or the name of a file, of how many replicas there were in fact."""


class Shown(NamedTuple):
    """A back-test as it can be printed."""

    document: Callable[[], JsonObject]
    lines: Callable[[bool], Iterable[str]]


def back_tested(
    usage: Sequence[str],
    *,
    hpa: Path | None,
    vpa: Path | None,
    kpa: Path | None,
    interval: str,
    options: Mapping[str, Any],
) -> Shown:
    """The back-test of an autoscaler's file; raises `ConfigurationError` naming file or option.

    ``options`` are those that not all of them have a use for.
    """
    given = {"--hpa": hpa, "--vpa": vpa, "--kpa": kpa}
    [(option, path), *others] = [each for each in given.items() if each[1]] or [("", None)]
    if others or path is None:
        raise ConfigurationError("give one of --hpa, --vpa and --kpa")
    of = _OF[option]
    idle = (name for name, value in options.items() if value not in ("", None))
    if stray := next((name for name in idle if name not in of.options), None):
        raise ConfigurationError(f"{stray} says nothing to {option}")
    every = _duration("--interval", interval or of.interval)
    return of.test(path, usage, every, options)


def _horizontal(
    path: Path, usage: Sequence[str], interval: Nanoseconds, options: Mapping[str, Any]
) -> Shown:
    return _counted(
        horizontal.back_test(
            _read(path, horizontal.accepted),
            list(_pod_samples(_rows_of(usage, summed))),
            requests=_requests(options["--requests"]),
            replicas=options["--replicas"],
            interval=interval,
            startup=_duration("--startup", options["--startup"] or "0s"),
        )
    )


def _concurrency(
    path: Path, usage: Sequence[str], interval: Nanoseconds, options: Mapping[str, Any]
) -> Shown:
    return _counted(
        concurrency.back_test(
            _read(path, _checked_concurrency),
            list(_pod_samples(_rows_of(usage, summed))),
            replicas=options["--replicas"],
            interval=interval,
            startup=_duration("--startup", options["--startup"] or "0s"),
        )
    )


def _checked_concurrency(text: str) -> str:
    concurrency.read_spec(text)
    return text


def _counted(test: ReplicaBackTest[Why]) -> Shown:
    return Shown(
        partial(back_tests.replica_document, test), partial(back_tests.replica_lines, test)
    )


def _vertical(
    path: Path, usage: Sequence[str], interval: Nanoseconds, options: Mapping[str, Any]
) -> Shown:
    test = vertical.back_test(
        _read(path, vertical.read_vpa),
        list(map(_container_sample, _rows_of(usage, by_container))),
        every=interval,
        requests=_requested_units(_requests(options["--requests"])),
    )
    return Shown(
        partial(back_tests.vertical_document, test), partial(back_tests.vertical_lines, test)
    )


class _OfKind(NamedTuple):
    """An autoscaler that can be tested: how, which options it has a use for, its interval."""

    test: Callable[[Path, Sequence[str], Nanoseconds, Mapping[str, Any]], Shown]
    options: tuple[str, ...]
    interval: str


_OF = {
    "--hpa": _OfKind(_horizontal, ("--requests", "--replicas", "--startup"), "15s"),
    "--kpa": _OfKind(_concurrency, ("--replicas", "--startup"), "2s"),
    "--vpa": _OfKind(_vertical, ("--requests",), "1m"),
}


def _rows_of(
    usage: Sequence[str], joined: Callable[[Mapping[str, list[RangeSeries]]], list[UsageRow]]
) -> list[UsageRow]:
    """The rows of one CSV file, or of answers of Prometheus with their names."""
    named = [each.partition("=") for each in usage]
    if all(equals and file.endswith(".json") for _, equals, file in named):
        files = {name: read_range(Path(file)) for name, _, file in named}
        if len(files) < len(named):
            raise ConfigurationError("--usage: two files have the same name")
        return _in_order(joined(files), usage[0])
    if len(usage) > 1 or usage[0].endswith(".json"):
        raise ConfigurationError(
            "--usage: give one CSV file, or answers of Prometheus as NAME=FILE.json each"
        )
    return _in_order(read_usage(Path(usage[0])), usage[0])


def _read(path: Path, accepted: Callable[[str], A]) -> A:
    try:
        return accepted(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is no text: {error}") from error
    except KubesceneError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _in_order(rows: list[UsageRow], usage: str) -> list[UsageRow]:
    """The rows of a file, in order of time."""
    if not rows:
        raise ConfigurationError(f"{usage}: there are no samples")
    for before, row in pairwise(rows):
        if row.time < before.time:
            raise ConfigurationError(f"{row.where}: time: before the line above; sort by time")
    return rows


def _pod_samples(rows: list[UsageRow]) -> Iterator[PodUsageSample]:
    """What all pods used together at one time after the other."""
    for before, row in pairwise([None, *rows]):
        assert row is not None
        if before is not None and row.time == before.time:
            raise ConfigurationError(f"{row.where}: time: the same as in the line above")
        for name, amount in row.amounts.items():
            milli(amount, f"{row.where}: {name}")
        yield PodUsageSample(row.time, row.amounts, row.where, _replicas(row))


def _replicas(row: UsageRow) -> int | None:
    if REPLICAS not in row.amounts:
        return None
    thousandths = milli(row.amounts[REPLICAS], f"{row.where}: {REPLICAS}")
    if thousandths % 1000:
        raise ConfigurationError(
            f"{row.where}: {REPLICAS}: {row.amounts[REPLICAS]} is no whole number"
        )
    return thousandths // 1000


def _container_sample(row: UsageRow) -> vertical.UsageSample:
    """Millicores and bytes of one container; a row that names none is about the only one."""
    known = row.amounts
    cpu, memory = (
        milli(known[name], f"{row.where}: {name}") if name in known else None
        for name in ("cpu", "memory")
    )
    if cpu is None and memory is None:
        raise ConfigurationError(f"{row.where}: neither cpu nor memory was measured")
    return vertical.UsageSample(
        row.time,
        cpu=cpu,
        memory=None if memory is None else -(-memory // 1000),
        pod=known.get(POD, POD),
        container=known.get(CONTAINER, CONTAINER),
        oom=_truth(known.get(OOM, "false"), f"{row.where}: {OOM}"),
    )


def _truth(text: str, where: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in words:
        raise ConfigurationError(f"{where}: {text!r} is neither true nor false")
    return words[text.lower()]


def _requests(text: str) -> dict[str, str]:
    """``cpu=500m,memory=1Gi`` as a mapping."""
    requests: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, equals, amount = part.partition("=")
        if not equals or not name.strip():
            raise ConfigurationError(f"--requests: {part!r} is not written as cpu=500m")
        requests[name.strip()] = amount.strip()
    return requests


def _requested_units(requests: Mapping[str, str]) -> dict[str, int]:
    """Millicores and bytes."""
    found = {}
    for name, amount in requests.items():
        thousandths = milli(amount, f"--requests: {name}")
        is_cpu = name.rpartition("/")[2] == "cpu"
        found[name] = thousandths if is_cpu else -(-thousandths // 1000)
    return found


def _duration(option: str, text: str) -> Nanoseconds:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigurationError(f"{option}: {error}") from error
