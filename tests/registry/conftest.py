"""A world of one registry and one store: no controllers, no scheduler."""

import pytest

from kubescene.actors import Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.client import DirectClient
from kubescene.clock import Identities, VirtualClock
from kubescene.registry import Registry
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.admission.plugins import default_chain
from kubescene.registry.bootstrap import bootstrap
from kubescene.store import Store

USER = Actor("user")


def make_registry() -> Registry:
    registry = Registry(
        scheme=builtin_scheme(),
        store=Store(),
        clock=VirtualClock(),
        identities=Identities(),
        admission=AdmissionChain(default_chain()),
    )
    bootstrap(registry)
    return registry


@pytest.fixture
def registry() -> Registry:
    return make_registry()


@pytest.fixture
def client(registry: Registry) -> DirectClient:
    return DirectClient(registry, USER)
