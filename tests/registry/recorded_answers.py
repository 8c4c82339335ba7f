"""What a real kube-apiserver says to sparse objects: asked, kept, read.

``data/sparse_answers.jsonl.gz`` has a line per object: its label, the code of the answer, and of a
refusal the fields with their reasons. ``data/sparse_statuses.jsonl.gz`` has the same of statuses.
``python -m registry.recorded_answers`` in ``tests`` asks the kube-apiserver of this machine again
and writes both files.
"""

import gzip
import http.client
import json
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from kubescene.api.builtin import builtin_scheme
from remote.api_servers import RealServer
from sparse_objects import Sparse, sparse_objects, sparse_statuses

DATA = Path(__file__).parent / "data"
ANSWERS, STATUSES = DATA / "sparse_answers.jsonl.gz", DATA / "sparse_statuses.jsonl.gz"
GATES = (
    "ClusterTrustBundle,GenericWorkload,GangScheduling,StorageVersionAPI,APIServerIdentity,"
    "StorageVersionMigrator,PodCertificateRequest"
)
GONE = 0
"""The server ended the connection without an answer: it panicked at the object."""


class Answer(NamedTuple):
    """What was said to one object; ``causes`` are fields and reasons, sorted."""

    label: str
    code: int
    causes: tuple[tuple[str, str], ...] = ()

    @property
    def accepts(self) -> bool:
        return self.code // 100 == 2


def causes_of(status: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    found = (status.get("details") or {}).get("causes") or ()
    return tuple(sorted({(it.get("field", ""), it.get("reason", "")) for it in found}))


def recorded_answers(file: Path = ANSWERS) -> list[Answer]:
    lines = gzip.decompress(file.read_bytes()).splitlines()
    return [
        Answer(label, code, tuple((field, reason) for field, reason in causes))
        for label, code, causes in map(json.loads, lines)
    ]


Asking: TypeAlias = Callable[[http.client.HTTPSConnection], Iterator[Answer]]


def ask(folder: Path, asking: Asking) -> list[Answer]:
    """The answers of a real kube-apiserver."""
    server = RealServer(
        folder,
        "--runtime-config=api/all=true",
        "--feature-gates=" + ",".join(f"{gate}=true" for gate in GATES.split(",")),
    )
    trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    connection = http.client.HTTPSConnection(server.url.removeprefix("https://"), context=trust)
    account = {"metadata": {"name": "default"}}
    try:
        _send(connection, "POST", "/api/v1/namespaces/default/serviceaccounts", account)
        return list(asking(connection))
    finally:
        connection.close()
        server.stop()


def objects_asked(connection: http.client.HTTPSConnection) -> Iterator[Answer]:
    """Nothing of it is stored."""
    for sparse in sparse_objects():
        path = f"{_path(sparse)}?dryRun=All"
        yield _answer(sparse, *_send(connection, "POST", path, sparse.object))


def statuses_asked(connection: http.client.HTTPSConnection) -> Iterator[Answer]:
    """Of objects that exist; the statuses themselves are not stored."""
    made: set[str] = set()
    for whole, sparse in sparse_statuses():
        if whole.label not in made:
            made.add(whole.label)
            _send(connection, "POST", _path(whole), whole.object)
        path = f"{_path(whole)}/{whole.object['metadata']['name']}/status?dryRun=All"
        yield _answer(sparse, *_send(connection, "PATCH", path, sparse.object))


def _answer(sparse: Sparse, code: int, status: dict[str, Any]) -> Answer:
    return Answer(sparse.label, code, causes_of(status) if code // 100 != 2 else ())


def _path(sparse: Sparse) -> str:
    version, kind = sparse.object["apiVersion"], sparse.object["kind"]
    resource_type = builtin_scheme().of_kind(version, kind)
    place = "/namespaces/default" if resource_type.namespaced else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{place}/{resource_type.plural}"


def _send(
    connection: http.client.HTTPSConnection, method: str, path: str, obj: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    form = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"Authorization": "Bearer token-of-somebody", "Content-Type": form}
    try:
        connection.request(method, path, json.dumps(obj), headers)
        reply = connection.getresponse()
        body = reply.read()
    except http.client.RemoteDisconnected:
        connection.close()
        return GONE, {}
    return reply.status, json.loads(body) if body.startswith(b"{") else {}


def write() -> None:
    for file, asking in ((ANSWERS, objects_asked), (STATUSES, statuses_asked)):
        with tempfile.TemporaryDirectory() as folder:
            lines = [json.dumps(answer) for answer in ask(Path(folder), asking)]
        file.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    write()
