"""The command line: a module or a folder for each command, imported when that command runs.

In a folder, ``command`` has what can be said (options and their help), the others do the work.

Exit codes: 0 fine, 1 the run failed, 2 bad input, 3 an expectation did not hold.
"""

from kubescene.cli.app import main

__all__ = ["main"]
