"""PodTopologySpread; see `plugin`."""

from kubescene.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread, make

__all__ = ["PodTopologySpread", "make"]
