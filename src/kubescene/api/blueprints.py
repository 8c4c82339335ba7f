"""A promise about many writes: their bodies are one and the same, but for the names of new objects.

Whoever creates many objects from one template says so with a `Blueprint` in the options of each
write. The registry then decodes, admits and validates the first one and makes the others like it.
The same goes for a status that is reported for many pods.
"""

from collections.abc import Mapping
from operator import eq
from typing import Any

from kubescene.types import JsonObject, ReadOnlyObject


class Blueprint:
    """The body that all these writes have. It must not be changed any more."""

    __slots__ = ("body",)

    def __init__(self, body: ReadOnlyObject) -> None:
        self.body = body

    def covers(self, obj: ReadOnlyObject) -> bool:
        """Whether an object is this body, or a copy that shares all of it but the name."""
        body = self.body
        if obj is body:
            return True
        return same_but(obj, body, "metadata") and same_but(
            obj["metadata"], body["metadata"], "name"
        )

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        """What is stored for ``obj``, but for its name, if ``stored`` is what the body became."""
        del obj
        return stored


def same_but(new: Mapping[str, Any], old: Mapping[str, Any], member: str) -> bool:
    """Whether two objects have the same members in the same order, apart from one's value."""
    if len(new) != len(old) or not all(map(eq, new, old)):
        return False
    return all(value is old[name] or name == member for name, value in new.items())
