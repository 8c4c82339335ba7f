"""Numbers that say when the answers for a signature may have changed (`DomainPlugin.stamp`)."""

from collections.abc import Hashable

from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.pod_kinds import PodSignature


class Stamps:
    """A new number for a signature whenever what its answers depend on is not what it was."""

    __slots__ = ("_last", "_newest")

    def __init__(self) -> None:
        self._newest = 0
        self._last: Memo[PodSignature, list[Hashable]] = Memo(_nothing_yet)

    def of(self, signature: PodSignature, depends_on: Hashable) -> int:
        last = self._last[signature]
        if last[0] != depends_on:
            self._newest += 1
            last[:] = (depends_on, self._newest)
        found = last[1]
        assert isinstance(found, int)
        return found


def _nothing_yet(signature: PodSignature) -> list[Hashable]:
    del signature
    return [None, 0]
