"""Durations as Go writes and reads them: nanoseconds in 64 bits, exactly, without floating point.

Whatever is no duration, or is longer than Go's (292 years), is a `ValueError`.
"""

import re

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

_UNITS = {
    "ns": 1,
    "us": MICROSECOND,
    "\N{MICRO SIGN}s": MICROSECOND,
    "\N{GREEK SMALL LETTER MU}s": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_PART = re.compile(rf"(\d*+)(?:\.(\d*+))?({'|'.join(_UNITS)})", re.ASCII)
_LONGEST = (1 << 63) - 1
_LONGEST_NUMBER = len(str(_LONGEST))


def parse_duration(text: str) -> int:
    """A Go duration such as ``1h30m`` or ``250ms``, in nanoseconds; never negative.

    Digits below a nanosecond are dropped, as Go drops them.
    """
    length = _read(text)
    if length is None or text.startswith("-"):
        raise ValueError(f"{_shown(text)} is not a duration such as 90s, 5m or 1h30m")
    if length > _LONGEST:
        longest = format_duration(_LONGEST)
        raise ValueError(f"{_shown(text)} is too long: durations end at {longest}")
    return length


def parse_signed_duration(text: str) -> int:
    """A Go duration that may be negative; refused in the words of Go."""
    length = _read(text)
    if length is None or not -_LONGEST - 1 <= length <= _LONGEST:
        raise ValueError(f'time: invalid duration "{text}"')
    return length


def _read(text: str) -> int | None:
    """However long, or None: signs, numbers with units, and nothing else but ``0``."""
    if not isinstance(text, str):  # a file may hold anything
        raise TypeError(f"a duration is a text such as 90s, not {text!r}")
    negative, start = text.startswith("-"), int(text[:1] in ("-", "+"))
    if text[start:] == "0":
        return 0
    total, position = 0, start
    # Each match begins where the last one ended: a search would try thousands of digits anew.
    while match := _PART.match(text, position):
        whole, fraction, unit = match.groups()
        if not whole and not fraction:
            return None
        total += _part(whole, fraction, _UNITS[unit])
        position = match.end()
    if position == start or position != len(text):
        return None
    return -total if negative else total


def _part(whole: str, fraction: str | None, scale: int) -> int:
    # Of thousands of digits only the first can matter: beyond 20 all numbers are too long, and an
    # hour has 13 in nanoseconds.
    digits = (fraction or "")[:_LONGEST_NUMBER]
    below: int = int(digits or "0") * scale // 10 ** len(digits)
    return int(whole.lstrip("0")[: _LONGEST_NUMBER + 1] or "0") * scale + below


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def go_seconds(seconds: int) -> int:
    """So many seconds as a Go duration, in nanoseconds: beyond 292 years it wraps around."""
    return (seconds * SECOND + _LONGEST + 1) % (1 << 64) - _LONGEST - 1


def go_duration(duration: int) -> str:
    """As Go prints it, every unit below the largest: ``1h0m0s``, ``1m30s``, ``1.5s``, ``250ms``."""
    sign, rest = ("-", -duration) if duration < 0 else ("", duration)
    if rest < SECOND:
        return sign + _below_a_second(rest)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    text = f"{hours}h" if hours else ""
    text += f"{minutes}m" if hours or minutes else ""
    return f"{sign}{text}{_decimal(rest, SECOND)}s"


def _below_a_second(duration: int) -> str:
    if duration == 0:
        return "0s"
    for unit, scale in (("ms", MILLISECOND), ("µs", MICROSECOND)):
        if duration >= scale:
            return f"{_decimal(duration, scale)}{unit}"
    return f"{duration}ns"


def _decimal(duration: int, scale: int) -> str:
    whole, fraction = divmod(duration, scale)
    digits = f"{fraction:0{len(str(scale)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def format_duration(duration: int) -> str:
    """The shortest Go-like form: ``1h30m0s`` becomes ``1h30m``; zero is ``0s``."""
    if duration == 0:
        return "0s"
    sign, rest = ("-", -duration) if duration < 0 else ("", duration)
    parts = []
    for unit, scale in (("h", HOUR), ("m", MINUTE)):
        count, rest = divmod(rest, scale)
        if count:
            parts.append(f"{count}{unit}")
    if rest:
        parts.append(f"{_decimal(rest, SECOND)}s")
    return sign + "".join(parts)
