"""What is wrong with one operation, beyond its form: what a table of fields cannot say."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubescene.api.field_ownership.field_managers import manager_problem
from kubescene.api.kinds import SCENARIO
from kubescene.api.options import INDEX_MARK
from kubescene.api.patching.patches import PatchType
from kubescene.api.selectors import SelectorError
from kubescene.clock import parse_duration
from kubescene.errors import BadRequestError, ConfigurationError, ScenarioError
from kubescene.scenario.reading.arrival_plans import pod_of, read_plan
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.patch_text import check_form, decode_patch
from kubescene.scenario.reading.selections import read_share, selector_of
from kubescene.scenario.validation.faults import Fault
from kubescene.types import JsonObject

BODIES = {
    "createOperation": "Create",
    "patchOperation": "Patch",
    "deleteOperation": "Delete",
    "evictOperation": "Evict",
    "drainOperation": "Drain",
    "replayOperation": "Replay",
    "doneOperation": "Done",
    "advanceOperation": "Advance",
}
"""The field that makes an operation what it is, and its type in the KEP's drafts."""
DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition", f"scenarios.{SCENARIO.group}")
"""The object that makes Scenarios a kind: its group, kind and name."""
OF_SELECTORS = ("namespace", "limit", "share")
INDEX = INDEX_MARK.decode()
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
    yield from _arrival_faults(body)


def _arrival_faults(body: JsonObject) -> Iterator[Fault]:
    if body.get("arrivals") is None:
        return
    for field in ("objectFrom", "subresource"):
        if body.get(field) is not None:
            yield Fault((field,), "not beside arrivals: an object comes many times", of_name=True)
            return
    try:
        plan = read_plan(body)
    except ScenarioError as error:
        yield Fault(error.path, error.message)
        return
    obj = body["object"]
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if plan.most > 1 and isinstance(name, str) and INDEX not in name:
        message = "arrivals make several objects: put $(INDEX) into the name"
        yield Fault(("object", "metadata", "name"), message)
    if plan.said and pod_of(obj) is None:
        said = ", ".join(sorted(plan.said))
        message = f"arrivals say {said}, and there is no pod with a container to put that into"
        yield Fault(("object",), message)


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


def _evict_faults(body: JsonObject, folder: ScenarioFolder | None) -> Iterator[Fault]:
    del folder
    types = body.get("typeMeta")
    if types is not None and (types["apiVersion"], types["kind"]) != ("v1", "Pod"):
        what = f"{types['apiVersion']} {types['kind']}"
        yield Fault(("typeMeta",), f"only pods are evicted, v1 Pod, not {what}")
    yield from _choice_faults(body)
    yield from _option_faults(body, "deleteOptions")
    yield from _limit_faults(body)


def _drain_faults(body: JsonObject, folder: ScenarioFolder | None) -> Iterator[Fault]:
    del folder
    names = body.get("names")
    if (names is None) == (body.get("selector") is None):
        yield Fault((), "exactly one of names and selector must be set: which nodes to drain")
    elif names is not None:
        if not names:
            yield Fault(("names",), "needs the name of at least one node")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield Fault(("names",), f"{', '.join(twice)} is there twice")
    for field in ("selector", "podSelector"):
        yield from _selector_faults(body, field)
    yield from _limit_faults(body)


def _replay_faults(body: JsonObject, folder: ScenarioFolder | None) -> Iterator[Fault]:
    """All of it is read once: nothing is played of a history that is damaged anywhere."""
    if folder is None:
        told = "there is no folder to read from: only a file that is played has one"
        yield Fault(("file",), told)
        return
    from kubescene.histories.survey import survey  # most scenarios replay nothing

    try:
        survey(folder.file(body["file"]), body.get("format") or "")
    except ConfigurationError as error:
        yield Fault(("format",), str(error))
    except ScenarioError as error:
        yield Fault(("file",), str(error))


def _limit_faults(body: JsonObject) -> Iterator[Fault]:
    try:
        parse_duration(body.get("timeout") or "0s")
    except ValueError as error:
        yield Fault(("timeout",), str(error))


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
    "evictOperation": _evict_faults,
    "drainOperation": _drain_faults,
    "replayOperation": _replay_faults,
    "doneOperation": _done_faults,
    "advanceOperation": _advance_faults,
}


def _target_faults(body: JsonObject) -> Iterator[Fault]:
    yield from _choice_faults(body)
    yield from _number_faults(body)
    types, named = body["typeMeta"], (body.get("objectMeta") or {}).get("name")
    if is_scenario(types):
        yield Fault(("typeMeta",), "a scenario cannot create, change or delete Scenarios")
    elif _group_kind(types) == DEFINITION[:2] and named is None:
        yield Fault(("selector",), "name the definitions: the kind Scenario could be among them")
    elif (*_group_kind(types), named) == DEFINITION:
        # With it all Scenarios would go, the one that is played among them.
        yield Fault(("objectMeta",), "a scenario cannot change or delete the kind Scenario")


def _choice_faults(body: JsonObject) -> Iterator[Fault]:
    """One object by its name, or those of a selector."""
    has_selector = body.get("selector") is not None
    if body.get("objectMeta") is None and not has_selector:
        yield Fault((), "needs objectMeta, or a selector")
    elif body.get("objectMeta") is not None and has_selector:
        yield Fault(("selector",), "objectMeta is set, too: keep one of them", of_name=True)
    for field in () if has_selector else OF_SELECTORS:
        if body.get(field) is not None:
            hint = ": it belongs into objectMeta" if field == "namespace" else ""
            yield Fault((field,), f"only beside a selector{hint}", of_name=True)
    yield from _selector_faults(body, "selector")
    if body.get("share") is not None:
        try:
            read_share(body["share"])
        except ValueError as error:
            yield Fault(("share",), str(error))


def _selector_faults(body: JsonObject, field: str) -> Iterator[Fault]:
    """What cannot be a selector, or matches everything without saying so."""
    given = body.get(field)
    if given is None:
        return
    if all(part is None for part in given.values()):
        message = "it is empty and matches everything: say matchLabels: {} if that is meant"
        yield Fault((field,), message)
        return
    try:
        selector_of(given)
    except SelectorError as error:
        yield Fault((field,), str(error))


def _number_faults(body: JsonObject) -> Iterator[Fault]:
    if body.get("count") is None:
        return
    if body.get("selector") is not None:
        yield Fault(("count",), "not beside a selector: limit says how many", of_name=True)
    elif body["count"] > 1 and INDEX not in (body.get("objectMeta") or {}).get("name", INDEX):
        message = "count is about several objects: put $(INDEX) into the name"
        yield Fault(("objectMeta", "name"), message)


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
