"""What a run is known by: a digest of everything that its result depends on.

The scenario with the files that it reads, the scheduler's configuration, gates and plugins, the
controllers, the seed, the prices, measures of one's own, and the version of Kubescene. The code of
plugins, controllers and such measures counts by the bytes of the module that it stands in; what
that module imports does not, nor does what extenders answer.
"""

import hashlib
import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import orjson

from kubescene.experiments.jobs import RunJob
from kubescene.runs.requests import RunRequest, inputs_of
from kubescene.scheduler import SchedulerOptions, configuration
from kubescene.types import JsonObject
from kubescene.version import __version__

FORMAT = 1
"""Of measures and markers; another one makes every run another run."""


def digest_of(job: RunJob) -> str:
    """64 hexadecimal digits."""
    text = orjson.dumps(described(job), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def described(job: RunJob) -> JsonObject:
    request = job.request
    own: JsonObject = {}
    if request.measures:
        own = {"measures": [code_of(each) for each in request.measures]}
    if request.autoscalers or request.autoscaler_processes:
        code = [code_of(each) for each in request.autoscalers]
        own |= {"autoscalers": [*code, *request.autoscaler_processes]}
    return own | {
        "format": FORMAT,
        "version": __version__,
        "scenario": {key: value for key, value in request.scenario.items() if key != "status"},
        "files": {_name(path, request): _of_file(path) for path in _read_beside(request)},
        "seed": request.seed,
        "strict": request.strict,
        "scheduler": _scheduler(request.scheduler),
        "without": sorted(request.without),
        "controllers": {name: code_of(made) for name, made in sorted(request.controllers.items())},
        "reconcilers": [code_of(each) for each in request.reconcilers],
        "prices": None if job.prices is None else msgspec.to_builtins(job.prices),
    }


def _read_beside(request: RunRequest) -> Iterator[Path]:
    return (path for path in sorted(set(inputs_of(request))) if path != request.source)


def _name(path: Path, request: RunRequest) -> str:
    """What a scenario calls a file; a whole folder may be somewhere else another time."""
    if request.folder is None or not path.is_relative_to(request.folder):
        return path.name
    return path.relative_to(request.folder).as_posix()


def _scheduler(options: SchedulerOptions) -> JsonObject:
    return {
        "configuration": configuration.describe(options),
        "is_given": options.configuration is not None,
        "plugins": {name: code_of(made) for name, made in sorted(options.plugins.items())},
        "added": list(options.added),
        "gates": [list(each) for each in options.feature_gates.given],
        "plugin_errors": str(options.plugin_errors),
        "annotations": options.annotations,
        "caller": None
        if options.extender_caller is None
        else code_of(type(options.extender_caller)),
    }


def code_of(made: Any) -> list[str]:
    """The name of a class or function, and the bytes of its module."""
    if isinstance(made, partial):
        inner = [
            text for each in (made.func, *made.args) if callable(each) for text in code_of(each)
        ]
        return ["partial", *inner, repr(sorted(made.keywords.items()))]
    owner = made if hasattr(made, "__qualname__") else type(made)
    return [f"{owner.__module__}:{owner.__qualname__}", _of_module(owner)]


def _of_module(owner: Any) -> str:
    try:
        return _of_file(Path(inspect.getfile(owner)))
    except TypeError:
        return ""  # Of no file, such as one of a notebook.


def _of_file(path: Path) -> str:
    """The digest of what a file holds; one that cannot be read is for the run to complain of."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
