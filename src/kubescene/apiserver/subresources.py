"""Subresources with a body or a meaning of their own: binding, eviction, log, finalize.

What is not simulated (exec, attach, port-forward, proxies, tokens) exists in discovery, as on a
real server, and answers that it is not to be had.
"""

from dataclasses import dataclass

from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.apiserver.requests import Request
from kubescene.apiserver.responses import Response, json_response, success_status, text_response
from kubescene.apiserver.routes import Target
from kubescene.apiserver.scaling import Scaling
from kubescene.apiserver.validating import check_kind
from kubescene.apiserver.writing import Writes, as_object, parse_delete_options, write_options
from kubescene.errors import BadRequestError, MethodNotAllowedError
from kubescene.types import JsonObject

BINDING = ResourceType(
    gvk=GroupVersionKind("", "v1", "Binding"), plural="bindings", namespaced=True
)
NOT_SIMULATED = ("attach", "exec", "portforward", "proxy", "token")


@dataclass(frozen=True, slots=True)
class Subresources:
    """Serves what is not simply another half of its object."""

    verbs: Writes

    def is_special(self, name: str) -> bool:
        """Whether `serve` answers for this subresource; the verbs answer for the others."""
        return name in ("scale", "binding", "eviction", "log", *NOT_SIMULATED)

    async def serve(self, target: Target, request: Request) -> Response:
        match target.subresource:
            case "scale":
                return await Scaling(self.verbs).serve(target, request)
            case "binding":
                return await self.bind(target, request)
            case "eviction":
                return await self._evict(target, request)
            case "log":
                self.verbs.registry.record(target.resource_type, target.namespace, target.name)
                return text_response("")
        raise MethodNotAllowedError(
            f"{target.resource_type.plural}/{target.subresource} is not simulated: there is no "
            "container behind a pod, and no key to sign a token with",
            kind=target.resource_type.plural,
            name=target.name,
        )

    async def bind(self, target: Target, request: Request) -> Response:
        """POST of a Binding, to a pod or to the collection ``bindings``."""
        body = await self._read(request, BINDING)
        name = target.name or (body.get("metadata") or {}).get("name", "")
        if not name:
            raise BadRequestError("name must be provided")
        options, registry = write_options(request), self.verbs.registry
        await self.verbs.engine.submit(
            lambda: registry.bind(request.actor, target.namespace, name, body, options=options)
        )
        return _created()

    async def _evict(self, target: Target, request: Request) -> Response:
        body = as_object((await self.verbs.read_body(request)).value)
        if body.get("kind", "Eviction") not in ("", "Eviction"):
            raise BadRequestError(f"expected an Eviction in the body, found {body['kind']!r}")
        given = body.get("deleteOptions") or {}
        if not isinstance(given, dict):
            raise BadRequestError("deleteOptions must be an object")
        options, registry = parse_delete_options(given, request), self.verbs.registry
        await self.verbs.engine.submit(
            lambda: registry.delete(
                request.actor, target.resource_type, target.namespace, target.name, options=options
            )
        )
        return _created()

    async def _read(self, request: Request, resource_type: ResourceType) -> JsonObject:
        body = await self.verbs.read_body(request)
        obj = check_kind(as_object(body.value), resource_type.gvk)
        return self.verbs.fields.decoded(obj, resource_type, request)


def _created() -> Response:
    return json_response({**success_status("", "", ""), "code": 201}, 201)
