"""What people want of the pods of a workload: how their containers start, run, fail and end.

``spec.simulation.workloads`` is a list; the first entry whose selector and namespace fit a pod is
the pod's. Annotations of a pod (``kubescene.dev/run-time`` for ``runTime``, and so on) win over it.
A pod of which nothing is said runs until it is deleted. What is said of a pod is said of all of its
containers; how they run and end, and their probes, only of those that are no init containers: these
end well at once, or, as sidecars, run on, unless they are named (``containers``).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from kubescene.api.selectors import EVERYTHING, LabelSelector, SelectorError, read_label_selector
from kubescene.clock import parse_duration, parse_time
from kubescene.clock.distributions import Distribution, ReadSamples, constant, read_distribution
from kubescene.controllers.kubelet.logs import LogEntry, read_logs
from kubescene.controllers.kubelet.probes import PROBES
from kubescene.types import JsonObject
from kubescene.usage.courses import UsageCourses, parse_amount, read_courses

PREFIX = "kubescene.dev/"
ANNOTATED = b'"kubescene.dev/'
"""How a pod that may have such annotations is told from others without reading it."""
PLAIN_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|m|s|us|ns))+")
MOST_EXIT_CODE = 255
MOST_FAILURES = 1000
OUT_OF_MEMORY = f"{PREFIX}out-of-memory"
"""What a simulation of its load writes on a pod: ``CONTAINER/RUN@TIME``."""
PARTS = 1_000_000
"""Shares are counted in millionths."""


class FailingSpell(Struct, frozen=True):
    """From when on a probe fails, and for how long (None: for good)."""

    after: Distribution | None
    lasts: Distribution | None = None


class ProbeBehaviour(Struct, frozen=True):
    """How containers answer a probe (`ProbeAnswers`); times count from the start of a run."""

    pass_after: Distribution | None = None
    fail_after: Distribution | None = None
    fail_for: Distribution | None = None
    fails: tuple[FailingSpell, ...] = ()
    """And at these times, too."""
    share: int = PARTS
    """Of how many runs, in millionths, all of this is true; the others pass at once and always."""
    message: str | None = None


class OutOfMemory(Struct, frozen=True):
    """So many restarts after its first start a container was killed at an instant."""

    run: int
    at: int


class ContainerBehaviour(Struct, frozen=True):
    """How a container behaves; times are nanoseconds. Without a run time it runs on."""

    run_time: Distribution | None = None
    exit_code: Distribution | None = None
    ready_time: Distribution | None = None
    post_start_time: Distribution | None = None
    post_start_failures: Distribution | None = None
    """In so many runs of a container from the first on its hook fails."""
    pre_stop_time: Distribution | None = None
    termination_time: Distribution | None = None
    oom_after: Distribution | None = None
    startup_probe: ProbeBehaviour | None = None
    readiness_probe: ProbeBehaviour | None = None
    liveness_probe: ProbeBehaviour | None = None
    pull_time: Distribution | None = None
    pull_error: str | None = None
    pull_failures: Distribution | None = None
    image_size: Distribution | None = None
    """Bytes."""
    usage: UsageCourses | None = None
    logs: tuple[LogEntry, ...] | None = None
    """What it writes."""
    out_of_memory: OutOfMemory | None = None

    def over(self, base: "ContainerBehaviour") -> "ContainerBehaviour":
        """This, and what it does not say from ``base``."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return replace(base, **{name: part for name, part in given.items() if part is not None})

    @property
    def of_init(self) -> "ContainerBehaviour":
        """What of it is true for an init container that is not named."""
        return replace(self, **dict.fromkeys(OF_MAIN))

    @property
    def ends(self) -> bool:
        return self.run_time is not None or self.oom_after is not None

    @property
    def pulls(self) -> bool:
        """Whether it says what becomes of its image."""
        parts = (self.pull_time, self.pull_error, self.pull_failures)
        return any(each is not None for each in parts)

    @property
    def ending_at_once(self) -> "ContainerBehaviour":
        """The same for an init container: it is there to end."""
        return replace(self, run_time=constant(0))


OF_MAIN = (
    "run_time",
    "exit_code",
    "ready_time",
    "post_start_time",
    "post_start_failures",
    "oom_after",
    "startup_probe",
    "readiness_probe",
    "liveness_probe",
    "usage",
    "logs",
    "out_of_memory",
)
UNSAID = ContainerBehaviour()


class PodBehaviour(Struct, frozen=True):
    """How the containers of a pod behave: all of them, and those that are named."""

    every: ContainerBehaviour = UNSAID
    named: Mapping[str, ContainerBehaviour] = {}
    start_time: Distribution | None = None
    """From its binding until the first container may be started."""
    resize_time: Distribution | None = None
    """From a resize that is granted until its containers have what they ask for."""

    def of(self, container: str, *, init: bool = False) -> ContainerBehaviour:
        every = self.every.of_init if init else self.every
        named = self.named.get(container)
        return every if named is None else named.over(every)

    def over(self, base: "PodBehaviour") -> "PodBehaviour":
        """This, and what it does not say from ``base``; what it says of all, it says of each."""
        named = {name: self.every.over(each) for name, each in base.named.items()}
        for name, each in self.named.items():
            named[name] = each.over(named.get(name, UNSAID))
        start = self.start_time or base.start_time
        resize = self.resize_time or base.resize_time
        return PodBehaviour(self.every.over(base.every), named, start, resize)

    @property
    def uses(self) -> bool:
        """Whether it says of any container what it uses."""
        return any(each.usage is not None for each in (self.every, *self.named.values()))

    @property
    def pulls(self) -> bool:
        """Whether it says of any container what becomes of its image."""
        return any(each.pulls for each in (self.every, *self.named.values()))

    @property
    def ends(self) -> bool:
        """Whether it says of any container that it ends by itself."""
        return any(each.ends for each in (self.every, *self.named.values()))


def is_certain(said: object) -> bool:
    """Whether nothing is drawn of a behaviour, or of a part of one."""
    if isinstance(said, Distribution):
        return said.is_constant
    if isinstance(said, ProbeBehaviour) and said.share < PARTS:
        return False
    if isinstance(said, Struct):
        return all(is_certain(getattr(said, name)) for name in said.__struct_fields__)
    if isinstance(said, Mapping):
        return all(map(is_certain, said.values()))
    return not isinstance(said, tuple) or all(map(is_certain, said))


class WorkloadBehaviour(Struct, frozen=True):
    """The behaviour of the pods that a selector chooses; an empty namespace means all of them."""

    selector: LabelSelector
    behaviour: PodBehaviour
    namespace: str = ""

    def is_of(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return self.namespace in ("", namespace) and self.selector.matches(labels)


def behaviour_of(
    workloads: Sequence[WorkloadBehaviour], metadata: JsonObject, namespace: str
) -> PodBehaviour | None:
    """What is said of a pod, or of a template of pods; None if nothing is.

    Raises ValueError in words if an annotation cannot be read.
    """
    labels = metadata.get("labels") or {}
    found = next((each for each in workloads if each.is_of(namespace, labels)), None)
    listed = None if found is None else found.behaviour
    own = annotated(metadata.get("annotations") or {})
    if own is None or listed is None:
        return own or listed
    return own.over(listed)


def annotated(annotations: Mapping[str, str]) -> PodBehaviour | None:
    """What the annotations of a pod say; ValueError names the one that cannot be read."""
    if not annotations:
        return None
    given = tuple(
        [(each, annotations[each]) for each in sorted(ANNOTATIONS) if each in annotations]
    )
    said = _read_annotations(given) if given else None
    killed = annotations.get(OUT_OF_MEMORY)
    return said if killed is None else _killed(killed).over(said or PodBehaviour())


def _killed(text: str) -> PodBehaviour:
    """One whose container was out of memory."""
    where, _, at = text.partition("@")
    container, _, run = where.rpartition("/")
    try:
        killed = OutOfMemory(int(run), parse_time(at))
    except ValueError as error:
        raise ValueError(f"annotation {OUT_OF_MEMORY}: CONTAINER/RUN@TIME is expected") from error
    return PodBehaviour(named={container: ContainerBehaviour(out_of_memory=killed)})


@lru_cache(maxsize=1024)
def _read_annotations(given: tuple[tuple[str, str], ...]) -> PodBehaviour:
    """Pods of one template say the same, and are asked whenever something is due."""
    read: dict[str, Any] = {}
    found = PodBehaviour()
    for annotation, text in given:
        field = ANNOTATIONS[annotation]
        try:
            read[field] = _value_of(text, field)
            found = read_behaviour(read)
        except (ValueError, yaml.YAMLError) as error:
            told = " ".join(str(error).split()).removeprefix(field).lstrip(":. ")
            raise ValueError(f"annotation {annotation}: {told}") from error
    return found


def _value_of(text: str, field: str) -> Any:
    # A text is one as it is: what looks like more may stand in a message. So is a duration for
    # YAML, and every pod that arrives may have one of its own.
    if field in TEXTS or PLAIN_DURATION.fullmatch(text):
        return text
    return yaml.safe_load(text)


def has_post_start(container: JsonObject) -> bool:
    lifecycle = container.get("lifecycle")
    return isinstance(lifecycle, dict) and bool(lifecycle.get("postStart"))


def in_vain(behaviour: PodBehaviour, spec: JsonObject) -> Iterator[tuple[str, str]]:
    """What is said of a pod for nothing, and why. The API has not looked at it yet."""
    mains, init = _containers_in(spec, "containers"), _containers_in(spec, "initContainers")
    for kind in PROBES:
        said = getattr(behaviour.every, snake_case(kind)) is not None
        if said and not any(each.get(kind) for each in mains):
            yield f"what is said of a {kind}", "no container of the pod has one"
    hooks = (behaviour.every.post_start_time, behaviour.every.post_start_failures)
    if any(each is not None for each in hooks) and not any(map(has_post_start, mains)):
        yield "what is said of postStart", "no container of the pod has such a hook"
    names = [each.get("name") for each in (*init, *mains)]
    for name in behaviour.named:
        if name not in names:
            yield f"what is said of the container {name}", "the pod has none of that name"


def _containers_in(spec: JsonObject, field: str) -> list[JsonObject]:
    found = spec.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def read_workload(value: Any, samples: ReadSamples | None = None) -> WorkloadBehaviour:
    """An entry of ``spec.simulation.workloads``; ValueError begins with the field at fault."""
    given = _members(value, WORKLOAD_FIELDS)
    namespace = given.pop("namespace", "")
    if not isinstance(namespace, str):
        raise ValueError(f"namespace: must be text, not {namespace!r}")
    selector = _selector(given.pop("selector", None))
    return WorkloadBehaviour(selector, read_behaviour(given, samples), namespace)


def read_behaviour(given: Mapping[str, Any], samples: ReadSamples | None = None) -> PodBehaviour:
    """What is said of a pod, by the names of fields; ValueError begins with the one at fault."""
    named = _named(given.get(CONTAINERS), samples)
    times = {
        snake_case(field): _read(field, given[field], samples, "")
        for field in POD_TIMES
        if given.get(field) is not None
    }
    return PodBehaviour(_container(given, samples), named, **times)


def _selector(value: Any) -> LabelSelector:
    if value is None:
        return EVERYTHING
    try:
        return read_label_selector(value)
    except SelectorError as error:
        raise ValueError(f"selector: {error}") from error


def _named(value: Any, samples: ReadSamples | None) -> dict[str, ContainerBehaviour]:
    if value is None:
        return {}
    if not isinstance(value, list | tuple):
        raise ValueError("containers: must be a list")
    found = {}
    for number, each in enumerate(value):
        where = f"containers[{number}]"
        given = _members(each, ("name", *CONTAINER_FIELDS), f"{where}: ")
        name = given.get("name")
        if not isinstance(name, str) or name in found:
            raise ValueError(f"{where}.name: must be the name of a container that no other has")
        found[name] = _container(given, samples, f"{where}.")
    return found


def _container(
    given: Mapping[str, Any], samples: ReadSamples | None, where: str = ""
) -> ContainerBehaviour:
    fields = [field for field in CONTAINER_FIELDS if given.get(field) is not None]
    read = {snake_case(field): _read(field, given[field], samples, where) for field in fields}
    return ContainerBehaviour(**read)


def _read(field: str, value: Any, samples: ReadSamples | None, where: str) -> Any:
    try:
        return READERS[field](value, samples)
    except ValueError as error:
        told = str(error)
        # What is wrong with a member of it begins with that member.
        inside = "." if told.startswith(tuple(f"{name}: " for name in MEMBERS)) else ": "
        raise ValueError(f"{where}{field}{inside}{told}") from error


def _members(value: Any, known: Sequence[str], where: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}must be an object")
    for name in value:
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(known)}"
            raise ValueError(f"{where}unknown field {name}; {hint}")
    return {str(name): part for name, part in value.items() if part is not None}


def _duration(value: Any) -> int:
    return parse_duration(value if isinstance(value, str) else repr(value))


def _exit_code(value: Any) -> int:
    return _whole(value, MOST_EXIT_CODE)


def _failures(value: Any) -> int:
    return _whole(value, MOST_FAILURES)


def _whole(value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"must be a whole number from 0 to {most}, not {value!r}")
    return value


def _bytes(value: Any) -> int:
    return parse_amount(value) // 1000


def _share(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"share: must be a number from 0 to 1, not {value!r}")
    return round(value * PARTS)


def _text(value: Any, _: ReadSamples | None = None) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be text, not {value!r}")
    return value


def _probe(value: Any, samples: ReadSamples | None) -> ProbeBehaviour:
    given = _members(value, PROBE_FIELDS)
    read: dict[str, Any] = {}
    for field in PROBE_TIMES:
        if field in given:
            try:
                read[snake_case(field)] = read_distribution(given[field], _duration, samples)
            except ValueError as error:
                raise ValueError(f"{field}: {error}") from error
    if "failFor" in given and "failAfter" not in given:
        raise ValueError("failFor: says how long it fails; failAfter has to say from when")
    if "message" in given:
        read["message"] = _text(given["message"])
    read["fails"] = _spells(given.get("fails", ()), samples)
    return ProbeBehaviour(**read, share=_share(given.get("share", 1)))


def _spells(value: Any, samples: ReadSamples | None) -> tuple[FailingSpell, ...]:
    if not isinstance(value, list | tuple) or len(value) > MOST_SPELLS:
        raise ValueError(f"fails: must be a list of at most {MOST_SPELLS} spells")
    found = []
    for place, each in enumerate(value):
        try:
            given = _members(each, SPELL_FIELDS)
            if "after" not in given:
                raise ValueError("after: it has to say from when on")
            read = {name: read_distribution(given[name], _duration, samples) for name in given}
        except ValueError as error:
            raise ValueError(f"fails[{place}]: {error}") from error
        found.append(FailingSpell(read["after"], read.get("for")))
    return tuple(found)


def _usage(value: Any, samples: ReadSamples | None) -> UsageCourses:
    return read_courses(value, samples)


def _amounts_of(read: Callable[[Any], int]) -> Callable[[Any, ReadSamples | None], Distribution]:
    return lambda value, samples: read_distribution(value, read, samples)


def snake_case(field: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in field)


CONTAINERS = "containers"
POD_TIMES = ("startTime", "resizeTime")
TEXTS = ("pullError",)
PULL_ERROR = "failed to pull and unpack image"
"""What is said of pulls that fail, if nothing else is."""
PROBE_TIMES = ("passAfter", "failAfter", "failFor")
SPELL_FIELDS = ("after", "for")
MOST_SPELLS = 1000
PROBE_FIELDS = (*PROBE_TIMES, "fails", "share", "message")
MEMBERS = (*PROBE_FIELDS, "cpu", "memory")
READERS: Mapping[str, Callable[[Any, ReadSamples | None], Any]] = {
    "runTime": _amounts_of(_duration),
    "exitCode": _amounts_of(_exit_code),
    "readyTime": _amounts_of(_duration),
    "postStartTime": _amounts_of(_duration),
    "postStartFailures": _amounts_of(_failures),
    "preStopTime": _amounts_of(_duration),
    "terminationTime": _amounts_of(_duration),
    "oomAfter": _amounts_of(_duration),
    **dict.fromkeys(PROBES, _probe),
    "pullTime": _amounts_of(_duration),
    "pullError": _text,
    "pullFailures": _amounts_of(_failures),
    "imageSize": _amounts_of(_bytes),
    "usage": _usage,
    "logs": read_logs,
    **dict.fromkeys(POD_TIMES, _amounts_of(_duration)),
}
CONTAINER_FIELDS = tuple(name for name in READERS if name not in POD_TIMES)
POD_FIELDS = (*POD_TIMES, *CONTAINER_FIELDS, CONTAINERS)
WORKLOAD_FIELDS = ("selector", "namespace", *POD_FIELDS)
ANNOTATIONS = {f"{PREFIX}{snake_case(field).replace('_', '-')}": field for field in POD_FIELDS}
