"""The controllers that a command line asks for: ``--controller`` and installed packages."""

import sys
from collections.abc import Sequence

from kubescene.controllers.authoring import import_controller, installed_controllers


def controllers_named(references: Sequence[str]) -> list[type]:
    """Classes with ``reconcile``: those of installed packages, then those that are named."""
    if references and "" not in sys.path:
        sys.path.insert(0, "")  # as with python -m: a controller may lie in the current directory
    return [*installed_controllers(), *map(import_controller, references)]
