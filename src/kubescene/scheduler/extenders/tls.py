"""TLS towards extenders: whom to trust, and who we are."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from kubescene.scheduler.extenders.extenders import ExtenderTls


def tls_context(tls: ExtenderTls | None) -> ssl.SSLContext:
    """How connections to one extender are secured; raises OSError for files of no use."""
    if tls is None:
        return ssl.create_default_context()
    context = ssl.create_default_context(
        cafile=(tls.ca_file or None) if not tls.ca_data else None,
        cadata=tls.ca_data.decode("ascii", "replace") if tls.ca_data else None,
    )
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_data or tls.cert_file:
        with (
            _as_file(tls.cert_data, tls.cert_file) as cert,
            _as_file(tls.key_data, tls.key_file) as key,
        ):
            context.load_cert_chain(cert, key or None)
    return context


@contextmanager
def _as_file(data: bytes, path: str) -> Iterator[str]:
    """OpenSSL reads certificates and keys from files only."""
    if not data:
        yield path
        return
    handle, name = tempfile.mkstemp(prefix="kubescene-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield name
    finally:
        os.unlink(name)
