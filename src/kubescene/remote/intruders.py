"""Finds out that somebody else has written while a scenario had the cluster.

With the admission webhook nobody can. Without it, what others write would change the result, and
nobody would know: so the scenario fails and says who it was. The engine makes one write at a time
and knows what the server answered, so a change that is newer than the newest answer about its
object is somebody else's. What the server does for itself is not looked at, nor are bookkeeping
and the system namespaces.
"""

from collections.abc import Container

from kubescene.api.disruption_budgets import BUDGETS
from kubescene.api.kinds import BOOKKEEPING
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.plugins.service_account import DEFAULT_ACCOUNT, SERVICE_ACCOUNTS
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.remote.wiping import SYSTEM_NAMESPACES, is_of_server
from kubescene.types import JsonObject

UNKNOWN = "somebody"
ACCOUNT = (SERVICE_ACCOUNTS, DEFAULT_ACCOUNT)
"""Which a controller manager makes for every namespace, as we do."""
ENDINGS = ("delete", "evict")


class Intruders:
    """Told of every answer to our own writes, and then of every change."""

    def __init__(self, managers: Container[str]) -> None:
        """``managers`` are the field managers that Kubescene writes as."""
        self._managers = managers
        self._is_looking = False
        self._answered: dict[tuple[GroupResource, str, str], int] = {}
        self._ended: set[str] = set()
        self.found = ""
        """What the first of them did; empty as long as there was none."""

    def look(self) -> None:
        """A scenario has the cluster from now on."""
        self._is_looking = True
        self.found = ""

    def look_away(self) -> None:
        """Everybody may write again."""
        self._is_looking = False
        self.found = ""
        self._answered.clear()
        self._ended.clear()

    def answered(self, verb: str, record: Record) -> None:
        """A write of our own was accepted."""
        key = (record.resource, *record.key)
        self._answered[key] = max(record.revision, self._answered.get(key, 0))
        if verb in ENDINGS or record.deleting:
            self._ended.add(record.uid)
            if record.resource == DEFINITIONS:
                self._ended.add(record.name)  # which is what its resource is called

    def heard(self, change: Change) -> None:
        """Something has changed on the server."""
        if self._is_looking and not self.found and not self._is_expected(change):
            record = change.record
            what = {ChangeType.ADDED: "created", ChangeType.DELETED: "deleted"}
            self.found = (
                f'{record.resource} "{record.name}" was {what.get(change.type, "changed")} by '
                f"{self._writer_of(change)}"
            )

    def _is_expected(self, change: Change) -> bool:
        record = change.record
        if is_aside(record):
            return True
        if change.type is ChangeType.DELETED:
            # With its definition, a server takes away all that is of a kind.
            return record.uid in self._ended or str(record.resource) in self._ended
        if record.resource == BUDGETS and is_status_alone(change):
            return True  # an eviction notes there what it has taken
        return record.revision <= self._answered.get((record.resource, *record.key), 0)

    def _writer_of(self, change: Change) -> str:
        """Another field manager that wrote last, as far as the object tells: not of a deletion."""
        if change.type is ChangeType.DELETED:
            return UNKNOWN
        entries = [
            entry
            for entry in change.object["metadata"].get("managedFields") or ()
            if entry.get("manager") not in self._managers
        ]
        newest = max(entries, key=lambda entry: entry.get("time") or "", default=None)
        return UNKNOWN if newest is None else str(newest.get("manager") or UNKNOWN)


def is_aside(record: Record) -> bool:
    """Whether a change of the object means nothing to a scenario."""
    return (
        record.resource in BOOKKEEPING
        or record.resource == DEFINITIONS
        or record.namespace in SYSTEM_NAMESPACES
        or (record.resource, record.name) == ACCOUNT
        or is_of_server(record)
    )


def is_status_alone(change: Change) -> bool:
    before = change.previous_object
    return before is not None and generation(before) == generation(change.object)


def generation(obj: JsonObject) -> int:
    return int(obj["metadata"].get("generation") or 0)
