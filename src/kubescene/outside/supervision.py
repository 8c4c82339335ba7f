"""Programs outside that are started here: given their server, watched, and ended.

A command comes from the command line or from Python, never from a scenario. The program finds its
server in the kubeconfig that ``KUBECONFIG`` names; how its command may ask for more is said in
`kubescene.outside.preparing`.
"""

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Protocol
from urllib.parse import quote

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.client.http.served_kubeconfigs import make_kubeconfig, server_of
from kubescene.errors import ConfigurationError
from kubescene.outside.commands import words_of
from kubescene.outside.preparing import Place, prepared
from kubescene.scenario.outside import OutsideController
from kubescene.supervised.process import Process

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
        place = Place(server_of(document), kubeconfig, self._write)
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
