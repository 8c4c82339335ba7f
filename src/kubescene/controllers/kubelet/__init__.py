"""The stand-in for kubelets: `reconciler` is the story of a pod on its node.

`behaviour` says what people want of pods (how long their containers run, how these end), `lives`
what becomes of containers then: ends, restarts, back-offs. `container_statuses` is how all of it is
written down. `heartbeats` is about kubelets that fall silent, and what is made of that.
"""

from kubescene.controllers.kubelet.lives import NO_DELAYS, KubeletDelays
from kubescene.controllers.kubelet.notices import KUBELET
from kubescene.controllers.kubelet.reconciler import KubeletReconciler, kubelet

__all__ = ["KUBELET", "NO_DELAYS", "KubeletDelays", "KubeletReconciler", "kubelet"]
