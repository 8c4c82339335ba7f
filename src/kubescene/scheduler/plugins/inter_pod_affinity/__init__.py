"""InterPodAffinity; see `plugin`."""

from kubescene.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity, make

__all__ = ["InterPodAffinity", "make"]
