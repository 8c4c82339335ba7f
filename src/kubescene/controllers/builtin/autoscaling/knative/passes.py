"""One pass of the KPA: from what was decided to the scale, with its way to zero and back.

The pods go when nobody came for a stable window and an activator has been before them for a grace
period; conditions and their times are the memory of that, as upstream.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from kubescene.api.selectors import LabelSelector
from kubescene.autoscalers.kpa import TICK, Buckets, KpaScale, Scaler, WeightedBuckets
from kubescene.client import ObjectRef
from kubescene.clock import SECOND, format_time, parse_time
from kubescene.controllers.builtin.autoscaling.facts import ReplicasDecided
from kubescene.controllers.builtin.autoscaling.knative.settings import RPS, KpaSettings
from kubescene.controllers.builtin.autoscaling.targets import ScaledTarget
from kubescene.controllers.reconcile import Patch, Scale, Write
from kubescene.types import JsonObject, Nanoseconds

UNKNOWN_SCALE = -1
ACTIVE, INITIALIZED, SERVED, READY = "Active", "ScaleTargetInitialized", "SKSReady", "Ready"


class NextCondition(Struct, frozen=True):
    """A condition as it is about to be."""

    status: str
    reason: str = ""
    message: str = ""


TRUE, UNKNOWN = NextCondition("True"), NextCondition("Unknown")
QUEUED = NextCondition(
    "Unknown",
    "Queued",
    "Requests to the target are being buffered as resources are provisioned.",
)
IDLE = NextCondition("False", "NoTraffic", "The target is not receiving traffic.")
LATE = NextCondition("False", "TimedOut", "The target could not be activated.")


class Decider:
    """What is remembered of one PodAutoscaler."""

    def __init__(self, uid: str, now: Nanoseconds) -> None:
        self.uid = uid
        self.begun = self.measured = now
        """When it came; what was measured is recorded up to there, second by second."""
        self.scaler: Scaler | None = None
        self.stable = self.panic = Buckets(SECOND)
        self.weighted: bool | None = None
        self.desired = UNKNOWN_SCALE
        self.excess = -1
        self.answer: KpaScale | None = None
        self.averages = 0.0, 0.0
        self.ticked = now
        self.ready = 0
        self.is_counted = False
        """Whether that is still true."""
        self.early = 0
        """Requests that were told of before the second in which they came was over."""
        self.proxied: Nanoseconds | None = now
        """Since when the activator is before the pods; None: it is not."""
        self.selector: LabelSelector | None = None
        self.fault = ""

    def configure(self, settings: KpaSettings) -> None:
        """Other windows begin empty."""
        windows = settings.rule.stable_window, settings.panic_window
        known = self.stable.window, self.panic.window
        if self.weighted is settings.weighted and windows == known:
            return
        kind = WeightedBuckets if settings.weighted else Buckets
        self.weighted = settings.weighted
        self.stable, self.panic = (kind(window) for window in windows)

    def record(self, now: Nanoseconds, value: float) -> None:
        self.stable.record(now, value)
        self.panic.record(now, value)

    def decide(self, settings: KpaSettings, now: Nanoseconds) -> None:
        """Ask the rule, every two seconds."""
        if self.scaler is None:
            self.scaler = Scaler.beginning(settings.rule, self.ready, now)
        self.scaler.spec = settings.rule
        if now - self.ticked < TICK:
            return
        self.ticked = now - (now - self.begun) % TICK
        if self.stable.is_empty(now):
            return
        self.averages = self.stable.average(now), self.panic.average(now)
        answer = self.answer = self.scaler.scale(*self.averages, self.ready, now)
        self.desired, self.excess = answer.desired, answer.excess_burst_capacity


class Pass:
    """What becomes of a decision now."""

    def __init__(
        self,
        autoscaler: JsonObject,
        decider: Decider,
        settings: KpaSettings,
        target: ScaledTarget,
        now: Nanoseconds,
    ) -> None:
        self._autoscaler = autoscaler
        self._decider = decider
        self._settings = settings
        self._target = target
        self._now = now
        self._known = known_conditions(autoscaler)
        self._active = self._known.get(ACTIVE, {}).get("status", "Unknown")
        self.due: list[Nanoseconds] = []
        """After how long something may come of it."""

    def writes(self) -> list[Write]:
        """The scale if it is another one, and the status."""
        want, is_applied = self._wanted()
        writes: list[Write] = []
        if is_applied and want != self._target.replicas:
            writes.append(Scale(self._target.ref, want, fact=self._fact(want)))
        decider = self._decider
        is_served = want > 0 and decider.excess >= 0
        if is_served:
            decider.proxied = None
        elif decider.proxied is None:
            decider.proxied = self._now
        known = (self._autoscaler.get("status") or {}).get("desiredScale", UNKNOWN_SCALE)
        status = {
            "actualScale": decider.ready,
            "desiredScale": known if want == UNKNOWN_SCALE else want,
            "observedGeneration": self._autoscaler["metadata"].get("generation"),
            "conditions": conditions(self._autoscaler, self._marked(want), self._now),
        }
        return [*writes, *written(self._autoscaler, status)]

    def _wanted(self) -> tuple[int, bool]:
        """How many pods, and whether that is asked for already."""
        desired, settings = self._decider.desired, self._settings
        if desired < 0 and self._active != "Unknown":
            return desired, False
        least = settings.min_scale
        if settings.initial_scale > 1 and not self._is_initialized and settings.rule.reachable:
            least = max(least, settings.initial_scale)
        desired = max(desired, least)
        if settings.max_scale:
            desired = min(desired, max(settings.max_scale, least))
        return self._to_zero() if desired == 0 else (desired, True)

    def _to_zero(self) -> tuple[int, bool]:
        settings = self._settings
        if not settings.scales_to_zero:
            return 1, True
        since = self._in_state()
        if self._active == "Unknown":
            if since > settings.activation_timeout:
                return 0, True
            self.due.append(settings.activation_timeout)
            return UNKNOWN_SCALE, False
        if self._active == "True":
            left = settings.rule.stable_window - since
            if left <= 0:
                return 0, False
            self.due.append(left)
            return 1, True
        return self._last_pod(since)

    def _last_pod(self, idle: Nanoseconds) -> tuple[int, bool]:
        """It has been idle for so long: the last pod goes, or stays for a while."""
        settings = self._settings
        if idle >= max(settings.grace, settings.retention):
            return 0, True
        if idle < settings.retention:
            self.due.append(settings.retention - idle)
            return 0, False
        proxied = self._decider.proxied
        left = settings.grace - (0 if proxied is None else self._now - proxied)
        if left <= 0:
            return 0, True
        self.due.append(left)
        return 0, False

    @property
    def _is_initialized(self) -> bool:
        return bool(self._known.get(INITIALIZED, {}).get("status") == "True")

    def _in_state(self) -> Nanoseconds:
        """How long it is active, or is not, or begins to be."""
        since = self._known.get(ACTIVE, {}).get("lastTransitionTime")
        return -1 if since is None else self._now - parse_time(since)

    def _marked(self, want: int) -> dict[str, NextCondition]:
        least = max(self._settings.min_scale, 1)
        if not self._is_initialized:
            least = max(self._settings.min_scale, self._settings.initial_scale)
        ready = self._decider.ready
        marked = {SERVED: TRUE}
        if ready >= least or self._is_initialized:
            marked[INITIALIZED] = TRUE
        if want == 0 or least == 0:
            marked[ACTIVE] = LATE if self._active == "Unknown" and least else IDLE
        elif want > 0 or self._active != "False":
            marked[ACTIVE] = QUEUED if ready < least else TRUE
        elif ready < least:
            marked[ACTIVE] = IDLE
        return marked

    def _fact(self, want: int) -> ReplicasDecided:
        metadata, ref = self._autoscaler["metadata"], self._target.ref
        return ReplicasDecided(
            metadata["namespace"],
            metadata["name"],
            f"{ref.gvk.kind}/{ref.name}",
            self._target.replicas,
            want,
            reason_of(self._decider, self._settings, want),
        )


def reason_of(decider: Decider, settings: KpaSettings, want: int) -> str:
    """Why so many pods, in words."""
    answer = decider.answer
    if answer is None or decider.desired == UNKNOWN_SCALE:
        return f"no measurement yet: bounds make it {want}"
    unit = "requests a second" if settings.metric == RPS else "requests inside"
    window = "panic" if answer.panicking and answer.panic >= answer.stable else "stable"
    average = max(decider.averages[window == "panic"], 0.0)
    needed = answer.panic if window == "panic" else answer.stable
    parts = [
        f"{window} window: {average:.2f} {unit} at {settings.rule.target:g} a pod are {needed} pods"
    ]
    parts += _limits(answer, needed, want)
    return ", ".join(parts)


def _limits(answer: KpaScale, needed: int, want: int) -> Iterator[str]:
    if answer.within != needed:
        yield f"rates of change make it {answer.within}"
    if answer.undelayed != answer.within:
        yield f"panic holds {answer.undelayed}"
    if answer.desired != answer.undelayed:
        yield f"the delay keeps {answer.desired}"
    if want != answer.desired:
        yield f"bounds make it {want}"


# -- conditions ----------------------------------------------------------------------------------


def known_conditions(autoscaler: JsonObject) -> dict[str, JsonObject]:
    """Those of the status, by type."""
    found = (autoscaler.get("status") or {}).get("conditions") or ()
    return {each["type"]: each for each in found}


def conditions(
    autoscaler: JsonObject, marked: Mapping[str, NextCondition], now: Nanoseconds
) -> list[JsonObject]:
    """All conditions with those that are marked; ``Ready`` follows from the others."""
    known = known_conditions(autoscaler)
    after = {
        type: marked.get(type) or _of(known.get(type)) for type in (ACTIVE, SERVED, INITIALIZED)
    }
    worst = [each for each in after.values() if each.status == "False"]
    worst += [each for each in after.values() if each.status == "Unknown"]
    ready = marked.get(READY) or (worst[0] if worst else TRUE)
    after = {ACTIVE: after[ACTIVE], READY: ready, **after}
    found = []
    for type in (ACTIVE, READY, SERVED, INITIALIZED):
        condition, before = after[type], known.get(type)
        is_same = before is not None and before["status"] == condition.status
        since = before["lastTransitionTime"] if before and is_same else format_time(now)
        each = {"type": type, "status": condition.status, "lastTransitionTime": since}
        each |= {"reason": condition.reason} if condition.reason else {}
        each |= {"message": condition.message} if condition.message else {}
        found.append(each)
    return found


def _of(condition: JsonObject | None) -> NextCondition:
    if condition is None:
        return UNKNOWN
    return NextCondition(
        condition["status"], condition.get("reason", ""), condition.get("message", "")
    )


def written(autoscaler: JsonObject, status: JsonObject) -> list[Write]:
    """The write of a status, if it says something new."""
    before = autoscaler.get("status") or {}
    # Required by the schema; there is no such Service here.
    after = {"metricsServiceName": "", "serviceName": "", **status}
    if all(before.get(name) == value for name, value in after.items()):
        return []
    return [Patch(ObjectRef.to(autoscaler), {"status": after}, subresource="status")]
