"""Plugins at the points where one is asked after the other, ready to be called."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kubescene.scheduler.framework.status import Status

SupposedChange: TypeAlias = Callable[..., Status]


@dataclass(frozen=True, slots=True)
class PreFilterExtension:
    """A PreFilter plugin, and how it follows supposed changes, if it does."""

    name: str
    call: Callable[..., Any]
    add_pod: SupposedChange | None = None
    remove_pod: SupposedChange | None = None


@dataclass(frozen=True, slots=True)
class PostFilterExtension:
    """A PostFilter plugin; ``answered`` goes on after a call to an extender."""

    name: str
    call: Callable[..., Any]
    answered: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Extension:
    """A plugin at a point that has one method.

    ``undo`` is the other half of Reserve; ``awaits`` tells what a PreBind plugin waits for.
    """

    name: str
    call: Callable[..., Any]
    undo: Callable[..., None] | None = None
    awaits: Callable[..., Any] | None = None
