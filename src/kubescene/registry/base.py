"""The verbs that everybody writes with, and how objects are read.

Reading and the rules of kinds are the same for all registries; the verbs are those of an embedded
world (`kubescene.registry.registry`) or of one whose objects another API server holds. What is
made of verbs (`Registry`) stands above. `Checks` are the stages that can refuse a write: admission
in its two rounds, and validation between them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, Required, TypedDict, Unpack

import orjson

from kubescene.actors import Actor, Role
from kubescene.api import conversion, validation
from kubescene.api.gates import OpenGate, WriteGate
from kubescene.api.options import NO_OPTIONS, DeleteOptions, OperationOrigin, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.schemas.definition_parts import conversion_in_vain
from kubescene.api.schemas.strict_decoding import strict_error
from kubescene.api.schemas.structural import Examined
from kubescene.api.scheme import GroupVersionKind, ResourceType, Scheme
from kubescene.api.validation.core.events import new_event_errors
from kubescene.clock import Clock, Identities
from kubescene.errors import ApiError, ForbiddenError
from kubescene.instruments import Instruments
from kubescene.registry import decoding
from kubescene.registry.admission.chain import AdmissionChain, AdmissionRequest, silent
from kubescene.registry.admission.webhooks import Webhooks
from kubescene.registry.clocks import Clocks
from kubescene.registry.custom_resources import DEFINITIONS, CustomResources, definition_errors
from kubescene.registry.expressions import POLICIES, policy_errors, selector_errors
from kubescene.registry.preconditions import not_found
from kubescene.registry.preparation import Preparation
from kubescene.registry.subresources.pod_subresources import POD_PARTS
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store
from kubescene.types import JsonObject

NEWER_EVENTS = "events.k8s.io/v1"
_ADMISSION_VERBS = {"patch": "update"}


class Checks:
    """Admission and validation of one world."""

    def __init__(
        self, admission: AdmissionChain, store: Store, clock: Clock, custom: CustomResources
    ) -> None:
        self._admission = admission
        self._store = store
        self._clock = clock
        self._custom = custom

    def admit(
        self, request: WriteRequest, obj: JsonObject, old: JsonObject | None, place: str = ""
    ) -> JsonObject:
        """The object as the first round of admission leaves it."""
        if self._has_no_say(request, obj, old):
            return obj
        return self._admission.admit(self._asked(request, obj, old, place))

    def accept(self, request: WriteRequest, new: JsonObject, old: JsonObject | None) -> None:
        """Validation, and admission's last word on the object as it would be stored."""
        kind, subresource = request.resource_type, request.subresource
        sent_as = _sent_as(request) if kind.kind == "Event" else ""
        options = request.options
        warn = options.warn or silent
        self.validate(new, old, kind, subresource, sent_as, options.examined, warn)
        asked = self._admission.concerned(kind.kind).validators
        if asked and not self._has_no_say(request, new, old):
            self._admission.validate(self._asked(request, new, old, ""))

    def release(self, request: WriteRequest, obj: JsonObject) -> None:
        """Admission's last word on a deletion."""
        if not self._admission.is_quiet:
            self._admission.validate(self._asked(request, obj, obj, ""))

    def admit_part(
        self,
        request: WriteRequest,
        body: JsonObject,
        key: tuple[str, str],
        old: JsonObject | None = None,
    ) -> JsonObject:
        """What admission makes of the body of a subresource that has a kind of its own.

        ``key`` is namespace and name of the object that it is about.
        """
        if self._admission.is_quiet or request.options.is_admitted:
            return body
        gvk = request.resource_type.subresource(request.subresource).gvk
        metadata = {**(body.get("metadata") or {}), "namespace": key[0], "name": key[1]}
        whole = {**body, "apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}
        asked = self._asked(request, whole, old, key[0])
        whole = self._admission.admit(asked)
        self._admission.validate(asked.with_object(whole))
        return whole

    def validate(
        self,
        new: JsonObject,
        old: JsonObject | None,
        resource_type: ResourceType,
        subresource: str = "",
        sent_as: str = "",
        examined: Examined | None = None,
        warn: Callable[[str], None] = silent,
    ) -> None:
        """422 with one cause per field that is wrong.

        ``sent_as`` is the version in which the client wrote it: Events of the newer group have
        rules of their own, in whatever form they are kept.
        """
        if resource_type.custom:
            errors = self._custom.errors(new, old, resource_type, subresource, examined, warn)
        elif old is None:
            place = new["metadata"].get("namespace")
            errors = validation.validate_create(new, resource_type, namespace=place)
            if sent_as == NEWER_EVENTS:
                errors += new_event_errors(new)
        elif subresource == "status":
            errors = validation.validate_status_update(new, old, resource_type)
        elif subresource == "finalize":
            errors = validation.validate_finalize(new, old)
        elif subresource in POD_PARTS:
            errors = validation.validate_pod_part(new, old, subresource)
        else:
            errors = validation.validate_update(new, old, resource_type)
        if resource_type.group_resource == DEFINITIONS and not subresource:
            errors = [*errors, *definition_errors(new, old)]
            if told := conversion_in_vain(new.get("spec") or {}):
                warn(f"spec.conversion has no effect: {told}")
        elif resource_type.gvk.group == "resource.k8s.io" and not subresource:
            errors += selector_errors(new, old, resource_type)
        elif resource_type.gvk.group == POLICIES and not subresource:
            errors += policy_errors(new, resource_type)
        validation.raise_if_invalid(errors, resource_type, new["metadata"].get("name", ""))

    def validate_metadata(
        self, new: JsonObject, old: JsonObject, resource_type: ResourceType
    ) -> None:
        """422 for metadata that an object may not have, or no longer."""
        errors = validation.validate_metadata_change(new, old)
        validation.raise_if_invalid(errors, resource_type, new["metadata"].get("name", ""))

    def check_open(self, resource_type: ResourceType, obj: JsonObject) -> None:
        """403 for an object of a custom kind whose definition is going away."""
        kind = self._custom.of(resource_type.gvk)
        if kind is not None and kind.terminating:
            resource, name = resource_type.named_resource, obj["metadata"].get("name", "")
            raise ForbiddenError(
                f'{resource} "{name}" is forbidden: create not allowed while custom resource '
                "definition is terminating",
                name=name,
                group=resource.group,
                kind=resource.resource,
            )

    def _has_no_say(self, request: WriteRequest, new: JsonObject, old: JsonObject | None) -> bool:
        """Whether nothing but the status changes, to which no plugin says anything."""
        return (
            request.subresource == "status"
            and old is not None
            and new["metadata"] is old["metadata"]
            and self._admission.is_quiet
        )

    def _asked(
        self, request: WriteRequest, obj: JsonObject, old: JsonObject | None, place: str
    ) -> AdmissionRequest:
        metadata = obj["metadata"]
        return AdmissionRequest(
            verb=_ADMISSION_VERBS.get(request.verb, request.verb),
            resource_type=request.resource_type,
            subresource=request.subresource,
            namespace=place or metadata.get("namespace", ""),
            name=metadata.get("name", ""),
            actor=request.actor,
            obj=obj,
            old=old,
            store=self._store,
            clock=self._clock,
            options=request.options,
            sent_as=request.served,
        )


def _sent_as(request: WriteRequest) -> str:
    body = request.body
    return str(body.get("apiVersion") or "") if isinstance(body, dict) else ""


BINDING = GroupVersionKind("", "v1", "Binding")


class RegistryParts(TypedDict, total=False):
    """What a registry is made of."""

    scheme: Required[Scheme]
    store: Required[Store]
    clock: Required[Clock]
    identities: Required[Identities]
    admission: Required[AdmissionChain]
    instruments: Instruments
    server_clock: Clock | None
    gates: Collection[str]


class RegistryBase(ABC):
    """All verbs over one store but those of subresources.

    ``track_fields`` says whether every write is noted in ``managedFields``. Off, which is the
    default because it costs time and space, only applies are, and writes of the kinds in
    ``always_tracked`` (design note 0012).
    """

    def __init__(self, **parts: Unpack[RegistryParts]) -> None:
        self.scheme = scheme = parts["scheme"]
        self.store = store = parts["store"]
        self.clock = clock = parts["clock"]
        self.clocks = Clocks(clock, parts.get("server_clock"))
        self.identities = parts["identities"]
        self.instruments = parts.get("instruments") or Instruments()
        self.gate: WriteGate = OpenGate()
        self.custom = CustomResources(scheme, store)
        self.admission = parts["admission"]
        self.webhooks = Webhooks(store, scheme, self.custom, self.admission)
        self.checks = Checks(self.admission, store, clock, self.custom)
        self.preparation = Preparation(store, clock, self.custom, parts.get("gates", ()))
        self.most_pods: int | None = None
        """How many pods there may be: a slip of the pen must not fill the memory of a server."""
        self.track_fields = False
        self.always_tracked: frozenset[GroupVersionKind] = frozenset()

    # -- verbs -----------------------------------------------------------------------------

    @abstractmethod
    def create(
        self,
        actor: Actor,
        obj: JsonObject,
        *,
        namespace: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Create an object; its own namespace, if any, must agree with ``namespace``."""

    @abstractmethod
    def update(
        self,
        actor: Actor,
        obj: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Replace an object (or its status), checking ``resourceVersion`` if it is given."""

    @abstractmethod
    def patch(
        self,
        actor: Actor,
        resource_type: ResourceType,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
        inspect: Callable[[JsonObject], JsonObject] | None = None,
    ) -> Record:
        """Change an object as a patch says, in the version of ``resource_type``.

        ``inspect`` sees the patched object before anything else does and returns it, changed or
        not, or refuses it: the API server's field validation.
        """

    @abstractmethod
    def bind(
        self,
        actor: Actor,
        namespace: str,
        name: str,
        target: JsonObject,
        *,
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        """Assign a pod to a node: the ``binding`` subresource."""

    @abstractmethod
    def delete(
        self,
        actor: Actor,
        resource_type: ResourceType,
        namespace: str,
        name: str,
        *,
        options: DeleteOptions,
        origin: OperationOrigin | None = None,
    ) -> Record:
        """Delete, or mark for deletion. The record is the object's newest state."""

    # -- reading ---------------------------------------------------------------------------

    def record(self, resource_type: ResourceType, namespace: str, name: str) -> Record:
        """The stored record; 404 if there is none."""
        record = self.store.get(resource_type.group_resource, namespace, name)
        if record is None:
            raise not_found(resource_type, name)
        return record

    def type_of(self, gvk: GroupVersionKind) -> ResourceType:
        return self.scheme.of(gvk)

    def decoded(self, record: Record, resource_type: ResourceType) -> JsonObject:
        """The object in the version of ``resource_type``; shared, and therefore read-only."""
        obj = self.store.decoded(record)
        if resource_type.custom or resource_type.stored_as:
            return self._shown(obj, record.revision, resource_type)
        return obj

    def present(self, record: Record, resource_type: ResourceType) -> bytes:
        """The object as JSON in the version of ``resource_type``; the stored bytes if they do.

        Any thread may ask.
        """
        data = record.data
        opening = b'{"apiVersion":"%s","kind":"%s",' % (
            resource_type.api_version.encode(),
            resource_type.kind.encode(),
        )
        if data.startswith(opening) and self.custom.is_current(record, resource_type):
            return data
        return orjson.dumps(self._shown(record.decode(), record.revision, resource_type))

    def _shown(self, obj: JsonObject, revision: int, resource_type: ResourceType) -> JsonObject:
        if resource_type.custom:
            return self.custom.presented(obj, revision, resource_type)
        return conversion.from_storage(obj, resource_type) if resource_type.stored_as else obj

    # -- for the verbs, and for imports -------------------------------------------------------

    def role_of(self, actor: Actor) -> Role:
        """What the actor is in the scenario that runs now, if one does."""
        return self.gate.role_of(actor)

    def to_storage(
        self, obj: JsonObject, examined: Examined | None = None
    ) -> tuple[ResourceType, JsonObject]:
        """The type and form in which an object that a client wrote goes on."""
        served = self._served(obj)
        body = decoding.accepted(obj, served, self.custom, examined=examined)
        return self._stored_type(served), body

    def examined(self, obj: JsonObject) -> Examined | None:
        """What the schema of its kind says of a body; None for built-in kinds and bad bodies.

        On any thread.
        """
        try:
            return decoding.examination(obj, self._served(obj), self.custom)
        except ApiError:
            return None

    def reject_unknown(self, obj: JsonObject) -> None:
        """400 for fields that the object's kind does not have: strict field validation."""
        served = self._served(obj)
        if complaints := decoding.unknown_complaints(obj, served, self.custom):
            raise strict_error(served.gvk, complaints)

    def stored(self, obj: JsonObject, resource_type: ResourceType) -> JsonObject:
        """The object as the store keeps it: custom ones in the storage version."""
        return self.custom.stored(obj, resource_type) if resource_type.custom else obj

    def tell(self, request: WriteRequest, record: Record, previous: Record | None) -> None:
        """Let the instruments know of an accepted write."""
        if hooks := self.instruments.object_written:
            write = request.done(record, previous, self.gate.role_of(request.actor))
            for hook in hooks:
                hook(write)

    def _served(self, obj: JsonObject) -> ResourceType:
        return self.scheme.of_kind(obj.get("apiVersion", ""), obj.get("kind", ""))

    def _stored_type(self, served: ResourceType) -> ResourceType:
        """Built-in kinds go on in the stored version, custom ones in that of the request."""
        if served.custom or not served.stored_as:
            return served
        return self.type_of(served.stored_as)
