"""A few of the requests at random that `fuzzing` asks by the hundred thousand."""

from contextlib import suppress

import pytest

from apiserver.test_table import asked
from fuzzing import Fuzzer, fuzz
from kubescene.apiserver.server import Server
from kubescene.apiserver.table import ANY
from kubescene.errors import NotFoundError


@pytest.mark.parametrize("seed", [5, 6], ids=["in memory", "in a directory"])
def test_requests_at_random_are_answered_in_words(seed: int) -> None:
    findings = fuzz(1_200, seed)
    assert findings.is_alive
    assert [*map(str, findings.internal), *findings.lines] == []
    assert {200, 201, 400, 404, 422} <= findings.statuses.keys()


def test_the_same_seed_asks_the_same() -> None:
    first, second = Fuzzer(7), Fuzzer(7)
    assert [first.next() for _ in range(50)] == [second.next() for _ in range(50)]


def test_every_row_of_the_table_is_asked() -> None:
    fuzzer = Fuzzer(1)
    with Server(port=0) as server:
        left = {(row.method, row.pattern) for row in server.app.table}
        for _ in range(40_000):
            entry = None
            method, target = fuzzer.next()[:2]
            with suppress(NotFoundError):  # a subresource that a custom kind does not have
                entry = server.app.table.find(asked(target.partition("?")[0], method))
            if entry is not None:
                left -= {(method, entry.pattern), (ANY, entry.pattern)}
    assert sorted(left) == []
