"""What one write entails at once, and who is said to have done it.

On a real cluster controllers do this a moment later: every namespace gets a ``default`` service
account (its tokens are those of `kubescene.registry.accounts`), a definition takes its objects with
it, a freed name goes to the definition that waits for it. What a quota has used is raised by
admission itself. Such writes are made in the names of those controllers, so they are in the
timeline, and they never move a step.
"""

from kubescene.actors import Actor, Component
from kubescene.api.options import ADMITTED, DeleteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.quotas import QUOTA, QUOTAS
from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource, ResourceType
from kubescene.clock import format_time
from kubescene.errors import ApiError, NotFoundError
from kubescene.registry import accounts
from kubescene.registry.accounts import Accounts
from kubescene.registry.admission.plugins.namespace_lifecycle import NAMESPACES
from kubescene.registry.admission.plugins.resource_quota import (
    QuotaExceededError,
    is_counted,
    raised,
)
from kubescene.registry.admission.plugins.service_account import (
    DEFAULT_ACCOUNT,
    SERVICE_ACCOUNTS,
)
from kubescene.registry.base import RegistryBase
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.registry.definition_status import CLEANUP_FINALIZER
from kubescene.registry.writes import WriteRequest

ACCOUNTS_CONTROLLER = Actor("service-account-controller", Component.CONTROLLER, inside=True)
QUOTA_ADMISSION = Actor("resourcequota-admission", Component.CONTROLLER, inside=True)
DEFINITIONS_CONTROLLER = Actor(
    "custom-resource-definition-controller", Component.CONTROLLER, inside=True
)


class Consequences:
    """Called by the registry after a write was made and told."""

    def __init__(self, registry: RegistryBase) -> None:
        self._registry = registry
        self._accounts = Accounts(registry)

    def created(self, record: Record) -> None:
        if record.resource == NAMESPACES:
            self._give_account(record.name)
        elif record.resource == DEFINITIONS:
            self._registry.custom.install(record)
        elif record.resource in accounts.RESOURCES:
            self._accounts.written(record, None)

    def updated(self, record: Record, before: Record | None = None) -> None:
        """``before`` is what was there; None if that does not matter, as with what is imported."""
        if record.resource == DEFINITIONS:
            self._registry.custom.install(record)
            if CLEANUP_FINALIZER in self._finalizers(record):
                self._clean_up(record)
        elif before is not None and record.resource in accounts.RESOURCES:
            self._accounts.written(record, before)

    def removed(self, record: Record) -> None:
        if record.resource == DEFINITIONS:
            self._registry.custom.uninstall(record.name)
            self._reconsider_names()
        elif record.resource in accounts.RESOURCES:
            self._accounts.removed(record)
            if record.resource == SERVICE_ACCOUNTS and record.name == DEFAULT_ACCOUNT:
                self._give_account(record.namespace)
        elif self._registry.custom.of_resource(record.resource):
            self._release_definition(record.resource)

    def charge(self, request: WriteRequest, record: Record, before: Record | None) -> None:
        """Raise what quotas have used by what was written, as admission has allowed it."""
        registry, store, resource = self._registry, self._registry.store, record.resource
        verb = "create" if before is None else "update"
        if not store.count(QUOTAS) or not is_counted(verb, request.subresource, resource):
            return
        old = None if before is None else store.decoded(before)
        try:
            charges = raised(store.decoded(record), old, resource, store, registry.clock.now())
        except QuotaExceededError:
            return  # imported past admission: the controller counts it
        quotas = registry.scheme.of(QUOTA)
        for each in charges:
            patch = {"status": {"used": each.used}}
            registry.patch(
                QUOTA_ADMISSION,
                quotas,
                record.namespace,
                each.quota,
                patch,
                PatchType.MERGE,
                subresource="status",
                options=ADMITTED,
            )

    # -- service accounts ------------------------------------------------------------------

    def _give_account(self, namespace: str) -> None:
        found = self._registry.store.get(NAMESPACES, "", namespace)
        if found is None or found.phase == "Terminating":
            return
        account = {"name": DEFAULT_ACCOUNT, "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}
        try:
            self._registry.create(ACCOUNTS_CONTROLLER, body)
        except ApiError:
            registry = self._registry
            if not registry.store.count(QUOTAS) and registry.admission.is_quiet:
                raise

    # -- definitions -----------------------------------------------------------------------

    def _finalizers(self, record: Record) -> list[str]:
        metadata = self._registry.store.decoded(record)["metadata"]
        return metadata.get("finalizers") or [] if metadata.get("deletionTimestamp") else []

    def _clean_up(self, definition: Record) -> None:
        """Delete all objects of a definition that is to go; the last one takes it along."""
        resource = self._resource_of(definition)
        if resource is None:
            return
        store, options = self._registry.store, DeleteOptions()
        for record in store.list(resource.group_resource):
            if not store.decoded(record)["metadata"].get("deletionTimestamp"):
                self._registry.delete(
                    DEFINITIONS_CONTROLLER, resource, record.namespace, record.name, options=options
                )
        self._release_definition(resource.group_resource)

    def _resource_of(self, definition: Record) -> ResourceType | None:
        kinds = self._registry.custom.kinds_of(definition.name)
        return kinds[0].resource_type if kinds else None

    def _release_definition(self, resource: GroupResource) -> None:
        """Let a definition go that waits for its last object."""
        store = self._registry.store
        record = store.get(DEFINITIONS, "", str(resource))
        if record is None or store.count(resource):
            return
        finalizers = self._finalizers(record)
        if CLEANUP_FINALIZER in finalizers:
            kept = [it for it in finalizers if it != CLEANUP_FINALIZER]
            self._patch_definition(record.name, {"metadata": {"finalizers": kept or None}})

    def _reconsider_names(self) -> None:
        """Names have become free: perhaps another definition wants them."""
        registry = self._registry
        now = format_time(registry.clock.now())
        for record in registry.store.list(DEFINITIONS):
            definition = registry.store.decoded(record)
            status = definition.get("status") or {}
            completed = registry.custom.completed(definition, status, now)
            if completed["status"] != status:
                change = {"status": completed["status"]}
                self._patch_definition(record.name, change, subresource="status")

    def _patch_definition(self, name: str, patch: object, *, subresource: str = "") -> None:
        registry = self._registry
        definitions = registry.scheme.of_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        try:
            registry.patch(
                DEFINITIONS_CONTROLLER,
                definitions,
                "",
                name,
                patch,
                PatchType.MERGE,
                subresource=subresource,
                options=ADMITTED,
            )
        except NotFoundError:
            return
