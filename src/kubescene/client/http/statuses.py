"""From a Kubernetes ``Status`` back to the error it was made from.

A reason without a class of its own becomes a plain `ApiError` with code, reason and message.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from kubescene import errors
from kubescene.errors import ApiError, StatusCause

_KNOWN: tuple[type[ApiError], ...] = (
    errors.BadRequestError,
    errors.UnauthorizedError,
    errors.ForbiddenError,
    errors.NotFoundError,
    errors.MethodNotAllowedError,
    errors.NotAcceptableError,
    errors.AlreadyExistsError,
    errors.ConflictError,
    errors.ExpiredError,
    errors.RequestTooLargeError,
    errors.UnsupportedMediaTypeError,
    errors.InvalidError,
    errors.TooManyRequestsError,
    errors.InternalError,
)
_BY_REASON = {known.reason: known for known in _KNOWN}
_BY_CODE = {known.code: known for known in _KNOWN if known is not errors.AlreadyExistsError}
_SHOWN = 300


def error_of_reply(code: int, body: bytes) -> ApiError:
    """The error in the body of a refusal, or one that says what came instead."""
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return error_of(status, code)
    text = " ".join(body[:_SHOWN].decode("utf-8", "replace").split())
    return error_of({"message": text or f"the server answered {code} and nothing else"}, code)


def error_of(status: Mapping[str, Any], code: int = 0) -> ApiError:
    """The error that a ``Status`` speaks of. ``code`` counts where the object has none."""
    code = _number(status.get("code")) or code or 500
    reason = str(status.get("reason") or "")
    details = status.get("details")
    details = details if isinstance(details, dict) else {}
    known = _BY_REASON.get(reason) if reason else _BY_CODE.get(code)
    if reason == "Gone":  # what Expired is called where nothing else is known of it
        known = errors.ExpiredError
    error = (known or ApiError)(
        str(status.get("message") or reason or f"the server answered {code}"),
        kind=str(details.get("kind") or ""),
        group=str(details.get("group") or ""),
        name=str(details.get("name") or ""),
        uid=str(details.get("uid") or ""),
        causes=_causes(details.get("causes")),
        retry_after_s=_number(details.get("retryAfterSeconds")),
    )
    if known is None:
        error.code, error.reason = code, reason or "Unknown"
    return error


def _causes(found: Any) -> tuple[StatusCause, ...]:
    causes = found if isinstance(found, list) else []
    return tuple(
        StatusCause(
            str(cause.get("reason") or ""),
            str(cause.get("message") or ""),
            str(cause.get("field") or ""),
        )
        for cause in causes
        if isinstance(cause, dict)
    )


def _number(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
