"""The Scenario object in an API server that is not ours.

The spec is its author's, the status is the engine's: it is written through the ``status``
subresource, as a merge patch of what has changed, so that an edit is never lost and a change of
phase does not send the timeline again.

etcd takes no request beyond a limit, 1.5 MiB unless it was told otherwise. A timeline that would
bring the object near it is not published: ``scenarioResult.storedAt`` names the run directory
that has it instead.
"""

from functools import partial
from pathlib import Path
from typing import SupportsBytes

import orjson

from kubescene.actors import ENGINE
from kubescene.api.kinds import SCENARIO
from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import diff_merge_patch
from kubescene.api.records import Record
from kubescene.client import ObjectRef
from kubescene.errors import ApiError, ScenarioGoneError
from kubescene.remote.cluster import RemoteCluster
from kubescene.remote.link import Announcement
from kubescene.scenario.resource import ToldStatus, headed
from kubescene.types import JsonObject
from kubescene.version import __version__

MOST_BYTES = 1_250_000
"""Of an object with its timeline: etcd's limit, less what the server adds to it."""
TOO_LARGE = ("too large", "larger than max")
"""What etcd, and the API server's client of it, say of a request that they do not take."""


class RemoteScenario(ToldStatus):
    """Writes the status of one Scenario. ``folder`` is where its timeline is kept in any case.

    With ``waits``, a write returns when the mirror shows it.
    """

    def __init__(
        self,
        cluster: RemoteCluster,
        record: Record,
        *,
        folder: Path | None = None,
        waits: bool = False,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        super().__init__(record)
        self._cluster = cluster
        self._folder = folder
        self._waits = waits
        self._most_bytes = most_bytes
        self._spec: JsonObject = {}
        self._metadata: JsonObject = {}
        self._take_over(record)
        self._written: JsonObject = cluster.store.decoded(record).get("status") or {}
        self._result: tuple[SupportsBytes | None, JsonObject] = (None, {})
        self._is_stored_apart = False

    @property
    def exists(self) -> bool:
        return self._current() is not None

    @property
    def object(self) -> JsonObject:
        """The Scenario as its author last wrote it, without status."""
        current = self._current()
        if current is not None and current is not self._record:
            self._take_over(current)
        return {
            "apiVersion": SCENARIO.api_version,
            "kind": SCENARIO.kind,
            "metadata": self._metadata,
            "spec": self._spec,
        }

    def is_mine(self, record: Record) -> bool:
        """A server counts the changes of a spec: those of a status leave the number alone."""
        metadata = self._cluster.store.decoded(record)["metadata"]
        return bool(metadata.get("generation") == self._metadata.get("generation"))

    def header(self) -> JsonObject:
        """The object without its timeline, and who wrote which field when."""
        return headed(self.object, self._status())

    def write(self) -> None:
        """Make the status visible; raises `ScenarioGoneError` if the object was deleted."""
        try:
            self._write()
        except ApiError as error:
            if self._is_stored_apart or not is_too_large(error):
                raise
            self._is_stored_apart = True
            self._write()

    # -- inside ----------------------------------------------------------------------------

    def _write(self) -> None:
        status = {**self._status(), "scenarioResult": self._published()}
        change = diff_merge_patch(self._written, status)
        if not change:
            return
        patch = {"metadata": {"uid": self.uid}, "status": change}
        link, remote = self._cluster.registry.link, self._cluster.remote
        write = Announcement("patch", self._record.resource, "", self.name, "status")
        ask = partial(
            remote.patch,
            ObjectRef(SCENARIO, self.name),
            patch,
            subresource="status",
            options=WriteOptions(field_manager=ENGINE.manager),
        )
        try:
            (link.send if self._waits else link.only_send)(write, ask)
        except ApiError:
            self._cluster.mirror.hear()
            if not self.exists:
                raise ScenarioGoneError(
                    f"scenario {self.name!r} was deleted while it was played"
                ) from None
            raise
        self._written = status

    def _published(self) -> JsonObject:
        """``scenarioResult``, made anew when there is another timeline."""
        timeline, result = self._result
        apart = "storedAt" in result
        if timeline is not self.timeline or apart is not self._is_stored_apart:
            self._result = (self.timeline, self._make_result(bytes(self.timeline)))
        return self._result[1]

    def _make_result(self, timeline: bytes) -> JsonObject:
        result: JsonObject = {"simulatorVersion": __version__}
        if self._folder is not None and len(timeline) > self._room():
            self._is_stored_apart = True
        if not self._is_stored_apart:
            return {**result, "timeline": orjson.loads(timeline)}
        message = (
            f"the timeline, {len(timeline)} bytes, is larger than the API server can store "
            f"beside the rest of this object"
        )
        return {**result, "timeline": {}, "storedAt": str(self._folder), "message": message}

    def _room(self) -> int:
        spec = len(orjson.dumps(self._spec)) + len(orjson.dumps(self._metadata))
        return self._most_bytes - spec - len(orjson.dumps(self._status()))

    def _current(self) -> Record | None:
        """The object; None if it is gone, even if another one has its name."""
        record = self._record
        found = self._cluster.store.get(record.resource, record.namespace, record.name)
        return found if found is not None and found.uid == record.uid else None

    def _take_over(self, record: Record) -> None:
        obj = self._cluster.store.decoded(record)
        self._record = record
        self._metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
        spec: JsonObject = obj.get("spec") or {}
        if spec != self._spec:
            self._spec = spec
            self._is_draft = bool(spec.get("events"))


def is_too_large(error: ApiError) -> bool:
    return any(words in error.message for words in TOO_LARGE)
