"""One toleration more: for each taint that keeps the pod away from a node."""

from collections import Counter
from collections.abc import Iterator

from kubescene.api.copies import own_copy
from kubescene.api.selectors.tolerations import find_untolerated
from kubescene.remedies.remedy import TOLERATION_COST, Remedy, RemedyKind, replaced
from kubescene.remedies.trials import Trials
from kubescene.types import JsonObject, ReadOnlyObject

CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
TAINTS_TRIED = 20


def tolerations(trials: Trials, reasons: frozenset[str]) -> Iterator[Remedy]:
    """The taint of most nodes first."""
    del reasons
    for taint in untolerated(trials)[:TAINTS_TRIED]:
        toleration = tolerating(taint)
        pod = with_toleration(trials.pod, toleration)
        if node := trials.place(pod):
            text = f"tolerate the taint {named(taint)}"
            edits = (replaced(pod),)
            yield Remedy(RemedyKind.TOLERATION, trials.key, text, TOLERATION_COST, node, edits)


def untolerated(trials: Trials) -> list[ReadOnlyObject]:
    """The taints that the pod does not put up with, each once."""
    counts: Counter[tuple[str, str, str]] = Counter()
    mine = trials.info.pod_class.tolerations
    for node in trials.nodes:
        taints = [*node.taints, *([CORDONED] if node.unschedulable else [])]
        for taint in {_key(each): each for each in taints}.values():
            if find_untolerated([taint], mine) is not None:
                counts[_key(taint)] += 1
    ordered = sorted(counts, key=lambda each: (-counts[each], each))
    return [{"key": key, "value": value, "effect": effect} for key, value, effect in ordered]


def tolerating(taint: ReadOnlyObject) -> JsonObject:
    """The narrowest toleration of a taint."""
    toleration = {"key": taint["key"], "operator": "Equal", "effect": taint["effect"]}
    return {**toleration, "value": taint["value"]} if taint.get("value") else toleration


def with_toleration(pod: JsonObject, toleration: JsonObject) -> JsonObject:
    pod = own_copy(pod)
    pod["spec"]["tolerations"] = [*(pod["spec"].get("tolerations") or ()), toleration]
    return pod


def named(taint: ReadOnlyObject) -> str:
    """As kubectl writes it."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _key(taint: ReadOnlyObject) -> tuple[str, str, str]:
    return taint["key"], taint.get("value") or "", taint["effect"]
