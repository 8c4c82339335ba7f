"""AdmissionReview: what a webhook is asked, and what its answer means.

As in kube-apiserver v1.36; the sentences are its own.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct

from kubescene.api.consultations import WebhookAnswer
from kubescene.api.text.encoding import encode
from kubescene.errors import ApiError, InternalError, StatusCause
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.admission.policies.hooks import described
from kubescene.registry.admission.policies.matching import AdmissionSubject, Matched, Surroundings
from kubescene.types import JsonObject

GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")
"""Those of AdmissionReview that are spoken here."""
_KNOWN = tuple(f"{GROUP}/{each}" for each in VERSIONS)
_LOWEST_REFUSAL = 400
_UNTIMELY = ("managedFields",)
_MADE_ANEW = ("managedFields", "creationTimestamp")


class FailedCallError(Exception):
    """A webhook has not answered, or not with what an answer has to be; says why."""


class ReviewVerdict(Struct, frozen=True):
    """What a webhook says. ``refusal`` is its no, as the client sees it."""

    refusal: ApiError | None = None
    patch: Any = None
    patch_type: str = ""
    warnings: tuple[str, ...] = ()
    annotations: Mapping[str, str] = {}


def review_of(
    request: AdmissionRequest,
    subject: AdmissionSubject,
    matched: Matched,
    versions: list[str],
    where: Surroundings,
) -> JsonObject:
    """The question about a request, in the first version that the webhook and we both speak."""
    version = next((each for each in versions if each in VERSIONS), "")
    if not version:
        raise FailedCallError(
            "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        )
    asked = described(request, subject, matched)
    asked["object"] = _placed(where.shown(subject.obj, matched.kind), subject)
    asked["oldObject"] = where.shown(subject.old, matched.kind)
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": asked}


def _placed(obj: JsonObject | None, subject: AdmissionSubject) -> JsonObject | None:
    """The object with the namespace of its request, which it does not have to name."""
    if obj is None or subject.is_of_namespace or not subject.namespace:
        return obj
    metadata = obj.get("metadata") or {}
    if metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": subject.namespace}}


def key_of(body: JsonObject) -> bytes:
    """The question without what differs each time that the same write is tried."""
    asked = body["request"]
    untimely = _MADE_ANEW if asked["operation"] == "CREATE" else _UNTIMELY
    new = asked["object"]
    if new is not None:
        metadata = new.get("metadata") or {}
        lasting = {name: each for name, each in metadata.items() if name not in untimely}
        new = {**new, "metadata": lasting}
    return encode({**body, "request": {**asked, "object": new}})


def verdict_of(
    answer: WebhookAnswer, webhook: str, version: str, *, is_mutating: bool
) -> ReviewVerdict:
    """What an answer means; raises if it is none."""
    if answer.error:
        raise FailedCallError(f"failed to call webhook: {answer.error}")
    document = answer.document
    kind, of = document.get("kind"), document.get("apiVersion")
    if kind and (kind != "AdmissionReview" or of not in _KNOWN):
        raise FailedCallError(
            f'failed to call webhook: no kind "{kind}" is registered for version "{of}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    try:
        response = _checked(document, answer.uid, version, is_mutating=is_mutating)
    except ValueError as fault:
        raise FailedCallError(f"received invalid webhook response: {fault}") from None
    warnings = tuple(map(str, response.get("warnings") or ()))
    annotations = {
        f"{webhook}/{key}": str(value)
        for key, value in (response.get("auditAnnotations") or {}).items()
    }
    if not response.get("allowed"):
        refusal = _refusal(webhook, response.get("status"))
        return ReviewVerdict(refusal, warnings=warnings, annotations=annotations)
    patch = response.get("patch")
    kind = response.get("patchType") or ("JSONPatch" if patch else "")
    return ReviewVerdict(None, patch, kind, warnings, annotations)


def _checked(document: JsonObject, uid: str, version: str, *, is_mutating: bool) -> JsonObject:
    """The response in a document."""
    response = document.get("response")
    if not isinstance(response, dict):
        raise ValueError("webhook response was absent")
    if version == "v1":
        _check_identity(document, response, uid)
        _check_patch(response, is_mutating=is_mutating)
    return response


def _check_identity(document: JsonObject, response: JsonObject, uid: str) -> None:
    if response.get("uid", "") != uid:
        raise ValueError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    expected = f"{GROUP}/v1, Kind=AdmissionReview"
    got = f"{document.get('apiVersion', '')}, Kind={document.get('kind', '')}"
    if got != expected:
        raise ValueError(f"expected webhook response of {expected}, got {got}")


def _check_patch(response: JsonObject, *, is_mutating: bool) -> None:
    patch, kind = response.get("patch"), response.get("patchType")
    if not is_mutating:
        if patch:
            raise ValueError("validating webhook may not return response.patch")
        if kind is not None:
            raise ValueError("validating webhook may not return response.patchType")
        return
    if patch and kind is None:
        raise ValueError("webhook returned response.patch but not response.patchType")
    if not patch and kind is not None:
        raise ValueError("webhook returned response.patchType but not response.patch")
    if patch and not kind:
        raise ValueError('webhook returned invalid response.patchType of ""')


def operations_of(verdict: ReviewVerdict) -> list[Any]:
    """The operations of the patch in an answer; none if there is none."""
    if not verdict.patch:
        return []
    try:
        data = base64.b64decode(verdict.patch, validate=True)
        operations = orjson.loads(data)
    except (binascii.Error, orjson.JSONDecodeError, TypeError) as error:
        why = as_go_says(data, error) if isinstance(error, orjson.JSONDecodeError) else str(error)
        raise FailedCallError(f"received undecodable patch in webhook response: {why}") from None
    if not isinstance(operations, list):
        raise FailedCallError(
            "received undecodable patch in webhook response: json: cannot unmarshal into Go value "
            "of type jsonpatch.Patch"
        )
    if operations and verdict.patch_type != "JSONPatch":
        raise FailedCallError(f'unsupported patch type "{verdict.patch_type}"')
    return operations


def as_go_says(data: bytes, error: orjson.JSONDecodeError) -> str:
    """What is wrong with a text that is no JSON."""
    text = data.decode(errors="replace")
    if error.pos >= len(text.rstrip()):
        return "unexpected end of JSON input"
    if not text[: error.pos].strip():
        return f"invalid character {text[error.pos]!r} looking for beginning of value"
    return str(error)


def _refusal(webhook: str, status: Any) -> ApiError:
    """A webhook's no, as the client is told."""
    given = status if isinstance(status, dict) else {}
    by = f'admission webhook "{webhook}" denied the request'
    if why := given.get("message") or given.get("reason"):
        message = f"{by}: {why}"
    else:
        message = f"{by} without explanation"
    details = given.get("details") or {}
    error = ApiError(
        message,
        **{name: str(details.get(name) or "") for name in ("name", "group", "kind", "uid")},
        causes=[
            StatusCause(
                str(each.get("reason") or ""),
                str(each.get("message") or ""),
                str(each.get("field") or ""),
            )
            for each in details.get("causes") or ()
        ],
        retry_after_s=int(details.get("retryAfterSeconds") or 0),
    )
    code = given.get("code")
    error.code = code if isinstance(code, int) and code >= _LOWEST_REFUSAL else _LOWEST_REFUSAL
    error.reason = str(given.get("reason") or "")
    error.is_by_policy = True
    return error


def internal(why: str) -> InternalError:
    """An error that is nobody's refusal, in the form in which kube-apiserver tells it."""
    error = InternalError(f"Internal error occurred: {why}", causes=(StatusCause("", why),))
    error.is_by_policy = True
    return error
