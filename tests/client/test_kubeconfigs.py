"""Kubeconfigs: which server, which credentials, what is refused; and TLS for real."""

import base64
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from client.scripted import CORE, ScriptedServer, answer, config_map, event, listed, watch
from client.worlds import pump_until
from kubescene.actors import Actor
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient, read_kubeconfig
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.errors import ConfigurationError, UnreachableError

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
A = ObjectRef(CONFIG_MAP, "a", "default")


def written(path: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None) -> Path:
    """A kubeconfig file with one context."""
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    file = path / "config"
    file.write_text(yaml.safe_dump(document))
    return file


def test_our_own_kubeconfigs_are_understood(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(make_kubeconfig("http://127.0.0.1:8001", as_user="a b")))
    endpoint = read_kubeconfig(file)
    assert endpoint.address == ("127.0.0.1", 8001)
    assert endpoint.prefix == "/as/a%20b"
    assert "Authorization" not in endpoint.headers()


def test_the_file_is_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, {"server": "http://127.0.0.1:1"})
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert read_kubeconfig().address == ("127.0.0.1", 1)
    monkeypatch.setenv("KUBECONFIG", f"{file}:{file}")
    with pytest.raises(ConfigurationError, match="several files"):
        read_kubeconfig()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"\.kube/config cannot be read"):
        read_kubeconfig()


def test_tokens_come_in_line_or_from_a_file_that_may_change(tmp_path: Path) -> None:
    server = {"server": "https://127.0.0.1:1"}
    endpoint = read_kubeconfig(written(tmp_path, server, {"token": "t1"}))
    assert endpoint.headers()["Authorization"] == "Bearer t1"
    endpoint = read_kubeconfig(written(tmp_path, server, {"tokenFile": "token"}))
    for token in ("t2", "t3"):
        (tmp_path / "token").write_text(token + "\n")
        assert endpoint.headers()["Authorization"] == f"Bearer {token}"
    (tmp_path / "token").write_text("a\r\nX-Evil: b")
    with pytest.raises(ConfigurationError, match="not plain text"):
        endpoint.headers()
    (tmp_path / "token").unlink()
    with pytest.raises(ConfigurationError, match="cannot be read from"):
        endpoint.headers()


@pytest.mark.parametrize(
    ("cluster", "user", "why"),
    [
        ({}, {"exec": {"command": "aws"}}, "`exec`: it would run a command"),
        ({}, {"auth-provider": {"name": "gcp"}}, "`auth-provider`"),
        ({}, {"username": "admin"}, "`username`"),
        ({}, {"as": "root"}, "`as`: impersonation"),
        ({"proxy-url": "http://proxy"}, {}, "`proxy-url`"),
        ({"certificate-authority-data": "%%"}, {}, "is not base64"),
        ({"certificate-authority-data": "AAAA"}, {}, "certificates cannot be used"),
        ({"certificate-authority": "nowhere.pem"}, {}, "cannot be read"),
        ({}, {"client-certificate-data": "AAAA"}, "certificates cannot be used"),
        ({"server": "nonsense"}, {}, "not a URL"),
        ({"server": "http://127.0.0.1:1"}, {"token": "t"}, "in clear"),
    ],
)
def test_what_would_be_wrong_is_refused(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], why: str
) -> None:
    file = written(tmp_path, {"server": "https://127.0.0.1:1", **cluster}, user)
    with pytest.raises(ConfigurationError, match=why):
        read_kubeconfig(file)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a kubeconfig"),
        ("- a", "not a kubeconfig"),
        ("{", "not YAML"),
        ("kind: Config", "no current-context"),
        ("current-context: a", "no context named 'a'"),
        (
            "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]",
            "no cluster named 'b'",
        ),
    ],
)
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=why):
        read_kubeconfig(file)


def test_another_context_can_be_named(tmp_path: Path) -> None:
    file = written(tmp_path, {"server": "http://127.0.0.1:1"})
    with pytest.raises(ConfigurationError, match="no context named 'elsewhere'"):
        read_kubeconfig(file, context="elsewhere")


# -- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, and its key beside it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=kubescene", "-keyout", "key.pem"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", "cert.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def secure(certificate: Path) -> Iterator[ScriptedServer]:
    """A server that demands a client certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    context.load_verify_locations(certificate / "cert.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server = ScriptedServer(context)
    server.add("/api/v1", answer(CORE))
    server.add("/api/v1/namespaces/default/configmaps/a", answer(config_map("a", 5)))
    yield server
    server.close()


def credentials(certificate: Path) -> dict[str, Any]:
    return {
        "client-certificate-data": base64.b64encode(
            (certificate / "cert.pem").read_bytes()
        ).decode(),
        "client-key": str(certificate / "key.pem"),
        "token": "t",
    }


def test_tls_with_authority_client_certificate_and_token(
    secure: ScriptedServer, certificate: Path, tmp_path: Path
) -> None:
    cluster = {"server": secure.url, "certificate-authority": str(certificate / "cert.pem")}
    file = written(tmp_path, cluster, credentials(certificate))
    client = HttpClient(read_kubeconfig(file), Actor("tester"))
    events = [event("ADDED", config_map(f"c{n}", 11 + n, x="x" * 30_000)) for n in range(40)]
    secure.add("/api/v1/configmaps", listed([], 10))
    secure.add("WATCH /api/v1/configmaps", watch(*events))
    heard: list[str] = []
    client.watch(CONFIG_MAP, lambda change: heard.append(change.record.name))
    pump_until(client, lambda: len(heard) == 40)
    assert client.get(A)["metadata"]["name"] == "a"
    assert secure.asked[0].headers["authorization"] == "Bearer t"
    client.close()


def test_a_server_that_nobody_vouches_for_is_refused(
    secure: ScriptedServer, certificate: Path, tmp_path: Path
) -> None:
    file = written(tmp_path, {"server": secure.url}, credentials(certificate))
    client = HttpClient(read_kubeconfig(file), Actor("tester"))
    with pytest.raises(UnreachableError, match="certificate verify failed"):
        client.get(A)
    assert secure.asked == []


def test_the_name_on_the_certificate_counts(
    secure: ScriptedServer, certificate: Path, tmp_path: Path
) -> None:
    authority = {"certificate-authority": str(certificate / "cert.pem")}
    cluster = {"server": secure.url, "tls-server-name": "elsewhere", **authority}
    client = HttpClient(
        read_kubeconfig(written(tmp_path, cluster, credentials(certificate))), Actor("tester")
    )
    with pytest.raises(UnreachableError, match="certificate verify failed"):
        client.get(A)


def test_verification_can_be_switched_off_on_purpose(
    secure: ScriptedServer, certificate: Path, tmp_path: Path
) -> None:
    cluster = {"server": secure.url, "insecure-skip-tls-verify": True}
    file = written(tmp_path, cluster, credentials(certificate))
    with pytest.raises(ConfigurationError, match="anybody could answer as that server"):
        read_kubeconfig(file)
    client = HttpClient(read_kubeconfig(file, allow_unverified=True), Actor("tester"))
    assert client.get(A)["metadata"]["name"] == "a"
    client.close()
