"""From a URL path to the resource it names.

``/api/VERSION/...`` is the core group, ``/apis/GROUP/VERSION/...`` every other. After that come
``[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]``. ``namespaces`` is a resource too, so
``namespaces/x`` is an object and ``namespaces/x/pods`` a collection; what its own
subresources are called decides. A path that fits nothing has no target, and is 404.
"""

from kubescene.api.scheme import Scheme
from kubescene.apiserver.access import Attributes
from kubescene.apiserver.requests import Request, RequestTarget
from kubescene.errors import NotFoundError
from kubescene.registry.preconditions import not_found

VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
NAMESPACES = "namespaces"
NAMESPACE_SUBRESOURCES = ("status", "finalize")


def verb_of(request: Request, target: RequestTarget) -> str:
    """What is asked of a resource, as Kubernetes calls it."""
    return _verb(request, is_collection=not target.name, is_watch=target.is_watch)


def _verb(request: Request, *, is_collection: bool, is_watch: bool) -> str:
    verb = VERBS.get(request.method, request.method.lower())
    if not is_collection:
        return verb
    if verb == "get":
        return "watch" if is_watch or request.flag("watch") else "list"
    return "deletecollection" if verb == "delete" else verb


def asked_of(request: Request) -> tuple[str, Attributes]:
    """The verb, and what it is about: a resource that nobody here knows is one all the same."""
    if request.target is not None:
        return verb_of(request, request.target), request.target.attributes
    parts = request.path.strip("/").split("/")
    own = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    if len(parts) <= own:
        return request.method.lower(), Attributes(path=request.path)
    group, version = parts[1] if own == 3 else "", parts[own - 1]
    rest = parts[own:]
    is_watch = rest[0] == "watch" and len(rest) > 1
    rest = rest[is_watch:]
    namespace = ""
    if rest[0] == NAMESPACES and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource, name, part = (*rest, "", "")[:3]
    verb = _verb(request, is_collection=not name, is_watch=is_watch)
    return verb, Attributes(group, version, resource, part, namespace, name)


def find_target(scheme: Scheme, path: str) -> RequestTarget | None:
    """The target of a path that begins with ``/api/`` or ``/apis/``."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[1:]
    else:
        group, rest = parts[1] if len(parts) > 1 else "", parts[2:]
    if len(rest) < 2 or not all(rest):
        return None
    version, rest = rest[0], rest[1:]
    if rest[0] == "watch" and len(rest) > 1:
        return _find(scheme, group, version, rest[1:], is_watch=True)
    return _find(scheme, group, version, rest, is_watch=False)


def _find(
    scheme: Scheme, group: str, version: str, rest: list[str], *, is_watch: bool
) -> RequestTarget | None:
    namespace = ""
    if (
        rest[0] == NAMESPACES
        and len(rest) > 2
        and not (len(rest) == 3 and rest[2] in NAMESPACE_SUBRESOURCES)
    ):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    try:
        resource_type = scheme.of_path(group, version, rest[0])
    except NotFoundError:
        return None
    name = rest[1] if len(rest) > 1 else ""
    if resource_type.namespaced:
        if name and not namespace:
            return None
    elif namespace:
        return None
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource_type.subresources:
        if resource_type.custom:  # there the kind's own handler answers
            raise not_found(resource_type, name)
        return None
    return RequestTarget(resource_type, namespace, name, subresource, is_watch)
