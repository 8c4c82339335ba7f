"""Resource quantities: exact numbers that remember how they were written.

A quantity is ``500m``, ``1.5Gi``, ``2e3`` or a bare JSON number. The number itself is held as an
integer count of nano-units, the finest step Kubernetes knows, so arithmetic and comparison are
exact and quick. Beside the number stands its `QuantityFormat`, the family of the suffix it came
with, which decides how it is printed: ``1024Mi`` becomes ``1Gi`` while ``1000M`` becomes ``1G``.

Printing chooses the largest suffix that leaves no fraction. As in kube-apiserver, a short text
that is near enough to that form is kept as it was written (``1.001`` stays ``1.001``); such a
text lives in `Quantity.text`.

Rounding is always away from zero: who asks for a little gets at least a little.

Where upstream errs, far outside of real clusters, we do not follow: `Quantity.value` and
`Quantity.milli_value` saturate where Go overflows int64 and round long negative texts away from
zero as well, amounts beyond the last suffix keep it (``1000E``, of which upstream prints ``1``),
and numbers of more than a thousand digits are refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from msgspec import Struct

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)

_NANO_DIGITS = 9
_UNIT = 10**_NANO_DIGITS
_MILLI = 10**6
_MAX_DIGITS = 1000
_MAX_EXPONENT = 2**31 - 1
_CACHE_SIZE = 16384

_SHAPE = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_WRONG_SHAPE = f"quantities must match the regular expression '{_SHAPE}'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"

# What the parser really takes is a little wider than the regular expression of its own error
# message: digits may be missing altogether, so that "k" and "." are zero.
# Nothing is given back (`*+`): a thousand digits before a wrong letter would be split in all ways.
_PARTS = re.compile(
    r"([+-]?)(0*+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII
)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)


class QuantityError(ValueError):
    """A text that is no quantity. The message is the one kube-apiserver gives."""


class QuantityFormat(Enum):
    """The family of suffixes in which a quantity is printed."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_NAMES = ("", *_BINARY)
_DECIMAL_NAMES = tuple(_DECIMAL)


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact amount. Equal amounts are equal however they are written: ``1Gi == 1024Mi``."""

    nanos: int
    format: QuantityFormat = field(default=QuantityFormat.DECIMAL_SI, compare=False)
    text: str = field(default="", compare=False, repr=False)
    is_written_whole: bool = field(default=True, compare=False, repr=False)
    """Whether Go holds it as a whole number: by the digits and suffix it was written with."""

    def value(self) -> int:
        """The amount in whole units, rounded away from zero, within int64."""
        return _saturated(_divide_away(self.nanos, _UNIT))

    def milli_value(self) -> int:
        """The amount in thousandths, rounded away from zero, within int64."""
        return _saturated(_divide_away(self.nanos, _MILLI))

    def __str__(self) -> str:
        return self.text or _printed(self.nanos, self.format)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __lt__(self, other: "Quantity") -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: "Quantity") -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: "Quantity") -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: "Quantity") -> bool:
        return self.nanos >= other.nanos

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nanos, self.format)

    def __add__(self, other: "Quantity") -> "Quantity":
        """The sum, in the format of the left side unless that is zero."""
        return Quantity(self.nanos + other.nanos, (self if self.nanos else other).format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        """The difference, in the format of the left side unless that is zero."""
        return Quantity(self.nanos - other.nanos, (self if self.nanos else other).format)


ZERO = Quantity(0)


def from_value(units: int, format: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:
    """The quantity of a whole number of units."""
    return Quantity(units * _UNIT, format)


def from_milli(thousandths: int, format: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:
    """The quantity of a whole number of thousandths."""
    return Quantity(thousandths * _MILLI, format)


@lru_cache(maxsize=_CACHE_SIZE)
def parse(value: str | int | float) -> Quantity:
    """Read a quantity as it stands in an API object; raise `QuantityError` if it is none.

    Blanks around a text are allowed, as they are in JSON bodies. A float is read by its
    shortest decimal form.
    """
    text = _text_of(value)
    parts = _PARTS.fullmatch(text) if text else None
    if parts is None:
        raise QuantityError(_WRONG_SHAPE)
    sign, zeros, whole, fraction, suffix = parts.groups(default="")
    written = _Written(text, sign == "-", whole or "0", fraction, *_interpret(suffix))
    if written.is_short():
        return written.exactly()
    if not zeros + whole + fraction:
        raise QuantityError(_WRONG_NUMBER)
    return written.rounded()


def value(quantity: str | int) -> int:
    """Whole units of a quantity, rounded up: what everything but cpu is counted in."""
    return parse(quantity).value()


@lru_cache(maxsize=_CACHE_SIZE)
def milli_value(quantity: str | int) -> int:
    """Thousandths of a quantity, rounded up: what cpu is counted in."""
    return parse(quantity).milli_value()


def canonical(quantity: str | int) -> str:
    """The text that kube-apiserver stores and prints for this quantity."""
    return str(parse(quantity))


class _Written(Struct, frozen=True):
    """A quantity taken apart: ``-1.50Mi`` is negative, whole "1", fraction "50", 2 to the 20."""

    text: str
    negative: bool
    whole: str
    fraction: str
    format: QuantityFormat
    exponent: int

    @property
    def digits(self) -> str:
        return self.whole + self.fraction

    @property
    def scale(self) -> int:
        """Power of ten that stands behind `digits`, the suffix of a binary quantity aside."""
        power = 0 if self.format is QuantityFormat.BINARY_SI else self.exponent
        return power - len(self.fraction)

    def is_short(self) -> bool:
        """Whether the number fits int64 and nano precision by the digits it is written with."""
        if self.format is QuantityFormat.BINARY_SI:
            return not self.fraction and len(self.whole) + self.exponent * 3 // 10 <= 14
        return len(self.digits) <= 18 and self.scale >= -_NANO_DIGITS

    def exactly(self) -> Quantity:
        """The quantity of a short text, which is kept where upstream keeps it."""
        nanos = self._nanos()
        kept = nanos != 0 and self._is_nearly_canonical()
        return Quantity(nanos, self.format, self.text if kept else "", self.scale >= 0)

    def rounded(self) -> Quantity:
        """The quantity of a long text: rounded to nano-units, binary ones capped at int64."""
        nanos = self._nanos()
        if self.format is not QuantityFormat.BINARY_SI:
            return Quantity(nanos, self.format, is_written_whole=False)
        cap = MAX_INT64 * _UNIT
        nanos = max(-cap, min(nanos, cap))
        small = 0 < abs(nanos) < _UNIT
        format = QuantityFormat.DECIMAL_SI if small else QuantityFormat.BINARY_SI
        return Quantity(nanos, format, is_written_whole=False)

    def _is_nearly_canonical(self) -> bool:
        if self.format is QuantityFormat.BINARY_SI:
            return int(self.whole) % 8 != 0
        odd = self.digits.startswith("0") or self.digits.endswith("000")
        return self.scale % 3 == 0 and not odd

    def _nanos(self) -> int:
        if len(self.digits) > _MAX_DIGITS:
            raise QuantityError(_WRONG_NUMBER)
        number = int(self.digits)
        if self.format is QuantityFormat.BINARY_SI:
            number <<= self.exponent
        nanos = _shifted(number, self.scale + _NANO_DIGITS)
        return -nanos if self.negative else nanos


def _text_of(value: str | int | float) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        raise QuantityError(_WRONG_SHAPE)
    return repr(value)


def _interpret(suffix: str) -> tuple[QuantityFormat, int]:
    """Format and exponent (of two or of ten) that a suffix stands for."""
    if (power := _DECIMAL.get(suffix)) is not None:
        return QuantityFormat.DECIMAL_SI, power
    if (power := _BINARY.get(suffix)) is not None:
        return QuantityFormat.BINARY_SI, power
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[1]) > 11 or abs(int(match[1])) > _MAX_EXPONENT:
        raise QuantityError(_WRONG_SUFFIX)
    return QuantityFormat.DECIMAL_EXPONENT, int(match[1])


def _shifted(number: int, power: int) -> int:
    """``number`` (not negative) times ten to the ``power``, rounded up to an integer."""
    if number == 0:
        return 0
    if power >= 0:
        if power > _MAX_DIGITS:
            raise QuantityError(_WRONG_NUMBER)
        return int(number * 10**power)
    # Nothing that we accept has so many digits: the result is one nano-unit, without the division.
    return 1 if -power > 2 * _MAX_DIGITS else _divide_away(number, 10**-power)


def _divide_away(number: int, divisor: int) -> int:
    """Division rounded away from zero."""
    return -(-number // divisor) if number >= 0 else number // divisor


def _saturated(number: int) -> int:
    return max(MIN_INT64, min(number, MAX_INT64))


def _printed(nanos: int, format: QuantityFormat) -> str:
    if nanos == 0:
        return "0"
    if format is QuantityFormat.BINARY_SI and abs(nanos) >= 1024 * _UNIT and nanos % _UNIT == 0:
        return _with_suffix(nanos // _UNIT, 1024, len(_BINARY_NAMES) - 1, _BINARY_NAMES.__getitem__)
    if format is QuantityFormat.DECIMAL_EXPONENT:
        return _with_suffix(nanos, 1000, _MAX_DIGITS, _exponent_suffix)
    return _with_suffix(nanos, 1000, len(_DECIMAL_NAMES) - 1, _DECIMAL_NAMES.__getitem__)


def _exponent_suffix(step: int) -> str:
    power = 3 * step - _NANO_DIGITS
    return f"e{power}" if power else ""


def _with_suffix(number: int, base: int, last: int, suffix: Callable[[int], str]) -> str:
    """``number`` with as many factors of ``base`` as possible moved into its suffix."""
    step = 0
    while step < last and number % base == 0:
        number //= base
        step += 1
    return f"{number}{suffix(step)}"
