"""The handshake of go-plugin: what a host puts into the environment, and the line it gets back.

The line is the first that a plugin prints: ``CORE|APP|NETWORK|ADDRESS|PROTOCOL|CERTIFICATE``, such
as ``1|1|unix|/tmp/plugin417312843|grpc|``.
"""

from typing import NamedTuple

CORE_VERSION = 1
APP_VERSION = 1
COOKIE_KEY = "SKENARIO_PLUGIN"
COOKIE_VALUE = "skplug"
SOCKET_DIRECTORY = "PLUGIN_UNIX_SOCKET_DIR"
VERSIONS = "PLUGIN_PROTOCOL_VERSIONS"
CLIENT_CERTIFICATE = "PLUGIN_CLIENT_CERT"
SERVICE = "plugin"
"""The name by which the health of a plugin is asked for."""

LONGEST_LINE = 4096
_CERTIFICATE = 50
"""A sixth part that is longer is a certificate."""


class HandshakeError(ValueError):
    """A line that is no handshake, or one that we cannot go along with."""


class Address(NamedTuple):
    """Where a plugin listens."""

    network: str
    address: str

    @property
    def target(self) -> str:
        """As gRPC writes it."""
        return f"unix:{self.address}" if self.network == "unix" else self.address


def environment(sockets: str) -> dict[str, str]:
    """What a plugin finds in its environment, beside what is there."""
    return {
        COOKIE_KEY: COOKIE_VALUE,
        VERSIONS: str(APP_VERSION),
        SOCKET_DIRECTORY: sockets,
        "PLUGIN_MIN_PORT": "10000",
        "PLUGIN_MAX_PORT": "25000",
    }


def line(address: Address) -> str:
    return f"{CORE_VERSION}|{APP_VERSION}|{address.network}|{address.address}|grpc|"


def parse(text: str) -> Address:
    """Where the plugin listens; raises `HandshakeError`."""
    parts = text.strip().split("|")
    if len(parts) < 4 or not parts[0].isdecimal() or not parts[1].isdecimal():
        raise HandshakeError(
            f"its first line is no handshake (1|1|unix|ADDRESS|grpc|) but {text[:200]!r}"
        )
    if int(parts[0]) != CORE_VERSION:
        raise HandshakeError(f"it speaks version {parts[0]} of go-plugin, not {CORE_VERSION}")
    if int(parts[1]) != APP_VERSION:
        raise HandshakeError(f"it speaks version {parts[1]} of the protocol, not {APP_VERSION}")
    if parts[2] not in {"unix", "tcp"} or not parts[3]:
        raise HandshakeError(f"it listens at {parts[2]} {parts[3]!r}, not at unix or tcp")
    protocol = parts[4] if len(parts) > 4 else "netrpc"
    if protocol != "grpc":
        raise HandshakeError(f"it speaks {protocol}, not grpc")
    if len(parts) > 5 and len(parts[5]) > _CERTIFICATE:
        raise HandshakeError("it wants TLS, which is not supported")
    return Address(parts[2], parts[3])
