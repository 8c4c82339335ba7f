"""Durations as Go prints them, since users read them in messages."""

_UNITS = ((3_600_000_000_000, "h"), (60_000_000_000, "m"))


def go_duration(nanoseconds: int) -> str:
    """As ``time.Duration.String`` does: ``1h0m0s``, ``1m30s``, ``1.5s``, ``250ms``."""
    if nanoseconds == 0:
        return "0s"
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if left < 1_000_000_000:
        return sign + _below_a_second(left)
    text = ""
    for size, unit in _UNITS:
        if left >= size or text:
            text += f"{left // size}{unit}"
            left %= size
    return f"{sign}{text}{_decimal(left, 1_000_000_000)}s"


def _below_a_second(nanoseconds: int) -> str:
    for size, unit in ((1_000_000, "ms"), (1_000, "µs")):
        if nanoseconds >= size:
            return f"{_decimal(nanoseconds, size)}{unit}"
    return f"{nanoseconds}ns"


def _decimal(amount: int, size: int) -> str:
    whole, rest = divmod(amount, size)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(size)) - 1).rstrip('0')}"
