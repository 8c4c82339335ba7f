"""Commands of the test programs."""

import shlex
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "autoscalers" / "process" / "programs"


def program(name: str, *arguments: str) -> str:
    return shlex.join([sys.executable, str(PROGRAMS / f"{name}.py"), *arguments])
