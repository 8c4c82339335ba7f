"""A custom kind that many tests define: Widgets of ``example.com``."""

from typing import Any

from kubescene.types import JsonObject

NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}


def widget_definition(
    scope: str = "Namespaced", schema: JsonObject | None = None, **version: Any
) -> JsonObject:
    """The definition, with one version of that schema; ``version`` is what else that has."""
    shape = {"openAPIV3Schema": schema or {"type": "object"}}
    only = {"name": "v1", "served": True, "storage": True, "schema": shape, **version}
    spec = {"group": "example.com", "scope": scope, "names": NAMES, "versions": [only]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    }
