"""What a registry is: the type that clients, controllers of the server and worlds know."""

from typing import Unpack

from kubescene.registry.base import RegistryBase, RegistryParts
from kubescene.registry.consequences import Consequences
from kubescene.registry.subresources.eviction import Evictions
from kubescene.registry.subresources.scaling import Scales


class Registry(RegistryBase):
    """All verbs; ``scales`` and ``evictions`` hold those of two subresources.

    ``consequences`` are told of each write.
    """

    def __init__(self, **parts: Unpack[RegistryParts]) -> None:
        super().__init__(**parts)
        self.consequences = Consequences(self)
        self.scales = Scales(self)
        self.evictions = Evictions(self)
