"""Admission policies: rules that users write in CEL, as objects of the world.

`Policies` puts the plugins that ask them into the chain of a world while something is bound, and
takes them out again: a world without policies is none the slower, and loads nothing of this.
"""

from collections.abc import Iterator

from kubescene.api.records.changes import Change
from kubescene.api.scheme import Scheme
from kubescene.registry.admission.chain import AdmissionChain, AdmissionPlugin
from kubescene.registry.admission.policies.resources import (
    MUTATING,
    MUTATING_BINDINGS,
    RESOURCES,
    VALIDATING,
    VALIDATING_BINDINGS,
)
from kubescene.registry.custom_resources import CustomResources
from kubescene.store import Store


class Policies:
    """Sees to it that the chain of a world asks the policies that are bound in it."""

    def __init__(
        self, store: Store, scheme: Scheme, custom: CustomResources, chain: AdmissionChain
    ) -> None:
        self._store = store
        self._scheme = scheme
        self._custom = custom
        self._chain = chain
        self._asked: tuple[AdmissionPlugin, ...] = ()
        store.subscribe(self._changed, RESOURCES)
        if any(map(store.count, RESOURCES)):
            self._look()

    def _changed(self, change: Change) -> None:
        self._look()

    def _look(self) -> None:
        """Ask the policies that there are now, in place of those of before."""
        self._chain.remove(*self._asked)
        self._asked = ()
        for plugin, place in self._bound():
            self._chain.insert(plugin, before=place)
            self._asked = (*self._asked, plugin)

    def _bound(self) -> Iterator[tuple[AdmissionPlugin, str]]:
        """Those who ask, and whom kube-apiserver asks next. Late: most worlds have no policies."""
        store = self._store
        if store.count(MUTATING) and store.count(MUTATING_BINDINGS):
            from kubescene.registry.admission.policies.matching import Surroundings
            from kubescene.registry.admission.policies.mutating import MutatingPolicies

            where = Surroundings(store, self._scheme, self._custom)
            yield MutatingPolicies(where), "VerticalPodAutoscaler"
        if store.count(VALIDATING) and store.count(VALIDATING_BINDINGS):
            from kubescene.registry.admission.policies.matching import Surroundings
            from kubescene.registry.admission.policies.validating import ValidatingPolicies

            where = Surroundings(store, self._scheme, self._custom)
            yield ValidatingPolicies(where), "ResourceQuota"
