"""Extenders: other processes that have a say in where a pod goes.

A scheduling cycle that has to ask one stops with a `PendingCall` and goes on when it is answered.
Who makes the call is an `ExtenderCaller`: in a plain run it answers before it returns and nothing
is noticed; where other work is waiting for the same thread it returns at once, another thread makes
the call and answers, and the scheduler is woken. So an extender that calls back into our API while
it thinks is served.

Only extenders that are interested in a pod are asked; that depends on its class, so plain pods do
not pay for them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from kubescene.api.records import Record
from kubescene.errors import ConfigurationError
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.pod_kinds import PodClass
from kubescene.scheduler.state.pods import PodInfo

MAX_EXTENDER_SCORE = 10
THREADS = 16
"""So many calls are made at a time by a `BackgroundCaller`."""
EXTENDER = "Extender"
"""The name under which extenders reject pods, as if they were one plugin."""


class ExtenderVerb(StrEnum):
    FILTER = "filter"
    PRIORITIZE = "prioritize"
    BIND = "bind"
    PREEMPT = "preempt"


class ExtenderTls(Struct, frozen=True):
    """How an extender is known to be the right one, and we to it. Data is PEM and comes first."""

    insecure: bool = False
    server_name: str = ""
    ca_file: str = ""
    ca_data: bytes = b""
    cert_file: str = ""
    cert_data: bytes = b""
    key_file: str = ""
    key_data: bytes = b""


Origin: TypeAlias = tuple[str, ExtenderTls | None]


class ExtenderAddress(Struct, frozen=True):
    """Where an extender is called: a URL for each verb, and how long an answer may take."""

    url: str
    paths: Mapping["ExtenderVerb", str]
    timeout: int
    """In nanoseconds, by the machine's clock."""
    tls: ExtenderTls | None = None

    @property
    def origin(self) -> "Origin":
        """What connections have in common that can stand in for each other."""
        return self.url.partition("://")[2].partition("/")[0], self.tls

    def url_for(self, verb: "ExtenderVerb") -> str:
        return f"{self.url.rstrip('/')}/{self.paths[verb]}"


class Extender(Struct, frozen=True):
    """One extender. Without managed resources it is interested in every pod.

    If it is ``ignorable``, the scheduler does without its answer when it fails. If it is
    ``node_cache_capable``, it is told the names of nodes, else all about them.
    """

    name: str
    verbs: frozenset[ExtenderVerb]
    weight: int = 1
    ignorable: bool = False
    managed_resources: frozenset[str] = frozenset()
    node_cache_capable: bool = True
    address: ExtenderAddress | None = None

    def is_interested(self, pod_class: PodClass) -> bool:
        """Whether pods of a class ask for something that it manages (X-3)."""
        return not self.managed_resources or any(
            name in self.managed_resources
            for kind in ("containers", "initContainers")
            for container in pod_class.spec.get(kind) or ()
            for limit in ("requests", "limits")
            for name in (container.get("resources") or {}).get(limit) or ()
        )


@dataclass(frozen=True, slots=True)
class ExtenderCall:
    """What an extender is asked. ``PREEMPT`` brings victims and violated budgets by node.

    ``records`` are the nodes themselves, for extenders that do not know them.
    """

    extender: Extender
    verb: ExtenderVerb
    pod: PodInfo
    nodes: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    victims: Mapping[str, tuple[PodInfo, ...]] = field(default_factory=dict)
    pdb_violations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExtenderAnswer:
    """What it says. ``nodes`` pass Filter; ``failed`` and ``unresolvable`` say why others do not.

    ``scores`` are 0..10 by node. ``victims`` are uids by node, in the order of the answer. An
    extender that answers with whole nodes and not with names (``bare``) makes the scheduler forget
    what runs on them until the pod is placed (X-5).
    """

    nodes: tuple[str, ...] = ()
    bare: bool = False
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, int] = field(default_factory=dict)
    victims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pdb_violations: Mapping[str, int] = field(default_factory=dict)
    error: str = ""


Wake: TypeAlias = Callable[[], None]


class PendingCall:
    """A call and, once it is there, its answer."""

    __slots__ = ("_answer", "_wake", "call")

    def __init__(self, call: ExtenderCall, wake: Wake) -> None:
        self.call = call
        self._wake = wake
        self._answer: ExtenderAnswer | None = None

    @property
    def answered(self) -> bool:
        return self._answer is not None

    def answer(self, answer: ExtenderAnswer) -> None:
        """Called once, on any thread."""
        self._answer = answer
        self._wake()

    def result(self) -> ExtenderAnswer:
        assert self._answer is not None
        return self._answer


class ExtenderCaller(Protocol):
    """Carries calls to extenders."""

    def call(self, pending: PendingCall) -> None:
        """Answer now, or see to it that somebody does. Never raises: a failure is an answer."""
        ...


class Extenders:
    """The extenders of one scheduler, in the order in which they are asked."""

    def __init__(
        self, extenders: Sequence[Extender], caller: ExtenderCaller | None, wake: Wake
    ) -> None:
        if extenders and caller is None:
            raise ConfigurationError("extenders are configured, but nobody who calls them")
        binders = [each.name for each in extenders if ExtenderVerb.BIND in each.verbs]
        if len(binders) > 1:
            raise ConfigurationError(f"only one extender can implement bind, found {len(binders)}")
        self._extenders = tuple(sorted(extenders, key=_is_ignorable))
        self._caller = caller
        self._wake = wake
        self._interested: Memo[PodClass, tuple[Extender, ...]] = Memo(self._find_interested)

    @property
    def is_empty(self) -> bool:
        return not self._extenders

    @property
    def have_a_say(self) -> bool:
        """Whether some extender filters or rates nodes, whoever it is interested in."""
        return any(each.verbs & _CHOOSING for each in self._extenders)

    def interested(self, pod: PodInfo) -> tuple[Extender, ...]:
        """Whom to ask about a pod."""
        return self._interested[pod.pod_class] if self._extenders else ()

    def ask(self, call: ExtenderCall) -> PendingCall:
        assert self._caller is not None
        pending = PendingCall(call, self._wake)
        self._caller.call(pending)
        return pending

    def _find_interested(self, pod_class: PodClass) -> tuple[Extender, ...]:
        return tuple(each for each in self._extenders if each.is_interested(pod_class))


_CHOOSING = frozenset({ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE})


def _is_ignorable(extender: Extender) -> bool:
    """Extenders that may be ignored are asked last."""
    return extender.ignorable


def nobody() -> None:
    """Wakes nobody."""


NO_EXTENDERS = Extenders((), None, nobody)


class BackgroundCaller:
    """Hands calls to another caller, on threads of its own."""

    def __init__(self, caller: ExtenderCaller) -> None:
        self.caller = caller
        self._calls: SimpleQueue[PendingCall] = SimpleQueue()
        self._threads: list[Thread] = []
        self._waiting = 0
        self._lock = Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> "BackgroundCaller":
        return self

    def call(self, pending: PendingCall) -> None:
        with self._lock:
            self._waiting += 1
            if self._waiting > len(self._threads) and len(self._threads) < THREADS:
                thread = Thread(target=self._work, name="kubescene-extender", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._calls.put(pending)

    def _work(self) -> None:
        while True:
            pending = self._calls.get()
            try:
                self.caller.call(pending)
            except Exception as error:
                # A cycle waits for this answer: it must not wait for ever.
                pending.answer(ExtenderAnswer(error=f"{type(error).__name__}: {error}"))
            finally:
                with self._lock:
                    self._waiting -= 1
