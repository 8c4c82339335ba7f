"""Ownership of fields in the registry: ``managedFields`` of every write, and server-side apply.

Tracking costs time and space on each write, so it is optional: without it only appliers have
entries, and updates neither take fields from them nor get any (see design note 0012).
"""

import json
from collections.abc import Callable

import orjson
from msgspec import Struct

from kubescene.api import conversion
from kubescene.api.defaulting import defaults
from kubescene.api.field_ownership import managed_fields
from kubescene.api.field_ownership.field_sets import FieldSet, contains, fields_of
from kubescene.api.field_ownership.field_shapes import FREE, FieldShape, custom_shape, kind_shape
from kubescene.api.field_ownership.field_walks import NoKeyError, compare, without_empty
from kubescene.api.field_ownership.managed_fields import Managers, OwnedWrite, with_managed_fields
from kubescene.api.patching import apply
from kubescene.api.patching.apply import Applied, ApplyConflictError
from kubescene.api.schemas import strict_decoding
from kubescene.api.schemas.structural import Structural
from kubescene.api.scheme import GroupVersionKind, ResourceType, Scheme
from kubescene.bounded import BoundedDict
from kubescene.clock import format_time
from kubescene.errors import ApiError, BadRequestError, InvalidError, StatusCause
from kubescene.registry.clocks import Clocks
from kubescene.registry.custom_resources import CustomResources
from kubescene.types import JsonObject, JsonValue

BEFORE_FIRST_APPLY = "before-first-apply"
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_NOTHING: FieldSet = {}
_STATUS = fields_of(("status",))
_SPEC = fields_of(("spec",))
_NOT_STATUS = fields_of(("metadata",), ("spec",))
_RESET_WITH_STATUS = {
    ("", "Pod"): fields_of(
        ("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")
    ),
    ("apps", "Deployment"): fields_of(("spec",), ("metadata", "labels")),
    ("networking.k8s.io", "ServiceCIDR"): _NOT_STATUS,
    ("resource.k8s.io", "ResourceClaim"): _NOT_STATUS,
}

_TEMPLATE: JsonObject = {"metadata": {}, "spec": {"containers": None}}
_JOB: JsonObject = {"template": _TEMPLATE}
_UNIFORM: JsonObject = {"metadata": {}, "spec": {}, "status": {}}

_PARTS: dict[tuple[str, str], JsonObject] = {
    ("", "Event"): {
        "involvedObject": {},
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {},
    },
    ("", "PersistentVolumeClaim"): {"spec": {"resources": {}}},
    ("", "Pod"): {"spec": {"containers": None}},
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("", "Service"): {"status": {"loadBalancer": {}}},
    ("apps", "DaemonSet"): {"spec": {"template": _TEMPLATE, "updateStrategy": {}}},
    ("apps", "Deployment"): {"spec": {"strategy": {}, "template": _TEMPLATE}},
    ("apps", "ReplicaSet"): {"spec": {"template": _TEMPLATE}},
    ("apps", "StatefulSet"): {
        "spec": {"serviceName": "", "template": _TEMPLATE, "updateStrategy": {}}
    },
    ("autoscaling", "HorizontalPodAutoscaler"): {"spec": {"scaleTargetRef": {}}},
    ("batch", "CronJob"): {"spec": {"jobTemplate": {"metadata": {}, "spec": _JOB}}},
    ("batch", "Job"): {"spec": _JOB},
    ("events.k8s.io", "Event"): {"deprecatedSource": {}, "regarding": {}},
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): {"spec": {"priorityLevelConfiguration": {}}},
    ("resource.k8s.io", "DeviceTaintRule"): {"spec": {"taint": {}}},
    ("resource.k8s.io", "ResourceClaim"): {"spec": {"devices": {"requests": None}}},
    ("resource.k8s.io", "ResourceClaimTemplate"): {
        "spec": {"metadata": {}, "spec": {"devices": {"requests": None}}}
    },
    ("resource.k8s.io", "ResourceSlice"): {"spec": {"pool": {}}},
    ("scheduling.k8s.io", "PodGroup"): {"spec": {"schedulingPolicy": {}}},
    ("scheduling.k8s.io", "Workload"): {"spec": {"podGroupTemplates": None}},
    ("storage.k8s.io", "CSINode"): {"spec": {"drivers": None}},
    ("storage.k8s.io", "VolumeAttachment"): {"spec": {"source": {}}},
}

_BLANK = {kind: {**_UNIFORM, **parts} for kind, parts in _PARTS.items()}
"""Objects that nobody has written yet, as Go's zero values look in JSON.

A created object is compared with the blank one of its kind. Structs that are there anyway (fields
of Go structs that are no pointers) are not something that a writer has added: only their fields
are. The same goes for empty texts that are there anyway. Spelled here is what is not the same for
all kinds and makes a difference.
"""

Accept = Callable[[JsonObject], JsonObject]
"""Decoding: what a merged object becomes, defaults and all, in the version that is stored."""


class NotOfTypeError(ApiError):
    """500 without a reason, as upstream has it: a configuration that does not fit its kind."""

    code = 500
    reason = ""


class Application(Struct, frozen=True):
    """A request to apply."""

    config: JsonObject
    served: ResourceType
    manager: str
    force: bool = False
    subresource: str = ""


class Ownership:
    """Keeps the books of one world."""

    def __init__(self, scheme: Scheme, custom: CustomResources, clocks: Clocks) -> None:
        self._scheme = scheme
        self._custom = custom
        self._clocks = clocks
        self._custom_shapes: dict[GroupVersionKind, tuple[Structural, FieldShape]] = {}
        self._specs: BoundedDict[tuple[GroupVersionKind, int], tuple[JsonObject, FieldSet]] = (
            BoundedDict()
        )

    # -- updates -----------------------------------------------------------------------------

    def created(self, obj: JsonObject, served: ResourceType, manager: str) -> JsonObject:
        """A body that is about to be created, with its writer as the owner of all of it."""
        given = obj["metadata"].get("managedFields")
        known = None if managed_fields.is_reset(given) else managed_fields.decode(given)
        writer = self._writer(manager, served, "")
        if known:
            return self._written(_blank(served), obj, known, served, writer)
        try:
            fields = self._new_fields(managed_fields.without_managed_fields(obj), served)
        except NoKeyError:
            return with_managed_fields(obj, None)
        entry = managed_fields.owned(writer.entry(managed_fields.UPDATE, fields))
        return with_managed_fields(obj, [entry.to_dict()] if entry.fields else None)

    def _new_fields(self, obj: JsonObject, served: ResourceType) -> FieldSet:
        """All that a new object has and a blank one has not.

        Objects of one template share their spec, and `decoding` sees to it that it is one value:
        its fields are worked out once.
        """
        versions = KindVersions(self, served)
        shape = versions.shape(served.api_version) or FREE
        blank, seen = _blank(served), versions.converted(obj)
        spec = seen.get("spec")
        key = (served.gvk, id(spec))
        known = self._specs.get(key)
        if known is not None and known[0] is spec:
            rest = {name: part for name, part in seen.items() if name != "spec"}
            return {**compare(blank, versions.encoded(rest), shape).written, **known[1]}
        fields = compare(blank, versions.encoded(seen), shape).written
        if spec and "f:spec" in fields:
            self._specs[key] = (spec, {"f:spec": fields["f:spec"]})
        return fields

    def updated(
        self,
        new: JsonObject,
        old: JsonObject,
        served: ResourceType,
        manager: str,
        subresource: str,
    ) -> JsonObject:
        """A changed object, with its writer as the owner of what has changed.

        Clients may rewrite ``managedFields`` themselves. An object without any stays without: it
        was made before anybody tracked its fields.
        """
        given = None if subresource else new["metadata"].get("managedFields")
        if managed_fields.is_reset(given):
            return with_managed_fields(new, None)
        stored = old["metadata"].get("managedFields")
        same = given is None or given is stored or given == stored
        known = None if same else managed_fields.decode(given)
        known = known or managed_fields.stored(stored)
        if not known:
            return with_managed_fields(new, None)
        writer = self._writer(manager, served, subresource)
        return self._written(old, new, known, served, writer)

    def _written(
        self,
        old: JsonObject,
        new: JsonObject,
        known: Managers,
        served: ResourceType,
        writer: OwnedWrite,
    ) -> JsonObject:
        versions = KindVersions(self, served)
        before, after = (managed_fields.without_managed_fields(each) for each in (old, new))
        if not served.stored_as and all(
            entry.api_version == served.api_version for entry in known.values()
        ):
            before, after = differing(before, after)
        before, after = versions.seen(before), versions.seen(after)
        try:
            managers = managed_fields.updated(known, before, after, writer, versions)
        except NoKeyError:
            return with_managed_fields(new, None)
        return with_managed_fields(new, managed_fields.encode(managers))

    # -- apply -------------------------------------------------------------------------------

    def applied(
        self, request: Application, old: JsonObject | None, accept: Accept, *, tracked: bool
    ) -> JsonObject:
        """The object after an apply, with its new owners; ``old`` is None if there is none yet."""
        versions = KindVersions(self, request.served)
        self._check(request, versions)
        try:
            return self._merged(request, old, accept, versions, tracked=tracked)
        except NoKeyError as error:
            raise NotOfTypeError(
                _not_of_type("live", old or request.config, request.served.gvk, [str(error)])
            ) from error

    def _merged(
        self,
        request: Application,
        old: JsonObject | None,
        accept: Accept,
        versions: "KindVersions",
        *,
        tracked: bool,
    ) -> JsonObject:
        managers = managed_fields.decode((old or {}).get("metadata", {}).get("managedFields"))
        live = versions.seen(managed_fields.without_managed_fields(old)) if old else {}
        if not managers and old is not None and tracked:
            managers = self._before_first_apply(live, request, versions)
        outcome = self._apply(request, managers or {}, live, versions)
        changed = live if outcome.obj is None else outcome.obj
        changed = _with_current_annotation(changed, request)
        result = (old or live) if changed is live else accept(changed)
        return with_managed_fields(result, managed_fields.encode(outcome.managers))

    def _apply(
        self, request: Application, managers: Managers, live: JsonObject, versions: "KindVersions"
    ) -> Applied:
        writer = self._writer(request.manager, request.served, request.subresource)
        force = request.force
        try:
            return apply.apply(managers, live, request.config, writer, versions, force=force)
        except ApplyConflictError as error:
            allowed = self._allowed(request, live, versions)
            remaining = [each for each in error.conflicts if not contains(allowed, each.path)]
            if remaining:
                raise ApplyConflictError(remaining) from None
            return apply.apply(managers, live, request.config, writer, versions, force=True)

    def _allowed(
        self, request: Application, live: JsonObject, versions: "KindVersions"
    ) -> FieldSet:
        """What kubectl may take over by itself: its own client-side configuration."""
        text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
        shape = versions.shape(request.served.api_version)
        if request.manager != KUBECTL or not text or shape is None:
            return _NOTHING
        try:
            last = orjson.loads(text)
            if last.get("apiVersion") != request.served.api_version:
                return _NOTHING
            return apply.last_applied_fields(live, last, shape)
        except (orjson.JSONDecodeError, AttributeError, NoKeyError):
            return _NOTHING

    def _before_first_apply(
        self, live: JsonObject, request: Application, versions: "KindVersions"
    ) -> Managers:
        """Everything that an untracked object has, as somebody's."""
        writer = self._writer(BEFORE_FIRST_APPLY, request.served, request.subresource)
        return managed_fields.updated({}, _blank(request.served), live, writer, versions)

    def _check(self, request: Application, versions: "KindVersions") -> None:
        config, gvk = request.config, request.served.gvk
        if not request.manager:
            message = "Required value: is required for apply patch"
            raise InvalidError(
                f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {message}',
                group="meta.k8s.io",
                kind="PatchOptions",
                causes=(StatusCause("FieldValueRequired", message, "fieldManager"),),
            )
        api_version, kind = config.get("apiVersion", ""), config.get("kind", "")
        if (api_version, kind) != (gvk.api_version, gvk.kind):
            shown = api_version if "/" in str(api_version) else f"/{api_version}"
            raise BadRequestError(f"invalid object type: {shown}, Kind={kind}")
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise BadRequestError("metadata.managedFields must be nil")
        shape = versions.shape(gvk.api_version)
        found = apply.complaints(config, shape) if shape is not None else []
        if found:
            raise NotOfTypeError(_not_of_type("patch", config, gvk, found))
        strict_decoding.check_types(defaults.drop_nulls(config), gvk)

    # -- writers and versions ------------------------------------------------------------------

    def _writer(self, manager: str, served: ResourceType, subresource: str) -> OwnedWrite:
        return OwnedWrite(
            manager=manager or "unknown",
            api_version=served.api_version,
            time=format_time(self._clocks.of(served).now()),
            subresource=subresource,
            reset=reset_fields(served, subresource),
        )

    def shape(self, gvk: GroupVersionKind) -> FieldShape | None:
        """The shape of a kind that is served; None for others. Without a schema it is free."""
        kind = self._custom.of(gvk)
        if kind is None:
            return kind_shape(gvk) or (FREE if gvk in self._scheme else None)
        known = self._custom_shapes.get(gvk)
        if known is None or known[0] is not kind.root:
            known = self._custom_shapes[gvk] = (kind.root, custom_shape(kind.root))
        return known[1]


class KindVersions(Struct, frozen=True):
    """The versions of one kind, as `managed_fields` asks for them."""

    ownership: Ownership
    served: ResourceType

    def shape(self, api_version: str) -> FieldShape | None:
        return self.ownership.shape(GroupVersionKind.of(api_version, self.served.kind))

    def seen(self, obj: JsonObject) -> JsonObject:
        """A stored object in the version of the request, as it would be encoded."""
        return self.encoded(self.converted(obj))

    def converted(self, obj: JsonObject) -> JsonObject:
        stored = self.served.stored_as and obj.get("kind")
        return conversion.from_storage(obj, self.served) if stored else obj

    def encoded(self, obj: JsonObject) -> JsonObject:
        """The object without what Go's encoding omits; custom objects are encoded as they are."""
        shape = None if self.served.custom else self.shape(self.served.api_version)
        return obj if shape is None else without_empty(obj, shape)

    def convert(self, obj: JsonObject, api_version: str) -> JsonObject | None:
        given = self.served.api_version
        current = obj.get("apiVersion") or given
        if current == api_version:
            return obj
        if self.shape(api_version) is None:
            return None
        if self.served.custom:
            return {**obj, "apiVersion": api_version}
        kind = self.served.kind
        old, new = (GroupVersionKind.of(each, kind) for each in (current, api_version))
        return conversion.convert(obj, old, new)


def _blank(served: ResourceType) -> JsonObject:
    """The blank object of a built-in kind. Custom kinds are not typed: theirs is empty."""
    return {} if served.custom else _BLANK.get((served.gvk.group, served.gvk.kind), _UNIFORM)


def differing(old: JsonObject, new: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Both objects without the parts that are the same in both."""
    same = [
        name
        for name, part in new.items()
        if name in old and (old[name] is part or old[name] == part)
    ]
    before, after = dict(old), dict(new)
    for name in same:
        del before[name], after[name]
    return before, after


def check_target(
    config: JsonValue, namespace: str, name: str, *, namespaced: bool = True
) -> JsonObject:
    """The configuration, named; 400 if it is for another object than the request."""
    if not isinstance(config, dict):
        raise BadRequestError("an apply patch must be an object")
    metadata = config.get("metadata") or {}
    if not isinstance(metadata, dict):
        return config
    if not namespaced:
        metadata = {key: value for key, value in metadata.items() if key != "namespace"}
    own_name, own_namespace = metadata.get("name") or name, metadata.get("namespace") or namespace
    if own_namespace != namespace:
        raise BadRequestError(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if own_name != name:
        raise BadRequestError(
            f"the name of the object ({own_name}) does not match the name on the URL ({name})"
        )
    return {**config, "metadata": {**metadata, "name": name}}


def reset_fields(served: ResourceType, subresource: str) -> FieldSet:
    """What a write may state and the server ignores all the same."""
    if not served.has_status:
        return _NOTHING
    if subresource != "status":
        return _STATUS
    if served.custom:
        return _NOT_STATUS
    return _RESET_WITH_STATUS.get((served.gvk.group, served.kind), _SPEC)


def _with_current_annotation(obj: JsonObject, request: Application) -> JsonObject:
    """kubectl's own record of the configuration follows, for clients that still go by it."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if request.manager != KUBECTL or not annotations.get(LAST_APPLIED):
        return obj
    text = _as_annotation(request.config)
    if annotations[LAST_APPLIED] == text:
        return obj
    metadata = {**obj["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}
    return {**obj, "metadata": metadata}


def _as_annotation(config: JsonObject) -> str:
    metadata = config.get("metadata") or {}
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        kept = {k: v for k, v in metadata["annotations"].items() if k != LAST_APPLIED}
        config = {**config, "metadata": {**metadata, "annotations": kept}}
    text = json.dumps(config, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text + "\n"


def _not_of_type(which: str, obj: JsonObject, gvk: GroupVersionKind, found: list[str]) -> str:
    metadata = obj.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    version = gvk.api_version if gvk.group else f"/{gvk.version}"
    why = found[0] if len(found) == 1 else "errors:\n  " + "\n  ".join(found)
    return (
        f"failed to create typed {which} object ({given.get('namespace', '')}/"
        f"{given.get('name', '')}; {version}, Kind={gvk.kind}): {why}"
    )
