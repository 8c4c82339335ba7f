"""Amounts, shares and times in words."""

import re

from kubescene.api.resource_requests import CPU, MEMORY

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
SECOND = 10**9
DIGITS = 100
"""Longer numbers are names; Python refuses to read very long ones."""


def told_amount(resource: str, amount: int) -> str:
    """Cores, bytes with their unit, or a plain number."""
    if resource == CPU:
        return f"{amount / 1000:,.3f}".rstrip("0").rstrip(".")
    return told_bytes(amount) if is_bytes(resource) else f"{amount:,}"


def is_bytes(resource: str) -> bool:
    """Whether a resource is measured in bytes, and not counted."""
    return resource == MEMORY or resource.endswith("storage") or resource.startswith("hugepages-")


def told_bytes(amount: int) -> str:
    unit = min(max(amount.bit_length() - 1, 0) // 10, len(BINARY) - 1)
    return f"{amount / 1024**unit:,.4g} {BINARY[unit]}"


def percent(part: int, whole: int) -> float:
    """Of nothing, whatever is asked for is too much."""
    if whole:
        return 100 * part / whole
    return 125.0 if part else 0.0


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts ``node-2`` before ``node-10``, whatever else a name holds."""
    return [
        (int(part), "") if part.isdecimal() and len(part) <= DIGITS else (-1, part)
        for part in re.split(r"(\d+)", name)
    ]


def told_duration(seconds: float) -> str:
    """A virtual time in at most two units."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else "0 s"
    if seconds < 60:
        return f"{seconds:.3g} s"
    left, amounts = round(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, size)
        amounts.append((amount, unit))
    first = next(place for place, (amount, _) in enumerate(amounts) if amount)
    return " ".join(f"{amount} {unit}" for amount, unit in amounts[first : first + 2] if amount)


def seconds(nanoseconds: int) -> float:
    return nanoseconds / SECOND


def time_step(end: float, most: int = 12) -> float:
    """How far marks of a time axis are from each other, so that there are at most so many."""
    steps = (0.1, 0.5, 1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600)
    days = (86400 * each for each in range(1, 32))
    return next((each for each in (*steps, *days) if end / each <= most), 31 * 86400.0)


def told_time(seconds: float, end: float = 0.0) -> str:
    """In the notation of ``end``, if that is later: times of one run look alike."""
    longest = max(seconds, end)
    if longest < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    if longest < 3600:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
