"""Operations that create pods which differ in nothing but their names.

A dump of a cluster, or a trace of jobs, names every pod in an operation of its own; most of them
ask for what others ask for. Whatever is equal is made one, so that the registry can be told so
(`Blueprint`), exactly as it is for the instances of a counted create.
"""

from collections import OrderedDict

from kubescene.api.blueprints import Blueprint
from kubescene.api.encoding import encode
from kubescene.types import JsonObject

KEPT = 512


class AlikePods:
    """Blueprints by what pods have in common; those that were asked for last are kept."""

    def __init__(self) -> None:
        self._blueprints: OrderedDict[bytes, Blueprint] = OrderedDict()

    def of(self, obj: JsonObject) -> tuple[JsonObject, Blueprint | None]:
        """The pod, sharing all but its name with those like it; other objects as they are.

        What is given is not changed any more: operations belong to the engine.
        """
        name = pod_name(obj)
        if not name:
            return obj, None
        key = encode({**obj, "metadata": {**obj["metadata"], "name": ""}})
        blueprint = self._blueprints.get(key)
        if blueprint is None:
            return obj, self._keep(key, Blueprint(obj))
        self._blueprints.move_to_end(key)
        body = blueprint.body
        return {**body, "metadata": {**body["metadata"], "name": name}}, blueprint

    def _keep(self, key: bytes, blueprint: Blueprint) -> Blueprint:
        self._blueprints[key] = blueprint
        if len(self._blueprints) > KEPT:
            self._blueprints.popitem(last=False)
        return blueprint


def pod_name(obj: JsonObject) -> str:
    """The name that a pod is given; empty for anything else."""
    metadata = obj.get("metadata") if obj.get("kind") == "Pod" else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""
