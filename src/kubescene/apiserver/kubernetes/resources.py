"""Requests for objects of Kubernetes: which verb is asked, whether the kind has it, who answers.

Subresources have a body or a meaning of their own: scale, binding, eviction, log. What is not
simulated (exec, attach, port-forward, proxies) exists in discovery, as on a real server,
and answers that it is not to be had.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from kubescene.api.kinds import SCENARIO
from kubescene.api.options import DeleteOptions
from kubescene.api.records import Record
from kubescene.api.records.traits import PODS
from kubescene.api.scheme import SCALE, GroupVersionKind, ResourceType
from kubescene.apiserver.access import Authorizer, is_review, review
from kubescene.apiserver.access.credentials import Credentials
from kubescene.apiserver.access.service_accounts import TOKEN_REQUEST, ServiceAccountTokens
from kubescene.apiserver.kubernetes.field_validation import check_kind
from kubescene.apiserver.kubernetes.listing import ListServer
from kubescene.apiserver.kubernetes.logs import PodLogs
from kubescene.apiserver.kubernetes.rendering import Renderer
from kubescene.apiserver.kubernetes.watches import WatchStreams
from kubescene.apiserver.kubernetes.writes import (
    Writes,
    as_object,
    check_name,
    parse_delete_options,
    write_options,
)
from kubescene.apiserver.negotiation import ResponseForm, negotiate
from kubescene.apiserver.requests import Request, RequestTarget
from kubescene.apiserver.responses import Response, json_response, success_status
from kubescene.apiserver.table import ANY, ResourcePattern, Route, method_not_allowed
from kubescene.errors import (
    BadRequestError,
    ForbiddenError,
    InvalidError,
    MethodNotAllowedError,
    StatusCause,
)
from kubescene.registry.decoding import checked
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
}


@dataclass(frozen=True, slots=True)
class Subresources:
    """Serves what is not simply another half of its object."""

    verbs: Writes
    accounts: ServiceAccountTokens
    logs: PodLogs

    def is_special(self, name: str) -> bool:
        """Whether `serve` answers for this subresource; the verbs answer for the others."""
        return name in ("scale", "binding", "eviction", "log", "token", *NOT_SIMULATED)

    async def serve(self, target: RequestTarget, request: Request) -> Response | None:
        match target.subresource:
            case "scale":
                return await Scaling(self.verbs).serve(target, request)
            case "binding":
                return await self.bind(target, request)
            case "eviction":
                return await self._evict(target, request)
            case "log":
                return await self.logs.serve(target, request)
            case "token":
                return await self._issue(target, request)
        raise MethodNotAllowedError(
            f"{target.resource_type.plural}/{target.subresource} is not simulated: "
            f"{NOT_SIMULATED[target.subresource]}",
            kind=target.resource_type.plural,
            name=target.name,
        )

    async def bind(self, target: RequestTarget, request: Request) -> Response:
        """POST of a Binding, to a pod or to the collection ``bindings``."""
        body = await self._read(request, BINDING)
        name = target.name or (body.get("metadata") or {}).get("name", "")
        if not name:
            raise BadRequestError("name must be provided")
        options, registry = write_options(request), self.verbs.registry
        await self.verbs.decided(
            request,
            lambda: registry.bind(request.actor, target.namespace, name, body, options=options),
        )
        return _created()

    async def _evict(self, target: RequestTarget, request: Request) -> Response:
        body = await self._read_eviction(target, request)
        options, registry = eviction_options(body, request), self.verbs.registry
        try:
            await self.verbs.decided(
                request,
                lambda: registry.evictions.evict(
                    request.actor, target.namespace, target.name, options=options
                ),
            )
        except ManyBudgetsError as error:
            # Upstream's answer: the status line of a success around a Status of failure.
            return json_response(
                {key: value for key, value in error.to_status().items() if value != ""}, 201
            )
        return _created()

    async def _issue(self, target: RequestTarget, request: Request) -> Response:
        """POST of a TokenRequest to a ServiceAccount."""
        asked = checked(await self._read(request, TOKEN_REQUEST), TOKEN_REQUEST)
        return json_response(self.accounts.issue(target.namespace, target.name, asked), 201)

    async def _read_eviction(self, target: RequestTarget, request: Request) -> JsonObject:
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
            causes=(StatusCause("FieldValueInvalid", message, field),),
        )
    return parse_delete_options(given, request)


def _created() -> Response:
    return json_response({**success_status("", "", ""), "code": 201}, 201)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Serves ``scale``."""

    verbs: Writes

    async def serve(self, target: RequestTarget, request: Request) -> Response:
        if request.method == "GET":
            return json_response(
                self._scales.get(target.resource_type, target.namespace, target.name)
            )
        change = self._update if request.method == "PUT" else self._patch
        record = await self.verbs.decided(request, await change(target, request))
        return json_response(self._scales.view(record, target.resource_type))

    async def _update(self, target: RequestTarget, request: Request) -> Callable[[], Record]:
        scale, options = await self._read(target, request), write_options(request)
        return lambda: self._scales.update(
            request.actor,
            target.resource_type,
            target.namespace,
            target.name,
            scale,
            options=options,
        )

    async def _patch(self, target: RequestTarget, request: Request) -> Callable[[], Record]:
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

    async def _read(self, target: RequestTarget, request: Request) -> JsonObject:
        body = as_object((await self.verbs.read_body(request)).value)
        scale = self.verbs.fields.decoded(check_kind(body, SCALE.gvk), SCALE_TYPE, request)
        if not isinstance(scale.get("metadata"), dict):
            raise BadRequestError("name must be provided")
        check_name(scale, target)
        return scale

    @property
    def _scales(self) -> Scales:
        return self.verbs.registry.scales


COLLECTION, OBJECT, SUBRESOURCE = ResourcePattern


class ResourceRequests:
    """Answers for every resource of a world, built-in and custom."""

    def __init__(
        self,
        verbs: Writes,
        lister: ListServer,
        renderer: Renderer,
        streams: WatchStreams,
        logs: PodLogs,
        authorizer: Authorizer,
        credentials: Credentials,
    ) -> None:
        self._verbs = verbs
        self._lister = lister
        self._renderer = renderer
        self._streams = streams
        self._authorizer = authorizer
        self._credentials = credentials
        self._subresources = Subresources(verbs, credentials.accounts, logs)

    def routes(self) -> Iterator[Route]:
        yield Route("GET", COLLECTION, self.list)
        yield Route("POST", COLLECTION, self.create, engine=True)
        yield Route("DELETE", COLLECTION, self.delete_collection, engine=True)
        yield Route("GET", OBJECT, self.get)
        yield Route("PUT", OBJECT, self.update, engine=True)
        yield Route("PATCH", OBJECT, self.patch, engine=True)
        yield Route("DELETE", OBJECT, self.delete, engine=True)
        for method, verb in SUBRESOURCE_VERBS.items():
            handler = partial(self.subresource, verb)
            yield Route(method, SUBRESOURCE, handler, engine=verb != "get")
        # A kind that takes nothing at all says so only if its Accept can be met.
        for pattern in ResourcePattern:
            yield Route(ANY, pattern, no_verb)

    async def list(self, request: Request) -> Response | None:
        target = request.resource
        watches = target.is_watch or request.flag("watch")
        has_columns = target.resource_type.group_resource == PODS and not watches
        form = negotiate(request.header(b"accept"), has_columns=has_columns)
        check_verb("list", target.resource_type.verbs)
        if watches:
            check_verb("watch", target.resource_type.verbs)
            await self._streams.serve(target, request, form)
            return None
        page = await self._lister.page(target, request)
        include = request.query.get("includeObject", "")
        return await self._renderer.list_response(
            page.records, target.resource_type, form, page.meta, include=include
        )

    async def create(self, request: Request) -> Response:
        form, target = negotiate(request.header(b"accept")), request.resource
        resource_type = target.resource_type
        check_verb("create", resource_type.verbs)
        if is_review(resource_type):
            obj = checked(await self._verbs.read_object(target, request), resource_type)
            answered = review(obj, request.actor, self._authorizer, self._credentials)
            return json_response(answered, 201)
        if resource_type.namespaced and not target.namespace:
            raise method_not_allowed()
        if resource_type.kind == "Binding" and not resource_type.gvk.group:
            return await self._subresources.bind(target, request)
        return await self._verbs.create(target, request, form)

    async def delete_collection(self, request: Request) -> Response:
        negotiate(request.header(b"accept"))
        check_verb("deletecollection", request.resource.resource_type.verbs)
        return await self._verbs.delete_collection(request.resource, request)

    async def get(self, request: Request) -> Response:
        form, target = negotiate(request.header(b"accept")), request.resource
        check_verb("get", target.resource_type.verbs)
        render, is_long = self._shown(target, request, form)
        return await asyncio.to_thread(render) if is_long else render()

    async def update(self, request: Request) -> Response:
        form, target = negotiate(request.header(b"accept")), request.resource
        check_verb("update", target.resource_type.verbs)
        return await self._verbs.update(target, request, form)

    async def patch(self, request: Request) -> Response:
        form, target = negotiate(request.header(b"accept")), request.resource
        check_verb("patch", target.resource_type.verbs)
        return await self._verbs.patch(target, request, form)

    async def delete(self, request: Request) -> Response:
        form, target = negotiate(request.header(b"accept")), request.resource
        check_verb("delete", target.resource_type.verbs)
        return await self._verbs.delete(target, request, form)

    async def subresource(self, verb: str, request: Request) -> Response | None:
        form, target = negotiate(request.header(b"accept")), request.resource
        check_verb(verb, target.resource_type.subresource(target.subresource).verbs)
        if self._subresources.is_special(target.subresource):
            return await self._subresources.serve(target, request)
        if verb == "get":
            render, is_long = self._shown(target, request, form)
            return await asyncio.to_thread(render) if is_long else render()
        check_status_writer(target)
        if verb == "update":
            return await self._verbs.update(target, request, form)
        return await self._verbs.patch(target, request, form)

    def _shown(
        self, target: RequestTarget, request: Request, form: ResponseForm
    ) -> tuple[Callable[[], Response], bool]:
        """How to render an object, and whether others should be answered meanwhile."""
        record = self._verbs.registry.record(target.resource_type, target.namespace, target.name)
        include = request.query.get("includeObject", "")
        render = partial(
            self._renderer.object_response, record, target.resource_type, form, include=include
        )
        return render, record.is_large


SUBRESOURCE_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}


async def no_verb(request: Request) -> Response:
    negotiate(request.header(b"accept"))
    raise method_not_allowed()


def check_verb(verb: str, allowed: tuple[str, ...]) -> None:
    """405 unless the resource has the verb."""
    if verb not in allowed:
        raise method_not_allowed()


def check_status_writer(target: RequestTarget) -> None:
    """403 for the status of a Scenario: whoever plays it writes it, and nobody else."""
    resource_type = target.resource_type
    if resource_type.gvk == SCENARIO and target.subresource == "status":
        raise ForbiddenError(
            f'{resource_type.named_resource} "{target.name}" is forbidden: the status of a '
            "Scenario is written by the engine that plays it",
            name=target.name,
            group=resource_type.gvk.group,
            kind=resource_type.plural,
        )
