"""Which nodes count for a topology spread constraint."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubescene.api.selectors import find_untolerated
from kubescene.scheduler.plugins.node_affinity import compile_affinity
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.node_selectors import select, select_label
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass


class Eligibility(NamedTuple):
    """Nodes that have all these labels; with ``affinity``, that the node affinity of these pods
    admits; with ``tolerating``, that they tolerate the taints of (PTS-3).
    """

    keys: tuple[str, ...] = ()
    affinity: PodClass | None = None
    tolerating: PodClass | None = None

    def admits(self, node: NodeInfo) -> bool:
        if not all(key in node.labels for key in self.keys):
            return False
        if self.affinity is not None:
            affinity = self.affinity.compiled(compile_affinity)
            if not affinity.admits(node.labels, node.name):
                return False
        if self.tolerating is None:
            return True
        return find_untolerated(node.taints, self.tolerating.tolerations) is None

    def mask(self, nodes: NodeTable) -> NDArray[np.bool_] | None:
        """The same for all nodes at once; None if all count."""
        mask = np.ones(len(nodes), dtype=np.bool_)
        for key in self.keys:
            mask &= nodes.label(key).ids >= 0
        if self.affinity is not None:
            mask &= _admitted(self.affinity, nodes)
        if self.tolerating is not None:
            mask &= _tolerated(self.tolerating, nodes)
        return None if mask.all() else mask


def _admitted(pod_class: PodClass, nodes: NodeTable) -> NDArray[np.bool_]:
    affinity, rows = pod_class.compiled(compile_affinity), np.arange(len(nodes), dtype=np.intp)
    mask = np.ones(rows.size, dtype=np.bool_)
    for requirement in affinity.labels:
        mask &= select_label(requirement, nodes, rows)
    return mask if affinity.required is None else mask & select(affinity.required, nodes, rows)


def _tolerated(pod_class: PodClass, nodes: NodeTable) -> NDArray[np.bool_]:
    tolerations = pod_class.tolerations
    each = [find_untolerated(taints, tolerations) is None for taints in nodes.taint_sets]
    return np.array(each, dtype=np.bool_).take(nodes.taint_ids)
