"""The page that defines every measure, made from the measures themselves."""

from collections.abc import Iterable, Iterator

from kubescene.results.measures import (
    allocation,
    balance,
    cost,
    extent,
    fragmentation,
    pending,
    pod_counts,
    preemptions,
    requests,
    scaling,
    scheduling,
    utilization,
    workloads,
)
from kubescene.results.measures.measure import AnyMeasure

INTRODUCTION = """\
# Measures

`kubescene results RUN` shows them, `open_run("RUN").measures()` gives them to Python, flat and by
name; expectations and sweeps use the same names. This page is made from the code:
`pytest tests/results/test_measures_page.py --update` makes it anew.

- **RESOURCE** stands for every resource that a node of the run ever offered: `cpu`, `memory`,
  `pods` (every pod takes one), and others, whose names become words: `example.com/gpu` is
  `example_com_gpu`. Where two names would become one, they stay as they are.
- A **share** is a number from 0 to 1; it is more only where pods were put on nodes that are too
  small for them, or a node shrank. *Requested* is what pods ask for by their specs, by the
  arithmetic of the scheduler, not what they would use; *allocatable* is what a node offers.
- A **moment** is the end of a minor step, or an instant at which virtual time goes on. Peaks look
  at every moment, so also at what comes and goes between the ends of two steps; what the
  operations of a step write together is not looked at halfway. Means are weighted by time.
- **Devices** that ResourceSlices publish are a resource of their nodes, named by their driver:
  those of `gpu.example.com` are `devices/gpu.example.com`, in names of measures
  `devices_gpu_example_com`. Requested are those that the allocations of ResourceClaims name, each
  once; access of administrators takes nothing. Pods ask for devices by claims, so there is no
  fragmentation of them.
- A pod is **pending** until it has a node, then **bound**; **terminating** from its deletion until
  that is carried out, then **deleted**; **finished** once its phase is Succeeded or Failed. Pods
  that are bound or terminating take room of their node, as long as the node exists. A pod that its
  node has stopped is deleted, also if finalizers keep the object.
- **Time** is virtual. Inside a step it stands still, so without an `advanceOperation` all waiting
  takes 0 seconds; major steps tell more then.
- A pod that **never had a node** was only seen waiting up to a point: until the end of the run, or
  until it was gone. Its waiting time is *right-censored*, and each measure of waiting says what it
  makes of that.
- A measure **without a value** (no node, no pod, no time, nothing free) is absent: not in the
  mapping, null in JSON and frames, an empty cell in CSV, a dash on the terminal. It is never 0 or
  NaN.
"""

PRICES = """\
Only where something is paid for: Instances of [node groups](../guides/node-groups.md) that say what
they cost, or whatever a price list (`--prices FILE`, `measures(prices=...)`) has a price for. A
price list wins over what groups say. **GROUP** stands for every node group, as a word. Prices in
several currencies make no sum. Half of a price is for cpu, half for memory; a node counts as what
it offered last, and what pods ask for beyond that is nobody's.

```yaml
currency: USD
label: node.kubernetes.io/instance-type   # this label if none is named
hourly:
  m5.large: 0.096
  c5.xlarge: 0.17
  c5.xlarge/spot: 0.06                    # of nodes whose labels say that they are spot
  c5.xlarge/spot/eu-1a: 0.055             # and in this zone
default: 0.1                              # for nodes that are not listed; else they are an error
```

The most exact price counts: of type, capacity type (`spot`, `on-demand`) and zone, of type and zone
(`c5.xlarge//eu-1a`), of type and capacity type, of the type. Spot are nodes whose labels say it as
Karpenter, EKS, GKE or AKS do. A file whose name ends with `.csv` has the columns `instance_type`
and `hourly`, and `capacity_type` and `zone` if wanted.
"""

SECTIONS: tuple[tuple[str, str, tuple[AnyMeasure, ...]], ...] = (
    ("The run", "", extent.MEASURES),
    ("Pods", "", pod_counts.MEASURES),
    (
        "Pending time",
        "Pods that came with a node (`spec.nodeName`) never waited for a scheduler and are not\n"
        "counted. Time behind scheduling gates counts.\n",
        pending.MEASURES,
    ),
    ("Scheduling", "", scheduling.MEASURES),
    ("Preemption", "", preemptions.MEASURES),
    ("Allocation of the cluster", "", allocation.MEASURES),
    (
        "Workloads",
        "**WORKLOAD** stands for every Deployment, StatefulSet, DaemonSet and ReplicaSet that\n"
        "nobody owns, by namespace and name, as words as well.\n",
        workloads.MEASURES,
    ),
    (
        "Scaling",
        "What [autoscalers](../guides/horizontal-autoscaling.md) decided; absent without any.\n",
        scaling.MEASURES,
    ),
    (
        "Requests",
        "Of [Traffic objects](../guides/traffic-objects.md); absent without any. Response times\n"
        "are said twice: of all that ended, where a failure took its time-out, and of those that\n"
        "were *served* alone. They are of histograms, at most a sixteenth too small. **WORKLOAD**\n"
        "stands for a Traffic, by namespace and name.\n",
        requests.MEASURES,
    ),
    ("Utilisation of nodes", "", utilization.MEASURES),
    ("Balance", "", balance.MEASURES),
    (
        "Fragmentation",
        "Only amounts count: taints, affinity and other rules of the scheduler are not asked.\n",
        fragmentation.MEASURES,
    ),
    ("Cost", PRICES, cost.MEASURES),
)


def page() -> str:
    """The whole page, as Markdown."""
    return "\n".join([INTRODUCTION, *(line for section in SECTIONS for line in _section(*section))])


def _section(title: str, words: str, measures: Iterable[AnyMeasure]) -> Iterator[str]:
    yield f"## {title}\n"
    if words:
        yield words
    yield "| measure | unit | meaning | formula |"
    yield "|---|---|---|---|"
    for each in measures:
        formula = each.formula.replace("|", "\\|")
        yield f"| `{each.name}` | {each.unit} | {each.meaning} | {formula} |"
    yield ""
