"""Telling the API server whom to ask, and taking that back.

The webhook is registered while a scenario is under way, and only then: between scenarios nobody's
writes depend on this process. It *fails closed*: what the API server cannot ask about is refused,
since a write that slips in makes the result a silent lie. A cluster that is left locked by a
process that was killed is a disposable one, and is unlocked by the next start of the command, or by
``kubectl delete validatingwebhookconfiguration kubescene``. Edits of Scenarios are looked at as
well, failing open: the engine says the same when it reads them.
"""

import base64

from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.clock import MILLISECOND, SECOND, ScaledClock
from kubescene.errors import ApiError, ScenarioError
from kubescene.remote.cluster import MANAGER, WEBHOOKS, RemoteCluster
from kubescene.remote.webhook.reviews import PROBE, PROBED, REVIEWS, SERVER_USERS
from kubescene.scenario.fields.definition import SCENARIOS
from kubescene.types import JsonObject

GATE = "gate.kubescene.dev"
SCENARIO_EDITS = "scenarios.kubescene.dev"
TIMEOUT_S = 10
LOOK_AGAIN = 50 * MILLISECOND


class WebhookRegistration:
    """Of the webhook at ``url`` with one API server; ``bundle`` is whom it is to trust."""

    def __init__(
        self, cluster: RemoteCluster, url: str, bundle: bytes, patience_s: float = 30.0
    ) -> None:
        self._cluster = cluster
        self._url = url
        self._bundle = bundle
        self._patience_s = patience_s
        self._is_made = False

    def make(self) -> None:
        """Return when the API server asks; raises `ScenarioError` if it does not in time."""
        if self._is_made:
            return
        self._is_made = True
        configuration = webhook_configuration(self._url, self._bundle)
        options = WriteOptions(field_manager=MANAGER, force=True)
        self._cluster.remote.patch(
            WEBHOOKS, configuration, patch_type=PatchType.APPLY, options=options
        )
        try:
            self._wait()
        except ScenarioError:
            self.withdraw()
            raise

    def withdraw(self) -> None:
        """Nobody is asked any more. Safe to call twice."""
        if self._is_made:
            self._is_made = False
            self._cluster.unlock()

    def _wait(self) -> None:
        clock = ScaledClock(1)
        deadline = clock.now() + int(self._patience_s * SECOND)
        while (why := self._complaint()) is not None:
            if clock.now() > deadline:
                raise ScenarioError(
                    f"the API server does not ask the admission webhook at {self._url} after "
                    f"{self._patience_s:g} s ({why}): it must be able to reach that address "
                    "(--webhook-host, --webhook-port)"
                )
            self._cluster.mirror.hear(LOOK_AGAIN / SECOND)

    def _complaint(self) -> str | None:
        """Why a write that the webhook refuses was not refused by it; None if it was."""
        probe = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": PROBE, "namespace": "default"},
        }
        options = WriteOptions(dry_run=True)
        try:
            self._cluster.remote.create(probe, options=options)
        except ApiError as error:
            return None if PROBED in error.message else error.message
        return "it lets everything pass"


def webhook_configuration(url: str, bundle: bytes) -> JsonObject:
    """What is registered. Bookkeeping, and what the server does for itself, is not asked about."""
    client = {"url": url, "caBundle": base64.b64encode(bundle).decode()}
    return {
        "apiVersion": WEBHOOKS.gvk.api_version,
        "kind": WEBHOOKS.gvk.kind,
        "metadata": {"name": WEBHOOKS.name},
        "webhooks": [
            _webhook(GATE, client, "Fail", "*", "*/*", _conditions()),
            _webhook(SCENARIO_EDITS, client, "Ignore", SCENARIOS.group, "*/*"),
        ],
    }


def _webhook(
    name: str,
    client: JsonObject,
    policy: str,
    group: str,
    resources: str,
    conditions: list[JsonObject] | None = None,
) -> JsonObject:
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": [resources],
        "scope": "*",
    }
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": policy,
        "matchPolicy": "Equivalent",
        "matchConditions": conditions or [],
        "rules": [rule],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
    }


def _conditions() -> list[JsonObject]:
    groups = [*sorted(REVIEWS), "coordination.k8s.io", "events.k8s.io", SCENARIOS.group]
    users = sorted(SERVER_USERS)
    conditions = {
        "not-bookkeeping": f"!(request.resource.group in {groups})",
        "not-an-event": "request.resource.group != '' || request.resource.resource != 'events'",
        "not-the-server": f"!(request.userInfo.username in {users})",
    }
    return [{"name": name, "expression": text} for name, text in conditions.items()]
