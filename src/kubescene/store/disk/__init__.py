"""A world that outlives its process: what is written is on disk before anybody is told so.

`opening` restores a store from a folder and gives it its journal, `journal` writes what happens,
`entries` and `files` say how. Nothing is decoded on the way, out or in.
"""

from kubescene.store.disk.opening import StoredWorld, compacted, open_store, restored

__all__ = ["StoredWorld", "compacted", "open_store", "restored"]
