"""The guide to scenarios in a server, typed in as it stands there."""

import os
import re
import subprocess
from pathlib import Path

from conformance.kubectl import Kubectl

GUIDE = Path(__file__).parents[2] / "docs/guides/live-scenarios.md"
AGE = re.compile(r"\b\d+m?s\b")


def sessions(text: str) -> list[tuple[str, str]]:
    """Each command of the guide's consoles, and what it prints."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            found.append((command, printed))
    return found


def test_the_guide_prints_what_it_says(kubectl: Kubectl, tmp_path: Path) -> None:
    text = GUIDE.read_text()
    for name, content in re.findall(r"```yaml\n# (\S+)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(content)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").symlink_to(kubectl.binary)
    environment = {
        **os.environ,
        "KUBECONFIG": kubectl.kubeconfig,
        "HOME": kubectl.cache,
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    commands = sessions(text)
    assert len(commands) > 8
    for command, expected in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
            env=environment,
        )
        assert shown(done.stdout) == shown(expected), command


def shown(output: str) -> str:
    """What is compared: everything but ages and the spaces that line columns up."""
    return re.sub(r"[ \t]+", " ", AGE.sub("AGE", output)).strip()
