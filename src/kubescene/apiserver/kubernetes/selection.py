"""Which records of a resource a request is about: namespace, label selector, field selector.

Labels and the fields that are asked for all the time (name, namespace, a pod's node and phase) are
part of the record; for other fields it has to be decoded.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kubescene.api.records import Record
from kubescene.api.scheme import ResourceType
from kubescene.api.selectors import FieldSelector, LabelSelector, parse_fields, parse_labels
from kubescene.apiserver.requests import RequestTarget
from kubescene.errors import BadRequestError
from kubescene.registry.custom_resources import CustomResources

_IN_RECORD: dict[str, Callable[[Record], str]] = {
    "metadata.name": lambda record: record.name,
    "metadata.namespace": lambda record: record.namespace,
}
_IN_POD_RECORD: dict[str, Callable[[Record], str]] = {
    **_IN_RECORD,
    "spec.nodeName": lambda record: record.node,
    "status.phase": lambda record: record.phase,
}


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter over records of one resource."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    is_pods: bool = False

    @property
    def has_selectors(self) -> bool:
        return self.labels is not None or self.fields is not None

    @property
    def is_everything(self) -> bool:
        return not self.namespace and not self.has_selectors

    @property
    def single_name(self) -> str:
        """The only name that can match, if the fields say so."""
        return (self.fields.exact("metadata.name") or "") if self.fields else ""

    def matches(self, record: Record) -> bool:
        """Whether the record is selected, its namespace included."""
        if self.namespace and record.namespace != self.namespace:
            return False
        if self.labels is not None and not self.labels.matches(record.labels):
            return False
        return self.fields is None or self._has_fields(record, self.fields)

    def _has_fields(self, record: Record, fields: FieldSelector) -> bool:
        known = _IN_POD_RECORD if self.is_pods else _IN_RECORD
        if all(requirement.path in known for requirement in fields.requirements):
            return fields.matches(lambda path: known[path](record))
        return fields.matches_object(record.decode())


def select(target: RequestTarget, query: dict[str, str], custom: CustomResources) -> Selection:
    """The selection that a collection request asks for; 400 if a selector makes no sense."""
    resource_type = target.resource_type
    labels = _labels(query.get("labelSelector", ""))
    fields = _fields(query.get("fieldSelector", ""), resource_type, custom)
    return Selection(
        target.namespace,
        labels,
        fields,
        is_pods=resource_type.kind == "Pod" and not resource_type.gvk.group,
    )


def _labels(text: str) -> LabelSelector | None:
    if not text:
        return None
    try:
        selector = parse_labels(text)
    except ValueError as error:
        raise BadRequestError(str(error)) from None
    return None if selector.is_everything else selector


def _fields(
    text: str, resource_type: ResourceType, custom: CustomResources
) -> FieldSelector | None:
    if not text:
        return None
    kind = custom.of(resource_type.gvk)
    selectable = [path.lstrip(".") for path in kind.selectable_fields] if kind else []
    selector = parse_fields(text).for_resource(
        resource_type.named_resource,
        custom_fields=selectable if resource_type.custom else None,
        namespaced=resource_type.namespaced,
    )
    return None if selector.is_everything else selector
