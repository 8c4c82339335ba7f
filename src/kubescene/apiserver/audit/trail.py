"""Events of the audit log, made of requests and of what they are answered."""

import logging

import orjson

from kubescene.actors import Actor
from kubescene.apiserver.access import Attributes, Permission
from kubescene.apiserver.audit.log import AuditLog
from kubescene.apiserver.audit.policy import (
    METADATA_OF_ALL,
    AuditLevel,
    AuditPolicy,
    AuditStage,
    AuditVerdict,
)
from kubescene.apiserver.bodies import decode_body, decode_yaml
from kubescene.apiserver.kubernetes.paths import asked_of
from kubescene.apiserver.negotiation import JSON, YAML
from kubescene.apiserver.requests import Message, Request
from kubescene.apiserver.responses import Response
from kubescene.clock import WallClock, format_micro_time
from kubescene.clock.randomness import unguessable
from kubescene.errors import ApiError
from kubescene.types import JsonObject, JsonValue

HEADER = b"audit-id"
MOST = 10 * 1024 * 1024
"""Bytes of what was asked and answered in one event; more is left out, and the event says so."""
SHORT = 16 * 1024
"""Bytes of an answer that is looked at for the failure that it tells, though it stays out."""
LEFT_OUT: JsonObject = {}
"""Stands for an answer that is too large."""
TRUNCATED = "audit.k8s.io/truncated"
FAILED = 400
LONG = ("attach", "exec", "log", "portforward", "proxy")
"""Subresources that may be answered for long, as a watch is."""
NOBODY = Actor("")
"""Somebody whose credentials nobody knows."""

_log = logging.getLogger(__name__)


class AuditTrail:
    """Tells of the requests that a policy names. On the event loop."""

    def __init__(self, log: AuditLog, policy: AuditPolicy = METADATA_OF_ALL) -> None:
        self._log = log
        self._policy = policy
        self._open: dict[Request, AuditedRequest] = {}
        self._is_failing = False
        self._clock = WallClock()

    def begin(self, request: Request, actor: Actor) -> None:
        """It is known who asks for what."""
        verb, asked = asked_of(request)
        verdict = self._policy.verdict(actor.name, actor.groups, verb, asked)
        if verdict.level is not AuditLevel.NONE:
            self._open[request] = AuditedRequest(self, request, actor, verb, asked, verdict)

    def impersonated(self, request: Request) -> None:
        """It is known for whom: for the request's actor."""
        if request in self._open:
            self._open[request].speaks_for = request.actor

    def permitted(self, request: Request, permission: Permission) -> None:
        if request in self._open:
            self._open[request].permission = permission

    def complete(self, request: Request, response: Response | None) -> None:
        """It was answered, by this or by what its handler has sent itself."""
        if request in self._open:
            self._open.pop(request).complete(response)

    def forget(self, request: Request) -> None:
        """Nobody waits for an answer any more, if there was none."""
        self._open.pop(request, None)

    def write(self, event: JsonObject) -> None:
        """A log that cannot be written keeps nobody from anything, as in kube-apiserver."""
        try:
            self._log.write(event)
        except OSError as error:
            if not self._is_failing:
                _log.error("the audit log cannot be written, events are lost: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False

    def now(self) -> str:
        return format_micro_time(self._clock.now())

    def close(self) -> None:
        self._log.close()


class AuditedRequest:
    """One request from the time it is understood until it is answered."""

    def __init__(
        self,
        trail: AuditTrail,
        request: Request,
        actor: Actor,
        verb: str,
        target: Attributes,
        verdict: AuditVerdict,
    ) -> None:
        self._trail = trail
        self._request = request
        self._actor = actor
        self._verb = verb
        self._target = target
        self._is_long = verb == "watch" or target.subresource in LONG
        self._is_started = False
        self._verdict = verdict
        self.id = request.header(HEADER) or _random_uuid()
        self._received = trail.now()
        self._status = 200
        self._send = request.send
        self.permission: Permission | None = None
        """What authorization decided."""
        self.speaks_for: Actor | None = None
        """Who is impersonated."""
        request.send = self._watched
        self.tell(AuditStage.RECEIVED)

    async def _watched(self, message: Message) -> None:
        """Everything that is sent goes through here: the answer says by which id it is told of."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message["headers"], (HEADER, self.id.encode())]
        await self._send(message)
        if self._is_long and not self._is_started and self._status < FAILED:
            self._is_started = True
            self.tell(AuditStage.STARTED, {"code": self._status})

    def complete(self, response: Response | None) -> None:
        """The answer is out; None if its handler has sent it piece by piece."""
        if response is None:
            self.tell(AuditStage.COMPLETE, {"code": self._status})
            return
        tells = self._verdict.level.tells_response
        answer = _answer(response) if len(response.body) <= (MOST if tells else SHORT) else LEFT_OUT
        status: JsonObject = {"code": response.status}
        if isinstance(answer, dict) and answer.get("kind") == "Status":
            status = {**_status(answer), "code": response.status}
        if self._is_long and not self._is_started:
            self.tell(AuditStage.STARTED, status)
        self.tell(AuditStage.COMPLETE, status, answer)

    def tell(
        self, stage: AuditStage, status: JsonObject | None = None, answer: JsonValue = None
    ) -> None:
        """An event, unless the policy omits this stage."""
        if stage in self._verdict.omitted:
            return
        request = self._request
        event: JsonObject = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": self._verdict.level.value,
            "auditID": self.id,
            "stage": stage.value,
            "requestURI": _uri(request),
            "verb": self._verb,
            "user": _user(self._actor),
        }
        if stage is not AuditStage.RECEIVED and self.speaks_for is not None:
            event["impersonatedUser"] = _user(self.speaks_for)
        event["sourceIPs"] = [(request.scope.get("client") or ("127.0.0.1", 0))[0]]
        event["userAgent"] = request.header(b"user-agent")
        annotations: JsonObject = {}
        if self._target.resource:
            asked = None if stage is AuditStage.RECEIVED else self._asked()
            event["objectRef"] = _reference(self._target, {} if self._verb == "patch" else asked)
            event |= self._bodies(asked, answer, annotations)
        if status is not None:
            event["responseStatus"] = {"metadata": {}, **status}
        event["requestReceivedTimestamp"] = self._received
        event["stageTimestamp"] = self._trail.now()
        if stage is not AuditStage.RECEIVED and self.permission is not None:
            annotations["authorization.k8s.io/decision"] = (
                "allow" if self.permission.is_given else "forbid"
            )
            annotations["authorization.k8s.io/reason"] = self.permission.reason
        if stage is not AuditStage.RECEIVED:
            annotations |= request.consultation.annotations
        if annotations:
            event["annotations"] = annotations
        self._trail.write(event)

    def _bodies(self, asked: JsonValue, answer: JsonValue, annotations: JsonObject) -> JsonObject:
        """What was asked and answered, as far as the level tells it and it is not too large."""
        level = self._verdict.level
        told = {
            "requestObject": asked if level.tells_request else None,
            "responseObject": answer if level.tells_response else None,
        }
        if told["responseObject"] is LEFT_OUT:
            annotations[TRUNCATED] = "true"
            return {}
        told = {name: each for name, each in told.items() if each is not None}
        if self._verdict.without_managed_fields:
            told = {name: _without_managed_fields(each) for name, each in told.items()}
        if told and sum(len(orjson.dumps(each)) for each in told.values()) > MOST:
            annotations[TRUNCATED] = "true"
            return {}
        return told

    def _asked(self) -> JsonValue:
        """The body of the request, as far as it was read and if it can be understood."""
        body, content_type = self._request.body_read, self._request.header(b"content-type")
        if not body:
            return None
        try:
            if self._verb == "patch":
                return decode_yaml(body).value if "yaml" in content_type else orjson.loads(body)
            return decode_body(body, content_type).value
        except (ApiError, orjson.JSONDecodeError):
            return None


def _reference(target: Attributes, asked: JsonValue) -> JsonObject:
    """What is asked for; a create says by its object what the path leaves out."""
    metadata = asked.get("metadata") if isinstance(asked, dict) else None
    said: JsonObject = metadata if isinstance(metadata, dict) else {}
    named = {
        "resource": target.resource,
        "namespace": target.namespace or said.get("namespace"),
        "name": target.name or said.get("name"),
        "uid": said.get("uid"),
        "apiGroup": target.group,
        "apiVersion": target.version,
        "resourceVersion": said.get("resourceVersion"),
        "subresource": target.subresource,
    }
    return {name: each for name, each in named.items() if each and isinstance(each, str)}


def _user(actor: Actor) -> JsonObject:
    if not actor.name:
        return {}
    return {"username": actor.name, "groups": list(actor.groups)}


def _uri(request: Request) -> str:
    query: bytes = request.scope["query_string"]
    return request.path + (f"?{query.decode('latin-1')}" if query else "")


def _answer(response: Response) -> JsonValue:
    """The object that was sent, if it was one."""
    try:
        if response.media_type == JSON:
            return orjson.loads(response.body)
        if response.media_type == YAML:
            return decode_yaml(response.body).value
    except (ApiError, orjson.JSONDecodeError):
        return None
    return None


def _status(answer: JsonObject) -> JsonObject:
    """What a Status says of how it went."""
    return {
        name: answer[name]
        for name in ("status", "message", "reason", "details")
        if answer.get(name)
    }


def _without_managed_fields(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    items = value.get("items")
    if isinstance(items, list):
        value = {**value, "items": [_without_managed_fields(each) for each in items]}
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        kept = {name: each for name, each in metadata.items() if name != "managedFields"}
        value = {**value, "metadata": kept}
    return value


def _random_uuid() -> str:
    text = unguessable(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"
