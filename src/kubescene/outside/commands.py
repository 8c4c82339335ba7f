"""What a command that starts a program outside lacks to be judged exactly."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubescene.api.text.reading import Bounds, ReadingError
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.outside.command_lines import flags_of, last
from kubescene.outside.manager_settings import advised_manager_settings, missing_manager_settings
from kubescene.outside.settings import ANY, advised_settings, missing_settings
from kubescene.scenario.outside import OutsideController, OutsideKind
from kubescene.types import JsonObject

MAX_SIZE = 3 * 1024 * 1024


def check_command(declared: OutsideController, command: Sequence[str]) -> None:
    """Raise `ScenarioError` with all that is missing, unless the scenario waives it.

    An operator may be any program: nothing is known of its flags.
    """
    if declared.unchecked:
        return
    if missing := missing_in(command, declared.kind, declared):
        listed = "".join(f"\n  {each}" for each in missing)
        raise ScenarioError(
            f"{declared.name} lacks settings without which results differ from run to run (say "
            f"`settings: Unchecked` to play it all the same):{listed}",
            where="spec.controllers.outside",
            path=("spec", "controllers", "outside"),
        )


def missing_in(
    command: Sequence[str], kind: OutsideKind, declared: OutsideController = ANY
) -> list[str]:
    """What a program's command line, and the file that it names, must say otherwise."""
    if kind is OutsideKind.SCHEDULER:
        return missing_settings(configuration_of(command), command, declared)
    return missing_manager_settings(command) if is_manager(command, kind) else []


def advised_in(command: Sequence[str], kind: OutsideKind) -> list[str]:
    """What it had better say otherwise."""
    if kind is OutsideKind.SCHEDULER:
        return advised_settings(configuration_of(command), command)
    return advised_manager_settings(command) if is_manager(command, kind) else []


def is_manager(command: Sequence[str], kind: OutsideKind) -> bool:
    """Whether it is a kube-controller-manager: the flags of other bags are not known."""
    named = any("controller-manager" in Path(word).name for word in command)
    return kind is OutsideKind.BAG and named


def kind_of(command: Sequence[str]) -> OutsideKind:
    """What a program seems to be, by its name."""
    name = Path(command[0]).name if command else ""
    if "scheduler" in name:
        return OutsideKind.SCHEDULER
    return OutsideKind.BAG if "controller-manager" in name else OutsideKind.OPERATOR


def words_of(command: str) -> list[str]:
    """A command as a shell would split it; raises `ConfigurationError`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"the command {command!r} cannot be read: {error}") from None
    if not words:
        raise ConfigurationError("the command is empty: name a program and its flags")
    return words


def configuration_of(command: Sequence[str]) -> JsonObject | None:
    """The document that ``--config`` names; raises `ConfigurationError` if it cannot be read."""
    path = last(flags_of(command), "config")
    return None if path is None else read_configuration_file(Path(path))


def read_configuration_file(path: Path) -> JsonObject:
    """The one document of a file. What it says of plugins is their own business."""
    from kubescene.api.text.yaml_text import read_yaml

    try:
        text = path.read_bytes()
        if len(text) > MAX_SIZE:
            raise ConfigurationError(f"{path}: has more than {MAX_SIZE} bytes")
        found: list[Any] = [each.value for each in read_yaml(text, Bounds(aliased=10_000))]
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except ReadingError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    documents = [each for each in found if each is not None]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ConfigurationError(f"{path}: must hold one object, a KubeSchedulerConfiguration")
    document: JsonObject = documents[0]
    return document
