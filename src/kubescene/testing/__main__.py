"""``python -m kubescene.testing compare-with BINARY FILE...``.

Plays scenarios with another kube-scheduler, in turns, and with ours, and compares every decision.
Exits with 0 if all are equal, 1 if not, and 2 if something cannot be played.
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
    try:
        return compared(given.binary, given.files, given.runs)
    except KubesceneError as error:
        print(f"kubescene: {error}", file=sys.stderr)
        return 2


def compared(binary: str, files: Sequence[Path], runs: int) -> int:
    """Tell how each run went; the exit code."""
    different = 0
    for file, differences in compare_with(binary, files, runs):
        count = len(differences.theirs)
        print(f"{file}: {count} decisions, {'different' if differences else 'equal'}", flush=True)
        for line in differences.lines():
            print(f"  {line}")
        different += bool(differences)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
