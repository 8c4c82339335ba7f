"""Who plays the Scenarios of an API server: of several commands the one that holds the Lease.

As components of Kubernetes elect a leader. The holder renews the Lease every few seconds; whoever
sees one that was not renewed for as long as it lasts takes it over. Two commands at one server
would fail each other's scenarios and take away each other's webhook.
"""

import os
import socket
from collections.abc import Callable
from threading import Event, Thread

from kubescene.actors import Actor
from kubescene.api.kinds import LEASE
from kubescene.client import ObjectRef
from kubescene.client.http import Endpoint, HttpClient
from kubescene.clock import SECOND, Clock, ScaledClock, WallClock, format_micro_time
from kubescene.errors import AlreadyExistsError, ApiError, ConflictError
from kubescene.registry.bootstrap import KEEP_ANNOTATION
from kubescene.types import JsonObject

PLACE = ObjectRef(LEASE, "kubescene-controller", "kube-system")
LASTS_S = 40
GIVES_UP_S = 30
"""For how long renewing may fail, as a watch may. It must be less than it lasts."""
RENEWS_S = 2.0
WAITING = (
    "{holder} plays here already ({place}): waiting until it ends. One that was killed is "
    f"taken for dead after {LASTS_S} s"
)
TAKEN = "{holder} has taken the {place}: only one controller plays at an API server"
UNRENEWED = "the {place} could not be renewed for {seconds} s, so another may play: {error}"


class Leadership:
    """One command's claim to play at ``endpoint``."""

    def __init__(self, endpoint: Endpoint, identity: str = "", clock: Clock | None = None) -> None:
        self._clock = clock or ScaledClock(1)
        self.identity = identity or f"{socket.gethostname()}_{os.getpid()}_{WallClock().now():x}"
        self.lost = ""
        """Why it may not play any more."""
        self._client = HttpClient(endpoint, Actor("kubescene-controller"), timeout_s=5)
        self._seen: tuple[str, str] = ("", "")
        self._seen_at = 0
        self._ended = Event()
        self._thread: Thread | None = None
        self._stop: Callable[[], None] = self._ended.set

    def acquire(self, tell: Callable[[str], None]) -> None:
        """Return when it may play; ``tell`` is called with a line for whomever it waits for.

        From then on it is renewed, on a thread.
        """
        told = ""
        while holder := self.try_once():
            if holder != told:
                tell(WAITING.format(holder=holder, place=PLACE))
                told = holder
            self._clock.wait_until(self._clock.now() + int(RENEWS_S * SECOND))
        self._thread = Thread(target=self._renew, daemon=True)
        self._thread.start()

    def when_lost(self, stop: Callable[[], None]) -> None:
        """``stop`` is called, on any thread, if it may not play any more."""
        self._stop = stop
        if self.lost:
            stop()

    def release(self) -> None:
        """Let the next one play at once. Safe to call if it was never held."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        try:
            lease = self._client.find(PLACE)
            if lease is not None and holder_of(lease) == self.identity:
                self._client.update({**lease, "spec": {**lease["spec"], "holderIdentity": ""}})
        except ApiError:
            pass  # It lapses by itself.
        finally:
            self._client.close()

    def try_once(self) -> str:
        """Take or renew it; who else has it, empty if it is ours now."""
        while True:
            lease = self._client.find(PLACE)
            holder = holder_of(lease or {})
            if lease and holder not in ("", self.identity) and not self._has_lapsed(lease):
                return holder
            try:
                self._write(lease)
            except (AlreadyExistsError, ConflictError):
                continue  # Somebody wrote it meanwhile: see who has it now.
            return ""

    def _write(self, lease: JsonObject | None) -> None:
        if lease is None:
            self._client.create(self._made())
        else:
            self._client.update({**lease, "spec": self._spec(lease["spec"])})

    # -- inside ------------------------------------------------------------------------------------

    def _has_lapsed(self, lease: JsonObject) -> bool:
        """By our own clock, from when it was first seen like this: those of machines differ."""
        spec, now = lease["spec"], self._clock.now()
        seen = (holder_of(lease), str(spec.get("renewTime")))
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        return now - self._seen_at > (spec.get("leaseDurationSeconds") or LASTS_S) * SECOND

    def _made(self) -> JsonObject:
        metadata = {
            "name": PLACE.name,
            "namespace": PLACE.namespace,
            "annotations": {KEEP_ANNOTATION: "true"},
        }
        kind = {"apiVersion": LEASE.api_version, "kind": LEASE.kind}
        return {**kind, "metadata": metadata, "spec": self._spec({})}

    def _spec(self, before: JsonObject) -> JsonObject:
        now = format_micro_time(WallClock().now())
        is_new = before.get("holderIdentity") != self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LASTS_S,
            "acquireTime": now if is_new else before.get("acquireTime"),
            "renewTime": now,
            "leaseTransitions": (before.get("leaseTransitions") or 0) + (is_new and bool(before)),
        }

    def _renew(self) -> None:
        renewed = self._clock.now()
        while not self.lost and not self._ended.wait(RENEWS_S):
            try:
                if holder := self.try_once():
                    self.lost = TAKEN.format(holder=holder, place=PLACE)
                renewed = self._clock.now()
            except ApiError as error:
                seconds = (self._clock.now() - renewed) // SECOND
                if seconds >= GIVES_UP_S:
                    self.lost = UNRENEWED.format(place=PLACE, seconds=seconds, error=error)
        if self.lost:
            self._stop()


def holder_of(lease: JsonObject) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
