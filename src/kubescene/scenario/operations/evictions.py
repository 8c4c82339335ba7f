"""``evictOperation``: pods leave as far as their disruption budgets allow, the others later."""

from kubescene.api.kinds import POD
from kubescene.api.options import OperationOrigin
from kubescene.api.text.encoding import encode
from kubescene.client import ObjectRef
from kubescene.clock import SECOND, parse_duration
from kubescene.errors import ApiError, NotFoundError, TooManyRequestsError
from kubescene.scenario.operations.runner import refusal
from kubescene.scenario.operations.targets import Targets
from kubescene.scenario.operations.undertakings import RETRY_S, OperationContext, State
from kubescene.scenario.options import delete_options
from kubescene.scenario.spec import Operation

RETRY = RETRY_S * SECOND


class Eviction:
    """An `Undertaking`: asks for every pod at once, and again every five seconds until it goes.

    Whoever is refused by a budget waits. Any other refusal ends the scenario, as for all
    operations; so does a pod that is named and not there.
    """

    is_halfway = False

    def __init__(self, operation: Operation, setting: OperationContext) -> None:
        self._operation = operation
        self._setting = setting
        self._options = delete_options(operation.body.get("deleteOptions"))
        self._targets = Targets(operation, setting.client, setting.scheme)
        now = setting.clock.now()
        limit = parse_duration(operation.body.get("timeout") or "0s")
        self._deadline = now + limit if limit else None
        self._asking = dict.fromkeys(range(self._targets.size), now)
        """When each pod, by its number, is asked for next."""
        self._refused: dict[int, str] = {}
        self.is_over = False

    @property
    def due(self) -> int | None:
        limit = () if self._deadline is None else (self._deadline,)
        return min((*self._asking.values(), *limit), default=None)

    def go_on(self) -> None:
        now = self._setting.clock.now()
        for number in [each for each, instant in self._asking.items() if instant <= now]:
            if self._deadline is not None and now >= self._deadline and number in self._refused:
                continue
            self._ask(number, now)
        if not self._asking:
            self._end(State.COMPLETED, f"{counted(self._targets.size, 'pod')} evicted")
        elif self._deadline is not None and now >= self._deadline:
            self._end(State.TIMED_OUT, f"global timeout reached; {self._left()}")

    def _ask(self, number: int, now: int) -> None:
        ref, _, origin = self._targets[number]
        try:
            self._setting.client.evict(ref, options=self._options, origin=evicting(origin.id, ref))
        except TooManyRequestsError as error:
            self._asking[number] = now + RETRY
            if number not in self._refused:
                self._setting.tell(self._operation, State.WAITING, waiting(ref, error), named(ref))
            self._refused[number] = in_full(error)
        except NotFoundError as error:
            if number not in self._refused:
                raise refusal(self._operation, error) from error
            del self._asking[number]  # it went by itself meanwhile
        except ApiError as error:
            raise refusal(self._operation, error) from error
        else:
            del self._asking[number]

    def _end(self, state: State, message: str) -> None:
        self.is_over = True
        if self._targets.size:
            self._setting.tell(self._operation, state, message)
        else:
            self._setting.tell(self._operation, State.WARNING, "the selector matches no pod")

    def _left(self) -> str:
        pods = [named(self._targets[number].ref) for number in self._asking]
        return f"not evicted: {', '.join(pods)}"

    def tell_unfinished(self) -> None:
        why = next(
            (self._refused[number] for number in self._asking if number in self._refused), ""
        )
        message = f"{self._left()}; {why}" if why else self._left()
        self._setting.tell(self._operation, State.UNFINISHED, message)


def evicting(id: str, pod: ObjectRef) -> OperationOrigin:
    """An eviction as KEP-140 would tell it: a delete operation through a subresource."""
    types = {"apiVersion": POD.api_version, "kind": POD.kind}
    metadata = {"name": pod.name, "namespace": pod.namespace}
    asked = {"typeMeta": types, "objectMeta": metadata, "subresource": "eviction"}
    return OperationOrigin(id, encode(asked))


def waiting(pod: ObjectRef, error: ApiError) -> str:
    """What ``kubectl drain`` says of a refusal, and which budget it is."""
    return (
        f'error when evicting pods/"{pod.name}" -n "{pod.namespace}" '
        f"(will retry after {RETRY_S}s): {in_full(error)}"
    )


def in_full(error: ApiError) -> str:
    return " ".join((error.message, *(cause.message for cause in error.causes)))


def named(pod: ObjectRef) -> str:
    return f"{pod.namespace}/{pod.name}"


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
