"""A cluster whose objects are held by a real API server.

Clock, event queue, crank, controllers and scheduler are those of every `Cluster`; its store is a
mirror, and its registry sends writes to the server. A scenario plays in it as in any other.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NoReturn, Protocol, Self

from kubescene.actors import ENGINE
from kubescene.api.gates import OpenGate, WriteGate
from kubescene.api.kinds import SCENARIO, SERVICE_ACCOUNT
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.client import ObjectRef
from kubescene.client.http import Endpoint, HttpClient
from kubescene.clock import Clock
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import AlreadyExistsError, ConfigurationError, NotFoundError
from kubescene.registry.admission.plugins.service_account import DEFAULT_ACCOUNT, SERVICE_ACCOUNTS
from kubescene.registry.consequences import ACCOUNTS_CONTROLLER
from kubescene.remote.link import Announcement, Link
from kubescene.remote.mirror import PATIENCE_S, Mirror
from kubescene.remote.registry import RemoteRegistry, is_in_force
from kubescene.remote.wiping import (
    NAMESPACES,
    SYSTEM,
    check_disposable,
    finalized,
    is_disposable,
    needs_release,
    order_of_wipe,
    survives,
)
from kubescene.scenario.fields.definition import scenario_definition
from kubescene.scenario.outsiders import Frozen
from kubescene.types import JsonObject

MANAGER = "kubescene"
"""The field manager of what the command itself installs."""
AT_ONCE = DeleteOptions(grace_period_s=0, propagation_policy="Background")
WEBHOOKS = ObjectRef(
    GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    "kubescene",
)
"""What tells the server to ask the admission webhook."""


class Gatekeeper(Protocol):
    """Keeps others from writing to the server."""

    def make(self) -> None:
        """Return when nobody else can write any more."""
        ...


class RemoteCluster(ClusterWorld):
    """The world behind ``endpoint``. Made, it has installed the definitions and seen everything."""

    def __init__(
        self,
        endpoint: Endpoint | str,
        options: ClusterOptions | None = None,
        *,
        controllers: ControllerRegistrations | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.remote = HttpClient(endpoint, ENGINE, patience_s=patience_s)
        self._patience_s = patience_s
        self.gatekeeper: Gatekeeper | None = None
        super().__init__(options, controllers=controllers)

    registry: RemoteRegistry

    def _make_registry(self, server_clock: Clock | None) -> RemoteRegistry:
        return RemoteRegistry(**self._registry_parts(server_clock))

    def _make_lane(self) -> None:
        """Every write goes to the server."""

    def _furnish(self) -> None:
        """Install the definitions and take over what the server holds."""
        self.remote.read_page("/version")  # a read first: what is wrong with it is plain to say
        self.unlock()
        self.scheme.unregister(SCENARIO)  # which comes with its definition
        definitions = [scenario_definition(), *self.registrations.definitions]
        for definition in definitions:
            self._install(definition)
        managers = {ENGINE.manager, ACCOUNTS_CONTROLLER.manager, *self.registrations}
        self.mirror = Mirror(self.remote, self.registry, managers, self._patience_s)
        self.registry.connect(Link(self.remote, self.mirror))
        self.mirror.begin()
        for definition in definitions:
            self._await_definition(definition["metadata"]["name"])
        self._learn_kinds()

    def _install(self, definition: JsonObject) -> None:
        """Make a definition, or bring it up to date."""
        options = WriteOptions(field_manager=MANAGER, force=True)
        ref = ObjectRef.to(definition)
        self.remote.patch(ref, definition, patch_type=PatchType.APPLY, options=options)

    def _await_definition(self, name: str) -> None:
        self.mirror.wait_until(partial(is_in_force, self.registry, name), f"that {name} is served")

    def _learn_kinds(self) -> None:
        """Know kinds that the server has and Kubescene has not: they can be created as well."""
        for api in self.remote.resources():
            if api.gvk not in self.scheme:
                kind = ResourceType(api.gvk, api.plural, api.namespaced, verbs=api.verbs)
                self.scheme.register(kind)

    def unlock(self) -> None:
        """Let the server ask no webhook of ours, also none of a process that was killed."""
        try:
            self.remote.delete(WEBHOOKS)
        except NotFoundError:
            return

    def guard(self, gate: WriteGate) -> None:
        """The gate is asked here before a write is sent; the gatekeeper turns others away."""
        super().guard(gate)
        is_open = isinstance(gate, OpenGate | Frozen)
        if not is_open and self.gatekeeper is not None and is_disposable(self._system_namespace()):
            self.gatekeeper.make()

    def close(self) -> None:
        """End all watches."""
        self.stop()
        self.remote.close()

    # -- beginning anew ------------------------------------------------------------------------

    def begin_anew(self) -> None:
        super().begin_anew()
        self._give_accounts()
        self.mirror.intruders.look()

    def _left_over(self) -> Iterator[Record]:
        self.mirror.hear()
        check_disposable(self._system_namespace())
        for resource in sorted(self.store.resources(), key=order_of_wipe):
            for record in self.store.in_order_of_creation(resource):
                ours = self.mirror.is_ours(record)
                if not survives(record, self.store.decoded(record), is_ours=ours):
                    yield record

    def _system_namespace(self) -> JsonObject | None:
        found = self.store.get(NAMESPACES, "", SYSTEM)
        return None if found is None else self.store.decoded(found)

    def _take_away(self, records: Iterable[Record]) -> None:
        """Delete objects whatever holds them; the mirror shows it when this returns."""
        taken = [*records]
        for record in taken:
            try:
                self._delete(record)
            except NotFoundError:
                continue  # what owned it took it along
        for record in taken:
            self.mirror.wait_until(
                partial(self.registry.is_gone, record),
                f"the end of {record.resource} {record.namespace}/{record.name}",
            )

    def _delete(self, record: Record) -> None:
        obj = self.store.decoded(record)
        ref = ObjectRef.to(obj)
        if needs_release(obj):
            release = partial(self.remote.patch, ref, {"metadata": {"finalizers": None}})
            self._send("patch", record, release)
        if not (record.deleting and needs_release(obj)):
            self._send("delete", record, partial(self.remote.delete, ref, options=AT_ONCE))
        if record.resource == NAMESPACES:
            body = finalized(obj)
            end = partial(self.remote.update, body, subresource="finalize")
            self._send("update", record, end, "finalize")

    def _send(
        self, verb: str, record: Record, ask: Callable[[], Record], subresource: str = ""
    ) -> None:
        write = Announcement(verb, record.resource, record.namespace, record.name, subresource)
        self.registry.link.only_send(write, ask)

    def _give_accounts(self) -> None:
        """Every namespace has its service account; without one a server takes no pods."""
        for namespace in self.store.list(NAMESPACES):
            key = (namespace.name, DEFAULT_ACCOUNT)
            if namespace.phase != "Terminating" and not self.store.get(SERVICE_ACCOUNTS, *key):
                self._give_account(namespace.name)

    def _give_account(self, namespace: str) -> None:
        account = {
            "apiVersion": SERVICE_ACCOUNT.api_version,
            "kind": SERVICE_ACCOUNT.kind,
            "metadata": {"name": DEFAULT_ACCOUNT, "namespace": namespace},
        }
        write = Announcement("create", SERVICE_ACCOUNTS, namespace, DEFAULT_ACCOUNT)
        options = WriteOptions(field_manager=ACCOUNTS_CONTROLLER.manager)
        try:
            self.registry.link.send(write, partial(self.remote.create, account, options=options))
        except AlreadyExistsError:
            return  # a controller manager was faster

    # -- what cannot be -------------------------------------------------------------------------

    def fork(self) -> Self:
        raise ConfigurationError(
            "a world that an API server holds cannot be copied: play the scenario without "
            "--kubeconfig to look at what might have been"
        )

    def reset(self) -> NoReturn:
        raise ConfigurationError(
            "a world that an API server holds is not reset: create a Scenario, which begins with "
            "an empty cluster"
        )
