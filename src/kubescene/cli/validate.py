"""``kubescene validate``."""

import sys
from collections.abc import Iterable
from pathlib import Path

from kubescene.cluster import ClusterOptions, builtin_controllers
from kubescene.errors import ScenarioError
from kubescene.scenario.checking import check_objects
from kubescene.scenario.controllers import check_controllers
from kubescene.scenario.loading import load_scenario
from kubescene.scenario.spec import parse_spec

BAD_INPUT = 2


def validate_files(files: Iterable[Path]) -> int:
    """Check each file; prints one line per file and returns the exit code."""
    code = 0
    for file in files:
        try:
            spec = parse_spec(load_scenario(file))
            check_controllers(spec, builtin_controllers(ClusterOptions()))
            check_objects(spec)
        except ScenarioError as error:
            place = "" if error.where.startswith(str(file)) else f"{file}: "
            sys.stderr.write(f"{place}{error}\n")
            code = BAD_INPUT
        else:
            steps = len(spec.by_step)
            sys.stdout.write(f"{file}: fine, {len(spec.operations)} operations in {steps} steps\n")
    return code
