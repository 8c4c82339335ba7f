"""What is recommended, and how it came about."""

from collections.abc import Iterator

import msgspec

from kubescene.autoscalers.vertical.amounts import CPU, NOT_A_NUMBER
from kubescene.autoscalers.vertical.estimators import Bound, Estimate
from kubescene.autoscalers.vertical.objects import ContainerRecommendation
from kubescene.clock import format_time
from kubescene.types import JsonObject


class Condition(msgspec.Struct, frozen=True):
    """A condition of the VerticalPodAutoscaler; ``since`` is its last transition."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""
    since: int = 0

    def to_dict(self) -> JsonObject:
        condition = {
            "type": self.type,
            "status": "True" if self.status else "False",
            "lastTransitionTime": format_time(self.since),
        }
        optional = {"reason": self.reason, "message": self.message}
        return condition | {name: text for name, text in optional.items() if text}


class Capping(msgspec.Struct, frozen=True):
    """A post-processor that changed an amount: ``integerCPU``, ``minAllowed``, ..."""

    resource: str
    bound: str
    by: str
    before: str
    after: str


class ContainerEstimates(msgspec.Struct, frozen=True):
    """One container: its estimates, and what became of them afterwards."""

    name: str
    estimates: tuple[Estimate, ...]
    first_sample: int | None
    last_sample: int | None
    samples: int
    capped: tuple[Capping, ...] = ()

    def amounts(self, bound: Bound) -> dict[str, int]:
        """Amounts of the controlled resources, before rounding and capping."""
        return {each.resource: each.amount for each in self.estimates if each.bound is bound}

    def to_dict(self) -> JsonObject:
        return {
            "name": self.name,
            "samples": self.samples,
            "estimates": [each.to_dict() for each in self.estimates],
            "capped": [msgspec.to_builtins(each) for each in self.capped],
        }

    def explain(self) -> Iterator[str]:
        """Sentences for people, one for each estimate and each change after it."""
        for each in self.estimates:
            yield f"{self.name} {each.resource} {each.bound}: {_sentence(each)}"
        for change in self.capped:
            yield (
                f"{self.name} {change.resource} {change.bound}: {change.by} made "
                f"{change.after} of {change.before}"
            )


class Recommendation(msgspec.Struct, frozen=True):
    """What was recommended at ``time``: the list of the status, and how it came about.

    ``generation`` is that of the object by which it was made.
    """

    time: int
    containers: tuple[ContainerEstimates, ...]
    recommended: tuple[ContainerRecommendation, ...]
    conditions: tuple[Condition, ...]
    generation: int = 0

    def container(self, name: str) -> ContainerRecommendation | None:
        return next((each for each in self.recommended if each.container_name == name), None)

    def explain(self) -> list[str]:
        return [line for each in self.containers for line in each.explain()]

    def to_status(self) -> JsonObject:
        """The status of the VerticalPodAutoscaler."""
        status: JsonObject = {
            "conditions": [each.to_dict() for each in self.conditions],
            "observedGeneration": self.generation,
        }
        if self.recommended:
            status["recommendation"] = {
                "containerRecommendations": [each.to_dict() for each in self.recommended]
            }
        return status


def _sentence(each: Estimate) -> str:
    unit = "m" if each.resource == CPU else " bytes"
    steps = [f"percentile {each.percentile:g} is {each.base}{unit}"]
    steps.append(f"with margin {each.with_margin}{unit}")
    if each.bound is not Bound.TARGET:
        scaled = "nothing" if each.with_confidence == NOT_A_NUMBER else each.with_confidence
        steps.append(
            f"times {each.factor:.6g} for confidence {each.confidence:.6g} is {scaled}"
            + ("" if scaled == "nothing" else unit)
        )
    if each.is_minimum:
        steps.append(f"raised to the minimum {each.minimum}{unit}")
    return ", ".join(steps)
