"""Admission webhooks: programs outside that are asked about what is written.

`Webhooks` puts the plugins that ask them into the chain of a world that has somebody who can call
them, while configurations are there. Only a served world has: nobody is called on virtual time.
Who calls is a `WebhookCaller`; a writer who fetches answers himself brings a `Consultation`.
"""

from kubescene.api.records.changes import Change
from kubescene.api.scheme import Scheme
from kubescene.registry.admission.chain import AdmissionChain, AdmissionPlugin
from kubescene.registry.admission.webhooks.callers import (
    MUTATING,
    RESOURCES,
    VALIDATING,
    WebhookCaller,
)
from kubescene.registry.custom_resources import CustomResources
from kubescene.store import Store


class Webhooks:
    """Sees to it that the chain of a world asks the webhooks that are configured in it."""

    def __init__(
        self, store: Store, scheme: Scheme, custom: CustomResources, chain: AdmissionChain
    ) -> None:
        self._store = store
        self._scheme = scheme
        self._custom = custom
        self._chain = chain
        self._caller: WebhookCaller | None = None
        self._asked: tuple[AdmissionPlugin, ...] = ()

    @property
    def are_asked(self) -> bool:
        """Whether a write may have to wait for somebody outside."""
        return bool(self._asked)

    @property
    def can_be_called(self) -> bool:
        """Whether configurations have an effect in this world."""
        return self._caller is not None

    def call_by(self, caller: WebhookCaller) -> None:
        """From now on webhooks are asked."""
        self._caller = caller
        self._store.subscribe(self._changed, RESOURCES)
        self._look()

    def _changed(self, change: Change) -> None:
        self._look()

    def _look(self) -> None:
        """Ask those that are configured now, in place of those of before."""
        self._chain.remove(*self._asked)
        self._asked = ()
        if self._caller is None or not any(map(self._store.count, RESOURCES)):
            return
        # Late: most worlds have no webhooks.
        from kubescene.registry.admission.policies.matching import Surroundings
        from kubescene.registry.admission.webhooks.asking import (
            MutatingWebhooks,
            ValidatingWebhooks,
        )

        where = Surroundings(self._store, self._scheme, self._custom)
        if self._store.count(MUTATING):
            plugin = MutatingWebhooks(where, self._caller)
            self._chain.insert(plugin, before="VerticalPodAutoscaler")
            self._asked = (*self._asked, plugin)
        if self._store.count(VALIDATING):
            validating = ValidatingWebhooks(where, self._caller)
            self._chain.insert(validating, before="ResourceQuota")
            self._asked = (*self._asked, validating)
