"""Programs outside that are started here: given their server, watched, and ended.

A command comes from the command line or from Python, never from a scenario. The program finds its
server in the kubeconfig that ``KUBECONFIG`` names; ``{kubeconfig}`` and ``{server}`` in the command
are replaced, for those that want to be told.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Protocol

from kubescene.errors import ConfigurationError
from kubescene.supervised.process import Process

GRACE_S = 3.0
"""What a program has to end by itself once it is asked to."""


class Hall(Protocol):
    """Who wants to know about programs (`OutsideStage`), on the thread of the engine."""

    def started(self, name: str, pid: int) -> None: ...

    def ended(self, name: str, last_words: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program finds: its kubeconfig as text, and its server."""

    kubeconfig: str
    server: str


class Supervisor:
    """Starts programs for one server and ends all of them. ``post`` reaches the engine thread."""

    def __init__(self, hall: Hall, post: Callable[[Callable[[], None]], None]) -> None:
        self._hall = hall
        self._post = post
        self._directory = Path(tempfile.mkdtemp(prefix="kubescene-"))
        self._processes: dict[str, Process] = {}
        self._is_ending = False

    def start(self, name: str, command: str, found: Surroundings) -> None:
        """Start a program; `ConfigurationError` if that cannot be done."""
        kubeconfig = self._directory / f"{len(self._processes)}.yaml"
        kubeconfig.write_text(found.kubeconfig)
        kubeconfig.chmod(0o600)
        told = {"{kubeconfig}": str(kubeconfig), "{server}": found.server}
        try:
            process = Process(filled(command, told), {"KUBECONFIG": str(kubeconfig)})
        except ValueError as error:
            raise ConfigurationError(
                f"--outside {name}: {command!r} cannot be started: {error}"
            ) from error
        self._processes[name] = process
        self._post(partial(self._hall.started, name, process.pid))
        Thread(target=self._watch, args=(name, process), daemon=True).start()

    def file(self, name: str, text: str) -> Path:
        """A file that goes when the programs have ended."""
        path = self._directory / name
        path.write_text(text)
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


def filled(command: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        command = command.replace(name, value)
    return command
