"""One table of all that can be asked over HTTP.

A row is a method, a pattern of paths, whoever answers, and whether that takes the engine thread::

    Route("GET", "/simulator/v1/scenarios/{name}/summary", scenarios.summary, engine=True)

Segments in braces are what the handler finds in ``request.params``: ``{name}`` is one segment,
``{id:int}`` one of digits, ``{rest...}`` all that follow. The objects of Kubernetes are rows, too:
which resource a path names depends on the definitions of the world, so their patterns are those of
`ResourcePattern`, and the handler finds what was named in ``request.target``.

A path that no row has is 404; one whose rows lack the method is 405, in the words of those rows.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from kubescene.apiserver.requests import Request, RequestTarget
from kubescene.apiserver.responses import Response
from kubescene.errors import ApiError, MethodNotAllowedError

Handler: TypeAlias = Callable[[Request], Awaitable[Response | None]]
"""Answers, or sends the answer itself (``request.send``) and returns None."""
Refuse: TypeAlias = Callable[[Request, Collection[str]], ApiError]

ANY = "*"
"""The method of a row whose handler looks at the method itself."""
READING = ("GET", "HEAD")
MOST_DIGITS = 18
_SEGMENT = re.compile(r"\{(\w+)(:int|\.\.\.)?\}")
_FORMS = {"": "[^/]*", ":int": f"[0-9]{{1,{MOST_DIGITS}}}", "...": ".*"}


class ResourcePattern(StrEnum):
    """Patterns of the paths that name objects of Kubernetes."""

    COLLECTION = "/{api}/{resource}"
    OBJECT = "/{api}/{resource}/{name}"
    SUBRESOURCE = "/{api}/{resource}/{name}/{subresource}"


class Route(NamedTuple):
    """A row of the table."""

    method: str
    pattern: str
    handler: Handler
    engine: bool = False
    """Whether an answer takes the engine thread: there is none once that has ended."""
    guarded: bool = False
    """Whether pages of other servers may not ask, though nothing is changed: it is expensive."""


class PatternRows:
    """The rows of one pattern."""

    def __init__(self, pattern: str, refuse: Refuse, *, slash: bool) -> None:
        self.pattern = pattern
        self.routes: dict[str, Route] = {}
        self.slash = slash
        """Whether the path may end in slashes, as Kubernetes' own may."""
        self._refuse = refuse
        self._matches = re.compile(_SEGMENT.sub(_form, pattern), re.DOTALL).fullmatch

    def params(self, path: str) -> dict[str, str] | None:
        """What the path has in the place of the braces; None if it is not of this pattern."""
        found = self._matches(path)
        return None if found is None else found.groupdict()

    def route(self, request: Request) -> Route:
        """The row for the request's method; raises 405."""
        route = self.routes.get(request.method) or self.routes.get(ANY)
        if route is None:
            raise self._refuse(request, self.routes)
        return route


def _form(segment: re.Match[str]) -> str:
    return f"(?P<{segment[1]}>{_FORMS[segment[2] or '']})"


class RouteTable:
    """All rows. ``resolve`` says which resource of Kubernetes a path names, if it names one."""

    def __init__(self, resolve: Callable[[str], RequestTarget | None]) -> None:
        self._resolve = resolve
        self._entries: dict[str, PatternRows] = {}
        self._patterns: list[PatternRows] = []

    def add(self, *routes: Route, refuse: Refuse | None = None, slash: bool = False) -> None:
        """More rows; ``refuse`` is what somebody hears who comes with another method."""
        for route in routes:
            entry = self._entries.get(route.pattern)
            if entry is None:
                entry = PatternRows(route.pattern, refuse or method_not_allowed, slash=slash)
                self._entries[route.pattern] = entry
                if "{" in route.pattern and route.pattern not in set(ResourcePattern):
                    self._patterns.append(entry)
            if route.method in entry.routes:
                raise ValueError(f"{route.method} {route.pattern} is in the table already")
            entry.routes[route.method] = route

    def find(self, request: Request) -> PatternRows | None:
        """The rows for a path; what the path names is noted in the request."""
        path = request.path
        if path.startswith(("/api/", "/apis/")):
            target = request.target = self._resolve(path)
            if target is not None:
                return self._entries[pattern_of(target)]
        entry = self._entries.get(path)
        if entry is not None and "{" not in path:
            return entry
        for entry in self._patterns:
            params = entry.params(path)
            if params is not None:
                request.params = params
                return entry
        entry = self._entries.get(path.rstrip("/") or "/")
        return entry if entry is not None and entry.slash and "{" not in path else None

    def __iter__(self) -> Iterator[Route]:
        for entry in self._entries.values():
            yield from entry.routes.values()

    @property
    def paths(self) -> list[str]:
        """Those that name one thing, whatever exists."""
        return sorted(each for each in self._entries if "{" not in each and each != "/")


def pattern_of(target: RequestTarget) -> ResourcePattern:
    if target.subresource:
        return ResourcePattern.SUBRESOURCE
    return ResourcePattern.OBJECT if target.name else ResourcePattern.COLLECTION


def reading(pattern: str, handler: Handler, *, engine: bool = False) -> tuple[Route, Route]:
    """Rows for a page that is read by GET or HEAD."""
    get, head = (Route(method, pattern, handler, engine) for method in READING)
    return get, head


def method_not_allowed(
    request: Request | None = None, methods: Collection[str] = ()
) -> MethodNotAllowedError:
    """What kube-apiserver says."""
    del request, methods
    return MethodNotAllowedError("the server does not allow this method on the requested resource")


def takes(kind: str = "") -> Refuse:
    """Says which methods there are."""

    def refuse(request: Request, methods: Collection[str]) -> MethodNotAllowedError:
        told = f"{request.path} takes {' or '.join(methods)}, not {request.method}"
        return MethodNotAllowedError(told, kind=kind)

    return refuse
