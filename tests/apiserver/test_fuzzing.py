"""A few of the requests at random that `fuzzing` asks by the hundred thousand."""

from fuzzing import Fuzzer, fuzz


def test_requests_at_random_are_answered_in_words() -> None:
    findings = fuzz(1_200, seed=5)
    assert findings.is_alive
    assert [*map(str, findings.internal), *findings.lines] == []
    assert {200, 201, 400, 404, 422} <= findings.statuses.keys()


def test_the_same_seed_asks_the_same() -> None:
    first, second = Fuzzer(7), Fuzzer(7)
    assert [first.next() for _ in range(50)] == [second.next() for _ in range(50)]
