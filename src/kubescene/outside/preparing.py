"""A command as it is started: told where its server is, with the settings that it needs.

``{kubeconfig}`` and ``{server}`` are replaced wherever they stand. The word ``{settings}`` stands
for all that a kube-scheduler or a kube-controller-manager has to be told, the server included. A
scheduler's own configuration that names no kubeconfig is given ours, in a copy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.errors import ConfigurationError
from kubescene.outside.commands import check_command, configuration_of
from kubescene.outside.manager_settings import manager_arguments
from kubescene.outside.settings import recommended_arguments, recommended_configuration
from kubescene.scenario.outside import OutsideController, OutsideKind
from kubescene.types import JsonObject

SETTINGS = "{settings}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program is started: its server, its kubeconfig, and where files of its own go."""

    server: str
    kubeconfig: Path
    write: Callable[[str, str], Path]


def prepared(words: Sequence[str], declared: OutsideController, place: Place) -> list[str]:
    """The command with everything in it; raises `ScenarioError` if it lacks settings."""
    told = {"{kubeconfig}": str(place.kubeconfig), "{server}": place.server}
    filled = [_filled(word, told) for word in words]
    if SETTINGS in filled:
        at = filled.index(SETTINGS)
        filled[at : at + 1] = _settings(filled, declared, place)
    elif declared.kind is OutsideKind.SCHEDULER:
        filled = _with_kubeconfig(filled, declared, place)
    check_command(declared, filled)
    return filled


def _filled(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _settings(words: Sequence[str], declared: OutsideController, place: Place) -> list[str]:
    if declared.kind is OutsideKind.BAG:
        return [*manager_arguments(), f"--kubeconfig={place.kubeconfig}"]
    if declared.kind is OutsideKind.OPERATOR:
        raise ConfigurationError(
            f"{SETTINGS} is for schedulers and controller managers: nothing is known of the flags "
            f"of {declared.name}, an operator"
        )
    config = recommended_configuration(configuration_of(words))
    path = _written(_connected(config, place), declared, place)
    return [f"--config={path}", "--secure-port=0", *recommended_arguments(words)]


def _with_kubeconfig(words: list[str], declared: OutsideController, place: Place) -> list[str]:
    """A scheduler that has a configuration reads where its server is there, and nowhere else."""
    config = configuration_of(words)
    if config is None or (config.get("clientConnection") or {}).get("kubeconfig"):
        return words
    path = _written(_connected(config, place), declared, place)
    return [*words, f"--config={path}"]


def _connected(config: JsonObject, place: Place) -> JsonObject:
    client = config.get("clientConnection")
    known = client if isinstance(client, dict) else {}
    return {**config, "clientConnection": {**known, "kubeconfig": str(place.kubeconfig)}}


def _written(config: JsonObject, declared: OutsideController, place: Place) -> Path:
    return place.write(f"{declared.name}-configuration.yaml", dump_yaml(config))
