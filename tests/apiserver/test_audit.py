"""The audit log: what a policy may say, the file, and what becomes of it. What stands in the events
is compared with a real kube-apiserver in `remote/test_audit_of_a_real_api_server`."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apiserver.http import Http, config_map, pod
from commands import kubescene as command
from kubescene.apiserver.access import Attributes
from kubescene.apiserver.access.security import secured
from kubescene.apiserver.audit import AuditLog, AuditPolicy, AuditTrail, read_policy
from kubescene.apiserver.audit import trail as trails
from kubescene.apiserver.server import Server
from kubescene.errors import ConfigurationError
from kubescene.histories.survey import survey
from kubescene.types import JsonObject

HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
MAPS = "/api/v1/namespaces/default/configmaps"
EVERYTHING = HEAD + "omitStages: [RequestReceived]\nrules: [{level: RequestResponse}]\n"


def policy(folder: Path, text: str) -> AuditPolicy:
    path = folder / "policy.yaml"
    path.write_text(text)
    return read_policy(path)


def events(log: Path) -> list[JsonObject]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@contextmanager
def audited(folder: Path, text: str, **more: object) -> Iterator[tuple[Http, Path]]:
    log = folder / "audit.log"
    trail = AuditTrail(AuditLog(str(log)), policy(folder, text))
    with Server(port=0, audit=trail, **more) as server:  # type: ignore[arg-type]
        http = Http(server.host, server.port)
        yield http, log
        http.close()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "apiVersion and kind are missing"),
        (HEAD + "rules: [{level: Everything}]", "Invalid enum value 'Everything' - at `$.rules[0]"),
        (HEAD + "rules: [{users: [a]}]", "missing required field `level` - at `$.rules[0]`"),
        (HEAD + "rules: [{level: None, user: [a]}]", "unknown field `user`"),
        (HEAD + "omitStages: [Late]", "Invalid enum value 'Late'"),
        ("apiVersion: audit.k8s.io/v1beta1\nkind: Policy", "audit.k8s.io/v1beta1"),
        (HEAD + "---\n" + HEAD, "is one document, not 2"),
        (HEAD + "rules: [", "holds no audit Policy"),
        (
            HEAD + 'rules: [{level: None, nonResourceURLs: ["/a"], namespaces: [b]}]',
            "rules[0].nonResourceURLs: a rule is about URLs or about resources",
        ),
        (
            HEAD + 'rules: [{level: None}, {level: None, nonResourceURLs: ["/a/*/b"]}]',
            "rules[1].nonResourceURLs[0]: '/a/*/b' is no path",
        ),
        (
            HEAD + "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
            "rules[0].resources[0].resourceNames: they need resources",
        ),
        (
            HEAD + "rules: [{level: None, resources: [{group: apps/v1}]}]",
            "rules[0].resources[0].group: 'apps/v1' is no API group",
        ),
    ],
)
def test_a_policy_that_is_wrong_is_refused_with_file_and_place(
    tmp_path: Path, text: str, told: str
) -> None:
    if not text:
        text = "rules: []"
    with pytest.raises(ConfigurationError) as caught:
        policy(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "policy.yaml"))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("resources", "asked", "fits"),
    [
        ("[pods]", ("pods", "", "a"), True),
        ("[pods]", ("pods", "log", "a"), False),
        ('["pods/*"]', ("pods", "log", "a"), True),
        ('["pods/*"]', ("pods", "", "a"), True),
        ('["pods/*"]', ("nodes", "log", "a"), False),
        ('["*/log"]', ("pods", "log", "a"), True),
        ('["*/log"]', ("pods", "", "a"), False),
        ('["*/*"]', ("pods", "log", "a"), False),
        ('["*"]', ("pods", "log", "a"), True),
        ("[pods], resourceNames: [a]", ("pods", "", "a"), True),
        ("[pods], resourceNames: [b]", ("pods", "", "a"), False),
    ],
)
def test_resources_are_named_as_in_kubernetes(
    tmp_path: Path, resources: str, asked: tuple[str, str, str], fits: bool
) -> None:
    rule = f'[{{level: Metadata, resources: [{{group: "", resources: {resources}}}]}}]'
    found = policy(tmp_path, f"{HEAD}rules: {rule}")
    resource, part, name = asked
    wanted = Attributes("", "v1", resource, part, "default", name)
    assert (found.verdict("a", (), "get", wanted).level.value == "Metadata") is fits


def test_somebody_with_no_known_token_is_told_of(tmp_path: Path) -> None:
    security = secured(tmp_path / "identities", "127.0.0.1")
    log = tmp_path / "audit.log"
    trail = AuditTrail(AuditLog(str(log)))
    with Server(port=0, audit=trail, security=security) as server:
        import ssl
        from http.client import HTTPSConnection

        trust = ssl.create_default_context(cadata=security.bundle.decode())
        connection = HTTPSConnection(server.host, server.port, timeout=120, context=trust)
        connection.request("GET", MAPS, headers={"Authorization": "Bearer nonsense"})
        assert connection.getresponse().read()
        connection.close()
    received, complete = events(log)
    assert (received["stage"], complete["stage"]) == ("RequestReceived", "ResponseComplete")
    assert (complete["user"], complete["verb"]) == ({}, "list")
    assert complete["responseStatus"]["code"] == 401
    assert complete["objectRef"]["resource"] == "configmaps"


def test_what_is_too_large_is_left_out_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trails, "MOST", 2000)
    with audited(tmp_path, EVERYTHING) as (http, log):
        http.post(MAPS, config_map("small"))
        http.post(MAPS, {**config_map("large"), "data": {"x": "y" * 2000}})
    small, large = events(log)
    assert small["responseObject"]["metadata"]["name"] == "small"
    assert "requestObject" not in large
    assert large["annotations"]["audit.k8s.io/truncated"] == "true"
    assert large["responseStatus"]["code"] == 201


def test_a_log_that_grows_is_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"x" * 900_000)
    log = AuditLog(str(path), megabytes=1, backups=2)
    for number in range(8):
        log.write({"number": number, "more": "x" * 400_000})
    log.close()
    aside = sorted(each.name for each in tmp_path.iterdir() if each != path)
    assert len(aside) == 2
    assert all(re.fullmatch(r"audit-\d{4}-\d\d-\d\dT[\d-]+\.\d{6}\.log", each) for each in aside)
    kept = [each for name in (*aside, path.name) for each in events(tmp_path / name)]
    assert [each["number"] for each in kept] == [2, 3, 4, 5, 6, 7]


def test_a_log_that_cannot_be_written_keeps_nobody_from_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: AuditLog, event: JsonObject) -> None:
        raise OSError(28, "No space left on device")

    with audited(tmp_path, EVERYTHING) as (http, log):
        monkeypatch.setattr(AuditLog, "write", full)
        assert [http.post(MAPS, config_map(name)).status for name in "ab"] == [201, 201]
        monkeypatch.undo()
        assert http.post(MAPS, config_map("c")).status == 201
    (event,) = events(log)
    assert event["objectRef"]["name"] == "c"
    assert caplog.text.count("the audit log cannot be written") == 1


def test_what_a_server_has_told_can_be_replayed(tmp_path: Path) -> None:
    with audited(tmp_path, EVERYTHING) as (http, log):
        assert http.post("/api/v1/namespaces/default/pods", pod("a")).status == 201
        assert http.delete("/api/v1/namespaces/default/pods/a").status == 200
    found = survey(log)
    assert (found.form, found.kinds["Pod"]) == ("audit", 2)


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    told = command("serve", "--audit-policy-file", "policy.yaml", cwd=tmp_path)
    assert (told.returncode, "--audit-policy-file needs --audit-log-path" in told.stderr) == (
        2,
        True,
    )
    told = command("serve", "--audit-log-path", "a", "--audit-policy-file", "b", cwd=tmp_path)
    assert (told.returncode, "b holds no audit Policy" in told.stderr) == (2, True)
    (tmp_path / "file").write_text("")
    told = command("serve", "--audit-log-path", "file/log", cwd=tmp_path)
    assert told.returncode == 2
    assert "the audit log cannot be written: file/log" in told.stderr
