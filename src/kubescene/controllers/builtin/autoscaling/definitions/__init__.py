"""The definitions of autoscalers' kinds, as their projects publish them."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import orjson

from kubescene.controllers.registrations import OfferedDefinition
from kubescene.types import JsonObject

_FOLDER = Path(__file__).parent


def load(name: str) -> JsonObject:
    """The CustomResourceDefinition of that name."""
    definition: JsonObject = orjson.loads((_FOLDER / f"{name}.json").read_bytes())
    return definition


def offered(group: str, kinds: Iterable[str]) -> tuple[OfferedDefinition, ...]:
    """Kinds of a group that worlds get when somebody names them."""
    return tuple(
        OfferedDefinition(group, kind, partial(load, f"{kind.lower()}s.{group}")) for kind in kinds
    )
