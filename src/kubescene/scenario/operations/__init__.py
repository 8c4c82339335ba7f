"""What operations do: one module for each kind of them.

`runner` carries out those that are over at once, through a client, as the engine. An `Undertaking`
(`undertakings`) goes on while virtual time passes: evictions that a budget refuses for a while,
drains, objects that arrive.
"""

from kubescene.scenario.operations.creation import IndexedTemplate
from kubescene.scenario.operations.runner import OperationRunner

__all__ = ["IndexedTemplate", "OperationRunner"]
