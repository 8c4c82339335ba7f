"""The command line: a module or a folder for each command, imported when that command runs.

In a folder, ``command`` has what can be said (options and their help), the others do the work.

Exit codes: 0 fine, 1 the run failed, 2 bad input, 3 an expectation did not hold, 130 interrupted.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """The entry point. Imports are part of it: who interrupts them is told in one line, too."""
    try:
        from kubescene.cli.app import main as run_command
    except KeyboardInterrupt:
        sys.stderr.write("kubescene: interrupted before anything began\n")
        raise SystemExit(INTERRUPTED) from None
    run_command()
