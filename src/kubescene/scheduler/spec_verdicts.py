"""What the Filters that look at nothing but the node object say of all nodes.

Pods that land change nothing for them, and pods that differ in what they request are the same to
them. So their verdicts are worked out for the whole table at a time, whenever a node object has
changed, and shared by all classes of pods that these plugins sign alike (`SigningPlugin`).
"""

from typing import Any, TypeAlias

import numpy as np

from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.interfaces import Codes
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.pods import PodInfo
from kubescene.scheduler.runtime import FilterExtension, Framework
from kubescene.scheduler.signing import encoded
from kubescene.scheduler.verdicts import packed

Extensions: TypeAlias = tuple[FilterExtension, ...]

_KEPT = 64


class SpecVerdicts:
    """The verdicts of some plugins on all nodes; ``codes`` is None if they refuse none."""

    __slots__ = ("_extensions", "_layout", "_newest", "codes")

    def __init__(self, extensions: Extensions) -> None:
        self._extensions = extensions
        self._layout = self._newest = -1
        self.codes: Codes | None = None

    def sync(self, nodes: NodeTable, state: CycleState, pod: PodInfo) -> None:
        """Judge all nodes anew if one of them has changed; any pod that is signed alike will do."""
        if self._newest == nodes.newest_spec and self._layout == nodes.layout:
            return
        self._newest, self._layout = nodes.newest_spec, nodes.layout
        codes = self._judge(nodes, state, pod)
        self.codes = codes if codes.any() else None

    def _judge(self, nodes: NodeTable, state: CycleState, pod: PodInfo) -> Codes:
        rows = np.arange(len(nodes), dtype=np.intp)
        verdicts: Codes = np.zeros(rows.size, dtype=np.int64)
        for extension in reversed(self._extensions):
            codes = extension.filter_nodes(state, pod, nodes, rows)
            refused = codes.nonzero()[0]
            if refused.size:
                verdicts[refused] = packed(extension, codes[refused])
        return verdicts


class SharedVerdicts:
    """All that is kept of one profile."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._kept: dict[tuple[Extensions, bytes], SpecVerdicts] = {}

    def of(self, extensions: Extensions, pod: PodInfo) -> SpecVerdicts | None:
        """Those for pods like this one; None if a plugin does not sign it."""
        parts: dict[str, Any] = {}
        for extension in extensions:
            plugin: Any = self._framework.plugins[extension.name]
            part = plugin.sign(pod.signature) if hasattr(plugin, "sign") else None
            if part is None:
                return None
            parts.update(part)
        return self._find(extensions, encoded(parts))

    def _find(self, extensions: Extensions, signed: bytes) -> SpecVerdicts:
        found = self._kept.get((extensions, signed))
        if found is None:
            if len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            found = self._kept[extensions, signed] = SpecVerdicts(extensions)
        return found
