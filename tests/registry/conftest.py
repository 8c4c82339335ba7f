"""A world of one registry and one store: no controllers, no scheduler."""

import pytest

from kubescene.actors import Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.client import DirectClient
from kubescene.clock import Identities, VirtualClock
from kubescene.registry import EmbeddedRegistry, Registry
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.admission.plugins import default_chain
from kubescene.registry.bootstrap import bootstrap
from kubescene.shortcuts import ALL, PLAIN, Shortcuts
from kubescene.store import Store

USER = Actor("user")


def make_registry(shortcuts: Shortcuts = ALL) -> Registry:
    registry = EmbeddedRegistry(
        shortcuts=shortcuts,
        scheme=builtin_scheme(),
        store=Store(),
        clock=VirtualClock(),
        identities=Identities(),
        admission=AdmissionChain(default_chain()),
    )
    bootstrap(registry)
    return registry


@pytest.fixture(params=[ALL, PLAIN], ids=["short", "long"])
def registry(request: pytest.FixtureRequest) -> Registry:
    """Every test is played twice: with all shortcuts of writes, and without any."""
    return make_registry(request.param)


@pytest.fixture
def client(registry: Registry) -> DirectClient:
    return DirectClient(registry, USER)
