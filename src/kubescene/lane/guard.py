"""When the lane is open. Each line is something that could see the difference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubescene.api.kinds import POD
from kubescene.control import Slot
from kubescene.controllers.kubelet import KubeletReconciler
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import InternalError
from kubescene.instruments import Instrument, Instruments
from kubescene.registry import Registry
from kubescene.scheduler.like_pods import LikePods
from kubescene.scheduler.scheduler import Scheduler
from kubescene.store.subscriptions import Subscriber
from kubescene.timeline import TimelineRecorder

ROOM = 4 * 1024 * 1024
"""More than the pods of one turn take on disk."""


class NotNowError(Exception):
    """The lane is closed; why."""


@dataclass(frozen=True, slots=True)
class Parties:
    """Those whom a pod meets in the lane.

    ``scheduler_hears`` and ``kubelet_hears`` are how these hear of pods. The hooks are those that
    are told of every attempt, of attempts that are explained, and of the phase before these.
    """

    like_pods: LikePods
    kubelet: KubeletReconciler
    recorder: TimelineRecorder
    scheduler_hears: Subscriber
    kubelet_hears: Subscriber
    attempted: tuple[Callable[..., None], ...]
    explained: tuple[Callable[..., None], ...]
    phases: tuple[Callable[..., None], ...]


def why_not(slot: Slot) -> str:
    """What keeps the next pod of a scheduler out, whatever others do; empty if nothing does."""
    scheduler = slot.controller
    return scheduler.like_pods.why_not() if type(scheduler) is Scheduler else "another scheduler"


def parties(
    slot: Slot, others: Sequence[Slot], registry: Registry, instruments: Instruments
) -> Parties:
    """Whom the pods of a scheduler meet; raises `NotNowError` if the lane is closed to all."""
    if reason := why_not(slot):
        raise NotNowError(reason)
    scheduler = slot.controller
    assert isinstance(scheduler, Scheduler)
    like_pods = scheduler.like_pods
    controller = _kubelet(others)
    kubelet = controller.reconciler
    assert isinstance(kubelet, KubeletReconciler)
    if any(other.awake for other in others):
        raise NotNowError("a controller is awake")
    try:
        registry.store.admit(ROOM)
    except InternalError as error:
        raise NotNowError("writes cannot be kept") from error
    if registry.track_fields or not registry.admission.is_quiet:
        raise NotNowError("more has to be asked before a write")
    recorder = recorder_of(instruments)
    if not recorder.tells_all_of(like_pods.actor):
        raise NotNowError("net changes are told")
    told = [each for each in instruments.overriding(Instrument.pod_attempted) if each != recorder]
    return Parties(
        like_pods,
        kubelet,
        recorder,
        like_pods.watch.handler,
        controller.watches[POD].handler,
        attempted=tuple(each.pod_attempted for each in told if each.counts_attempts),
        explained=tuple(each.pod_attempted for each in told),
        phases=instruments.phase_changed,
    )


def _kubelet(slots: Sequence[Slot]) -> ReconcilerController:
    for slot in slots:
        controller = slot.controller
        if type(controller) is ReconcilerController and (
            type(controller.reconciler) is KubeletReconciler
        ):
            return controller
    raise NotNowError("another kubelet")


def recorder_of(instruments: Instruments) -> TimelineRecorder:
    """Who writes facts; raises if somebody else wants to see every write, attempt or phase."""
    onlookers = instruments.overriding(
        Instrument.object_written, Instrument.pod_attempted, Instrument.phase_changed
    )
    if not all(each.in_lane for each in onlookers):
        raise NotNowError("an instrument looks on")
    recorders = [each for each in onlookers if type(each) is TimelineRecorder]
    if len(recorders) != 1:
        raise NotNowError("no timeline, or several")
    return recorders[0]
