"""https with bearer tokens (`kubescene serve --tls`): who is known, and who is kept out."""

import base64
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from apiserver.http import PODS, Http, config_map, pod
from conformance.kubectl import MISSING, Kubectl, find_kubectls
from kubescene.actors import Actor
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.access.identities import ADMINISTRATOR, IdentityFolder
from kubescene.apiserver.access.security import GivenCertificate, Security, names_of, secured
from kubescene.apiserver.origins import Origins
from kubescene.apiserver.server import Server
from kubescene.certificates import OpenSsl, Pem
from kubescene.cli.app import app
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient, read_kubeconfig
from kubescene.clock import SECOND, VirtualClock
from kubescene.errors import ConfigurationError, ForbiddenError, UnauthorizedError
from stopping import Retire

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authentication.k8s.io/v1"
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
GUEST = "/guest/page"


class Https(Http):
    """The same over TLS, with a token or without."""

    def __init__(self, server: Server, security: Security, token: str = "") -> None:
        self.host, self.port = server.host, server.port
        trust = ssl.create_default_context(cadata=security.bundle.decode())
        self._connection = HTTPSConnection(self.host, self.port, timeout=120, context=trust)
        self._token = token

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        headers = dict(more.pop("headers", None) or {})
        if self._token:
            headers.setdefault("Authorization", f"Bearer {self._token}")
        return super().request(method, path, body, headers=headers, **more)


@pytest.fixture
def security(tmp_path: Path) -> Security:
    return secured(tmp_path / "identities", "127.0.0.1")


@pytest.fixture
def server(security: Security, retire: Retire) -> Iterator[Server]:
    served = Server(port=0, security=security, rbac=True)
    served.start()
    security.introduce(served.url)
    yield served
    retire(served)


@pytest.fixture
def admin(server: Server, security: Security) -> Iterator[Https]:
    told = yaml.safe_load(security.identities.kubeconfig.read_text())
    with closing(Https(server, security, told["users"][0]["user"]["token"])) as client:
        yield client


@pytest.fixture
def nobody(server: Server, security: Security) -> Iterator[Https]:
    with closing(Https(server, security)) as client:
        yield client


def whoami(client: Https) -> Any:
    return client.post(f"{REVIEWS}/selfsubjectreviews", {}).json["status"]["userInfo"]


def test_whoever_shows_no_token_is_refused_in_the_words_of_kubernetes(nobody: Https) -> None:
    refused = nobody.get(PODS)
    assert refused.status == 401
    assert refused.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/ui", "/ui/pods"])
def test_health_version_and_the_files_of_the_pages_are_open(nobody: Https, path: str) -> None:
    assert nobody.get(path).status == 200
    assert nobody.post(path, {}).status == 401


CLOSED = (
    *("/", "/api", "/apis", "/openapi/v2", "/metrics", "/uix", "/version/x", "/healthz/../api"),
    *("/simulator/v1/export", "/simulator/v1/runs", "/traffic/v1/runs", "//ui", "/nowhere"),
    *("/as/alice/version", "/as/alice/ui", "/readyz%2F..%2F..%2Fapi", "/ui%2F..%2Fapi/v1/pods"),
)


@pytest.mark.parametrize("path", CLOSED)
def test_nothing_else_is_open(nobody: Https, path: str) -> None:
    # What is below /ui after unquoting is a page, whatever it looks like.
    expected = 200 if path.startswith("/ui%2F") else 401
    reply = nobody.get(path)
    assert reply.status == expected
    assert b"PodList" not in reply.body


@pytest.mark.parametrize(
    "shown",
    [
        "Bearer wrong",
        "Bearer ",
        "Bearer",
        "Basic {token}",
        "Digest {token}",
        "{token}",
        "Bearer {token}x",
        "bearer",
    ],
)
def test_what_is_no_token_is_refused_even_where_all_may_ask(
    nobody: Https, admin: Https, shown: str
) -> None:
    headers = {"Authorization": shown.format(token=admin._token)}
    assert nobody.request("GET", PODS, headers=headers).status == 401
    assert nobody.request("GET", "/version", headers=headers).status == 401


def test_what_the_file_keeps_is_no_token(nobody: Https, security: Security) -> None:
    kept = (security.identities.path / "tokens.jsonl").read_text()
    digest = json.loads(kept.splitlines()[0])["sha256"]
    assert nobody.request("GET", PODS, headers={"Authorization": f"Bearer {digest}"}).status == 401


def test_two_tokens_are_none(server: Server, security: Security, admin: Https) -> None:
    trust = ssl.create_default_context(cadata=security.bundle.decode())
    connection = HTTPSConnection(server.host, server.port, timeout=120, context=trust)
    with closing(connection):
        connection.putrequest("GET", PODS)
        connection.putheader("Authorization", f"Bearer {admin._token}")
        connection.putheader("Authorization", "Bearer wrong")
        connection.endheaders()
        assert connection.getresponse().status == 401


def test_a_prefix_of_the_url_is_not_believed(admin: Https, nobody: Https) -> None:
    assert nobody.get(f"/as/alice{PODS}").status == 401
    assert nobody.get(f"/as/administrator{PODS}").status == 401
    assert admin.get(f"/as/alice{PODS}").status == 404


def test_tokens_say_who_and_roles_what_they_may(
    server: Server, security: Security, admin: Https
) -> None:
    assert whoami(admin) == {
        "username": ADMINISTRATOR,
        "groups": ["system:masters", "system:authenticated"],
    }
    token = security.identities.add("alice", ["ops"])
    with closing(Https(server, security, token)) as alice:
        assert whoami(alice) == {"username": "alice", "groups": ["ops", "system:authenticated"]}
        refused = alice.get(PODS)
        assert refused.message.startswith('pods is forbidden: User "alice" cannot list')
        impersonating = {"Impersonate-User": "administrator"}
        assert alice.request("GET", PODS, headers=impersonating).status == 403
        binding = {
            "metadata": {"name": "ops"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "ops"}],
        }
        bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        assert admin.post(bindings, binding).status == 201
        assert alice.get(PODS).status == 200
    assert admin.request("GET", PODS, headers={"Impersonate-User": "bob"}).status == 403


def test_without_roles_all_who_are_known_may_and_are_who_they_are(tmp_path: Path) -> None:
    security = secured(tmp_path / "identities", "localhost")
    with Server(port=0, host="localhost", security=security, controllers=False) as server:
        token = security.identities.add("alice")
        with (
            closing(Https(server, security, token)) as alice,
            closing(Https(server, security)) as nobody,
        ):
            assert alice.post(CONFIG_MAPS, config_map("a")).status == 201
            assert whoami(alice) == {"username": "alice", "groups": ["system:authenticated"]}
            assert nobody.get(f"{CONFIG_MAPS}/a").status == 401


def test_the_file_is_read_again_when_it_has_changed(
    server: Server, security: Security, caplog: pytest.LogCaptureFixture
) -> None:
    folder, tokens = security.identities, security.identities.path / "tokens.jsonl"
    first = folder.add("alice")
    with closing(Https(server, security, first)) as alice:
        assert alice.get("/version").status == 200
        second = folder.add("alice")  # in place of the first
        assert alice.get("/version").status == 401
    with closing(Https(server, security, second)) as alice:
        assert alice.get("/version").status == 200
        kept = tokens.read_bytes()
        tokens.write_bytes(kept + b"nonsense\n")
        assert alice.get("/version").status == 401
        assert "line 3 is no identity" in caplog.text
        tokens.write_bytes(kept)
        assert alice.get("/version").status == 200
        tokens.unlink()
        assert alice.get("/version").status == 401


def test_reviews_of_tokens_say_whose_they_are(admin: Https, security: Security) -> None:
    token = security.identities.add("system:serviceaccount:ci:deployer")
    asked = {"spec": {"token": token}}
    known = admin.post(f"{REVIEWS}/tokenreviews", asked).json["status"]
    assert known == {
        "authenticated": True,
        "user": {
            "username": "system:serviceaccount:ci:deployer",
            "groups": [
                "system:serviceaccounts",
                "system:serviceaccounts:ci",
                "system:authenticated",
            ],
        },
    }
    wrong = admin.post(f"{REVIEWS}/tokenreviews", {"spec": {"token": "wrong"}}).json["status"]
    assert wrong == {"user": {}, "error": "invalid bearer token"}


ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def account(admin: Https, name: str = "robot") -> dict[str, Any]:
    made = admin.post(ACCOUNTS, {"metadata": {"name": name}})
    assert made.status == 201
    return dict(made.json)


def issued(admin: Https, **spec: Any) -> Any:
    reply = admin.post(f"{ACCOUNTS}/robot/token", {"spec": spec})
    assert reply.status == 201, reply.message
    return reply.json["status"]["token"]


def claims_of(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(payload + "===")))


def test_an_account_is_known_by_its_token(server: Server, security: Security, admin: Https) -> None:
    made = account(admin)
    reply = admin.post(f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 900}})
    assert reply.status == 201
    assert reply.json["kind"] == "TokenRequest"
    assert reply.json["spec"]["expirationSeconds"] == 900
    token = reply.json["status"]["token"]
    claims = claims_of(token)
    assert claims["exp"] - claims["iat"] == 900
    assert claims["sub"] == "system:serviceaccount:default:robot"
    groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    user = {
        "username": "system:serviceaccount:default:robot",
        "uid": made["metadata"]["uid"],
        "groups": groups,
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]},
    }
    with closing(Https(server, security, token)) as robot:
        assert whoami(robot) == user
        assert robot.get(CONFIG_MAPS).status == 403
        binding = {
            "metadata": {"name": "robot"},
            "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": RBAC},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        }
        path = f"/apis/{RBAC}/v1/namespaces/default/rolebindings"
        assert admin.post(path, binding).status == 201
        assert robot.get(CONFIG_MAPS).status == 200
        known = admin.post(f"{REVIEWS}/tokenreviews", {"spec": {"token": token}}).json["status"]
        assert known == {"authenticated": True, "user": user, "audiences": claims["aud"]}
        # Made again, it is another account of the same name.
        assert admin.delete(f"{ACCOUNTS}/robot").status == 200
        assert robot.get(CONFIG_MAPS).status == 401
        account(admin)
        assert robot.get(CONFIG_MAPS).status == 401


RBAC = "rbac.authorization.k8s.io"


def test_a_token_of_an_account_ends(server: Server, security: Security, admin: Https) -> None:
    account(admin)
    clocks = server.cluster.registry.clocks
    begun = clocks.server.now()
    clocks.server = VirtualClock(begun)
    token = issued(admin, expirationSeconds=600)
    with closing(Https(server, security, token)) as robot:
        assert robot.get("/version").status == 200
        clocks.server = VirtualClock(begun + 599 * SECOND)
        assert robot.get("/version").status == 200
        clocks.server = VirtualClock(begun + 600 * SECOND)
        assert robot.get("/version").status == 401
    told = admin.post(f"{REVIEWS}/tokenreviews", {"spec": {"token": token}}).json["status"]
    assert told == {
        "user": {},
        "error": "[invalid bearer token, service account token has expired]",
    }


def test_a_token_is_for_its_audiences_and_its_pod(
    server: Server, security: Security, admin: Https
) -> None:
    account(admin)
    elsewhere = issued(admin, audiences=["vault"])
    with closing(Https(server, security, elsewhere)) as robot:
        assert robot.get("/version").status == 401
    for audiences, is_known in ((["vault", "x"], True), (["x"], False), ([], False)):
        asked = {"spec": {"token": elsewhere, "audiences": audiences}}
        status = admin.post(f"{REVIEWS}/tokenreviews", asked).json["status"]
        assert status.get("authenticated", False) is is_known
        assert status.get("audiences") == (["vault"] if is_known else None)
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    assert admin.post(f"{ACCOUNTS}/robot/token", {"spec": {"boundObjectRef": bound}}).status == 404
    other = pod("q")
    assert admin.post(PODS, other).status == 201
    refused = admin.post(
        f"{ACCOUNTS}/robot/token", {"spec": {"boundObjectRef": {**bound, "name": "q"}}}
    )
    assert refused.status == 400
    assert "running with different serviceaccount name" in refused.message
    assert admin.post(PODS, pod("p", serviceAccountName="robot")).status == 201
    token = issued(admin, boundObjectRef=bound)
    with closing(Https(server, security, token)) as robot:
        assert whoami(robot)["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
        assert admin.delete(f"{PODS}/p?gracePeriodSeconds=0").status == 200
        assert robot.get("/version").status == 401


def test_what_is_no_token_of_an_account(server: Server, security: Security, admin: Https) -> None:
    account(admin)
    token = issued(admin)
    head, body, mac = token.split(".")
    claims = {**claims_of(token), "sub": "system:serviceaccount:kube-system:admin"}
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for wrong in (
        f"{head}.{forged}.{mac}",
        f"{none}.{body}.",
        f"{head}.{body}.",
        "..",
        f"{token}x",
    ):
        with closing(Https(server, security, wrong)) as robot:
            assert robot.get("/version").status == 401
    for seconds, why in ((599, "less than 10 minutes"), (2**32 + 1, "larger than 2^32 seconds")):
        reply = admin.post(f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": seconds}})
        assert reply.status == 422
        assert reply.message.endswith(f"may not specify a duration {why}")
    assert admin.post(f"{ACCOUNTS}/nobody/token", {"spec": {}}).status == 404


def certified(server: Server, security: Security, made: Pem, folder: Path) -> Https:
    """A client that shows a certificate."""
    pair = folder / "pair.pem"
    pair.write_bytes(made.certificate + made.key)
    client = Https(server, security)
    trust = ssl.create_default_context(cadata=security.bundle.decode())
    trust.load_cert_chain(pair)
    client._connection = HTTPSConnection(server.host, server.port, timeout=120, context=trust)
    return client


def test_a_certificate_says_who(server: Server, security: Security, tmp_path: Path) -> None:
    made = OpenSsl("x").client(security.identities.authority(), "alice", ["dev", "system:masters"])
    with closing(certified(server, security, made, tmp_path)) as alice:
        groups = ["dev", "system:masters", "system:authenticated"]
        assert whoami(alice) == {"username": "alice", "groups": groups}
        assert alice.get(CONFIG_MAPS).status == 200
    bob = OpenSsl("x").client(security.identities.authority(), "bob", [])
    with closing(certified(server, security, bob, tmp_path)) as client:
        assert client.get(CONFIG_MAPS).status == 403


def test_a_certificate_of_somebody_else_says_nothing(
    server: Server, security: Security, tmp_path: Path
) -> None:
    other = OpenSsl("x").authority("other")
    for made in (
        OpenSsl("x").client(other, "alice", ["system:masters"]),
        OpenSsl("x").signed(security.identities.authority(), "alice", ["127.0.0.1"]),
    ):
        client = certified(server, security, made, tmp_path)
        with closing(client), pytest.raises((ssl.SSLError, ConnectionError, BrokenPipeError)):
            client.get(CONFIG_MAPS)


def test_another_authority_of_clients_is_believed(tmp_path: Path, retire: Retire) -> None:
    other = OpenSsl("x").authority("other")
    (tmp_path / "clients.crt").write_bytes(other.certificate)
    known = secured(tmp_path / "known", "127.0.0.1", client_ca=tmp_path / "clients.crt")
    served = Server(port=0, security=known, controllers=False)
    served.start()
    made = OpenSsl("x").client(other, "carol", ["ops"])
    with closing(certified(served, known, made, tmp_path)) as carol:
        assert whoami(carol)["username"] == "carol"
    retire(served)
    (tmp_path / "clients.crt").write_bytes(b"no certificate")
    with pytest.raises(ConfigurationError, match="holds no authority of clients"):
        secured(tmp_path / "known", "127.0.0.1", client_ca=tmp_path / "clients.crt")


@pytest.mark.parametrize("name", ["a,b", "$HOME", "x\nCN = y", "a/b", "", "l" * 65])
def test_a_name_that_a_certificate_cannot_have(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot stand in a certificate"):
        OpenSsl("x").client(Pem(b"", b""), name, [])


async def guest(scope: Any, receive: Any, send: Any) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"mounted"})


def test_mounted_applications_are_for_those_who_are_known(
    server: Server, admin: Https, nobody: Https
) -> None:
    server.app.mount("/guest", guest)
    server.app.mount("/version", guest)
    assert admin.get(GUEST).body == b"mounted"
    assert nobody.get(GUEST).status == 401
    assert nobody.get("/version").status == 401


def test_plain_http_is_not_served_there(server: Server) -> None:
    with socket.create_connection((server.host, server.port), timeout=60) as plain:
        plain.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP/1.1 200" not in plain.recv(4096)


def test_whoever_never_ends_the_handshake_is_cut_off(security: Security, retire: Retire) -> None:
    server = Server(port=0, security=security, controllers=False, request_timeout_s=1)
    server.start()
    with socket.create_connection((server.host, server.port), timeout=60) as silent:
        assert silent.recv(1) == b""
    retire(server)


def test_a_page_under_a_name_of_the_certificate_may_write() -> None:
    origins = Origins(only_local=False, names=["Rehearsal.example.com"])

    def asked(name: str) -> dict[str, Any]:
        headers = [(b"host", f"{name}:1".encode()), (b"origin", f"https://{name}:1".encode())]
        return {"type": "http", "method": "POST", "headers": headers}

    origins.check(asked("rehearsal.example.com"))
    with pytest.raises(ForbiddenError, match="which anybody could let point here"):
        origins.check(asked("rebound.example.com"))


# -- files -----------------------------------------------------------------------------------------


def test_the_folder_and_its_files_are_their_owners_alone(security: Security) -> None:
    security.introduce("https://127.0.0.1:1")
    folder = security.identities.path
    assert folder.stat().st_mode & 0o777 == 0o700
    files = {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}
    assert files == dict.fromkeys(["administrator.yaml", "ca.crt", "ca.key", "tokens.jsonl"], 0o600)
    folder.chmod(0o750)
    with pytest.raises(ConfigurationError, match="chmod 700"):
        secured(folder, "127.0.0.1")


def test_no_token_is_kept_but_that_of_the_administrator(security: Security) -> None:
    security.introduce("https://127.0.0.1:1")
    token = security.identities.add("alice")
    assert len(token) >= 43
    for each in security.identities.path.iterdir():
        assert token not in each.read_text()


def test_identities_outlive_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "identities"
    first = secured(folder, "127.0.0.1")
    kept = yaml.safe_load(first.introduce("https://127.0.0.1:1").read_text())
    alice = first.identities.add("alice")
    again = secured(folder, "127.0.0.1")
    told = yaml.safe_load(again.introduce("https://127.0.0.1:2").read_text())
    assert (again.bundle, told["users"]) == (first.bundle, kept["users"])
    assert told["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:2"
    assert again.tokens.actor_of(alice.encode()) is not None
    lines = (folder / "tokens.jsonl").read_text().splitlines()
    assert [json.loads(each)["name"] for each in lines] == [ADMINISTRATOR, "alice"]


def test_an_administrator_who_was_removed_gets_a_new_token(security: Security) -> None:
    before = security.introduce("https://127.0.0.1:1").read_text()
    (security.identities.path / "tokens.jsonl").write_bytes(b"")
    assert security.introduce("https://127.0.0.1:1").read_text() != before


@pytest.mark.parametrize("line", ["nonsense", "{}", '{"name": "a", "sha256": "xyz"}', "[]"])
def test_a_line_that_is_no_identity_is_named(security: Security, line: str) -> None:
    folder = security.identities.path
    (folder / "tokens.jsonl").write_text(f"\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"tokens\.jsonl, line 2 is no identity"):
        secured(folder, "127.0.0.1")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 300])
def test_a_name_that_is_none_is_refused(security: Security, name: str) -> None:
    with pytest.raises(ConfigurationError, match="no name of a user"):
        security.identities.add(name)


def test_a_certificate_is_for_all_names_of_its_server() -> None:
    assert names_of("10.0.0.1", ["rehearsal.example.com"]) == (
        "10.0.0.1",
        "rehearsal.example.com",
        "localhost",
        "127.0.0.1",
        "::1",
    )
    assert names_of("0.0.0.0")[0] == socket.gethostname()
    with pytest.raises(ConfigurationError, match="no name of a host"):
        OpenSsl("").signed(OpenSsl("").authority("a"), "b", ["a\nbasicConstraints = CA:TRUE"])


def test_a_certificate_that_is_given_is_used(tmp_path: Path, retire: Retire) -> None:
    authority = OpenSsl("").authority("ours")
    made = OpenSsl("").signed(authority, "server", ["127.0.0.1"])
    for name, data in (("crt", made.certificate), ("key", made.key), ("ca", authority.certificate)):
        (tmp_path / name).write_bytes(data)
    given = GivenCertificate(tmp_path / "crt", tmp_path / "key", tmp_path / "ca")
    security = secured(tmp_path / "identities", "127.0.0.1", given=given)
    assert not (tmp_path / "identities" / "ca.key").exists()
    server = Server(port=0, security=security, controllers=False)
    server.start()
    with closing(Https(server, security)) as nobody:
        assert nobody.get("/version").status == 200
    retire(server)
    with pytest.raises(ConfigurationError, match="cannot be used with the key"):
        secured(
            tmp_path / "identities",
            "127.0.0.1",
            given=GivenCertificate(tmp_path / "ca", tmp_path / "key"),
        )


# -- clients ---------------------------------------------------------------------------------------


def kubectl_of(server: Server, security: Security, folder: Path, name: str = "") -> Kubectl:
    if not (found := find_kubectls()):
        pytest.skip(MISSING)
    file = folder / f"{name or 'administrator'}.yaml"
    file.write_text(yaml.safe_dump(security.identities.kubeconfig_of(name, ["ops"])))
    return found[0].towards(file, folder)


def test_kubectl_gets_watches_and_applies(
    server: Server, security: Security, tmp_path: Path
) -> None:
    kubectl = kubectl_of(server, security, tmp_path)
    assert "system:masters" in kubectl("auth", "whoami")
    assert "pod/a created" in kubectl("apply", "-f", "-", stdin=json.dumps(pod("a")))
    assert "a " in kubectl("get", "pods")
    watching = kubectl.start("get", "pods", "--watch", "-o", "name")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "pod/a\n"
    kubectl("apply", "-f", "-", stdin=json.dumps(pod("b")))
    assert "pod/b\n" in iter(watching.stdout.readline, "")
    watching.kill()
    watching.communicate()
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(config_map("c")))
    assert "serverside-applied" in applied


def test_kubectl_is_who_its_token_says(server: Server, security: Security, tmp_path: Path) -> None:
    kubectl = kubectl_of(server, security, tmp_path, "alice")
    shown = kubectl.json("auth", "whoami")["status"]["userInfo"]
    assert (shown["username"], shown["groups"]) == ("alice", ["ops", "system:authenticated"])
    assert "Forbidden" in kubectl("get", "pods", fails=True)
    wrong = kubectl("get", "pods", "--token", "wrong", fails=True)
    assert "You must be logged in to the server" in wrong


@pytest.mark.skipif(not find_kubectls(), reason=MISSING)
def test_kubectl_creates_a_token_and_uses_a_certificate(
    server: Server, security: Security, admin: Https, tmp_path: Path
) -> None:
    account(admin)
    kubectl = kubectl_of(server, security, tmp_path)
    token = kubectl("create", "token", "robot", "--duration=20m").strip()
    assert claims_of(token)["exp"] - claims_of(token)["iat"] == 1200
    with closing(Https(server, security, token)) as robot:
        assert whoami(robot)["username"] == "system:serviceaccount:default:robot"
    folder = security.identities.path
    told = run("kubeconfig", "--identities", str(folder), "--as", "dora", "--certificate")
    path = tmp_path / "dora.yaml"
    path.write_text(told)
    assert "dora" in kubectl.towards(path, tmp_path / "dora")("auth", "whoami")


def test_our_own_client_finds_its_credentials(
    server: Server, security: Security, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = security.identities.kubeconfig
    actor, default = Actor("client"), ObjectRef(NAMESPACE, "default")
    with closing(HttpClient(read_kubeconfig(file), actor)) as client:
        assert client.get(default)
    # By its URL alone, as the commands with --server do it.
    monkeypatch.setenv("KUBECONFIG", str(file))
    with closing(HttpClient(f"{server.url}/", actor)) as client:
        assert client.get(default)
    told = yaml.safe_load(file.read_text())
    told["users"][0]["user"]["token"] = "wrong"
    file.write_text(yaml.safe_dump(told))
    with closing(HttpClient(server.url, actor)) as client, pytest.raises(UnauthorizedError):
        client.get(default)


def test_credentials_are_for_the_server_of_the_kubeconfig_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: Security
) -> None:
    from kubescene.client.http.kubeconfigs import endpoint_at

    file = security.introduce("https://127.0.0.1:1")
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert endpoint_at("https://127.0.0.1:1/").token
    assert not endpoint_at("https://127.0.0.1:2").token
    assert not endpoint_at("http://127.0.0.1:1").token
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    assert not endpoint_at("https://127.0.0.1:1").token


# -- commands --------------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=True)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=True)
    assert isinstance(done.exception, ConfigurationError), done.output
    return str(done.exception)


def test_a_kubeconfig_is_made_for_a_server_that_was_started(security: Security) -> None:
    folder = str(security.identities.path)
    assert "start a server with these identities first" in refused(
        "kubeconfig", "--identities", folder
    )
    security.introduce("https://127.0.0.1:1")
    admin = yaml.safe_load(run("kubeconfig", "--identities", folder))
    assert admin["users"][0]["name"] == ADMINISTRATOR
    made = ["--as", "alice", "--group", "ops", "--server", "https://rehearsal:1"]
    alice = yaml.safe_load(run("kubeconfig", "--identities", folder, *made))
    assert alice["clusters"][0]["cluster"]["server"] == "https://rehearsal:1"
    token = alice["users"][0]["user"]["token"]
    actor = security.tokens.actor_of(token.encode())
    assert actor is not None
    assert (actor.name, actor.groups) == ("alice", ("ops", "system:authenticated"))
    before = (security.identities.path / "tokens.jsonl").read_bytes()
    assert "sent in clear" in refused(
        "kubeconfig", "--identities", folder, "--as", "alice", "--server", "http://rehearsal:1"
    )
    assert (security.identities.path / "tokens.jsonl").read_bytes() == before


def test_groups_without_identities_are_refused() -> None:
    assert "--identities and --as" in refused("kubeconfig", "--as", "alice", "--group", "ops")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    shown = refused("kubeconfig", "--identities", str(tmp_path / "no"), "--as", "alice")
    assert "administrator.yaml is not there" in shown


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com"])
def test_other_machines_are_never_served_over_plain_http(host: str) -> None:
    with pytest.raises(ConfigurationError, match="needs https and tokens"):
        Server(host=host, port=0)


def test_without_openssl_other_machines_are_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told = refused(
        *("serve", "--port", "0", "--host", "0.0.0.0", "--allow-remote"),
        *("--identities", str(tmp_path / "identities")),
    )
    assert "no program openssl" in told
    assert "--tls-cert and --tls-key" in told


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--tls", "--tls-cert", "x"], "belong together"),
        (["--tls", "--tls-ca", "x"], "belong together"),
        (["--tls-name", "x"], "say --tls"),
        (["--identities", "x"], "say --tls"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: list[str], why: str) -> None:
    assert why in refused("serve", "--port", "0", *options)


def test_the_command_serves_https_on_all_addresses(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kubescene", "serve", "--port", "0", "--host", "0.0.0.0"]
    process = subprocess.Popen(
        [*command, "--allow-remote", "--data-dir", str(tmp_path), "--tls-name", "rehearsal"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        said = [process.stdout.readline() for _ in range(4)]
        assert said[0].startswith("Serving on https://127.0.0.1:")
        assert said[1] == said[0].replace("Serving on", "Pages for people:").replace("\n", "/ui\n")
        file = tmp_path / "identities" / "administrator.yaml"
        assert f"KUBECONFIG={file}" in "".join(said)
        endpoint = read_kubeconfig(file)
        with closing(HttpClient(endpoint, Actor("client"))) as client:
            assert client.get(ObjectRef(NAMESPACE, "default"))
        tls = endpoint.tls
        assert tls is not None
        with (
            socket.create_connection(endpoint.address, timeout=60) as plain,
            tls.wrap_socket(plain, server_hostname="rehearsal") as connection,
        ):
            connection.sendall(b"GET /api/v1/pods HTTP/1.1\r\nHost: rehearsal\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 401")
    finally:
        process.terminate()
        process.communicate()
    assert IdentityFolder(tmp_path / "identities").prepare().actor_of(b"wrong") is None
