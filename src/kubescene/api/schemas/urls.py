"""URLs as Go reads those of requests: absolute, or a path that begins with a slash."""

import re
from dataclasses import dataclass
from urllib.parse import unquote_plus

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.ASCII | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(
    r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:<>\"\[\]]|[^\x00-\x7f]|%25|%[89A-Fa-f][0-9A-Fa-f])*+"
)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_PLAIN_PATH = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*", re.ASCII)
"""What may stay in a path as it was written."""
_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~$&+,/:;=@")
"""Bytes of a path that are written as they are if another has to be escaped."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts that expressions may ask for; the path is escaped."""

    scheme: str = ""
    host: str = ""
    path: str = ""
    query: str = ""

    @property
    def hostname(self) -> str:
        name = self._name_and_port[0]
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name

    @property
    def port(self) -> str:
        return self._name_and_port[1]

    @property
    def _name_and_port(self) -> tuple[str, str]:
        name, colon, port = self.host.rpartition(":")
        return (name, port) if colon and _PORT.fullmatch(f":{port}") else (self.host, "")

    @property
    def queries(self) -> dict[str, list[str]]:
        """By name; a pair that cannot be read is left out."""
        found: dict[str, list[str]] = {}
        for pair in filter(None, self.query.split("&")):
            if ";" not in pair and not _STRAY_PERCENT.search(pair):
                name, _, value = pair.partition("=")
                found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
        return found


def parse_url(text: str) -> Url | None:
    """A URL, or None."""
    if not text or text.startswith(":") or _CONTROL.search(text):
        return None
    if text == "*":
        return Url(path="*")
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        return Url(scheme, query=query) if scheme else None
    host = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        user, at, host = authority.rpartition("@")
        if not _is_host(host) or (at and not _is_user(user)):
            return None
        rest = slash + path
    return None if _STRAY_PERCENT.search(rest) else Url(scheme, host, _escaped(rest), query)


def _is_host(host: str) -> bool:
    if host.startswith("["):
        _, closing, port = host.rpartition("]")
        if not closing:
            return False
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    return bool(_PORT.fullmatch(port) and _HOST.fullmatch(host))


def _is_user(user: str) -> bool:
    return bool(_USER.fullmatch(user)) and not _STRAY_PERCENT.search(user)


def _escaped(path: str) -> str:
    if _PLAIN_PATH.fullmatch(path):
        return path
    written = re.sub(rb"%([0-9A-Fa-f]{2})", _byte, path.encode("utf-8", "surrogatepass"))
    return "".join(chr(each) if each in _KEPT else f"%{each:02X}" for each in written)


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 16)])
