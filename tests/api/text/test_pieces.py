"""Large JSON texts in pieces: what comes out is what comes out at one go."""

import json
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.api.text import encoding, pieces, reading

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)
LARGE = {
    "kind": "List",
    "items": [{"n": number, "text": "u" * 40, "more": {"a": [1, 2, 3]}} for number in range(50)],
}


def outcome(read: Any, text: bytes) -> Any:
    try:
        return read(text)
    except orjson.JSONDecodeError as error:
        return str(error)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long each text was that was read at one go, where pieces are of 200 bytes."""
    found: list[int] = []

    def loads(text: Any) -> Any:
        found.append(len(text))
        return orjson.loads(text)

    monkeypatch.setattr(pieces, "PIECE", 200)
    stand_in = SimpleNamespace(loads=loads, JSONDecodeError=orjson.JSONDecodeError)
    monkeypatch.setattr(pieces, "orjson", stand_in)
    return found


@given(VALUES, st.sampled_from([None, 1, 3]))
def test_the_value_is_that_of_the_whole_text(value: Any, indent: int | None) -> None:
    text = b" " + json.dumps(value, indent=indent, ensure_ascii=False).encode(errors="replace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", 8)
        assert outcome(pieces.loads, text) == outcome(orjson.loads, text)


@given(VALUES, st.data())
def test_so_is_the_error(value: Any, data: st.DataObject) -> None:
    text = bytearray(json.dumps([value, {"a": value}]).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from([*b'{}[]",:\\0x.-e\n\x00\xff\xc3']))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", 8)
        assert outcome(pieces.loads, bytes(text)) == outcome(orjson.loads, bytes(text))


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1, "b": [1, 2, 3], "a": [{"c": 2, "c": 3}]}',
        b'{"\\ud800": [1, 2, 3, 4], "b": 2}',
        b'{"a\x01": [1, 2, 3, 4], "b": 2}',
        b'{"a\xff": [1, 2, 3, 4], "b": 2}',
        b'["\xff", 1, 2, 3, 4, 5]',
        b"[1, 2, 3, 4, 5] x",
        b"\xef\xbb\xbf[1, 2, 3, 4, 5]",
        b"[" * 3000 + b"]" * 3000,
        b"[NaN, 1, 2, 3, 4]",
        b"[1" + b"0" * 5000 + b", 1]",
        b'{"a" 1, "b": [1, 2, 3]}',
        b" " * 40,
        b"",
    ],
)
def test_texts_that_are_odd(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 8)
    assert outcome(pieces.loads, text) == outcome(orjson.loads, text)


def test_a_large_text_is_read_in_pieces(sizes: list[int]) -> None:
    text = json.dumps(LARGE, indent=2).encode()
    assert len(text) > 5000
    assert pieces.loads(text) == LARGE
    assert 0 < max(sizes) <= 200


def test_a_large_document_too(sizes: list[int]) -> None:
    text = json.dumps({**LARGE, "doubled": 1}).encode()[:-1] + b', "doubled": 2}'
    document = reading.read_json(text)
    assert document.value == {**LARGE, "doubled": 2}
    assert [each.key for each in document.duplicates] == ["doubled"]
    assert 0 < max(sizes) <= 200


def test_a_small_one_is_not(sizes: list[int]) -> None:
    text = orjson.dumps({"a": "b" * 150})
    assert pieces.loads(text) == {"a": "b" * 150}
    assert sizes == [len(text)]


def test_no_end_of_levels_is_looked_for(sizes: list[int]) -> None:
    text = b'{"a":' * 100 + b"1" + b"}" * 100
    assert pieces.loads(text) == orjson.loads(text)
    assert len(sizes) == 1


class Noted(BytesIO):
    longest = 0

    def write(self, part: Any) -> int:
        type(self).longest = max(self.longest, len(part))
        return super().write(part)


@pytest.mark.parametrize("lengths", [[], [0], [5], [10, 11, 0, 35], [3] * 50, [100]])
def test_long_parts_are_put_together_bit_by_bit(
    lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE", 10)
    monkeypatch.setattr(encoding, "PIECE", 10)
    for module in (pieces, encoding):
        monkeypatch.setattr(module, "BytesIO", Noted)
    parts = [bytes([65 + number]) * length for number, length in enumerate(lengths)]
    Noted.longest = 0
    assert pieces.joined(parts) == b"".join(parts)
    assert encoding.enclosed(b"[", iter(parts), b"]") == b"[" + b",".join(parts) + b"]"
    assert Noted.longest <= 10 + len(parts)
