"""What lies between a request and the store: everything kube-apiserver does that is not HTTP.

Defaulting, admission, validation, metadata that the system owns, subresources, graceful
deletion. Both the embedded client and the API server go through here, so an object means the same
however it came.
"""

from kubescene.registry.base import RegistryParts
from kubescene.registry.interface import Registry
from kubescene.registry.registry import EmbeddedRegistry

__all__ = ["EmbeddedRegistry", "Registry", "RegistryParts"]
