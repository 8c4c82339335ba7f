"""Back-tests as the command line asks for them: files and texts to values, faults by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kubescene.autoscalers import horizontal, vertical
from kubescene.autoscalers.horizontal.back_tests import milli
from kubescene.autoscalers.usage_files import UsageRow, read_usage
from kubescene.durations import parse_duration
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.reports import horizontal_back_tests, vertical_back_tests
from kubescene.types import JsonObject, Nanoseconds

A = TypeVar("A")

POD, CONTAINER, OOM = "pod", "container", "oom"
"""Columns of a vertical back-test that say whose usage a row is, and whether it was killed."""


class Shown(NamedTuple):
    """A back-test as it can be printed."""

    document: Callable[[], JsonObject]
    lines: Callable[[bool], Iterable[str]]


def back_tested(
    usage: Path,
    *,
    hpa: Path | None,
    vpa: Path | None,
    interval: str,
    for_hpa: Mapping[str, Any],
) -> Shown:
    """The back-test of an autoscaler's file; raises `ConfigurationError` naming file or option.

    ``for_hpa`` are options that mean nothing to a vertical autoscaler.
    """
    if hpa is not None and vpa is None:
        return _horizontal(hpa, usage, interval or "15s", for_hpa)
    if vpa is None or hpa is not None:
        raise ConfigurationError("give either --hpa or --vpa")
    if idle := next((name for name, value in for_hpa.items() if value not in ("", None)), None):
        raise ConfigurationError(f"{idle} is for --hpa: a vertical autoscaler has no use for it")
    return _vertical(vpa, usage, interval or "1m")


def _horizontal(hpa: Path, usage: Path, interval: str, options: Mapping[str, Any]) -> Shown:
    test = horizontal.back_test(
        _read(hpa, horizontal.accepted),
        list(_pod_samples(_some(read_usage(usage), usage))),
        requests=_requests(options["--requests"]),
        replicas=options["--replicas"],
        interval=_duration("--interval", interval),
        startup=_duration("--startup", options["--startup"] or "0s"),
    )
    return Shown(
        partial(horizontal_back_tests.document, test), partial(horizontal_back_tests.lines, test)
    )


def _vertical(vpa: Path, usage: Path, interval: str) -> Shown:
    samples = list(_container_samples(_some(read_usage(usage), usage)))
    every = _duration("--interval", interval)
    test = vertical.back_test(_read(vpa, vertical.read_vpa), samples, every=every)
    return Shown(
        partial(vertical_back_tests.document, test), partial(vertical_back_tests.lines, test)
    )


def _read(path: Path, accepted: Callable[[str], A]) -> A:
    try:
        return accepted(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is no text: {error}") from error
    except KubesceneError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _some(rows: list[UsageRow], usage: Path) -> list[UsageRow]:
    """The rows of a file, in order of time."""
    if not rows:
        raise ConfigurationError(f"{usage}: there are no samples")
    for before, row in pairwise(rows):
        if row.time < before.time:
            raise ConfigurationError(f"{row.where}: time: before the line above; sort by time")
    return rows


def _pod_samples(rows: list[UsageRow]) -> Iterator[horizontal.UsageSample]:
    """What all pods used together at one time after the other."""
    for before, row in pairwise([None, *rows]):
        assert row is not None
        if before is not None and row.time == before.time:
            raise ConfigurationError(f"{row.where}: time: the same as in the line above")
        for name, amount in row.amounts.items():
            milli(amount, f"{row.where}: {name}")
        yield horizontal.UsageSample(row.time, row.amounts, row.where)


def _container_samples(rows: list[UsageRow]) -> Iterator[vertical.UsageSample]:
    return map(_container_sample, rows)


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


def _duration(option: str, text: str) -> Nanoseconds:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigurationError(f"{option}: {error}") from error
