"""What a scheduler reports of one attempt at one pod, kept as arrays until somebody asks.

What others than plugins had to say, and what an attempt waited for, are records that are made only
where an extender was asked or a plugin had the pod wait: an attempt without either pays nothing.

The scheduler fills an `Explanation` only if an instrument wants one; turning indexes into names
and building the KEP's ``pluginResults`` happens here, lazily.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from kubescene.actors import Actor
from kubescene.api.records import Record
from kubescene.instruments.score_columns import ScoreColumn, columns_encoded


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


class FilterGroup(Struct, frozen=True, gc=False):
    """Nodes that one plugin rejected for the same reasons.

    Indexes point into ``Explanation.nodes`` and ascend.
    """

    plugin: str
    code: int
    reasons: tuple[str, ...]
    nodes: Sequence[int]


class Explanation(Struct, frozen=True, gc=False):
    """Why, per node and plugin. ``gc=False`` is sound: nothing that it refers to leads back to it.

    ``nodes`` are all names in snapshot order. ``examined`` are the indexes that Filter looked at (a
    sampling search stops early), ``scored`` those that were scored, in the search's order.
    """

    nodes: Sequence[str]
    examined: Sequence[int]
    feasible: Sequence[int]
    filters: tuple[FilterGroup, ...]
    filter_plugins: tuple[str, ...]
    scored: Sequence[int] = ()
    scores: Sequence[ScoreColumn] = ()
    totals: Sequence[int] = ()
    chosen: int | None = None
    """The node that the pod got, if whoever explains knows where it stands in ``nodes``."""
    chosen_row: int | None = None
    """Where it stands in ``scored``, likewise."""

    def to_dict(self) -> dict[str, Any]:
        """Groups and columns over node indexes, all of them written out."""
        told: dict[str, Any] = orjson.loads(columns_encoded(self.columns()))
        return told

    def columns(self) -> dict[str, Any]:
        """The same with columns as they are: `columns_encoded` makes them text."""
        return {
            "feasible": self.feasible,
            "filters": [
                {
                    "plugin": group.plugin,
                    "code": group.code,
                    "reasons": list(group.reasons),
                    "nodes": group.nodes,
                }
                for group in self.filters
            ],
            "scored": self.scored,
            "scores": {
                column.plugin: {
                    "weight": column.weight,
                    "raw": column.raw,
                    "normalized": column.normalized,
                }
                for column in self.scores
            },
            "totals": self.totals,
        }


class TriedNode(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A node on which preemption was tried: whom it would cost, or why it would not help.

    ``victims`` are NAMESPACE/NAME, the most important first.
    """

    node: str
    victims: tuple[str, ...] = ()
    pdb_violations: int = 0
    plugin: str = ""
    code: int = 0
    reasons: tuple[str, ...] = ()


class PreemptionRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How preemption went: the nodes tried, in order, and which of them was chosen and why.

    ``candidates`` counts those that would do. ``criterion`` decided between them, and was met
    equally well by all ``ties``. ``tried`` is empty unless somebody wanted an explanation, and
    `cut` in the timeline; ``trials`` counts all. ``message`` says why there was no choice.
    """

    node: str = ""
    victims: tuple[str, ...] = ()
    criterion: str = ""
    candidates: int = 0
    trials: int = 0
    ties: tuple[str, ...] = ()
    tried: tuple[TriedNode, ...] = ()
    message: str = ""

    def cut(self, limit: int) -> "PreemptionRecord":
        """The same with a bounded number of nodes, the chosen one among them."""
        listed = self.tried[:limit]
        if listed and self.node and all(each.node != self.node for each in listed):
            # The last nodes tried are the candidates.
            chosen = next(each for each in reversed(self.tried) if each.node == self.node)
            listed = (*listed[:-1], chosen)
        return msgspec.structs.replace(self, tried=listed, ties=self.ties[:limit])


class SchedulingAttempt(msgspec.Struct, frozen=True, gc=False):
    """One attempt: bound to ``node``, or not, with the message the pod's condition got."""

    actor: Actor
    pod: Record
    profile: str
    node: str = ""
    message: str = ""
    reason: str = ""
    nominated: str = ""
    plugins: tuple[str, ...] = ()
    evaluated: int = 0
    feasible: int = 0
    explanation: Explanation | None = None
    victims: tuple[Record, ...] = ()
    """Pods that were removed to make room on the ``nominated`` node."""
    preemption: PreemptionRecord | None = None
    traceback: str = ""
    """Where a plugin raised."""
    extenders: tuple[ExtenderRecord, ...] = ()
    """What extenders were asked and said, in order."""
    waits: tuple[WaitRecord, ...] = ()
    """What the pod waited for between its decision and its end."""


class Preemption(msgspec.Struct, frozen=True):
    """A scheduler removed ``pod`` from its node to make room for ``preemptor``, NAMESPACE/NAME."""

    actor: Actor
    pod: Record
    preemptor: str
