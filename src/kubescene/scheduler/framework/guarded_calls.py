"""Calls into plugins: whatever goes wrong inside names the plugin and the point.

A plugin that raises is a `PluginError`, and so is one that answers with something that is no answer
(`ANSWERS`). Answers of the built-in plugins are not looked at: their types are checked when they
are written. What a `PluginError` means for the run is the scheduler's to say (`PluginErrors`).
"""

import traceback
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from kubescene.errors import KubesceneError, PluginError
from kubescene.scheduler.extenders.extenders import ExtenderCall
from kubescene.scheduler.framework.interfaces import PostFilterResult
from kubescene.scheduler.framework.status import Status

T = TypeVar("T", bound=Callable[..., Any])

LONGEST_TRACEBACK = 4000
_OURS = "kubescene.scheduler.plugins"


class PluginErrors(StrEnum):
    """What becomes of a plugin that raises or answers with nonsense."""

    FAIL = "fail"
    """The attempt fails with reason SchedulerError, and the explanation has the traceback."""
    STOP = "stop"
    """The run ends with the error."""

    def bear(self, error: PluginError) -> str:
        """Where an error of a plugin happened, unless it has to end the run."""
        if self is PluginErrors.STOP:
            raise error
        return traceback_of(error)


def guarded(call: T, plugin: str, point: str) -> T:
    """The same callable, raising `PluginError` for whatever goes wrong inside."""
    return cast("T", partial(_guard, call, plugin, point))


def guarded_method(plugin: object, name: str, method: str, point: str) -> Any:
    """A method of a plugin, guarded; if the plugin is not ours, so are its answers."""
    call = getattr(plugin, method)
    expected = ANSWERS.get(method)
    if expected is None or is_ours(plugin):
        return guarded(call, name, point)
    return partial(_checked, call, name, point, *expected)


def is_ours(plugin: object) -> bool:
    """Whether a plugin is built in."""
    return type(plugin).__module__.startswith(_OURS)


def failed(error: Exception, plugin: str, point: str) -> PluginError:
    """What is raised for an exception that came out of a plugin."""
    text = f"{type(error).__name__}: {error}"
    return PluginError(text, plugin=plugin, extension_point=point)


def traceback_of(error: PluginError) -> str:
    """Where in the plugin it happened, innermost last; cut at its beginning if it is long."""
    cause = error.__cause__
    if cause is None:
        return str(error)
    frames = traceback.extract_tb(cause.__traceback__)[1:]
    text = "".join(traceback.format_list(frames))
    text += "".join(traceback.format_exception_only(cause))
    return text if len(text) <= LONGEST_TRACEBACK else "...\n" + text[-LONGEST_TRACEBACK:]


def _guard(call: Callable[..., Any], plugin: str, point: str, /, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except KubesceneError:
        raise
    except Exception as error:
        raise failed(error, plugin, point) from error


def _checked(
    call: Callable[..., Any],
    plugin: str,
    point: str,
    is_answer: Callable[[Any], bool],
    expected: str,
    /,
    *arguments: Any,
) -> Any:
    answer = _guard(call, plugin, point, *arguments)
    if not is_answer(answer):
        raise _no_answer(answer, plugin, point, expected)
    return answer


def _no_answer(answer: Any, plugin: str, point: str, expected: str) -> PluginError:
    shown = repr(answer)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}..."
    text = f"answered with {shown}, expected {expected}"
    return PluginError(text, plugin=plugin, extension_point=point)


def check_answer(answer: Any, plugin: str, method: str, point: str) -> None:
    """For those who call a method as it is and see to `failed` themselves."""
    is_answer, expected = ANSWERS[method]
    if not is_answer(answer):
        raise _no_answer(answer, plugin, point, expected)


def _is_status(answer: Any) -> bool:
    return isinstance(answer, Status)


def _is_pre_filter(answer: Any) -> bool:
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Status):
        return False
    return answer[1] is None or isinstance(answer[1], frozenset)


def _is_status_and_time(answer: Any) -> bool:
    return (
        isinstance(answer, tuple)
        and len(answer) == 2
        and isinstance(answer[0], Status)
        and isinstance(answer[1], int)
    )


def _is_pre_bind(answer: Any) -> bool:
    return isinstance(answer, Status) or _is_status_and_time(answer)


def _is_post_filter(answer: Any) -> bool:
    return isinstance(answer, PostFilterResult | ExtenderCall)


def _is_column(answer: Any) -> bool:
    return isinstance(answer, np.ndarray) and answer.ndim == 1 and answer.dtype.kind in "iu"


def _is_score(answer: Any) -> bool:
    return isinstance(answer, int | np.integer) and not isinstance(answer, bool)


_STATUS = (_is_status, "a Status")
_COLUMN = (_is_column, "an array of integers")

ANSWERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "add_pod": _STATUS,
    "bind": _STATUS,
    "describe": _STATUS,
    "filter": _STATUS,
    "filter_nodes": _COLUMN,
    "normalize": _COLUMN,
    "permit": (_is_status_and_time, "a Status and the longest wait in nanoseconds"),
    "post_filter": (_is_post_filter, "a PostFilterResult"),
    "post_filter_answered": (_is_post_filter, "a PostFilterResult"),
    "pre_bind": (_is_pre_bind, "a Status, or a Status and a wait in nanoseconds"),
    "pre_enqueue": _STATUS,
    "pre_filter": (_is_pre_filter, "a Status and a frozenset of node names or None"),
    "pre_score": _STATUS,
    "remove_pod": _STATUS,
    "reserve": _STATUS,
    "score": (_is_score, "an integer"),
    "score_nodes": _COLUMN,
}
"""Per method, what is an answer and what to call it."""
