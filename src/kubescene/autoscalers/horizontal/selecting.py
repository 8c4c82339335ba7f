"""Which pods belong to the target: its scale's selector, or why that cannot be worked with."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kubescene.api.selectors import LabelSelector, parse_labels
from kubescene.autoscalers.horizontal.observing import OtherAutoscaler, ScaledPod
from kubescene.autoscalers.horizontal.specs import HorizontalSpec
from kubescene.errors import BadRequestError


class Refusal(Struct, frozen=True):
    """A selector that cannot be used: event and error, and what the condition says."""

    event: str
    error: str
    reason: str
    message: str


def usable_selector(
    text: str,
    spec: HorizontalSpec,
    pods: Iterable[ScaledPod],
    others: Sequence[OtherAutoscaler],
) -> LabelSelector | Refusal:
    """The selector of a scale. Its pods must not be selected by another autoscaler, too."""
    if not text:
        message = "the HPA target's scale is missing a selector"
        return Refusal("SelectorRequired", "selector is required", "InvalidSelector", message)
    try:
        selector = parse_labels(text)
    except BadRequestError as error:
        prefix = "couldn't convert selector into a corresponding internal selector object"
        return _refusal("InvalidSelector", f"{prefix}: {error}")
    if rivals := _rivals(selector, pods, others):
        names = sorted((spec.name, *rivals))
        keys = " ".join(f"{spec.namespace}/{each}" for each in names)
        error_text = f"pods by selector {text} are controlled by multiple HPAs: [{keys}]"
        return _refusal("AmbiguousSelector", error_text)
    return selector


def selected(pods: Iterable[ScaledPod], selector: LabelSelector) -> list[ScaledPod]:
    """Pods of a template share their labels: looked at once, by identity."""
    known: dict[int, bool] = {}
    found: list[ScaledPod] = []
    for pod in pods:
        matches = known.get(id(pod.labels))
        if matches is None:
            matches = known[id(pod.labels)] = selector.matches(pod.labels)
        if matches:
            found.append(pod)
    return found


def _refusal(reason: str, error: str) -> Refusal:
    return Refusal(reason, error, reason, error)


def _rivals(
    selector: LabelSelector, pods: Iterable[ScaledPod], others: Sequence[OtherAutoscaler]
) -> list[str]:
    if not others:
        return []
    ours = selected(pods, selector)
    return [
        other.name for other in others if any(other.selector.matches(pod.labels) for pod in ours)
    ]
