"""Extenders that say again what they said when kube-scheduler was recorded."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from kubescene.clock import Stream
from kubescene.scheduler.extenders.extenders import ExtenderAnswer, ExtenderCall, PendingCall
from kubescene.scheduler.extenders.wire import TOO_LATE, no_answer, read_answer, request_body

_NOT_RECORDED = frozenset(
    {"resourceVersion", "lastTransitionTime", "lastHeartbeatTime", "lastProbeTime"}
)


class RecordedExtenders:
    """Answers calls to a URL with what was recorded for it, in order, and notes them."""

    def __init__(self) -> None:
        self._recorded: list[Mapping[str, Any]] = []
        self._made: list[dict[str, Any]] = []

    def expect(self, calls: Iterable[Mapping[str, Any]]) -> None:
        """The calls of the attempts that come next."""
        self._recorded = [*calls]

    def take(self) -> list[dict[str, Any]]:
        """The calls since the last look."""
        made, self._made = self._made, []
        return made

    def call(self, pending: PendingCall) -> None:
        call = pending.call
        assert call.extender.address is not None
        url = call.extender.address.url_for(call.verb)
        self._made.append({"url": url, "request": orjson.loads(request_body(call))})
        found = next((each for each in self._recorded if each["url"] == url), None)
        if found is not None:
            self._recorded.remove(found)
        pending.answer(_answer(call, found))


class First(Stream):
    """Where kube-scheduler rolls dice, the recording takes the first."""

    __slots__ = ()

    def below(self, bound: int) -> int:
        del bound
        return 0


def _answer(call: ExtenderCall, recorded: Mapping[str, Any] | None) -> ExtenderAnswer:
    if recorded is None:
        return no_answer(call, "nobody called this when it was recorded")
    if recorded.get("timedOut"):
        return no_answer(call, TOO_LATE)
    text = recorded.get("text")
    body = orjson.dumps(recorded.get("response")) if text is None else text.encode()
    return read_answer(call, recorded["status"], body)


def comparable(calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Calls without what differs between Go and us, and without what was not recorded."""
    return [{"url": each["url"], "request": _pruned(each["request"])} for each in calls]


def _pruned(value: Any) -> Any:
    """Go writes down what is zero, too."""
    if isinstance(value, dict):
        members = {key: _pruned(each) for key, each in value.items() if key not in _NOT_RECORDED}
        return {key: each for key, each in members.items() if each not in (None, {}, [], "", 0)}
    return [_pruned(each) for each in value] if isinstance(value, list) else value
