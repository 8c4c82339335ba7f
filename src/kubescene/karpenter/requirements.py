"""Requirements: which values of a label are allowed, and what is left when several must hold.

A requirement is a set of values, or all values but some, perhaps within bounds. `Requirements` has
one for each label; what is added to it narrows it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from kubescene.types import JsonObject, ReadOnlyObject

DOMAIN = "karpenter.sh"
NODE_POOL = f"{DOMAIN}/nodepool"
CAPACITY_TYPE = f"{DOMAIN}/capacity-type"
REGISTERED, INITIALIZED = f"{DOMAIN}/registered", f"{DOMAIN}/initialized"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCHITECTURE, SYSTEM = "kubernetes.io/arch", "kubernetes.io/os"
WINDOWS_BUILD = "node.kubernetes.io/windows-build"
HOSTNAME = "kubernetes.io/hostname"
WELL_KNOWN = frozenset(
    (NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCHITECTURE, SYSTEM, CAPACITY_TYPE, WINDOWS_BUILD)
)
"""Labels that a node may have although nobody has said so yet."""
OLD_NAMES: Mapping[str, str] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCHITECTURE,
    "beta.kubernetes.io/os": SYSTEM,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}
IN, NOT_IN, EXISTS, DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"
GT, LT, GTE, LTE = "Gt", "Lt", "Gte", "Lte"
OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT, GTE, LTE)
_SHOWN = 5
_INTEGER = re.compile(r"[+-]?[0-9]+")


class LabelRequirement(Struct, frozen=True):
    """What the value of one label may be."""

    key: str
    values: frozenset[str] = frozenset()
    is_complement: bool = False
    """Whether ``values`` are those that are not allowed."""
    least: int | None = None
    most: int | None = None
    min_values: int | None = None
    """At least so many different values must be left to choose from."""

    @property
    def operator(self) -> str:
        if self.is_complement:
            return NOT_IN if self.values else EXISTS
        return IN if self.values else DOES_NOT_EXIST

    @property
    def only(self) -> str | None:
        """The one value that is left, if there is one."""
        if self.is_complement or len(self.values) != 1:
            return None
        return next(iter(self.values))

    @property
    def any(self) -> str:
        """A value that is allowed, empty if none is; the least one where there are several."""
        if not self.is_complement:
            return min(self.values, default="")
        return str(self.least or 0)

    def has(self, value: str) -> bool:
        if (value in self.values) is self.is_complement:
            return False
        return _within(value, self.least, self.most)

    def narrowed(self, other: "LabelRequirement") -> "LabelRequirement":
        """What both allow."""
        least, most = _larger(self.least, other.least), _smaller(self.most, other.most)
        wanted = _larger(self.min_values, other.min_values)
        if least is not None and most is not None and least > most:
            return LabelRequirement(self.key, min_values=wanted)
        if self.is_complement and other.is_complement:
            values = self.values | other.values
        elif self.is_complement:
            values = other.values - self.values
        elif other.is_complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        if least is not None or most is not None:
            values = frozenset(each for each in values if _within(each, least, most))
        if self.is_complement and other.is_complement:
            return LabelRequirement(self.key, values, True, least, most, wanted)
        return LabelRequirement(self.key, values, min_values=wanted)

    def meets(self, other: "LabelRequirement") -> bool:
        """Whether there is a value that both allow."""
        least, most = _larger(self.least, other.least), _smaller(self.most, other.most)
        if least is not None and most is not None and least > most:
            return False
        if self.is_complement and other.is_complement:
            return True
        if self.is_complement:
            left: Iterable[str] = other.values - self.values
        elif other.is_complement:
            left = self.values - other.values
        else:
            left = self.values & other.values
        return any(_within(each, least, most) for each in left)

    def wanting(self, min_values: int) -> "LabelRequirement":
        return LabelRequirement(
            self.key, self.values, self.is_complement, self.least, self.most, min_values
        )

    def written(self) -> Iterator[JsonObject]:
        """As it stands in the spec of a NodeClaim."""
        wanted = {} if self.min_values is None else {"minValues": self.min_values}
        if self.least is not None:
            yield {"key": self.key, "operator": GTE, "values": [str(self.least)], **wanted}
        if self.most is not None:
            yield {"key": self.key, "operator": LTE, "values": [str(self.most)], **wanted}
        if self.least is not None or self.most is not None:
            return
        values = {"values": sorted(self.values)} if self.values else {}
        yield {"key": self.key, "operator": self.operator, **values, **wanted}

    def __str__(self) -> str:
        text = f"{self.key} {self.operator}"
        if self.values:
            shown = sorted(self.values)
            if (others := len(shown) - _SHOWN) > 0:
                shown = [*shown[:_SHOWN], f"and {others} others"]
            text += f" [{' '.join(shown)}]"
        if self.least is not None:
            text += f" >={self.least}"
        if self.most is not None:
            text += f" <={self.most}"
        return text if self.min_values is None else f"{text} minValues {self.min_values}"


class RequirementConflict(NamedTuple):
    """Why requirements cannot hold together."""

    pairs: Sequence[tuple[LabelRequirement, LabelRequirement]] = ()
    """What is asked for and what there is."""
    unknown: str = ""
    """A label of which nobody knows a value."""

    def __str__(self) -> str:
        if self.unknown:
            return f'label "{self.unknown}" does not have known values'
        return "; ".join(f"key {a.key}, {a} not in {b}" for a, b in self.pairs)


class Requirements(dict[str, LabelRequirement]):
    """One requirement for each label; another one for the same label narrows it."""

    def add(self, *requirements: LabelRequirement) -> None:
        for each in requirements:
            known = self.get(each.key)
            self[each.key] = each if known is None else each.narrowed(known)

    def adding(self, *requirements: LabelRequirement) -> "Requirements":
        narrowed = Requirements(self)
        narrowed.add(*requirements)
        return narrowed

    def of(self, key: str) -> LabelRequirement:
        """Any value will do if nothing is said."""
        found = self.get(key)
        return LabelRequirement(key, is_complement=True) if found is None else found

    def conflict(
        self, asked: "Requirements", undefined: Collection[str] = ()
    ) -> RequirementConflict | None:
        """Why not all that is asked for can hold; labels in ``undefined`` may still come."""
        for key, each in asked.items():
            if key in self or key in undefined or each.operator in (NOT_IN, DOES_NOT_EXIST):
                continue
            first = min(
                name
                for name, it in asked.items()
                if name not in self
                and name not in undefined
                and it.operator not in (NOT_IN, DOES_NOT_EXIST)
            )
            return RequirementConflict(unknown=first)
        return self.overlap_fault(asked)

    def overlap_fault(self, other: "Requirements") -> RequirementConflict | None:
        """Labels of both for which no value is left; what only one names does not matter."""
        if self.overlaps(other):
            return None
        shared = sorted(key for key in self if key in other)
        return RequirementConflict(
            [(other[key], self[key]) for key in shared if not _agree(self[key], other[key])]
        )

    def overlaps(self, other: "Requirements") -> bool:
        few, many = (self, other) if len(self) <= len(other) else (other, self)
        for key, each in few.items():
            if (found := many.get(key)) is not None and not _agree(each, found):
                return False
        return True

    @property
    def wants_choice(self) -> bool:
        return any(each.min_values is not None for each in self.values())

    def written(self) -> list[JsonObject]:
        return [it for key in sorted(self) for it in self[key].written()]

    def __str__(self) -> str:
        return ", ".join(sorted(str(each) for key, each in self.items() if key != HOSTNAME))


Listed: TypeAlias = Iterable[ReadOnlyObject]


def requirement(
    key: str, operator: str, values: Sequence[str] = (), min_values: int | None = None
) -> LabelRequirement:
    """Raises `ValueError` for what makes no sense."""
    key = OLD_NAMES.get(key, key)
    match operator:
        case "In" | "NotIn":
            return LabelRequirement(
                key, frozenset(values), operator == NOT_IN, min_values=min_values
            )
        case "Exists" | "DoesNotExist":
            return LabelRequirement(key, is_complement=operator == EXISTS, min_values=min_values)
        case "Gt" | "Gte":
            least = _bound(key, operator, values) + (operator == GT)
            return LabelRequirement(key, is_complement=True, least=least, min_values=min_values)
        case "Lt" | "Lte":
            most = _bound(key, operator, values) - (operator == LT)
            return LabelRequirement(key, is_complement=True, most=most, min_values=min_values)
    known = ", ".join(OPERATORS)
    raise ValueError(f"{key}: there is no operator {operator!r}; known are {known}")


def from_expressions(listed: Listed) -> Requirements:
    """Those of a NodePool, a NodeClaim or a term of a node affinity."""
    found = Requirements()
    for each in listed:
        found.add(
            requirement(
                each["key"],
                each.get("operator", IN),
                each.get("values") or (),
                each.get("minValues"),
            )
        )
    return found


def from_labels(labels: Mapping[str, str]) -> Requirements:
    found = Requirements()
    for key, value in labels.items():
        found.add(LabelRequirement(OLD_NAMES.get(key, key), frozenset((value,))))
    return found


def of_pod(spec: Mapping[str, Any], *, preferred: bool = True) -> Requirements:
    """What a pod asks of the labels of its node: its selector, the first of its required terms
    and, as if it were required, the heaviest of its preferred ones."""
    found = from_labels(spec.get("nodeSelector") or {})
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    liked = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    if preferred and liked:
        heaviest = max(liked, key=lambda each: each["weight"])
        found.add(*from_expressions(heaviest["preference"].get("matchExpressions") or ()).values())
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    if terms := required.get("nodeSelectorTerms"):
        found.add(*from_expressions(terms[0].get("matchExpressions") or ()).values())
    return found


def _agree(a: LabelRequirement, b: LabelRequirement) -> bool:
    if a.meets(b):
        return True
    absent = (NOT_IN, DOES_NOT_EXIST)
    return a.operator in absent and b.operator in absent


def _bound(key: str, operator: str, values: Sequence[str]) -> int:
    if len(values) != 1 or not _INTEGER.fullmatch(values[0]):
        raise ValueError(f"{key}: {operator} needs one whole number, not {list(values)}")
    return int(values[0])


def _within(value: str, least: int | None, most: int | None) -> bool:
    if least is None and most is None:
        return True
    if not _INTEGER.fullmatch(value):
        return False
    number = int(value)
    return (least is None or number >= least) and (most is None or number <= most)


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
