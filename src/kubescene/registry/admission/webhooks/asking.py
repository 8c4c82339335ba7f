"""The two plugins that ask webhooks: one after the other if they may change the object, all at
once if they only check it.

As in kube-apiserver v1.36. Configurations are asked in the order of their names, and the webhooks
of one in theirs; of several that refuse at once, the first speaks (there it is that of chance).
"""

import base64
from collections.abc import Iterator, Sequence

import orjson
from msgspec import Struct

from kubescene.api.consultations import WebhookAddress, WebhookAnswer, WebhookCall
from kubescene.api.patching.patches import json_patch
from kubescene.api.scheme import GroupResource
from kubescene.errors import ApiError
from kubescene.registry import decoding
from kubescene.registry.admission.chain import AdmissionRequest, Reinvocation
from kubescene.registry.admission.policies.evaluating import FailedExpressionError
from kubescene.registry.admission.policies.hooks import (
    Hook,
    hook_of,
    meets_conditions,
    names_for,
)
from kubescene.registry.admission.policies.matching import (
    AdmissionSubject,
    Matched,
    Surroundings,
    has_labels,
    is_in_namespace,
    match_rules,
)
from kubescene.registry.admission.webhooks.callers import GROUP, MUTATING, VALIDATING, WebhookCaller
from kubescene.registry.admission.webhooks.reviews import (
    FailedCallError,
    ReviewVerdict,
    internal,
    key_of,
    operations_of,
    review_of,
    verdict_of,
)
from kubescene.registry.preconditions import overtaken
from kubescene.types import JsonObject

DOMAIN = "webhook.admission.k8s.io"


class ConfiguredWebhook(Struct, frozen=True):
    """One webhook of one configuration."""

    uid: str
    configuration: str
    name: str
    spec: JsonObject
    address: WebhookAddress
    hook: Hook
    """Its match conditions."""

    @property
    def fails(self) -> bool:
        return bool(self.spec.get("failurePolicy") != "Ignore")


class _Plugin:
    """What both have in common."""

    resource: GroupResource
    is_mutating: bool

    def __init__(self, where: Surroundings, caller: WebhookCaller) -> None:
        self._where = where
        self._caller = caller
        self._webhooks: tuple[ConfiguredWebhook, ...] | None = None

    def _configured(self) -> tuple[ConfiguredWebhook, ...]:
        if self._webhooks is None:
            store = self._where.store
            records = sorted(store.list(self.resource), key=lambda it: it.name)
            self._webhooks = tuple(
                each
                for record in records
                for each in _webhooks_of(record.name, store.decoded(record))
            )
        return self._webhooks

    def _is_silent(self, request: AdmissionRequest) -> bool:
        """Whether nobody is asked: about webhooks and policies, and while the world is lent."""
        return (
            request.options.is_admitted
            or request.resource_type.gvk.group == GROUP
            or not self._caller.is_open
        )

    def _matched(
        self, webhook: ConfiguredWebhook, request: AdmissionRequest, subject: AdmissionSubject
    ) -> Matched | None:
        """In which version a webhook is asked about a request; None if it is not."""
        spec, where = webhook.spec, self._where
        if not is_in_namespace(spec.get("namespaceSelector"), subject, where):
            return None
        if not has_labels(spec.get("objectSelector"), subject):
            return None
        is_exact = spec.get("matchPolicy") == "Exact"
        matched = match_rules(spec.get("rules") or (), subject, where, is_exact)
        if matched is None or not webhook.hook.conditions:
            return matched
        try:
            meets = meets_conditions(
                webhook.hook, names_for(request, subject, matched, None, where)
            )
        except FailedExpressionError as error:
            refusal = request.forbidden(str(error))
            refusal.is_by_policy = True
            raise refusal from None
        return matched if meets else None

    def _call(
        self,
        webhook: ConfiguredWebhook,
        request: AdmissionRequest,
        subject: AdmissionSubject,
        matched: Matched,
        turn: str,
    ) -> WebhookCall:
        spec = webhook.spec
        body = review_of(request, subject, matched, spec["admissionReviewVersions"], self._where)
        key = webhook.uid.encode() + key_of(body)
        timeout_s, name = spec.get("timeoutSeconds") or 10, webhook.name
        return WebhookCall(name, webhook.address, timeout_s, body, key, f"{webhook.uid} {turn}")

    def _answers(
        self, calls: Sequence[WebhookCall], request: AdmissionRequest
    ) -> list[WebhookAnswer]:
        consultation = request.options.consultation
        if consultation is None:
            return self._caller.ask(calls)
        for each in calls:
            if each.key not in consultation.answers and consultation.is_tired_of(each):
                raise overtaken(request.resource_type, request.name)
        return consultation.find(calls)

    def _verdict(
        self,
        webhook: ConfiguredWebhook,
        call: WebhookCall,
        answer: WebhookAnswer,
        request: AdmissionRequest,
        place: str,
    ) -> ReviewVerdict | None:
        """What a webhook says; None if it says nothing and that does not matter.

        ``place`` is the round and the number by which an audit log knows it.
        """
        version = call.body["apiVersion"].rpartition("/")[2]
        try:
            verdict = verdict_of(answer, webhook.name, version, is_mutating=self.is_mutating)
        except FailedCallError as error:
            _failed(webhook, error)
            what = "mutation" if self.is_mutating else "validating"
            request.annotate({f"failed-open.{what}.{DOMAIN}/{place}": webhook.name})
            return None
        for warning in verdict.warnings:
            request.warn(warning)
        request.annotate(verdict.annotations)
        return verdict


def _failed(webhook: ConfiguredWebhook, error: FailedCallError) -> None:
    """Nobody has answered: that refuses the request unless the webhook may be ignored."""
    if webhook.fails:
        raise internal(f'failed calling webhook "{webhook.name}": {error}')


class MutatingWebhooks(_Plugin):
    """Asks those that may change the object, one after the other."""

    name = "MutatingAdmissionWebhook"
    resource = MUTATING
    is_mutating = True
    reinvokes = True

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if self._is_silent(request):
            return request.obj
        again = request.reinvocation
        assert again is not None
        turns = _Turns(again, self.name)
        if again.is_second and again.outputs.get(self.name) is not request.obj:
            turns.require()
        for index, webhook in enumerate(self._configured()):
            subject = AdmissionSubject.of(request)
            matched = self._matched(webhook, request, subject)
            if matched is None or (again.is_second and not turns.is_due(webhook.uid)):
                continue
            place = f"round_{int(again.is_second)}_index_{index}"
            changed = self._invoked(webhook, request, subject, matched, place)
            request.annotate({f"mutation.{DOMAIN}/{place}": _outcome(webhook, changed, request)})
            if changed is not request.obj:
                request = request.with_object(changed)
                turns.require()
                again.is_due = True
            if webhook.spec.get("reinvocationPolicy") == "IfNeeded":
                turns.invoked(webhook.uid)
        again.outputs[self.name] = request.obj
        return request.obj

    def _invoked(
        self,
        webhook: ConfiguredWebhook,
        request: AdmissionRequest,
        subject: AdmissionSubject,
        matched: Matched,
        place: str,
    ) -> JsonObject:
        """The object as a webhook leaves it."""
        is_second = request.reinvocation is not None and request.reinvocation.is_second
        try:
            call = self._call(webhook, request, subject, matched, f"mutating {is_second}")
        except FailedCallError as error:
            _failed(webhook, error)
            return request.obj
        answer = self._answers([call], request)[0]
        verdict = self._verdict(webhook, call, answer, request, place)
        if verdict is None:
            return request.obj
        if verdict.refusal is not None:
            raise verdict.refusal
        try:
            operations = operations_of(verdict)
        except FailedCallError as error:
            _failed(webhook, error)
            operations = []
        if not operations:
            return request.obj
        shown = call.body["request"]["object"]
        if shown is None:
            raise internal(
                f'admission webhook "{webhook.name}" attempted to modify the object, which is not '
                "supported for this operation"
            )
        try:
            new = json_patch(shown, operations)
        except ApiError as error:
            raise internal(error.message) from None
        if new == shown or not isinstance(new, dict):
            return request.obj
        return self._accepted(new, matched, request)

    def _accepted(self, new: JsonObject, matched: Matched, request: AdmissionRequest) -> JsonObject:
        """What was patched, with defaults, in the version in which the request goes on."""
        where, kind = self._where, matched.resource_type
        if matched.kind != kind.gvk:
            return new  # the body of a subresource
        new = decoding.accepted(new, kind, where.custom)
        stored = request.resource_type
        if kind.custom and kind is not stored:
            return where.custom.converted(new, stored.gvk)
        return new


def _outcome(webhook: ConfiguredWebhook, changed: JsonObject, request: AdmissionRequest) -> str:
    """What an audit log is told of a webhook that may change the object."""
    told = {
        "configuration": webhook.configuration,
        "webhook": webhook.name,
        "mutated": changed is not request.obj,
    }
    return orjson.dumps(told).decode()


class _Turns:
    """Who is asked a second time: those who said so, and were asked before somebody's change."""

    def __init__(self, again: Reinvocation, plugin: str) -> None:
        self._again = again
        self._before = (plugin, "before")
        self._due = (plugin, "due")

    def require(self) -> None:
        """The object has changed since those of before have seen it."""
        invoked = self._again.invoked
        for key in [each for each in invoked if each[:2] == self._before]:
            invoked.discard(key)
            invoked.add((*self._due, key[2]))

    def invoked(self, uid: str) -> None:
        self._again.invoked.add((*self._before, uid))

    def is_due(self, uid: str) -> bool:
        return (*self._due, uid) in self._again.invoked


class ValidatingWebhooks(_Plugin):
    """Asks those that only check the object, all at once, about what would be stored."""

    name = "ValidatingAdmissionWebhook"
    resource = VALIDATING
    is_mutating = False

    def admit(self, request: AdmissionRequest) -> JsonObject:
        return request.obj

    def validate(self, request: AdmissionRequest) -> None:
        if self._is_silent(request):
            return
        subject = AdmissionSubject.of(request)
        asked = [*self._asked(request, subject)]
        answers = self._answers([call for _, call in asked], request)
        refusals: list[ApiError] = []
        for index, ((webhook, call), answer) in enumerate(zip(asked, answers, strict=True)):
            try:
                place = f"round_0_index_{index}"
                verdict = self._verdict(webhook, call, answer, request, place)
            except ApiError as error:
                refusals.append(error)
                continue
            if verdict is not None and verdict.refusal is not None:
                refusals.append(verdict.refusal)
        if refusals:
            raise refusals[0]

    def _asked(
        self, request: AdmissionRequest, subject: AdmissionSubject
    ) -> Iterator[tuple[ConfiguredWebhook, WebhookCall]]:
        for webhook in self._configured():
            matched = self._matched(webhook, request, subject)
            if matched is None:
                continue
            try:
                yield webhook, self._call(webhook, request, subject, matched, "validating")
            except FailedCallError as error:
                _failed(webhook, error)


def _webhooks_of(configuration: str, obj: JsonObject) -> Iterator[ConfiguredWebhook]:
    seen: dict[str, int] = {}
    for spec in obj.get("webhooks") or ():
        name = spec["name"]
        number = seen[name] = seen.get(name, -1) + 1
        conditions = {
            "failurePolicy": spec.get("failurePolicy"),
            "matchConditions": spec.get("matchConditions") or (),
        }
        yield ConfiguredWebhook(
            f"{configuration}/{name}/{number}",
            configuration,
            name,
            spec,
            address_of(spec["clientConfig"]),
            hook_of(name, conditions, ()),
        )


def address_of(config: JsonObject) -> WebhookAddress:
    """Where a configuration says that a webhook is."""
    authorities = base64.b64decode(config.get("caBundle") or "")
    service = config.get("service")
    if service is None:
        return WebhookAddress(config.get("url") or "", authorities=authorities)
    place = (service["namespace"], service["name"], service.get("port") or 443)
    return WebhookAddress("", place, service.get("path") or "", authorities)
