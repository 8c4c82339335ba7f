"""A remedy as plain data, what it costs, and doing what it says in a world or in a fork of it.

The cost is a number of points, so that unlike changes can be put in order. It is a convention, not
a price: what is easily done and easily taken back comes first. See design note 0031.
"""

from enum import StrEnum
from typing import Any, Literal, Protocol

import msgspec

from kubescene.api.copies import own_copy
from kubescene.types import JsonObject

_OF_THE_SERVER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
)


class RemedyKind(StrEnum):
    """What is changed. In this order remedies of the same cost are listed."""

    REQUEST = "Request"
    LABEL = "Label"
    TOLERATION = "Toleration"
    TERM = "Term"
    VICTIM = "Victim"
    NODE = "Node"


LABEL_COST = 2
TOLERATION_COST = 3
TERM_COST = 4
VICTIM_COST = 6
"""For each pod that has to go."""
NODE_COST = 8
_ORDER = {kind: place for place, kind in enumerate(RemedyKind)}


def request_cost(less: int, whole: int) -> int:
    """One point for every tenth of the request that is given up, or part of it."""
    return -(-10 * less // whole)


class Edit(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One object that is changed. ``replace`` deletes an object and creates it anew, as the spec
    of a pod can only be changed that way; ``label`` adds the labels of ``object`` to a node.
    """

    verb: Literal["create", "delete", "replace", "label"]
    kind: str
    name: str
    namespace: str = ""
    object: JsonObject = {}


class Remedy(msgspec.Struct, frozen=True, rename="camel"):
    """One change after which the pod fits, as a trial has shown: it went to ``node``."""

    kind: RemedyKind
    pod: str
    text: str
    cost: int
    node: str
    edits: tuple[Edit, ...]

    def __repr__(self) -> str:
        return f"<{self.text}: {self.pod} fits {self.node}, cost {self.cost}>"


class Remedies(list[Remedy]):
    """Remedies of one pod, the cheapest first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        from kubescene.markup import excerpt, h

        if not self:
            return h("p", "no single change was found that would place it")
        rows = ((each.text, each.node, each.cost) for each in self)
        return excerpt(("change", "then it fits", "cost"), rows, numbers=("cost",))


def in_order(remedies: list[Remedy]) -> Remedies:
    """The cheapest first."""
    return Remedies(sorted(remedies, key=_place))


def _place(remedy: Remedy) -> tuple[int, int]:
    return remedy.cost, _ORDER[remedy.kind]


class Editable(Protocol):
    """A world that can be written to, as `kubescene.cluster.Cluster` can."""

    @property
    def create(self) -> Any: ...

    @property
    def patch(self) -> Any: ...

    @property
    def delete(self) -> Any: ...


def apply_remedy(world: Editable, remedy: Remedy) -> None:
    """Make the changes; nothing settles. A pod is replaced at once, without grace."""
    for edit in remedy.edits:
        _apply(world, edit)


def _apply(world: Editable, edit: Edit) -> None:
    if edit.verb == "label":
        world.patch("Node", edit.name, edit.object)
        return
    if edit.verb in ("replace", "delete"):
        world.delete("Pod", edit.name, edit.namespace, grace_period_s=0)
    if edit.verb in ("replace", "create"):
        world.create(edit.object)


def fresh(obj: JsonObject) -> JsonObject:
    """An object without what the server adds to it."""
    copy: JsonObject = own_copy(obj)
    copy.pop("status", None)
    for name in _OF_THE_SERVER:
        copy["metadata"].pop(name, None)
    return copy


def replaced(pod: JsonObject) -> Edit:
    """The edit that puts a changed pod in the place of the old one."""
    metadata = pod["metadata"]
    return Edit("replace", "Pod", metadata["name"], metadata["namespace"], fresh(pod))
