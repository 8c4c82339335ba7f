"""Protobuf bodies against what Go makes of the same bytes.

``data/protobuf_pairs.jsonl.gz`` was written by a Go program on k8s.io/api v0.36.6: objects of
every registered kind, filled by reflection, encoded as protobuf, decoded again and printed as
JSON. The small cases below are spelled byte by byte instead.
"""

import gzip
import itertools
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubescene.apiserver.kubernetes.protobuf import decode, is_protobuf, load_types
from kubescene.errors import BadRequestError

PAIRS = Path(__file__).parent / "data/protobuf_pairs.jsonl.gz"


@cache
def pairs() -> list[tuple[bytes, Any]]:
    with gzip.open(PAIRS, "rt", encoding="utf-8") as lines:
        read = [json.loads(line) for line in lines]
    return [(bytes.fromhex(pair["protobuf"]), pair["json"]) for pair in read]


def pairs_by_version() -> dict[str, list[tuple[bytes, Any]]]:
    def version(pair: tuple[bytes, Any]) -> str:
        return str(pair[1]["apiVersion"])

    return {v: list(group) for v, group in itertools.groupby(sorted(pairs(), key=version), version)}


def without_nulls(value: Any) -> Any:
    """Go prints nil lists and zero times as null; an absent field means the same."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def chunk(field: int, *parts: bytes | str) -> bytes:
    content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def body(api_version: str, kind: str, *raw: bytes) -> bytes:
    return b"k8s\x00" + chunk(1, chunk(1, api_version), chunk(2, kind)) + chunk(2, *raw)


def spec_of(api_version: str, kind: str, *raw: bytes) -> Any:
    return decode(body(api_version, kind, chunk(2, *raw)))["spec"]


@pytest.mark.parametrize("version", sorted(pairs_by_version()))
def test_kinds_decode_as_go_prints_them(version: str) -> None:
    for raw, printed in pairs_by_version()[version]:
        # dumps tells 1 from true and from 1.0
        decoded = json.dumps(without_nulls(decode(raw)), sort_keys=True)
        assert decoded == json.dumps(without_nulls(printed), sort_keys=True), printed["kind"]


def test_every_kind_of_the_table_is_compared_with_go() -> None:
    compared = {(printed["apiVersion"], printed["kind"]) for _, printed in pairs()}
    kinds = load_types().kinds
    known = {(version.replace("*", "v1"), kind) for version in kinds for kind in kinds[version]}
    assert compared - {("apps/v1", options) for options in kinds["*"]} == known


def test_api_version_and_kind_come_from_the_envelope() -> None:
    raw = body("v1", "ConfigMap", chunk(1, chunk(1, "settings")))
    assert list(decode(raw).items()) == [
        ("apiVersion", "v1"),
        ("kind", "ConfigMap"),
        ("metadata", {"name": "settings"}),
    ]


def test_delete_options_belong_to_every_group_version() -> None:
    raw = body("example.com/v7", "DeleteOptions", number(1, 0), chunk(4, "Background"))
    assert decode(raw) == {
        "apiVersion": "example.com/v7",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }


def test_zero_stays_behind_a_pointer_and_goes_without() -> None:
    replicas_and_paused = number(1, 0) + number(7, 0)
    assert spec_of("apps/v1", "Deployment", replicas_and_paused) == {"replicas": 0}


def test_unknown_fields_are_skipped() -> None:
    newer = [
        number(900, 1),
        chunk(901, b"\xff\xff"),
        varint(902 << 3 | 1) + bytes(8),
        varint(903 << 3 | 5) + bytes(4),
    ]
    assert spec_of("apps/v1", "Deployment", *newer, number(1, 3)) == {"replicas": 3}


def test_numbers_come_packed_or_one_by_one() -> None:
    single = number(4, 10) + number(4, -1)
    packed = chunk(4, varint(10), varint(-1))
    for groups in (single, packed):
        security = spec_of("v1", "Pod", chunk(14, groups))["securityContext"]
        assert security == {"supplementalGroups": [10, -1]}


def test_a_message_that_comes_twice_is_merged() -> None:
    raw = body("v1", "Pod", chunk(1, chunk(1, "a")), chunk(1, chunk(3, "b"), chunk(1, "c")))
    assert decode(raw)["metadata"] == {"name": "c", "namespace": "b"}


def test_the_last_of_a_repeated_scalar_wins_even_when_zero() -> None:
    raw = body("v1", "Pod", chunk(1, chunk(1, "a"), chunk(1, "")))
    assert decode(raw)["metadata"] == {}


def test_map_entry_without_key_or_value_is_zero() -> None:
    raw = body("v1", "ConfigMap", chunk(2), chunk(2, chunk(1, "k")), chunk(2, chunk(2, "v")))
    assert decode(raw)["data"] == {"": "v", "k": ""}


def test_micro_time_keeps_six_digits_and_time_none() -> None:
    moment = number(1, 1_767_225_600) + number(2, 123_456_789)
    raw = body("coordination.k8s.io/v1", "Lease", chunk(2, chunk(4, moment)))
    assert decode(raw)["spec"] == {"renewTime": "2026-01-01T00:00:00.123456Z"}
    meta = chunk(1, chunk(8, moment))
    assert decode(body("v1", "Pod", meta))["metadata"] == {
        "creationTimestamp": "2026-01-01T00:00:00Z"
    }


def test_embedded_object_may_be_json_or_protobuf() -> None:
    pod = body("v1", "Pod", chunk(1, chunk(1, "a")))
    raw = body("v1", "List", chunk(2, chunk(1, pod)), chunk(2, chunk(1, '{"kind":"X"}')))
    assert decode(raw)["items"] == [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
        {"kind": "X"},
    ]


def crd(schema: bytes) -> bytes:
    return body(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", chunk(2, chunk(7, chunk(4, schema)))
    )


def nested_schema(levels: int) -> bytes:
    schema = chunk(5, "string")
    for _ in range(levels):
        schema = chunk(29, chunk(1, "p"), chunk(2, schema))
    return crd(chunk(1, schema))


def test_deep_schemas_decode() -> None:
    assert json.dumps(decode(nested_schema(80))).count('"properties"') == 80


MALFORMED = {
    "empty": (b"", "expected prefix"),
    "json": (b'{"kind":"Pod"}', "expected prefix"),
    "no-kind": (b"k8s\x00", "'Kind' is missing"),
    "no-version": (body("", "Pod"), "'apiVersion' is missing"),
    "unknown-kind": (body("v1", "Pot"), 'no kind "Pot" is registered for version "v1"'),
    "kind-of-other-group": (body("v1", "Deployment"), "no kind"),
    "trailing-garbage": (body("v1", "Pod") + b"\x00\x01", "illegal tag 0"),
    "cut-length": (body("v1", "Pod")[:-1] + b"\x05", "unexpected end"),
    "cut-varint": (body("v1", "Pod", b"\x80"), "unexpected end"),
    "length-beyond-message": (body("v1", "Pod", b"\x0a\x02\x0a\x7f"), "unexpected end"),
    "varint-beyond-message": (body("v1", "Pod", chunk(2, b"\x20\x80"), chunk(3)), "unexpected end"),
    "eleven-byte-varint": (body("v1", "Pod", b"\x80" * 10 + b"\x01"), "integer overflow"),
    "group": (body("v1", "Pod", b"\x23\x24"), "illegal wireType 3"),
    "wrong-wire-type": (body("v1", "Pod", number(1, 1)), "wrong wireType = 0 for field metadata"),
    "bad-utf8": (body("v1", "Pod", chunk(1, chunk(1, b"\xff"))), "not valid UTF-8"),
    "too-deep": (nested_schema(200), "nested too deeply"),
    "bad-embedded-json": (body("v1", "List", chunk(2, chunk(1, "{"))), "embedded JSON is invalid"),
    "year-10000": (
        body("v1", "Pod", chunk(1, chunk(8, number(1, 253_402_300_800)))),
        "outside of the years",
    ),
    "not-a-number": (
        crd(chunk(1, varint(9 << 3 | 1), struct.pack("<d", float("nan")))),
        "unsupported value",
    ),
    "bad-int-or-string": (
        body("policy/v1", "PodDisruptionBudget", chunk(2, chunk(1, number(1, 2)))),
        "impossible IntOrString.Type",
    ),
}


@pytest.mark.parametrize(("raw", "reason"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_bodies_are_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(BadRequestError, match="unable to decode the protobuf body") as refusal:
        decode(raw)
    assert reason in refusal.value.message
    assert refusal.value.to_status()["code"] == 400


def test_max_depth_is_the_callers_choice() -> None:
    raw = body("v1", "Pod", chunk(1, chunk(1, "a")))
    assert decode(raw, max_depth=3)["metadata"] == {"name": "a"}
    with pytest.raises(BadRequestError, match="nested too deeply"):
        decode(raw, max_depth=2)


def survives(raw: bytes) -> None:
    try:
        decoded = decode(raw)
    except BadRequestError:
        return
    json.dumps(decoded)


@settings(deadline=None, max_examples=200)
@given(content=st.binary(max_size=200), kind=st.sampled_from(["Pod", "List", "Secret", "Event"]))
@example(content=b"\xff" * 40, kind="Pod")
def test_random_bytes_decode_or_are_refused(content: bytes, kind: str) -> None:
    survives(content)
    survives(b"k8s\x00" + content)
    survives(body("v1", kind, content))


@settings(deadline=None, max_examples=400)
@given(data=st.data())
def test_damaged_bodies_decode_or_are_refused(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(pairs()))[0])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    survives(bytes(raw))


@settings(deadline=None, max_examples=100)
@given(pair=st.integers(min_value=0), share=st.floats(0, 1, exclude_max=True))
def test_objects_cut_short_are_refused(pair: int, share: float) -> None:
    raw = pairs()[pair % len(pairs())][0]
    raw = raw.removesuffix(b"\x1a\x00\x22\x00")  # Go always adds an empty encoding and type
    start = 6 + raw[5] + 1  # after prefix, type and the tag of the object
    with pytest.raises(BadRequestError):
        decode(raw[: start + int((len(raw) - start) * share)])


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/vnd.kubernetes.protobuf", True),
        ("Application/vnd.kubernetes.protobuf; charset=utf-8", True),
        ("application/vnd.kubernetes.protobuf;stream=watch", True),
        ("application/json", False),
        ("application/vnd.kubernetes.protobuf+x", False),
        ("", False),
    ],
)
def test_is_protobuf(content_type: str, expected: bool) -> None:
    assert is_protobuf(content_type) is expected
