"""How a kube-scheduler must be set to be judged exactly, and what its configuration lacks.

Whoever stands outside cannot see a timer inside a program. Each timer of kube-scheduler that moves
pods, and each race between its threads, has a setting that takes it away. Without these settings
the same scenario gives other placements from run to run, so a scheduler that lacks one is refused,
unless the scenario says ``settings: Unchecked``. What only makes a run slow is advice.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubescene.clock import MINUTE, parse_duration
from kubescene.outside.command_lines import GATES, Flags, flags_of, gates_of, is_on, is_true, last
from kubescene.scenario.outside import DEFAULT_SCHEDULER_NAME, OutsideController, ShownPods
from kubescene.types import JsonObject

LEAST_RATE = 10_000
"""Requests a second. A client that holds itself back sleeps, and looks as if it were done."""
LEAST_BACKOFF = 86_400
LEAST_UNSCHEDULABLE = 24 * 60 * MINUTE
UNSCHEDULABLE_FLAG = "pod-max-in-unschedulable-pods-duration"
BATCHING = "OpportunisticBatching"
ASYNC_CALLS = "SchedulerAsyncAPICalls"
GANGS = "GangScheduling"
PRIORITY_SORT = "PrioritySort"
BIND_IN_STEPS = ("VolumeBinding", "DynamicResources")
"""Plugins of kube-scheduler with a PreBind: what they wait for is known."""
API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
ANY = OutsideController(name=DEFAULT_SCHEDULER_NAME)


def missing_settings(
    config: Mapping[str, Any] | None,
    arguments: Sequence[str] = (),
    declared: OutsideController = ANY,
) -> list[str]:
    """What must be set otherwise, each as name, what it is, what it must be and why.

    ``config`` is the document of ``--config``, None if there is none: then flags that a document
    would overrule count.
    """
    flags = flags_of(arguments)
    return [
        *_of_document(config or {}),
        *_of_client(config, flags),
        *_of_flags(flags),
        *_of_profiles(config or {}, declared),
    ]


def advised_settings(config: Mapping[str, Any] | None, arguments: Sequence[str] = ()) -> list[str]:
    """What does not change results but takes time, or may keep it from starting."""
    election = _member(config or {}, "leaderElection").get("leaderElect", True)
    given = last(flags_of(arguments), "leader-elect")
    if is_true(given) if given is not None else election is not False:
        why = "it works only after it has become the leader, and ends if it cannot stay it"
        return [f"leaderElection.leaderElect is true, better false: {why}"]
    return []


def recommended_configuration(base: Mapping[str, Any] | None = None) -> JsonObject:
    """A configuration with all that is needed; what else the given one says stays.

    Extenders stay, too, and so do a queue order and profiles of one's own: only their author
    knows whether they can go. So it is with gangs.
    """
    config = dict(base or {"apiVersion": API_VERSION, "kind": KIND})
    client = dict(_member(config, "clientConnection"))
    client |= {each: LEAST_RATE for each in ("qps", "burst") if not _is_fast(client.get(each))}
    config["parallelism"] = 1
    config["leaderElection"] = {**_member(config, "leaderElection"), "leaderElect": False}
    config["clientConnection"] = client
    for name in ("podInitialBackoffSeconds", "podMaxBackoffSeconds"):
        config[name] = max(_number(config.get(name)) or 0, LEAST_BACKOFF)
    config["podMaxBackoffSeconds"] = max(
        config["podMaxBackoffSeconds"], config["podInitialBackoffSeconds"]
    )
    return config


def recommended_arguments(arguments: Sequence[str] = ()) -> list[str]:
    """The flags that go with it and are not there yet; a configuration has no fields for them."""
    flags = flags_of(arguments)
    added = []
    if any(_of_unschedulable(flags)):
        added.append(f"--{UNSCHEDULABLE_FLAG}=240h")
    if any(_of_gates(flags)):
        gates = gates_of(flags.get(GATES, ())) | {BATCHING: False}
        if is_on(gates, ASYNC_CALLS, default=False):
            gates[ASYNC_CALLS] = False
        said = ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())
        added.append(f"--{GATES}={said}")
    return added


# -- one by one --------------------------------------------------------------------------------


def _of_document(config: Mapping[str, Any]) -> Iterator[str]:
    parallelism = config.get("parallelism")
    if parallelism != 1:
        why = "the nodes that fit are found by threads that race"
        yield _told("parallelism", _shown(parallelism, 16), "1", why)
    for name, default in (("podInitialBackoffSeconds", 1), ("podMaxBackoffSeconds", 10)):
        if (_number(config.get(name)) or 0) < LEAST_BACKOFF:
            why = "when a pod is tried again would depend on real seconds"
            yield _told(name, _shown(config.get(name), default), f"at least {LEAST_BACKOFF}", why)
    for extender in config.get("extenders") or ():
        url = extender.get("urlPrefix", "?") if isinstance(extender, Mapping) else "?"
        yield _told("extenders", str(url), "none", "with one, equal scores are drawn by lot")


def _of_client(config: Mapping[str, Any] | None, flags: Flags) -> Iterator[str]:
    client = _member(config or {}, "clientConnection")
    for name, default in (("qps", 50), ("burst", 100)):
        flag = f"kube-api-{name}"
        found: Any = client.get(name) if config is not None else last(flags, flag)
        if not _is_fast(found):
            shown = f"clientConnection.{name}" if config is not None else f"--{flag}"
            why = "while it holds its own requests back it looks as if it were done"
            yield _told(shown, _shown(found, default), f"at least {LEAST_RATE}", why)


def _of_flags(flags: Flags) -> Iterator[str]:
    yield from _of_unschedulable(flags)
    yield from _of_gates(flags)


def _of_unschedulable(flags: Flags) -> Iterator[str]:
    found = last(flags, UNSCHEDULABLE_FLAG)
    try:
        is_long = found is not None and parse_duration(found) >= LEAST_UNSCHEDULABLE
    except ValueError:
        is_long = False
    if not is_long:
        why = "pods that wait are tried again by a timer"
        yield _told(f"--{UNSCHEDULABLE_FLAG}", _shown(found, "5m"), "at least 24h", why)


def _of_gates(flags: Flags) -> Iterator[str]:
    gates = gates_of(flags.get(GATES, ()))
    if is_on(gates, BATCHING, default=True):
        why = "hints for the next pod are valid for half a second of real time"
        yield _told(f"--{GATES} {BATCHING}", _gate(gates, BATCHING, "true"), "false", why)
    if is_on(gates, ASYNC_CALLS, default=False):
        why = "its loop no longer waits for its own requests, so it cannot be made to stand still"
        yield _told(f"--{GATES} {ASYNC_CALLS}", "true", "false", why)
    if gates.get(GANGS, gates.get("AllAlpha", False)):
        why = "a gang that does not fit is tried again at once, and it never comes to a stand"
        yield _told(f"--{GATES} {GANGS}", "true", "false", why)


def _gate(gates: Mapping[str, bool], name: str, default: str) -> str:
    return "true" if name in gates or "AllBeta" in gates else f"{default} by default"


def _of_profiles(config: Mapping[str, Any], declared: OutsideController) -> Iterator[str]:
    listed: Sequence[Any] = config.get("profiles") or ({},)
    profiles = [each for each in listed if isinstance(each, Mapping)]
    names = [str(each.get("schedulerName") or DEFAULT_SCHEDULER_NAME) for each in profiles]
    if declared is not ANY and sorted(names) != sorted(declared.scheduler_names):
        needed = f"{' and '.join(declared.scheduler_names)} alone"
        why = "it is given the pods of this name in turns, and no others (schedulerNames has more)"
        yield _told("profiles", ", ".join(names), needed, why)
    for profile in profiles:
        yield from _of_waiting_plugins(profile)
    if declared.feed is ShownPods.ALL_PODS:
        return
    for profile in profiles:
        for sort in _queue_sorts(profile):
            why = f"pods are given one by one in the order of {PRIORITY_SORT}; or use feed: AllPods"
            yield _told("profiles.plugins.queueSort", sort, PRIORITY_SORT, why)


def _queue_sorts(profile: Mapping[str, Any]) -> list[str]:
    """Plugins of a profile that sort the queue otherwise; one among ``multiPoint`` is not seen."""
    return [name for name in _enabled(profile, "queueSort") if name != PRIORITY_SORT]


def _of_waiting_plugins(profile: Mapping[str, Any]) -> Iterator[str]:
    """A pod that is held up at these points looks as if nobody would bind it."""
    for point, known in (("permit", ()), ("preBind", BIND_IN_STEPS)):
        for name in _enabled(profile, point):
            if name not in known:
                why = "what it waits for is not known, and it waits on the machine's clock"
                yield _told(f"profiles.plugins.{point}", name, "without it", why)


def _enabled(profile: Mapping[str, Any], point: str) -> list[str]:
    enabled = _member(_member(profile, "plugins"), point).get("enabled") or ()
    return [str(each.get("name")) for each in enabled if isinstance(each, Mapping)]


def _told(name: str, found: str, needed: str, why: str) -> str:
    return f"{name} is {found}, must be {needed}: {why}"


def _shown(found: Any, default: object) -> str:
    return f"{default} by default" if found is None else str(found)


def _member(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    member = value.get(name)
    return member if isinstance(member, Mapping) else {}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_fast(value: Any) -> bool:
    """Whether a rate is high enough; a negative one is no limit at all, zero is the default."""
    try:
        rate = float(value)
    except (TypeError, ValueError):
        return False
    return rate >= LEAST_RATE or rate < 0
