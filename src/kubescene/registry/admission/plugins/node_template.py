"""NodeTemplate: what machines are made of, in a NodeGroup or NodeSet, could be a Node.

Their definitions leave the template open, since a Node has so many fields; whoever reads one may
rely on what holds of a Node all the same.
"""

from collections.abc import Sequence

from kubescene.api.builtin import builtin_scheme
from kubescene.api.defaulting.defaults import apply_defaults
from kubescene.api.defaulting.nulls import drop_nulls
from kubescene.api.kinds import NODE
from kubescene.api.own_kinds import GROUP
from kubescene.api.schemas.strict_decoding import check_types
from kubescene.api.scheme import GroupResource
from kubescene.api.validation import raise_if_invalid, validate_create
from kubescene.api.validation.field_errors import OMITTED, ErrorType, FieldError
from kubescene.errors import BadRequestError
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

TEMPLATE = "spec.template"
WRITES = ("create", "update")


class NodeTemplateAdmission:
    name = "NodeTemplate"
    reads: Sequence[GroupResource] = ()
    is_quiet = True
    kinds = ("NodeGroup", "NodeSet")

    def admit(self, request: AdmissionRequest) -> JsonObject:
        """Without explicit nulls, as a Node would be kept."""
        template = _written(request)
        if template is None or (kept := drop_nulls(template)) is template:
            return request.obj
        return with_part(request.obj, "spec", {**request.obj["spec"], "template": kept})

    def validate(self, request: AdmissionRequest) -> None:
        template = _written(request)
        if template is not None:
            raise_if_invalid(_faults(template), request.resource_type, request.name)


def _written(request: AdmissionRequest) -> JsonObject | None:
    """The template that is written; None if none is, or the one that was there before."""
    group = request.resource_type.gvk.group
    if group != GROUP or request.subresource or request.verb not in WRITES:
        return None
    spec, old = request.obj.get("spec"), (request.old or {}).get("spec") or {}
    template = spec.get("template") if isinstance(spec, dict) else None
    # What is no object is refused by the definition.
    return template if isinstance(template, dict) and template != old.get("template") else None


def _faults(template: JsonObject) -> list[FieldError]:
    """Why no Node could be made of it."""
    metadata = {**(template.get("metadata") or {}), "name": "node"}
    node = {**template, "apiVersion": NODE.api_version, "kind": NODE.kind, "metadata": metadata}
    try:
        check_types(node, NODE)
    except BadRequestError as error:
        return [FieldError(ErrorType.INVALID, TEMPLATE, OMITTED, error.message)]
    known = builtin_scheme().of_kind(NODE.api_version, NODE.kind)
    return [
        FieldError(each.type, f"{TEMPLATE}.{each.field}", each.bad_value, each.detail)
        for each in validate_create(apply_defaults(node, NODE), known, namespace=None)
    ]
