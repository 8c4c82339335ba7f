"""One autoscaler through time: the object, its status and its history, pass after pass."""

from typing import NamedTuple

from kubescene.autoscalers.horizontal.accepting import accepted
from kubescene.autoscalers.horizontal.history import History
from kubescene.autoscalers.horizontal.observing import Observation
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.reconciling import DEFAULTS, Result, reconcile
from kubescene.autoscalers.horizontal.specs import HorizontalSpec, compiled
from kubescene.autoscalers.horizontal.statuses import HorizontalStatus
from kubescene.types import JsonObject, Nanoseconds


class Prepared(NamedTuple):
    """An object as an API server would store it, and its spec; many autoscalers may share it."""

    object: JsonObject
    spec: HorizontalSpec


def prepared(source: JsonObject | str, options: HorizontalOptions = DEFAULTS) -> Prepared:
    """Read, checked and compiled; raises what `accepted` raises."""
    found = accepted(source, scale_to_zero=options.scale_to_zero)
    return Prepared(found, compiled(found))


class HorizontalAutoscaler:
    """Remembers between passes what `reconcile` returns. It holds values only: copies go on alike.

    ``source`` is a HorizontalPodAutoscaler of v1, v2beta2 or v2, as an object or a text, or one
    that was `prepared`.
    """

    def __init__(
        self, source: "JsonObject | str | Prepared", options: HorizontalOptions = DEFAULTS
    ) -> None:
        self.object, self.spec = (
            source if isinstance(source, Prepared) else prepared(source, options)
        )
        self.options = options
        self.status = HorizontalStatus.of(self.object.get("status") or {})
        self.history = History()

    def run(
        self,
        observation: Observation,
        now: Nanoseconds,
        *,
        scale_error: str = "",
        status_error: str = "",
    ) -> Result:
        """One pass at ``now``."""
        result = reconcile(
            self.spec,
            self.status,
            observation,
            self.history,
            now=now,
            options=self.options,
            scale_error=scale_error,
            status_error=status_error,
        )
        self.status, self.history = result.status, result.history
        return result
