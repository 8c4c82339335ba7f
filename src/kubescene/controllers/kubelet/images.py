"""Images that have to be pulled: how long it takes, how it fails, when it is tried again.

What is said of pulls comes from a container's behaviour, and from annotations of its node
(``pulls.kubescene.dev/NAME``, one for each thing that goes wrong there); times add up, an error
fails every attempt that ends while it is there. Where nothing is said, images are there already.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml
from msgspec import Struct

from kubescene.api.selectors import EVERYTHING, LabelSelector, SelectorError, read_label_selector
from kubescene.clock import parse_duration
from kubescene.controllers.kubelet.behaviour import PREFIX, PULL_ERROR, ContainerBehaviour
from kubescene.controllers.kubelet.runs import Draws
from kubescene.types import JsonObject

PULLS = f"pulls.{PREFIX}"
PULLS_MENTION = f'"{PULLS}'.encode()
"""How a node that may have such annotations is told from others without reading it."""
TROUBLE_FIELDS = ("time", "error", "pods", "namespace")
IF_NOT_PRESENT, NEVER = "IfNotPresent", "Never"


class Trouble(Struct, frozen=True):
    """What one annotation of a node says of the pulls there."""

    time: int = 0
    error: str = ""
    pods: LabelSelector = EVERYTHING
    namespace: str = ""

    def is_of(self, pod: JsonObject) -> bool:
        metadata = pod["metadata"]
        is_near = self.namespace in ("", metadata["namespace"])
        return is_near and self.pods.matches(metadata.get("labels") or {})


class Pull(Struct, frozen=True):
    """An attempt to pull an image: when it began, when it ends, and how, once that is known.

    ``wait`` is how long nothing is tried after it, if it has failed; ``took`` how long it took once
    it had its turn.
    """

    attempt: int
    begun: int
    ends: int
    error: str | None = None
    wait: int = 0
    took: int = 0


class PullQueue:
    """The pulls of a node that pulls one image after the other."""

    def __init__(self) -> None:
        self._free = 0
        self._coming: set[str] = set()

    def ask(self, image: str, time: int, now: int) -> tuple[int, int]:
        """When a pull that is asked for now ends, and how long it takes from its turn on.

        An image that another pull brings before it is there then.
        """
        if self._free < now:
            self._coming.clear()
        took = 0 if image in self._coming else time
        self._coming.add(image)
        self._free = max(self._free, now) + took
        return self._free, took

    def fail(self, image: str) -> None:
        """A pull of an image has failed: the next one has to bring it."""
        self._coming.discard(image)


class Images:
    """The images of a node, and what pulls take there for one pod."""

    def __init__(self, node: JsonObject | None, pod: JsonObject) -> None:
        status = (node or {}).get("status") or {}
        self.listed: Sequence[JsonObject] = status.get("images") or ()
        self._troubles = [each for each in troubles_of(node) if each.is_of(pod)]

    def has(self, image: str) -> bool:
        names = {name for each in self.listed for name in each.get("names") or ()}
        return image in names or f"{image}:latest" in names

    def are_asked(self, behaviour: ContainerBehaviour) -> bool:
        """Whether anything is said of pulling an image for a container."""
        return behaviour.pulls or bool(self._troubles)

    def time(self, behaviour: ContainerBehaviour, draws: Draws, attempt: int) -> int:
        """How long an attempt takes."""
        extra = sum(each.time for each in self._troubles)
        return draws.of(behaviour.pull_time, f"pull-time/{attempt}") + extra

    def error(self, behaviour: ContainerBehaviour, draws: Draws, attempt: int) -> str | None:
        """Why an attempt that ends now has failed; None: it has not."""
        for each in self._troubles:
            if each.error:
                return each.error
        if behaviour.pull_failures is None:
            return behaviour.pull_error
        failures = draws.draw(behaviour.pull_failures, "pull-failures")
        return (behaviour.pull_error or PULL_ERROR) if attempt <= failures else None


def troubles_of(node: JsonObject | None) -> list[Trouble]:
    """What the annotations of a node say of pulls; those that cannot be read say nothing."""
    annotations: Mapping[str, str] = ((node or {}).get("metadata") or {}).get("annotations") or {}
    found = [_trouble(text) for name, text in sorted(annotations.items()) if name.startswith(PULLS)]
    return [each for each in found if isinstance(each, Trouble)]


def faults_of_pulls(annotations: Mapping[str, str]) -> list[tuple[str, str]]:
    """Those of a node about pulls that cannot be read, and why."""
    read = [
        (name, _trouble(str(text)))
        for name, text in sorted(annotations.items())
        if name.startswith(PULLS)
    ]
    return [(name, each) for name, each in read if isinstance(each, str)]


@lru_cache(maxsize=256)
def _trouble(text: str) -> Trouble | str:
    """What an annotation says, or why it cannot be read."""
    try:
        return _read_trouble(yaml.safe_load(text))
    except (ValueError, TypeError, yaml.YAMLError) as error:
        return " ".join(str(error).split())


def _pods(selector: Any) -> LabelSelector:
    try:
        return read_label_selector(selector)
    except SelectorError as error:
        raise ValueError(f"pods: {error}") from error


def _read_trouble(value: Any) -> Trouble:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be an object with {', '.join(TROUBLE_FIELDS)}")
    if unknown := [str(name) for name in value if name not in TROUBLE_FIELDS]:
        raise ValueError(f"unknown field {unknown[0]}; known are: {', '.join(TROUBLE_FIELDS)}")
    for name in ("error", "namespace"):
        if not isinstance(value.get(name, ""), str | None):
            raise ValueError(f"{name}: must be text, not {value[name]!r}")
    selector = value.get("pods")
    return Trouble(
        parse_duration(value.get("time") or "0"),
        str(value.get("error") or ""),
        EVERYTHING if selector is None else _pods(selector),
        str(value.get("namespace") or ""),
    )
