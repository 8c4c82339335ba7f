"""What a server needs so that others may reach it: a certificate, and who is known by a token."""

import ipaddress
import socket
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kubescene.apiserver.access.identities import INSTEAD, IdentityFolder
from kubescene.apiserver.access.tokens import TokenFile
from kubescene.certificates import OpenSsl, is_address
from kubescene.errors import ConfigurationError

LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Security:
    """https with tokens. ``bundle`` is whom clients trust, ``names`` where they find the server."""

    tls: ssl.SSLContext
    bundle: bytes
    names: tuple[str, ...]
    identities: IdentityFolder
    tokens: TokenFile

    def introduce(self, url: str) -> Path:
        """The kubeconfig of the administrator, for the server at this address."""
        return self.identities.introduce(url, self.bundle, self.tokens)


@dataclass(frozen=True, slots=True)
class GivenCertificate:
    """A certificate with its chain, its key, and whom to trust: without it, what certifies it."""

    certificate: Path
    key: Path
    trusted: Path | None = None


def secured(
    folder: Path,
    host: str,
    names: Sequence[str] = (),
    given: GivenCertificate | None = None,
    client_ca: Path | None = None,
) -> Security:
    """The identities of a folder, and the certificate that is given, or one made for the host.

    One that is made is new at every start, signed by the authority of the folder: kubeconfigs stay
    as they are. Whoever shows a certificate of that authority, or of ``client_ca``, is its CN in
    the groups of its O. Raises `ConfigurationError`.
    """
    identities = IdentityFolder(folder)
    tokens = identities.prepare()
    called = names_of(host, names)
    if given is not None:
        bundle = read_trusted(given)
        tls = context_of(given.certificate, given.key)
        believe(tls, b"", client_ca)
        return Security(tls, bundle, called, identities, tokens)
    authority = identities.authority()
    made = OpenSsl(INSTEAD).signed(authority, "kubescene-server", called)
    with tempfile.TemporaryDirectory(prefix="kubescene-tls-") as name:
        pair = Path(name) / "pair"
        pair.write_bytes(made.certificate + made.key)
        tls = context_of(pair, pair)
    believe(tls, authority.certificate, client_ca)
    return Security(tls, authority.certificate, called, identities, tokens)


def believe(tls: ssl.SSLContext, authority: bytes, client_ca: Path | None) -> None:
    """Ask clients for a certificate of these; who has none may show a token."""
    try:
        given = () if client_ca is None else (client_ca.read_bytes(),)
        for each in (*filter(None, (authority,)), *given):
            # One by one: what stands beside a certificate and is none is not noticed.
            tls.load_verify_locations(cadata=each.decode("ascii"))
            tls.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{client_ca} holds no authority of clients: {error}") from None


def names_of(host: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Where clients find the server: under no address that means all of them."""
    own = (socket.gethostname(),) if is_wildcard(host) else (host,)
    return tuple(dict.fromkeys((*own, *names, *LOCAL)))


def is_wildcard(host: str) -> bool:
    """Whether a server there listens on all addresses of the machine."""
    return is_address(host) and ipaddress.ip_address(host).is_unspecified


def read_trusted(given: GivenCertificate) -> bytes:
    path = given.trusted or given.certificate
    try:
        bundle = path.read_bytes()
        ssl.create_default_context(cadata=bundle.decode("ascii"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} holds no certificate to trust: {error}") from None
    return bundle


def context_of(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 and later, for HTTP/1.1."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.set_alpn_protocols(["http/1.1"])
    try:
        tls.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the certificate {certificate} cannot be used with the key {key}: {error}"
        ) from None
    return tls
