"""What is told of Traffic objects: for the timeline, and for those who read it."""

from msgspec import Struct

from kubescene.flows.windows import WindowCounts


class TrafficMeasured(Struct, frozen=True):
    """What became of the requests of a Traffic in the window that ends now; times in nanoseconds.

    ``ready`` pods serve at its end, ``cpu`` is what they used in the mean, in millicores.
    ``started`` is how long each pod took from its creation, of those that began to serve in it.
    ``window`` is how long it was, ``timeout`` is negative if there is none. ``percentile`` of all
    responses are to take no longer than ``objective``; those that do are good.
    """

    namespace: str
    name: str
    window: int
    ready: int
    cpu: int
    timeout: int
    objective: int
    percentile: float
    counts: WindowCounts
    started: tuple[int, ...] = ()
    inexact: str = ""
    """What is simulated in another way than it would be."""

    @property
    def traffic(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_met(self) -> bool:
        """Whether so many of those completed were good as the objective wants."""
        done = self.counts.succeeded + self.counts.failed
        return self.counts.good * 100 >= self.percentile * done
