"""What the timeline keeps of an attempt, as the text that its line holds.

Where a run is written to disk as it goes, the text is made straight from the explanation, and the
fact keeps it instead of a `ScheduleResult`: few of them are read again while the run is in memory.
"""

from collections.abc import Sequence

import msgspec
import orjson

from kubescene.instruments.attempts import Explanation
from kubescene.instruments.score_columns import PackedScores, ScoreColumn
from kubescene.timeline.schedule_results import ScheduleResult, listing

_DECODER = msgspec.json.Decoder(ScheduleResult)


class ResultTexts:
    """Makes them. The names of nodes are made text once for all attempts at the same nodes."""

    def __init__(self) -> None:
        self._nodes: Sequence[str] = ()
        self._names: list[bytes] = []

    def __call__(self, explanation: Explanation, chosen: str) -> msgspec.Raw:
        """The encoding of `schedule_result`."""
        told, name = listing(explanation, chosen), self._names_of(explanation.nodes).__getitem__
        examined, feasible = len(explanation.examined), len(explanation.feasible)
        candidates = b",".join(map(name, told.listed))
        passed = candidates if told.passed == told.listed else b",".join(map(name, told.passed))
        parts = [
            f'{{"examined":{examined},"feasible":{feasible},"candidates":['.encode(),
            candidates,
            b'],"filtered":[',
            passed,
            b'],"filterPlugins":',
            orjson.dumps(explanation.filter_plugins),
        ]
        if told.refused:
            parts += (b',"rejections":', msgspec.json.encode(told.refused))
        if told.scored:
            parts += (b',"scored":', orjson.dumps(told.scored))
        if len(explanation.scores):
            parts += (b',"scores":', _scores(explanation.scores, told.begin, told.others))
        parts.append(b"}")
        return msgspec.Raw(b"".join(parts))

    def _names_of(self, nodes: Sequence[str]) -> list[bytes]:
        # A list of nodes is never changed; other nodes are another list.
        if nodes is not self._nodes:
            self._nodes, self._names = nodes, [orjson.dumps(name) for name in nodes]
        return self._names


def result_of(text: msgspec.Raw) -> ScheduleResult:
    """What such a text says."""
    return _DECODER.decode(text)


def _scores(columns: Sequence[ScoreColumn], begin: int, others: Sequence[int]) -> bytes:
    if isinstance(columns, PackedScores):
        return columns.listed_text(begin, others)
    return msgspec.json.encode([column.listed(begin, others) for column in columns])
