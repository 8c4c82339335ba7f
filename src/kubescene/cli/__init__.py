"""The command line: one module per command, imported only when that command runs.

Exit codes: 0 fine, 1 the run failed, 2 bad input, 3 an expectation did not hold.
"""

from kubescene.cli.app import main

__all__ = ["main"]
