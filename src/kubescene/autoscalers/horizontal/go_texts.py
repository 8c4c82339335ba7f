"""Values as the controller's messages show them."""

from kubescene.types import JsonObject


def shown_selector(selector: JsonObject | None) -> str:
    """A LabelSelector as Go prints a pointer to one."""
    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions = "".join(map(_expression, selector.get("matchExpressions") or ()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _expression(expression: JsonObject) -> str:
    values = " ".join(expression.get("values") or ())
    return (
        f"LabelSelectorRequirement{{Key:{expression.get('key', '')},"
        f"Operator:{expression.get('operator', '')},Values:[{values}],}},"
    )
