"""Every kubectl that can be found here, as something to call."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

OLDEST = (1, 29)
TOOLS = Path(__file__).parents[2] / ".tools" / "bin"
MISSING = "no kubectl is here: install one, or build one with scripts/install-kubectl"


@dataclass(frozen=True, slots=True)
class Kubectl:
    """One binary, and the cluster it speaks to."""

    binary: Path
    version: tuple[int, int]
    kubeconfig: str = ""
    cache: str = ""

    def __str__(self) -> str:
        return f"{self.version[0]}.{self.version[1]}"

    def towards(self, kubeconfig: Path, cache: Path) -> "Kubectl":
        return replace(self, kubeconfig=str(kubeconfig), cache=str(cache))

    def __call__(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        """Run a command; what it printed, errors and warnings among it."""
        done = self.run(*arguments, stdin=stdin)
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"kubectl {' '.join(arguments)}: {output}"
        return output

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "-o", "json").stdout)

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=self._environment(),
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """A command that goes on until somebody ends it."""
        return subprocess.Popen(
            self.command(*arguments), stdout=subprocess.PIPE, text=True, env=self._environment()
        )

    def command(self, *arguments: str) -> list[str]:
        return [str(self.binary), "--cache-dir", self.cache, *arguments]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": self.kubeconfig, "HOME": self.cache}


@lru_cache
def find_kubectls() -> tuple[Kubectl, ...]:
    """Those of a supported version, the newest first, one of each."""
    found: dict[tuple[int, int], Kubectl] = {}
    for binary in _candidates():
        version = _version(binary)
        if version is not None and version >= OLDEST:
            found.setdefault(version, Kubectl(binary, version))
    return tuple(found[version] for version in sorted(found, reverse=True))


def _candidates() -> Iterator[Path]:
    yield from sorted(TOOLS.glob("kubectl*"))
    on_path = shutil.which("kubectl")
    if on_path is None:
        return
    # A dispatcher asks the server for its version and runs the fitting one of those beside it.
    beside = sorted(Path(on_path).resolve().parent.glob("kubectl.*"))
    yield from beside or [Path(on_path)]


def _version(binary: Path) -> tuple[int, int] | None:
    command = [str(binary), "version", "--client", "-o", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        written = json.loads(done.stdout)["clientVersion"]["gitVersion"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None
    numbers = re.match(r"v(\d+)\.(\d+)", written)
    return (int(numbers[1]), int(numbers[2])) if numbers else None
