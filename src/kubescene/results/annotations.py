"""Scheduling results that a pod carries as annotations, read back.

kube-scheduler-simulator writes them, and Kubescene does if a run asks for it. Pods of either, read
from a cluster or from a file, can be given.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject


def annotated_results(pod: Mapping[str, Any]) -> list[JsonObject]:
    """What was noted of each attempt at a pod, the oldest first.

    By the names of the annotations without their prefix: ``filter-result``, ``finalscore-result``,
    ``selected-node`` and others. Empty if the pod has no such annotations.
    """
    # Schedulers are much to load for those who have no annotations to read.
    from kubescene.scheduler.telling.annotation_texts import HISTORY, PREFIX

    noted: Mapping[str, str] = (pod.get("metadata") or {}).get("annotations") or {}
    newest = {key: text for key, text in noted.items() if key.startswith(PREFIX)}
    history = newest.pop(HISTORY, "")
    try:
        attempts = orjson.loads(history) if history else [newest] if newest else []
        return [dict(_decoded(each, PREFIX)) for each in attempts]
    except (orjson.JSONDecodeError, AttributeError, TypeError) as error:
        name = (pod.get("metadata") or {}).get("name", "")
        raise ConfigurationError(
            f"pod {name}: its annotations {PREFIX}* are not those of a scheduler simulator: {error}"
        ) from error


def _decoded(attempt: Mapping[str, str], prefix: str) -> Iterator[tuple[str, Any]]:
    """Values that are JSON, as values; the selected node is a name."""
    for key, text in attempt.items():
        yield key.removeprefix(prefix), orjson.loads(text) if text[:1] in "{[" and text else text
