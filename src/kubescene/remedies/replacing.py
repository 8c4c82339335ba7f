"""A pod as it would be created anew."""

from kubescene.api.copies import own_copy
from kubescene.remedies.remedy import Edit
from kubescene.types import JsonObject

_OF_THE_SERVER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
)


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
