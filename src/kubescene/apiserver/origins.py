"""Keeps web pages out: the one place that says which pages may ask this server for what.

Over plain http there is no authentication, so a page in a browser could write here: directly, or
under a name that its owner lets point to this machine. Browsers tell both: the first by ``Origin``,
the second by ``Host``. As ``kubectl proxy`` does, a server on loopback accepts only local names
there. One that others reach is called by many names; but a page may change something there only if
it was loaded from an address, from ``localhost``, from this machine's own name or from one that the
server has a certificate for, which nobody else can rebind.

Another page of this machine is local too. So what changes something, here or in a mounted
application, must come from a page of this very server or from no page at all; and a body must be
of a type that no page can send elsewhere without asking first.
"""

import ipaddress
import re
import socket
from collections.abc import Collection
from functools import lru_cache

from kubescene.apiserver.requests import Scope
from kubescene.errors import ForbiddenError, UnsupportedMediaTypeError

READING = ("GET", "HEAD", "OPTIONS")
SENT_UNASKED = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""Types of bodies that a page may send to any server: a form can."""
_AUTHORITY = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?"
)


class Origins:
    """The rule for one server.

    ``only_local``: nobody but this machine is served. ``names``: others that are its own, for it
    has a certificate for them.
    """

    def __init__(self, *, only_local: bool = True, names: Collection[str] = ()) -> None:
        self.only_local = only_local
        self._names = frozenset(each.lower() for each in names)

    def check(self, scope: Scope) -> None:
        """403 for a request that a page of another server made, if it could change something."""
        if self.only_local:
            check_local(scope)
        if scope["type"] == "websocket" or scope["method"] not in READING:
            self.check_page(scope)

    def check_page(self, scope: Scope) -> None:
        """403 unless the request comes from a page of this server, or from no page."""
        headers = dict(scope["headers"])
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site", b"none")
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if origin is not None and _authority(origin) != host:
            shown = origin.decode("latin-1")
            raise ForbiddenError(f"a page of {shown!r} may not change anything on {host!r}")
        if site not in (b"none", b"same-origin"):
            raise ForbiddenError(f"a page of another server may not change anything on {host!r}")
        if origin is not None and not self.only_local and not self._owns(host):
            raise ForbiddenError(
                f"a page may not change anything under the name {host!r}, which anybody could let "
                "point here: load it from an address, or from the name of this machine"
            )

    def _owns(self, authority: str) -> bool:
        return is_own(authority) or host_of(authority) in self._names

    def check_mounted(self, scope: Scope) -> None:
        """The same for a mounted application, whose bodies nobody else looks at."""
        self.check(scope)
        if scope["type"] == "http":
            check_form(scope)


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
    named = False
    for name, value in scope["headers"]:
        if name in (b"host", b"origin"):
            named = named or name == b"host"
            if not is_local(value):
                raise not_local(name, value)
    if not named:
        raise not_local(b"host", b"")


def not_local(name: bytes, value: bytes) -> ForbiddenError:
    return ForbiddenError(
        f"the {name.decode()} {value.decode('latin-1')!r} is not local: only this machine "
        "is served, unless the server is started with --allow-remote"
    )


def _authority(origin: bytes) -> str:
    return origin.decode("latin-1").partition("://")[2].lower()


def host_of(authority: str) -> str:
    """The host of ``host:port``; empty if it is not written as one, whatever else it holds."""
    found = _AUTHORITY.fullmatch(authority)
    return "" if found is None else (found["six"] or found["name"]).lower()


@lru_cache(maxsize=256)
def is_local(value: bytes) -> bool:
    """Whether a ``Host`` or ``Origin`` names this machine."""
    text = value.decode("latin-1")
    return is_local_address(host_of(text.partition("://")[2] if "://" in text else text))


def is_local_address(host: str) -> bool:
    """Whether only this machine is reached there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def is_own(authority: str) -> bool:
    """Whether nobody can let another page have this name: an address, or this machine's own."""
    host = host_of(authority)
    own = socket.gethostname().lower()
    if host in ("localhost", own, own.partition(".")[0], f"{own}.local"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
