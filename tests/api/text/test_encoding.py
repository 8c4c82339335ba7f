"""Texts put together of many."""

from io import BytesIO
from typing import Any

import pytest

from kubescene.api.text import encoding
from kubescene.api.text.encoding import enclosed


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6, 7, 20])
def test_items_stand_with_commas_between_head_and_tail(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "JOINED_AT_ONCE", 3)
    items = [b"%d" % each for each in range(count)]
    assert enclosed(b"[", iter(items), b"]") == b"[" + b",".join(items) + b"]"


def test_no_more_are_joined_at_once_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else runs while one call makes a large text."""
    written: list[int] = []

    class Noting(BytesIO):
        def write(self, text: Any) -> int:
            written.append(text.count(b"x"))
            return super().write(text)

    monkeypatch.setattr(encoding, "BytesIO", Noting)
    assert len(enclosed(b"", [b"x"] * 2500, b"")) == 4999
    assert [each for each in written if each] == [1000, 1000, 500]
