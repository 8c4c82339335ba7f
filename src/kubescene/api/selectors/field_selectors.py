"""Field selectors: ``metadata.name=web,status.phase!=Succeeded``.

Unlike labels, only a few fields can be selected by, and each resource has its own list
(`SUPPORTED_FIELDS`). Reading a selector and holding it against that list are two steps:
`parse_fields` knows the syntax, `FieldSelector.for_resource` knows the resource.

Values are compared as texts. An absent field is the empty text, an absent number is ``0`` and
an absent flag is ``false``.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from kubescene.errors import BadRequestError
from kubescene.types import ReadOnlyObject

FieldOperator: TypeAlias = Literal["=", "!="]

# Terms stand between commas; what follows a backslash belongs to the term.
_TERM = re.compile(r"(?:\\.|[^\\,]|\\\Z)+", re.DOTALL)
_PARTS = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_SPECIAL = re.compile(r"([\\,=])")
_METADATA = ("metadata.name", "metadata.namespace")


def _same(*paths: str) -> Mapping[str, str]:
    return {path: path for path in paths}


_OBJECT_REFERENCE = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)

SUPPORTED_FIELDS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("", "pods"): {
        **_same(
            *_METADATA,
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ),
        "spec.host": "spec.nodeName",
    },
    ("", "nodes"): _same("metadata.name", "spec.unschedulable"),
    ("", "namespaces"): _same("metadata.name", "status.phase"),
    ("", "replicationcontrollers"): _same(*_METADATA, "status.replicas"),
    ("", "secrets"): _same(*_METADATA, "type"),
    ("", "services"): _same(*_METADATA, "spec.clusterIP", "spec.type"),
    ("", "events"): _same(
        *_METADATA,
        *(f"involvedObject.{name}" for name in _OBJECT_REFERENCE),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "events"): {
        **_same(*_METADATA, "reason", "type"),
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _OBJECT_REFERENCE},
        "reportingController": "reportingComponent",
    },
    ("batch", "jobs"): _same(*_METADATA, "status.successful"),
    ("certificates.k8s.io", "certificatesigningrequests"): _same(
        "metadata.name", "spec.signerName"
    ),
    ("certificates.k8s.io", "clustertrustbundles"): _same("metadata.name", "spec.signerName"),
    ("certificates.k8s.io", "podcertificaterequests"): _same(
        "metadata.name", "spec.signerName", "spec.podName", "spec.nodeName"
    ),
    ("resource.k8s.io", "resourceslices"): _same(
        "metadata.name", "spec.nodeName", "spec.driver", "spec.pool.name"
    ),
}
"""By group and plural: each field label that may be asked for, and the path it stands for.

What is not listed here supports ``metadata.name`` and ``metadata.namespace`` alone; ReplicaSets
are among those, whatever the documentation says.
"""

_REFUSALS: Mapping[tuple[str, str], str] = {
    ("batch", "jobs"): 'field label "{}" not supported for Job',
    ("resource.k8s.io", "resourceslices"): (
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}"
    ),
}
_REFUSAL = "field label not supported: {}"
_DEFAULT_REFUSAL = '"{}" is not a known field selector: only "metadata.name", "metadata.namespace"'


class FieldRequirement(Struct, frozen=True):
    """One field that must, or must not, have a value."""

    path: str
    operator: FieldOperator
    value: str

    def accepts(self, value: str) -> bool:
        return (value == self.value) == (self.operator == "=")

    def __str__(self) -> str:
        return f"{self.path}{self.operator}{escape(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Requirements that must all hold; without any, everything matches."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.requirements

    def matches(self, get: Callable[[str], str]) -> bool:
        """Whether the requirements hold for what ``get`` answers to each path."""
        return all(each.accepts(get(each.path)) for each in self.requirements)

    def matches_object(self, obj: ReadOnlyObject) -> bool:
        return all(each.accepts(field_value(obj, each.path)) for each in self.requirements)

    def exact(self, path: str) -> str | None:
        """The value that ``path`` must have, so that an index can be asked for it."""
        wanted = (each for each in self.requirements if each.operator == "=")
        return next((each.value for each in wanted if each.path == path), None)

    def for_resource(
        self,
        resource: tuple[str, str],
        *,
        custom_fields: Collection[str] | None = None,
        namespaced: bool = True,
    ) -> "FieldSelector":
        """This selector in the paths of ``resource`` (group, plural).

        Raises `BadRequestError` for a field that cannot be selected by. Give ``custom_fields``
        for a custom resource: the ``selectableFields`` of its definition, without leading dot.
        """
        fields, refusal = _fields_of(resource, custom_fields, namespaced)
        return FieldSelector(tuple(_converted(each, fields, refusal) for each in self.requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


@lru_cache(maxsize=4096)
def parse_fields(text: str) -> FieldSelector:
    """Read the ``fieldSelector`` of a URL; raise `BadRequestError` if it cannot be read."""
    requirements = [_requirement(term, text) for term in sorted(_TERM.findall(text))]
    # Upstream drops a lone operator, which asks nothing of no field.
    return FieldSelector(tuple(each for each in requirements if each.path or each.value))


def escape(value: str) -> str:
    """The value as it must be written in a field selector."""
    return _SPECIAL.sub(r"\\\1", value)


def field_value(obj: ReadOnlyObject, path: str) -> str:
    """The text that a field selector compares ``path`` of this object with."""
    read = _READERS.get(path)
    return read(obj) if read else _text(_walk(obj, path))


def _requirement(term: str, text: str) -> FieldRequirement:
    parts = _PARTS.fullmatch(term)
    if parts is None:
        raise BadRequestError(f"invalid selector: '{text}'; can't understand '{term}'")
    operator: FieldOperator = "!=" if parts[2] == "!=" else "="
    return FieldRequirement(parts[1], operator, _unescape(parts[3]))


def _unescape(written: str) -> str:
    value, characters = [], iter(written)
    for character in characters:
        if character in ",=":
            # Upstream prints the number of the character, not the character.
            raise BadRequestError(
                f"invalid field selector: unescaped character in value: {ord(character)}"
            )
        value.append(_escaped(next(characters, "")) if character == "\\" else character)
    return "".join(value)


def _escaped(character: str) -> str:
    if character and character in "\\,=":
        return character
    raise BadRequestError(f"invalid field selector: invalid escape sequence: \\{character}")


def _fields_of(
    resource: tuple[str, str], custom_fields: Collection[str] | None, namespaced: bool
) -> tuple[Mapping[str, str], str]:
    if custom_fields is not None:
        metadata = _METADATA if namespaced else _METADATA[:1]
        return _same(*metadata, *custom_fields), _REFUSAL
    if fields := SUPPORTED_FIELDS.get(resource):
        return fields, _REFUSALS.get(resource, _REFUSAL)
    return _same(*_METADATA), _DEFAULT_REFUSAL


def _converted(
    requirement: FieldRequirement, fields: Mapping[str, str], refusal: str
) -> FieldRequirement:
    path = fields.get(requirement.path)
    if path is None:
        raise BadRequestError(refusal.format(requirement.path))
    return FieldRequirement(path, requirement.operator, requirement.value)


def _walk(obj: ReadOnlyObject, path: str) -> Any:
    value: Any = obj
    for step in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _flag(path: str) -> Callable[[ReadOnlyObject], str]:
    return lambda obj: _text(_walk(obj, path) or False)


def _number(path: str) -> Callable[[ReadOnlyObject], str]:
    return lambda obj: _text(_walk(obj, path) or 0)


def _first(*paths: str) -> Callable[[ReadOnlyObject], str]:
    """The first of several paths that is set: events have other names in events.k8s.io."""
    return lambda obj: next(filter(None, (_text(_walk(obj, path)) for path in paths)), "")


def _pod_ip(obj: ReadOnlyObject) -> str:
    addresses = _walk(obj, "status.podIPs")
    return _text(addresses[0].get("ip")) if addresses else _text(_walk(obj, "status.podIP"))


_REPORTERS = ("reportingComponent", "reportingController")
_READERS: Mapping[str, Callable[[ReadOnlyObject], str]] = {
    "spec.hostNetwork": _flag("spec.hostNetwork"),
    "spec.unschedulable": _flag("spec.unschedulable"),
    "status.replicas": _number("status.replicas"),
    "status.successful": _number("status.succeeded"),
    "status.podIP": _pod_ip,
    # Accepted as a label, but upstream never gives it a value.
    "status.podIPs": lambda _: "",
    "reportingComponent": _first(*_REPORTERS),
    "source": _first("source.component", "deprecatedSource.component", *_REPORTERS),
    **{
        f"involvedObject.{name}": _first(f"involvedObject.{name}", f"regarding.{name}")
        for name in _OBJECT_REFERENCE
    },
}
