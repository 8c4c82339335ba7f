"""Health as the engine thread shows it: a server whose engine is stuck answers no write.

``/healthz``, ``/livez`` and ``/readyz`` ask the engine to run a command that does nothing. One such
question is open at a time, however many probes wait for it, so a stuck engine piles up nothing.
"""

import asyncio

from kubescene.apiserver.engine_thread import EngineStoppedError, EngineThread
from kubescene.apiserver.responses import Response, text_response

LIMIT_S = 5.0
NAMES = ("healthz", "livez", "readyz")


def is_health_path(path: str) -> bool:
    """Whether the path is one of health, or of one of its single checks."""
    return path[1:].partition("/")[0] in NAMES


class Health:
    """Probes one engine. Used on one event loop."""

    def __init__(self, engine: EngineThread, *, limit_s: float = LIMIT_S) -> None:
        self._engine = engine
        self.limit_s = limit_s
        self._question: asyncio.Task[None] | None = None

    async def answer(self, path: str) -> Response:
        """``ok``, or 500 in kube-apiserver's words when the engine does not come round."""
        fault = await self.fault()
        if not fault:
            return text_response("ok")
        name = path[1:].partition("/")[0]
        return text_response(f"[-]engine failed: {fault}\n{name} check failed\n", 500)

    async def fault(self) -> str:
        """What is wrong with the engine; empty if it runs commands."""
        if self._question is None or self._question.done():
            self._question = asyncio.create_task(self._engine.submit(_nothing))
        try:
            await asyncio.wait_for(asyncio.shield(self._question), self.limit_s)
        except TimeoutError:
            return f"it has not run a command for {self.limit_s:g} s"
        except EngineStoppedError:
            return "the server is shutting down"
        return ""


def _nothing() -> None:
    """What a healthy engine gets done soon."""
