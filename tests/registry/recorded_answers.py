"""What a real kube-apiserver says to sparse objects: asked, kept, read.

``data/sparse_answers.jsonl.gz`` has a line per object: its label, the code of the answer, and of a
refusal the fields with their reasons. ``python -m registry.recorded_answers`` in ``tests`` asks the
kube-apiserver of this machine again and writes the file.
"""

import gzip
import http.client
import json
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kubescene.api.builtin import builtin_scheme
from remote.api_servers import RealServer
from sparse_objects import Sparse, sparse_objects

ANSWERS = Path(__file__).parent / "data" / "sparse_answers.jsonl.gz"
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


def recorded_answers() -> list[Answer]:
    lines = gzip.decompress(ANSWERS.read_bytes()).splitlines()
    return [
        Answer(label, code, tuple((field, reason) for field, reason in causes))
        for label, code, causes in map(json.loads, lines)
    ]


def ask(folder: Path) -> list[Answer]:
    """The answers of a real kube-apiserver, which stores nothing of it."""
    server = RealServer(
        folder,
        "--runtime-config=api/all=true",
        "--feature-gates=" + ",".join(f"{gate}=true" for gate in GATES.split(",")),
    )
    try:
        return list(_asked(server, folder))
    finally:
        server.stop()


def _asked(server: RealServer, folder: Path) -> Iterator[Answer]:
    trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    connection = http.client.HTTPSConnection(server.url.removeprefix("https://"), context=trust)
    account = {"metadata": {"name": "default"}}
    _post(connection, "/api/v1/namespaces/default/serviceaccounts", account)
    for sparse in sparse_objects():
        code, status = _post(connection, _path(sparse) + "?dryRun=All", sparse.object)
        yield Answer(sparse.label, code, causes_of(status) if code // 100 != 2 else ())
    connection.close()


def _path(sparse: Sparse) -> str:
    version, kind = sparse.object["apiVersion"], sparse.object["kind"]
    resource_type = builtin_scheme().of_kind(version, kind)
    place = "/namespaces/default" if resource_type.namespaced else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{place}/{resource_type.plural}"


def _post(
    connection: http.client.HTTPSConnection, path: str, obj: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": "Bearer token-of-somebody", "Content-Type": "application/json"}
    try:
        connection.request("POST", path, json.dumps(obj), headers)
        reply = connection.getresponse()
        body = reply.read()
    except http.client.RemoteDisconnected:
        connection.close()
        return GONE, {}
    return reply.status, json.loads(body) if body.startswith(b"{") else {}


def write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps(answer) for answer in ask(Path(folder))]
    ANSWERS.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    write()
