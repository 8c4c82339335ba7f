"""What one write to a real API server entails, as far as the server does not do it by itself."""

from functools import partial
from typing import TYPE_CHECKING

from kubescene.api.kinds import SERVICE_ACCOUNT
from kubescene.api.records import Record
from kubescene.errors import AlreadyExistsError
from kubescene.registry.admission.plugins.service_account import DEFAULT_ACCOUNT, SERVICE_ACCOUNTS
from kubescene.registry.consequences import ACCOUNTS_CONTROLLER, Consequences
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.registry.definition_status import is_true
from kubescene.registry.writes import WriteRequest

if TYPE_CHECKING:
    from kubescene.remote.registry import RemoteRegistry


class RemoteConsequences(Consequences):
    """Namespaces get their service accounts here, unless a controller manager was faster.

    Without them a server takes no pods. Definitions are waited for.
    """

    _registry: "RemoteRegistry"

    def created(self, record: Record) -> None:
        if record.resource == DEFINITIONS:
            self._await_kind(record.name)
        else:
            super().created(record)

    def updated(self, record: Record) -> None:
        if record.resource == DEFINITIONS and record.deleting:
            self._registry.wait_gone(record)

    def removed(self, record: Record) -> None:
        if record.resource != DEFINITIONS:
            super().removed(record)

    def _give_account(self, namespace: str) -> None:
        try:
            super()._give_account(namespace)
        except AlreadyExistsError:
            self._take_account(namespace)

    def _take_account(self, namespace: str) -> None:
        """A controller manager was faster: what it did is told as if it were ours."""
        registry = self._registry
        key = (SERVICE_ACCOUNTS, namespace, DEFAULT_ACCOUNT)
        registry.link.mirror.wait_until(
            lambda: registry.store.get(*key) is not None, f"the service account of {namespace}"
        )
        account = registry.store.get(*key)
        assert account is not None
        kind = registry.type_of(SERVICE_ACCOUNT)
        body = {"apiVersion": kind.api_version, "kind": kind.kind}
        metadata = {"name": DEFAULT_ACCOUNT, "namespace": namespace}
        told = WriteRequest(ACCOUNTS_CONTROLLER, "create", kind, body=body | {"metadata": metadata})
        registry.tell(told, account, None)

    def _await_kind(self, definition: str) -> None:
        registry = self._registry
        registry.link.mirror.wait_until(
            partial(is_in_force, registry, definition), f"that {definition} is in force"
        )


def is_in_force(registry: "RemoteRegistry", definition: str) -> bool:
    """Whether objects of a definition can be created, and are followed."""
    record = registry.store.get(DEFINITIONS, "", definition)
    if record is None or not is_true(registry.store.decoded(record), "Established"):
        return False
    kinds = registry.custom.kinds_of(definition)
    client = registry.link.client
    return all(client.is_following(kind.resource_type.group_resource) for kind in kinds)
