"""A promise about many writes: their bodies are one and the same, but for the names of new objects.

Whoever creates many objects from one template says so with a `Blueprint` in the options of each
write. The registry then decodes, admits and validates the first one and makes the others like it.
The same goes for a status that is reported for many pods.
"""

from collections.abc import Mapping
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


class ClaimingBlueprint(Blueprint):
    """Pods that differ in the names of claims among their volumes as well.

    Nothing else in a pod depends on these names, nor does validation: any will do.
    """

    __slots__ = ()

    def covers(self, obj: ReadOnlyObject) -> bool:
        body = self.body
        if obj is body:
            return True
        spec, own = obj["spec"], body["spec"]
        members = all(obj.get(name) is body[name] for name in body if name not in _VARYING)
        alike = members and len(obj) == len(body) and same_but(spec, own, "volumes")
        return (
            alike
            and same_but(obj["metadata"], body["metadata"], "name")
            and all(map(_same_but_claim, spec["volumes"], own["volumes"]))
        )

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        given, volumes = obj["spec"]["volumes"], stored["spec"]["volumes"]
        named = [_claiming(volume, wanted) for volume, wanted in zip(volumes, given, strict=False)]
        spec = {**stored["spec"], "volumes": [*named, *volumes[len(given) :]]}
        return {**stored, "spec": spec}


_VARYING = frozenset({"metadata", "spec"})
_CLAIM = "persistentVolumeClaim"


def _same_but_claim(new: ReadOnlyObject, old: ReadOnlyObject) -> bool:
    if new is old:
        return True
    return same_but(new, old, _CLAIM) and same_but(new[_CLAIM], old[_CLAIM], "claimName")


def _claiming(volume: JsonObject, wanted: ReadOnlyObject) -> JsonObject:
    """A stored volume with the claim of another one like it."""
    if _CLAIM not in wanted:
        return volume
    claim = {**volume[_CLAIM], "claimName": wanted[_CLAIM]["claimName"]}
    return {**volume, _CLAIM: claim}


def same_but(new: Mapping[str, Any], old: Mapping[str, Any], member: str) -> bool:
    """Whether two objects have the same members in the same order, apart from one's value."""
    if [*new] != [*old]:
        return False
    for name, value in new.items():  # noqa: SIM110 - a generator would take twice as long
        if value is not old[name] and name != member:
            return False
    return True
