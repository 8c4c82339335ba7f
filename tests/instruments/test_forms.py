"""A form says the same each time, but for what fills it in."""

import orjson

from kubescene.instruments.score_columns import Form, blank


def test_blanks_are_filled_in_by_number() -> None:
    form = Form(orjson.dumps({"a": blank(1), "b": [blank(0), blank(1)], "c": "\0 0"}))
    assert form.filled([b"[7]", b"true"]) == b'{"a":true,"b":[[7],true],"c":"\\u0000 0"}'
    assert form.filled([b"1", b"2"]) == b'{"a":2,"b":[1,2],"c":"\\u0000 0"}'


def test_a_text_without_blanks_is_itself() -> None:
    assert Form(b'{"a":0}').filled([]) == b'{"a":0}'
