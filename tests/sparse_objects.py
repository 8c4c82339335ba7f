"""Objects with something left out: of every kind, whatever can be left out of a whole one.

The whole ones are in ``registry/data/full_objects.yaml``. Left out is each member in turn, at any
depth; each object and each item of a list is emptied in turn; and of every kind there is one with
a name alone.
"""

import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubescene.api.builtin import builtin_scheme

WHOLE = Path(__file__).parent / "registry" / "data" / "full_objects.yaml"
KEPT = frozenset({"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace"})
"""Without these it is not a sparse object but none."""


class Sparse(NamedTuple):
    """One object and how it was made: ``v1/Pod/a -spec.containers[0].name``."""

    label: str
    object: dict[str, Any]

    @property
    def title(self) -> str:
        """Kind and name of the whole object: ``v1/Pod/a``."""
        return self.label.partition(" ")[0]


@cache
def whole_objects() -> tuple[Sparse, ...]:
    """The objects of which nothing is left out."""
    found = yaml.safe_load(WHOLE.read_text())["objects"]
    return tuple(Sparse(_title(each), each) for each in found)


@cache
def sparse_objects() -> tuple[Sparse, ...]:
    """All of them, the whole ones included, each once."""
    return (*_named_alone(), *(it for whole in whole_objects() for it in variants(whole)))


def _named_alone() -> Iterator[Sparse]:
    for resource_type in builtin_scheme():
        if "create" in resource_type.verbs:
            gvk = resource_type.gvk
            bare = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "a"}}
            yield Sparse(f"{gvk.api_version}/{gvk.kind} name-alone", bare)


def variants(whole: Sparse) -> Iterator[Sparse]:
    yield whole
    for steps in _places(whole.object):
        path = _spelled(steps)
        if path in KEPT:
            continue
        if isinstance(steps[-1], str):
            yield Sparse(f"{whole.label} -{path}", _without(whole.object, steps))
        found = _at(whole.object, steps)
        if isinstance(found, dict | list) and found:
            yield Sparse(f"{whole.label} {path}={type(found)()}", _emptied(whole.object, steps))


def _places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where there is something, from the outside in."""
    if not isinstance(value, dict | list):
        return
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*above, key)
        yield from _places(child, (*above, key))


def _at(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _without(obj: dict[str, Any], steps: tuple[str | int, ...]) -> dict[str, Any]:
    made: dict[str, Any] = pickle.loads(pickle.dumps(obj))
    del _at(made, steps[:-1])[steps[-1]]
    return made


def _emptied(obj: dict[str, Any], steps: tuple[str | int, ...]) -> dict[str, Any]:
    made: dict[str, Any] = pickle.loads(pickle.dumps(obj))
    holder = _at(made, steps[:-1])
    holder[steps[-1]] = type(holder[steps[-1]])()
    return made


def _title(obj: dict[str, Any]) -> str:
    return "/".join((obj["apiVersion"], obj["kind"], obj["metadata"].get("name", "-")))


def _spelled(steps: tuple[str | int, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")
