"""Worlds with disruption budgets, for tests of operations that take time."""

from kubescene.runs import Run
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_deployment, make_node
from kubescene.timeline import OperationOutcome
from kubescene.types import JsonObject


def budget(name: str, **spec: object) -> JsonObject:
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, **spec},
    }


def daemon_set(name: str) -> JsonObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }


def web(replicas: int = 6, nodes: int = 3, *, ready: str = "7s", **spec: object) -> ScenarioBuilder:
    """A Deployment, with a budget if anything is said of one, that has come to rest."""
    scenario = (
        ScenarioBuilder("web")
        .settings(kubelet={"readyDelay": ready, "terminateDelay": "2s"})
        .create(make_node("n-$(INDEX)").cpu("8").label(zone="a"), count=nodes)
        .create(make_deployment("web").replicas(replicas))
    )
    if spec:
        scenario.create(budget("web", **spec))
    return scenario.advance("1m").step(2)


def outcomes(run: Run) -> list[tuple[str, str, str]]:
    """What was told of operations: id, state, subject."""
    facts = [fact for fact in run.log if isinstance(fact, OperationOutcome)]
    return [(fact.id, fact.state, fact.subject) for fact in facts]


def messages(run: Run, state: str) -> list[str]:
    facts = [fact for fact in run.log if isinstance(fact, OperationOutcome)]
    return [fact.message for fact in facts if fact.state == state]
