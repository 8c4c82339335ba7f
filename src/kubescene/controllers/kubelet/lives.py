"""What becomes of the containers of a pod: starts, probes, ends, restarts, back-offs, deadlines.

`Lives.next_status` is asked about a pod on its node, whenever something is due, and says what its
status is now, what a kubelet tells of it, and when to ask again. It is a function of the pod's
status, of its behaviour and of the instant; what is remembered beside the status is what a kubelet
remembers: back-offs, pulls that are under way, and how far it has told of probes that failed.

Restarts wait as a kubelet lets them: the first begins at once, the next 10 s after the end before
it, then twice as long each time up to 5 minutes, and from the beginning after a container has run
for 10 minutes. Pulls that fail wait likewise, from the first one on.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from kubescene.clock import MINUTE, SECOND, Streams, format_time, parse_time
from kubescene.controllers.kubelet import notices as say
from kubescene.controllers.kubelet.behaviour import (
    ContainerBehaviour,
    PodBehaviour,
    is_certain,
)
from kubescene.controllers.kubelet.container_statuses import (
    exited,
    first_started,
    not_located,
    restarted,
    waiting,
    waits,
    waits_for,
    with_resources,
)
from kubescene.controllers.kubelet.images import IF_NOT_PRESENT, NEVER, Images, Pull, PullQueue
from kubescene.controllers.kubelet.phases import (
    FAILED,
    RESTART_ALL,
    RESTARTING_ALL,
    SUCCEEDED,
    WantedCondition,
    conditions_told,
    ended,
    has_started,
    is_restarted,
    is_sidecar,
    matching_rule,
    phase_of,
    with_conditions,
)
from kubescene.controllers.kubelet.probes import STARTUP
from kubescene.controllers.kubelet.runs import (
    KILLED,
    POST_START,
    ContainerRun,
    Draws,
    End,
    Stopping,
    grace_of,
    run_of,
)
from kubescene.recording import WARNING, Notice
from kubescene.types import JsonObject

FIRST_BACK_OFF = 10 * SECOND
LONGEST_BACK_OFF = 5 * MINUTE
FORGOTTEN_AFTER = 2 * LONGEST_BACK_OFF
NOTICED_AFTER = SECOND
"""When a kubelet looks at a pod again whose pull has failed, or whose containers all restart."""
HOOK_FAILED = "FailedPostStartHook"
CREATING, INITIALIZING = "ContainerCreating", "PodInitializing"
DEADLINE = "Pod was active on the node longer than the specified deadline"
RESTARTED_ALL = "The container is removed because RestartAllContainers in place"
Statuses: TypeAlias = list[JsonObject]


class DueStatus(NamedTuple):
    """What a pod's status becomes now (None: it stays), and when that is to be asked again.

    ``said`` is what a kubelet tells of it, ``images`` are those that the node has now, too.
    ``over``: none of its containers runs any more, and none will. ``begins``: it has its place on
    the node.
    """

    status: JsonObject | None
    due: int | None
    said: Sequence[Notice] = ()
    images: Sequence[JsonObject] = ()
    over: bool = False
    begins: bool = False


class BackOff(Struct, frozen=True):
    """How long the next restart of a container waits, and since when it is so."""

    wait: int
    since: int


class KubeletMemory:
    """What a kubelet remembers of a pod beside its status, by container."""

    def __init__(self) -> None:
        self.back_offs: dict[str, BackOff] = {}
        self.pulls: dict[str, Pull] = {}
        self.told: int | None = None
        """Until when it has told of probes that failed."""


class KubeletDelays(Struct, frozen=True):
    """Nanoseconds from assignment to running, from running to ready, from deletion to gone.

    They are those of pods of which no others are said.
    """

    start: int = 0
    ready: int = 0
    terminate: int = 0
    serial_pulls: bool = False
    """Whether a node pulls one image after the other."""


NO_DELAYS = KubeletDelays()


class Lives:
    """The pods of all nodes of which more is to be told than that they run."""

    def __init__(
        self, streams: Streams, delays: KubeletDelays = NO_DELAYS, *, talks: bool = False
    ) -> None:
        self._streams = streams
        self._delays = delays
        self._talks = talks
        self._memories: dict[str, KubeletMemory] = {}
        """By uid of the pod."""
        self._queues: dict[str, PullQueue] = {}
        """By name of the node, where pulls wait for each other."""

    def forget(self, uid: str) -> None:
        self._memories.pop(uid, None)

    def next_status(
        self, pod: JsonObject, behaviour: PodBehaviour, node: JsonObject | None, now: int
    ) -> DueStatus:
        """What has become until now of a pod on a node."""
        course = self._life(pod, behaviour, node, now).course()
        if course.over:
            self.forget(pod["metadata"]["uid"])
        return course

    def remembers(self, uid: str) -> bool:
        """Whether more is known of a pod than its status says: starts and pulls that wait."""
        memory = self._memories.get(uid)
        return memory is not None and bool(memory.back_offs or memory.pulls)

    def is_simple(self, behaviour: PodBehaviour) -> bool:
        """Whether all that becomes of such pods follows from spec, status and the instant.

        That is so unless anything is drawn, pulled or told, or of a pod more is remembered.
        """
        if self._talks or self._delays.start or behaviour.start_time is not None:
            return False
        return not behaviour.pulls and is_certain(behaviour)

    def last_status(
        self, pod: JsonObject, behaviour: PodBehaviour, now: int, drained: int = 0
    ) -> DueStatus:
        """The same of a pod that is to go, and is done with what it does at an instant."""
        return self._life(pod, behaviour, None, now).last_course(drained)

    def resize_time(self, pod: JsonObject, behaviour: PodBehaviour) -> int:
        """How long a resize takes."""
        amount = behaviour.resize_time
        generation = int(pod["metadata"].get("generation", 0))
        return Draws(self._streams, pod, "pod", generation).of(amount, "resize-time")

    def _life(
        self, pod: JsonObject, behaviour: PodBehaviour, node: JsonObject | None, now: int
    ) -> "Life":
        memory = self._memories.setdefault(pod["metadata"]["uid"], KubeletMemory())
        images = Images(node, pod)
        queue = None
        if self._delays.serial_pulls:
            queue = self._queues.setdefault(pod["spec"]["nodeName"], PullQueue())
        life = (pod, behaviour, images, now, memory, self._streams, self._delays)
        return Life(*life, talks=self._talks, queue=queue)


class Life:
    """A pod at an instant."""

    def __init__(
        self,
        pod: JsonObject,
        behaviour: PodBehaviour,
        images: Images,
        now: int,
        memory: KubeletMemory,
        streams: Streams,
        delays: KubeletDelays,
        *,
        talks: bool,
        queue: PullQueue | None = None,
    ) -> None:
        self._queue = queue
        self._pod = pod
        self._behaviour = behaviour
        self._images = images
        self._now = now
        self._time = format_time(now)
        self._memory = memory
        self._streams = streams
        self._delays = delays
        self._talks = talks
        self._dues: list[int] = []
        self._said: list[Notice] = []
        self._new_images: list[JsonObject] = []
        self._restarts_all = False
        spec = pod["spec"]
        self._init_specs: list[JsonObject] = list(spec.get("initContainers") or ())
        self._main_specs: list[JsonObject] = list(spec["containers"])
        self._init_names = {each["name"] for each in self._init_specs}

    # -- the pod ---------------------------------------------------------------------------

    def course(self) -> DueStatus:
        deadline = deadline_of(self._pod, self._time)
        if deadline is not None and deadline <= self._now:
            self._say(lambda: say.of_pod(self._pod, "DeadlineExceeded", DEADLINE))
            return DueStatus(self._deadline_exceeded(), None, self._said, over=True)
        if deadline is not None:
            self._dues.append(deadline)
        init, mains = self._known("initContainerStatuses"), self._known("containerStatuses")
        start = self._start()
        if start <= self._now:
            init, mains = self._moved_on(init, mains)
        else:
            self._dues.append(start)
        self._memory.told = self._now
        return self._told(init, mains, begins=start <= self._now)

    def _moved_on(self, init: Statuses, mains: Statuses) -> tuple[Statuses, Statuses]:
        """The containers by now, in the order in which they depend on each other."""
        was_done = self._is_done(init, mains)
        init, is_initialized = self._initialized(init, mains)
        if is_initialized:
            pairs = zip(self._main_specs, mains, strict=True)
            mains = [self._moved(spec, status) for spec, status in pairs]
        if self._restarts_all:
            return self._all_restarted(init), self._all_restarted(mains)
        if self._is_done(init, mains):
            init = self._sidecars_ended(init, mains, tells=not was_done)
        return init, mains

    def _start(self) -> int:
        """When the first container may start."""
        amount, delay = self._behaviour.start_time, self._delays.start
        if amount is not None:
            delay = self._draws("pod", 0).draw(amount, "start-time")
        return scheduled_at(self._pod) + delay if delay else 0

    def _known(self, field: str) -> Statuses:
        """The statuses of containers, in the order of the spec; of new ones, that they wait."""
        is_init = field == "initContainerStatuses"
        specs = self._init_specs if is_init else self._main_specs
        known = {each["name"]: each for each in self._pod["status"].get(field) or ()}
        reason = INITIALIZING if self._init_specs else CREATING
        return [known.get(each["name"]) or waiting(each, reason) for each in specs]

    def _told(self, init: Statuses, mains: Statuses, *, begins: bool) -> DueStatus:
        """The status of the pod, if it is not what it was."""
        before = self._pod["status"]
        is_initialized = any("running" in each["state"] for each in mains)
        phase = phase_of(self._pod, [*init, *mains], is_initialized=is_initialized)
        status = self._status(phase, init, mains, begins=begins)
        is_over = phase in (SUCCEEDED, FAILED)
        due = None if is_over else min(self._dues, default=None)
        is_same = all(before.get(name) == part for name, part in status.items())
        told = None if is_same else status
        return DueStatus(told, due, self._said, self._new_images, is_over, begins)

    def _status(
        self, phase: str, init: Statuses, mains: Statuses, *, begins: bool = True
    ) -> JsonObject:
        before = self._pod["status"]
        told = [
            WantedCondition("PodReadyToStartContainers", begins),
            *conditions_told(self._pod, phase, init, mains),
        ]
        conditions = with_conditions(before.get("conditions") or (), told, self._time)
        status = {
            "phase": phase,
            "startTime": before.get("startTime") or self._time,
            "conditions": conditions,
            "containerStatuses": with_resources(mains, self._pod),
        }
        return {**status, "initContainerStatuses": init} if init else status

    def _deadline_exceeded(self) -> JsonObject:
        """The status of a pod that is ended since its time is over."""
        init, mains = self._known("initContainerStatuses"), self._known("containerStatuses")
        status = self._status(FAILED, self._cut_off(init), self._cut_off(mains))
        return {**status, "reason": "DeadlineExceeded", "message": DEADLINE}

    def _cut_off(self, statuses: Statuses) -> Statuses:
        return [
            exited(each, KILLED, self._time)
            if "running" in each["state"]
            else each
            if "terminated" in each["state"]
            else not_located(each)
            for each in statuses
        ]

    # -- init containers -------------------------------------------------------------------

    def _initialized(self, init: Statuses, mains: Statuses) -> tuple[Statuses, bool]:
        """Init containers by now, and whether the others may run."""
        was = any(has_begun(each) for each in mains)
        if self._is_done(init, mains):
            return init, was
        after = list(init)
        for place, spec in enumerate(self._init_specs):
            if was and not is_sidecar(spec):
                continue
            after[place] = self._moved(spec, init[place])
            if not was and not self._is_passed(spec, after[place]):
                return after, False
        return after, True

    def _is_passed(self, spec: JsonObject, status: JsonObject) -> bool:
        """Whether the next container may be started after an init container."""
        if is_sidecar(spec):
            return "running" in status["state"] and bool(status.get("started"))
        how = status["state"].get("terminated")
        return how is not None and how["exitCode"] == 0

    def _is_done(self, init: Statuses, mains: Statuses) -> bool:
        """Whether no container will run again but sidecars, which have no reason to."""
        failed = any(
            not is_sidecar(spec) and self._is_at_end(spec, status) and self._code(status)
            for spec, status in zip(self._init_specs, init, strict=True)
        )
        pairs = zip(self._main_specs, mains, strict=True)
        return failed or all(self._is_at_end(spec, status) for spec, status in pairs)

    def _is_at_end(self, spec: JsonObject, status: JsonObject) -> bool:
        """Whether a container has ended for good."""
        how = status["state"].get("terminated")
        return how is not None and not self._begins_again(spec, how)

    def _code(self, status: JsonObject) -> int:
        return int(status["state"]["terminated"]["exitCode"])

    def _begins_again(self, spec: JsonObject, how: JsonObject) -> bool:
        code = int(how["exitCode"])
        if self._is_plain_init(spec) and code == 0:
            return False
        return how.get("reason") == RESTARTING_ALL or is_restarted(self._pod, spec, code)

    def _sidecars_ended(self, init: Statuses, mains: Statuses, *, tells: bool) -> Statuses:
        """Sidecars are stopped when the others are done, the last one first."""
        finished = [each["state"].get("terminated") for each in (*mains, *init)]
        times = [each["finishedAt"] for each in finished if each and "finishedAt" in each]
        asked = max((parse_time(each) for each in times), default=self._now)
        running = [each for each in init if "running" in each["state"]]
        if tells:
            for each in running:
                self._said += [say.killing(self._pod, each["name"])] if self._talks else []
        # A pod whose initialization fails has failed at once: nobody waits for its sidecars.
        is_failed = not any(has_started(each) for each in mains)
        ends = self._stops(init, mains, asked, 0 if is_failed else grace_of(self._pod))
        return [self._stopped(each, ends) for each in init]

    # -- going -----------------------------------------------------------------------------

    def last_course(self, drained: int) -> DueStatus:
        """A pod that is to go: its containers are stopped, and sidecars after the others."""
        metadata = self._pod["metadata"]
        grace = int(metadata.get("deletionGracePeriodSeconds") or 0) * SECOND
        asked = parse_time(metadata["deletionTimestamp"]) - grace
        init, mains = self._known("initContainerStatuses"), self._known("containerStatuses")
        ends = self._stops(init, mains, asked, grace, drained)
        init = [self._stopped(each, ends) for each in init]
        mains = [self._stopped(each, ends) for each in mains]
        if any("running" in each["state"] for each in (*init, *mains)):
            return self._told(init, mains, begins=True)
        init, mains = self._cut_off(init), self._cut_off(mains)
        phase = phase_of(self._pod, [*init, *mains], is_terminal=True)
        return DueStatus(self._status(phase, init, mains), None, self._said, over=True)

    def _stops(
        self, init: Statuses, mains: Statuses, asked: int, grace: int, drained: int = 0
    ) -> dict[str, End]:
        """How containers that run end, if they are asked to at an instant."""
        ends: dict[str, End] = {}
        for spec, status in zip(self._main_specs, mains, strict=True):
            self._stop(spec, status, asked, grace, drained, ends)
        turn = max((_gone_at(each, ends) for each in mains), default=0)
        for spec, status in reversed(list(zip(self._init_specs, init, strict=True))):
            self._stop(spec, status, asked, grace, turn if is_sidecar(spec) else 0, ends)
            if is_sidecar(spec):
                turn = max(turn, _gone_at(status, ends))
        return ends

    def _stop(
        self,
        spec: JsonObject,
        status: JsonObject,
        asked: int,
        grace: int,
        turn: int,
        ends: dict[str, End],
    ) -> None:
        if "running" not in status["state"]:
            return
        name, run = spec["name"], self._run(spec, status)
        draws = self._draws(name, int(status.get("restartCount", 0)))
        default = self._delays.terminate
        end = Stopping.of(self._of(name), draws, default).end(asked, grace, 0, turn)
        ends[name] = end if run.end is None or run.kill is not None else min(end, run.end)

    def _stopped(self, status: JsonObject, ends: dict[str, End]) -> JsonObject:
        end = ends.get(status["name"])
        if end is None:
            return status
        if end.at > self._now:
            self._dues.append(end.at)
            return status
        return exited(status, end.code, format_time(end.at), end.reason)

    # -- all at once -----------------------------------------------------------------------

    def _all_restarted(self, statuses: Statuses) -> Statuses:
        """A restart rule wants all containers of the pod to begin anew."""
        self._dues.append(self._now + NOTICED_AFTER)
        self._memory.back_offs.clear()
        return [self._reset(each) if has_started(each) else each for each in statuses]

    def _reset(self, status: JsonObject) -> JsonObject:
        if "running" in status["state"]:
            self._say(lambda: say.killing(self._pod, status["name"], "killing"))
        told = {"reason": RESTARTING_ALL, "message": RESTARTED_ALL}
        return {
            **status,
            "ready": False,
            "started": False,
            "restartCount": int(status.get("restartCount", 0)) + 1,
            "state": {"waiting": told},
            "lastState": {"terminated": {"exitCode": KILLED, **told, "finishedAt": self._time}},
        }

    # -- a container -----------------------------------------------------------------------

    def _moved(self, spec: JsonObject, status: JsonObject) -> JsonObject:
        """A container by now: it may have ended, and begun again."""
        while True:
            if "running" in status["state"]:
                run = self._run(spec, status)
                self._tell(spec, run)
                if run.end is None or run.end.at > self._now:
                    return self._goes_on(spec, status, run)
                status = self._ended(spec, status, run.end)
            how = status["state"].get("terminated")
            if how and (self._restarts_all or not self._begins_again(spec, how)):
                return status
            after = self._begun(spec, status)
            if "running" not in after["state"]:
                return after
            status = after

    def _ended(self, spec: JsonObject, status: JsonObject, end: End) -> JsonObject:
        rule = matching_rule(spec, end.code)
        if rule is not None and rule.get("action") == RESTART_ALL:
            self._restarts_all = True
        after = exited(status, end.code, format_time(end.at), end.reason)
        is_complete = self._is_plain_init(spec) and end.code == 0
        return {**after, "ready": True} if is_complete else after

    def _is_plain_init(self, spec: JsonObject) -> bool:
        return spec["name"] in self._init_names and not is_sidecar(spec)

    def _goes_on(self, spec: JsonObject, status: JsonObject, run: ContainerRun) -> JsonObject:
        """A container that runs on: started and ready or not, as its probes say."""
        self._dues += [each for each in run.instants() if each > self._now]
        if self._talks and (complaint := run.next_complaint(self._now)) is not None:
            self._dues.append(complaint)
        ready = run.is_ready(self._now) and not self._is_plain_init(spec)
        return {**status, "started": run.is_started(self._now), "ready": ready}

    def _tell(self, spec: JsonObject, run: ContainerRun) -> None:
        """Say what its probes have said since it was told last, and what comes of that."""
        if not self._talks:
            return
        told = self._now - 1 if self._memory.told is None else self._memory.told
        after = max(told, run.begun - 1)
        until = self._now if run.end is None else min(self._now, run.end.at)
        for _, message in run.complaints(after, until):
            self._said.append(say.notice(self._pod, spec["name"], "Unhealthy", message, WARNING))
        if run.kill is not None and after < run.kill.at <= until:
            self._said += self._told_of_kill(spec, run.kill.why)

    def _told_of_kill(self, spec: JsonObject, why: str) -> Iterator[Notice]:
        name = spec["name"]
        if why == POST_START:
            yield say.notice(self._pod, name, HOOK_FAILED, "PostStartHook failed", WARNING)
            yield say.killing(self._pod, name, HOOK_FAILED)
            return
        words = "startup" if why == STARTUP else "liveness"
        yield say.killing(self._pod, name, self._kill_message(spec, words))

    def _kill_message(self, spec: JsonObject, probe: str) -> str:
        if spec["name"] in self._init_names:
            return f"Init container {spec['name']} failed {probe} probe"
        message = f"Container {spec['name']} failed {probe} probe"
        policy = spec.get("restartPolicy") or self._pod["spec"].get("restartPolicy")
        return message if policy == "Never" else f"{message}, will be restarted"

    def _begun(self, spec: JsonObject, status: JsonObject) -> JsonObject:
        """A container that does not run: it begins, or waits for that."""
        name = spec["name"]
        how = ended(status)
        if how is not None and name not in self._memory.pulls:
            held = self._held_back(status, how)
            if held is not None:
                return held
        pulled = self._pulled(spec, status)
        if pulled is not None:
            return pulled
        self._say_all(lambda: say.begun(self._pod, spec))
        was_reset = how is not None and how.get("reason") == RESTARTING_ALL
        if how is None or was_reset:
            begun = first_started(status, self._time)
        else:
            begun = restarted(status, self._time, ready=False)
        return begun

    def _held_back(self, status: JsonObject, how: JsonObject) -> JsonObject | None:
        """A container whose restart is put off; None: it may begin now."""
        name, finished = status["name"], parse_time(how["finishedAt"])
        if how.get("reason") == RESTARTING_ALL:
            if finished + NOTICED_AFTER <= self._now:
                return None
            self._dues.append(finished + NOTICED_AFTER)
            return status
        known = self._memory.back_offs.get(name)
        if known is not None and finished - known.since > FORGOTTEN_AFTER:
            known = None
        if known is not None and finished + known.wait > self._now:
            self._dues.append(finished + known.wait)
            after = waits(status, self._pod, known.wait)
            if after is not status:
                self._say(lambda: say.backs_off(self._pod, name))
            return after
        wait = FIRST_BACK_OFF if known is None else min(2 * known.wait, LONGEST_BACK_OFF)
        self._memory.back_offs[name] = BackOff(wait, self._now)
        return None

    # -- its image -------------------------------------------------------------------------

    def _pulled(self, spec: JsonObject, status: JsonObject) -> JsonObject | None:
        """A container whose image is not there yet; None: it is."""
        name, behaviour = spec["name"], self._of(spec["name"])
        pull = self._memory.pulls.get(name)
        draws = self._draws(name, int(status.get("restartCount", 0)))
        if pull is None:
            policy = spec.get("imagePullPolicy") or IF_NOT_PRESENT
            is_there = self._is_there(spec, status, behaviour)
            if is_there and (policy in (IF_NOT_PRESENT, NEVER) or not self._asks(behaviour)):
                self._say(lambda: say.present(self._pod, spec))
                return None
            if policy == NEVER:
                return self._never_pulled(spec, status)
            pull = self._attempt(spec, behaviour, draws, 1, is_there=is_there)
        while (after := self._gone_on(spec, status, pull, draws)) is None:
            is_there = self._is_there(spec, status, behaviour)
            pull = self._attempt(spec, behaviour, draws, pull.attempt + 1, is_there=is_there)
        if after is status:
            del self._memory.pulls[name]
            return None
        return after

    def _asks(self, behaviour: ContainerBehaviour) -> bool:
        return self._images.are_asked(behaviour)

    def _is_there(
        self, spec: JsonObject, status: JsonObject, behaviour: ContainerBehaviour
    ) -> bool:
        """Whether the node has the image of a container: of old, or since it ran before."""
        if not self._asks(behaviour) or ended(status) is not None:
            return True
        return self._images.has(spec.get("image", ""))

    def _never_pulled(self, spec: JsonObject, status: JsonObject) -> JsonObject:
        image = spec.get("image", "")
        message = f'Container image "{image}" is not present with pull policy of Never'
        after = waits_for(status, "ErrImageNeverPull", message)
        if after != status:
            self._say_all(lambda: say.never_pulled(self._pod, spec, message))
        return after

    def _attempt(
        self,
        spec: JsonObject,
        behaviour: ContainerBehaviour,
        draws: Draws,
        attempt: int,
        *,
        is_there: bool,
    ) -> Pull:
        """A pull begins; what is there already takes no time to be looked at."""
        time = 0 if is_there else self._images.time(behaviour, draws, attempt)
        ends, took = self._now + time, time
        if self._queue is not None:
            ends, took = self._queue.ask(spec.get("image", ""), time, self._now)
        pull = Pull(attempt, self._now, ends, took=took)
        self._memory.pulls[spec["name"]] = pull
        self._say(lambda: say.pulling(self._pod, spec))
        return pull

    def _gone_on(
        self, spec: JsonObject, status: JsonObject, pull: Pull, draws: Draws
    ) -> JsonObject | None:
        """How a container waits for a pull; itself if that is over, None if it is to be tried."""
        if pull.ends > self._now:
            self._dues.append(pull.ends)
            if pull.attempt > 1 or ended(status) is not None:
                # A kubelet tells of a pull when it is over; until then all is as it was.
                return {**status}
            default = INITIALIZING if self._init_specs else CREATING
            return waits_for(status, default)
        if pull.error is None:
            behaviour = self._of(spec["name"])
            error = self._images.error(behaviour, draws, pull.attempt)
            if error is None:
                self._finish(spec, pull, behaviour, draws)
                return status
            pull = self._failed(spec, pull, error)
        if pull.ends + pull.wait <= self._now:
            return None
        return self._backs_off(spec, status, pull)

    def _finish(
        self, spec: JsonObject, pull: Pull, behaviour: ContainerBehaviour, draws: Draws
    ) -> None:
        size, image = draws.of(behaviour.image_size, "image-size"), spec.get("image", "")
        if not self._images.has(image):
            self._new_images.append({"names": [image], "sizeBytes": size})
        waited = pull.ends - pull.begun
        self._say(lambda: say.pulled(self._pod, spec, pull.took, waited, size))

    def _failed(self, spec: JsonObject, pull: Pull, error: str) -> Pull:
        if self._queue is not None:
            self._queue.fail(spec.get("image", ""))
        wait = min(FIRST_BACK_OFF << min(pull.attempt - 1, 10), LONGEST_BACK_OFF)
        pull = Pull(pull.attempt, pull.begun, pull.ends, error, wait)
        self._memory.pulls[spec["name"]] = pull
        self._say_all(lambda: say.pull_failed(self._pod, spec, error))
        return pull

    def _backs_off(self, spec: JsonObject, status: JsonObject, pull: Pull) -> JsonObject:
        """A container whose pull has failed: a kubelet tells the error, then that it waits."""
        assert pull.error is not None
        noticed = pull.ends + NOTICED_AFTER
        if self._now < noticed:
            self._dues.append(noticed)
            return waits_for(status, "ErrImagePull", pull.error)
        self._dues.append(pull.ends + pull.wait)
        image = spec.get("image", "")
        message = f'Back-off pulling image "{image}": ErrImagePull: {pull.error}'
        after = waits_for(status, "ImagePullBackOff", message)
        if after != status:
            self._say_all(lambda: say.pull_backs_off(self._pod, spec))
        return after

    # -- what is said of it ----------------------------------------------------------------

    def _of(self, name: str) -> ContainerBehaviour:
        is_init = name in self._init_names
        behaviour = self._behaviour.of(name, init=is_init)
        spec = next((each for each in self._init_specs if each["name"] == name), None)
        if spec is not None and not is_sidecar(spec) and not behaviour.ends:
            return behaviour.ending_at_once
        return behaviour

    def _draws(self, name: str, run: int) -> Draws:
        return Draws(self._streams, self._pod, name, run)

    def _run(self, spec: JsonObject, status: JsonObject) -> ContainerRun:
        name = spec["name"]
        begun = parse_time(status["state"]["running"].get("startedAt") or self._time)
        draws = self._draws(name, int(status.get("restartCount", 0)))
        return run_of(self._pod, spec, self._of(name), draws, begun, self._delays.ready)

    def _say(self, told: Callable[[], Notice]) -> None:
        if self._talks:
            self._said.append(told())

    def _say_all(self, told: Callable[[], Iterator[Notice]]) -> None:
        if self._talks:
            self._said += told()


def _gone_at(status: JsonObject, ends: dict[str, End]) -> int:
    """When a container ends, or has ended."""
    if status["name"] in ends:
        return ends[status["name"]].at
    finished = (status["state"].get("terminated") or {}).get("finishedAt")
    return 0 if finished is None else parse_time(finished)


def has_begun(status: JsonObject) -> bool:
    """Whether a container has started since the containers of its pod were all restarted."""
    if "running" in status["state"]:
        return True
    how = ended(status)
    return how is not None and how.get("reason") != RESTARTING_ALL


def deadline_of(pod: JsonObject, now: str) -> int | None:
    """When a pod has been active for too long; one that is new has been so since now."""
    seconds, start = pod["spec"].get("activeDeadlineSeconds"), pod["status"].get("startTime")
    return None if seconds is None else parse_time(start or now) + int(seconds) * SECOND


def scheduled_at(pod: JsonObject) -> int:
    """When the pod was assigned, to the second."""
    for condition in pod["status"].get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            since = condition.get("lastTransitionTime")
            return parse_time(since or pod["metadata"]["creationTimestamp"])
    return parse_time(pod["metadata"]["creationTimestamp"])
