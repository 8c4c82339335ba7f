"""Chance and identity that are the same on every machine."""

import re
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.clock import Identities, Stream, Streams

PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]
"""The first five numbers of SplitMix64 from seed 1234567, as its authors give them."""


def draw(stream: Stream, count: int = 8) -> list[int]:
    return [stream.next_u64() for _ in range(count)]


def test_the_generator_is_splitmix64() -> None:
    assert draw(Stream(1234567), 5) == PUBLISHED


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**64 - 1), st.integers(1, 2**64))
def test_below_stays_below(state: int, bound: int) -> None:
    assert 0 <= Stream(state).below(bound) < bound


def test_below_draws_again_rather_than_favour_small_numbers() -> None:
    # With this bound every draw of 2**63 + 1 or more would come out too often as a small number.
    bound = 2**63 + 1
    accepted = [value for value in draw(Stream(1234567), 5) if value < bound]
    assert Stream(1234567).below(bound) == accepted[0]
    seed_with_large_first = next(s for s in range(100) if Stream(s).next_u64() >= bound)
    following = next(v for v in draw(Stream(seed_with_large_first), 50) if v < bound)
    assert Stream(seed_with_large_first).below(bound) == following


def test_below_reaches_every_value_about_equally_often() -> None:
    stream = Stream(7)
    counts = [0] * 6
    for _ in range(6000):
        counts[stream.below(6)] += 1
    assert all(850 < count < 1150 for count in counts)


@pytest.mark.parametrize("bound", [0, -1, 2**64 + 1])
def test_below_refuses_bounds_it_cannot_honour(bound: int) -> None:
    with pytest.raises(ValueError, match="bound must be"):
        Stream(0).below(bound)


def test_uniform_is_in_the_half_open_unit_interval() -> None:
    stream = Stream(3)
    assert all(0.0 <= stream.uniform() < 1.0 for _ in range(1000))


def test_streams_of_one_name_and_seed_are_equal_and_others_are_not() -> None:
    arrivals = draw(Streams(5).stream("arrivals"))
    assert draw(Streams(5).stream("arrivals")) == arrivals
    assert draw(Streams(5).stream("sizes")) != arrivals
    assert draw(Streams(6).stream("arrivals")) != arrivals


def test_a_name_asked_again_goes_on_where_it_was_left() -> None:
    expected = draw(Streams(5).stream("arrivals"), 16)
    streams = Streams(5)
    drawn = draw(streams.stream("arrivals")) + draw(streams.stream("arrivals"))
    assert drawn == expected


def test_reset_gives_every_name_its_beginning() -> None:
    streams = Streams(5)
    first = draw(streams.stream("arrivals"))
    streams.reset()
    assert draw(streams.stream("arrivals")) == first
    streams.reset(6)
    assert draw(streams.stream("arrivals")) == draw(Streams(6).stream("arrivals"))


def test_copied_streams_go_on_alike_and_apart() -> None:
    streams = Streams(5)
    held = streams.stream("arrivals")
    held.normal(0, 1000)
    copied, held_copy = deepcopy((streams, held))
    assert copied.stream("arrivals") is held_copy
    expected = [held.normal(0, 1000) for _ in range(5)]
    assert [held_copy.normal(0, 1000) for _ in range(5)] == expected


def test_drawing_from_one_stream_does_not_move_another() -> None:
    streams = Streams(5)
    untouched = draw(Streams(5).stream("sizes"))
    busy, quiet = streams.stream("arrivals"), streams.stream("sizes")
    draw(busy, 100)
    assert draw(quiet) == untouched


def test_uids_have_the_shape_of_version_4() -> None:
    identities = Identities(9)
    shape = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
    assert all(shape.fullmatch(identities.uid("Pod", "default", f"p{n}")) for n in range(50))


def test_the_same_name_gets_another_uid_each_time() -> None:
    identities = Identities()
    uids = [identities.uid("Pod", "default", name) for _ in range(100) for name in "ab"]
    assert len(set(uids)) == 200


def test_identities_do_not_come_from_one_global_sequence() -> None:
    alone, among_others = Identities(1), Identities(1)
    for n in range(20):
        among_others.uid("Node", "", f"n{n}")
        among_others.name_suffix("Pod", "default", "other-")
        among_others.uid("Pod", "elsewhere", "a")
    assert alone.uid("Pod", "default", "a") == among_others.uid("Pod", "default", "a")
    expected = alone.name_suffix("Pod", "default", "web-")
    assert among_others.name_suffix("Pod", "default", "web-") == expected


def test_the_seed_changes_every_identity() -> None:
    assert Identities(1).uid("Pod", "default", "a") != Identities(2).uid("Pod", "default", "a")


def test_generated_names_use_the_alphabet_of_kubernetes() -> None:
    identities = Identities()
    suffixes = [identities.name_suffix("Pod", "default", "web-") for _ in range(200)]
    assert all(re.fullmatch(r"[bcdfghjklmnpqrstvwxz2456789]{5}", suffix) for suffix in suffixes)
    assert len(set(suffixes)) == 200


def test_reset_begins_again() -> None:
    identities = Identities(1)
    first = identities.uid("Pod", "default", "a")
    identities.reset(1)
    assert identities.uid("Pod", "default", "a") == first


def test_a_copy_of_identities_goes_on_alike_and_by_itself() -> None:
    own = Identities(seed=3)
    own.uid("Pod", "default", "a")
    twin = deepcopy(own)
    assert twin.uid("Pod", "default", "a") == own.uid("Pod", "default", "a")
    own.uid("Pod", "default", "b")
    assert twin.uid("Pod", "default", "b") == Identities(seed=3).uid("Pod", "default", "b")
    assert twin.uid("Pod", "default", "b") != Identities(seed=3).uid("Pod", "default", "b")
