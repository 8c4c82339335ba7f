"""The verbs of a resource over HTTP: create, update, patch, delete, delete a collection.

Each reads and checks its request on the event loop, lets the registry decide on the engine
thread, and renders the record that comes back.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from msgspec import structs

from kubescene.actors import Actor
from kubescene.api.consultations import AnswersNeededError
from kubescene.api.field_ownership.field_managers import TOO_LONG, manager_of, manager_problem
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource, ResourceType
from kubescene.apiserver import bodies
from kubescene.apiserver.access.escalation import EscalationCheck
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.field_validation import FieldValidation, check_kind
from kubescene.apiserver.kubernetes.rendering import ListMeta, Renderer
from kubescene.apiserver.kubernetes.selection import select
from kubescene.apiserver.negotiation import PLAIN, ResponseForm
from kubescene.apiserver.requests import DEFAULT_MAX_BODY, MAX_BODY, Request, RequestTarget
from kubescene.apiserver.responses import Response, json_response, success_status
from kubescene.apiserver.webhooks import WebhookClient
from kubescene.errors import BadRequestError, InvalidError, NotFoundError, StatusCause
from kubescene.registry import Registry
from kubescene.registry.decoding import examination
from kubescene.scenario.validation.unsimulated import without_effect
from kubescene.types import JsonObject, JsonValue

T = TypeVar("T")
SHOWN_WHEN_GONE = frozenset(
    GroupResource(group, plural)
    for group, plurals in {
        "": "namespaces persistentvolumeclaims persistentvolumes pods podtemplates "
        "resourcequotas serviceaccounts services",
        "resource.k8s.io": "deviceclasses devicetaintrules resourceclaims resourceclaimtemplates "
        "resourcepoolstatusrequests resourceslices",
        "storage.k8s.io": "csidrivers csinodes storageclasses volumeattachments "
        "volumeattributesclasses",
    }.items()
    for plural in plurals.split()
)
"""Resources whose deletion kube-apiserver answers with the object (``ReturnDeletedObject``)."""

PROPAGATION_POLICIES = ("", "Background", "Foreground", "Orphan")
DELETED_AT_ONCE = 500
"""Objects of a collection, before others have their turn: about ten milliseconds."""
OPTIONS = {"PUT": "UpdateOptions", "PATCH": "PatchOptions"}


@dataclass(frozen=True, slots=True)
class Writes:
    """Writes of one world."""

    registry: Registry
    engine: EngineThread
    renderer: Renderer
    fields: FieldValidation
    max_body: int = DEFAULT_MAX_BODY
    escalation: EscalationCheck | None = None
    """Where Roles say who may do what: what a Role or a binding may grant."""
    webhooks: WebhookClient = field(default_factory=WebhookClient)

    def check_grants(self, actor: Actor, obj: JsonObject, target: RequestTarget) -> None:
        """403 if an object gives away what its author does not have."""
        if self.escalation is not None:
            resource = target.resource_type.group_resource
            self.escalation.check(actor, resource, obj, target.namespace)

    async def create(self, target: RequestTarget, request: Request, form: ResponseForm) -> Response:
        """POST to a collection."""
        obj = await self.read_object(target, request)
        check_namespace(obj, target)
        self.check_grants(request.actor, obj, target)
        self._warn_of_no_effect(target, request)
        options = await self._options(obj, target, request)
        record = await self.decided(
            request,
            lambda: self.registry.create(
                request.actor, obj, namespace=target.namespace, options=options
            ),
        )
        return await self._rendered(record, target, request, form, 201)

    def _warn_of_no_effect(self, target: RequestTarget, request: Request) -> None:
        """As `kubescene run` does: what nobody acts on is named when somebody uses it."""
        gvk, controllers = target.resource_type.gvk, self.engine.cluster.registrations
        calls = self.registry.webhooks.can_be_called
        if told := without_effect(gvk.group, gvk.kind, controllers, calls_webhooks=calls):
            request.warnings.append(told)

    async def decided(self, request: Request, command: Callable[[], T]) -> T:
        """What comes of a command that writes; the webhooks that have a say are asked here.

        Nobody else waits for them: the command ends without having done anything, and is tried
        again with their answers.
        """
        said = len(request.warnings)
        while True:
            try:
                return await self.engine.submit(command)
            except AnswersNeededError as needed:
                calls = needed.calls
            del request.warnings[said:]
            request.consultation.annotations.clear()
            answers = await asyncio.gather(*map(self.webhooks.answer, calls))
            for call, answer in zip(calls, answers, strict=True):
                request.consultation.keep(call, answer)

    async def update(self, target: RequestTarget, request: Request, form: ResponseForm) -> Response:
        """PUT to an object, or to one of the subresources that have its kind."""
        obj = await self.read_object(target, request)
        check_namespace(obj, target)
        check_name(obj, target)
        self.check_grants(request.actor, obj, target)
        options = await self._options(obj, target, request)
        record = await self.decided(
            request,
            lambda: self.registry.update(
                request.actor,
                obj,
                namespace=target.namespace,
                subresource=target.subresource,
                options=options,
            ),
        )
        return await self._rendered(record, target, request, form)

    async def patch(self, target: RequestTarget, request: Request, form: ResponseForm) -> Response:
        """PATCH of an object, or of one of the subresources that have its kind."""
        patch_type, patch = await self.read_patch(request, target.resource_type)
        options = write_options(request)
        resource_type = target.resource_type

        def inspect(obj: JsonObject) -> JsonObject:
            found = self.fields.check_patched(obj, resource_type, request, patch)
            self.check_grants(request.actor, found, target)
            return found

        def command() -> tuple[Record, bool]:
            place = (resource_type.group_resource, target.namespace, target.name)
            is_new = self.registry.store.get(*place) is None
            record = self.registry.patch(
                request.actor,
                resource_type,
                target.namespace,
                target.name,
                patch,
                patch_type,
                subresource=target.subresource,
                options=options,
                inspect=inspect,
            )
            return record, is_new

        record, is_new = await self.decided(request, command)
        if is_new:
            self._warn_of_no_effect(target, request)
        return await self._rendered(record, target, request, form, 201 if is_new else 200)

    async def delete(self, target: RequestTarget, request: Request, form: ResponseForm) -> Response:
        """DELETE of an object: its newest state while it waits, a ``Status`` once it is gone.

        Some resources show the object even then.
        """
        options = await self.delete_options(request)
        resource_type = target.resource_type

        def command() -> tuple[Record, bool]:
            record = self.registry.delete(
                request.actor, resource_type, target.namespace, target.name, options=options
            )
            found = self.registry.store.get(
                resource_type.group_resource, target.namespace, target.name
            )
            return record, found is not None

        record, remains = await self.decided(request, command)
        waits = record.deleting if options.dry_run else remains
        if waits or resource_type.group_resource in SHOWN_WHEN_GONE:
            return await self._rendered(record, target, request, form)
        resource = resource_type.named_resource
        return json_response(
            success_status(record.name, resource.group, resource.resource, record.uid)
        )

    async def delete_collection(self, target: RequestTarget, request: Request) -> Response:
        """DELETE of all that match; the reply lists them.

        Others write in between, as with kube-apiserver: it deletes one object after the other.
        """
        options = await self.delete_options(request)
        selection = select(target, request.query, self.registry.custom)
        resource_type, store = target.resource_type, self.registry.store

        def found() -> list[Record]:
            listed = store.list(resource_type.group_resource, target.namespace)
            return [each for each in listed if selection.matches(each)]

        def delete(records: list[Record]) -> list[Record]:
            return [
                each
                for each in records
                if self._is_deleted(each, resource_type, request.actor, options)
            ]

        matching = await self.engine.submit(found)
        deleted: list[Record] = []
        at_once = 1 if self.registry.webhooks.are_asked else DELETED_AT_ONCE
        for begin in range(0, len(matching), at_once):
            some = matching[begin : begin + at_once]
            deleted += await self.decided(request, partial(delete, some))
        meta = ListMeta(store.revision)
        return await self.renderer.list_response(deleted, resource_type, PLAIN, meta)

    def _is_deleted(
        self, record: Record, kind: ResourceType, actor: Actor, options: DeleteOptions
    ) -> bool:
        """Delete an object of a collection; False if somebody else was faster."""
        try:
            self.registry.delete(actor, kind, record.namespace, record.name, options=options)
        except NotFoundError:
            return False
        return True

    # -- reading requests --------------------------------------------------------------------

    async def read_object(self, target: RequestTarget, request: Request) -> JsonObject:
        """The body as an object of the kind that the URL names."""
        body = await self.read_body(request)
        if request.size > bodies.LARGE:
            return await asyncio.to_thread(self._object_of, body, target, request)
        return self._object_of(body, target, request)

    def _object_of(self, body: bodies.Body, target: RequestTarget, request: Request) -> JsonObject:
        obj = check_kind(as_object(body.value), target.resource_type.gvk)
        if not isinstance(obj.get("metadata", {}), dict | None):
            raise BadRequestError("metadata must be an object")
        obj = {**obj, "metadata": obj.get("metadata") or {}}
        self.fields.check(obj, target.resource_type, request, body.duplicates)
        return obj

    async def _options(
        self, obj: JsonObject, target: RequestTarget, request: Request
    ) -> WriteOptions:
        """With a large body of a custom kind comes what its schema says of it.

        To find that out takes as long as all else: not on the thread that others wait for.
        """
        options, kind = write_options(request), target.resource_type
        if request.size <= bodies.LARGE or not kind.custom or target.subresource:
            return options
        found = await asyncio.to_thread(examination, obj, kind, self.registry.custom)
        return structs.replace(options, examined=found)

    async def read_body(self, request: Request) -> bodies.Body:
        body = await bodies.read_body(request, self.max_body, MAX_BODY)
        if request.rewrite is None:
            return body
        return replace(body, value=request.rewritten(body.value))

    async def read_patch(
        self, request: Request, resource_type: ResourceType
    ) -> tuple[PatchType, JsonValue]:
        """The patch and its type; 415 names the types that can be had."""
        media_type = bodies.media_type(request.header(b"content-type"))
        accepted = [
            each.value
            for each in PatchType
            if not (resource_type.custom and each is PatchType.STRATEGIC)
        ]
        if media_type not in accepted:
            raise bodies.unsupported(*accepted)
        patch_type = PatchType(media_type)
        data = await request.body(self.max_body, MAX_BODY)
        if patch_type is PatchType.APPLY:
            body = await bodies.aside(bodies.decode_yaml, data)
            return patch_type, as_object(request.rewritten(body.value))
        body = await bodies.aside(bodies.decode_json, data)
        if patch_type is not PatchType.JSON:
            as_object(body.value)
        return patch_type, request.rewritten(body.value)

    async def delete_options(self, request: Request) -> DeleteOptions:
        """Options from the body if there is one, else from the query."""
        data = await request.body(self.max_body, MAX_BODY)
        options: JsonObject = {}
        if data.strip():
            options = as_object(bodies.decode_body(data, request.header(b"content-type")).value)
            if options.get("kind", "DeleteOptions") not in ("", "DeleteOptions"):
                raise BadRequestError(
                    f"expected DeleteOptions in the body, found {options.get('kind')!r}"
                )
        return parse_delete_options(options, request)

    async def _rendered(
        self,
        record: Record,
        target: RequestTarget,
        request: Request,
        form: ResponseForm,
        status: int = 200,
    ) -> Response:
        render = partial(
            self.renderer.object_response,
            record,
            target.resource_type,
            form,
            include=request.query.get("includeObject", ""),
            status=status,
        )
        return await asyncio.to_thread(render) if record.is_large else render()


def as_object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise BadRequestError(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{_json_kind(value)} into Go value of type struct"
        )
    return value


def write_options(request: Request) -> WriteOptions:
    said = ("fieldManager", "fieldValidation")
    request.consultation.options = {
        name: request.query[name] for name in said if request.query.get(name)
    }
    return WriteOptions(
        dry_run=request.is_dry_run,
        field_manager=field_manager(request),
        force=request.flag("force"),
        warn=request.warnings.append,
        consultation=request.consultation,
    )


def field_manager(request: Request) -> str:
    """The manager that a request names; one that applies has to.

    Other writers are known by the program they say they are (``kubectl/v1.33``: kubectl).
    """
    given = request.query.get("fieldManager", "")
    check_manager(given, OPTIONS.get(request.method, "CreateOptions"))
    if given or bodies.media_type(request.header(b"content-type")) == PatchType.APPLY.value:
        return given
    return manager_of(request.header(b"user-agent")) or request.actor.manager


def check_manager(name: str, kind: str) -> None:
    """422 for a name that cannot be noted; ``kind`` is that of the options that carry it."""
    why = manager_problem(name)
    if not why:
        return
    reason = "FieldValueTooLong" if why == TOO_LONG else "FieldValueInvalid"
    raise InvalidError(
        f'{kind}.meta.k8s.io "" is invalid: fieldManager: {why}',
        group="meta.k8s.io",
        kind=kind,
        causes=(StatusCause(reason, why, "fieldManager"),),
    )


def parse_delete_options(options: JsonObject, request: Request) -> DeleteOptions:
    """``DeleteOptions`` of the body, completed by query parameters."""
    preconditions = options.get("preconditions") or {}
    grace = options.get("gracePeriodSeconds", request.number("gracePeriodSeconds"))
    if grace is not None and type(grace) is not int:
        raise BadRequestError("gracePeriodSeconds must be an integer")
    policy = options.get("propagationPolicy") or request.query.get("propagationPolicy", "")
    if not policy and options.get("orphanDependents"):
        policy = "Orphan"
    if policy not in PROPAGATION_POLICIES:
        raise BadRequestError(
            f'propagationPolicy: Unsupported value: "{policy}": supported values: '
            '"Background", "Foreground", "Orphan"'
        )
    dry_run = options.get("dryRun") or []
    if dry_run not in ([], ["All"]):
        raise BadRequestError(f"dryRun may only be All, not {dry_run!r}")
    if not isinstance(preconditions, dict):
        raise BadRequestError("preconditions must be an object")
    said = {
        "gracePeriodSeconds": grace,
        "propagationPolicy": policy,
        "preconditions": preconditions,
    }
    request.consultation.options = {
        name: each for name, each in said.items() if each not in (None, "", {})
    }
    return DeleteOptions(
        grace_period_s=grace,
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        propagation_policy=policy,
        dry_run=bool(dry_run) or request.is_dry_run,
        warn=request.warnings.append,
        consultation=request.consultation,
    )


def check_name(obj: JsonObject, target: RequestTarget) -> None:
    """400 if the body names another object than the URL."""
    name = obj["metadata"].get("name", "")
    if not name:
        raise BadRequestError("name must be provided")
    if name != target.name:
        raise BadRequestError(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )


def check_namespace(obj: JsonObject, target: RequestTarget) -> None:
    """400 for another namespace; an object that belongs to none loses the one it brings."""
    own = obj["metadata"].get("namespace", "")
    if own and target.namespace and own != target.namespace:
        raise BadRequestError(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _json_kind(value: JsonValue) -> str:
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "null" if value is None else "number"
