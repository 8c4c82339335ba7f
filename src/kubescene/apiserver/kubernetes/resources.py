"""Requests for objects of Kubernetes: which verb is asked, whether the kind has it, who answers."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from kubescene.api.kinds import SCENARIO
from kubescene.apiserver.access import Authorizer, is_review, review
from kubescene.apiserver.kubernetes.listing import ListServer
from kubescene.apiserver.kubernetes.rendering import Renderer, is_large
from kubescene.apiserver.kubernetes.subresources import Subresources
from kubescene.apiserver.kubernetes.watches import WatchStreams
from kubescene.apiserver.kubernetes.writes import Writes
from kubescene.apiserver.negotiation import ResponseForm, negotiate
from kubescene.apiserver.requests import Request, Target
from kubescene.apiserver.responses import Response, json_response
from kubescene.apiserver.table import ANY, ResourcePattern, Route, method_not_allowed
from kubescene.errors import ForbiddenError

COLLECTION, OBJECT, SUBRESOURCE = ResourcePattern


class ResourceRequests:
    """Answers for every resource of a world, built-in and custom."""

    def __init__(
        self,
        verbs: Writes,
        lister: ListServer,
        renderer: Renderer,
        streams: WatchStreams,
        authorizer: Authorizer,
    ) -> None:
        self._verbs = verbs
        self._lister = lister
        self._renderer = renderer
        self._streams = streams
        self._authorizer = authorizer
        self._subresources = Subresources(verbs)

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
        form, target = negotiate(request.header(b"accept")), request.resource
        check_verb("list", target.resource_type.verbs)
        if target.is_watch or request.flag("watch"):
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
            obj = await self._verbs.read_object(target, request)
            return json_response(review(obj, request.actor, self._authorizer), 201)
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

    async def subresource(self, verb: str, request: Request) -> Response:
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
        self, target: Target, request: Request, form: ResponseForm
    ) -> tuple[Callable[[], Response], bool]:
        """How to render an object, and whether others should be answered meanwhile."""
        record = self._verbs.registry.record(target.resource_type, target.namespace, target.name)
        include = request.query.get("includeObject", "")
        render = partial(
            self._renderer.object_response, record, target.resource_type, form, include=include
        )
        return render, is_large(record)


SUBRESOURCE_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}


async def no_verb(request: Request) -> Response:
    negotiate(request.header(b"accept"))
    raise method_not_allowed()


def check_verb(verb: str, allowed: tuple[str, ...]) -> None:
    """405 unless the resource has the verb."""
    if verb not in allowed:
        raise method_not_allowed()


def check_status_writer(target: Target) -> None:
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
