"""How components reach the world: the same small interfaces over the store or over HTTP.

Controllers, the scheduler and the scenario engine see only these. Whether a real API server stands
behind them is decided where the cluster is put together.
"""

from kubescene.client.direct import DirectClient
from kubescene.client.interfaces import Client, EventHandler, ObjectRef, Reader, Watcher, Writer

__all__ = ["Client", "DirectClient", "EventHandler", "ObjectRef", "Reader", "Watcher", "Writer"]
