"""What can be said of a scenario's objects without playing it.

Kinds, fields and values are checked as the API will check them, by a dry run in a world of its own.
What objects refer to (a namespace, a priority class, an account) must have been created before, and
so must the object whose status is written, that is scaled, bound or evicted: a scenario begins in
an empty world. What else depends on the world at that moment (a quota, an object to patch) only
shows when it is played.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from msgspec import structs

from kubescene.actors import ENGINE
from kubescene.api.kinds import POD
from kubescene.api.schemas.strict_decoding import known_fields, wrong_values
from kubescene.api.scheme import SCALE, GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.controllers.authoring import DEFINITION
from kubescene.controllers.builtin.outages.definition import OUTAGE
from kubescene.controllers.builtin.outages.spec import spec_faults
from kubescene.controllers.builtin.traffic.definition import TRAFFIC
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import (
    ApiError,
    BadRequestError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TrafficError,
)
from kubescene.scenario.operations import IndexedTemplate
from kubescene.scenario.options import write_options
from kubescene.scenario.spec import Operation, OperationKind, ScenarioSpec
from kubescene.scenario.subresources import is_scale, part_of
from kubescene.scenario.validation.faults import Fault, Step, shown, spelled
from kubescene.scenario.world import World
from kubescene.types import JsonObject
from kubescene.usage.series import METRIC_SERIES, read_series

FIRST_TIME = "2000-01-01T00:00:00Z"
"""When an object is created that is only tried."""
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
PLAIN_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Names that every kind admits."""


def object_faults(
    spec: ScenarioSpec,
    controllers: ControllerRegistrations | None = None,
    *,
    is_whole: bool = True,
) -> Iterator[Fault]:
    """Everything that the API would refuse, in the order in which it would be played.

    If the spec is not the ``whole`` one, what objects refer to may be in the rest.
    """
    check = ObjectCheck(ClusterWorld(controllers=controllers), is_whole=is_whole)
    for operations in spec.by_step.values():
        for operation in operations:
            for fault in check.faults(operation):
                yield replace(fault.under(*operation.path), where=operation.where)


class ObjectCheck:
    """A world in which the operations of a scenario are tried without effect."""

    def __init__(self, cluster: World, *, is_whole: bool = True) -> None:
        self._cluster = cluster
        self._is_whole = is_whole
        self._client = cluster.client(ENGINE)
        self._alike: set[int] = set()
        """What objects have in common that were found right, by identity."""
        self._made: dict[str, set[tuple[str, str]]] = {}
        """Namespaces and names of what operations create, by kind."""

    def faults(self, operation: Operation) -> Iterator[Fault]:
        if operation.kind is OperationKind.CREATE:
            yield from self._create_faults(operation)
        elif operation.kind in (OperationKind.PATCH, OperationKind.DELETE):
            types = operation.body["typeMeta"]
            unknown = list(self._kind_faults(types["apiVersion"], types["kind"], "typeMeta"))
            yield from unknown
            if operation.subresource and not unknown:
                yield from self._lacking(operation.subresource, types, "typeMeta")

    def _create_faults(self, operation: Operation) -> Iterator[Fault]:
        if "count" in operation.body or operation.arrives:
            yield from self._counted_faults(operation)
            return
        alike = operation.alike or (None,)
        for number, obj in enumerate(operation.objects or (operation.body["object"],)):
            shared = alike[number] if number < len(alike) else None
            if shared is None or id(shared) not in self._alike or is_badly_named(obj):
                faults = list(self._object_faults(operation, obj))
                yield from (
                    _in_file(fault, operation, number) if operation.objects else fault
                    for fault in faults
                )
                if shared is not None and not faults:
                    self._alike.add(id(shared))
            self._note(operation, obj)

    def _counted_faults(self, operation: Operation) -> Iterator[Fault]:
        template = IndexedTemplate(operation.body["object"])
        obj, last = template.instance(0), template.instance(operation.instances - 1)
        faults = list(self._object_faults(operation, obj))
        if not faults and last != obj and _metadata(last) != _metadata(obj):
            # The last one has the longest name.
            faults = list(self._object_faults(operation, last))
        yield from faults
        if operation.instances > 1 and template.instance(1) == obj and "name" in _metadata(obj):
            message = "count makes several objects of the same name: put $(INDEX) into it"
            yield Fault(("object", "metadata", "name"), message)
        self._note(operation, obj)
        places = self._made.get(str(obj["kind"]), set())
        namespace = str(_metadata(obj).get("namespace") or "default")
        if self._is_whole and template.name_of(0):
            places.update((namespace, template.name_of(n)) for n in range(operation.instances))

    def _note(self, operation: Operation, obj: JsonObject) -> None:
        """Remember what there is from now on."""
        name = _metadata(obj).get("name")
        if isinstance(name, str) and not part_of(operation.subresource, obj):
            namespace = _metadata(obj).get("namespace")
            places = self._made.setdefault(str(obj["kind"]), set())
            places.add((str(namespace or "default"), name))

    def _object_faults(self, operation: Operation, obj: JsonObject) -> Iterator[Fault]:
        part = part_of(operation.subresource, obj)
        if part_of("", obj) or (part == SCALE.name and is_scale(obj)):
            # Whether a Binding, an Eviction or a Scale is accepted depends on its object.
            yield from self._absent(obj, POD.kind if part != SCALE.name else "")
            return
        unknown = list(self._kind_faults(obj["apiVersion"], obj["kind"], "object"))
        yield from unknown
        if unknown:
            return
        if part:
            yield from self._part_faults(part, obj)
            return
        options = write_options(operation.body.get("createOptions"))
        is_dry = obj["kind"] not in MADE
        try:
            self._client.create(obj, options=structs.replace(options, dry_run=is_dry))
            yield from _sense_faults(obj)
        except (BadRequestError, InvalidError) as error:
            yield from (fault.under("object") for fault in self._told(error, obj))
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

    def _told(self, error: ApiError, obj: JsonObject) -> Iterator[Fault]:
        """Each fault with its place; values of a wrong type have one, though nobody names it."""
        gvk = self._cluster.scheme.of_kind(obj["apiVersion"], obj["kind"]).gvk
        wrong = [] if error.causes else list(wrong_values(obj, gvk))
        for path, value, complaint in wrong:
            yield Fault(path, f"{spelled(path)} is {shown(value)}: {complaint}")
        if not wrong:
            yield from told(error, gvk, self._schema(gvk))

    def _schema(self, gvk: GroupVersionKind) -> JsonObject | None:
        """What the definition of a custom kind says of its objects."""
        plural = self._cluster.scheme.of_kind(gvk.api_version, gvk.kind).plural
        definition = self._client.find(ObjectRef(DEFINITION, f"{plural}.{gvk.group}"))
        versions = [] if definition is None else definition["spec"]["versions"]
        schemas = (each["schema"] for each in versions if each["name"] == gvk.version)
        return next((each["openAPIV3Schema"] for each in schemas), None)

    def _part_faults(self, part: str, obj: JsonObject) -> Iterator[Fault]:
        """A part of an object can be written if its kind has such a part, and it is there."""
        lacking = list(self._lacking(part, obj, "object"))
        yield from lacking or self._absent(obj, str(obj["kind"]))

    def _lacking(self, part: str, types: JsonObject, place: str) -> Iterator[Fault]:
        kind = types["kind"]
        if part not in self._cluster.scheme.of_kind(types["apiVersion"], kind).subresources:
            yield Fault((place, "kind"), f"a {kind} has no subresource {part}")

    def _absent(self, obj: JsonObject, kind: str) -> Iterator[Fault]:
        """Nobody makes the object: no operation, and no controller of what operations make.

        What a controller makes is called like its owner, and something behind that.
        """
        name, namespace = _metadata(obj).get("name"), _metadata(obj).get("namespace") or "default"
        if not self._is_whole or not isinstance(name, str):
            return
        places = self._made.get(kind, set()) if kind else set().union(*self._made.values())
        if (str(namespace), name) in places or any(each == name for _, each in places):
            return
        owners = (each for made in self._made.values() for _, each in made)
        if not any(name.startswith(owner) for owner in owners):
            what = f'{kind or "object"} "{name}"'
            yield Fault(("object", "metadata", "name"), f"nothing creates the {what}: {EARLIER}")

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


def told(
    error: ApiError, gvk: GroupVersionKind | None = None, schema: JsonObject | None = None
) -> Iterator[Fault]:
    """The faults that an answer of the API tells of, each with its place in the object.

    With the kind of the object, or its schema if it is a custom one, a field that it does not have
    comes with one that is meant.
    """
    if error.causes:
        for cause in error.causes:
            yield Fault(steps_of(cause.field), f"{cause.field}: {cause.message}")
        return
    unknown = UNKNOWN_FIELD.findall(error.message)
    for field in unknown:
        path = steps_of(field)
        known = [] if gvk is None else known_fields(gvk, path) or fields_of(schema, path)
        meant = get_close_matches(str(path[-1]), known, 1)
        hint = f": did you mean {meant[0]}?" if meant else ""
        yield Fault(path, f'unknown field "{field}"{hint}', of_name=True)
    if not unknown:
        yield Fault((), error.message)


def fields_of(schema: JsonObject | None, path: Sequence[Step]) -> list[str]:
    """The fields that a schema has beside the last step of a path."""
    for step in path[:-1]:
        below = (schema or {}).get("properties") or {}
        schema = (schema or {}).get("items") if isinstance(step, int) else below.get(step)
    return list((schema or {}).get("properties") or ())


def _sense_faults(obj: JsonObject) -> Iterator[Fault]:
    """What the API accepts, and the controller of the kind would refuse."""
    if (obj["apiVersion"], obj["kind"]) == (OUTAGE.api_version, OUTAGE.kind):
        for fault in spec_faults(obj["spec"]):
            yield Fault(("object", "spec", fault.field), f"spec.{fault}")
    if (obj["apiVersion"], obj["kind"]) == (TRAFFIC.api_version, TRAFFIC.kind):
        yield from _traffic_faults(obj)
    if (obj["apiVersion"], obj["kind"]) == (METRIC_SERIES.api_version, METRIC_SERIES.kind):
        yield from _series_faults(obj)


def _series_faults(obj: JsonObject) -> Iterator[Fault]:
    try:
        read_series({**obj, "metadata": {**_metadata(obj), "creationTimestamp": FIRST_TIME}})
    except ValueError as error:
        place, _, told = str(error).partition(": ")
        yield Fault(("object", *steps_of(place)), f"{place}: {told}")


def _traffic_faults(obj: JsonObject) -> Iterator[Fault]:
    # What reads a Traffic takes longer to load than many a scenario to check.
    from kubescene.controllers.builtin.traffic.spec import read_spec

    try:
        read_spec(obj["spec"])
    except TrafficError as error:
        yield Fault(("object", *steps_of(error.path)), f"{error.path}: {error.message}")


def steps_of(field: str) -> tuple[Step, ...]:
    """The way that the API's name of a field describes: ``spec.containers[0].name``."""
    return tuple(int(step) if step.isdecimal() else step for step in STEPS.findall(field))


def is_badly_named(obj: JsonObject) -> bool:
    """Whether the name needs a look of its own, though its object is like others."""
    name = _metadata(obj).get("name")
    return not isinstance(name, str) or not PLAIN_NAME.fullmatch(name)


def _metadata(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _in_file(fault: Fault, operation: Operation, number: int) -> Fault:
    name = operation.body["objectFrom"]
    return Fault(("objectFrom",), f"object {number} of {name}: {fault.message}")
