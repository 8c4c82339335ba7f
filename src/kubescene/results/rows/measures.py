"""Measures as a table."""

import msgspec


class MeasureRow(msgspec.Struct, frozen=True, kw_only=True):
    """One measure; ``value`` is None where there is nothing to measure."""

    measure: str
    value: float | int | None
    unit: str
    meaning: str
