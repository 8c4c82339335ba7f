"""Formats of names and labels: their limits, and how they relate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.validation import names

TEXTS = st.text(alphabet="aZ0-._/\n é", max_size=70)


@pytest.mark.parametrize(
    ("rule", "limit"),
    [
        (names.dns_subdomain, 253),
        (names.dns_label, 63),
        (names.dns_1035_label, 63),
        (names.label_key, 63),
        (names.label_value, 63),
        (names.config_key, 253),
        (names.port_name, 15),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_length_is_limited_to_the_byte(rule: names.NameRule, limit: int) -> None:
    assert rule("a" * limit) == ()
    assert len(rule("a" * (limit + 1))) == 1


@given(TEXTS)
@settings(deadline=None, max_examples=200)
def test_every_label_is_a_subdomain(text: str) -> None:
    if not names.dns_label(text):
        assert not names.dns_subdomain(text)
        assert not names.label_value(text)
        assert not names.path_segment(text)


@given(TEXTS)
@settings(deadline=None, max_examples=200)
def test_label_key_is_a_name_or_a_prefixed_name(text: str) -> None:
    prefix, slash, name = text.rpartition("/")
    fine = bool(name) and not names.label_value(name)
    if slash:
        fine = fine and not names.dns_subdomain(prefix)
    assert (not names.label_key(text)) == fine


@pytest.mark.parametrize(
    "rule",
    [names.dns_subdomain, names.dns_label, names.label_key, names.label_value, names.env_name],
    ids=lambda rule: rule.__name__,
)
def test_line_break_at_the_end_is_refused(rule: names.NameRule) -> None:
    assert rule("a\n")


def test_length_counts_bytes() -> None:
    assert names.size("é" * 3) == 6


@pytest.mark.parametrize(
    ("prefix", "seen"),
    [("web-", "wea"), ("web", "web"), ("-", "-"), ("a-", "a")],
    ids=["dash", "no-dash", "dash-only", "short"],
)
def test_generate_name_may_end_in_a_dash(prefix: str, seen: str) -> None:
    assert names.as_prefix(prefix) == seen
