"""``/ui``: the pages for people. Files and nothing else; what they show they ask of the API.

Every address below ``/ui`` that is no file answers the one page: which of its parts is shown, the
page reads from its address. The policy lets it reach this server alone, and refuses HTML and
scripts out of strings.
"""

from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, not_found_page, revalidated
from kubescene.apiserver.table import Route, reading
from kubescene.ui.bundling import STATIC

PLACE = "/ui"
FOLDERS = ("shared", "app")
INDEX = "app/index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".yaml": "application/yaml",
}
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "worker-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "kubescene",
}
HEADERS = (
    (b"content-security-policy", "; ".join(f"{k} {v}" for k, v in POLICY.items()).encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Page(NamedTuple):
    """A file as it is sent."""

    body: bytes
    media_type: str
    etag: str


class UiPages:
    """Answers for what is below `PLACE`; the files are read when somebody asks first."""

    def routes(self) -> Iterator[Route]:
        yield from reading(PLACE, self._page)
        yield from reading(f"{PLACE}/{{rest...}}", self._page)

    @cached_property
    def _files(self) -> dict[str, Page]:
        """Every file that may be asked for, by its path below ``static``: no other is read."""
        paths = [path for folder in FOLDERS for path in sorted((STATIC / folder).rglob("*"))]
        return {
            path.relative_to(STATIC).as_posix(): page_of(path.read_bytes(), TYPES[path.suffix])
            for path in paths
            if path.suffix in TYPES
        }

    async def _page(self, request: Request) -> Response:
        folder, _, name = request.params.get("rest", "").partition("/")
        page = self._files.get(name if folder == "static" else INDEX)
        if page is None:
            return not_found_page()
        headers = (*HEADERS, (b"etag", page.etag.encode()), (b"cache-control", b"no-cache"))
        response = Response(page.body, 200, page.media_type, headers)
        return revalidated(response, page.etag, request.header(b"if-none-match"))


def page_of(body: bytes, media_type: str) -> Page:
    return Page(body, media_type, f'"{sha256(body).hexdigest()[:32]}"')
