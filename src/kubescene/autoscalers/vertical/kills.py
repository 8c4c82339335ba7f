"""Out-of-memory kills as the recommender notices them: in pods that change, and in evictions.

What is found goes into `kubescene.autoscalers.vertical.histories.Usage.add_oom`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kubescene.api.quantity import QuantityError, parse
from kubescene.autoscalers.vertical.amounts import MEMORY
from kubescene.autoscalers.vertical.limits import amount_of, resources_of, statuses_of
from kubescene.clock import parse_time
from kubescene.types import JsonObject

OOM_KILLED = "OOMKilled"


class OomKill(NamedTuple):
    """A container that had ``memory`` bytes, or used them, and was killed for want of more."""

    pod: str
    container: str
    memory: int
    time: int


def kills(before: JsonObject, after: JsonObject) -> Iterator[OomKill]:
    """The kills between two states of a pod. Containers that were not there before are new.

    A container that is terminated now had what the pod has now; one that was restarted in between
    had what the pod had before.
    """
    known = {each.get("name"): each for each in statuses_of(before)}
    for status in statuses_of(after):
        old = known.get(status.get("name"))
        if old is None:
            continue
        if _is_killed(old, status):
            yield _kill(after, status, status["state"]["terminated"])
        elif _was_restarted(old, status):
            yield _kill(before, status, status["lastState"]["terminated"])


def kills_of_eviction(event: JsonObject) -> Iterator[OomKill]:
    """The kills that an event of the kubelet tells of: a pod evicted because memory was short."""
    concerned = event.get("involvedObject") or {}
    if event.get("reason") != "Evicted" or concerned.get("kind") != "Pod":
        return
    containers, usage, starved = (
        _listed(event, name)
        for name in ("offending_containers", "offending_containers_usage", "starved_resource")
    )
    if not len(containers) == len(usage) == len(starved):
        return
    for container, used, resource in zip(containers, usage, starved, strict=True):
        amount = _bytes(used)
        if resource == MEMORY and amount is not None:
            time = parse_time(event["metadata"]["creationTimestamp"])
            yield OomKill(concerned.get("name", ""), container, amount, time)


def _is_killed(old: JsonObject, new: JsonObject) -> bool:
    """Terminated now and not before, or once more, too fast to be seen running in between."""
    is_new = (old.get("state") or {}).get("terminated") is None or _restarts(new) > _restarts(old)
    return _ended(new, "state") and is_new


def _was_restarted(old: JsonObject, new: JsonObject) -> bool:
    """Running before and now, killed in between. Who was waiting before was counted already."""
    both_run = all((each.get("state") or {}).get("running") is not None for each in (old, new))
    return both_run and _restarts(new) > _restarts(old) and _ended(new, "lastState")


def _ended(status: JsonObject, name: str) -> bool:
    ended = (status.get(name) or {}).get("terminated")
    return ended is not None and ended.get("reason") == OOM_KILLED


def _restarts(status: JsonObject) -> int:
    return int(status.get("restartCount", 0))


def _kill(pod: JsonObject, status: JsonObject, ended: JsonObject) -> OomKill:
    container = status["name"]
    memory = amount_of(resources_of(container, pod).requests, MEMORY).value()
    return OomKill(pod["metadata"]["name"], container, memory, parse_time(ended["finishedAt"]))


def _listed(event: JsonObject, name: str) -> list[str]:
    text = ((event.get("metadata") or {}).get("annotations") or {}).get(name)
    return [] if text is None else text.split(",")


def _bytes(text: str) -> int | None:
    try:
        return parse(text).value()
    except QuantityError:
        return None
