"""What users of Kubescene need to test their own schedulers, controllers and scenarios."""

from kubescene.testing.builders import (
    make_deployment,
    make_node,
    make_pod,
    make_priority_class,
    make_replica_set,
)

__all__ = [
    "make_deployment",
    "make_node",
    "make_pod",
    "make_priority_class",
    "make_replica_set",
]
