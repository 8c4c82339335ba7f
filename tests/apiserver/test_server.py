"""A server from start to end, what it says of itself, and the commands around it."""

import asyncio
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from apiserver.http import CONFIG_MAPS, Http, config_map
from kubescene.apiserver.server import Server
from kubescene.cli.kubeconfig import kubeconfig
from kubescene.cli.serve import check_host, serve
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.errors import ConfigurationError


def test_stopped_server_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with Server(port=0) as server:
        http = Http(server.host, server.port)
        assert http.get("/version").status == 200
        http.close()
        assert set(threading.enumerate()) - before
    assert set(threading.enumerate()) - before == set()


def test_two_servers_are_two_worlds() -> None:
    with Server(port=0, controllers=False) as one, Server(port=0, controllers=False) as two:
        first, second = Http(one.host, one.port), Http(two.host, two.port)
        first.post(CONFIG_MAPS, config_map("a"))
        assert first.get(f"{CONFIG_MAPS}/a").status == 200
        assert second.get(f"{CONFIG_MAPS}/a").status == 404
        first.close()
        second.close()


def test_taken_port_is_an_error(server: Server) -> None:
    with pytest.raises(OSError, match="in use"):
        Server(port=server.port)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_health_is_plain_text(http: Http, path: str) -> None:
    reply = http.get(path)
    assert (reply.status, reply.body) == (200, b"ok")


def test_version_is_one_that_clients_can_read(http: Http) -> None:
    version = http.get("/version").json
    assert (version["major"], int(version["minor"]) >= 36) == ("1", True)
    assert version["gitVersion"].startswith("v1.36.")


@pytest.mark.parametrize("path", ["/api", "/apis", "/openapi/v3", "/openapi/v3/api/v1"])
def test_documents_are_revalidated_by_etag(http: Http, path: str) -> None:
    first = http.get(path)
    (etag,) = first.all("etag")
    again = http.request("GET", path, headers={"If-None-Match": etag})
    assert (first.status, again.status, again.body) == (200, 304, b"")


def test_discovery_follows_custom_kinds(http: Http) -> None:
    from apiserver.kubernetes.test_writes import define_widgets

    assert http.get("/apis/example.com/v1").status == 404
    define_widgets(http)
    listed = http.get("/apis/example.com/v1").json["resources"]
    assert [row["name"] for row in listed] == ["widgets", "widgets/scale", "widgets/status"]
    index = http.get("/openapi/v3").json["paths"]
    assert http.get(index["apis/example.com/v1"]["serverRelativeURL"]).status == 200


async def guest(scope: Any, receive: Any, send: Any) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"mounted"})


def test_other_applications_can_be_mounted(server: Server, http: Http) -> None:
    server.app.mount("/guest", guest)
    assert http.get("/guest/any/path").body == b"mounted"
    assert http.get("/guests").status == 404


class TestOrigins:
    @pytest.mark.parametrize("host", ["127.0.0.1:8001", "localhost", "[::1]:80", "127.1.2.3"])
    def test_local_names_are_served(self, http: Http, host: str) -> None:
        assert http.request("GET", "/version", headers={"Host": host}).status == 200

    @pytest.mark.parametrize(
        "headers",
        [
            {"Host": "rebound.example.com"},
            {"Host": "10.0.0.1"},
            {"Host": "localhost.example.com"},
            {"Host": "[::1].rebound.example.com"},
            {"Host": "rebound.example.com\\@127.0.0.1"},
            {"Host": "rebound.example.com@127.0.0.1"},
            {"Host": "127.0.0.1:80:80"},
            {"Host": "127.0.0.1/rebound.example.com"},
            {"Origin": "http://[::1].rebound.example.com"},
            {"Origin": "https://example.com"},
            {"Origin": "null"},
        ],
        ids=str,
    )
    def test_web_pages_are_kept_out(self, http: Http, headers: dict[str, str]) -> None:
        reply = http.request("POST", CONFIG_MAPS, config_map("a"), headers=headers)
        assert (reply.status, reply.reason) == (403, "Forbidden")
        assert http.get(f"{CONFIG_MAPS}/a").status == 404

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "http://localhost:3000"},
            {"Origin": "http://127.0.0.1"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "cross-site"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", CONFIG_MAPS),
            ("PATCH", f"{CONFIG_MAPS}/kept"),
            ("DELETE", f"{CONFIG_MAPS}/kept"),
            ("POST", "/simulator/v1/import"),
            ("PUT", "/simulator/v1/reset"),
            ("POST", "/guest/page"),
        ],
    )
    def test_other_pages_of_this_machine_change_nothing(
        self, server: Server, http: Http, method: str, path: str, headers: dict[str, str]
    ) -> None:
        server.app.mount("/guest", guest)
        http.post(CONFIG_MAPS, config_map("kept"))
        reply = http.request(method, path, config_map("a"), headers=headers)
        assert (reply.status, reply.reason) == (403, "Forbidden")
        assert [it["metadata"]["name"] for it in http.get(CONFIG_MAPS).json["items"]] == ["kept"]

    def test_other_pages_of_this_machine_may_read(self, http: Http) -> None:
        headers = {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"}
        assert http.request("GET", "/version", headers=headers).status == 200

    def test_pages_of_this_server_may_write(self, server: Server, http: Http) -> None:
        server.app.mount("/guest", guest)
        headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
        assert http.request("POST", CONFIG_MAPS, config_map("a"), headers=headers).status == 201
        form = {"Content-Type": "text/plain", **headers}
        assert http.request("POST", "/guest/page", b"x", headers=form).body == b"mounted"

    @pytest.mark.parametrize(
        "headers", [{"Host": "rebound.example.com"}, {"Origin": "https://example.com"}], ids=str
    )
    def test_mounted_applications_are_for_this_machine(
        self, server: Server, http: Http, headers: dict[str, str]
    ) -> None:
        server.app.mount("/guest", guest)
        assert http.request("GET", "/guest/page", headers=headers).status == 403

    @pytest.mark.parametrize("path", ["/simulator/v1/import", "/guest/page", CONFIG_MAPS])
    @pytest.mark.parametrize(
        "content_type", ["text/plain", "text/plain; charset=utf-8", "multipart/form-data"]
    )
    def test_what_a_form_could_send_is_not_taken(
        self, server: Server, http: Http, path: str, content_type: str
    ) -> None:
        server.app.mount("/guest", guest)
        reply = http.post(path, b"{}", content_type=content_type)
        assert (reply.status, reply.reason) == (415, "UnsupportedMediaType")

    @pytest.mark.parametrize("path", ["/simulator/v1/import", "/guest/page"])
    def test_a_body_without_a_type_is_not_taken(
        self, server: Server, http: Http, path: str
    ) -> None:
        server.app.mount("/guest", guest)
        assert http.post(path, b"{}", content_type="").status == 415

    def test_a_reset_takes_no_form(self, http: Http) -> None:
        assert (
            http.request("PUT", "/simulator/v1/reset", b"", content_type="text/plain").status == 415
        )
        assert http.request("PUT", "/simulator/v1/reset").status == 200

    async def opened_socket(self, server: Server, origin: bytes) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1:1"), (b"origin", origin)]
        scope = {"type": "websocket", "path": "/guest/socket", "headers": headers}
        await server.app(scope, never, send)
        return sent

    def test_sockets_of_mounted_applications_are_for_their_pages(self, server: Server) -> None:
        server.app.mount("/guest", guest)
        refused = asyncio.run(self.opened_socket(server, b"http://127.0.0.1:2"))
        assert [message["type"] for message in refused] == ["websocket.close"]
        served = asyncio.run(self.opened_socket(server, b"http://127.0.0.1:1"))
        assert served[-1].get("body") == b"mounted"


async def never() -> Any:
    raise AssertionError("nothing is read")


def run_command(command: Any, *arguments: str) -> Any:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, arguments)


class TestKubeconfig:
    def test_points_to_the_default_server(self) -> None:
        document = yaml.safe_load(run_command(kubeconfig).output)
        assert document["clusters"][0]["cluster"]["server"] == "http://127.0.0.1:8001"
        assert document["current-context"] == document["contexts"][0]["name"]

    def test_plain_http_is_said_to_be_meant(self) -> None:
        [plain] = make_kubeconfig("http://127.0.0.1:8001")["clusters"]
        assert plain["cluster"]["insecure-skip-tls-verify"] is True
        [secure] = make_kubeconfig("https://127.0.0.1:8001")["clusters"]
        assert secure["cluster"] == {"server": "https://127.0.0.1:8001"}

    def test_identity_is_a_prefix(self) -> None:
        result = run_command(kubeconfig, "--as", "team a/b", "--server", "http://localhost:1/")
        server = yaml.safe_load(result.output)["clusters"][0]["cluster"]["server"]
        assert server == "http://localhost:1/as/team%20a%2Fb"

    def test_nonsense_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="is not a URL"):
            make_kubeconfig("localhost")


SECRETS = "/api/v1/namespaces/default/secrets"


class TestServe:
    @pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
    def test_loopback_is_fine(self, host: str) -> None:
        check_host(host, allow_remote=False)

    @pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "example.com"])
    def test_other_addresses_must_be_wanted(self, host: str) -> None:
        with pytest.raises(ConfigurationError, match="--allow-remote"):
            check_host(host, allow_remote=False)
        check_host(host, allow_remote=True)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_signal_ends_it_in_order(self, number: int) -> None:
        script = "import typer; from kubescene.cli.serve import serve; typer.run(serve)"
        process = subprocess.Popen(
            [sys.executable, "-c", script, "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        http = Http("127.0.0.1", int(url.rpartition(":")[2]))
        with http.watch(f"{SECRETS}?watch=1") as events:
            process.send_signal(number)
            assert events.rest() == []
        process.communicate(timeout=120)
        assert process.returncode == 0

    def test_help_shows_an_example(self) -> None:
        assert "kubescene serve --port" in run_command(serve, "--help").output

    def test_taken_port_is_told(self, server: Server) -> None:
        result = run_command(serve, "--port", str(server.port))
        assert isinstance(result.exception, ConfigurationError)
        assert "choose another --port" in str(result.exception)
