"""The stages that can refuse a write: admission in its two rounds, and validation between them."""

from kubescene.api import validation
from kubescene.api.schemas.structural import Examined
from kubescene.api.scheme import ResourceType
from kubescene.api.validation.core.events import new_event_errors
from kubescene.clock import Clock
from kubescene.errors import ForbiddenError
from kubescene.registry.admission.chain import AdmissionChain, AdmissionRequest, silent
from kubescene.registry.custom_resources import DEFINITIONS, CustomResources, definition_errors
from kubescene.registry.expressions import selector_errors
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
        self.validate(new, old, kind, subresource, sent_as, request.options.examined)
        asked = self._admission.concerned(kind.kind).validators
        if asked and not self._has_no_say(request, new, old):
            self._admission.validate(self._asked(request, new, old, ""))

    def validate(
        self,
        new: JsonObject,
        old: JsonObject | None,
        resource_type: ResourceType,
        subresource: str = "",
        sent_as: str = "",
        examined: Examined | None = None,
    ) -> None:
        """422 with one cause per field that is wrong.

        ``sent_as`` is the version in which the client wrote it: Events of the newer group have
        rules of their own, in whatever form they are kept.
        """
        if resource_type.custom:
            errors = self._custom.errors(new, old, resource_type, subresource, examined)
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
        if resource_type.group_resource == DEFINITIONS and not errors:
            errors = definition_errors(new, old)
        elif resource_type.gvk.group == "resource.k8s.io" and not subresource:
            errors += selector_errors(new, old, resource_type)
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
            warn=request.options.warn or silent,
        )


def _sent_as(request: WriteRequest) -> str:
    body = request.body
    return str(body.get("apiVersion") or "") if isinstance(body, dict) else ""
