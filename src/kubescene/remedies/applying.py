"""Doing what a remedy says, in a world or in a fork of it."""

from typing import Any, Protocol

from kubescene.remedies.remedy import Edit, Remedy


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
