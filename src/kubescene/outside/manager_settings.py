"""How a kube-controller-manager should be started that takes part in a Scenario.

It moves in rounds and its end state is what counts, so fewer of its settings matter. Those
controllers of it that act by the machine's clock have no place in a rehearsal.
"""

from collections.abc import Iterator, Sequence

from kubescene.outside.command_lines import Flags, flags_of, is_true, last
from kubescene.outside.settings import LEAST_RATE

TIMED = (
    "certificatesigningrequest-cleaner-controller",
    "cronjob-controller",
    "horizontal-pod-autoscaler-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "token-cleaner-controller",
    "ttl-after-finished-controller",
)
"""Controllers that act when real time has passed, or because a Lease is old."""
ALIASES = {
    "cronjob": "cronjob-controller",
    "csrcleaner": "certificatesigningrequest-cleaner-controller",
    "horizontalpodautoscaling": "horizontal-pod-autoscaler-controller",
    "nodelifecycle": "node-lifecycle-controller",
    "tokencleaner": "token-cleaner-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
}
"""The names that such controllers had before."""
OFF_BY_DEFAULT = ("token-cleaner-controller",)
WORKLOADS = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
)
"""Those that most people want to see."""
ONE_WORKER = ("deployment", "replicaset", "statefulset", "daemonset", "job", "gc", "namespace")


def missing_manager_settings(arguments: Sequence[str]) -> list[str]:
    """What must be set otherwise for equal end states: name, what it is, what it must be, why."""
    flags = flags_of(arguments)
    return [*_of_client(flags), *_of_controllers(flags)]


def advised_manager_settings(arguments: Sequence[str]) -> list[str]:
    """What takes time or makes the way to the end state differ, not the end state."""
    flags = flags_of(arguments)
    advice = []
    if is_true(last(flags, "leader-elect") or "true"):
        why = "it works only after it has become the leader, and ends if it cannot stay it"
        advice.append(f"--leader-elect is true, better false: {why}")
    if is_true(last(flags, "use-service-account-credentials")):
        why = "each controller asks for a token of its own first"
        advice.append(f"--use-service-account-credentials is true, better false: {why}")
    for name in ONE_WORKER:
        if last(flags, f"concurrent-{name}-syncs") != "1":
            why = "workers that race make another order of writes each time"
            advice.append(f"--concurrent-{name}-syncs is not 1, better 1: {why}")
    return advice


def manager_arguments(controllers: Sequence[str] = WORKLOADS) -> list[str]:
    """Flags for a controller manager with just these controllers."""
    return [
        f"--controllers={','.join(controllers)}",
        "--leader-elect=false",
        "--use-service-account-credentials=false",
        "--secure-port=0",
        f"--kube-api-qps={LEAST_RATE}",
        f"--kube-api-burst={LEAST_RATE}",
        *(f"--concurrent-{name}-syncs=1" for name in ONE_WORKER),
    ]


def _of_client(flags: Flags) -> Iterator[str]:
    for name, default in (("qps", 20), ("burst", 30)):
        found = last(flags, f"kube-api-{name}")
        if not _is_fast(found):
            shown = f"{default} by default" if found is None else found
            why = "while it holds its own requests back it looks as if it were done"
            yield f"--kube-api-{name} is {shown}, must be at least {LEAST_RATE}: {why}"


def _is_fast(found: str | None) -> bool:
    try:
        return found is not None and float(found) >= LEAST_RATE
    except ValueError:
        return False


def _of_controllers(flags: Flags) -> Iterator[str]:
    running = [name for name in TIMED if runs(name, flags.get("controllers", ["*"]))]
    for name in running:
        why = "it acts by the machine's clock, not the scenario's"
        yield f"--controllers runs {name}, must not (-{name}): {why}"


def runs(controller: str, values: Sequence[str]) -> bool:
    """Whether ``--controllers`` lets one run: by its name, without a minus, or by ``*``."""
    words = [word.strip() for value in values for word in value.split(",")]
    named = {ALIASES.get(word.lstrip("-"), word.lstrip("-")): word for word in words}
    if controller in named:
        return not named[controller].startswith("-")
    return "*" in words and controller not in OFF_BY_DEFAULT
