"""The certificate of the webhook: an API server calls nobody without TLS.

Python's standard library cannot make a certificate, so the program ``openssl`` does, in a folder
that is removed at once; where there is none, a certificate has to be given. It certifies itself:
the registration hands it to the API server as the one to trust, and it lives as long as the
command.
"""

import ipaddress
import shutil
import ssl
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from kubescene.errors import ConfigurationError

DAYS = "365"
OPENSSL_TIMEOUT_S = 60


class Certificate(NamedTuple):
    """``bundle`` is what the API server trusts, as PEM."""

    tls: ssl.SSLContext
    bundle: bytes


def make_certificate(host: str) -> Certificate:
    """A certificate for the address at which the API server finds the webhook."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ConfigurationError(
            "the webhook needs a certificate, and there is no program openssl to make one: install "
            "it, or give --webhook-cert and --webhook-key"
        )
    with tempfile.TemporaryDirectory(prefix="kubescene-webhook-") as folder:
        certificate, key = Path(folder) / "webhook.crt", Path(folder) / "webhook.key"
        command = [openssl, *_request(host), "-keyout", str(key), "-out", str(certificate)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=OPENSSL_TIMEOUT_S
        )
        if done.returncode:
            raise ConfigurationError(
                f"openssl could not make a certificate for {host}: {done.stderr.strip()}; give "
                "--webhook-cert and --webhook-key"
            )
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


def _request(host: str) -> list[str]:
    kind = "IP" if _is_address(host) else "DNS"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=kubescene-webhook", "-addext", f"subjectAltName={kind}:{host}"]
    return ["req", "-x509", *key, "-days", DAYS, *names]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
