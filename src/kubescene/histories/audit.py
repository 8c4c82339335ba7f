"""Audit logs of API servers (``audit.k8s.io/v1``): who asked for what, and what came of it.

What is taken are requests that were complete and accepted, at the level RequestResponse; deletions,
scales and bindings at lower ones, too, where what is told of them is enough. What the scheduler,
kubelets and the controllers of the controller manager asked for is theirs to do here.

There is no first state: an object that is changed without having been created was there before, and
is changed if it is there in the world that plays (`spec.simulation.snapshot`).
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import Scheme
from kubescene.errors import ApiError, SnapshotError
from kubescene.histories.history import (
    RecordedChange,
    RecordedEvent,
    RecordedHistory,
    checked_object,
    in_order,
    instant_of,
)
from kubescene.histories.lines import lines_of, value_of
from kubescene.types import JsonObject

AUDIT = "audit.k8s.io/"
ENVELOPED = 3
"""How deep in what a cloud wraps around it an event may lie."""
CONTROLLERS = re.compile(
    r"system:(kube-scheduler|kube-controller-manager|apiserver|node:.*"
    r"|serviceaccount:kube-system:.*-controller)"
)
"""Who does what somebody does here, too."""
NEVER = frozenset({"secrets", "tokenreviews", "events", "leases", "subjectaccessreviews"})
CHANGED = ("create", "update", "patch")
OK = range(200, 300)


class AuditReader:
    name = "audit"
    about = "audit logs of an API server, at the level RequestResponse"

    def detects(self, head: bytes) -> bool:
        first = head.lstrip().partition(b"\n")[0]
        return first.startswith(b"{") and AUDIT.encode() in first and b"auditID" in first

    def open(self, path: Path) -> RecordedHistory:
        history = RecordedHistory(self.name, 0, iter(()), iter(()))
        history.began_at = next((each[0] for each in _events(path)), 0)
        if not history.began_at:
            raise SnapshotError("there is no audit event in it", where=str(path))
        history.remarks.append(
            "an audit log has no first state: give one by a snapshot; changes of statuses, such as "
            "of nodes that fail, are not replayed from it"
        )
        history.changes = in_order(_Requests(history).changes(path))
        return history


class _Requests:
    """Knows the objects that were written, since a scale says little of what it scales."""

    def __init__(self, history: RecordedHistory) -> None:
        self._left_out = history.left_out
        self._known: dict[tuple[str, str, str], JsonObject] = {}

    def changes(self, path: Path) -> Iterator[RecordedChange]:
        for at, event, place in _events(path):
            if at < 0:
                continue
            why = _why_not(event)
            if why:
                self._left_out[why] += 1
                continue
            for kind, obj in self._written(event, place):
                is_partial = kind is RecordedEvent.DELETE
                yield RecordedChange(at, kind, checked_object(obj, place), place, is_partial)

    def _written(self, event: JsonObject, place: str) -> Iterator[tuple[RecordedEvent, JsonObject]]:
        ref, verb = event["objectRef"], str(event.get("verb"))
        named = _named(ref)
        if named is None:
            self._left_out[f"{ref.get('resource')}: nobody here knows the resource"] += 1
            return
        part = str(ref.get("subresource") or "")
        if verb in ("delete", "deletecollection"):
            yield from self._deleted(event, named, verb)
        elif part == "eviction":
            yield RecordedEvent.DELETE, named
        elif part == "binding":
            node = ((event.get("requestObject") or {}).get("target") or {}).get("name")
            if isinstance(node, str) and node:
                yield RecordedEvent.UPDATE, {**named, "spec": {"nodeName": node}}
            else:
                self._left_out["a binding that does not say where to"] += 1
        elif part == "scale":
            yield from self._scaled(event, named)
        elif part or verb not in CHANGED:
            self._left_out[f"{verb} {ref.get('resource')}/{part}"] += 1
        else:
            yield from self._changed(event, named, verb)

    def _changed(
        self, event: JsonObject, named: JsonObject, verb: str
    ) -> Iterator[tuple[RecordedEvent, JsonObject]]:
        answer, asked = event.get("responseObject"), event.get("requestObject")
        whole = answer if _is_object(answer, named) else None
        if whole is None and verb != "patch" and _is_object(asked, named):
            whole = asked
        if whole is None:
            told = "what a patch came to" if verb == "patch" else "the object"
            self._left_out[f"{verb}: {told} is not recorded at this level"] += 1
            return
        assert isinstance(whole, dict)
        obj = {**named, **whole, "metadata": {**named["metadata"], **whole["metadata"]}}
        if not obj["metadata"].get("name"):
            self._left_out[f"{verb}: the object has no name at this level"] += 1
            return
        self._known[_key(obj)] = obj
        yield RecordedEvent.ADD if verb == "create" else RecordedEvent.UPDATE, obj

    def _scaled(
        self, event: JsonObject, named: JsonObject
    ) -> Iterator[tuple[RecordedEvent, JsonObject]]:
        for told in (event.get("responseObject"), event.get("requestObject")):
            replicas = ((told or {}).get("spec") or {}).get("replicas") if _is_map(told) else None
            if isinstance(replicas, int):
                before = self._known.get(_key(named), named)
                spec = {**(before.get("spec") or {}), "replicas": replicas}
                obj = self._known[_key(named)] = {**before, "spec": spec}
                yield RecordedEvent.UPDATE, obj
                return
        self._left_out["a scale that does not say how many"] += 1

    def _deleted(
        self, event: JsonObject, named: JsonObject, verb: str
    ) -> Iterator[tuple[RecordedEvent, JsonObject]]:
        if verb == "delete":
            self._known.pop(_key(named), None)
            yield RecordedEvent.DELETE, named
            return
        answer = event.get("responseObject")
        items = answer.get("items") if isinstance(answer, dict) else None
        if not isinstance(items, list):
            self._left_out["deletecollection: what was deleted is not recorded"] += 1
            return
        for item in items:
            if isinstance(item, dict) and isinstance(item.get("metadata"), dict):
                yield RecordedEvent.DELETE, {**named, **item}


@cache
def _scheme() -> Scheme:
    return Scheme(builtin_scheme())


def _events(path: Path) -> Iterator[tuple[int, JsonObject, str]]:
    """Audit events with their instants, out of whatever they are wrapped in."""
    for line in lines_of(path):
        found = [*_inner(value_of(line), ENVELOPED)]
        if not found:
            raise SnapshotError("there is no audit event in this line", where=line.place)
        for event in found:
            time = event.get("stageTimestamp") or event.get("requestReceivedTimestamp")
            yield instant_of(time, line.place), event, line.place


def _inner(value: Any, depth: int) -> Iterator[JsonObject]:
    if isinstance(value, str) and depth and AUDIT in value:
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return
    if not isinstance(value, dict):
        return
    if str(value.get("apiVersion")).startswith(AUDIT) and value.get("kind") == "Event":
        yield value
    elif value.get("kind") == "EventList" and isinstance(value.get("items"), list):
        for each in value["items"]:
            if isinstance(each, dict):
                yield each
    elif depth:
        for part in value.values():
            yield from _inner(part, depth - 1)


def _why_not(event: JsonObject) -> str:
    """Why a request changes nothing here; empty if it may."""
    ref, verb = event.get("objectRef"), str(event.get("verb"))
    status, user = event.get("responseStatus"), event.get("user")
    if verb in ("get", "list", "watch"):
        return "it only reads"
    if event.get("stage") != "ResponseComplete":
        return "it was not complete"
    code = status.get("code") if isinstance(status, dict) else None
    if not isinstance(code, int) or code not in OK:
        return "it was refused"
    if "dryRun=All" in str(event.get("requestURI")):
        return "it was a dry run"
    if not isinstance(ref, dict) or not ref.get("resource"):
        return "it is about no object"
    if ref["resource"] in NEVER:
        return f"{ref['resource']} are never read"
    name = str(user.get("username")) if isinstance(user, dict) else ""
    if CONTROLLERS.fullmatch(name) and ref.get("subresource") != "binding":
        return "a controller asked for it, as it does here"
    return ""


def _named(ref: JsonObject) -> JsonObject | None:
    """The object that a request is about, by its name; None for a resource that is not known."""
    group, version = str(ref.get("apiGroup") or ""), str(ref.get("apiVersion") or "")
    try:
        found = _scheme().of_path(group, version, str(ref["resource"]))
    except ApiError:
        return None
    metadata = {part: ref[part] for part in ("name", "namespace") if ref.get(part)}
    return {"apiVersion": found.api_version, "kind": found.kind, "metadata": metadata}


def _key(obj: JsonObject) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return obj["kind"], str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _is_object(value: Any, named: JsonObject) -> bool:
    """Whether it is the whole object, and no Status or mark that it was too large."""
    return (
        isinstance(value, dict)
        and value.get("kind", named["kind"]) == named["kind"]
        and isinstance(value.get("metadata"), dict)
    )
