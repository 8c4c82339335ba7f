"""Who says what pods do: simulations bring what they know, autoscalers and kubelets ask for it.

A world has one `UsageRegistry`. A source is asked at an instant, and may simulate up to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from kubescene.types import Nanoseconds


class ScrapedPod(Struct, frozen=True):
    """What the last scrape has seen of a pod, over the window before it; amounts in thousandths."""

    pod: str
    container: str
    time: Nanoseconds
    window: Nanoseconds
    resources: dict[str, int]
    metrics: dict[str, int]
    """Custom metrics, by name."""


class ScrapedService(Struct, frozen=True):
    """Custom metrics of a Service, in thousandths."""

    service: str
    metrics: dict[str, int]


class UsageSource(Protocol):
    """A simulation of what goes on in pods. It is false as long as nothing does."""

    def __bool__(self) -> bool: ...

    def scraped(self, namespace: str, now: Nanoseconds) -> Iterable[ScrapedPod]: ...

    def scraped_services(self, namespace: str, now: Nanoseconds) -> Iterable[ScrapedService]: ...

    def drained_at(self, uid: str, now: Nanoseconds, deadline: Nanoseconds) -> Nanoseconds | None:
        """A pod was asked to end at ``now``, or before: when it is done with what it does.

        ``deadline`` at the latest. None: nothing is known of it.
        """
        ...


class RequestLoad(NamedTuple):
    """Requests of a span of time: request-nanoseconds inside or waiting, and how many came."""

    inside: int
    arrived: int


class RequestSource(Protocol):
    """What goes on before pods: it is known also where there is none."""

    def load(
        self, namespace: str, labels: Mapping[str, str], begin: Nanoseconds, end: Nanoseconds
    ) -> RequestLoad | None:
        """Of all requests to pods with these labels, between two instants that are over."""
        ...

    def load_of(
        self, namespace: str, name: str, begin: Nanoseconds, end: Nanoseconds
    ) -> RequestLoad | None:
        """Of one source of requests, by its name."""
        ...

    def next_request(
        self, namespace: str, labels: Mapping[str, str], now: Nanoseconds, until: Nanoseconds
    ) -> Nanoseconds | None:
        """When the next one comes to such pods, if that is before ``until``."""
        ...


class MetricRefusedError(Exception):
    """Whoever has a metric does not give it now, and says why."""


class ExternalSource(Protocol):
    """External metrics that somebody makes for an autoscaler."""

    def external(
        self,
        namespace: str,
        metric: str,
        labels: Mapping[str, str],
        now: Nanoseconds,
        *,
        counted: bool,
    ) -> int | None:
        """In thousandths; None if it is not his. Raises `MetricRefusedError`.

        ``counted``: an autoscaler asks, in its pass; whoever else asks changes nothing.
        """
        ...


class UsageRegistry:
    """The sources of a world, by the names of those who bring them."""

    def __init__(self) -> None:
        self._sources: dict[str, UsageSource] = {}
        self.requests: RequestSource | None = None
        """Who knows of requests, if there are any."""
        self.externals: ExternalSource | None = None
        """Who makes external metrics, if somebody does."""

    def bring(self, name: str, source: UsageSource) -> None:
        """Ask this one from now on, in the place of one of that name."""
        self._sources[name] = source

    def __bool__(self) -> bool:
        """Whether anybody has begun to simulate something."""
        return any(self._sources.values())

    def clear(self) -> None:
        self._sources.clear()
        self.requests = self.externals = None

    def scraped(self, namespace: str, now: Nanoseconds) -> Iterator[ScrapedPod]:
        for source in self._sources.values():
            yield from source.scraped(namespace, now)

    def scraped_services(self, namespace: str, now: Nanoseconds) -> Iterator[ScrapedService]:
        for source in self._sources.values():
            yield from source.scraped_services(namespace, now)

    def drained_at(self, uid: str, now: Nanoseconds, deadline: Nanoseconds) -> Nanoseconds:
        """When a pod that was asked to end is done; the past if nobody knows of anything."""
        ends = (each.drained_at(uid, now, deadline) for each in self._sources.values())
        return max((end for end in ends if end is not None), default=0)
