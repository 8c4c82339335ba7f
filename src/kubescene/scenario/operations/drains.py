"""``drainOperation``: nodes are cordoned, then emptied one after the other, as kubectl does it.

What ``kubectl drain`` does (k8s.io/kubectl/pkg/drain and pkg/cmd/drain, v1.36): all nodes are
cordoned first. Then each node in its turn: its pods are looked at; if one must not be touched, none
is, and the next node follows. All pods are asked to go at once; who is refused by a disruption
budget is asked again every five seconds. The node is drained once the last of them is gone. The
timeout is that of one node.

kubectl looks once a second whether a pod is gone; here it is seen at once.
"""

from collections.abc import Iterable
from itertools import chain

from kubescene.api.kinds import NODE, POD
from kubescene.api.options import OperationOrigin
from kubescene.api.patching.patches import PatchType
from kubescene.api.selectors import EVERYTHING
from kubescene.api.text.encoding import encode
from kubescene.client import ObjectRef
from kubescene.clock import SECOND, parse_duration
from kubescene.durations import go_duration
from kubescene.errors import ApiError, ForbiddenError, NotFoundError, TooManyRequestsError
from kubescene.scenario.operations.creation import told
from kubescene.scenario.operations.drain_filters import (
    DrainFilters,
    DrainVerdict,
    aggregate,
    errors_of,
    warnings_of,
)
from kubescene.scenario.operations.evictions import counted, evicting, named, waiting
from kubescene.scenario.operations.runner import refusal
from kubescene.scenario.operations.undertakings import RETRY_S, OperationContext, State
from kubescene.scenario.options import delete_options, write_options
from kubescene.scenario.reading.selections import selector_of
from kubescene.scenario.spec import Operation
from kubescene.types import JsonObject

RETRY = RETRY_S * SECOND
NAMESPACE_TERMINATING = "NamespaceTerminating"
EXCEEDED = "context deadline exceeded"
CORDON = {"spec": {"unschedulable": True}}
SHOWN = 10
"""So many names are told where a drain is not finished."""


class Drain:
    """An `Undertaking`. Nodes that are named and not there end the scenario."""

    is_halfway = False

    def __init__(self, operation: Operation, setting: OperationContext) -> None:
        self.operation = operation
        self.setting = setting
        self.filters = DrainFilters(operation.body, setting.client)
        self.timeout = parse_duration(operation.body.get("timeout") or "0s")
        self.evicted = self.waited = self.written = 0
        self._nodes = self._find()
        self._next = 0
        self._current: NodeDrain | None = None
        self._undrained: list[str] = []
        self.is_over = False
        for node in self._nodes:
            self._cordon(node)

    @property
    def due(self) -> int | None:
        return None if self._current is None else self._current.due

    def go_on(self) -> None:
        while not self.is_over:
            if self._current is not None:
                self._current.go_on()
                if not self._current.is_over:
                    return
                self._leave(self._current)
            elif self._next < len(self._nodes):
                self._current = NodeDrain(self, self._nodes[self._next]["metadata"]["name"])
                self._next += 1
            else:
                self._end()

    @property
    def next_id(self) -> str:
        """The id of the next write: every one is an event of its own."""
        return f"{self.operation.id}[{self.written}]"

    def tell(self, state: State, message: str, subject: str = "") -> None:
        self.setting.tell(self.operation, state, message, subject)

    # -- the nodes -----------------------------------------------------------------------------

    def _find(self) -> list[JsonObject]:
        """All nodes before the first is touched: by name as listed, or those of the selector."""
        body, client = self.operation.body, self.setting.client
        try:
            if "names" in body:
                return [client.get(ObjectRef(NODE, name, "")) for name in body["names"]]
            return [*client.list(NODE, labels=selector_of(body["selector"]))]
        except ApiError as error:
            raise refusal(self.operation, error) from error

    def _cordon(self, node: JsonObject) -> None:
        if (node.get("spec") or {}).get("unschedulable"):
            return
        name = node["metadata"]["name"]
        asked = {
            "typeMeta": {"apiVersion": NODE.api_version, "kind": NODE.kind},
            "objectMeta": {"name": name},
            "patch": encode(CORDON).decode(),
        }
        origin = OperationOrigin(self.next_id, encode(asked))
        ref, options = ObjectRef(NODE, name, ""), told(write_options(None), origin)
        try:
            self.setting.client.patch(ref, CORDON, patch_type=PatchType.STRATEGIC, options=options)
        except ApiError as error:
            raise refusal(self.operation, error) from error
        self.written += 1

    def _leave(self, node: "NodeDrain") -> None:
        self._current = None
        if not node.errors:
            self.tell(State.DRAINED, f"node/{node.name} drained", node.name)
            return
        self._undrained.append(node.name)
        if node.has_begun and (pending := node.pending()):
            when = f'in node "{node.name}" when an error occurred: {aggregate(node.errors)}'
            left = shortened([f"pod/{name}" for name in pending])
            self.tell(State.WARNING, f"There are pending pods {when}: {left}", node.name)
        why = f'error: unable to drain node "{node.name}" due to error: {aggregate(node.errors)}'
        state = State.TIMED_OUT if node.has_timed_out else State.REFUSED
        self.tell(state, f"{why}, continuing command...", node.name)

    def _end(self) -> None:
        self.is_over = True
        if not self._nodes:
            self.tell(State.WARNING, "the selector matches no node")
        elif self._undrained:
            left = ", ".join(self._undrained)
            self.tell(State.INCOMPLETE, f"There are pending nodes to be drained: {left}")
        else:
            self.tell(
                State.COMPLETED, f"{counted(len(self._nodes), 'node')} drained; {self._done()}"
            )

    def _done(self) -> str:
        waited = f", {self.waited} of them had to wait for a budget" if self.waited else ""
        how = "deleted" if self.operation.body.get("disableEviction") else "evicted"
        return f"{counted(self.evicted, 'pod')} {how}{waited}"

    def tell_unfinished(self) -> None:
        name = self._nodes[self._next - 1]["metadata"]["name"] if self._next else ""
        left = [each["metadata"]["name"] for each in self._nodes[self._next :]]
        parts = [] if self._current is None else [f"node {name} waits for {self._current.left()}"]
        if left:
            parts.append(f"not begun: {shortened(left)}")
        if self._undrained:
            parts.append(f"not drained: {shortened(self._undrained)}")
        self.tell(State.UNFINISHED, "; ".join((*parts, self._done())))


class NodeDrain:
    """The pods of one node, from the first look until the last is gone or given up."""

    def __init__(self, drain: Drain, name: str) -> None:
        self.name = name
        self.errors: list[str] = []
        self.has_timed_out = False
        self.has_begun = False
        """Whether its pods were found fit to go, so that some may have gone."""
        self._drain = drain
        self._client = drain.setting.client
        grace = drain.operation.body.get("gracePeriodSeconds")
        self._options = delete_options({"gracePeriodSeconds": grace})
        self._asking: dict[ObjectRef, int] = {}
        """Pods that are still to be evicted, and when each is asked for next."""
        self._refused: set[ObjectRef] = set()
        self._leaving: dict[ObjectRef, str] = {}
        """Pods that are being deleted, with their uids."""
        self._limit = drain.timeout and self._now() + drain.timeout
        self._begin()

    def _now(self) -> int:
        return self._drain.setting.clock.now()

    def _verdicts(self) -> list[tuple[JsonObject, DrainVerdict]]:
        labels = self._drain.operation.body.get("podSelector")
        selector = EVERYTHING if labels is None else selector_of(labels)
        pods = self._client.on_node(self.name, labels=selector)
        now, filters = self._now(), self._drain.filters
        return [(pod, filters.verdict(pod, now)) for pod in pods]

    def pending(self) -> list[str]:
        """The pods that should have gone and are still there."""
        return [pod["metadata"]["name"] for pod, verdict in self._verdicts() if verdict.goes]

    def _begin(self) -> None:
        verdicts = self._verdicts()
        self.errors = errors_of(verdicts)
        if self.errors:
            return
        self.has_begun = True
        if warnings := warnings_of(verdicts):
            self._drain.tell(State.WARNING, f"Warning: {warnings}", self.name)
        going = {ObjectRef.to(pod): pod["metadata"]["uid"] for pod, each in verdicts if each.goes}
        if self._drain.operation.body.get("disableEviction"):
            self._delete(going)
        else:
            self._asking = dict.fromkeys(going, self._now())

    @property
    def is_over(self) -> bool:
        return not self._asking and not self._leaving

    @property
    def due(self) -> int | None:
        instants: Iterable[int] = self._asking.values()
        if self._leaving:
            instants = chain(instants, self._ends_of_waiting())
        return min(instants, default=None)

    def _ends_of_waiting(self) -> Iterable[int]:
        if self._limit:
            yield self._limit
        for ref in self._leaving:
            pod = self._client.find(ref)
            end = None if pod is None else self._drain.filters.skipped_from(pod)
            if end is not None:
                yield end

    def go_on(self) -> None:
        now = self._now()
        is_late = bool(self._limit) and now >= self._limit
        for ref in [each for each, instant in self._asking.items() if instant <= now]:
            if is_late:
                del self._asking[ref]
                limit = go_duration(self._drain.timeout)
                self._give_up(f"{_evicting(ref)}: global timeout reached: {limit}")
            else:
                self._evict(ref, now)
        for ref, uid in [*self._leaving.items()]:
            pod = self._client.find(ref)
            if pod is None or pod["metadata"]["uid"] != uid:
                del self._leaving[ref]
            elif self._drain.filters.is_skipped(pod, now):
                del self._leaving[ref]
                seconds = self._drain.operation.body["skipWaitForDeleteTimeoutSeconds"]
                older = f"has DeletionTimestamp older than {seconds} seconds, skipping"
                self._drain.tell(State.WARNING, f'pod "{ref.name}" {older}', named(ref))
            elif is_late:
                del self._leaving[ref]
                self._give_up(_unended(ref, self._drain.operation.body))

    def _give_up(self, error: str) -> None:
        self.has_timed_out = True
        self.errors.append(error)

    def _evict(self, ref: ObjectRef, now: int) -> None:
        """Ask for a pod; whoever has its name now, as kubectl does."""
        pod = self._client.find(ref)
        try:
            origin = evicting(self._drain.next_id, ref)
            self._client.evict(ref, options=self._options, origin=origin)
        except NotFoundError:
            del self._asking[ref]
            return
        except TooManyRequestsError as error:
            self._ask_later(ref, now, waiting(ref, error))
            return
        except ForbiddenError as error:
            if not error.has_cause(NAMESPACE_TERMINATING):
                self._fail(ref, error)
                return
            if pod is None or not pod["metadata"].get("deletionTimestamp"):
                self._ask_later(ref, now, _ending_namespace(ref, error))
                return
        except ApiError as error:
            self._fail(ref, error)
            return
        self._leave(ref, "" if pod is None else pod["metadata"]["uid"])

    def _ask_later(self, ref: ObjectRef, now: int, why: str) -> None:
        self._asking[ref] = now + RETRY
        if ref not in self._refused:
            self._refused.add(ref)
            self._drain.waited += 1
            self._drain.tell(State.WAITING, why, named(ref))

    def _fail(self, ref: ObjectRef, error: ApiError) -> None:
        del self._asking[ref]
        self.errors.append(f"{_evicting(ref)}: {error.message}")

    def _leave(self, ref: ObjectRef, uid: str) -> None:
        self._asking.pop(ref, None)
        self._leaving[ref] = uid
        self._drain.evicted += 1
        self._drain.written += 1

    def _delete(self, pods: dict[ObjectRef, str]) -> None:
        """All at once, whatever budgets say; the first that is refused ends it."""
        for ref, uid in pods.items():
            types = {"apiVersion": POD.api_version, "kind": POD.kind}
            metadata = {"name": ref.name, "namespace": ref.namespace}
            asked = encode({"typeMeta": types, "objectMeta": metadata})
            origin = OperationOrigin(self._drain.next_id, asked)
            try:
                self._client.delete(ref, options=self._options, origin=origin)
            except NotFoundError:
                continue
            except ApiError as error:
                self._leaving.clear()
                self.errors.append(error.message)
                return
            self._leave(ref, uid)

    def left(self) -> str:
        """The pods that it waits for."""
        return shortened([named(ref) for ref in (*self._asking, *self._leaving)])


def _evicting(ref: ObjectRef) -> str:
    return f'error when evicting pods/"{ref.name}" -n "{ref.namespace}"'


def _ending_namespace(ref: ObjectRef, error: ApiError) -> str:
    return (
        f'error when evicting pod "{ref.name}" from terminating namespace "{ref.namespace}" '
        f"(will retry after {RETRY_S}s): {error.message}"
    )


def _unended(ref: ObjectRef, flags: JsonObject) -> str:
    if flags.get("disableEviction"):
        return EXCEEDED
    place = f'pod "{ref.name}" in namespace "{ref.namespace}"'
    return f"error when waiting for {place} to terminate: {EXCEEDED}"


def shortened(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
