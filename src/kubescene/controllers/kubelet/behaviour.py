"""What people want of the pods of a workload: how long containers run, and how they end.

``spec.simulation.workloads`` is a list; the first entry whose selector and namespace fit a pod is
the pod's. Annotations of a pod (``kubescene.dev/run-time``, ``kubescene.dev/exit-code``) win over
it. Pods without either run until they are deleted.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import yaml
from msgspec import Struct

from kubescene.api.selectors import EVERYTHING, LabelSelector, SelectorError, from_label_selector
from kubescene.clock import parse_duration
from kubescene.clock.distributions import Distribution, read_distribution
from kubescene.types import JsonObject

PREFIX = "kubescene.dev/"
ANNOTATED = b'"kubescene.dev/'
"""How a pod that may have such annotations is told from others without reading it."""
RUN_TIME = "runTime"
EXIT_CODE = "exitCode"
ANNOTATIONS = {f"{PREFIX}run-time": RUN_TIME, f"{PREFIX}exit-code": EXIT_CODE}
CONTAINER_FIELDS = (RUN_TIME, EXIT_CODE)
WORKLOAD_FIELDS = ("selector", "namespace", *CONTAINER_FIELDS, "containers")
MOST_EXIT_CODE = 255


class ContainerBehaviour(Struct, frozen=True):
    """How a container behaves. Without a run time it runs until somebody stops it."""

    run_time: Distribution | None = None
    """Nanoseconds."""
    exit_code: Distribution | None = None

    def over(self, base: "ContainerBehaviour") -> "ContainerBehaviour":
        """This, and what it does not say from ``base``."""
        return ContainerBehaviour(self.run_time or base.run_time, self.exit_code or base.exit_code)


UNSAID = ContainerBehaviour()


class PodBehaviour(Struct, frozen=True):
    """How the containers of a pod behave: all of them, and those that are named."""

    every: ContainerBehaviour = UNSAID
    named: Mapping[str, ContainerBehaviour] = {}

    def of(self, container: str) -> ContainerBehaviour:
        named = self.named.get(container)
        return self.every if named is None else named.over(self.every)

    @property
    def ends(self) -> bool:
        """Whether it says of any container that it ends by itself."""
        return any(each.run_time is not None for each in (self.every, *self.named.values()))


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
    if own is None:
        return listed
    if listed is None:
        return PodBehaviour(own)
    # What is said of a single pod is said of all its containers.
    named = {name: own.over(each) for name, each in listed.named.items()}
    return PodBehaviour(own.over(listed.every), named)


def annotated(annotations: Mapping[str, str]) -> ContainerBehaviour | None:
    """What the annotations of a pod say; ValueError names the one that cannot be read."""
    given: dict[str, Any] = {}
    for annotation, field in ANNOTATIONS.items():
        if annotation in annotations:
            try:
                given[field] = _read_annotation(field, annotations[annotation])
            except (ValueError, yaml.YAMLError) as error:
                told = " ".join(str(error).split())
                raise ValueError(f"annotation {annotation}: {told}") from error
    return ContainerBehaviour(given.get(RUN_TIME), given.get(EXIT_CODE)) if given else None


@lru_cache(maxsize=1024)
def _read_annotation(field: str, text: str) -> Distribution:
    """Pods of one template say the same, and are asked whenever something is due."""
    return READERS[field](yaml.safe_load(text))


def read_workload(value: Any) -> WorkloadBehaviour:
    """An entry of ``spec.simulation.workloads``; ValueError begins with the field at fault."""
    given = _members(value, WORKLOAD_FIELDS)
    namespace = given.get("namespace", "")
    if not isinstance(namespace, str):
        raise ValueError(f"namespace: must be text, not {namespace!r}")
    named = _named(given.get("containers"))
    behaviour = PodBehaviour(_container(given), named)
    return WorkloadBehaviour(_selector(given.get("selector")), behaviour, namespace)


def _selector(value: Any) -> LabelSelector:
    if value is None:
        return EVERYTHING
    if not isinstance(value, Mapping):
        raise ValueError("selector: must be an object with matchLabels or matchExpressions")
    _members(value, ("matchLabels", "matchExpressions"), "selector: ")
    try:
        return from_label_selector(value)
    except (SelectorError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"selector: {error}") from error


def _named(value: Any) -> dict[str, ContainerBehaviour]:
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
        found[name] = _container(given, f"{where}.")
    return found


def _container(given: Mapping[str, Any], where: str = "") -> ContainerBehaviour:
    read: dict[str, Distribution] = {}
    for field in CONTAINER_FIELDS:
        if field in given:
            try:
                read[field] = READERS[field](given[field])
            except ValueError as error:
                raise ValueError(f"{where}{field}: {error}") from error
    return ContainerBehaviour(read.get(RUN_TIME), read.get(EXIT_CODE))


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
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_EXIT_CODE:
        raise ValueError(f"must be a whole number from 0 to {MOST_EXIT_CODE}, not {value!r}")
    return value


def _read_run_time(value: Any) -> Distribution:
    return read_distribution(value, _duration)


def _read_exit_code(value: Any) -> Distribution:
    return read_distribution(value, _exit_code)


READERS = {RUN_TIME: _read_run_time, EXIT_CODE: _read_exit_code}
