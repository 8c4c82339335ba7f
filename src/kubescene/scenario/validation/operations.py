"""What is wrong with one operation, beyond its form: what a table of fields cannot say."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubescene.api.field_ownership.field_managers import manager_problem
from kubescene.api.kinds import SCENARIO
from kubescene.api.patching.patches import PatchType
from kubescene.clock import parse_duration
from kubescene.errors import BadRequestError, ScenarioError
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.patch_text import check_form, decode_patch
from kubescene.scenario.validation.faults import Fault
from kubescene.types import JsonObject

BODIES = {
    "createOperation": "Create",
    "patchOperation": "Patch",
    "deleteOperation": "Delete",
    "doneOperation": "Done",
    "advanceOperation": "Advance",
}
"""The field that makes an operation what it is, and its type in the KEP's drafts."""
DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition", f"scenarios.{SCENARIO.group}")
"""The object that makes Scenarios a kind: its group, kind and name."""
OPTIONS = ("createOptions", "patchOptions", "deleteOptions")


def operation_faults(
    item: Mapping[str, Any], folder: ScenarioFolder | None, *, draft: bool
) -> Iterator[Fault]:
    """What is wrong with one operation whose form is right."""
    present = [body for body in BODIES if item.get(body) is not None]
    if len(present) != 1:
        found = ", ".join(present) or "none"
        yield Fault((), f"exactly one of {', '.join(BODIES)} must be set; found: {found}")
        return
    (body,) = present
    told = item.get("operation")
    if (draft or told is not None) and told != BODIES[body]:
        yield Fault((), f"operation is {told!r} but {body} is set")
    check = _CHECKS[body]
    yield from (fault.under(body) for fault in check(item[body], folder))


def _create_faults(body: JsonObject, folder: ScenarioFolder | None) -> Iterator[Fault]:
    yield from _option_faults(body, "createOptions")
    objects = [body["object"]] if body.get("object") is not None else []
    if bool(objects) == (body.get("objectFrom") is not None):
        yield Fault((), "exactly one of object and objectFrom must be set")
    elif not objects:
        try:
            objects = list(_from_file(body, folder))
        except ScenarioError as error:
            yield Fault(("objectFrom",), str(error))
    if any(is_scenario(obj) for obj in objects):
        yield Fault((), "a scenario cannot create, change or delete Scenarios")
    yield from _subresource_faults(body, objects)


def _from_file(body: JsonObject, folder: ScenarioFolder | None) -> tuple[JsonObject, ...]:
    if folder is None:
        raise ScenarioError("there is no folder to read from: only a file that is played has one")
    if body.get("count") is not None:
        raise ScenarioError("count makes many of one object: write it out, or leave it away")
    return folder.read(body["objectFrom"])


def _subresource_faults(body: JsonObject, objects: Iterable[JsonObject]) -> Iterator[Fault]:
    subresource = body.get("subresource")
    if subresource is None:
        return
    kind = {"binding": "Binding", "eviction": "Eviction"}.get(subresource)
    for obj in objects:
        if kind is not None and obj["kind"] != kind:
            yield Fault(("object",), f"the subresource {subresource} takes a {kind}")
        metadata = obj.get("metadata")
        if not isinstance(metadata, Mapping) or not metadata.get("name"):
            yield Fault(("object",), "needs metadata.name: the object that is written to")
        if subresource == "scale":
            yield from _scale_faults(obj)


def _scale_faults(obj: JsonObject) -> Iterator[Fault]:
    """The number must be there: to scale to nothing by a typo would be a wrong answer."""
    spec = obj.get("spec")
    given = spec if isinstance(spec, Mapping) else {}
    replicas = given.get("replicas")
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        yield Fault(("object", "spec"), "the subresource scale needs replicas, a number")
    for name in sorted(map(str, given)):
        if name != "replicas":
            why = f"the subresource scale writes replicas alone, not {name}"
            yield Fault(("object", "spec", name), why)


def _patch_faults(body: JsonObject, folder: ScenarioFolder | None) -> Iterator[Fault]:
    del folder
    yield from _target_faults(body)
    yield from _option_faults(body, "patchOptions")
    try:
        given = body.get("patchType", body.get("PatchType"))
        patch_type = PatchType.parse(given) if given else None
        check_form(decode_patch(body["patch"]), patch_type)
    except ValueError as error:
        yield Fault(("patchType" if "patchType" in body else "PatchType",), str(error))
    except BadRequestError as error:
        yield Fault(("patch",), error.message)


def _delete_faults(body: JsonObject, folder: ScenarioFolder | None) -> Iterator[Fault]:
    del folder
    yield from _target_faults(body)
    yield from _option_faults(body, "deleteOptions")


def _done_faults(body: JsonObject, folder: ScenarioFolder | None) -> Iterator[Fault]:
    del folder
    if body.get("done") is False:
        yield Fault(("done",), "done must be true")


def _advance_faults(body: JsonObject, folder: ScenarioFolder | None) -> Iterator[Fault]:
    del folder
    duration = body["duration"]
    try:
        if parse_duration(duration) <= 0:
            yield Fault(("duration",), f"must be longer than zero, such as 5m, not {duration!r}")
    except ValueError as error:
        yield Fault(("duration",), str(error))


_CHECKS = {
    "createOperation": _create_faults,
    "patchOperation": _patch_faults,
    "deleteOperation": _delete_faults,
    "doneOperation": _done_faults,
    "advanceOperation": _advance_faults,
}


def _target_faults(body: JsonObject) -> Iterator[Fault]:
    if is_scenario(body["typeMeta"]):
        yield Fault(("typeMeta",), "a scenario cannot create, change or delete Scenarios")
    elif (*_group_kind(body["typeMeta"]), body["objectMeta"]["name"]) == DEFINITION:
        # With it all Scenarios would go, the one that is played among them.
        yield Fault(("objectMeta",), "a scenario cannot change or delete the kind Scenario")


def is_scenario(obj: Mapping[str, Any]) -> bool:
    return _group_kind(obj) == (SCENARIO.group, SCENARIO.kind)


def _group_kind(obj: Mapping[str, Any]) -> tuple[str, str]:
    return str(obj["apiVersion"]).partition("/")[0], obj["kind"]


def _option_faults(body: JsonObject, name: str) -> Iterator[Fault]:
    options = body.get(name) or {}
    if options.get("dryRun"):
        yield Fault((name, "dryRun"), "it makes no sense in a scenario: remove it")
    if why := manager_problem(options.get("fieldManager") or ""):
        yield Fault((name, "fieldManager"), why)
