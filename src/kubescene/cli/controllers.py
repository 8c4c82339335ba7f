"""The controllers that a command line asks for: ``--controller`` and installed packages."""

import sys
from collections.abc import Sequence

from kubescene.cluster import ClusterOptions, builtin_controllers
from kubescene.controllers.authoring import (
    controller_from,
    import_controller,
    installed_controllers,
)
from kubescene.controllers.registrations import ControllerRegistrations


def controllers_named(references: Sequence[str]) -> list[type]:
    """Classes with ``reconcile``: those of installed packages, then those that are named."""
    if references and "" not in sys.path:
        sys.path.insert(0, "")  # as with python -m: a controller may lie in the current directory
    return [*installed_controllers(), *map(import_controller, references)]


def registered(options: ClusterOptions, references: Sequence[str]) -> ControllerRegistrations:
    """The controllers of a served world: the built-in ones, then those that are asked for."""
    all_of_them = builtin_controllers(options)
    for each in controllers_named(references):
        all_of_them.add(controller_from(each))
    return all_of_them
