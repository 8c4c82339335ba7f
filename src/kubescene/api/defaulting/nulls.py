"""Explicit nulls, as decoding into Go types treats them.

A null member of a struct is an absent member. In maps the key stays and has the zero value: ``""``
in a map of texts such as labels, ``"0"`` in a resource list. Raw parts (the data of a
ControllerRevision, the defaults and examples in a custom schema, opaque device
configuration) are kept to the letter.
"""

from kubescene.types import JsonObject, JsonValue

_TEXT_MAPS = ("labels", "annotations", "matchLabels", "nodeSelector", "stringData", "selector")
_RESOURCE_LISTS = ("requests", "limits", "capacity", "allocatable", "hard", "used", "overhead")
_ZEROS = {**dict.fromkeys(_TEXT_MAPS, ""), **dict.fromkeys(_RESOURCE_LISTS, "0")}
_ZEROS_OF_KIND = {
    "ConfigMap": {**_ZEROS, "data": ""},
    "StorageClass": {**_ZEROS, "parameters": ""},
    "VolumeAttributesClass": {**_ZEROS, "parameters": ""},
}
_RAW = frozenset({"opaque"})
_RAW_OF_KIND = {
    "ControllerRevision": _RAW | {"data"},
    "CustomResourceDefinition": _RAW | {"default", "example", "enum"},
}
_LABEL_SELECTOR = frozenset({"matchLabels", "matchExpressions"})


def drop_nulls(obj: JsonObject) -> JsonObject:
    """The object without null members, at any depth; itself if there are none.

    For built-in kinds only: in custom resources a null can be a value, which their schema decides.
    """
    kind = str(obj.get("kind"))
    nulls = _Nulls(_ZEROS_OF_KIND.get(kind, _ZEROS), _RAW_OF_KIND.get(kind, _RAW))
    return nulls.without(obj, None)


class _Nulls:
    """One pass over an object. ``zeros`` and ``raw`` are found by the key of a member."""

    __slots__ = ("_raw", "_zeros")

    def __init__(self, zeros: dict[str, str], raw: frozenset[str]) -> None:
        self._zeros = zeros
        self._raw = raw

    def without(self, obj: JsonObject, zero: str | None) -> JsonObject:
        """``obj`` with its null members gone, or replaced by ``zero`` if it is a map."""
        changes: JsonObject = {}
        holes = False
        for key, value in obj.items():
            if value is None:
                holes = True
            elif type(value) is dict:
                if key not in self._raw:
                    done = self.without(value, self._zeros.get(key))
                    if done is not value:
                        changes[key] = done
            elif type(value) is list and value and key not in self._raw:
                items = self._items(value)
                if items is not value:
                    changes[key] = items
        if holes:
            return self._filled({**obj, **changes}, zero)
        return {**obj, **changes} if changes else obj

    def _filled(self, obj: JsonObject, zero: str | None) -> JsonObject:
        if zero is None or not _LABEL_SELECTOR.isdisjoint(obj):
            return {key: value for key, value in obj.items() if value is not None}
        return {key: zero if value is None else value for key, value in obj.items()}

    def _items(self, items: list[JsonValue]) -> list[JsonValue]:
        """Lists hold either scalars or objects, so the first item speaks for all.

        A null item is the zero value of its type: an empty object, unless there are texts beside.
        """
        if None in items:
            zero: JsonValue = "" if any(type(item) is str for item in items) else {}
            return self._items([zero if item is None else item for item in items])
        if type(items[0]) is not dict:
            return items
        done = [self.without(item, None) if type(item) is dict else item for item in items]
        return items if all(new is old for new, old in zip(done, items, strict=True)) else done
