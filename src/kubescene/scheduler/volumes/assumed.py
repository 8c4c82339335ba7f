"""Objects as they will be once the scheduler has written them.

Between the decision to bind a volume and the write that says so, other pods are decided about. What
was assumed holds until the watch brings another version of the object, or it is restored.
"""

from kubescene.scheduler.framework.interfaces import Lister
from kubescene.types import ReadOnlyObject


class AssumeCache:
    """A `Lister` with assumptions laid over it."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._assumed: dict[tuple[str, str], tuple[ReadOnlyObject, ReadOnlyObject]] = {}

    def get(self, name: str, namespace: str = "") -> ReadOnlyObject | None:
        """The object as it is assumed to be."""
        found, key = self._lister.get(name, namespace), (namespace, name)
        assumed = self._assumed.get(key)
        if assumed is None:
            return found
        if assumed[1] is found:
            return assumed[0]
        del self._assumed[key]
        return found

    def assume(self, obj: ReadOnlyObject) -> None:
        key = _key(obj)
        found = self._lister.get(key[1], key[0])
        if found is not None:
            self._assumed[key] = (obj, found)

    def restore(self, obj: ReadOnlyObject) -> None:
        """Assume nothing about an object any more."""
        self._assumed.pop(_key(obj), None)


def _key(obj: ReadOnlyObject) -> tuple[str, str]:
    metadata = obj["metadata"]
    return (metadata.get("namespace") or "", metadata["name"])
