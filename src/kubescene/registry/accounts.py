"""The tokens of service accounts, and the certificate that every namespace of a real cluster has.

On a real cluster controllers see to them a moment after a write; here it is part of it. A Secret
that asks for the token of an account is filled, and goes with the account. ``kube-root-ca.crt``
comes back if it is deleted or changed. A controller of served worlds makes it; elsewhere no pod
reads it, and it is kept where somebody has brought it along.
"""

from base64 import b64encode
from contextlib import suppress

from kubescene.actors import Actor, Component
from kubescene.api.kinds import ROOT_CERTIFICATE
from kubescene.api.options import DeleteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.errors import ApiError
from kubescene.registry.admission.plugins.namespace_lifecycle import NAMESPACES
from kubescene.registry.admission.plugins.service_account import SERVICE_ACCOUNTS
from kubescene.registry.base import RegistryBase
from kubescene.types import JsonObject

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CONFIG_MAPS = GroupResource("", "configmaps")
SECRET = GroupVersionKind("", "v1", "Secret")
SECRETS = GroupResource("", "secrets")
RESOURCES = frozenset({SERVICE_ACCOUNTS, CONFIG_MAPS, SECRETS})

TOKENS_CONTROLLER = Actor("tokens-controller", Component.CONTROLLER, inside=True)
PUBLISHER = Actor("root-ca-certificate-publisher", Component.CONTROLLER, inside=True)

TOKEN_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"


class Accounts:
    """What follows from writes to accounts, Secrets and ConfigMaps.

    What a quota or a rule refuses is left undone: nobody hears of it but in the world itself.
    """

    def __init__(self, registry: RegistryBase) -> None:
        self._registry = registry
        self._is_restoring = False

    def written(self, record: Record, before: Record | None) -> None:
        if record.resource == SECRETS:
            self._complete(record)
        elif before is not None and is_certificate(record) and not self._is_restoring:
            self._restore(record, before)

    def removed(self, record: Record) -> None:
        if record.resource == SERVICE_ACCOUNTS:
            self._take_tokens(record)
        elif is_certificate(record) and self._is_open(record.namespace):
            obj = self._registry.store.decoded(record)
            metadata = {"name": record.name, "namespace": record.namespace}
            if annotations := obj["metadata"].get("annotations"):
                metadata["annotations"] = annotations
            again = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            with suppress(ApiError):
                self._registry.create(PUBLISHER, {**again, "data": obj.get("data") or {}})

    def _is_open(self, namespace: str) -> bool:
        found = self._registry.store.get(NAMESPACES, "", namespace)
        return found is not None and found.phase != "Terminating"

    def _restore(self, record: Record, before: Record) -> None:
        store = self._registry.store
        changed, data = store.decoded(record).get("data"), store.decoded(before).get("data")
        if changed != data:
            back = {**dict.fromkeys(changed or ()), **(data or {})}
            self._is_restoring = True
            try:
                self._patch(PUBLISHER, CONFIG_MAP, record, {"data": back})
            finally:
                self._is_restoring = False

    # -- tokens ----------------------------------------------------------------------------

    def _complete(self, record: Record) -> None:
        """Fill a Secret that asks for a token; without its account it goes."""
        store, secret = self._registry.store, self._registry.store.decoded(record)
        name = asked_account(secret)
        if not name or secret["metadata"].get("deletionTimestamp"):
            return
        account = store.get(SERVICE_ACCOUNTS, record.namespace, name)
        annotations = secret["metadata"]["annotations"]
        if account is None or annotations.get(ACCOUNT_UID) not in (None, "", account.uid):
            self._delete(record)
            return
        data = secret.get("data") or {}
        missing = {
            key: value
            for key, value in self._token(record.namespace, name).items()
            if key not in data
        }
        if missing or not annotations.get(ACCOUNT_UID):
            metadata = {"annotations": {ACCOUNT_UID: account.uid}}
            patch = {"metadata": metadata, **({"data": missing} if missing else {})}
            self._patch(TOKENS_CONTROLLER, SECRET, record, patch)

    def _token(self, namespace: str, account: str) -> JsonObject:
        """The data of a token. It says whose it is, and opens nothing."""
        store = self._registry.store
        known = store.get(CONFIG_MAPS, namespace, ROOT_CERTIFICATE)
        published = {} if known is None else store.decoded(known).get("data") or {}
        texts = {
            "ca.crt": str(published.get("ca.crt", "")),
            "namespace": namespace,
            "token": f"system:serviceaccount:{namespace}:{account}",
        }
        return {key: b64encode(text.encode()).decode() for key, text in texts.items()}

    def _take_tokens(self, account: Record) -> None:
        store = self._registry.store
        for record in store.list(SECRETS, account.namespace):
            secret = store.decoded(record)
            of_it = asked_account(secret) == account.name
            if of_it and secret["metadata"]["annotations"].get(ACCOUNT_UID) == account.uid:
                self._delete(record)

    def _delete(self, record: Record) -> None:
        registry, options = self._registry, DeleteOptions()
        kind = registry.scheme.of(SECRET)
        with suppress(ApiError):
            registry.delete(TOKENS_CONTROLLER, kind, record.namespace, record.name, options=options)

    def _patch(
        self, actor: Actor, gvk: GroupVersionKind, record: Record, patch: JsonObject
    ) -> None:
        registry = self._registry
        kind = registry.scheme.of(gvk)
        with suppress(ApiError):
            registry.patch(actor, kind, record.namespace, record.name, patch, PatchType.MERGE)


def is_certificate(record: Record) -> bool:
    return record.name == ROOT_CERTIFICATE and record.resource == CONFIG_MAPS


def asked_account(secret: JsonObject) -> str:
    """Whose token a Secret is to hold; empty if it is another kind of Secret."""
    if secret.get("type") != TOKEN_TYPE:
        return ""
    return str((secret["metadata"].get("annotations") or {}).get(ACCOUNT_NAME, ""))
