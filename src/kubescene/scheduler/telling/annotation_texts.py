"""Annotations with the results of an attempt: their names, their JSON, and how they stay small.

Names and shapes are those of kube-scheduler-simulator, so that its users and tools find what they
know. The JSON is what Go would write: keys sorted, ``<``, ``>`` and ``&`` escaped.

A pod may have 256 KiB of annotations. Results by node get a share each and lose nodes beyond it;
``result-history`` gets what is left and loses its oldest entries. Where something was cut stands a
marker of the same shape: a node ``(cut)``, or a first entry ``{"(cut)": ...}``.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from kubescene.api.validation.metadata import ANNOTATIONS_SIZE_LIMIT
from kubescene.types import ReadOnlyObject

PREFIX = "kube-scheduler-simulator.sigs.k8s.io/"
HISTORY = PREFIX + "result-history"
SELECTED_NODE = "selected-node"
CUT = "(cut)"
_SHARES = 8
_SERVER_FIELDS = ("resourceVersion", "generation", "managedFields")
_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def annotations(results: Mapping[str, Any], held: Mapping[str, str]) -> dict[str, str]:
    """What a pod is annotated with after an attempt; ``held`` are the annotations that it has.

    ``results`` are by name, without the prefix: maps, or the name of the selected node.
    """
    others = {key: text for key, text in held.items() if not key.startswith(PREFIX)}
    room = max(ANNOTATIONS_SIZE_LIMIT - size_of(others), 0)
    texts = {PREFIX + name: text_of(each, room // _SHARES) for name, each in results.items()}
    if size_of(texts) > room:
        return {HISTORY: encoded([{CUT: "no room for results"}])} if room > _SMALL else {}
    left = room - size_of(texts) - len(HISTORY)
    return {**dict(sorted(texts.items())), HISTORY: history(texts, held.get(HISTORY, ""), left)}


_SMALL = 200


def only_results_differ(before: ReadOnlyObject, after: ReadOnlyObject) -> bool:
    """Whether nothing but the status and these annotations of a pod has changed."""
    return _other_parts(before) == _other_parts(after)


def _other_parts(pod: ReadOnlyObject) -> tuple[Any, ...]:
    metadata = {name: each for name, each in pod["metadata"].items() if name not in _SERVER_FIELDS}
    held = metadata.pop("annotations", None) or {}
    others = {key: text for key, text in held.items() if not key.startswith(PREFIX)}
    return pod["spec"], metadata, others


def text_of(result: Any, most: int) -> str:
    """A result as text of at most so many bytes, if it can be cut at all."""
    if isinstance(result, str):
        return result
    text = encoded(result)
    if size(text) <= most:
        return text
    # The longest beginning that fits, found by halving; names in order, as they are written.
    names = sorted(result)
    low, high = 0, len(names) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if size(encoded(beginning(result, names, middle))) <= most:
            low = middle
        else:
            high = middle - 1
    return encoded(beginning(result, names, low))


def beginning(result: Mapping[str, Any], names: list[str], count: int) -> dict[str, Any]:
    """The first entries of a map, and a marker of the same shape for the others."""
    told = f"{len(names) - count} more"
    shape = result[names[0]]
    marker: Any = {CUT: told} if isinstance(shape, dict) else told
    marker = [told] if isinstance(shape, list) else marker
    return {CUT: marker, **{name: result[name] for name in names[:count]}}


def history(texts: Mapping[str, str], before: str, most: int) -> str:
    """All results including the past ones, the oldest left out if they are too many."""
    entries = [*entries_of(before), dict(texts)]
    lost = 0
    if entries and CUT in entries[0]:
        lost = int(entries.pop(0)[CUT].split()[0])
    sizes = [size(encoded(entry)) + 1 for entry in entries]
    whole = sum(sizes) + 2
    kept = 0
    while kept < len(entries) and whole + (_MARKER if lost + kept else 0) > most:
        whole -= sizes[kept]
        kept += 1
    marker = [{CUT: f"{lost + kept} older results"}] if lost + kept else []
    return encoded([*marker, *entries[kept:]])


_MARKER = 64


def entries_of(text: str) -> list[dict[str, str]]:
    """The history that a pod holds; one that somebody has spoilt is begun anew."""
    try:
        found = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        return []
    is_ours = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    return found if is_ours else []


def encoded(value: Any) -> str:
    """JSON as Go writes it."""
    data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    for raw, escaped in _ESCAPES:
        data = data.replace(raw, escaped)
    return data.decode()


def size(text: str) -> int:
    return len(text.encode())


def size_of(texts: Mapping[str, str]) -> int:
    """As the API server counts: names and values, in bytes."""
    return sum(size(key) + size(text) for key, text in texts.items())
