"""What somebody outside is asked about a write before it is committed, and what was answered.

Whoever decides about a write has the world, and cannot wait for an answer over a network: others
want to read and write meanwhile, and the one who is asked may be among them. So a write that needs
answers ends with `AnswersNeededError` before anything has happened; who brought it fetches them,
keeps them in its `Consultation` and makes the write again. If the object has become another
meanwhile, the questions are others too, and are asked anew.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from kubescene.types import JsonObject

T = TypeVar("T")

MOST_TURNS = 6
"""How often one webhook is asked about one write: once, and five times after a conflict."""


class WebhookAddress(Struct, frozen=True):
    """Where a webhook is: a URL, or a path below a Service, and by whom it is certified."""

    url: str = ""
    service: tuple[str, str, int] | None = None
    """Namespace, name and port."""
    path: str = ""
    authorities: bytes = b""
    """PEM; those of the machine if there are none."""


class WebhookCall(Struct, frozen=True):
    """One question to a webhook. ``body`` has no uid: whoever asks gives it one."""

    webhook: str
    address: WebhookAddress
    timeout_s: int
    body: JsonObject
    key: bytes
    """The same for the same question."""
    turn: str = ""
    """Who is asked in which round: so often as this is asked anew, the object was another."""


class WebhookAnswer(Struct, frozen=True):
    """What came back, decoded; or why nothing did. ``uid`` is what was asked with."""

    uid: str = ""
    document: Any = None
    error: str = ""


class AnswersNeededError(Exception):
    """A write cannot be decided before these questions are answered. Nothing has happened yet."""

    def __init__(self, calls: Sequence[WebhookCall]) -> None:
        super().__init__("answers of webhooks are needed: " + ", ".join(it.webhook for it in calls))
        self.calls = tuple(calls)


class Consultation:
    """What is known about one write, however often it is tried."""

    __slots__ = ("annotations", "answers", "options", "pinned", "turns")

    def __init__(self) -> None:
        self.options: JsonObject | None = None
        """The options of the request as they were sent; None if that is not known."""
        self.answers: dict[bytes, WebhookAnswer] = {}
        self.annotations: dict[str, str] = {}
        """What admission has to say for an audit log."""
        self.pinned: dict[tuple[str, ...], str] = {}
        self.turns: dict[str, int] = {}

    def pin(self, key: tuple[str, ...], make: Callable[[], str]) -> str:
        """What was made for this write when it was tried first: names and uids stay."""
        known = self.pinned.get(key)
        if known is None:
            known = self.pinned[key] = make()
        return known

    def find(self, calls: Sequence[WebhookCall]) -> list[WebhookAnswer]:
        """The answers to these questions; raises if one is missing."""
        missing = [each for each in calls if each.key not in self.answers]
        if missing:
            raise AnswersNeededError(missing)
        return [self.answers[each.key] for each in calls]

    def keep(self, call: WebhookCall, answer: WebhookAnswer) -> None:
        self.answers[call.key] = answer
        self.turns[call.turn] = self.turns.get(call.turn, 0) + 1

    def is_tired_of(self, call: WebhookCall) -> bool:
        """Whether this was asked so often that the writer had better look at the object again."""
        return self.turns.get(call.turn, 0) >= MOST_TURNS
