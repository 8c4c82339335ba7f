"""The page that says what is not simulated, written from the tables that `run` and `validate` ask.

What these find in a scenario they warn about. What no field or kind gives away, such as a full node
that refuses no pod, stands in `UNTOLD` and has to be known.
"""

from collections.abc import Iterable

from kubescene.cluster import ClusterOptions, builtin_controllers
from kubescene.scenario.validation.scaling import KPA, UNASKED
from kubescene.scenario.validation.unsimulated import (
    ARRIVALS,
    ARRIVED,
    AUTOSCALERS,
    ENDING,
    GAP,
    INERT,
    KINDS,
    PLUGIN_AUTOSCALER,
    POD_FIELDS,
    REQUESTLESS,
    STOLEN,
    TAINTS,
    TIMELESS,
    TRAFFIC,
    UNMEASURED,
    UNSHARED,
)
from kubescene.scheduler.plugins.default_profile import default_plugins

INTRODUCTION = """\
# What is not simulated

<!-- From validation/unsimulated.py: pytest tests/scenario/test_unsimulated_page.py --update -->

A rehearsal that leaves something out in silence gives a wrong answer. `kubescene run` and
`kubescene validate` warn about what the first section lists, with the operation that uses it first;
with `--strict` it is a fault. Who is asked are the controllers and plugins that a run really has:
one of yours ends the warning, one that a scenario turns off starts it.
"""

WARNED = """\
## What a run warns about

Objects of every built-in kind are stored, validated and served. These have no effect:
"""

TURNED_ON = """\
So is what autoscalers and their load cannot do: a Traffic to, or an autoscaler of, something that
nothing creates; points after the end; metrics that nobody measures; utilization of what containers
do not request; two that scale the same object, or that go by the same resource of it; a
PluginAutoscaler of a type that nobody takes.

In a patch, a status counts only with `subresource: status`, and nothing but a status with it.

These count where the plugin was turned on, see [pod groups](../guides/pod-groups.md); pods with a
`schedulerName` that no profile has wait:
"""

UNTOLD = """\
## What nobody warns about

**Nodes**

- A node fails when its condition Ready is written as `False` or `Unknown`, or when an Outage
  silences its kubelet, see [nodes that fail](../guides/failing-nodes.md).
- No kubelet refuses a pod: one that an operation binds to a full node runs there. No eviction
  under pressure.

**Pods**

- No container runs. Pods start and become ready after the delays of `spec.simulation.kubelet`,
  and do what `spec.simulation.workloads` or annotations of their pod say. Where nobody says
  anything of a pod, it runs until it is deleted: its probes are not made, its images are there,
  its init containers and sidecars are not shown, its hooks take no time.
- Containers write what `logs` of a behaviour says, and nothing else; no events of volumes and
  sandboxes; images are never removed.
- Services have addresses, Endpoints and EndpointSlices; pods and nodes have IPv4 addresses, which
  a status shows where there is a Service with a selector, and in a server. Requests come from
  Traffic objects alone; no hints for `service.kubernetes.io/topology-mode: Auto`.

**Autoscalers**

- What a PluginAutoscaler recommends as the size of a pod is that of one container: the only one, or
  the one that `spec.container` names. The HPA behind it knows no External series but a Traffic's.
- An outage `MetricsGap` is one of the nodes' metrics, which HPA, VPA and `kubectl top` go by. A
  PodAutoscaler asks the pods' own proxies, and triggers of a ScaledObject other than cpu and memory
  ask their own source, so they do not notice, as in a cluster. That such a source falls silent, as
  a Prometheus that is down, is not simulated.

**Volumes**

- One stand-in provisions for all storage classes: at once, and it never fails. Volumes are
  attached and detached at once, also those of nodes that are lost, from which a cluster takes them
  after six minutes: limits count what pods use, nobody writes VolumeAttachments (those that
  somebody creates are counted). The reclaim policy `Recycle` is not carried out.

**Devices**

- No driver runs: ResourceSlices, and conditions of devices that have to be made ready, come from
  the scenario. Nobody evicts pods from devices that get a `NoExecute` taint.

**Scheduler**

- Feature gates of kube-scheduler v1.36 that are off by default stay off, except GenericWorkload
  and GangScheduling: so no topology-aware placement of pod groups, no workload-aware preemption,
  no DeviceTaintRules.
- `parallelism` is 1. Leader election, client connection and profiling of a configuration are
  checked and have no effect.

**API server**

- Over plain http no credentials (`serve --rbac` takes users at their word there); no `exec`,
  `attach`, `port-forward` or `proxy`. See [kubectl and client libraries](../guides/api-server.md).
- Admission webhooks are called by `kubescene serve` alone, and not while a scenario has its world.
  Imports and snapshots are asked of nobody: neither of webhooks nor of admission policies.
- Conversion webhooks of CustomResourceDefinitions are not called: between versions only
  `apiVersion` changes. A definition with several versions that names one is answered with a
  warning, and a run that creates it warns.
"""


def not_simulated_page() -> str:
    """The page in Markdown, for a world with the built-in controllers and the default profile."""
    controllers = frozenset(builtin_controllers(ClusterOptions()))
    plugins = frozenset(each.name for each in default_plugins())
    warned = [
        *((kind, "no controller acts on it") for kind in idle_kinds(controllers)),
        *((kind, why) for (_, kind), why in INERT.items()),
        *((f"completion of a {kind}", why) for (_, kind), why in ENDING.items()),
        *(
            (f"metrics of a {each[1]}", UNASKED if each == KPA else UNMEASURED)
            for each in AUTOSCALERS
            if each != PLUGIN_AUTOSCALER
        ),
        *((kind, TIMELESS.format(every)) for (_, kind), every in AUTOSCALERS.items()),
        (TRAFFIC[1], REQUESTLESS),
        (ARRIVALS, ARRIVED),
        (STOLEN, UNSHARED),
        (GAP, UNMEASURED),
        *(
            (f"taint effect {effect}", why)
            for effect, (controller, why) in TAINTS.items()
            if controller not in controllers
        ),
    ]
    turned_on = [
        (f"pod field {path.replace('[]', '')}", f"the plugin {plugin}")
        for path, plugin in POD_FIELDS.items()
        if plugin not in plugins
    ]
    return "\n".join(
        (INTRODUCTION, WARNED, _table("why", warned), TURNED_ON, _table("needs", turned_on), UNTOLD)
    )


def idle_kinds(controllers: Iterable[str]) -> list[str]:
    """Kinds whose controller is not among these."""
    known = frozenset(controllers)
    return [kind for (_, kind), controller in KINDS.items() if controller not in known]


def _table(meaning: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"| {name} | {why} |\n" for name, why in rows)
    return f"| | {meaning} |\n|---|---|\n{lines}"
