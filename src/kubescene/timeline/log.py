"""The log of facts: append-only, in order, shared by everybody who reads it.

One thread appends; `read` may be called while it does. Looking facts up by step or object builds an
index on first use and extends it afterwards, so that a log nobody searches pays nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload

from kubescene.clock import ScenarioStep
from kubescene.errors import RecorderError
from kubescene.timeline.facts import Fact, LineReader, LineWriter

if TYPE_CHECKING:
    from kubescene.timeline.files import TimelineFile

Follower: TypeAlias = Callable[[Fact], None]


class TimelineLog(Sequence[Fact]):
    """Facts by position. Followers are called with each as it comes."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: list[Fact] = list(facts)
        self._followers: tuple[Follower, ...] = ()
        self._closers: dict[Follower, Callable[[], None]] = {}
        self.is_closed = False
        """Whether no more facts will come."""
        self._steps = _Index(self._facts, _step_keys)
        self._names = _Index(self._facts, _name_keys)
        self._uids = _Index(self._facts, _uid_keys)

    @classmethod
    def open(cls, path: str | Path) -> "TimelineFile":
        """The log in a ``timeline.jsonl``, which may still grow."""
        # Files know logs; logs need files only here.
        from kubescene.timeline.files import TimelineFile

        return TimelineFile(path)

    # -- growing ---------------------------------------------------------------------------

    def append(self, fact: Fact) -> None:
        """Add a fact and tell the followers. One that raises is not called again."""
        self._facts.append(fact)
        for follower in self._followers:
            try:
                follower(fact)
            except OSError as error:
                self.unfollow(follower)
                raise RecorderError(
                    f"the timeline could not be written at step {fact.step}: {error}"
                ) from error
            except BaseException:
                self.unfollow(follower)
                raise

    def follow(self, follower: Follower, closed: Callable[[], None] | None = None) -> None:
        """Call ``follower`` with every fact from now on; those of before can be read.

        ``closed`` is called when there will be no more.
        """
        self._followers += (follower,)
        if closed is not None:
            self._closers[follower] = closed

    def unfollow(self, follower: Follower) -> None:
        self._followers = tuple(each for each in self._followers if each != follower)
        self._closers.pop(follower, None)

    def close(self) -> None:
        """No more facts will come."""
        self.is_closed = True
        for closed in [*self._closers.values()]:
            closed()

    # -- reading ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._facts)

    @overload
    def __getitem__(self, position: int) -> Fact: ...
    @overload
    def __getitem__(self, position: slice) -> list[Fact]: ...
    def __getitem__(self, position: int | slice) -> Fact | list[Fact]:
        return self._facts[position]

    def __iter__(self) -> Iterator[Fact]:
        """All facts, also those that come meanwhile."""
        return iter(self._facts)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Fact]:
        """Facts from a position on, up to those that are there when it gets to them."""
        position = start
        while position < len(self._facts) and (stop is None or position < stop):
            yield self._facts[position]
            position += 1

    def since(self, position: int) -> list[Fact]:
        """The facts from a position on that are there now; any thread may ask."""
        if position < 0:
            raise ValueError(f"positions begin at 0, not at {position}")
        return self._facts[position:]

    def at(self, step: ScenarioStep | int) -> list[Fact]:
        """The facts of one step, or of one whole major step."""
        return [self._facts[position] for position in self._steps.of(step)]

    def of_object(self, kind: str, namespace: str, name: str) -> list[Fact]:
        """The facts about whatever object had that name."""
        return [self._facts[position] for position in self._names.of((kind, namespace, name))]

    def index_names(self, most: int) -> bool:
        """Get ready for `of_object`, so many facts at a time; whether there is more to do."""
        return self._names.read(most)

    def of_uid(self, uid: str) -> list[Fact]:
        """The facts about one object."""
        return [self._facts[position] for position in self._uids.of(uid)]

    # -- copying ---------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A log that goes on by itself; facts are shared, followers stay with the original."""
        copy = type(self)(self._facts)
        memo[id(self)] = copy
        return copy

    def __reduce__(self) -> tuple[Callable[..., "TimelineLog"], tuple[list[bytes]]]:
        """For other processes a log is its lines."""
        writer = LineWriter()
        return from_lines, ([writer.line(fact) for fact in self._facts],)

    def __repr__(self) -> str:
        last = f", last {self._facts[-1]!r}" if self._facts else ""
        return f"<{type(self).__name__} of {len(self._facts)} facts{last}>"


def from_lines(lines: Iterable[bytes]) -> TimelineLog:
    """The log behind lines that a `LineWriter` made."""
    facts: list[Fact] = []
    reader = LineReader(facts)
    for line in lines:
        fact = reader.read(line)
        facts.append(fact)
    return TimelineLog(facts)


class _Index:
    """Positions by key, as far as somebody has asked."""

    def __init__(self, facts: list[Fact], keys: Callable[[Fact], Iterable[Hashable]]) -> None:
        self._facts = facts
        self._keys = keys
        self._positions: defaultdict[Hashable, list[int]] = defaultdict(list)
        self._indexed = 0

    def of(self, key: Hashable) -> Sequence[int]:
        self.read(len(self._facts))
        return self._positions.get(key, ())

    def read(self, most: int) -> bool:
        """Look at so many facts more; whether there are others."""
        end = min(self._indexed + most, len(self._facts))
        for position in range(self._indexed, end):
            for found in self._keys(self._facts[position]):
                self._positions[found].append(position)
            self._indexed = position + 1
        return end < len(self._facts)


def _step_keys(fact: Fact) -> Iterable[Hashable]:
    return fact.step, fact.step.major


def _name_keys(fact: Fact) -> Iterable[Hashable]:
    return [(key.kind, key.namespace, key.name) for key in fact.objects()]


def _uid_keys(fact: Fact) -> Iterable[Hashable]:
    return [key.uid for key in fact.objects()]
