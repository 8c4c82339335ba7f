"""What the spec of a PluginAutoscaler means."""

from msgspec import Struct

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.autoscalers.available import type_of
from kubescene.autoscalers.interfaces import Autoscaler
from kubescene.clock import SECOND, format_duration, parse_duration
from kubescene.types import JsonObject, Nanoseconds

INTERVAL = 15 * SECOND
SHORTEST = SECOND


class PluginSpec(Struct, frozen=True):
    """What an object says, read."""

    autoscaler: Autoscaler
    target: JsonObject
    horizontal: Nanoseconds
    """How often it is asked how many pods."""
    vertical: Nanoseconds
    """How often it is asked how large they should be."""
    container: str
    """Whose requests and usage it is told, and which one it sizes; empty: the whole pod."""


def read_spec(spec: JsonObject) -> PluginSpec:
    """What a spec means; raises ValueError, which names the field."""
    given = spec.get("object")
    kind = spec.get("type") or type_of(given or {})
    if not kind:
        raise ValueError("spec.type: it does not follow from spec.object, so it has to be said")
    text = "" if given is None else dump_yaml(given)
    return PluginSpec(
        Autoscaler(kind, text),
        spec["scaleTargetRef"],
        _interval(spec, "horizontalInterval"),
        _interval(spec, "verticalInterval"),
        spec.get("container") or "",
    )


def _interval(spec: JsonObject, name: str) -> Nanoseconds:
    if name not in spec:
        return INTERVAL
    try:
        interval = parse_duration(spec[name])
    except ValueError as error:
        raise ValueError(f"spec.{name}: {error}") from error
    if interval < SHORTEST:
        raise ValueError(f"spec.{name}: has to be {format_duration(SHORTEST)} or longer")
    return interval
