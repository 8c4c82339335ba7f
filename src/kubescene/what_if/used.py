"""What containers used: files of Prometheus or OpenCost, CSV, or a Prometheus that is asked.

A folder holds answers to ``query_range``, one query a file, whose name says what was measured
(``cpu.json``, ``memory-last-week.json``); a single file is given as ``cpu=FILE`` where its name
does not say it. A URL is asked by GET alone, for so long before the snapshot. OpenCost's daily
export has averages of whole days. What could not be used is counted, and told.
"""

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kubescene.api.quantity import QuantityError, parse
from kubescene.autoscalers.usage_files import (
    CONTAINER,
    POD,
    RangeSeries,
    range_of,
    read_range,
    read_usage,
)
from kubescene.autoscalers.vertical.amounts import CPU, MEMORY
from kubescene.client.http.endpoints import Endpoint
from kubescene.client.http.requests import Reply
from kubescene.clock import SECOND, ScaledClock
from kubescene.clock.timestamps import parse_time
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.snapshots.live import ReadingRequests
from kubescene.types import Nanoseconds

RESOURCES = (CPU, MEMORY)
MOST_POINTS = 11_000
"""Prometheus answers no more a series."""
LEAST_STEP = 60
MOST_BYTES = 512 * 1024 * 1024
"""Of one file."""
MOST_ROWS = 5_000_000
TIMEOUT_S = 120.0
OF_CONTAINERS = 'container!="",container!="POD"'
QUERIES = {
    CPU: "sum by (namespace, pod, container) "
    f"(rate(container_cpu_usage_seconds_total{{{OF_CONTAINERS}}}[5m]))",
    MEMORY: "max by (namespace, pod, container) "
    f"(container_memory_working_set_bytes{{{OF_CONTAINERS}}})",
}
COUNTER = "container_cpu_usage_seconds_total"
OTHERS = "kube_"
"""Metrics of kube-state-metrics: what was asked for, not what was used."""
OPENCOST = {CPU: "CPUCoreUsageAverage", MEMORY: "RAMBytesUsageAverage"}
IDLE = "__"


class User(NamedTuple):
    """Whose usage it is; ``owner`` is known where the source says it."""

    namespace: str
    pod: str
    container: str
    owner: str = ""


class Used(NamedTuple):
    """At a time so much: thousandths of a core, or bytes."""

    time: Nanoseconds
    amount: int


class UsageSamples:
    """All samples, by whose they are and what of."""

    def __init__(self) -> None:
        self.samples: dict[User, dict[str, list[Used]]] = {}
        self.left_out: Counter[str] = Counter()
        self.remarks: list[str] = []

    def add(self, user: User, resource: str, time: Nanoseconds, amount: Decimal) -> None:
        """``amount`` is in cores or bytes."""
        if not amount.is_finite() or amount < 0:
            self.left_out["amounts that are none"] += 1
            return
        units = math.ceil(amount * 1000) if resource == CPU else math.ceil(amount)
        self.samples.setdefault(user, {}).setdefault(resource, []).append(Used(time, units))

    def told(self) -> list[str]:
        """What is to be known before an answer is believed."""
        counts = [f"{times:,} {what}" for what, times in sorted(self.left_out.items())]
        left = [f"usage: left out were {', '.join(counts)}"] if counts else []
        return [*dict.fromkeys(self.remarks), *left]


def recorded_usage(sources: Sequence[str], until: Nanoseconds, window: Nanoseconds) -> UsageSamples:
    """All that these sources know; `ConfigurationError` with file and place for what is wrong."""
    found = UsageSamples()
    for source in sources:
        if source.startswith(("http://", "https://")):
            _asked(found, source, until, window)
            continue
        name, equals, rest = source.partition("=")
        path = Path(rest if equals and name in RESOURCES else source)
        if path.is_dir():
            _folder(found, path)
        else:
            _file(found, path, name if equals and name in RESOURCES else "")
    for of_user in found.samples.values():
        for samples in of_user.values():
            samples.sort()
    if not found.samples:
        raise ConfigurationError(f"{', '.join(sources)}: nobody's usage is in it")
    return found


def _folder(found: UsageSamples, folder: Path) -> None:
    files = sorted(each for each in folder.iterdir() if each.suffix in (".json", ".csv"))
    if not files:
        raise ConfigurationError(f"{folder}: there is no .json and no .csv file in it")
    for path in files:
        _file(found, path, "")


def _file(found: UsageSamples, path: Path, resource: str) -> None:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigurationError(f"{path}: it is larger than {MOST_BYTES} bytes: split it")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    if path.suffix == ".csv":
        _csv(found, path)
        return
    what = resource or next((each for each in RESOURCES if each in path.stem.lower()), "")
    if not what:
        raise ConfigurationError(
            f"{path}: what was measured? Name it cpu.json or memory.json, or say cpu={path}"
        )
    _series(found, read_range(path), what, str(path))


def _series(found: UsageSamples, series: Sequence[RangeSeries], resource: str, where: str) -> None:
    for each in series:
        labels = each.labels
        name = labels.get("__name__", "")
        if name == COUNTER:
            raise ConfigurationError(
                f"{where}: {COUNTER} only grows: ask for its rate, such as {QUERIES[CPU]}"
            )
        if name.startswith(OTHERS):
            found.left_out["series of what was asked for, not used"] += 1
            continue
        namespace, pod, container = (labels.get(key, "") for key in ("namespace", POD, CONTAINER))
        if not container or container == "POD":
            found.left_out["series of whole pods"] += 1
            continue
        if not namespace or not pod:
            found.left_out["series without namespace or pod"] += 1
            continue
        for time, amount in each.values.items():
            found.add(User(namespace, pod, container), resource, time, amount)


# -- asked ---------------------------------------------------------------------------------------


def _asked(found: UsageSamples, url: str, until: Nanoseconds, window: Nanoseconds) -> None:
    requests = ReadingRequests(
        Endpoint(url.rstrip("/")), ScaledClock(1), timeout_s=TIMEOUT_S, max_reply=MOST_BYTES
    )
    seconds = max(window // SECOND, 1)
    step = max(LEAST_STEP, -(-seconds // (MOST_POINTS - 1)))
    end = until // SECOND
    try:
        for resource, query in QUERIES.items():
            where = f"{url} ({resource})"
            read = _reader(where)
            given = {"start": str(end - seconds), "end": str(end), "step": str(step)}
            series = requests.read("/api/v1/query_range", read, query=query, **given)
            _series(found, series, resource, where)
    except KubesceneError as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{url}: {error}") from error
    finally:
        requests.close()


def _reader(where: str) -> Callable[[Reply], list[RangeSeries]]:
    return lambda reply: range_of(reply.body, where)


# -- CSV -----------------------------------------------------------------------------------------


def _csv(found: UsageSamples, path: Path) -> None:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file), [])
            if "Date" not in header:
                _own(found, path)
                return
            lines = csv.DictReader(file, fieldnames=header, strict=True)
            _opencost(found, lines, header, path)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path}: is no CSV file: {error}") from error


def _opencost(
    found: UsageSamples, lines: Iterator[dict[str, str]], header: Sequence[str], path: Path
) -> None:
    """Rows by day and container; columns by name, since versions differ in them."""
    for name in ("Namespace", "Pod", "Container", *OPENCOST.values()):
        if name not in header:
            raise ConfigurationError(f"{path}:1: there is no column {name!r} of OpenCost's")
    found.remarks.append(
        f"usage within days: {path.name} has averages of whole days, which hide peaks"
    )
    for number, row in enumerate(islice(lines, MOST_ROWS), 2):
        namespace = row.get("Namespace") or ""
        if namespace.startswith(IDLE) or not row.get("Pod"):
            found.left_out["rows of what is idle"] += 1
            continue
        owner = f"{row.get('ControllerKind') or ''}/{row.get('ControllerName') or ''}".lower()
        user = User(namespace, row["Pod"], row.get("Container") or "", owner.strip("/"))
        time = _day(row.get("Date") or "", f"{path}:{number}: Date")
        for resource, column in OPENCOST.items():
            if text := row.get(column):
                found.add(user, resource, time, _decimal(text, f"{path}:{number}: {column}"))


def _day(text: str, where: str) -> Nanoseconds:
    try:
        return parse_time(text if "T" in text else f"{text[:10]}T00:00:00Z")
    except ValueError as error:
        raise ConfigurationError(f"{where}: {text!r} is no day such as 2026-03-01") from error


def _decimal(text: str, where: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ConfigurationError(f"{where}: {text!r} is no number") from None


def _own(found: UsageSamples, path: Path) -> None:
    """Columns time, namespace, pod, container, cpu, memory."""
    for row in read_usage(path):
        names: Mapping[str, str] = row.amounts
        missing = [each for each in ("namespace", POD, CONTAINER) if each not in names]
        if missing:
            raise ConfigurationError(f"{row.where}: it has no {missing[0]}")
        user = User(names["namespace"], names[POD], names[CONTAINER])
        for resource in RESOURCES:
            if text := names.get(resource):
                try:
                    nanos = parse(text).nanos
                except QuantityError as error:
                    raise ConfigurationError(f"{row.where}: {resource}: {error}") from error
                found.add(user, resource, row.time, Decimal(nanos).scaleb(-9))
