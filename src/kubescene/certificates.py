"""Certificates, made by the program ``openssl``: Python's standard library cannot make one.

What openssl reads is written here, so that the settings of a machine change nothing.
"""

import ipaddress
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kubescene.clock.randomness import unguessable
from kubescene.errors import ConfigurationError

YEAR_DAYS = 365
AUTHORITY_DAYS = 10 * YEAR_DAYS
OPENSSL_TIMEOUT_S = 60
SERIAL_BYTES = 16

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_AUTHORITY = (
    "basicConstraints = critical, CA:TRUE",
    "keyUsage = critical, keyCertSign, cRLSign",
    "subjectKeyIdentifier = hash",
)
_CLIENT = (
    "basicConstraints = critical, CA:FALSE",
    "keyUsage = critical, digitalSignature",
    "extendedKeyUsage = clientAuth",
    "subjectKeyIdentifier = hash",
    "authorityKeyIdentifier = keyid",
)
_SUBJECT = re.compile(r"[A-Za-z0-9.:@_-]{1,64}")
_SERVER = (
    "basicConstraints = critical, CA:FALSE",
    "keyUsage = critical, digitalSignature",
    "extendedKeyUsage = serverAuth",
    "subjectKeyIdentifier = hash",
    "authorityKeyIdentifier = keyid",
)


class Pem(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class OpenSsl:
    """Makes certificates. ``instead``: what to do where there is no openssl, or it fails."""

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def self_signed(self, common_name: str, hosts: Sequence[str]) -> Pem:
        """For a server at these hosts; it certifies itself."""
        names = f"subjectAltName = {alternatives(hosts)}"
        own = ("basicConstraints = critical, CA:TRUE", "subjectKeyIdentifier = hash", names)
        return self._made(common_name, own, YEAR_DAYS)

    def authority(self, common_name: str) -> Pem:
        """One that signs others."""
        return self._made(common_name, _AUTHORITY, AUTHORITY_DAYS)

    def signed(self, authority: Pem, common_name: str, hosts: Sequence[str]) -> Pem:
        """For a server at these hosts, signed by an authority."""
        extensions = (*_SERVER, f"subjectAltName = {alternatives(hosts)}")
        return self._signed(authority, [f"CN = {common_name}"], extensions)

    def _signed(self, authority: Pem, subject: Sequence[str], extensions: Sequence[str]) -> Pem:
        with tempfile.TemporaryDirectory(prefix="kubescene-tls-") as name:
            folder = Path(name)
            config, key = _configured(folder, subject, extensions), folder / "key"
            by, by_key = folder / "by", folder / "by-key"
            by.write_bytes(authority.certificate)
            by_key.write_bytes(authority.key)
            request, made = folder / "request", folder / "made"
            new = ("-new", *_KEY, "-keyout", key, "-out", request)
            self._run("req", "-config", config, *new)
            signer = ("-CA", by, "-CAkey", by_key, "-set_serial", _serial())
            told = ("-days", YEAR_DAYS, "-extfile", config, "-extensions", "told")
            self._run("x509", "-req", "-in", request, *signer, *told, "-out", made)
            return Pem(made.read_bytes(), key.read_bytes())

    def client(self, authority: Pem, name: str, groups: Sequence[str]) -> Pem:
        """For a user with these groups, signed by an authority."""
        for each in (name, *groups):
            if not _SUBJECT.fullmatch(each):
                raise ConfigurationError(
                    f"{each!r} cannot stand in a certificate: use letters, digits and .:@_- , at "
                    "most 64 of them"
                )
        more = [f"{number}.O = {each}" for number, each in enumerate(groups)]
        return self._signed(authority, [f"CN = {name}", *more], _CLIENT)

    def _made(self, common_name: str, extensions: Sequence[str], days: int) -> Pem:
        with tempfile.TemporaryDirectory(prefix="kubescene-tls-") as name:
            folder = Path(name)
            config = _configured(folder, [f"CN = {common_name}"], extensions)
            key, made = folder / "key", folder / "made"
            how = ("-x509", *_KEY, "-days", days, "-extensions", "told")
            self._run("req", "-config", config, *how, "-keyout", key, "-out", made)
            return Pem(made.read_bytes(), key.read_bytes())

    def _run(self, *arguments: object) -> None:
        openssl = shutil.which("openssl")
        if openssl is None:
            raise ConfigurationError(
                "a certificate is needed, and there is no program openssl to make one: install it, "
                f"or {self._instead}"
            )
        done = subprocess.run(
            [openssl, *(str(each) for each in arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=OPENSSL_TIMEOUT_S,
        )
        if done.returncode:
            raise ConfigurationError(
                f"openssl could not make a certificate: {done.stderr.strip()}; {self._instead}"
            )


def alternatives(hosts: Sequence[str]) -> str:
    """The ``subjectAltName`` of a server that is found at these names and addresses."""
    return ",".join(f"{'IP' if is_address(host) else 'DNS'}:{checked(host)}" for host in hosts)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def checked(host: str) -> str:
    """A host as it may stand in a file that openssl reads."""
    if not host or not all(each.isalnum() or each in ".:-_*" for each in host):
        raise ConfigurationError(f"{host!r} is no name of a host that a certificate could be for")
    return host


def _configured(folder: Path, subject: Sequence[str], extensions: Sequence[str]) -> Path:
    config = folder / "config"
    lines = ["[req]", "prompt = no", "distinguished_name = name", "string_mask = utf8only"]
    lines += ["[name]", *subject, "[told]", *extensions, ""]
    config.write_text("\n".join(lines), encoding="utf-8")
    return config


def _serial() -> str:
    return "0x" + (b"\1" + unguessable(SERIAL_BYTES)).hex()
