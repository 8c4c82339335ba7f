"""What the plugins that look at nothing but the node object say of all nodes.

Pods that land change nothing for them, and pods that differ in what they request are the same to
them. So the verdicts of such Filters are worked out for the whole table at a time, whenever a node
object has changed, and shared by all classes of pods that these plugins sign alike
(`SigningPlugin`). Of such Scores it is enough to know whether they give any node anything.
"""

from typing import Any, TypeAlias

import numpy as np

from kubescene.bounded import BoundedDict
from kubescene.scheduler.cycle.verdicts import judge_rows
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Codes
from kubescene.scheduler.framework.runtime import FilterExtension, Framework, ScoreExtension
from kubescene.scheduler.framework.signing import encoded
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY

Extensions: TypeAlias = tuple[FilterExtension, ...]
Raters: TypeAlias = tuple[ScoreExtension, ...]


class SpecVerdicts:
    """The verdicts of some plugins on all nodes; ``codes`` is None if they refuse none.

    ``rates`` says whether one of the ``raters`` gives a node another score than 0.
    """

    __slots__ = ("_extensions", "_newest", "_raters", "codes", "errors", "rates")

    def __init__(self, extensions: Extensions, raters: Raters = ()) -> None:
        self._extensions = extensions
        self._raters = raters
        self._newest = -1
        self.codes: Codes | None = None
        self.errors = False
        """Whether some verdict stands for an error rather than a refusal."""
        self.rates = False

    def sync(self, nodes: NodeTable, state: CycleState, pod: PodInfo) -> None:
        """Judge all nodes anew if one of them has changed; any pod that is signed alike will do."""
        if self._newest == nodes.newest_spec:
            return
        rows = np.arange(len(nodes), dtype=np.intp)
        before, state.filter_errors = state.filter_errors, False
        codes = judge_rows(state, pod, self._extensions, nodes, rows)
        self.codes = codes if codes.any() else None
        self.errors = state.filter_errors
        state.filter_errors |= before
        self.rates = any(each.score_nodes(state, pod, nodes, rows).any() for each in self._raters)
        self._newest = nodes.newest_spec


class SharedVerdicts:
    """All that is kept of one profile."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._kept: BoundedDict[tuple[Extensions, Raters, bytes], SpecVerdicts] = BoundedDict(
            POLICY.specs_kept
        )

    def of(self, extensions: Extensions, pod: PodInfo, raters: Raters = ()) -> SpecVerdicts | None:
        """Those for pods like this one; None if a plugin does not sign it."""
        parts: dict[str, Any] = {}
        names = [each.name for each in extensions] + [each.name for each in raters]
        for name in dict.fromkeys(names):
            plugin: Any = self._framework.plugins[name]
            part = plugin.sign(pod.signature) if hasattr(plugin, "sign") else None
            if part is None:
                return None
            parts.update(part)
        key = (extensions, raters, encoded(parts))
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = SpecVerdicts(extensions, raters)
        return found
