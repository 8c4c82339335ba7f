"""The JSON of extenders: answers as Go reads them (X-2, X-4)."""

from typing import Any

import pytest

from kubescene.scheduler import Extender, ExtenderAnswer, ExtenderCall, ExtenderVerb
from kubescene.scheduler.extenders.extenders import ExtenderAddress
from kubescene.scheduler.extenders.wire import read_answer


def answer(verb: ExtenderVerb, body: str, *, cached: bool = True) -> ExtenderAnswer:
    address = ExtenderAddress("http://x/", {verb: "ask"}, 1)
    extender = Extender("http://x/", frozenset({verb}), node_cache_capable=cached, address=address)
    unused: Any = None
    return read_answer(ExtenderCall(extender, verb, unused), 200, body.encode())


FILTER, PRIORITIZE = ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE
BIND, PREEMPT = ExtenderVerb.BIND, ExtenderVerb.PREEMPT
NODES = '{"Nodes": {"items": [{"metadata": {"name": "a"}}]}}'


@pytest.mark.parametrize(
    ("cached", "body", "nodes", "bare"),
    [
        pytest.param(True, '{"nodenames": ["a", "b"]}', ("a", "b"), False, id="any case"),
        pytest.param(True, '{"NodeNames": ["a", "a"]}', ("a",), False, id="twice"),
        pytest.param(True, '{"NodeNames": []} and more', (), False, id="more behind it"),
        pytest.param(True, NODES, ("a",), True, id="X-5 nodes though names were sent"),
        pytest.param(False, NODES, ("a",), True, id="X-5 nodes"),
        pytest.param(False, '{"NodeNames": ["a"]}', (), True, id="X-4 names though nodes were"),
        pytest.param(True, "null", (), True, id="X-4 null"),
        pytest.param(True, "{}", (), True, id="X-4 nothing"),
    ],
)
def test_x_4_what_passes(cached: bool, body: str, nodes: tuple[str, ...], bare: bool) -> None:
    found = answer(FILTER, body, cached=cached)
    assert (found.nodes, found.bare, found.error) == (nodes, bare, "")


def test_what_fails_and_why() -> None:
    body = '{"FailedNodes": {"a": "x", "b": null}, "failedandunresolvablenodes": {"c": "y"}}'
    found = answer(FILTER, body)
    assert found.failed == {"a": "x", "b": ""}
    assert found.unresolvable == {"c": "y"}


def test_scores_victims_and_bindings() -> None:
    scores = answer(PRIORITIZE, '[{"host": "a", "SCORE": 3}, {"Host": "a", "Score": 4}, {}]')
    assert scores.scores == {"a": 7, "": 0}
    victims = answer(
        PREEMPT, '{"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "1"}], "NumPDBViolations": 2}}}'
    )
    assert (victims.victims, victims.pdb_violations) == ({"a": ("1",)}, {"a": 2})
    assert answer(BIND, '{"error": "no"}').error == "no"
    assert answer(BIND, "{}").error == ""


@pytest.mark.parametrize(
    ("verb", "body", "text"),
    [
        (FILTER, "", "EOF"),
        (FILTER, "[", "unexpected EOF"),
        (FILTER, "nope", "invalid character 'n' looking for beginning of value"),
        (FILTER, '"x"', "cannot unmarshal string into Go value of type v1.ExtenderFilterResult"),
        (
            FILTER,
            '{"NodeNames": "a"}',
            "cannot unmarshal string into Go struct field ExtenderFilterResult.NodeNames of type "
            "[]string",
        ),
        (
            FILTER,
            '{"NodeNames": [1]}',
            "cannot unmarshal number 1 into Go struct field ExtenderFilterResult.NodeNames of type "
            "string",
        ),
        (PRIORITIZE, "{}", "cannot unmarshal object into Go value of type v1.HostPriorityList"),
        (
            PRIORITIZE,
            '[{"Host": "a", "Score": 1.5}]',
            "cannot unmarshal number 1.5 into Go struct field HostPriority.Score of type int64",
        ),
        (
            PREEMPT,
            '{"NodeNameToMetaVictims": []}',
            "cannot unmarshal array into Go struct field "
            "ExtenderPreemptionResult.NodeNameToMetaVictims of type map[string]*v1.MetaVictims",
        ),
        (BIND, '{"Error": true}', "cannot unmarshal bool into Go struct field"),
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error(
    verb: ExtenderVerb, body: str, text: str
) -> None:
    assert text in answer(verb, body).error


def test_a_deep_answer_is_an_error_and_no_crash() -> None:
    assert answer(FILTER, '{"Nodes":' * 100_000).error
