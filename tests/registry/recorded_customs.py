"""What a real kube-apiserver says to definitions and objects of their kinds: asked, kept, read.

``data/custom_answers.jsonl.gz`` has a line per request of `custom_cases`: the code, of a refusal
its reason, message and causes, of an object the object. ``python -m registry.recorded_customs`` in
``tests`` asks the kube-apiserver of this machine again and writes the file.
"""

import gzip
import http.client
import json
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from kubescene.clock import SECOND, ScaledClock
from registry.custom_cases import JSON, Case, Step, played, refused
from remote.api_servers import RealServer

ANSWERS = Path(__file__).parent / "data" / "custom_answers.jsonl.gz"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FORMS = {"merge": "application/merge-patch+json", "redefine": "application/merge-patch+json"}
_METHODS = {"create": "POST", "replace": "PUT", "merge": "PATCH", "get": "GET", "list": "GET"}
_TYPE_NAME = re.compile(r"selfType\d+")
_GIVEN = frozenset(("creationTimestamp", "managedFields", "resourceVersion", "uid"))

Send = Callable[[str, str, Any], tuple[int, JSON, list[str]]]
"""Method, path and body; the code, the reply, and warnings."""


class Answer(NamedTuple):
    """What was said to one request; ``causes`` are sorted."""

    label: str
    code: int
    reason: str = ""
    message: str = ""
    causes: tuple[tuple[str, str, str], ...] = ()
    object: Any = None
    warnings: tuple[str, ...] = ()


def all_asked(send: Send) -> Iterator[Answer]:
    """Every request, and its answer."""
    for case in refused():
        reply = send("POST", f"{DEFINITIONS}?dryRun=All", case.definition)
        yield _answer(f"{case.label}: define", *reply, shown=False)
    for case in played():
        yield from _played(case, send)


def _played(case: Case, send: Send) -> Iterator[Answer]:
    yield _answer(f"{case.label}: define", *send("POST", DEFINITIONS, case.definition), shown=False)
    _wait(case, case.definition["spec"]["versions"], send)
    for at, step in enumerate(case.steps):
        yield _answer(f"{case.label}: {at} {step.verb}", *_sent(case, step, send))
    send("DELETE", _definition_path(case), None)


def _definition_path(case: Case) -> str:
    return f"{DEFINITIONS}/{case.definition['metadata']['name']}"


def _sent(case: Case, step: Step, send: Send) -> tuple[int, JSON, list[str]]:
    if step.verb == "redefine":
        patch = {"spec": {"versions": step.body}}
        code, reply, warnings = send("MERGE", _definition_path(case), patch)
        if code == 200:
            _wait(case, step.body, send, settle=True)
            reply = {"spec": {}}
        return code, reply, warnings
    group = case.definition["spec"]["group"]
    path, query = f"/apis/{group}/{step.version}/namespaces/default/things", step.query
    body = step.body
    if step.verb == "get":
        return send("GET", f"{path}/{body}", None)
    if step.verb == "list":
        return send("GET", f"{path}?{quote(query, safe='=&')}", None)
    body = {"apiVersion": f"{group}/{step.version}", **body}
    if step.verb == "create":
        return send("POST", f"{path}?{query}", body)
    path += f"/{body['metadata'].get('name', 'a')}"
    if step.verb == "replace":
        version = send("GET", path, None)[1]["metadata"]["resourceVersion"]
        body["metadata"] = {**body["metadata"], "resourceVersion": version}
        return send("PUT", path, body)
    del body["apiVersion"]
    if query in ("status", "scale"):
        return send("MERGE", f"{path}/{query}", body)
    return send("MERGE", f"{path}?{query}", body)


def _wait(case: Case, versions: list[JSON], send: Send, *, settle: bool = False) -> None:
    """Until the kind is served; what changed behind the same path shows itself a moment later."""
    group = case.definition["spec"]["group"]
    served = [it["name"] for it in versions if it["served"]]
    path = f"/apis/{group}/{served[0]}/namespaces/default/things"
    while send("GET", path, None)[0] != 200:
        send("WAIT", path, None)
    if settle:
        send("WAIT", path, None)


def _answer(
    label: str, code: int, reply: JSON, warnings: list[str], *, shown: bool = True
) -> Answer:
    told = tuple(sorted(map(_plain, warnings)))
    if code // 100 == 2:
        return Answer(label, code, object=_shown(reply) if shown else None, warnings=told)
    found = (reply.get("details") or {}).get("causes") or ()
    causes = sorted(
        (it.get("field", ""), it.get("reason", ""), _plain(it.get("message", ""))) for it in found
    )
    # With several causes their order is that of a map of Go.
    message = "" if len(causes) > 1 else _plain(reply.get("message", ""))
    return Answer(label, code, reply.get("reason", ""), message, tuple(causes), warnings=told)


def _plain(text: str) -> str:
    """Without the number that types are given anew each time."""
    return _TYPE_NAME.sub("selfType", text)


def _shown(reply: JSON) -> Any:
    if "items" in reply:
        return sorted(it["metadata"]["name"] for it in reply["items"])
    kept = {name: part for name, part in reply.items() if name != "metadata"}
    metadata = reply.get("metadata") or {}
    return {**kept, "metadata": {it: part for it, part in metadata.items() if it not in _GIVEN}}


def recorded_answers() -> list[Answer]:
    lines = gzip.decompress(ANSWERS.read_bytes()).splitlines()
    return [read_answer(json.loads(line)) for line in lines]


def read_answer(fields: list[Any]) -> Answer:
    """As it was before it was written as JSON."""
    label, code, reason, message, causes, shown, warnings = fields
    return Answer(label, code, reason, message, tuple(map(tuple, causes)), shown, tuple(warnings))


def _real_send(connection: http.client.HTTPSConnection) -> Send:
    clock = ScaledClock(1)

    def send(method: str, path: str, body: Any) -> tuple[int, JSON, list[str]]:
        if method == "WAIT":
            clock.wait_until(clock.now() + SECOND // 2)
            return 0, {}, []
        form = "application/merge-patch+json" if method == "MERGE" else "application/json"
        headers = {"Authorization": "Bearer token-of-somebody", "Content-Type": form}
        text = None if body is None else json.dumps(body)
        connection.request("PATCH" if method == "MERGE" else method, path, text, headers)
        reply = connection.getresponse()
        read = reply.read()
        warnings = [it.partition(" - ")[2] for it in reply.headers.get_all("Warning") or ()]
        return reply.status, json.loads(read) if read.startswith(b"{") else {}, warnings

    return send


def asked_of_the_real(folder: Path) -> list[Answer]:
    """The answers of the kube-apiserver of this machine."""
    server = RealServer(folder)
    trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    connection = http.client.HTTPSConnection(server.url.removeprefix("https://"), context=trust)
    try:
        return [*all_asked(_real_send(connection))]
    finally:
        connection.close()
        server.stop()


def write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps(answer) for answer in asked_of_the_real(Path(folder))]
    ANSWERS.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    write()
