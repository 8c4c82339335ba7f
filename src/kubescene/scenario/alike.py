"""Operations that create pods, or nodes, which differ in nothing but their names.

A dump of a cluster, or a trace of jobs, names every one in an operation of its own; most of them
are like others. Whatever is equal is made one, so that the registry can be told so (`Blueprint`),
exactly as it is for the instances of a counted create. The label in which a node says which host it
is counts as its name.
"""

from collections import OrderedDict

from kubescene.api.blueprints import Blueprint, HostBlueprint, named, says_host
from kubescene.api.encoding import encode
from kubescene.types import JsonObject

KEPT = 512
KINDS = ("Pod", "Node")


class AlikeObjects:
    """Blueprints by what objects have in common; those that were asked for last are kept."""

    def __init__(self) -> None:
        self._blueprints: OrderedDict[tuple[bool, bytes], Blueprint] = OrderedDict()

    def of(self, obj: JsonObject) -> tuple[JsonObject, Blueprint | None]:
        """The object, sharing all but its name with those like it; of other kinds, as it is.

        What is given is not changed any more: operations belong to the engine.
        """
        name = given_name(obj)
        if not name:
            return obj, None
        is_host = says_host(obj)
        key = is_host, encode(named(obj, "", is_host=is_host))
        blueprint = self._blueprints.get(key)
        if blueprint is None:
            return obj, self._keep(key, HostBlueprint(obj) if is_host else Blueprint(obj))
        self._blueprints.move_to_end(key)
        return named(blueprint.body, name, is_host=is_host), blueprint

    def _keep(self, key: tuple[bool, bytes], blueprint: Blueprint) -> Blueprint:
        self._blueprints[key] = blueprint
        if len(self._blueprints) > KEPT:
            self._blueprints.popitem(last=False)
        return blueprint


def given_name(obj: JsonObject) -> str:
    """The name that a pod or a node is given; empty for anything else."""
    metadata = obj.get("metadata") if obj.get("kind") in KINDS else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""
