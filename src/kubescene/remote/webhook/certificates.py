"""The certificate of the webhook: an API server calls nobody without TLS.

It certifies itself: the registration hands it to the API server as the one to trust, and it lives
as long as the command.
"""

import ssl
import tempfile
from pathlib import Path
from typing import NamedTuple

from kubescene.certificates import OpenSsl
from kubescene.errors import ConfigurationError


class Certificate(NamedTuple):
    """``bundle`` is what the API server trusts, as PEM."""

    tls: ssl.SSLContext
    bundle: bytes


def make_certificate(host: str) -> Certificate:
    """A certificate for the address at which the API server finds the webhook."""
    made = OpenSsl("give --webhook-cert and --webhook-key").self_signed("kubescene-webhook", [host])
    with tempfile.TemporaryDirectory(prefix="kubescene-webhook-") as folder:
        certificate, key = Path(folder) / "webhook.crt", Path(folder) / "webhook.key"
        certificate.write_bytes(made.certificate)
        key.write_bytes(made.key)
        return read_certificate(certificate, key)


def read_certificate(certificate: Path, key: Path) -> Certificate:
    """A certificate that was made elsewhere; its file holds the chain up to whom to trust."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        tls.load_cert_chain(certificate, key)
        return Certificate(tls, certificate.read_bytes())
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the webhook cannot use the certificate {certificate} with the key {key}: {error}"
        ) from None
