"""Custom resources: kinds that come and go with their CustomResourceDefinitions.

`CustomResources` follows the definitions in the store. For each it keeps one `CustomKind` a
version, and registers the served ones in the `Scheme`, where everybody finds them. Objects pass
through here instead of the built-in decoding, defaulting and validation: `accepted` for a body,
`stored` and `presented` between the version of a request and that of the store (conversion
strategy None: ``apiVersion`` is rewritten, what the other schema does not know is pruned).
Conversion webhooks are not called.

As on a real server, a schema that changes does not touch what is stored: objects that were written
before get the new defaults when they are read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct

from kubescene.api.records import Record
from kubescene.api.schemas.correlation import NO_OLD
from kubescene.api.schemas.definition_parts import check_parts
from kubescene.api.schemas.schema_validation import validate_schema
from kubescene.api.schemas.structural import (
    EMPTY,
    Examined,
    Structural,
    check_embedded,
    check_lists,
    compile_schema,
    complaint_about_size,
    defaulted,
    object_metadata,
    pruned,
    unknown_fields,
    without_nulls,
)
from kubescene.api.schemas.structural_rules import check_schemas
from kubescene.api.scheme import GroupResource, GroupVersionKind, ResourceType, Scheme
from kubescene.api.text.whole_numbers import with_whole_numbers
from kubescene.api.validation import raise_if_invalid, validate_create, validate_update
from kubescene.api.validation.field_errors import ErrorList, FieldError
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.registry.admission.chain import silent
from kubescene.registry.definition_status import is_true, with_status
from kubescene.store import Store
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.cel.schema_rules import RuleNode

DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
MAX_REPLICAS = 2**31 - 1


class ScalePaths(Struct, frozen=True):
    """Where objects keep what their ``scale`` subresource shows, step by step."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


class CustomKind(Struct, frozen=True):
    """One version of a custom resource. ``since`` is the revision from which it looks like this."""

    resource_type: ResourceType
    definition: str
    root: Structural
    served: bool
    since: int
    scale: ScalePaths | None = None
    selectable_fields: tuple[str, ...] = ()
    printer_columns: tuple[JsonObject, ...] = ()
    terminating: bool = False
    rules: "RuleNode | None" = None


class CustomResources:
    """All custom kinds of one world."""

    def __init__(self, scheme: Scheme, store: Store) -> None:
        self._scheme = scheme
        self._store = store
        self._kinds: dict[GroupVersionKind, CustomKind] = {}
        self._installed: dict[str, tuple[CustomKind, ...]] = {}
        self._gone: set[str] | None = None
        """Definitions that went while all begins anew; None at other times."""
        for record in store.list(DEFINITIONS):
            self.install(record)

    # -- definitions -----------------------------------------------------------------------

    def of(self, gvk: GroupVersionKind) -> CustomKind | None:
        """The kind, if a definition made it."""
        return self._kinds.get(gvk)

    def kinds_of(self, definition: str) -> tuple[CustomKind, ...]:
        """All versions that a definition has, served or not."""
        return self._installed.get(definition, ())

    def of_resource(self, resource: GroupResource) -> tuple[CustomKind, ...]:
        """All versions of a resource."""
        return self.kinds_of(str(resource))

    def completed(self, definition: JsonObject, status: JsonObject, now: str) -> JsonObject:
        """A definition that is about to be written, with its status."""
        name = definition["metadata"].get("name")
        others = [
            self._store.decoded(record)
            for record in self._store.list(DEFINITIONS)
            if record.name != name
        ]
        return with_status(definition, status, others, now)

    def install(self, record: Record) -> None:
        """Let a definition that was written take effect.

        Other threads read meanwhile: a kind that stays is replaced, never away for a moment.
        """
        definition = self._store.decoded(record)
        if self._gone is not None:
            self._gone.discard(record.name)
        known = {kind.resource_type.gvk: kind for kind in self.kinds_of(record.name)}
        kinds: tuple[CustomKind, ...] = ()
        if is_true(definition, "Established"):
            kinds = tuple(custom_kinds(definition, record.revision, known))
        staying = {kind.resource_type.gvk for kind in kinds}
        self._take_away(kind for gvk, kind in known.items() if gvk not in staying)
        self._installed[record.name] = kinds
        for kind in kinds:
            self._put(kind, known.get(kind.resource_type.gvk))

    def uninstall(self, name: str) -> None:
        """Take the kinds of a definition away."""
        if self._gone is not None:
            self._gone.add(name)
        else:
            self._take_away(self._installed.pop(name, ()))

    @contextmanager
    def anew(self) -> Iterator[None]:
        """Definitions that go meanwhile, and are back at the end, were never away for readers."""
        self._gone = set()
        try:
            yield
        finally:
            gone, self._gone = self._gone, None
            for name in sorted(gone):
                self.uninstall(name)

    def _put(self, kind: CustomKind, known: CustomKind | None) -> None:
        resource_type = kind.resource_type
        self._kinds[resource_type.gvk] = kind
        is_ours = known is not None and self._is_registered(known)
        if kind.served and (is_ours or self._is_free(resource_type)):
            self._scheme.register(resource_type)
        elif is_ours:
            self._scheme.unregister(resource_type.gvk)

    def _take_away(self, kinds: Iterable[CustomKind]) -> None:
        for kind in kinds:
            gvk = kind.resource_type.gvk
            del self._kinds[gvk]
            if self._is_registered(kind):
                self._scheme.unregister(gvk)

    def _is_registered(self, kind: CustomKind) -> bool:
        gvk = kind.resource_type.gvk
        return gvk in self._scheme and self._registered(gvk) is kind.resource_type

    def _registered(self, gvk: GroupVersionKind) -> ResourceType:
        return self._scheme.of_kind(gvk.api_version, gvk.kind)

    def _is_free(self, resource_type: ResourceType) -> bool:
        """Whether no kind of the server's own has the name: those come first, as on a real one."""
        gvk = resource_type.gvk
        plurals = {it.plural for it in self._scheme.resources(gvk.group, gvk.version)}
        return gvk not in self._scheme and resource_type.plural not in plurals

    # -- objects ---------------------------------------------------------------------------

    def accepted(self, obj: JsonObject, gvk: GroupVersionKind) -> JsonObject:
        """A body as it will be read: pruned, whole numbers, no idle nulls, with defaults."""
        metadata = obj.get("metadata") or {}
        typed = object_metadata(metadata, gvk)
        obj = obj if typed is metadata else {**obj, "metadata": typed}
        kind = self._kinds.get(gvk)
        if kind is None:
            return obj
        return _shaped(pruned(with_whole_numbers(obj), kind.root), kind.root)

    def examined(self, body: JsonObject, gvk: GroupVersionKind) -> Examined | None:
        """All that the schema says about a new body; None if a definition is gone. Any thread."""
        kind = self._kinds.get(gvk)
        if kind is None:
            return None
        new, errors = self.accepted(body, gvk), ErrorList()
        _check_shape(new, None, kind, "", errors)
        errors += _broken_rules(new, None, kind, errors, silent)
        return Examined(body, kind.root, new, tuple(errors))

    def is_current_examination(self, examined: Examined | None, gvk: GroupVersionKind) -> bool:
        """Whether the kind still has the schema that was asked."""
        kind = self._kinds.get(gvk)
        return examined is not None and kind is not None and kind.root is examined.root

    def unknown_fields(self, obj: JsonObject, gvk: GroupVersionKind) -> list[str]:
        """Paths of fields that `accepted` would drop, for strict field validation."""
        kind = self._kinds.get(gvk)
        return [] if kind is None else unknown_fields(obj, kind.root)

    def stored(self, obj: JsonObject, resource_type: ResourceType) -> JsonObject:
        """An object in the version of a request as it is stored."""
        return self.converted(obj, resource_type.storage_gvk)

    def presented(self, obj: JsonObject, revision: int, resource_type: ResourceType) -> JsonObject:
        """A stored object, as of ``revision``, in the version of a request."""
        storage = self._kinds.get(resource_type.storage_gvk)
        if storage is not None and revision <= storage.since:
            obj = _shaped(self.converted(obj, resource_type.storage_gvk), storage.root)
        return self.converted(obj, resource_type.gvk)

    def is_current(self, record: Record, resource_type: ResourceType) -> bool:
        """Whether a record can be shown as it is, if its version is the right one."""
        kind = self._kinds.get(resource_type.storage_gvk)
        return kind is None or record.revision > kind.since

    def converted(self, obj: JsonObject, gvk: GroupVersionKind) -> JsonObject:
        """An object in another version of its kind."""
        if obj.get("apiVersion") == gvk.api_version:
            return obj
        kind = self._kinds.get(gvk)
        renamed = {**obj, "apiVersion": gvk.api_version}
        return renamed if kind is None else pruned(renamed, kind.root)

    def errors(
        self,
        new: JsonObject,
        old: JsonObject | None,
        resource_type: ResourceType,
        subresource: str = "",
        examined: Examined | None = None,
        warn: Callable[[str], None] = silent,
    ) -> list[FieldError]:
        """What is wrong with a new or changed object, or with its new status.

        ``warn`` hears what is wrong with what was so before.
        """
        errors = ErrorList()
        if old is None:
            place = new["metadata"].get("namespace")
            errors += validate_create(new, resource_type, namespace=place)
        else:
            errors += validate_update(new, old, resource_type)
        kind = self._kinds.get(resource_type.gvk)
        if kind is None:
            return errors
        if not self.is_current_examination(examined, resource_type.gvk):
            examined = None
        if examined is not None and examined.errors and old is None:
            return [*errors, *examined.errors]
        sound = None if examined is None or examined.errors else examined.accepted
        _check_shape(new, old, kind, subresource, errors, sound)
        if old is None and sound is not None and _is_as_examined(new, sound):
            return errors
        return [*errors, *_broken_rules(new, old, kind, errors, warn)]


def check_size(definition: JsonObject, resource_type: ResourceType) -> None:
    """422 for a definition whose schemas are too deep or too large to be looked at further."""
    errors = ErrorList()
    spec = definition.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    for position, version in enumerate(versions if isinstance(versions, list) else ()):
        holder = version.get("schema") if isinstance(version, dict) else None
        schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
        if isinstance(schema, dict) and (complaint := complaint_about_size(schema)):
            path = SPEC.child("versions").index(position).child("schema").child("openAPIV3Schema")
            errors.invalid(path, "", complaint)
    metadata = definition.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    raise_if_invalid(errors, resource_type, str(name))


def definition_errors(new: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """What is wrong with a definition's schemas; one that did not change is not looked at again."""
    if old is not None and new.get("spec") == old.get("spec"):
        return []
    annotations = new["metadata"].get("annotations")
    looked_at = {"metadata": {"annotations": annotations}, "spec": new.get("spec") or {}}
    before, now = _schemas_by_version(old or {}), _schemas_by_version(new)
    unchanged = frozenset(name for name, schema in now.items() if before.get(name) == schema)
    return [*_schema_errors(orjson.dumps(looked_at), unchanged)]


def _schemas_by_version(definition: JsonObject) -> JsonObject:
    versions = (definition.get("spec") or {}).get("versions") or ()
    return {it.get("name", ""): it.get("schema") for it in versions}


@lru_cache(maxsize=16)
def _schema_errors(definition: bytes, unchanged: frozenset[str]) -> tuple[FieldError, ...]:
    # Many worlds have the same few definitions.
    errors = ErrorList()
    read = orjson.loads(definition)
    check_parts(read, errors)
    check_schemas(read["spec"], errors)
    if errors or not has_rules(definition):
        return tuple(errors)
    from kubescene.registry.rules.definitions import definition_rule_errors  # late, as below

    return tuple(definition_rule_errors(read, unchanged))


@lru_cache(maxsize=16)
def _compiled(schema: bytes) -> tuple[Structural, "RuleNode | None"]:
    read = orjson.loads(schema)
    return compile_schema(read), _rules(read) if has_rules(schema) else None


def _rules(schema: JsonObject) -> "RuleNode | None":
    from kubescene.cel.schema_rules import rules_of  # late: most worlds have no expressions

    return rules_of(schema, is_resource=True)


def has_rules(encoded: bytes) -> bool:
    """Whether there can be CEL rules in what was encoded."""
    return b"x-kubernetes-validations" in encoded


def custom_kinds(
    definition: JsonObject, revision: int, known: dict[GroupVersionKind, CustomKind]
) -> list[CustomKind]:
    """One kind for each version of an established definition.

    A schema that is the same as that of the ``known`` kind is not compiled again.
    """
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    versions = spec["versions"]
    storage = next(it["name"] for it in versions if it.get("storage"))
    kinds = []
    for version in versions:
        gvk = GroupVersionKind(spec["group"], version["name"], names["kind"])
        subresources = version.get("subresources") or {}
        resource_type = ResourceType(
            gvk=gvk,
            plural=names["plural"],
            namespaced=spec["scope"] == "Namespaced",
            singular=names.get("singular", ""),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=frozenset({"status", "scale"} & _present(subresources)),
            custom=True,
            stored_as=None if version["name"] == storage else gvk._replace(version=storage),
        )
        root, rules, since = _root(version, known.get(gvk), revision)
        kinds.append(
            CustomKind(
                resource_type=resource_type,
                definition=definition["metadata"]["name"],
                root=root,
                rules=rules,
                served=bool(version.get("served")),
                since=since,
                scale=_scale_paths(subresources.get("scale")),
                selectable_fields=tuple(
                    it["jsonPath"] for it in version.get("selectableFields") or ()
                ),
                printer_columns=tuple(version.get("additionalPrinterColumns") or ()),
                terminating=is_true(definition, "Terminating"),
            )
        )
    return kinds


def served_by(definition: JsonObject) -> list[GroupVersionKind]:
    """The kinds that a sound definition gives to the world."""
    spec = definition["spec"]
    return [
        GroupVersionKind(spec["group"], version["name"], spec["names"]["kind"])
        for version in spec["versions"]
        if version.get("served")
    ]


def _present(obj: JsonObject) -> set[str]:
    return {name for name, value in obj.items() if value is not None}


def _root(
    version: JsonObject, known: CustomKind | None, revision: int
) -> tuple[Structural, "RuleNode | None", int]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    if known is not None and known.root.schema == schema:
        return known.root, known.rules, known.since
    return *_compiled(orjson.dumps(schema)), revision


def _shaped(obj: JsonObject, root: Structural) -> JsonObject:
    shaped: JsonObject = defaulted(without_nulls(obj, root), root)
    return shaped


def _scale_paths(scale: JsonObject | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(
        _steps(scale.get("specReplicasPath", "")),
        _steps(scale.get("statusReplicasPath", "")),
        _steps(scale.get("labelSelectorPath") or ""),
    )


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step for step in path.removeprefix(".").split(".") if step)


# -- validation ----------------------------------------------------------------------------


def _check_shape(
    new: JsonObject,
    old: JsonObject | None,
    kind: CustomKind,
    subresource: str,
    errors: ErrorList,
    sound: JsonObject | None = None,
) -> None:
    """What the schema says of an object; members that are those of a ``sound`` one are right."""
    right = sound or {}
    known = {name for name, part in new.items() if part is right.get(name, NO_OLD)}
    _check_schema(new, old, kind, subresource, errors, known)
    _check_scale(new, kind.scale, errors, only_status=subresource == "status")
    rest = {name: part for name, part in new.items() if name not in known}
    if subresource != "status":
        check_embedded(rest, kind.root, errors)
    _check_ratcheted_lists(rest, old, kind.root, errors)


def _is_as_examined(new: JsonObject, sound: JsonObject) -> bool:
    """Whether rules see nothing that they have not seen before."""
    names = [
        (it["metadata"].get("name"), it["metadata"].get("generateName")) for it in (new, sound)
    ]
    rest = (new.keys() | sound.keys()) - {"metadata"}
    return names[0] == names[1] and all(new.get(it) is sound.get(it) for it in rest)


def _broken_rules(
    new: JsonObject,
    old: JsonObject | None,
    kind: CustomKind,
    errors: list[FieldError],
    warn: Callable[[str], None],
) -> list[FieldError]:
    """What the CEL rules of the kind say against an object, if it is sound enough to be asked."""
    if kind.rules is None:
        return []
    from kubescene.registry.rules.asking import rule_errors  # late: see `_rules`

    return rule_errors(new, old, kind.rules, errors, warn)


def _check_schema(
    new: JsonObject,
    old: JsonObject | None,
    kind: CustomKind,
    subresource: str,
    errors: ErrorList,
    known: Collection[str],
) -> None:
    if subresource != "status":
        before = NO_OLD if old is None else {k: v for k, v in old.items() if k not in _TYPE_META}
        errors += validate_schema(new, _schema_but_for(known, kind.root.schema), old=before)
    elif "status" in new:
        below = kind.root.properties.get("status", EMPTY)
        before = (old or {}).get("status", NO_OLD)
        errors += validate_schema(new["status"], below.schema, old=before, below="status")


_TYPE_META = ("apiVersion", "kind")
"""Not compared with the old object: both are shown in the version of the request."""
_ALTERNATIVES = ("allOf", "anyOf", "oneOf", "not")


def _schema_but_for(known: Collection[str], schema: JsonObject) -> JsonObject:
    """A schema that says nothing of known members, unless it speaks of them in other places."""
    properties = schema.get("properties") or {}
    if not known or any(schema.get(name) for name in _ALTERNATIVES):
        return schema
    unsaid: JsonObject = {name: {} for name in properties if name in known}
    return {**schema, "properties": {**properties, **unsaid}}


def _check_ratcheted_lists(
    new: JsonObject, old: JsonObject | None, root: Structural, errors: ErrorList
) -> None:
    """Duplicates in lists are refused, except while the stored object has some already."""
    found, before = ErrorList(), ErrorList()
    check_lists(new, root, found)
    if found and old is not None:
        check_lists(old, root, before)
    if not before:
        errors += found


def _check_scale(
    obj: JsonObject, scale: ScalePaths | None, errors: ErrorList, *, only_status: bool
) -> None:
    if scale is None:
        return
    if not only_status:
        _check_replicas(obj, scale.spec_replicas, errors)
    _check_replicas(obj, scale.status_replicas, errors)
    selector = _dig(obj, scale.selector) if scale.selector else None
    if selector is not None and not isinstance(selector, str):
        errors.invalid(
            _path(scale.selector), "", _accessor_error(scale.selector, selector, "string")
        )


def _check_replicas(obj: JsonObject, path: tuple[str, ...], errors: ErrorList) -> None:
    replicas = _dig(obj, path)
    if replicas is None:
        return
    if type(replicas) is not int:
        errors.invalid(_path(path), 0, _accessor_error(path, replicas, "int64"))
    elif replicas < 0:
        errors.invalid(_path(path), replicas, "should be a non-negative integer")
    elif replicas > MAX_REPLICAS:
        errors.invalid(_path(path), replicas, f"should be less than or equal to {MAX_REPLICAS}")


_GO_TYPES = {
    bool: "bool",
    str: "string",
    float: "float64",
    int: "int64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def _accessor_error(path: tuple[str, ...], value: Any, wanted: str) -> str:
    shown = str(value).lower() if isinstance(value, bool) else value
    where = "." + ".".join(path)
    given = _GO_TYPES[type(value)]
    return f"{where} accessor error: {shown} is of the type {given}, expected {wanted}"


def _path(steps: tuple[str, ...]) -> Path:
    return Path("." + ".".join(steps))


def _dig(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj
