"""Keeps web pages out of a server on loopback.

There is no authentication, so a page in a browser on the same machine could write to it:
directly, or under a name that its owner lets point to 127.0.0.1. Browsers tell both: the first by
``Origin``, the second by ``Host``. As ``kubectl proxy`` does, only local names are accepted there.

Another page of this machine is local too. So what changes something, here or in a mounted
application, must come from a page of this very server or from no page at all; and a body must be
of a type that no page can send elsewhere without asking first.
"""

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

from kubescene.apiserver.requests import Scope
from kubescene.errors import ForbiddenError, UnsupportedMediaTypeError

READING = ("GET", "HEAD", "OPTIONS")
SENT_UNASKED = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""Types of bodies that a page may send to any server: a form can."""


def check_sender(scope: Scope, *, only_local: bool) -> None:
    """403 for a request that a page of another server made, if it could change something."""
    if only_local:
        check_local(scope)
    if scope["type"] == "websocket" or scope["method"] not in READING:
        check_same_origin(scope)


def check_same_origin(scope: Scope) -> None:
    """403 unless the request comes from a page of this server, or from no page."""
    headers = dict(scope["headers"])
    origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site", b"none")
    host = headers.get(b"host", b"").decode("latin-1").lower()
    if origin is not None and _authority(origin) != host:
        shown = origin.decode("latin-1")
        raise ForbiddenError(f"a page of {shown!r} may not change anything on {host!r}")
    if site not in (b"none", b"same-origin"):
        raise ForbiddenError(f"a page of another server may not change anything on {host!r}")


def check_form(scope: Scope) -> None:
    """415 for a body that any page could have sent, unless a page of this server did."""
    headers = dict(scope["headers"])
    given = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    if scope["method"] in READING or b"origin" in headers or not has_body:
        return
    if given in SENT_UNASKED:
        raise UnsupportedMediaTypeError(
            f"a body of type {given!r} is only taken from a page of this server: "
            "send application/json, or an Origin"
        )


def check_local(scope: Scope) -> None:
    """403 unless the request was meant for this machine by somebody on it."""
    for name, value in scope["headers"]:
        if name in (b"host", b"origin") and not is_local(value):
            raise ForbiddenError(
                f"the {name.decode()} {value.decode('latin-1')!r} is not local: only this machine "
                "is served, unless the server is started with --allow-remote"
            )


@lru_cache(maxsize=256)
def _authority(origin: bytes) -> str:
    return urlsplit(origin.decode("latin-1")).netloc.lower()


@lru_cache(maxsize=256)
def is_local(value: bytes) -> bool:
    """Whether a ``Host`` or ``Origin`` names this machine."""
    text = value.decode("latin-1")
    try:
        host = urlsplit(text if "://" in text else f"//{text}").hostname
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
