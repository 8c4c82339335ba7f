"""Programs outside that are started here: given their server, watched, and ended.

A command comes from the command line or from Python, never from a scenario. The program finds its
server in the kubeconfig that ``KUBECONFIG`` names. A command may ask for more: ``{kubeconfig}`` and
``{server}`` are replaced wherever they stand. The word ``{settings}`` stands for all that a
kube-scheduler or a kube-controller-manager has to be told, the server included. A scheduler's own
configuration that names no kubeconfig is given ours, in a copy.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Protocol
from urllib.parse import quote

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.client.http.kubeconfigs import make_kubeconfig, server_of
from kubescene.errors import ConfigurationError
from kubescene.outside.commands import check_command, configuration_of, words_of
from kubescene.outside.manager_settings import manager_arguments
from kubescene.outside.settings import recommended_arguments, recommended_configuration
from kubescene.scenario.outside import OutsideController, OutsideKind
from kubescene.supervised.process import Process
from kubescene.types import JsonObject

SETTINGS = "{settings}"
GRACE_S = 3.0
"""What a program has to end by itself once it is asked to."""


class Hall(Protocol):
    """Who wants to know about programs (`OutsideStage`), on the thread of the engine."""

    def started(self, name: str, pid: int) -> None: ...

    def vouch(self, name: str) -> None: ...

    def ended(self, name: str, last_words: str) -> None: ...


class Supervisor:
    """Starts programs for one server and ends all of them. ``post`` reaches the engine thread."""

    def __init__(self, hall: Hall, post: Callable[[Callable[[], None]], None], server: str) -> None:
        self._hall = hall
        self._server = server
        self._post = post
        self._directory = Path(tempfile.mkdtemp(prefix="kubescene-"))
        self._processes: dict[str, Process] = {}
        self._is_ending = False

    def start(self, declared: OutsideController, command: str) -> None:
        """Start a program.

        Raises `ConfigurationError` if that cannot be done, and `ScenarioError` if it lacks
        settings without which its turns cannot be told apart.
        """
        name = declared.name
        document = make_kubeconfig(self._server, as_user=name)
        kubeconfig = self._write(f"{name}-kubeconfig.yaml", dump_yaml(document))
        place = ProgramPlace(server_of(document), kubeconfig, self._write)
        words = prepared(words_of(command), declared, place)
        try:
            process = Process(
                words, {"KUBECONFIG": str(kubeconfig)}, directory=str(self._directory)
            )
        except ValueError as error:
            raise ConfigurationError(f"{name}: {words[0]!r} cannot be started: {error}") from error
        self._processes[name] = process
        self._post(partial(self._hall.started, name, process.pid))
        if not declared.unchecked:
            self._post(partial(self._hall.vouch, name))
        Thread(target=self._watch, args=(name, process), daemon=True).start()

    def _write(self, name: str, text: str) -> Path:
        """A file that goes when the programs have ended."""
        path = self._directory / quote(name, safe="")
        path.write_text(text)
        path.chmod(0o600)
        return path

    def end(self) -> None:
        """End all programs; returns when they are gone."""
        self._is_ending = True
        for process in self._processes.values():
            process.end(grace_s=0)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _watch(self, name: str, process: Process) -> None:
        process.wait()
        if not self._is_ending:
            told = f"the program {process.exit_told()}{process.words.told()}"
            self._post(partial(self._hall.ended, name, told))

    def __enter__(self) -> "Supervisor":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@dataclass(frozen=True, slots=True)
class ProgramPlace:
    """Where a program is started: its server, its kubeconfig, and where files of its own go."""

    server: str
    kubeconfig: Path
    write: Callable[[str, str], Path]


def prepared(words: Sequence[str], declared: OutsideController, place: ProgramPlace) -> list[str]:
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


def _settings(words: Sequence[str], declared: OutsideController, place: ProgramPlace) -> list[str]:
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


def _with_kubeconfig(
    words: list[str], declared: OutsideController, place: ProgramPlace
) -> list[str]:
    """A scheduler that has a configuration reads where its server is there, and nowhere else."""
    config = configuration_of(words)
    if config is None or (config.get("clientConnection") or {}).get("kubeconfig"):
        return words
    path = _written(_connected(config, place), declared, place)
    return [*words, f"--config={path}"]


def _connected(config: JsonObject, place: ProgramPlace) -> JsonObject:
    client = config.get("clientConnection")
    known = client if isinstance(client, dict) else {}
    return {**config, "clientConnection": {**known, "kubeconfig": str(place.kubeconfig)}}


def _written(config: JsonObject, declared: OutsideController, place: ProgramPlace) -> Path:
    return place.write(f"{declared.name}-configuration.yaml", dump_yaml(config))
