"""Pages about the server that every API server has: version, health, metrics, discovery, and ``/``.

``/healthz``, ``/livez`` and ``/readyz`` ask the engine to run a command that does nothing: a server
whose engine is stuck answers no write. One such question is open at a time, however many probes
wait for it, so a stuck engine piles up nothing.
"""

import asyncio
import platform
from collections.abc import Callable, Iterator

from kubescene.apiserver.engine_thread import EngineStoppedError, EngineThread
from kubescene.apiserver.kubernetes.discovery import DiscoveryDocuments
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import (
    Response,
    json_response,
    not_found_page,
    revalidated,
    text_response,
)
from kubescene.apiserver.table import ANY, READING, Route, method_not_allowed, reading
from kubescene.store import Store
from kubescene.types import JsonObject
from kubescene.version import KUBERNETES_VERSION, __version__

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LIMIT_S = 5.0


class ServerPages:
    """Answers for all of them."""

    def __init__(
        self,
        store: Store,
        discovery: DiscoveryDocuments,
        health: "Health",
        paths: Callable[[], list[str]],
    ) -> None:
        self._store = store
        self._discovery = discovery
        self._health = health
        self._paths = paths

    def routes(self) -> Iterator[Route]:
        yield from reading("/", self.root)
        yield from reading("/version", self.version)
        yield from reading("/metrics", self.metrics)
        for probe in ("/healthz", "/livez", "/readyz"):
            for pattern in (probe, f"{probe}/{{check...}}"):
                yield from reading(pattern, self.health, engine=False)  # it tells when that ended
        for root in ("/api", "/apis"):
            for pattern in (root, f"{root}/{{rest...}}"):
                yield Route(ANY, pattern, self.discovery)

    async def root(self, request: Request) -> Response:
        del request
        return json_response({"paths": self._paths()})

    async def version(self, request: Request) -> Response:
        del request
        return json_response(version_info())

    async def metrics(self, request: Request) -> Response:
        """What the server holds, as Prometheus reads it."""
        del request
        text = "".join(f"{line}\n" for line in _metrics(self._store))
        return Response(text.encode(), 200, METRICS_TYPE)

    async def health(self, request: Request) -> Response:
        return await self._health.answer(request.path)

    async def discovery(self, request: Request) -> Response:
        accept = request.header(b"accept") or "application/json"
        reply = self._discovery.document(request.path.rstrip("/"), accept)
        if reply is None:
            return not_found_page()
        if request.method not in READING:
            raise method_not_allowed()
        headers = ((b"etag", reply.etag.encode()),)
        response = Response(reply.body, 200, reply.content_type, headers)
        return revalidated(response, reply.etag, request.header(b"if-none-match"))


def version_info() -> JsonObject:
    """``/version``: the Kubernetes version whose behaviour is shown, marked as ours."""
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"{KUBERNETES_VERSION}+kubescene.{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def _metrics(store: Store) -> Iterator[str]:
    """Objects per resource, the newest revision, and the version."""
    yield "# HELP apiserver_storage_objects Number of stored objects by resource."
    yield "# TYPE apiserver_storage_objects gauge"
    for resource in sorted(store.resources(), key=str):
        named = f'{{group="{resource.group}",resource="{resource.resource}"}}'
        yield f"apiserver_storage_objects{named} {store.count(resource)}"
    yield "# HELP kubescene_storage_revision The revision of the newest write."
    yield "# TYPE kubescene_storage_revision counter"
    yield f"kubescene_storage_revision {store.revision}"
    yield "# HELP kubescene_build_info The version of Kubescene, and of Kubernetes as it shows it."
    yield "# TYPE kubescene_build_info gauge"
    versions = f'version="{__version__}",kubernetes="{KUBERNETES_VERSION}"'
    yield f"kubescene_build_info{{{versions}}} 1"


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
