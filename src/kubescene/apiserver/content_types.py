"""Content types that a web page cannot send unasked, which guards paths without authentication."""

from kubescene.apiserver import bodies
from kubescene.apiserver.requests import Request


def checked_type(request: Request) -> str:
    """The type of the body; 415 unless it is JSON or YAML by name."""
    accepted = (*bodies.JSON_TYPES[1:], *bodies.YAML_TYPES)
    given = bodies.media_type(request.header(b"content-type"))
    if given not in accepted:
        raise bodies.unsupported(*accepted)
    return given
