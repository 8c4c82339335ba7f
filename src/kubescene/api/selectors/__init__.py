"""Everything that selects: labels, fields, nodes, and the tolerations that unselect taints.

The face of four modules, so that users need not know which one holds what: `label_selectors`
and `node_selectors`, which share their `requirements`, `field_selectors` and `tolerations`.
"""

from kubescene.api.selectors.field_selectors import (
    SUPPORTED_FIELDS,
    FieldRequirement,
    FieldSelector,
    field_value,
    parse_fields,
)
from kubescene.api.selectors.label_selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    from_label_selector,
    from_labels,
    parse_labels,
    read_label_selector,
)
from kubescene.api.selectors.node_selectors import (
    NodeSelector,
    NodeSelectorTerm,
    node_selector,
    node_selector_term,
)
from kubescene.api.selectors.requirements import Operator, Requirement, SelectorError, aggregate
from kubescene.api.selectors.tolerations import SCHEDULING_EFFECTS, find_untolerated, tolerates

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "SCHEDULING_EFFECTS",
    "SUPPORTED_FIELDS",
    "FieldRequirement",
    "FieldSelector",
    "LabelSelector",
    "NodeSelector",
    "NodeSelectorTerm",
    "Operator",
    "Requirement",
    "SelectorError",
    "aggregate",
    "field_value",
    "find_untolerated",
    "from_label_selector",
    "from_labels",
    "node_selector",
    "node_selector_term",
    "parse_fields",
    "parse_labels",
    "read_label_selector",
    "tolerates",
]
