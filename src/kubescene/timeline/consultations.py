"""What others than plugins had to say in an attempt, and what it waited for; plain data.

The scheduler makes these only where an extender was asked or a plugin had the pod wait, so an
attempt without either pays nothing.
"""

from typing import Any

import msgspec


class ExtenderRecord(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One question to one extender, and its answer.

    ``verb`` is ``filter``, ``prioritize``, ``preempt`` or ``bind``. For ``filter``, ``failed`` and
    ``unresolvable`` say by node why not, and ``dropped`` are nodes that are missing from the answer
    without a word. ``scores`` are what it added to the totals, weight included. ``victims`` are
    uids by node. With an ``error`` the attempt fails, unless it was ``ignored``.
    """

    extender: str
    verb: str
    asked: int = 0
    passed: tuple[str, ...] = ()
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    dropped: tuple[str, ...] = ()
    scores: dict[str, int] = {}
    victims: dict[str, tuple[str, ...]] = {}
    pdb_violations: dict[str, int] = {}
    bare: bool = False
    """Whether it answered with whole nodes instead of names."""
    error: str = ""
    ignored: bool = False


class WaitRecord(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A wait at ``Permit`` or ``PreBind`` for one plugin, with a node promised.

    Times are RFC 3339; ``until`` is the latest end that the plugin has set, if it has. ``outcome``
    is empty while the pod waits.
    """

    plugin: str
    point: str
    node: str
    since: str
    until: str = ""
    ended: str = ""
    outcome: str = ""


def as_rows(records: tuple[Any, ...]) -> list[Any]:
    """Records as the side file has them."""
    rows: list[Any] = msgspec.to_builtins(records)
    return rows
