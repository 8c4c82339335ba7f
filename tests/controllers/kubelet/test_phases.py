"""The phase of a pod, by the facts of the table that Kubernetes tests its kubelet with (v1.36).

A row: the pod's restart policy; its init containers (X, or S for a sidecar); their states; those of
its containers; whether it is terminal (t) and initialized (i); its phase. States: r runs, R has
started, too; 0 and F ended well and not; w waits; l and f wait and have ended well and not; - none.
"""

import pytest

from kubescene.controllers.kubelet.phases import is_restarted, phase_of
from kubescene.types import JsonObject

TABLE = """
Always . . -- . Pending
Always . . rr . Running
Always . . 00 . Running
Always . . 00 t Succeeded
Always . . 0F t Failed
Always . . r0 . Running
Always . . r- . Pending
Always . . rw . Pending
Always . . rl . Running
Always X - -- . Pending
Always X r -- . Pending
Always X F -- . Pending
Always X l -- . Pending
Always X f -- . Pending
Always X w -- . Pending
Always X 0 rr . Running
Always S - -- . Pending
Always S r -- . Pending
Always S 0 -- . Pending
Always S l -- . Pending
Always S f -- . Pending
Always S w -- . Pending
Always S R r- i Pending
Always S R rr i Running
Always S r rr i Running
Always S 0 rr i Running
Always S l rr i Running
Always S F 00 ti Succeeded
Always S 0 00 ti Succeeded
Always S r rr . Pending
Always XS rr r . Pending
Always XS rr 0 . Pending
Always XS 0r 0 . Pending
Always XS 0r 0 i Running
Always XS 0r r i Running
Never . . -- . Pending
Never . . rr . Running
Never . . 00 . Succeeded
Never . . FF . Failed
Never . . r0 . Running
Never . . r- . Pending
Never . . rw . Pending
Never X - -- . Pending
Never X r -- . Pending
Never X F -- . Failed
Never X l -- . Pending
Never X f -- . Failed
Never X w -- . Pending
Never X 0 rr . Running
Never S - -- . Pending
Never S r -- . Pending
Never S 0 -- . Pending
Never S l -- . Pending
Never S f -- . Pending
Never S w -- . Pending
Never S R r- i Pending
Never S R 00 i Running
Never S r 00 i Running
Never S 0 00 i Succeeded
Never S F 00 i Succeeded
Never S l 00 i Succeeded
Never S f 00 i Succeeded
OnFailure . . -- . Pending
OnFailure . . rr . Running
OnFailure . . 00 . Succeeded
OnFailure . . FF . Running
OnFailure . . r0 . Running
OnFailure . . r- . Pending
OnFailure . . rw . Pending
OnFailure . . rl . Running
"""
CONTAINER_POLICIES = """
Always A/Never F . Failed
Always A/OnFailure F . Running
Always A/Always F . Running
Never A/Always,B 0F . Running
Always A/Never,B/OnFailure F0 . Failed
Always A/Never,B/OnFailure 00 . Succeeded
"""
"""The same of containers that have policies of their own; they are initialized."""
STATES: dict[str, JsonObject] = {
    "r": {"state": {"running": {}}},
    "R": {"state": {"running": {}}, "started": True},
    "0": {"state": {"terminated": {"exitCode": 0}}},
    "F": {"state": {"terminated": {"exitCode": 255}}},
    "w": {"state": {"waiting": {}}},
    "l": {"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 0}}},
    "f": {"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 255}}},
}
SIDECAR = {"restartPolicy": "Always"}


def statuses(names: list[str], states: str) -> list[JsonObject]:
    pairs = zip(names, states, strict=True)
    return [{"name": name, **STATES[state]} for name, state in pairs if state in STATES]


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_the_phase_is_that_of_a_kubelet(row: str) -> None:
    policy, init, init_states, states, flags, phase = row.split()
    kinds = init.strip(".")
    names = [f"init-{number}" for number in range(len(kinds))]
    mains = [f"main-{number}" for number in range(len(states))]
    pairs = zip(kinds, names, strict=True)
    spec = {
        "restartPolicy": policy,
        "initContainers": [
            {"name": name, **(SIDECAR if kind == "S" else {})} for kind, name in pairs
        ],
        "containers": [{"name": name} for name in mains],
    }
    known = statuses(names, init_states.strip(".")) + statuses(mains, states)
    found = phase_of({"spec": spec}, known, is_terminal="t" in flags, is_initialized="i" in flags)
    assert found == phase


@pytest.mark.parametrize("row", CONTAINER_POLICIES.strip().splitlines())
def test_containers_may_have_policies_of_their_own(row: str) -> None:
    policy, listed, states, _, phase = row.split()
    made = []
    for each in listed.split(","):
        name, _, own = each.partition("/")
        made.append({"name": name, **({"restartPolicy": own} if own else {})})
    pod = {"spec": {"restartPolicy": policy, "containers": made}}
    known = statuses([each["name"] for each in made], states)
    assert phase_of(pod, known, is_initialized=True) == phase


RULES = [
    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
    {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [0, 1, 42]}},
]


@pytest.mark.parametrize(
    ("policy", "rules", "code", "restarts"),
    [
        (None, [], 1, False),
        ("OnFailure", [], 0, False),
        ("OnFailure", [], 1, True),
        ("Never", RULES, 42, True),
        ("Never", RULES, 7, True),
        ("Never", RULES, 1, False),
        ("Always", RULES, 1, True),
    ],
)
def test_rules_of_a_container_come_before_its_policy(
    policy: str | None, rules: list[JsonObject], code: int, restarts: bool
) -> None:
    container = {"name": "a", "restartPolicyRules": rules}
    if policy is not None:
        container["restartPolicy"] = policy
    assert is_restarted({"spec": {"restartPolicy": "Never"}}, container, code) is restarts
