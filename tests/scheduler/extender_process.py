"""Starts the fake extender and asks it what it was asked."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

FAKE = Path(__file__).parent / "fake_extender.py"


@dataclass(frozen=True, slots=True)
class FakeExtender:
    port: int
    scheme: str = "http"

    def url(self, mood: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/{mood}"

    def calls(self, mood: str = "") -> list[dict[str, Any]]:
        """What it was asked in a mood, in order."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", "/")
        found: list[dict[str, Any]] = json.loads(connection.getresponse().read())
        connection.close()
        return [each for each in found if each["path"].startswith(f"/{mood}")]


@contextmanager
def fake_extender(*certificate: str) -> Iterator[FakeExtender]:
    """A new process; with certificate and key it speaks https."""
    command = [sys.executable, str(FAKE), *certificate]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield FakeExtender(port, "https" if certificate else "http")
        finally:
            process.kill()
