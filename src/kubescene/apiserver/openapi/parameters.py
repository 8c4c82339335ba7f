"""The parameters that requests take, as OpenAPI describes them.

Names and types are those of kube-apiserver v1.36, one line of text each is ours. kubectl looks for
``fieldValidation`` on PATCH before it trusts a server to validate.
"""

from collections.abc import Iterable

from kubescene.types import JsonObject

LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
DELETE = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
DELETE_COLLECTION = tuple(
    sorted({*DELETE, *LIST} - {"allowWatchBookmarks", "watch"})  # a deletion never watches
)
WRITE = ("dryRun", "fieldManager", "fieldValidation")
PATCH = (*WRITE, "force")
LOG = (
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
)
CONNECT = {
    "PodAttachOptions": ("container", "stderr", "stdin", "stdout", "tty"),
    "PodExecOptions": ("command", "container", "stderr", "stdin", "stdout", "tty"),
    "PodPortForwardOptions": ("ports",),
    "PodProxyOptions": ("path",),
    "NodeProxyOptions": ("path",),
    "ServiceProxyOptions": ("path",),
}
"""Options kinds are never bodies: their fields are query parameters of a ``connect``."""

_BOOLEANS = frozenset(
    {
        "allowWatchBookmarks",
        "follow",
        "force",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "insecureSkipTLSVerifyBackend",
        "orphanDependents",
        "previous",
        "sendInitialEvents",
        "stderr",
        "stdin",
        "stdout",
        "timestamps",
        "tty",
        "watch",
    }
)
_INTEGERS = frozenset(
    {
        "gracePeriodSeconds",
        "limit",
        "limitBytes",
        "ports",
        "sinceSeconds",
        "tailLines",
        "timeoutSeconds",
    }
)
_DESCRIPTIONS = {
    "allowWatchBookmarks": "Whether a watch may send BOOKMARK events.",
    "command": "The command and its arguments; not run in a shell.",
    "container": "Name of the container; may be left out if the pod has only one.",
    "continue": "Token from the previous page of a list; goes with the same other parameters.",
    "dryRun": "All: go through every stage but keep nothing.",
    "fieldManager": "Who makes the change, for managedFields; required to apply.",
    "fieldSelector": "Only objects whose fields match.",
    "fieldValidation": "Ignore, Warn about or (Strict) refuse unknown and duplicate fields.",
    "follow": "Whether to keep streaming as the log grows.",
    "force": "Whether an apply takes over fields that others own.",
    "gracePeriodSeconds": "Seconds before the object goes away; zero deletes at once.",
    "ignoreStoreReadErrorWithClusterBreakingPotential": (
        "Whether to delete an object that cannot be read any more."
    ),
    "insecureSkipTLSVerifyBackend": "Whether to accept any certificate of the kubelet.",
    "labelSelector": "Only objects whose labels match.",
    "limit": "Most objects in one page of a list; the reply tells how to continue.",
    "limitBytes": "Most bytes of log to return.",
    "orphanDependents": "Deprecated: use propagationPolicy.",
    "path": "Path of the proxied request.",
    "ports": "Ports to forward.",
    "pretty": "Whether to indent the JSON of the reply.",
    "previous": "Whether to read the log of the previous, terminated container.",
    "propagationPolicy": "Orphan, Background or Foreground: what becomes of dependents.",
    "resourceVersion": "Which version of the data may answer; a watch starts after it.",
    "resourceVersionMatch": "Exact or NotOlderThan: how resourceVersion applies to a list.",
    "sendInitialEvents": "Whether a watch starts with the objects that already exist.",
    "shardSelector": "Only objects in the given ranges of hashes.",
    "sinceSeconds": "Only log lines of the last so many seconds.",
    "stderr": "Whether to stream standard error.",
    "stdin": "Whether to stream standard input.",
    "stdout": "Whether to stream standard output.",
    "stream": "All, Stdout or Stderr: which log to return.",
    "tailLines": "Only the last so many log lines.",
    "timeoutSeconds": "Ends a list or watch after so many seconds.",
    "timestamps": "Whether each log line starts with its time.",
    "tty": "Whether to allocate a terminal.",
    "watch": "Whether to stream changes instead of returning a list.",
}


def in_query(names: Iterable[str]) -> list[JsonObject]:
    """Optional query parameters by name."""
    return [_parameter(name, "query", _DESCRIPTIONS[name]) for name in names]


def in_path(name: str, description: str) -> JsonObject:
    """A parameter that is part of the path, hence required."""
    return {**_parameter(name, "path", description), "required": True}


def _parameter(name: str, place: str, description: str) -> JsonObject:
    schema = {"type": _type_of(name), "uniqueItems": True}
    return {"name": name, "in": place, "description": description, "schema": schema}


def _type_of(name: str) -> str:
    if name in _BOOLEANS:
        return "boolean"
    return "integer" if name in _INTEGERS else "string"
