"""What can be said of a scenario's objects without playing it.

Kinds, fields and values are checked as the API will check them, by a dry run in a world of its own.
What objects refer to (a namespace, a priority class, an account) must have been created before:
a scenario begins in an empty world. What else depends on the world at that moment (a quota, an
object to patch) only shows when it is played.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from kubescene.actors import ENGINE
from kubescene.api.scheme import SCALE
from kubescene.cluster import Cluster
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import (
    ApiError,
    BadRequestError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from kubescene.scenario.operations import Template
from kubescene.scenario.options import write_options
from kubescene.scenario.spec import Operation, OperationKind, ScenarioSpec
from kubescene.scenario.subresources import is_scale, part_of
from kubescene.scenario.validation.faults import Fault, Step
from kubescene.types import JsonObject

MADE = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "RuntimeClass",
    "ServiceAccount",
    "StorageClass",
)
"""Kinds that others refer to: these are really created."""
MISSING = {
    "no PriorityClass with name": "priorityClassName",
    "pod rejected: RuntimeClass": "runtimeClassName",
    "error looking up service account": "serviceAccountName",
}
"""How admission says that what a field of a pod's spec names is not there."""
EARLIER = "create it in the same step before, or in an earlier one"
UNKNOWN_FIELD = re.compile(r'unknown field "([^"]+)"')
STEPS = re.compile(r"[^.\[\]]+")


def object_faults(
    spec: ScenarioSpec,
    controllers: ControllerRegistrations | None = None,
    *,
    is_whole: bool = True,
) -> Iterator[Fault]:
    """Everything that the API would refuse, in the order in which it would be played.

    If the spec is not the ``whole`` one, what objects refer to may be in the rest.
    """
    check = ObjectCheck(Cluster(controllers=controllers), is_whole=is_whole)
    for operations in spec.by_step.values():
        for operation in operations:
            for fault in check.faults(operation):
                yield replace(fault.under(*operation.path), where=operation.where)


class ObjectCheck:
    """A world in which the operations of a scenario are tried without effect."""

    def __init__(self, cluster: Cluster, *, is_whole: bool = True) -> None:
        self._cluster = cluster
        self._is_whole = is_whole
        self._client = cluster.client(ENGINE)

    def faults(self, operation: Operation) -> Iterator[Fault]:
        if operation.kind is OperationKind.CREATE:
            yield from self._create_faults(operation)
        elif operation.kind in (OperationKind.PATCH, OperationKind.DELETE):
            types = operation.body["typeMeta"]
            yield from self._kind_faults(types["apiVersion"], types["kind"], "typeMeta")

    def _create_faults(self, operation: Operation) -> Iterator[Fault]:
        counted = "count" in operation.body
        if not counted:
            for number, obj in enumerate(operation.objects or (operation.body["object"],)):
                for fault in self._object_faults(operation, obj):
                    yield _in_file(fault, operation, number) if operation.objects else fault
            return
        template = Template(operation.body["object"])
        obj = template.instance(0)
        yield from self._object_faults(operation, obj)
        if operation.instances > 1 and template.instance(1) == obj and "name" in _metadata(obj):
            message = "count makes several objects of the same name: put $(INDEX) into it"
            yield Fault(("object", "metadata", "name"), message)

    def _object_faults(self, operation: Operation, obj: JsonObject) -> Iterator[Fault]:
        if part_of("", obj) or (operation.subresource == SCALE.name and is_scale(obj)):
            return  # Whether a Binding, an Eviction or a Scale is accepted depends on its object.
        unknown = list(self._kind_faults(obj["apiVersion"], obj["kind"], "object"))
        yield from unknown
        if unknown or operation.subresource:
            return
        options = write_options(operation.body.get("createOptions"))
        is_dry = obj["kind"] not in MADE
        try:
            self._client.create(obj, options=structs.replace(options, dry_run=is_dry))
        except (BadRequestError, InvalidError) as error:
            yield from (fault.under("object") for fault in told(error))
        except NotFoundError as error:
            yield from self._missing(error, "metadata", "namespace")
            namespace = _metadata(obj).get("namespace")
            if self._ensure_namespace(namespace):
                yield from self._object_faults(operation, obj)
        except ForbiddenError as error:
            for text, field in MISSING.items():
                if text in error.message:
                    yield from self._missing(error, "spec", field)
        except ApiError:
            pass  # It depends on the world: the run will show.

    def _missing(self, error: ApiError, *place: Step) -> Iterator[Fault]:
        if self._is_whole:
            yield Fault(("object", *place), f"{error.message}: {EARLIER}")

    def _kind_faults(self, api_version: str, kind: str, place: str) -> Iterator[Fault]:
        try:
            self._cluster.scheme.of_kind(api_version, kind)
        except ApiError as error:
            yield Fault((place, "kind"), error.message)

    def _ensure_namespace(self, name: object) -> bool:
        """Make a namespace that was missing, so that it is told once; whether it was made."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            self._client.create(body)
        except ApiError:
            return False
        return True


def told(error: ApiError) -> Iterator[Fault]:
    """The faults that an answer of the API tells of, each with its place in the object."""
    if error.causes:
        for cause in error.causes:
            yield Fault(steps_of(cause.field), f"{cause.field}: {cause.message}")
        return
    unknown = UNKNOWN_FIELD.findall(error.message)
    for field in unknown:
        yield Fault(steps_of(field), f'unknown field "{field}"', of_name=True)
    if not unknown:
        yield Fault((), error.message)


def steps_of(field: str) -> tuple[Step, ...]:
    """The way that the API's name of a field describes: ``spec.containers[0].name``."""
    return tuple(int(step) if step.isdecimal() else step for step in STEPS.findall(field))


def _metadata(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _in_file(fault: Fault, operation: Operation, number: int) -> Fault:
    name = operation.body["objectFrom"]
    return Fault(("objectFrom",), f"object {number} of {name}: {fault.message}")
