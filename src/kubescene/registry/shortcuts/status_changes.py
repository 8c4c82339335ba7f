"""Changes of nothing but the status, seen without comparing.

Patches hand on what they leave alone, so an object whose other parts *are* those of the stored one
(the very same, read-only) cannot differ in them. For such a change the stages that look after
metadata and spec have nothing to do: what they would return is what they are given.
"""

from kubescene.api.scheme import ResourceType
from kubescene.types import JsonObject


def is_status_change(new: JsonObject, old: JsonObject, resource_type: ResourceType) -> bool:
    """Whether ``new`` is ``old`` but for the status, which both have; it may not know.

    Not for custom kinds, whose status is judged by their schema together with the rest. Empty maps
    of labels or annotations go with the next write of a status: such an object takes the long way.
    """
    if resource_type.custom or len(new) != len(old):
        return False
    for name, part in old.items():
        if name != "status" and new.get(name) is not part:
            return False
    metadata = old["metadata"]
    is_neat = metadata.get("labels", True) and metadata.get("annotations", True)
    return bool(is_neat) and type(old.get("status")) is type(new.get("status")) is dict
