"""HTTP without a socket: whatever the pieces, the same response; whatever is wrong, an error."""

import pytest

from kubescene.client.http.wire import (
    MAX_HEAD,
    MalformedResponseError,
    ResponseParser,
    WireRequest,
)

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nx-a: 2\r\n\r\n"
    b"5\r\nhello\r\n1;name=value\r\n \r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
)


def read(*pieces: bytes) -> tuple[ResponseParser, bytes]:
    parser, body = ResponseParser(), bytearray()
    for piece in pieces:
        parser.feed(piece, body)
    return parser, bytes(body)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_response_is_the_same_in_any_pieces(size: int) -> None:
    pieces = [CHUNKED[at : at + size] for at in range(0, len(CHUNKED), size)]
    parser, body = read(*pieces)
    assert (parser.status, body, parser.is_complete) == (200, b"hello 0123456789", True)
    assert parser.headers["x-a"] == "1, 2"
    assert parser.keeps_alive


@pytest.mark.parametrize(
    ("data", "body", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok", True),
        (b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", b"", True),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", b"ok", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok", False),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", b"", True),
    ],
    ids=["sized", "empty", "closing", "old", "interim"],
)
def test_a_complete_response(data: bytes, body: bytes, keeps: bool) -> None:
    parser, found = read(data)
    assert (found, parser.is_complete, parser.keeps_alive) == (body, True, keeps)
    parser.end()


def test_without_a_length_the_end_is_the_end() -> None:
    parser, body = read(b"HTTP/1.1 200 OK\r\n\r\nall", b" of it")
    assert (body, parser.is_complete, parser.keeps_alive) == (b"all of it", False, False)
    parser.end()
    assert parser.is_complete


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ],
)
def test_an_early_end_is_told(data: bytes) -> None:
    parser, _ = read(data)
    with pytest.raises(MalformedResponseError, match="closed the connection in mid-response"):
        parser.end()


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokXX0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD,
    ],
)
def test_what_is_no_response_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedResponseError):
        read(data)


def test_a_request_says_how_long_its_body_is() -> None:
    encoded = WireRequest("POST", "/a?b=c", b"{}", "application/json").encode({"Host": "h"})
    assert encoded == (
        b"POST /a?b=c HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )
    assert b"Length" not in WireRequest("GET", "/").encode({})


def test_what_came_before_an_error_is_not_lost() -> None:
    parser, body = ResponseParser(), bytearray()
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nno chunk\r\n"
    with pytest.raises(MalformedResponseError, match="a chunk has the size"):
        parser.feed(data, body)
    assert body == b"ok"
