"""What the timeline keeps of one attempt: a bounded part of its explanation, in columns.

At most `NODES_LISTED` nodes, the chosen one always among them; the whole matrix is in the run's
side file. Cut from the scheduler's arrays when the attempt is recorded, or, if these are kept
anyway, when somebody reads it.
"""

from collections.abc import Sequence
from itertools import starmap
from operator import add
from typing import Any, Self

import msgspec

from kubescene.instruments.attempts import Explanation
from kubescene.instruments.score_columns import ListedScores, PackedScores, ScoreColumn, integers
from kubescene.instruments.stretches import Stretches

NODES_LISTED = 16


class ListedRejection(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One listed node, by its place in ``candidates``, that a plugin refused."""

    place: int
    plugin: str
    reasons: str


class ScheduleResult(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """``examined`` and ``feasible`` count all nodes, the columns hold the listed ones.

    ``scored`` are places in ``candidates``. All of it is flat and immutable.
    """

    examined: int
    feasible: int
    candidates: tuple[str, ...]
    filtered: tuple[str, ...]
    filter_plugins: tuple[str, ...]
    rejections: tuple[ListedRejection, ...] = ()
    scored: tuple[int, ...] = ()
    scores: tuple[ListedScores, ...] = ()

    @property
    def is_cut(self) -> bool:
        return self.examined > len(self.candidates)

    def totals(self) -> dict[str, int]:
        """The weighted sum of every listed node that was scored, in their order."""
        sums: Sequence[int] = [0] * len(self.scored)
        for each in self.scores:
            part, weight = each.normalized, each.weight
            weighted = part if weight == 1 else [score * weight for score in part]
            sums = list(starmap(add, zip(sums, weighted, strict=True)))
        return dict(zip(map(self.candidates.__getitem__, self.scored), sums, strict=True))


class PutOff:
    """A result that is cut for the first who reads or writes it, and kept as that one got it.

    Till then it holds the whole explanation.
    """

    __slots__ = ("_explanation", "_known", "_node")

    def __init__(self, explanation: Explanation, node: str) -> None:
        self._explanation: Explanation | None = explanation
        self._node = node
        self._known: ScheduleResult | msgspec.Raw | None = None

    def __call__(self) -> ScheduleResult:
        # Several threads may read: all of them cut the same.
        explanation, known = self._explanation, self._known
        if known is None:
            assert explanation is not None
            known = self._known = schedule_result(explanation, self._node)
            self._explanation = None
        return result_of(known) if isinstance(known, msgspec.Raw) else known

    @property
    def text(self) -> msgspec.Raw:
        """The result as a line has it."""
        explanation, known = self._explanation, self._known
        if known is None:
            assert explanation is not None
            known = self._known = encoded_result(explanation, self._node)
            self._explanation = None
        return known if isinstance(known, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(known))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """What it tells never changes."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes get what it tells."""
        return ready, (self(),)

    def __repr__(self) -> str:
        return repr(self())


def ready(result: ScheduleResult) -> ScheduleResult:
    """What becomes of a result that was put off, in another process."""
    return result


class Listing(msgspec.Struct, frozen=True, gc=False):
    """Which nodes are listed, as indexes; ``passed`` are the first that passed, listed or not.

    ``scored`` are the places of listed nodes with scores, which stand in the first ``begin`` rows
    of the columns, and then in the rows ``others``.
    """

    listed: list[int]
    passed: list[int]
    refused: tuple[ListedRejection, ...]
    scored: list[int]
    begin: int
    others: list[int]


_RESULT = msgspec.json.Decoder(ScheduleResult)


def encoded_result(explanation: Explanation, chosen: str) -> msgspec.Raw:
    """The same as the text that a line has: few are read again while a run is in memory."""
    return msgspec.Raw(msgspec.json.encode(schedule_result(explanation, chosen)))


def result_of(text: msgspec.Raw) -> ScheduleResult:
    """What such a text says."""
    return _RESULT.decode(text)


def schedule_result(explanation: Explanation, chosen: str) -> ScheduleResult:
    """The bounded part of an explanation."""
    told, name = listing(explanation, chosen), explanation.nodes.__getitem__
    candidates = tuple(map(name, told.listed))
    return ScheduleResult(
        examined=len(explanation.examined),
        feasible=len(explanation.feasible),
        candidates=candidates,
        filtered=candidates if told.passed == told.listed else tuple(map(name, told.passed)),
        filter_plugins=explanation.filter_plugins,
        rejections=told.refused,
        scored=tuple(told.scored),
        scores=_listed_scores(explanation.scores, told.begin, told.others),
    )


def listing(explanation: Explanation, chosen: str) -> Listing:
    """What is listed of an explanation."""
    if isinstance(explanation.scored, Stretches) and explanation.scored is explanation.feasible:
        return _listing_of_search(explanation, chosen, explanation.scored)
    listed = listed_nodes(explanation, chosen)
    passed = _first(explanation.feasible)
    begin = _agreeing(listed, passed)
    # Mostly the first nodes examined have all passed, and the chosen one is the last listed.
    refused = () if _all_passed(listed, begin, explanation) else rejections(explanation, listed)
    if explanation.scored is not explanation.feasible:
        begin = _agreeing(listed, _first(explanation.scored))
    places, others = _scored_of(listed, begin, explanation.scored, refused)
    return Listing(listed, passed, refused, places, begin, others)


def _listing_of_search(explanation: Explanation, chosen: str, feasible: Stretches) -> Listing:
    """The same of a search that nobody interfered with: all that pass are scored, in its order.

    So listed nodes that were not refused stand in the first rows, but for a chosen one from afar.
    """
    first = passed = _first(explanation.examined)
    if feasible is not explanation.examined:
        passed = feasible.head(NODES_LISTED)
    listed = _with_chosen(first, explanation, chosen)
    scored, others, out = list(range(len(listed))), [], []
    if listed is not first and (row := _chosen_row(explanation, feasible)) is not None:
        others.append(row)
    if first != passed:
        pass_too = {*passed, *(listed[-1:] if others else ())}
        out = [place for place in scored if listed[place] not in pass_too]
        scored = [place for place in scored if place not in out]
    refused = _refused(explanation, listed, out) if out else ()
    return Listing(listed, passed, refused, scored, len(scored) - len(others), others)


def _chosen_row(explanation: Explanation, feasible: Stretches) -> int | None:
    row, chosen = explanation.chosen_row, explanation.chosen
    return feasible.place_of(chosen) if row is None and chosen is not None else row


def _refused(
    explanation: Explanation, listed: Sequence[int], places: Sequence[int]
) -> tuple[ListedRejection, ...]:
    """Who refused the nodes listed at these places; each of them was refused once."""
    found = []
    for place in places:
        index = listed[place]
        group = next(each for each in explanation.filters if index in each.nodes)
        found.append(ListedRejection(place, group.plugin, ", ".join(group.reasons)))
    return tuple(found)


def listed_nodes(explanation: Explanation, chosen: str) -> list[int]:
    """The first nodes examined, the chosen one always among them."""
    return _with_chosen(_first(explanation.examined), explanation, chosen)


def _with_chosen(first: list[int], explanation: Explanation, chosen: str) -> list[int]:
    """The same list if the chosen node is in it."""
    if not chosen:
        return first
    known = explanation.chosen
    index = explanation.nodes.index(chosen) if known is None else known
    return first if index in first else [*first[:-1], index]


def _first(indexes: Sequence[int]) -> list[int]:
    """As many as are listed."""
    if isinstance(indexes, Stretches):
        return indexes.head(NODES_LISTED)
    return integers(indexes[:NODES_LISTED])


def rejections(explanation: Explanation, listed: Sequence[int]) -> tuple[ListedRejection, ...]:
    """Who refused the listed nodes; the last word counts."""
    refused: dict[int, ListedRejection] = {}
    for group in explanation.filters:
        reasons = ", ".join(group.reasons)
        for place in _places_in(group.nodes, listed):
            refused[place] = ListedRejection(place, group.plugin, reasons)
    return tuple([refused[place] for place in sorted(refused)])


def _places_in(ascending: Any, listed: Sequence[int]) -> list[int]:
    """Which of the listed indexes are among others, by their places."""
    if isinstance(ascending, Stretches):
        return [place for place, index in enumerate(listed) if index in ascending]
    if not len(ascending):
        return []
    if not hasattr(ascending, "searchsorted"):
        held = set(ascending)
        return [place for place, index in enumerate(listed) if index in held]
    nearest = ascending.take(ascending.searchsorted(listed), mode="clip")
    places: list[int] = (nearest == listed).nonzero()[0].tolist()
    return places


def _agreeing(listed: Sequence[int], passed: Sequence[int]) -> int:
    """How many nodes at the beginning of both are the same."""
    if listed == passed:
        return len(listed)
    for place, (one, other) in enumerate(zip(listed, passed, strict=False)):
        if one != other:
            return place
    return min(len(listed), len(passed))


def _all_passed(listed: Sequence[int], begin: int, explanation: Explanation) -> bool:
    if begin == len(listed):
        return True
    return begin == len(listed) - 1 and listed[-1] == explanation.chosen


def _scored_of(
    listed: Sequence[int], begin: int, scored: Sequence[int], refused: Sequence[ListedRejection]
) -> tuple[list[int], list[int]]:
    """Places of listed nodes that were scored, and the rows where those after ``begin`` stand.

    The first ones stand at the beginning, and a node that was refused stands nowhere.
    """
    places, rows = list(range(begin)), []
    nowhere = {each.place for each in refused} if refused else ()
    for place in range(begin, len(listed)):
        if place not in nowhere:
            found = _rows_with(scored, listed[place])
            rows += found
            places += [place] * len(found)
    return places, rows


def _rows_with(scored: Any, index: int) -> list[int]:
    if isinstance(scored, Stretches):
        place = scored.place_of(index)
        return [] if place is None else [place]
    if not hasattr(scored, "nonzero"):
        return [row for row, each in enumerate(scored) if each == index]
    rows: list[int] = (scored == index).nonzero()[0].tolist()
    return rows


def _listed_scores(
    columns: Sequence[ScoreColumn], begin: int, others: Sequence[int]
) -> tuple[ListedScores, ...]:
    if isinstance(columns, PackedScores):
        return columns.listed(begin, others)
    return tuple([column.listed(begin, others) for column in columns])
