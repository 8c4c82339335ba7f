"""Which waiter a scenario means: a shipped one, its own conditions, or one of a user's.

A scenario only names a waiter. Classes come from whoever starts the program, ``--waiter`` or
installed packages (entry points of the group ``kubescene.waiters``), never from a scenario.

The waiter ``kube-scheduler`` wants every pod that waits tried. Draft 003 of KEP-140 wants pods
tried twice since the last change. Resources cannot tell: an attempt that fails as the one before it
did writes nothing. What they tell is that a pod was tried at all, since it carries
``PodScheduled=False``. That a later change gave it another chance and the scheduler has not looked
yet is seen by how its turns are judged (park pods, or that it is still), not here. So this is a
second opinion, and enough alone only for schedulers that write a condition for every attempt.

Conditions that a scenario declares are sentences in CEL about objects of a kind. A sentence that
speaks of ``object`` must hold for every object of the kind, one that speaks of ``objects`` alone is
looked at once. A sentence without a value, since a field is not there, does not hold.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from traceback import extract_tb
from typing import Any, TypeAlias

from kubescene.api.kinds import POD
from kubescene.api.scheme import GroupVersionKind
from kubescene.cel import DYN, EvaluationError, compile_expression, list_of
from kubescene.client import Reader
from kubescene.clock import parse_time
from kubescene.errors import (
    ApiError,
    ConfigurationError,
    ControllerError,
    KubesceneError,
    ScenarioError,
)
from kubescene.installed import offered
from kubescene.outside.waiters.waiter import ControllerWaiter, QuietWaiter, listed, name_of
from kubescene.outside.waiters.workloads import WorkloadsWaiter
from kubescene.scenario.outside import (
    DEFAULT_SCHEDULER_NAME,
    OutsideController,
    WaiterCondition,
    scheduler_of,
)
from kubescene.types import JsonObject

ENDED = ("Succeeded", "Failed")


class SchedulerWaiter:
    """Looks at the pods of one scheduler."""

    name = "kube-scheduler"

    def __init__(self, scheduler_names: Collection[str] = (DEFAULT_SCHEDULER_NAME,)) -> None:
        self._scheduler_names = scheduler_names

    def condition(self, reader: Reader) -> bool:
        return next(self._untried(reader), None) is None

    def unmet(self, reader: Reader) -> str:
        return listed(f"{name_of(pod)} was not tried yet" for pod in self._untried(reader))

    def _untried(self, reader: Reader) -> Iterator[JsonObject]:
        for pod in reader.list(POD):
            if self._is_mine(pod) and may_be_tried(pod) and not was_tried(pod):
                yield pod

    def _is_mine(self, pod: JsonObject) -> bool:
        return scheduler_of(pod) in self._scheduler_names


def may_be_tried(pod: JsonObject) -> bool:
    """Whether a scheduler looks at it: it waits, and nobody keeps it back."""
    spec, status = pod["spec"], pod.get("status") or {}
    return not (
        spec.get("nodeName")
        or spec.get("schedulingGates")
        or pod["metadata"].get("deletionTimestamp")
        or status.get("phase") in ENDED
    )


def was_tried(pod: JsonObject) -> bool:
    """Whether a scheduler has failed at it; what it says of an older pod does not count."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return not is_older(condition.get("lastTransitionTime"), pod["metadata"])
    return False


def is_older(time: Any, metadata: JsonObject) -> bool:
    created = metadata.get("creationTimestamp")
    return bool(time and created and parse_time(time) < parse_time(created))


ENTRY_POINTS = "kubescene.waiters"
SHIPPED = (SchedulerWaiter.name, WorkloadsWaiter.name, QuietWaiter.name)

Waiters: TypeAlias = Mapping[str, Callable[[], Any]]
"""Classes that users bring, by the names of their waiters."""
NO_OTHERS: Waiters = {}


def waiter_of(declared: OutsideController, brought: Waiters = NO_OTHERS) -> ControllerWaiter:
    """The waiter of a controller; one that declares none is only expected to be quiet.

    Raises `ScenarioError` for a name that nobody knows.
    """
    spec = declared.waiter
    if spec is None:
        return QuietWaiter()
    if spec.conditions:
        # The expression language is loaded by those only who use it.
        from kubescene.outside.waiters.choice import ConditionsWaiter

        return ConditionsWaiter(declared, spec.conditions)
    if spec.name in brought:
        return GuardedWaiter(brought[spec.name](), declared.name)
    if spec.name == SchedulerWaiter.name:
        return SchedulerWaiter(declared.scheduler_names)
    shipped = {each.name: each for each in (WorkloadsWaiter, QuietWaiter)}
    if spec.name in shipped:
        return shipped[spec.name]()
    known = ", ".join(dict.fromkeys((*SHIPPED, *brought)))
    raise ScenarioError(
        f"no waiter is named {spec.name!r}; there are: {known}; others are brought with "
        "--waiter module:Class",
        where=f"spec.controllers.outside (name {declared.name!r}).waiter.name",
        path=("spec", "controllers", "outside"),
    )


class GuardedWaiter:
    """A user's waiter: whatever it does wrong is told with its name and the line."""

    def __init__(self, waiter: Any, controller: str) -> None:
        self._waiter = waiter
        self._controller = controller
        self.name: str = waiter.name

    def condition(self, reader: Reader) -> bool:
        answer = self._asked("condition", reader)
        if not isinstance(answer, bool):
            raise self._complaint(f"condition returned {type(answer).__name__}, not a bool")
        return answer

    def unmet(self, reader: Reader) -> str:
        if not callable(getattr(self._waiter, "unmet", None)):
            return f"its waiter {self.name!r} says that it has work left"
        return str(self._asked("unmet", reader))

    def _asked(self, method: str, reader: Reader) -> Any:
        try:
            return getattr(self._waiter, method)(reader)
        except KubesceneError:
            raise
        except Exception as error:
            frame = extract_tb(error.__traceback__)[-1]
            raise self._complaint(
                f"{method} raised {type(error).__name__}: {error} "
                f"({frame.filename}, line {frame.lineno})"
            ) from error

    def _complaint(self, what: str) -> ControllerError:
        return ControllerError(f"its waiter {self.name!r}: {what}", controller=self._controller)


def import_waiter(reference: str) -> type:
    """The class that ``package.module:Class`` names; raises `ConfigurationError`."""
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise ConfigurationError(f"waiter {reference!r} must be written as module:Class")
    try:
        module = import_module(module_name)
    except Exception as error:
        # Whatever the author's module does when it is imported.
        why = str(error) if isinstance(error, ImportError) else repr(error)
        raise ConfigurationError(f"waiter {reference!r} cannot be imported: {why}") from error
    found: Any = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise ConfigurationError(f"waiter {reference!r}: {module_name} has no class {class_name}")
    if not isinstance(getattr(found, "name", None), str) or not getattr(found, "name", ""):
        raise ConfigurationError(f"waiter {reference!r} needs a name, such as name = 'databases'")
    if not callable(getattr(found, "condition", None)):
        raise ConfigurationError(f"waiter {reference!r} has no method condition(reader)")
    return found


def installed_waiters(references: Sequence[str] = ()) -> dict[str, type]:
    """Those of installed packages, then those that are named, which win."""
    classes = [import_waiter(point.value) for point in offered(ENTRY_POINTS)]
    classes += map(import_waiter, references)
    return {str(getattr(each, "name", "")): each for each in classes}


TYPES = {"object": DYN, "objects": list_of(DYN)}
COST = 10_000_000
"""A sentence about all objects may look at many."""


class ConditionsWaiter:
    """All conditions of one controller."""

    name = "conditions"

    def __init__(
        self, declared: OutsideController, conditions: tuple[WaiterCondition, ...]
    ) -> None:
        self._sentences = [
            Sentence(condition, f"controller {declared.name}, waiter.conditions[{index}]")
            for index, condition in enumerate(conditions)
        ]

    def condition(self, reader: Reader) -> bool:
        return all(next(each.unmet(reader), None) is None for each in self._sentences)

    def unmet(self, reader: Reader) -> str:
        return listed(told for each in self._sentences for told in each.unmet(reader))


class Sentence:
    """One condition, compiled."""

    def __init__(self, condition: WaiterCondition, where: str) -> None:
        self._condition = condition
        self._where = where
        self._kind = GroupVersionKind.of(condition.api_version, condition.kind)
        self._program = compile_expression(condition.expression, TYPES)

    def unmet(self, reader: Reader) -> Iterator[str]:
        """Each object for which it does not hold, or the kind."""
        objects = self._objects(reader)
        if "object" not in self._program.names:
            yield from self._judged({"objects": objects}, f"{self._kind.kind}s")
            return
        for obj in objects:
            yield from self._judged({"object": obj, "objects": objects}, name_of(obj))

    def _objects(self, reader: Reader) -> list[JsonObject]:
        try:
            return reader.list(self._kind, namespace=self._condition.namespace)
        except ApiError as error:
            # To wait for a kind that nobody knows, or a typo, would be to wait for ever.
            raise ScenarioError(error.message, where=self._where) from error

    def _judged(self, names: JsonObject, subject: str) -> Iterator[str]:
        said = self._condition.message or f"{self._condition.expression!r} does not hold"
        try:
            if self._program.evaluate(names, COST) is not True:
                yield f"{subject}: {said}"
        except EvaluationError as error:
            yield f"{subject}: {said} ({error})"
