"""The template generation of a DaemonSet, which lives on as an annotation.

The server counts it: one at creation, one more with every change of the template. Clients cannot
set it on an update.
"""

from kubescene.registry.objects import with_metadata
from kubescene.types import JsonObject

ANNOTATION = "deprecated.daemonset.template.generation"


def first_generation(daemon_set: JsonObject) -> JsonObject:
    """A new DaemonSet: its first template, or the number it was given."""
    given = _annotations(daemon_set).get(ANNOTATION, "0")
    return _with(daemon_set, max(_number(given), 1))


def next_generation(daemon_set: JsonObject, old: JsonObject) -> JsonObject:
    """A changed DaemonSet; what the client said about the annotation does not count."""
    before = _number(_annotations(old).get(ANNOTATION, "0"))
    changed = daemon_set["spec"].get("template") != old["spec"].get("template")
    return _with(daemon_set, before + changed)


def _with(daemon_set: JsonObject, number: int) -> JsonObject:
    annotations = _annotations(daemon_set)
    if annotations.get(ANNOTATION) == str(number):
        return daemon_set
    return with_metadata(daemon_set, annotations={**annotations, ANNOTATION: str(number)})


def _annotations(obj: JsonObject) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
