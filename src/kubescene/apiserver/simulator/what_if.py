"""``/simulator/v1/what-if``: questions to a snapshot, or to the world as it stands.

::

    GET  /simulator/v1/what-if    the questions that there are, with their fields
    POST /simulator/v1/what-if    {"question": "lose", "fields": {"nodes": "zone=a"},
                                  "snapshot": "..."}: the text of a snapshot, a dump or manifests;
                                  without it, the world of this server

Each is answered in a process of its own, one at a time, on a copy: neither the event loop nor the
engine waits for it, and a client that leaves ends it.
"""

import asyncio
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from kubescene.apiserver import bodies
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.writes import as_object
from kubescene.apiserver.requests import ClientGoneError, Request
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.simulator.worlds import PREFIX
from kubescene.apiserver.table import Route
from kubescene.errors import BadRequestError, ConfigurationError, ConflictError, InternalError
from kubescene.registry import exports
from kubescene.types import JsonObject

PLACE = f"{PREFIX}what-if"
MOST_BYTES = 64 * 1024 * 1024
LONGEST_S = 600.0
COMMAND = (sys.executable, "-m", "kubescene.what_if.questions")

_log = logging.getLogger(__name__)


class AskedQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request."""

    question: str
    fields: dict[str, str] = {}
    snapshot: str = ""


class WhatIfPage:
    """Answers by processes; how many there are, a lock says."""

    def __init__(self, engine: EngineThread) -> None:
        self._engine = engine
        self._turn = asyncio.Lock()

    def routes(self) -> Iterator[Route]:
        yield Route("GET", PLACE, self._questions)
        yield Route("POST", PLACE, self._ask, engine=True)

    async def _questions(self, request: Request) -> Response:
        del request
        return json_response({"questions": await asyncio.to_thread(table)})

    async def _ask(self, request: Request) -> Response:
        body = await bodies.read_command(request, MOST_BYTES)
        asked = await asyncio.to_thread(read, as_object(body.value))
        gone = asyncio.ensure_future(leaving(request))
        try:
            return await self._unless(gone, asked)
        finally:
            gone.cancel()

    async def _unless(self, gone: "asyncio.Future[None]", asked: AskedQuestion) -> Response:
        doing = asyncio.ensure_future(self._in_turn(asked))
        await asyncio.wait((doing, gone), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        doing.cancel()
        await asyncio.wait((doing,))
        raise ClientGoneError

    async def _in_turn(self, asked: AskedQuestion) -> Response:
        async with self._turn:
            snapshot = asked.snapshot.encode() or await self._present()
            with tempfile.TemporaryDirectory(prefix="kubescene-what-if-") as folder:
                return await self._played(asked, snapshot, Path(folder))

    async def _present(self) -> bytes:
        registry = self._engine.cluster.registry
        records = await self._engine.submit(lambda: exports.exported(registry.store))
        return await asyncio.to_thread(exports.list_of, records)

    async def _played(self, asked: AskedQuestion, snapshot: bytes, folder: Path) -> Response:
        await asyncio.to_thread((folder / "snapshot").write_bytes, snapshot)
        given = orjson.dumps({"question": asked.question, "fields": asked.fields})
        pipe = subprocess.PIPE
        process = subprocess.Popen([*COMMAND, str(folder)], stdin=pipe, stdout=pipe, stderr=pipe)
        doing = asyncio.ensure_future(asyncio.to_thread(process.communicate, given))
        try:
            out, err = await asyncio.wait_for(asyncio.shield(doing), LONGEST_S)
        except TimeoutError:
            raise ConflictError(
                f"it took longer than {LONGEST_S:g} s: ask kubescene what-if, which has no limit"
            ) from None
        finally:
            process.kill()
            await asyncio.wait((doing,))
        return replied(out, err)


def table() -> list[JsonObject]:
    """The questions as a form needs them."""
    # No request for anything else should wait until what answers them is loaded.
    from kubescene.what_if.questions import QUESTIONS

    return [
        {"name": name, "about": each.about, "fields": msgspec.to_builtins(each.fields)}
        for name, each in QUESTIONS.items()
    ]


def read(body: JsonObject) -> AskedQuestion:
    """What is asked; 400 for what nobody can answer."""
    from kubescene.what_if.questions import known

    try:
        asked = msgspec.convert(body, AskedQuestion)
        known(asked.question, asked.fields)
    except (msgspec.ValidationError, ConfigurationError) as error:
        raise BadRequestError(str(error)) from None
    return asked


def replied(out: bytes, err: bytes) -> Response:
    try:
        told: dict[str, Any] = orjson.loads(out)
    except ValueError:
        _log.error("a question could not be answered: %s", err[-4000:].decode(errors="replace"))
        raise InternalError(
            "the question could not be answered: the server's log has the details"
        ) from None
    if "refused" in told:
        raise ConflictError(told["refused"])
    return json_response(told["answer"])


async def leaving(request: Request) -> None:
    """Returns when the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
