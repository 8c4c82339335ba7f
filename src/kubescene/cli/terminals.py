"""Where output goes."""

import sys
from shutil import get_terminal_size


def terminal_width() -> int | None:
    """The columns of the terminal that standard output is; None if it is a file or a pipe."""
    return get_terminal_size().columns if sys.stdout.isatty() else None
