"""Controllers as users write them, good and bad."""

from kubescene.controllers import (
    NOTHING,
    Create,
    GroupVersionKind,
    ObjectKey,
    ObjectReconciler,
    ObjectRef,
    Plan,
    Reader,
    controller_of,
)
from widgets import widget_definition

MAP = GroupVersionKind("", "v1", "ConfigMap")
WIDGET = GroupVersionKind("example.com", "v1", "Widget")

DEFINITION = widget_definition()


class Widgets(ObjectReconciler):
    """A ConfigMap for every Widget, and another when somebody deletes it."""

    name = "widgets"
    kinds = (WIDGET, MAP)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        widget = reader.find(ObjectRef(WIDGET, key.name, key.namespace))
        if widget is None or reader.find(ObjectRef(MAP, key.name, key.namespace)):
            return NOTHING
        metadata = {"name": key.name, "ownerReferences": [controller_of(widget)]}
        return Plan([Create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})])


class DefinedWidgets(Widgets):
    definitions = (DEFINITION,)


class Broken(ObjectReconciler):
    name = "broken"
    kinds = (MAP,)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        raise ValueError("no idea")


class Silent(ObjectReconciler):
    name = "silent"
    kinds = (MAP,)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        return None  # type: ignore[return-value]  # what beginners do


class Nameless(ObjectReconciler):
    kinds = (MAP,)


class Kindless(ObjectReconciler):
    name = "kindless"


class Textual(ObjectReconciler):
    name = "textual"
    kinds = ("ConfigMap",)  # type: ignore[assignment]


class NoReconciler:
    name = "nothing"


NOT_A_CLASS = 1
