"""What goes over the wire to an extender and back (X-2).

Names are those of Go's fields. Objects are sent as they are stored, without version and kind, as
kube-scheduler has them. Answers are read as Go reads them: names in any case, null for nothing,
what stands behind the first value ignored; what cannot be read is told in Go's words.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson

from kubescene.api.records import Record
from kubescene.scheduler.extenders.extenders import ExtenderAnswer, ExtenderCall, ExtenderVerb
from kubescene.types import JsonValue

TOO_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_BEGIN = b'"metadata":'
_OK = 200


def request_body(call: ExtenderCall) -> bytes:
    """The JSON that asks for this."""
    if call.verb is ExtenderVerb.BIND:
        return orjson.dumps(
            {
                "PodName": call.pod.name,
                "PodNamespace": call.pod.namespace,
                "PodUID": call.pod.uid,
                "Node": call.nodes[0],
            }
        )
    pod = b'{"Pod":' + _object(call.pod.record)
    if call.verb is ExtenderVerb.PREEMPT:
        return pod + _victims(call)
    if call.extender.node_cache_capable:
        return pod + b',"Nodes":null,"NodeNames":' + orjson.dumps(call.nodes) + b"}"
    items = b",".join(map(_object, call.records)) if call.records else b""
    listed = b"[" + items + b"]" if call.records else b"null"
    return pod + b',"Nodes":{"metadata":{},"items":' + listed + b'},"NodeNames":null}'


def _object(record: Record) -> bytes:
    """An object without ``apiVersion`` and ``kind``, which stand before its metadata."""
    data = record.data
    return b"{" + data[data.index(_BEGIN) :]


def _victims(call: ExtenderCall) -> bytes:
    nodes, violations = sorted(call.victims), call.pdb_violations
    if call.extender.node_cache_capable:
        known = {
            node: {
                "Pods": [{"UID": pod.uid} for pod in call.victims[node]],
                "NumPDBViolations": violations.get(node, 0),
            }
            for node in nodes
        }
        return b',"NodeNameToVictims":null,"NodeNameToMetaVictims":' + orjson.dumps(known) + b"}"
    told = [
        orjson.dumps(node)
        + b':{"Pods":['
        + b",".join(_object(pod.record) for pod in call.victims[node])
        + b'],"NumPDBViolations":%d}' % violations.get(node, 0)
        for node in nodes
    ]
    return b',"NodeNameToVictims":{' + b",".join(told) + b'},"NodeNameToMetaVictims":null}'


# -- answers -----------------------------------------------------------------------------------


class UnreadableError(ValueError):
    """An answer that is not what was asked for."""


def read_answer(call: ExtenderCall, status: int, body: bytes) -> ExtenderAnswer:
    """What an extender said; an answer that cannot be read is an error in it."""
    if status != _OK:
        address = call.extender.address
        verb, url = (address.paths[call.verb], address.url_for(call.verb)) if address else ("", "")
        text = f"failed {verb} with extender at URL {url}, code {status}"
        return ExtenderAnswer(error=text)
    try:
        return _READERS[call.verb](call, _first_value(body))
    except UnreadableError as error:
        return ExtenderAnswer(error=str(error))


def no_answer(call: ExtenderCall, why: str) -> ExtenderAnswer:
    """The answer of an extender that gave none."""
    address = call.extender.address
    url = call.extender.name if address is None else address.url_for(call.verb)
    return ExtenderAnswer(error=f'Post "{url}": {why}')


def _first_value(body: bytes) -> JsonValue:
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise UnreadableError("EOF")
    try:
        value: JsonValue = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        raise UnreadableError(_syntax(text)) from None
    return value


def _syntax(text: str) -> str:
    """Go names the character that it stumbles over; where it ends too early, just that."""
    if text[0] in '{["' or text[0].isdigit() or text[0] == "-":
        return "unexpected EOF"
    return f"invalid character '{text[0]}' looking for beginning of value"


def _filter(call: ExtenderCall, value: JsonValue) -> ExtenderAnswer:
    result = _Fields("ExtenderFilterResult", value)
    if error := result.text("Error"):
        return ExtenderAnswer(error=error)
    failed, unresolvable = result.texts("FailedNodes"), result.texts("FailedAndUnresolvableNodes")
    names = result.list("NodeNames", "[]string")
    nodes = result.object("Nodes", "v1.NodeList")
    bare = not (call.extender.node_cache_capable and names is not None)
    if not bare:
        passing = [str(name) for name in names or ()]
    elif nodes is not None:
        items = _Fields("NodeList", nodes).list("items", "[]v1.Node") or []
        passing = [_name_of(item) for item in items]
    else:
        passing = []
    return ExtenderAnswer(
        tuple(dict.fromkeys(passing)),
        bare=bare,
        failed=failed,
        unresolvable=unresolvable,
    )


def _name_of(node: JsonValue) -> str:
    return _Fields("ObjectMeta", _Fields("Node", node).object("metadata", "v1.Meta")).text("name")


def _prioritize(call: ExtenderCall, value: JsonValue) -> ExtenderAnswer:
    del call
    if value is None:
        return ExtenderAnswer()
    if not isinstance(value, list):
        raise UnreadableError(_mismatch(value, "value", "v1.HostPriorityList"))
    scores: dict[str, int] = {}
    for item in value:
        each = _Fields("HostPriority", item)
        host = each.text("Host")
        scores[host] = scores.get(host, 0) + each.number("Score")
    return ExtenderAnswer(scores=scores)


def _bind(call: ExtenderCall, value: JsonValue) -> ExtenderAnswer:
    del call
    return ExtenderAnswer(error=_Fields("ExtenderBindingResult", value).text("Error"))


def _preempt(call: ExtenderCall, value: JsonValue) -> ExtenderAnswer:
    del call
    result = _Fields("ExtenderPreemptionResult", value)
    nodes = result.object("NodeNameToMetaVictims", "map[string]*v1.MetaVictims") or {}
    victims, violations = {}, {}
    for node, item in nodes.items():
        each = _Fields("MetaVictims", item)
        pods = each.list("Pods", "[]*v1.MetaPod") or []
        victims[node] = tuple(_Fields("MetaPod", pod).text("UID") for pod in pods)
        violations[node] = each.number("NumPDBViolations")
    return ExtenderAnswer(victims=victims, pdb_violations=violations)


_READERS = {
    ExtenderVerb.FILTER: _filter,
    ExtenderVerb.PRIORITIZE: _prioritize,
    ExtenderVerb.BIND: _bind,
    ExtenderVerb.PREEMPT: _preempt,
}


class _Fields:
    """The members of an object whose Go type is known; case does not matter."""

    def __init__(self, kind: str, value: JsonValue) -> None:
        if value is not None and not isinstance(value, dict):
            raise UnreadableError(_mismatch(value, "value", f"v1.{kind}"))
        self._kind = kind
        self._members: dict[str, JsonValue] = {
            key.lower(): each for key, each in (value or {}).items()
        }

    def text(self, name: str) -> str:
        found = self._members.get(name.lower())
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self._wrong(name, found, "string")
        return found

    def number(self, name: str) -> int:
        found = self._members.get(name.lower())
        if found is None:
            return 0
        if not isinstance(found, int) or isinstance(found, bool) or not _fits(found):
            raise self._wrong(name, found, "int64")
        return found

    def list(self, name: str, go_type: str) -> list[Any] | None:
        found = self._members.get(name.lower())
        if found is not None and not isinstance(found, list):
            raise self._wrong(name, found, go_type)
        for each in found or () if go_type == "[]string" else ():
            if not isinstance(each, str):
                raise self._wrong(name, each, "string")
        return found

    def object(self, name: str, go_type: str) -> dict[str, Any] | None:
        found = self._members.get(name.lower())
        if found is not None and not isinstance(found, dict):
            raise self._wrong(name, found, go_type)
        return found

    def texts(self, name: str) -> Mapping[str, str]:
        found = self.object(name, "v1.FailedNodesMap") or {}
        for each in found.values():
            if each is not None and not isinstance(each, str):
                raise self._wrong(name, each, "string")
        return {key: each or "" for key, each in found.items()}

    def _wrong(self, name: str, value: JsonValue, go_type: str) -> UnreadableError:
        return UnreadableError(_mismatch(value, f"struct field {self._kind}.{name}", go_type))


def _mismatch(value: JsonValue, place: str, go_type: str) -> str:
    return f"json: cannot unmarshal {_go_kind(value)} into Go {place} of type {go_type}"


def _go_kind(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else f"number {value}"


def _fits(value: int) -> bool:
    return -(1 << 63) <= value < 1 << 63
