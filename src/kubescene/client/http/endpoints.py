"""Where an API server is, and how it knows who is asking."""

import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from kubescene.errors import ConfigurationError
from kubescene.version import __version__

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An API server. ``url`` may have a path, such as ``/as/NAME``: all requests begin with it."""

    url: str
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    """Read for every request: whoever issued the token replaces it from time to time."""
    tls: ssl.SSLContext | None = None
    """For https; the default trusts what the machine trusts."""
    server_name: str = ""
    """The name that the server's certificate is for, if it is not that of the URL."""
    accept: str = "application/json"
    """The form in which answers are wanted."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise ConfigurationError(f"{self.url!r} is not a URL such as http://127.0.0.1:8001")
        if parts.username or parts.query or parts.fragment:
            raise ConfigurationError(
                f"the URL of {parts.hostname} carries a user, a query or a fragment: leave them out"
            )
        if not self.is_secure and (self.token or self.token_file):
            raise ConfigurationError(
                f"a token for {self.url} would be sent in clear: use https, or no token"
            )

    @property
    def is_secure(self) -> bool:
        return self.url.lower().startswith("https:")

    @property
    def prefix(self) -> str:
        """The path that every request begins with."""
        return urlsplit(self.url).path.rstrip("/")

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]

    def headers(self) -> dict[str, str]:
        """What every request carries."""
        headers = {
            "Host": urlsplit(self.url).netloc,
            "User-Agent": f"kubescene/{__version__}",
            "Accept": self.accept,
        }
        if token := self._current_token():
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def connect(self, timeout_s: float) -> socket.socket:
        """A new connection; raises OSError."""
        host, port = self.address
        connection = socket.create_connection((host, port), timeout=timeout_s)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self.is_secure:
                return connection
            context = self.tls or ssl.create_default_context()
            return context.wrap_socket(connection, server_hostname=self.server_name or host)
        except BaseException:
            connection.close()
            raise

    def _current_token(self) -> str:
        token = self.token
        if self.token_file is not None:
            try:
                token = self.token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigurationError(
                    f"the token of {self.url} cannot be read from {self.token_file}: {error}"
                ) from None
        if not (token.isascii() and (token.isprintable())):
            raise ConfigurationError(f"the token of {self.url} is not plain text")
        return token
