"""Typed read views over JSON objects: the few questions that people ask all the time.

A view holds the object and copies nothing. What a view does not answer is in ``view.json``.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.types import ReadOnlyObject


class ObjectView:
    """Any object."""

    __slots__ = ("json",)

    def __init__(self, obj: ReadOnlyObject) -> None:
        self.json = obj

    @property
    def name(self) -> str:
        return str(self.json["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.json["metadata"].get("namespace", ""))

    @property
    def uid(self) -> str:
        return str(self.json["metadata"].get("uid", ""))

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.json["metadata"].get("labels") or {}
        return labels

    @property
    def is_deleting(self) -> bool:
        return "deletionTimestamp" in self.json["metadata"]

    def condition(self, kind: str) -> Mapping[str, Any] | None:
        """The status condition of this type, if it is there."""
        for condition in (self.json.get("status") or {}).get("conditions") or ():
            if condition.get("type") == kind:
                found: Mapping[str, Any] = condition
                return found
        return None

    def __repr__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"<{self.json.get('kind', 'Object')} {place}{self.name}>"


class Pod(ObjectView):
    """A pod, as far as placement and readiness go."""

    @property
    def node(self) -> str:
        """The node it is assigned to, or an empty string."""
        return str(self.json["spec"].get("nodeName", ""))

    @property
    def phase(self) -> str:
        return str((self.json.get("status") or {}).get("phase", ""))

    @property
    def is_pending(self) -> bool:
        """Whether no node has been found for it yet."""
        return not self.node

    @property
    def is_ready(self) -> bool:
        condition = self.condition("Ready")
        return condition is not None and condition["status"] == "True"

    @property
    def why_pending(self) -> str:
        """The scheduler's last message about it."""
        condition = self.condition("PodScheduled")
        return str(condition.get("message", "")) if condition else ""


class Node(ObjectView):
    """A node."""

    @property
    def is_ready(self) -> bool:
        condition = self.condition("Ready")
        return condition is not None and condition["status"] == "True"

    @property
    def is_unschedulable(self) -> bool:
        return bool((self.json.get("spec") or {}).get("unschedulable", False))
