"""Subresources with a body or a meaning of their own: scale, binding, eviction, log.

What is not simulated (exec, attach, port-forward, proxies, tokens) exists in discovery, as on a
real server, and answers that it is not to be had.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kubescene.api.options import DeleteOptions
from kubescene.api.records import Record
from kubescene.api.scheme import SCALE, GroupVersionKind, ResourceType
from kubescene.apiserver.kubernetes.field_validation import check_kind
from kubescene.apiserver.kubernetes.writes import (
    Writes,
    as_object,
    check_name,
    parse_delete_options,
    write_options,
)
from kubescene.apiserver.requests import Request, Target
from kubescene.apiserver.responses import Response, json_response, success_status, text_response
from kubescene.errors import BadRequestError, Cause, InvalidError, MethodNotAllowedError
from kubescene.registry.subresources.eviction import ManyBudgetsError
from kubescene.registry.subresources.scaling import SCALE_TYPE, Scales
from kubescene.types import JsonObject

BINDING = ResourceType(
    gvk=GroupVersionKind("", "v1", "Binding"), plural="bindings", namespaced=True
)
EVICTION = GroupVersionKind("policy", "v1", "Eviction")
_EVICTION_V1BETA1 = GroupVersionKind("policy", "v1beta1", "Eviction")
_NO_CONTAINER = "no container runs behind a simulated pod"
NOT_SIMULATED = {
    "attach": _NO_CONTAINER,
    "exec": _NO_CONTAINER,
    "portforward": _NO_CONTAINER,
    "proxy": "nothing listens behind simulated nodes, pods and services",
    "token": "there is no key to sign a token with",
}


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
            f"{target.resource_type.plural}/{target.subresource} is not simulated: "
            f"{NOT_SIMULATED[target.subresource]}",
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
        body = await self._read_eviction(target, request)
        options, registry = eviction_options(body, request), self.verbs.registry
        try:
            await self.verbs.engine.submit(
                lambda: registry.evictions.evict(
                    request.actor, target.namespace, target.name, options=options
                )
            )
        except ManyBudgetsError as error:
            # Upstream's answer: the status line of a success around a Status of failure.
            return json_response(
                {key: value for key, value in error.to_status().items() if value != ""}, 201
            )
        return _created()

    async def _read_eviction(self, target: Target, request: Request) -> JsonObject:
        body = as_object((await self.verbs.read_body(request)).value)
        expected = _EVICTION_V1BETA1 if body.get("apiVersion") == "policy/v1beta1" else EVICTION
        body = check_kind(body, expected)
        if not isinstance(body.get("metadata") or {}, dict):
            raise BadRequestError("metadata must be an object")
        if (body.get("metadata") or {}).get("name") != target.name:
            raise BadRequestError("name in URL does not match name in Eviction object")
        return body

    async def _read(self, request: Request, resource_type: ResourceType) -> JsonObject:
        body = await self.verbs.read_body(request)
        obj = check_kind(as_object(body.value), resource_type.gvk)
        return self.verbs.fields.decoded(obj, resource_type, request)


def eviction_options(eviction: JsonObject, request: Request) -> DeleteOptions:
    """How the pod is deleted; the request and its body must not disagree about a dry run."""
    given = eviction.get("deleteOptions") or {}
    if not isinstance(given, dict):
        raise BadRequestError("deleteOptions must be an object")
    if given.get("ignoreStoreReadErrorWithClusterBreakingPotential"):
        field = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential"
        message = (
            "Invalid value: true: can not be set for pod eviction, try after removing the option"
        )
        name = eviction["metadata"]["name"]
        raise InvalidError(
            f'Eviction.policy "{name}" is invalid: {field}: {message}',
            name=name,
            group=EVICTION.group,
            kind=EVICTION.kind,
            causes=(Cause("FieldValueInvalid", message, field),),
        )
    return parse_delete_options(given, request)


def _created() -> Response:
    return json_response({**success_status("", "", ""), "code": 201}, 201)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Serves ``scale``."""

    verbs: Writes

    async def serve(self, target: Target, request: Request) -> Response:
        if request.method == "GET":
            return json_response(
                self._scales.get(target.resource_type, target.namespace, target.name)
            )
        change = self._update if request.method == "PUT" else self._patch
        record = await self.verbs.engine.submit(await change(target, request))
        return json_response(self._scales.view(record, target.resource_type))

    async def _update(self, target: Target, request: Request) -> Callable[[], Record]:
        scale, options = await self._read(target, request), write_options(request)
        return lambda: self._scales.update(
            request.actor,
            target.resource_type,
            target.namespace,
            target.name,
            scale,
            options=options,
        )

    async def _patch(self, target: Target, request: Request) -> Callable[[], Record]:
        patch_type, patch = await self.verbs.read_patch(request, SCALE_TYPE)
        options = write_options(request)

        def inspect(patched: JsonObject) -> JsonObject:
            self.verbs.fields.check_patched(patched, SCALE_TYPE, request, patch)
            return self.verbs.fields.decoded(patched, SCALE_TYPE, request)

        return lambda: self._scales.patch(
            request.actor,
            target.resource_type,
            target.namespace,
            target.name,
            patch,
            patch_type,
            options=options,
            inspect=inspect,
        )

    async def _read(self, target: Target, request: Request) -> JsonObject:
        body = as_object((await self.verbs.read_body(request)).value)
        scale = self.verbs.fields.decoded(check_kind(body, SCALE.gvk), SCALE_TYPE, request)
        if not isinstance(scale.get("metadata"), dict):
            raise BadRequestError("name must be provided")
        check_name(scale, target)
        return scale

    @property
    def _scales(self) -> Scales:
        return self.verbs.registry.scales
