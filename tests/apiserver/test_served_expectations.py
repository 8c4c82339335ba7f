"""Expectations over HTTP: refused in words, found in the status and on the pages."""

from apiserver.http import Http
from apiserver.scenarios import SCENARIOS, create, play, wait
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

PAGES = "/simulator/v1/scenarios"


def scenario(name: str = "s") -> ScenarioBuilder:
    node = make_node("n").cpu("1").memory("1Gi").pods("9")
    return ScenarioBuilder(name).create(node).create(make_pod("p-$(INDEX)").cpu("1"), count=2)


def test_outcomes_are_in_status_summary_and_timeline(http: Http) -> None:
    expecting = scenario().done().expect("placed", "pending.size() == 0", "somebody waits")
    found = play(http, expecting)
    told = {"name": "placed", "expression": "pending.size() == 0", "holds": False}
    assert found["expectations"] == [{**told, "message": "somebody waits", "seen": "1 == 0"}]
    summary = http.get(f"{PAGES}/s/summary").json
    assert summary["expectations"] == [
        {**told, "message": "somebody waits", "error": "", "seen": "1 == 0"}
    ]
    lines = http.get(f"{PAGES}/s/timeline").body.splitlines()
    assert b'"fact":"ExpectationsEvaluated"' in lines[-2]


def test_an_expression_that_does_not_compile_is_a_422_and_harms_nobody(http: Http) -> None:
    wrong = scenario().expect("x", "pods.all(p, p.nod == '')").build()
    refused = http.post(SCENARIOS, wrong)
    assert refused.status == 422
    (cause,) = refused.json["details"]["causes"]
    assert cause["field"] == "spec.expectations[0].expression"
    assert "did you mean 'node'?" in cause["message"]
    create(http, scenario("next").done().expect("x", "true"))
    assert wait(http, "next", "Succeeded")["expectations"][0]["holds"] is True


def test_the_schema_says_what_an_outcome_is(http: Http) -> None:
    document = http.get("/openapi/v3/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1")
    assert "Whether its expression is true." in document.body.decode()
