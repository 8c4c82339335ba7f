"""Quantities against exact rationals and against what Kubernetes itself answers.

``data/quantities.json`` holds answers of k8s.io/apimachinery v0.36.0 to a few hundred texts, most
of them random: canonical text as parsed, canonical text once recomputed, format, Value and
MilliValue. A null stands where Go overflows int64, or rounds a long negative text the wrong way.
"""

import json
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api import quantity
from kubescene.api.quantity import Quantity, QuantityError, QuantityFormat, parse

UPSTREAM: dict[str, list[list[Any]]] = json.loads(
    (Path(__file__).parent / "data" / "quantities.json").read_text()
)

SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{prefix}i": Fraction(1024**power) for power, prefix in enumerate("KMGTPE", start=1)},
    **{f"e{power}": Fraction(10) ** power for power in range(-12, 13)},
    **{f"E{power}": Fraction(10) ** power for power in range(-12, 13)},
}


def away_from_zero(number: Fraction) -> int:
    return ceil(number) if number >= 0 else floor(number)


def exact(text: str) -> Fraction:
    """An independent reading of a well-formed quantity, rounded to nano-units."""
    suffix = next(s for s in sorted(SUFFIXES, key=len, reverse=True) if text.endswith(s))
    number = Fraction(text.removesuffix(suffix)) * SUFFIXES[suffix]
    return Fraction(away_from_zero(number * 10**9), 10**9)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Quantities whose sums stay below 2**63, where upstream caps them."""
    sign = draw(st.sampled_from(["", "", "-", "+"]))
    fraction = draw(st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,12}", fullmatch=True)))
    suffix = draw(st.sampled_from([s for s in SUFFIXES if s not in ("Pi", "Ei", "P", "E")]))
    most = min(10 ** draw(st.integers(0, 14)), int(2**61 / SUFFIXES[suffix]))
    whole = str(draw(st.integers(0, most)))
    return f"{sign}{whole}{fraction}{suffix}"


quantities = st.builds(parse, texts())
properties = settings(deadline=None, max_examples=150)


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=repr(row[0])) for row in UPSTREAM["quantities"]]
)
def test_agrees_with_apimachinery(row: list[Any]) -> None:
    text, canonical, recomputed, format_name, units, thousandths = row
    read = parse(text)
    assert str(read) == canonical
    assert str(read + quantity.ZERO) == recomputed
    assert read.format.value == format_name
    assert units is None or read.value() == units
    assert thousandths is None or read.milli_value() == thousandths


@pytest.mark.parametrize("row", [pytest.param(row, id=repr(row[0])) for row in UPSTREAM["errors"]])
def test_refuses_in_the_words_of_apimachinery(row: list[str]) -> None:
    text, message = row
    with pytest.raises(QuantityError) as refusal:
        parse(text)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1024Mi", "1Gi"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("100e-3", "100e-3"),
        ("1000m", "1"),
        ("0.1n", "1n"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("1000000", "1M"),
        ("8Ei", "9223372036854775807"),
        ("-16Ei", "-9223372036854775807"),
        ("1.001", "1.001"),
        ("0Gi", "0"),
        ("-0", "0"),
        (" 2Gi ", "2Gi"),
        ("2000E", "2000E"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@pytest.mark.parametrize(
    ("number", "canonical"),
    [(4, "4"), (0, "0"), (1000, "1k"), (-3, "-3"), (0.1, "100m"), (1e-07, "100e-9")],
)
def test_json_numbers_are_quantities(number: float, canonical: str) -> None:
    assert str(parse(number)) == canonical


@pytest.mark.parametrize("number", [True, float("nan"), float("inf")])
def test_other_json_values_are_not(number: float) -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse(number)


@pytest.mark.parametrize("text", ["1e2000", "9" * 1001, "1" + "0" * 5000])
def test_monstrous_numbers_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="unable to parse numeric part of quantity"):
        parse(text)


def test_tiny_numbers_become_one_nano() -> None:
    assert parse("1e-2000000000") == parse("1n")
    assert parse("-1e-2000000000") == parse("-1n")


def test_values_saturate_at_int64() -> None:
    assert quantity.value("100E") == 2**63 - 1
    assert quantity.value("-100E") == -(2**63)
    assert quantity.milli_value("8Ei") == 2**63 - 1


def test_cached_functions_read_json_integers() -> None:
    assert quantity.milli_value(2) == 2000
    assert quantity.value(2) == 2
    assert quantity.canonical(2000) == "2k"


def test_equal_amounts_are_equal_however_written() -> None:
    assert parse("1Gi") == parse("1024Mi") == parse("1073741824")
    assert len({parse("1"), parse("1000m"), parse("1e0")}) == 1


def test_sum_takes_the_format_of_its_left_side() -> None:
    assert str(parse("1Gi") + parse("1k")) == "1073742824"
    assert str(parse("1Gi") + parse("1Mi")) == "1025Mi"
    assert str(parse("1k") + parse("1Ki")) == "2024"


def test_zero_takes_the_format_of_the_other_side() -> None:
    assert (quantity.ZERO + parse("4Gi")).format is QuantityFormat.BINARY_SI
    assert str(quantity.ZERO - parse("4Gi")) == "-4Gi"


def test_made_from_whole_numbers() -> None:
    assert str(quantity.from_value(2**30, QuantityFormat.BINARY_SI)) == "1Gi"
    assert str(quantity.from_milli(1500)) == "1500m"


@properties
@given(texts())
def test_number_is_exact(text: str) -> None:
    read, truth = parse(text), exact(text)
    assert Fraction(read.nanos, 10**9) == truth
    assert read.value() == away_from_zero(truth)
    if abs(truth) < 2**53:
        assert read.milli_value() == away_from_zero(truth * 1000)


@properties
@given(texts(), texts())
def test_order_and_arithmetic_are_those_of_the_rationals(left: str, right: str) -> None:
    a, b = parse(left), parse(right)
    x, y = exact(left), exact(right)
    assert (a < b, a <= b, a == b, a >= b, a > b) == (x < y, x <= y, x == y, x >= y, x > y)
    assert Fraction((a + b).nanos, 10**9) == x + y
    assert Fraction((a - b).nanos, 10**9) == x - y
    assert Fraction((-a).nanos, 10**9) == -x


@properties
@given(quantities)
def test_printed_text_reads_back(read: Quantity) -> None:
    assert parse(str(read)) == read
    assert parse(str(-read)) == -read


@properties
@given(texts())
def test_canonical_is_idempotent(text: str) -> None:
    once = quantity.canonical(text)
    assert quantity.canonical(once) == once


@pytest.mark.parametrize("digits", ["0", "1", "0.0", "10"])
def test_many_digits_before_a_wrong_letter_are_refused_at_once(digits: str) -> None:
    with pytest.raises(QuantityError):
        parse(digits * 50_000 + "!")
