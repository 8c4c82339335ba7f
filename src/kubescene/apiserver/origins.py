"""Keeps web pages out of a server on loopback.

There is no authentication, so a page in a browser on the same machine could write to it:
directly, or under a name that its owner lets point to 127.0.0.1. Browsers tell both: the first by
``Origin``, the second by ``Host``. As ``kubectl proxy`` does, only local names are accepted there.
"""

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

from kubescene.apiserver.requests import Scope
from kubescene.errors import ForbiddenError


def check_local(scope: Scope) -> None:
    """403 unless the request was meant for this machine by somebody on it."""
    for name, value in scope["headers"]:
        if name in (b"host", b"origin") and not is_local(value):
            raise ForbiddenError(
                f"the {name.decode()} {value.decode('latin-1')!r} is not local: only this machine "
                "is served, unless the server is started with --allow-remote"
            )


@lru_cache(maxsize=256)
def is_local(value: bytes) -> bool:
    """Whether a ``Host`` or ``Origin`` names this machine."""
    text = value.decode("latin-1")
    try:
        host = urlsplit(text if "://" in text else f"//{text}").hostname
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
