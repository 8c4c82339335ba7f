"""``python -m kubescene.testing compare-with BINARY FILE...``.

Plays scenarios with another kube-scheduler, in turns, and with ours, and compares every decision.
Exits with 0 if all are equal, 1 if not, and 2 if something cannot be played; the other files are
compared all the same.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kubescene.errors import KubesceneError
from kubescene.testing.comparing_schedulers import compare_with


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kubescene.testing")
    commands = parser.add_subparsers(required=True)
    compare = commands.add_parser(
        "compare-with", help="compare another kube-scheduler with ours, decision by decision"
    )
    compare.add_argument("binary", help="the program, or the command that starts it")
    compare.add_argument("files", nargs="+", type=Path, metavar="FILE", help="scenarios")
    compare.add_argument("--runs", type=int, default=1, help="play each so often (1)")
    given = parser.parse_args(arguments)
    return compared(given.binary, given.files, given.runs)


def compared(binary: str, files: Sequence[Path], runs: int) -> int:
    """Tell how each run went; the exit code."""
    code = 0
    for file, found in compare_with(binary, files, runs):
        if isinstance(found, KubesceneError):
            print(f"kubescene: {file}: {found}", file=sys.stderr, flush=True)
            code = 2
            continue
        count = len(found.theirs)
        print(f"{file}: {count} decisions, {'different' if found else 'equal'}", flush=True)
        for line in found.lines():
            print(f"  {line}")
        code = max(code, 1) if found else code
    return code


if __name__ == "__main__":
    sys.exit(main())
