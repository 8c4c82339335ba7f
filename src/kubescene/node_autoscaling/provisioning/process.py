"""What becomes of ProvisioningRequests in the loops of one process of the autoscaler.

Pods of the next request join those that wait; a loop helps either them or the others, by turns if
there are both. Room that was found stays booked for ten minutes.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from kubescene.bounded import BoundedDict
from kubescene.durations import HOUR, MINUTE
from kubescene.node_autoscaling.flags import Flags
from kubescene.node_autoscaling.packing import Packing
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.provisioning.kinds import BEST_EFFORT_ATOMIC, CHECK_CAPACITY
from kubescene.node_autoscaling.provisioning.requests import (
    ACCEPTED,
    BOOKING_EXPIRED,
    FAILED,
    NO_RETRY,
    PROCESSOR,
    PROVISIONED,
    MissingTemplatesError,
    SeenRequest,
    consumed_by,
    is_for_request,
)
from kubescene.node_autoscaling.scale_up import ScaleUp, ScaleUpPlanner, ScaleUpResult
from kubescene.node_autoscaling.snapshot import ClusterSnapshot
from kubescene.node_autoscaling.telling import Teller
from kubescene.types import JsonObject

RESERVED = 10 * MINUTE
WEEK = 7 * 24 * HOUR
"""A request that is not provisioned for so long fails; so long after its end it is deleted."""
MOST_EXPIRED = 20
MOST_EVENTS = 50
"""So many at most in one loop."""
FOUND, NOT_FOUND = "CapacityIsFound", "CapacityIsNotFound"
IN_CLUSTER = "Capacity is found in the cluster"
LATER = "Capacity is not found, CA will try to find it later."


class RequestWorld(Protocol):
    """Where requests are read and written."""

    def requests(self) -> Sequence[JsonObject]:
        """All of them, in the order in which they are to be answered."""

    def request(self, namespace: str, name: str) -> JsonObject | None: ...

    def pod_template(self, namespace: str, name: str) -> JsonObject | None: ...

    def write_status(self, request: JsonObject) -> bool:
        """Whether it was accepted."""

    def delete(self, request: JsonObject) -> None: ...


class ProvisioningRequests:
    """What one process remembers of requests."""

    def __init__(self, flags: Flags, world: RequestWorld, teller: Teller) -> None:
        self._flags = flags
        self._world = world
        self._teller = teller
        self._waits: BoundedDict[str, int] = BoundedDict(
            flags.provisioning_request_max_backoff_cache_size
        )
        """How long a request is left alone after it was refused again, by uid."""
        self._checking, self._booking = Packing(), Packing()
        self._turn_of_requests = False

    def _all(self) -> list[SeenRequest]:
        return [SeenRequest(each) for each in self._world.requests()]

    def _state(
        self, request: SeenRequest, now: int, condition: str, status: bool, reason: str, text: str
    ) -> bool:
        stated = request.stating(now, condition, status, reason, text)
        return self._world.write_status(stated.object)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: int) -> None:
        """At the beginning of a loop: bookings end, requests fail, old ones are deleted."""
        requests = self._all()
        expired: list[SeenRequest] = []
        failed: list[SeenRequest] = []
        for each in requests:
            if len(expired) >= MOST_EXPIRED:
                break
            if not self._is_ours(each) or each.is_over:
                continue
            if each.says(PROVISIONED):
                if each.since(PROVISIONED) + RESERVED < now:
                    expired.append(each)
            elif len(failed) < MOST_EXPIRED - len(expired) and each.created + WEEK < now:
                failed.append(each)
        for each in expired:
            reason, text = "CapacityReservationTimeExpired", "Capacity reservation time is expired"
            self._state(each, now, BOOKING_EXPIRED, True, reason, text)
        for each in failed:
            self._state(each, now, FAILED, True, "Expired", "ProvisioningRequest is expired")
        for each in requests:
            end = _end(each)
            if end is not None and end < now:
                self._world.delete(each.object)

    def quiet_until(self, last: int) -> int | None:
        """Until when nothing becomes of any of them; None if something may in the next loop."""
        for each in self._all():
            end = _end(each)
            if self._is_ours(each) and not each.is_over:
                return None
            if end is not None:
                last = min(last, end + 1)
        return last

    # -- the pods of a loop ----------------------------------------------------------------

    def join(self, pods: Sequence[SeenPod], snapshot: ClusterSnapshot, now: int) -> list[SeenPod]:
        """The pods that wait without those that have a request, and with those of the next one.

        What is booked takes its room.
        """
        waiting = self._without_consumers(pods) + self._next(now)
        self._book(snapshot, now)
        return waiting

    def _without_consumers(self, pods: Iterable[SeenPod]) -> list[SeenPod]:
        kept, told = [], 0
        for pod in pods:
            name = consumed_by(pod)
            if name is None:
                kept.append(pod)
            elif told < MOST_EVENTS:
                told += 1
                why = f"it's consuming ProvisioningRequest {pod.namespace}/{name}"
                message = f"Unschedulable pod didn't trigger scale-up, because {why}"
                self._teller.about_pod(pod, "Normal", "", message)
        return kept

    def _next(self, now: int) -> list[SeenPod]:
        for each in self._all():
            if not self._is_ours(each) or not self._is_due(each, now):
                continue
            pods = self._pods_of(each, now)
            if pods is None:
                continue
            if self._flags.check_capacity_batch_processing and self._is_checked(each):
                return pods  # Accepted with the others of its batch.
            if self._accept(each, now):
                return pods
        return []

    def _accept(self, request: SeenRequest, now: int) -> bool:
        text = "ProvisioningRequest is accepted by ClusterAutoscaler"
        return self._state(request, now, ACCEPTED, True, ACCEPTED, text)

    def _pods_of(self, request: SeenRequest, now: int) -> list[SeenPod] | None:
        try:
            return self._made(request)
        except MissingTemplatesError as error:
            self._state(request, now, FAILED, True, "FailedToCreatePods", str(error))
            return None

    def _made(self, request: SeenRequest) -> list[SeenPod]:
        return request.pods(lambda name: self._world.pod_template(request.namespace, name))

    def _book(self, snapshot: ClusterSnapshot, now: int) -> None:
        booked: list[SeenPod] = []
        for each in self._all():
            if not self._is_ours(each) or not each.is_booked:
                continue
            try:
                booked += self._made(each)
            except MissingTemplatesError as error:
                text = f"Couldn't create pods, err: {error}"
                self._state(each, now, FAILED, True, "FailedToBookCapacity", text)
        self._booking.place_all(snapshot, booked)

    # -- which requests --------------------------------------------------------------------

    def _is_ours(self, request: SeenRequest) -> bool:
        if request.class_name == BEST_EFFORT_ATOMIC:
            return not self._flags.check_capacity_processor_instance
        return self._is_checked(request)

    def _is_checked(self, request: SeenRequest) -> bool:
        """Whether it is one of check-capacity, for this instance of the autoscaler."""
        mine, asked = self._flags.check_capacity_processor_instance, request.parameter(PROCESSOR)
        if asked or not mine:
            return asked == mine and request.class_name == CHECK_CAPACITY
        return request.class_name == mine + CHECK_CAPACITY

    def _is_due(self, request: SeenRequest, now: int) -> bool:
        """Whether to look for room now; to ask counts as a try."""
        refused = request.says(PROVISIONED) is False
        if request.says(FAILED) or request.says(PROVISIONED):
            self._waits.pop(request.uid, None)
            return False
        if not refused:
            return True
        flags = self._flags
        wait = self._waits.get(request.uid, flags.provisioning_request_initial_backoff_time)
        if request.since(PROVISIONED) + wait >= now:
            return False
        self._waits.pop(request.uid, None)
        longest = flags.provisioning_request_max_backoff_time
        self._waits[request.uid] = min(2 * wait, longest)
        return True

    # -- scaling up ------------------------------------------------------------------------

    def insist(self, pods: Iterable[SeenPod]) -> bool:
        """Whether a loop must not put off these pods, be they new or the cluster full."""
        return any(map(is_for_request, pods))

    def scale_up(self, pods: Sequence[SeenPod], planner: ScaleUpPlanner) -> ScaleUp:
        """Help the pods of a request, or the others."""
        asked = [pod for pod in pods if is_for_request(pod)]
        others = [pod for pod in pods if not is_for_request(pod)]
        is_turn = bool(asked) and (self._turn_of_requests or not others)
        self._turn_of_requests = not is_turn
        if not is_turn:
            return planner.for_pods(others)
        with planner.snapshot.supposing():
            return self._check(asked, planner) or self._provision(asked, planner)

    def _request_of(self, pods: Sequence[SeenPod]) -> SeenRequest | None:
        owner = pods[0].controller
        assert owner is not None
        found = self._world.request(pods[0].namespace, owner.name)
        return None if found is None else SeenRequest(found)

    def _check(self, pods: Sequence[SeenPod], planner: ScaleUpPlanner) -> ScaleUp | None:
        """Is there room for one request of check-capacity, or for each of a batch?"""
        batch = self._batch(pods, planner.now)
        results = [self._is_room(request, made, planner) for request, made in batch]
        if not batch:
            return None
        found = ScaleUpResult.SUCCESSFUL if any(results) else ScaleUpResult.NO_OPTIONS
        return ScaleUp(found)

    def _batch(
        self, pods: Sequence[SeenPod], now: int
    ) -> list[tuple[SeenRequest, Sequence[SeenPod]]]:
        flags = self._flags
        most = flags.check_capacity_provisioning_request_max_batch_size
        if not flags.check_capacity_batch_processing or most <= 1:
            request = self._request_of(pods)
            if request is None or not self._is_checked(request):
                return []
            return [(request, pods)]
        batch: list[tuple[SeenRequest, Sequence[SeenPod]]] = []
        for each in self._all():
            if len(batch) >= most:
                break
            if self._is_checked(each) and self._is_due(each, now):
                made = self._pods_of(each, now)
                if made is not None:
                    batch.append((each, made))
        return batch

    def _is_room(
        self, request: SeenRequest, pods: Sequence[SeenPod], planner: ScaleUpPlanner
    ) -> bool:
        text, now = "ProvisioningRequest is accepted by ClusterAutoscaler", planner.now
        request = request.stating(now, ACCEPTED, True, ACCEPTED, text)
        with planner.snapshot.supposing() as supposition:
            placed = self._checking.place_all(planner.snapshot, pods, all_or_none=True)
            fits = len(placed) == len(pods)
            if fits:
                supposition.keep()
        if fits:
            self._state(request, now, PROVISIONED, True, FOUND, IN_CLUSTER)
        elif request.parameter(NO_RETRY) == "true":
            text = "CA could not find requested capacity"
            self._state(request, now, FAILED, True, NOT_FOUND, text)
        else:
            self._state(request, now, PROVISIONED, False, NOT_FOUND, LATER)
        return fits

    def _provision(self, pods: Sequence[SeenPod], planner: ScaleUpPlanner) -> ScaleUp:
        """Order nodes for all pods of a request that fit nowhere, or for none."""
        request = self._request_of(pods)
        if request is None or request.class_name != BEST_EFFORT_ATOMIC:
            return ScaleUp(ScaleUpResult.NOT_TRIED)
        placed = {each.uid for each in self._checking.place_all(planner.snapshot, pods)}
        left = [pod for pod in pods if pod.uid not in placed]
        if not left:
            self._state(request, planner.now, PROVISIONED, True, FOUND, IN_CLUSTER)
            return ScaleUp(ScaleUpResult.NOT_NEEDED)
        done = planner.for_pods(left, all_or_none=True)
        if done.result is ScaleUpResult.SUCCESSFUL:
            reason = "CapacityIsProvisioned"
            self._state(request, planner.now, PROVISIONED, True, reason, IN_CLUSTER)
        else:
            self._state(request, planner.now, PROVISIONED, False, NOT_FOUND, LATER)
            if done.error:
                done.error = f"error during ScaleUp: {done.error}"
        return done


def _end(request: SeenRequest) -> int | None:
    """When a request is to be deleted: a week after its answer, even one that was no yet."""
    written = [
        request.since(each) for each in (PROVISIONED, FAILED) if request.says(each) is not None
    ]
    return min(written) + WEEK if written else None
