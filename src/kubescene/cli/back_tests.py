"""Back-tests as the command line asks for them: files and texts to values, faults by name."""

from pathlib import Path

from kubescene.autoscalers.horizontal import BackTest, UsageSample, back_test
from kubescene.autoscalers.horizontal.accepting import accepted
from kubescene.autoscalers.horizontal.usage import milli
from kubescene.autoscalers.usage_files import UsageRow, read_usage
from kubescene.clock.timestamps import parse_duration
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.types import JsonObject, Nanoseconds


def back_tested(
    hpa: Path, usage: Path, *, requests: str, replicas: int | None, interval: str, startup: str
) -> BackTest:
    """The back-test of two files; raises `ConfigurationError` that names file or option."""
    return back_test(
        _autoscaler(hpa),
        [_sample(row) for row in read_usage(usage)],
        requests=_requests(requests),
        replicas=replicas,
        interval=_duration("--interval", interval),
        startup=_duration("--startup", startup),
    )


def _autoscaler(path: Path) -> JsonObject:
    try:
        return accepted(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is no text: {error}") from error
    except KubesceneError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _sample(row: UsageRow) -> UsageSample:
    for name, amount in row.amounts.items():
        milli(amount, f"{row.where}: {name}")
    return UsageSample(row.time, row.amounts)


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
