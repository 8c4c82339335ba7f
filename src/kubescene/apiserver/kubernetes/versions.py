"""Resource versions in requests: which state a reader asks for, and whether that can be had."""

from enum import Enum

from kubescene.apiserver.requests import Request
from kubescene.errors import ApiError, BadRequestError, InvalidError, StatusCause

NOT_OLDER_THAN = "NotOlderThan"
EXACT = "Exact"


class TooLargeVersionError(ApiError):
    """A version that does not exist yet. The client is asked to come again."""

    code = 504
    reason = "Timeout"


class ReadAt(Enum):
    ANY = "any state"
    NEWEST = "the newest state"
    NOT_OLDER = "not older than"
    EXACT = "exactly"


def parse_version(text: str) -> int:
    """A resource version as a number; zero if it is empty."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise BadRequestError(f'invalid resource version "{text}"')
    return int(text)


def too_large(asked: int, current: int) -> TooLargeVersionError:
    return TooLargeVersionError(
        f"Too large resource version: {asked}, current: {current}",
        causes=(StatusCause("ResourceVersionTooLarge", "Too large resource version"),),
        retry_after_s=1,
    )


def read_at(request: Request, *, limited: bool) -> tuple[ReadAt, int]:
    """What a list asks for by ``resourceVersion`` and ``resourceVersionMatch``."""
    query = request.query
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    version = parse_version(text)
    check_match(text, match, is_continued=bool(query.get("continue")))
    if not text:
        return ReadAt.NEWEST, 0
    if match == EXACT or (limited and version and not match):
        return ReadAt.EXACT, version
    return (ReadAt.NOT_OLDER if version else ReadAt.ANY), version


def check_match(text: str, match: str, *, is_continued: bool) -> None:
    """422 for a match that says nothing."""
    if not match:
        return
    if not text:
        raise invalid_options(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
    if is_continued:
        raise invalid_options(
            "resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"
        )
    if match not in (EXACT, NOT_OLDER_THAN):
        raise InvalidError(
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: '
            f'"{match}": supported values: "{EXACT}", "{NOT_OLDER_THAN}", ""',
            group="meta.k8s.io",
            kind="ListOptions",
        )
    if match == EXACT and text == "0":
        raise invalid_options(
            "resourceVersionMatch",
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        )


def invalid_options(field: str, message: str) -> InvalidError:
    """What kube-apiserver says of list options that contradict each other."""
    return InvalidError(
        f'ListOptions.meta.k8s.io "" is invalid: {field}: Forbidden: {message}',
        group="meta.k8s.io",
        kind="ListOptions",
        causes=(StatusCause("FieldValueForbidden", f"Forbidden: {message}", field),),
    )
