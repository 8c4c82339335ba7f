"""Large replies are packed for clients that can unpack them, as kube-apiserver does.

What takes less than `SMALLEST` bytes is sent as it is: packing it would cost more than it saves.
"""

import asyncio
import gzip
from dataclasses import replace

from kubescene.apiserver.responses import Response

SMALLEST = 128 * 1024
LEVEL = 1


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an ``Accept-Encoding`` header names gzip and does not refuse it."""
    for part in accept_encoding.split(","):
        coding, *parameters = (piece.strip() for piece in part.lower().split(";"))
        if coding == "gzip":
            return not any(is_zero(each) for each in parameters)
    return False


def is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip() in ("0", "0.0", "0.00", "0.000")


async def packed(response: Response, accept_encoding: str) -> Response:
    """The same large reply, packed if the client wants that."""
    if not accepts_gzip(accept_encoding):
        return response
    if any(name == b"content-encoding" for name, _ in response.headers):
        return response
    body = await asyncio.to_thread(gzip.compress, response.body, LEVEL, mtime=0)
    headers = (
        *response.headers,
        (b"content-encoding", b"gzip"),
        (b"vary", b"Accept-Encoding"),
    )
    return replace(response, body=body, headers=headers)
