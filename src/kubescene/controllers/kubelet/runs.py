"""One run of a container: when it is ready, how it ends, and what its probes say meanwhile.

All of it is known when the run begins: it follows from the container, from what its pod's behaviour
draws for this run, and from the instant in its status.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from kubescene.api.quantity import milli_value
from kubescene.clock import SECOND, Streams
from kubescene.clock.distributions import Distribution
from kubescene.controllers.kubelet.behaviour import (
    PARTS,
    ContainerBehaviour,
    FailingSpell,
    ProbeBehaviour,
    has_post_start,
)
from kubescene.controllers.kubelet.probes import (
    ALWAYS_PASSES,
    LIVENESS,
    READINESS,
    STARTUP,
    Flip,
    ProbeAnswers,
    ProbeSchedule,
    ProbeStretch,
    failures,
    flips,
    schedule_of,
    stretches,
)
from kubescene.types import JsonObject
from kubescene.usage.courses import UsageCourse, exceeded_at
from kubescene.usage.series import Points

TERMINATED, KILLED = 143, 137
"""Exit codes of a container that ends since it is asked to, and of one that is not asked."""
COMPLETED, FAILED, OOM_KILLED = "Completed", "Error", "OOMKilled"
DEFAULT_GRACE = 30
POST_START = "postStart"
WORDS = {STARTUP: "Startup", READINESS: "Readiness", LIVENESS: "Liveness"}
"""What a kubelet calls probes in Events."""


class End(NamedTuple):
    """How a run ends."""

    at: int
    code: int
    reason: str


class Kill(NamedTuple):
    """A kubelet begins to stop a container one of whose probes, or whose hook, has failed."""

    at: int
    why: str


class Probing(NamedTuple):
    """The probes of one kind: all of them until an instant (None: while it runs)."""

    kind: str
    schedule: ProbeSchedule
    row: Sequence[ProbeStretch]
    until: int | None
    message: str


class ContainerRun(Struct, frozen=True):
    """What is known of a run. ``started`` None: its hook or its startup probe fails."""

    begun: int
    started: int | None
    readiness: Sequence[Flip]
    end: End | None
    kill: Kill | None
    probings: Sequence[Probing] = ()

    def is_started(self, now: int) -> bool:
        return self.started is not None and self.started <= now

    def is_ready(self, now: int) -> bool:
        ready = False
        for flip in self.readiness:
            if flip.at <= now:
                ready = flip.passes
        return ready

    def instants(self) -> Iterator[int]:
        """When something changes."""
        if self.started is not None:
            yield self.started
        for flip in self.readiness:
            yield flip.at
        if self.kill is not None:
            yield self.kill.at
        if self.end is not None:
            yield self.end.at

    def complaints(self, after: int, until: int) -> Iterator[tuple[int, str]]:
        """What is said of probes that fail after one instant and not after another."""
        for probing in self.probings:
            last = until if probing.until is None else min(until, probing.until)
            for at in failures(probing.schedule, probing.row, after, last):
                yield at, f"{WORDS[probing.kind]} probe failed: {probing.message}"

    def next_complaint(self, after: int) -> int | None:
        """When a probe fails next."""
        found: list[int] = []
        for probing in self.probings:
            period = probing.schedule.period
            for stretch in probing.row:
                if not stretch.passes:
                    last = max(after + period, stretch.first)
                    last = last if probing.until is None else min(last, probing.until)
                    found += failures(probing.schedule, (stretch,), after, last)
        return min(found, default=None)


class Draws:
    """What is drawn for one run of a container of a pod.

    Each amount has a stream of its own, named by pod, creation, container, run and amount: it does
    not matter who asks, how often, in which order, or when.
    """

    def __init__(self, streams: Streams, pod: JsonObject, container: str, run: int) -> None:
        metadata = pod["metadata"]
        self._streams = streams
        self._pod = (
            f"pods/{metadata['namespace']}/{metadata['name']}@{metadata['creationTimestamp']}"
        )
        self.run = run
        self._container = container
        self._run = f"{container}/{run}"

    def draw(self, amount: Distribution, what: str) -> int:
        if amount.is_constant:
            return amount.draw(NO_STREAM)
        return amount.draw(self._streams.single(f"{self._pod}/{self._run}/{what}"))

    def of(self, amount: Distribution | None, what: str) -> int:
        """The amount; zero, if nothing is said of it."""
        return 0 if amount is None else self.draw(amount, what)

    def once(self, amount: Distribution | None, what: str) -> int:
        """The same for all runs of the container."""
        if amount is None or amount.is_constant:
            return self.of(amount, what)
        return amount.draw(self._streams.single(f"{self._pod}/{self._container}/{what}"))

    def share(self, millionths: int, what: str) -> bool:
        """Whether this run is one of a share of all."""
        if millionths >= PARTS:
            return True
        return self._streams.single(f"{self._pod}/{self._run}/{what}").below(PARTS) < millionths


NO_STREAM = Streams().single("constants")


class Stopping(NamedTuple):
    """How long a container takes to end once it is asked to, and the code that it ends with."""

    pre_stop: int
    termination: int

    @classmethod
    def of(cls, behaviour: ContainerBehaviour, draws: Draws, default: int = 0) -> "Stopping":
        """``default`` is the time of a container of which none is said."""
        amount = behaviour.termination_time
        termination = default if amount is None else draws.draw(amount, "termination-time")
        return cls(draws.of(behaviour.pre_stop_time, "pre-stop-time"), termination)

    def end(self, asked: int, grace: int, code: int, turn: int = 0) -> End:
        """How it ends if it is asked at an instant, and has to wait for its ``turn``."""
        done, last = max(asked + self.pre_stop, turn) + self.termination, asked + grace
        if done > last:
            return End(last, KILLED, FAILED)
        return End(done, code, FAILED if code else COMPLETED)


def run_of(
    pod: JsonObject,
    container: JsonObject,
    behaviour: ContainerBehaviour,
    draws: Draws,
    begun: int,
    ready_delay: int = 0,
) -> ContainerRun:
    """The run of a container that has begun at an instant.

    ``ready_delay`` is how long it is not ready if nobody says it of this container.
    """
    hooked, is_failed = _post_start(container, behaviour, draws, begun)
    started: int | None = None if is_failed else hooked
    kill = Kill(hooked, POST_START) if is_failed else None
    startup = None
    if not is_failed:
        startup = _probing(container, STARTUP, behaviour.startup_probe, draws, begun, hooked)
    if startup is not None:
        first = next(flips(startup.schedule, startup.row, passed=None), None)
        started = first.at if first is not None and first.passes else None
        kill = Kill(first.at, STARTUP) if first is not None and not first.passes else None
        startup = startup._replace(until=None if first is None else first.at)
    liveness = readiness = None
    if started is not None:
        liveness = _probing(container, LIVENESS, behaviour.liveness_probe, draws, begun, started)
        readiness = _probing(container, READINESS, behaviour.readiness_probe, draws, begun, started)
    if liveness is not None:
        fatal = next(flips(liveness.schedule, liveness.row, passed=True), None)
        kill = None if fatal is None else Kill(fatal.at, LIVENESS)
        liveness = liveness._replace(until=None if fatal is None else fatal.at)
    end = own_end(container, behaviour, draws, begun)
    if kill is not None and (end is None or kill.at < end.at):
        killed = _killed(pod, container, kill, behaviour, draws)
        end = killed if end is None else min(end, killed)
    else:
        kill = None
    ready = begun + (
        ready_delay
        if behaviour.ready_time is None
        else draws.draw(behaviour.ready_time, "ready-time")
    )
    probings = [each for each in (startup, liveness, readiness) if each is not None]
    return ContainerRun(begun, started, _readiness(readiness, started, ready), end, kill, probings)


def _post_start(
    container: JsonObject, behaviour: ContainerBehaviour, draws: Draws, begun: int
) -> tuple[int, bool]:
    """When a container's hook is over, and whether it has failed; nothing is probed before."""
    if not has_post_start(container):
        return begun, False
    failures = draws.once(behaviour.post_start_failures, "post-start-failures")
    time = draws.of(behaviour.post_start_time, "post-start-time")
    return begun + time, draws.run < failures


def _probing(
    container: JsonObject,
    kind: str,
    behaviour: ProbeBehaviour | None,
    draws: Draws,
    begun: int,
    since: int,
) -> Probing | None:
    schedule = schedule_of(container, kind)
    if schedule is None:
        return None
    answers = ALWAYS_PASSES if behaviour is None else _answers(kind, behaviour, draws)
    message = schedule.silence
    if behaviour is not None and behaviour.message is not None:
        message = behaviour.message
    return Probing(kind, schedule, stretches(schedule, answers, begun, since), None, message)


def _answers(kind: str, behaviour: ProbeBehaviour, draws: Draws) -> ProbeAnswers:
    if not draws.share(behaviour.share, f"{kind}/share"):
        return ALWAYS_PASSES
    spells = [FailingSpell(behaviour.fail_after, behaviour.fail_for)]
    named = [(spell, "fail") for spell in spells if spell.after is not None]
    named += [(spell, f"fails/{place}") for place, spell in enumerate(behaviour.fails)]
    failing = [
        (
            draws.of(spell.after, f"{kind}/{name}-after"),
            None if spell.lasts is None else draws.draw(spell.lasts, f"{kind}/{name}-for"),
        )
        for spell, name in named
    ]
    return ProbeAnswers(draws.of(behaviour.pass_after, f"{kind}/pass-after"), tuple(failing))


def _readiness(probing: Probing | None, started: int | None, ready: int) -> Sequence[Flip]:
    """When it is ready: started, passing its probe, and not before an instant."""
    if started is None:
        return ()
    if probing is None:
        return (Flip(max(started, ready), passes=True),)
    found = list(flips(probing.schedule, probing.row, passed=False))
    later = [flip for flip in found if flip.at > ready]
    before = [flip for flip in found if flip.at <= ready]
    if before and before[-1].passes:
        return (Flip(max(before[-1].at, ready), passes=True), *later)
    return later


def own_end(
    container: JsonObject, behaviour: ContainerBehaviour, draws: Draws, begun: int
) -> End | None:
    """How a container ends if nobody stops it; None: it does not."""
    ends = []
    if behaviour.run_time is not None:
        code = draws.of(behaviour.exit_code, "exit-code")
        reason = FAILED if code else COMPLETED
        ends.append(End(begun + draws.draw(behaviour.run_time, "run-time"), code, reason))
    if behaviour.oom_after is not None:
        ends.append(End(begun + draws.draw(behaviour.oom_after, "oom-after"), KILLED, OOM_KILLED))
    killed = behaviour.out_of_memory
    if killed is not None and killed.run == draws.run:
        ends.append(End(max(killed.at, begun), KILLED, OOM_KILLED))
    exceeded = _memory_exceeded(container, behaviour, draws)
    if exceeded is not None:
        ends.append(End(begun + exceeded, KILLED, OOM_KILLED))
    return min(ends, default=None)


def _memory_exceeded(
    container: JsonObject, behaviour: ContainerBehaviour, draws: Draws
) -> int | None:
    """The age at which it uses more memory than its limit."""
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    course = None if behaviour.usage is None else behaviour.usage.memory
    if limit is None or course is None:
        return None
    return exceeded_at(used_by_age(container, course, "memory", draws), milli_value(limit))


def used_by_age(container: JsonObject, course: UsageCourse, resource: str, draws: Draws) -> Points:
    """What a run of a container uses of a resource."""
    requests = (container.get("resources") or {}).get("requests") or {}
    requested = milli_value(requests.get(resource, 0))
    return course.by_age(requested, lambda amount: draws.draw(amount, f"usage/{resource}"))


def _killed(
    pod: JsonObject,
    container: JsonObject,
    kill: Kill,
    behaviour: ContainerBehaviour,
    draws: Draws,
) -> End:
    schedule = None if kill.why == POST_START else schedule_of(container, kill.why)
    grace = grace_of(pod) if schedule is None or schedule.grace is None else schedule.grace
    return Stopping.of(behaviour, draws).end(kill.at, grace, TERMINATED)


def grace_of(pod: JsonObject) -> int:
    """Nanoseconds that the containers of a pod have to end."""
    seconds = pod["spec"].get("terminationGracePeriodSeconds")
    return (DEFAULT_GRACE if seconds is None else int(seconds)) * SECOND
