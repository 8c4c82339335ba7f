"""Node selectors: the terms of ``nodeAffinity``.

A `NodeSelector` is a list of terms of which one must hold; a term is a list of requirements,
on labels and on the node's name, which must hold together. A term that asks for nothing matches
no node, and so does a term that cannot be understood: its `errors` say why, and it is for the
caller to pass over them (required affinity) or to report them (preferred affinity).

Requirements are exposed so that the scheduler can hold them against whole columns of nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from kubescene.api.selectors.requirements import Operator, Requirement, refusals

_NAME_FIELD = "metadata.name"

_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}
_FIELD_OPERATORS = {"In": Operator.IN, "NotIn": Operator.NOT_IN}


class NodeSelectorTerm(Struct, frozen=True):
    """Requirements on one node. ``errors`` are the faults for which it will never match."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.expressions or self.fields or self.errors)

    @property
    def never_matches(self) -> bool:
        return bool(self.errors) or self.is_empty

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if self.never_matches:
            return False
        fields = {_NAME_FIELD: name}
        return all(each.matches(labels) for each in self.expressions) and all(
            _field_matches(each, fields) for each in self.fields
        )

    def node_names(self) -> tuple[str, ...] | None:
        """The only nodes this term can match by name, in order; None if it names no nodes."""
        listed = [
            each.values
            for each in self.fields
            if each.key == _NAME_FIELD and each.operator is Operator.IN
        ]
        if not listed:
            return None
        first, *others = listed
        return tuple(name for name in dict.fromkeys(first) if all(name in each for each in others))


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which at least one must hold. No terms, no node."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)

    def node_names(self) -> tuple[str, ...] | None:
        """The only nodes that can match by name; None if some term leaves the name open.

        An empty tuple means that every term names nodes, but in conflict with itself.
        """
        names: dict[str, None] = {}
        for term in self.terms:
            if (listed := term.node_names()) is None:
                return None
            names.update(dict.fromkeys(listed))
        return tuple(names) if self.terms else None


def node_selector(selector: Mapping[str, Any]) -> NodeSelector:
    """Compile ``requiredDuringSchedulingIgnoredDuringExecution``, or a volume's node affinity."""
    terms = selector.get("nodeSelectorTerms") or ()
    return NodeSelector(
        tuple(
            node_selector_term(term, path=f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(terms)
        )
    )


def node_selector_term(term: Mapping[str, Any], *, path: str = "") -> NodeSelectorTerm:
    """Compile one term, such as a ``preference``. ``path`` opens each of its error texts."""
    below = f"{path}." if path else ""
    expressions, faults = _compiled(term, f"{below}matchExpressions", "matchExpressions")
    fields, field_faults = _compiled(term, f"{below}matchFields", "matchFields")
    return NodeSelectorTerm(expressions, fields, tuple(dict.fromkeys([*faults, *field_faults])))


def _compiled(
    term: Mapping[str, Any], path: str, kind: str
) -> tuple[tuple[Requirement, ...], list[str]]:
    """The requirements that have a known operator, and all that is wrong with the list."""
    operators = _OPERATORS if kind == "matchExpressions" else _FIELD_OPERATORS
    requirements, faults = [], []
    for index, expression in enumerate(term.get(kind) or ()):
        place, written = f"{path}[{index}]", expression.get("operator", "")
        operator = operators.get(written)
        if operator is None:
            faults.append(_unsupported(f"{place}.operator", written, operators))
            continue
        key, values = expression.get("key", ""), expression.get("values")
        requirements.append(Requirement(key, operator, tuple(values or ())))
        if operators is _OPERATORS:
            faults.extend(refusals(key, operator, values, path=place))
        elif len(values or ()) != 1:
            faults.append(_not_one(f"{place}.values", values))
    return tuple(requirements), faults


def _field_matches(requirement: Requirement, fields: Mapping[str, str]) -> bool:
    """Fields that a node does not have are empty, not absent."""
    value = fields.get(requirement.key, "")
    return (value in requirement.values) == (requirement.operator is Operator.IN)


def _unsupported(path: str, written: str, operators: Mapping[str, Operator]) -> str:
    # Imported late: the validation package itself stands on selectors.
    from kubescene.api.validation.field_errors import ErrorType, FieldError, quote

    detail = f"supported values: {', '.join(map(quote, operators))}"
    return FieldError(ErrorType.NOT_SUPPORTED, path, written, detail).message


def _not_one(path: str, values: list[str] | None) -> str:
    # Imported late: the validation package itself stands on selectors.
    from kubescene.api.validation.field_errors import ErrorType, FieldError

    return FieldError(ErrorType.INVALID, path, values, "must have one element").message
