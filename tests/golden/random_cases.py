"""Cases of workload controllers made by chance (README.md has their form).

What the real controllers leave to chance is kept out: which of equal pods of one batch is meant, or
which of equal nodes is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kubescene.clock.randomness import Streams
from kubescene.types import JsonObject

T = TypeVar("T")
STEPS = 4
"""Few enough that no more than ten alike events come: whether these are combined is chance."""
LABELS = {"app": "x"}


class Chance:
    """All draws of one case."""

    def __init__(self, seed: int, family: str) -> None:
        self._stream = Streams(seed).stream(f"random-cases/{family}")

    def number(self, least: int, most: int) -> int:
        return least + self._stream.below(most - least + 1)

    def one(self, of: Sequence[T]) -> T:
        return of[self._stream.below(len(of))]

    def some(self, **fields: object) -> JsonObject:
        """Each of these fields with even chances."""
        return {name: value for name, value in fields.items() if self._stream.below(2)}


def random_case(family: str, seed: int) -> JsonObject:
    """One case; the same seed makes the same."""
    chance = Chance(seed, family)
    id = f"{family}-random-{seed}"
    made: JsonObject = FAMILIES[family](chance, id)
    return {
        "id": id,
        "family": family,
        "about": "random",
        **made,
        "steps": [{"do": []}, *({"do": actions} for actions in made["steps"])],
    }


def template(image: str = "v1", **spec: object) -> JsonObject:
    return {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }


def workload(kind: str, group: str, name: str, **spec: object) -> JsonObject:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def patched(kind: str, name: str, spec: JsonObject, sub: str = "") -> JsonObject:
    patch: JsonObject = {"kind": kind, "name": name, "patch": spec}
    return {"patch": {**patch, "sub": sub} if sub else patch}


def with_image(chance: Chance, kind: str, name: str) -> JsonObject:
    containers = [{"name": "c", "image": chance.one(("v1", "v2", "v3"))}]
    return patched(kind, name, {"spec": {"template": {"spec": {"containers": containers}}}})


def drawn_steps(
    chance: Chance, actions: Sequence[Callable[[], JsonObject]], rounds: int = 6
) -> list[list[JsonObject]]:
    """Steps of one action, with an obliging kubelet between some of them."""
    steps = [[{"rounds": chance.number(1, rounds)}]]
    for _ in range(STEPS):
        does = [chance.one(actions)()]
        if chance.number(0, 2):
            does.append({"rounds": chance.number(1, rounds)})
        steps.append(does)
    return steps


def deployment(chance: Chance, id: str) -> JsonObject:
    del id
    bounds = ("0", "1", "2", "25%", "50%", "100%")
    rolling = {
        name: value if value.endswith("%") else int(value)
        for name, value in (("maxSurge", chance.one(bounds)), ("maxUnavailable", "1"))
    }
    strategy = chance.one(
        ({"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": rolling})
    )
    obj = workload(
        "Deployment",
        "apps/v1",
        "web",
        replicas=chance.number(0, 4),
        selector={"matchLabels": LABELS},
        strategy=strategy,
        template=template(),
        **chance.some(revisionHistoryLimit=chance.number(0, 2)),
    )
    of = "Deployment/web"
    actions: list[Callable[[], JsonObject]] = [
        lambda: with_image(chance, "Deployment", "web"),
        lambda: with_image(chance, "Deployment", "web"),
        lambda: patched("Deployment", "web", {"spec": {"replicas": chance.number(0, 5)}}),
        lambda: patched("Deployment", "web", {"spec": {"paused": bool(chance.number(0, 1))}}),
        lambda: {"pods": {"of": of, "first": 1}, "set": {"phase": "Failed"}},
        lambda: {"delete": {"kind": "Pod", "of": of, "first": 1}},
    ]
    return {"objects": [obj], "steps": drawn_steps(chance, actions)}


def replicaset(chance: Chance, id: str) -> JsonObject:
    del id
    obj = workload(
        "ReplicaSet",
        "apps/v1",
        "rs",
        replicas=chance.number(0, 4),
        selector={"matchLabels": LABELS},
        template=template(),
    )
    quota = workload("ResourceQuota", "v1", "q", hard={"pods": str(chance.number(1, 4))})
    of = "ReplicaSet/rs"
    actions: list[Callable[[], JsonObject]] = [
        lambda: patched("ReplicaSet", "rs", {"spec": {"replicas": chance.number(0, 5)}}),
        lambda: {"pods": {"of": of, "first": 1}, "set": {"phase": "Failed"}},
        lambda: {"pods": {"of": of, "last": 1}, "set": {"phase": "Succeeded"}},
        lambda: {"delete": {"kind": "Pod", "of": of, "first": 1}},
        lambda: {"label": {"of": of, "first": 1}, "set": {"labels": {"app": "released"}}},
    ]
    objects = [obj] if chance.number(0, 2) else [quota, obj]
    return {"objects": objects, "steps": drawn_steps(chance, actions)}


def statefulset(chance: Chance, id: str) -> JsonObject:
    del id
    claims = {
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
        ],
        "persistentVolumeClaimRetentionPolicy": {
            "whenDeleted": chance.one(("Retain", "Delete")),
            "whenScaled": chance.one(("Retain", "Delete")),
        },
    }
    update = {"rollingUpdate": {"partition": chance.number(0, 3)}, "type": "RollingUpdate"}
    obj = workload(
        "StatefulSet",
        "apps/v1",
        "db",
        serviceName="db",
        replicas=chance.number(0, 3),
        selector={"matchLabels": LABELS},
        template=template(),
        podManagementPolicy=chance.one(("OrderedReady", "Parallel")),
        updateStrategy=chance.one(({"type": "OnDelete"}, update, {"type": "RollingUpdate"})),
        **(claims if chance.number(0, 1) else {}),
        **chance.some(ordinals={"start": 2}),
    )
    of = "StatefulSet/db"
    actions: list[Callable[[], JsonObject]] = [
        lambda: with_image(chance, "StatefulSet", "db"),
        lambda: patched("StatefulSet", "db", {"spec": {"replicas": chance.number(0, 4)}}),
        lambda: {"pods": {"of": of, "last": 1}, "set": {"phase": "Failed"}},
        lambda: {"pods": {"of": of, "first": 1}, "set": {"ready": False}},
        lambda: {"delete": {"kind": "Pod", "of": of, "first": 1}},
    ]
    return {"objects": [obj], "steps": drawn_steps(chance, actions)}


def daemonset(chance: Chance, id: str) -> JsonObject:
    names = [f"{id}-{letter}" for letter in "abc"]
    pools = {name: chance.one(("p", "q")) for name in names}
    taint = {"key": "k", "effect": chance.one(("NoSchedule", "NoExecute"))}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"pool": pools[name]}},
        }
        for name in names
    ]
    selector = {"case": id, **chance.some(pool="p")}
    obj = workload(
        "DaemonSet",
        "apps/v1",
        "ds",
        selector={"matchLabels": LABELS},
        template=template(nodeSelector=selector),
        # All nodes at once, or none by itself: which one is next is chance.
        updateStrategy=chance.one(
            (
                {"type": "OnDelete"},
                {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
            )
        ),
    )
    actions: list[Callable[[], JsonObject]] = [
        lambda: with_image(chance, "DaemonSet", "ds"),
        lambda: patched(
            "Node", chance.one(names), {"metadata": {"labels": {"pool": chance.one(("p", "q"))}}}
        ),
        lambda: patched(
            "Node", chance.one(names), {"spec": {"taints": chance.one(([], [taint], [taint]))}}
        ),
        lambda: {"delete": {"kind": "Pod", "match": {"node": chance.one(names)}}},
        lambda: {"pods": {"match": {"node": chance.one(names)}}, "set": {"phase": "Failed"}},
    ]
    return {"nodes": nodes, "objects": [obj], "steps": drawn_steps(chance, actions)}


def job(chance: Chance, id: str) -> JsonObject:
    del id
    is_indexed = chance.number(0, 1)
    completions = chance.number(1, 4)
    obj = workload(
        "Job",
        "batch/v1",
        "j",
        template=template(restartPolicy="Never"),
        parallelism=chance.number(0, 3),
        backoffLimit=chance.number(0, 3),
        **({"completionMode": "Indexed", "completions": completions} if is_indexed else {}),
        **({} if is_indexed else chance.some(completions=completions)),
        **chance.some(podReplacementPolicy="Failed"),
    )
    long_ago = {"finishedLongAgo": True}
    # Pods with an index have an order; of others all are meant.
    one: JsonObject = {"of": "Job/j", "first": 1} if is_indexed else {"of": "Job/j"}
    actions: list[Callable[[], JsonObject]] = [
        lambda: {"pods": one, "set": {"phase": "Succeeded", **long_ago}, "together": True},
        lambda: {"pods": one, "set": {"phase": "Failed", **long_ago}, "together": True},
        lambda: patched("Job", "j", {"spec": {"parallelism": chance.number(0, 3)}}),
        lambda: patched("Job", "j", {"spec": {"suspend": bool(chance.number(0, 1))}}),
    ]
    return {"objects": [obj], "steps": drawn_steps(chance, actions, 1)[:5]}


def cronjob(chance: Chance, id: str) -> JsonObject:
    del id
    obj = workload(
        "CronJob",
        "batch/v1",
        "cj",
        schedule=chance.one(("0 0 1 6 *", "30 4 1 1 *", "0 12 1 */3 *", "0 0 31 2 *", "@yearly")),
        concurrencyPolicy=chance.one(("Allow", "Forbid", "Replace")),
        jobTemplate={"spec": {"template": template(restartPolicy="Never")}},
        **chance.some(
            suspend=True,
            startingDeadlineSeconds=chance.number(100, 10**8),
            successfulJobsHistoryLimit=chance.number(0, 2),
            timeZone=chance.one(("Etc/UTC", "Europe/Berlin")),
        ),
    )
    ago = (f"202{year}-{month:02}-15T00:00:00Z" for year in (4, 5) for month in (1, 7))
    stamps = [*ago]
    actions: list[Callable[[], JsonObject]] = [
        lambda: patched(
            "CronJob", "cj", {"status": {"lastScheduleTime": chance.one(stamps)}}, "status"
        ),
        lambda: patched("CronJob", "cj", {"spec": {"suspend": bool(chance.number(0, 1))}}),
        lambda: {"pods": {"of": "CronJob/cj"}, "set": {"phase": "Succeeded"}, "together": True},
    ]
    return {"objects": [obj], "steps": drawn_steps(chance, actions, 1)[:5]}


def pdb(chance: Chance, id: str) -> JsonObject:
    del id
    obj = workload(
        "Deployment",
        "apps/v1",
        "web",
        replicas=chance.number(1, 4),
        selector={"matchLabels": LABELS},
        template=template(),
    )
    bound = chance.one(("minAvailable", "maxUnavailable"))
    budget = workload(
        "PodDisruptionBudget",
        "policy/v1",
        "b",
        selector=chance.one(({"matchLabels": LABELS}, {}, {"matchLabels": {"app": "nobody"}})),
        **{bound: chance.one((0, 1, 2, "50%", "100%"))},
        **chance.some(unhealthyPodEvictionPolicy="AlwaysAllow"),
    )
    of = {"of": "Deployment/web", "first": chance.number(1, 2)}
    actions: list[Callable[[], JsonObject]] = [
        lambda: {"evict": of},
        lambda: {"evict": of},
        lambda: patched("Deployment", "web", {"spec": {"replicas": chance.number(0, 4)}}),
        lambda: {"pods": of, "set": {"ready": False}},
        lambda: patched("PodDisruptionBudget", "b", {"spec": {bound: chance.number(0, 3)}}),
    ]
    # Not with the Deployment: whether it sees pods at first would be chance.
    steps = drawn_steps(chance, actions)
    return {"objects": [obj], "steps": [[{"create": budget}], *steps]}


def quota(chance: Chance, id: str) -> JsonObject:
    del id
    hard = {
        "pods": str(chance.number(0, 3)),
        **chance.some(
            **{
                "requests.cpu": chance.one(("500m", "1", "2")),
                "limits.memory": "1Gi",
                "count/configmaps": str(chance.number(1, 3)),
                "count/jobs.batch": "1",
            }
        ),
    }
    scopes = chance.some(scopes=[chance.one(("BestEffort", "NotTerminating"))])
    objects = [workload("ResourceQuota", "v1", "q", hard=hard, **scopes)]
    made = iter(range(100))

    def pod() -> JsonObject:
        resources = chance.one(
            ({}, {"requests": {"cpu": "300m"}}, {"limits": {"cpu": "1", "memory": "300Mi"}})
        )
        spec = template()["spec"]
        spec["containers"][0]["resources"] = resources
        metadata = {"name": f"p{next(made)}", "labels": LABELS}
        return {"create": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}

    def map_of() -> JsonObject:
        metadata = {"name": f"m{next(made)}"}
        return {"create": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}}

    actions: list[Callable[[], JsonObject]] = [
        pod,
        pod,
        map_of,
        lambda: {"delete": {"kind": "Pod", "first": 1, "grace": 0}},
        lambda: patched("ResourceQuota", "q", {"spec": {"hard": {"pods": chance.one(("0", "5"))}}}),
        lambda: {"pods": {"first": 1}, "set": {"phase": "Succeeded"}},
    ]
    return {"objects": objects, "steps": drawn_steps(chance, actions)}


def gc(chance: Chance, id: str) -> JsonObject:
    del id
    count = chance.number(3, 7)
    objects = []
    for number in range(count):
        metadata: JsonObject = {"name": f"m{number}"}
        owners = sorted({chance.number(0, count) for _ in range(chance.number(0, 2))})
        if owners:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": f"m{owner}",
                    "uid": f"uid:ConfigMap/m{owner}",
                    **chance.some(blockOwnerDeletion=True),
                }
                for owner in owners
                if owner < number
            ]
        objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    def delete() -> JsonObject:
        propagation = chance.one(("Foreground", "Background", "Orphan"))
        name = f"m{chance.number(0, count - 1)}"
        return {"delete": {"kind": "ConfigMap", "name": name, "propagation": propagation}}

    return {"objects": objects, "steps": [[delete()] for _ in range(3)]}


FAMILIES: Mapping[str, Callable[[Chance, str], JsonObject]] = {
    "deployment": deployment,
    "replicaset": replicaset,
    "statefulset": statefulset,
    "daemonset": daemonset,
    "job": job,
    "cronjob": cronjob,
    "pdb": pdb,
    "quota": quota,
    "gc": gc,
}
