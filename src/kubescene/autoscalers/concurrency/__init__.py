"""Autoscaling by requests in flight, with the rule of Knative's pod autoscaler.

`plugin` is the autoscaler, written to be read; `back_test` plays recorded load to it.
"""

from kubescene.autoscalers.concurrency.back_tests import ConcurrencyExplanation, back_test
from kubescene.autoscalers.concurrency.plugin import (
    ROUTER,
    TYPE,
    ConcurrencyPlugin,
    ConcurrencySpec,
    Load,
    Metric,
    read_spec,
)

__all__ = [
    "ROUTER",
    "TYPE",
    "ConcurrencyExplanation",
    "ConcurrencyPlugin",
    "ConcurrencySpec",
    "Load",
    "Metric",
    "back_test",
    "read_spec",
]
