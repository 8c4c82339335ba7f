"""The waiters that a command line asks for: ``--waiter`` and installed packages."""

import sys
from collections.abc import Sequence

from kubescene.outside.waiters import Waiters, installed_waiters


def waiters_named(references: Sequence[str]) -> Waiters:
    """Classes by the names of their waiters."""
    if references and "" not in sys.path:
        sys.path.insert(0, "")  # as with python -m: a waiter may lie in the current directory
    return installed_waiters(references)
