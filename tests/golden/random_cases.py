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
                {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0},
                },
            )
        ),
        **chance.some(revisionHistoryLimit=chance.number(0, 1)),
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


def job_policies(chance: Chance, id: str) -> JsonObject:
    """An Indexed Job with policies of failure and success, and limits by index."""
    del id
    completions = chance.number(2, 4)
    codes = {"operator": "In", "values": [42]}
    rules: list[JsonObject] = [
        {"action": "FailJob", "onExitCodes": codes},
        {"action": "FailIndex", "onExitCodes": codes},
        {"action": "Ignore", "onExitCodes": codes},
        {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [42]}},
        {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        },
    ]
    is_by_index = chance.number(0, 1)
    allowed = rules if is_by_index else [each for each in rules if each["action"] != "FailIndex"]
    limits = {"backoffLimitPerIndex": chance.number(0, 2)}
    limits |= chance.some(maxFailedIndexes=chance.number(0, 2))
    indexes = {"succeededIndexes": f"0-{chance.number(0, completions - 1)}"}
    success = chance.one((indexes, {"succeededCount": 1}, {**indexes, "succeededCount": 1}))
    failure = [chance.one(allowed) for _ in range(chance.number(1, 2))]
    obj = workload(
        "Job",
        "batch/v1",
        "j",
        template=template(restartPolicy="Never"),
        parallelism=chance.number(1, completions),
        completions=completions,
        completionMode="Indexed",
        **(limits if is_by_index else {"backoffLimit": chance.number(0, 3)}),
        **chance.some(podFailurePolicy={"rules": failure}),
        **chance.some(successPolicy={"rules": [success]}),
        **chance.some(ttlSecondsAfterFinished=3600),
    )
    one: JsonObject = {"of": "Job/j", "first": 1}
    ended = {"phase": "Failed", "finishedLongAgo": True}
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    actions: list[Callable[[], JsonObject]] = [
        lambda: {"pods": one, "set": {"phase": "Succeeded", "finishedLongAgo": True}},
        lambda: {"pods": one, "set": {**ended, "exitCode": chance.one((1, 42))}},
        lambda: {"pods": one, "set": {**ended, "exitCode": 42}},
        lambda: {"pods": one, "set": {**ended, "condition": target}},
        lambda: {"delete": {"kind": "Pod", **one}},
    ]
    steps = drawn_steps(chance, actions, 1)[:5]
    return {"family": "job", "objects": [obj], "steps": steps}


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
    selector: JsonObject = {
        "scopeName": "PriorityClass",
        "operator": chance.one(("Exists", "DoesNotExist")),
    }
    scopes: JsonObject = chance.one(
        (
            {},
            {"scopes": [chance.one(("NotBestEffort", "NotTerminating", "Terminating"))]},
            {"scopeSelector": {"matchExpressions": [selector]}},
        )
    )
    if scopes:  # Nothing but pods and what they use can be in a scope.
        hard = {name: amount for name, amount in hard.items() if not name.startswith("count/")}
    objects = [workload("ResourceQuota", "v1", "q", hard=hard, **scopes)]
    made = iter(range(100))

    def pod() -> JsonObject:
        resources = chance.one(
            ({}, {"requests": {"cpu": "300m"}}, {"limits": {"cpu": "1", "memory": "300Mi"}})
        )
        spec = template()["spec"]
        spec["containers"][0]["resources"] = resources
        spec |= chance.one(({}, {"activeDeadlineSeconds": 3600}))
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


def endpoints(chance: Chance, id: str) -> JsonObject:
    """Services over pods that get addresses, are ready or not, go and change their labels."""
    del id
    ports = [
        {"name": "http", "port": 80, "targetPort": chance.one((8080, "web"))},
        *chance.one(([], [{"name": "dns", "port": 53, "protocol": "UDP", "targetPort": "udp"}])),
    ]
    service = workload(
        "Service",
        "v1",
        "svc",
        selector=LABELS,
        ports=ports,
        **chance.some(clusterIP="None", publishNotReadyAddresses=True),
        **chance.some(trafficDistribution=chance.one(("PreferClose", "PreferSameNode"))),
    )
    named = [
        {"name": "web", "containerPort": 8080},
        {"name": "udp", "containerPort": 5353, "protocol": "UDP"},
    ]
    pods = []
    for number in range(chance.number(1, 3)):
        spec = template()["spec"]
        if opened := named[: chance.number(0, 2)]:
            spec["containers"][0]["ports"] = opened
        spec |= chance.one(({}, {"hostname": f"h{number}", "subdomain": "svc"}))
        labels = chance.one((LABELS, LABELS, {"app": "other"}))
        metadata = {"name": f"p{number}", "labels": labels}
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def one() -> JsonObject:
        return {"match": {"name": chance.one(pods)["metadata"]["name"]}}

    def run() -> JsonObject:
        name = chance.one(pods)["metadata"]["name"]
        status = {"phase": "Running", "ip": f"10.1.0.{name[1:]}", "bind": f"n{int(name[1:]) + 1}"}
        return {"pods": {"match": {"name": name}}, "set": {**status, **chance.some(ready=False)}}

    def spec_of(**fields: object) -> JsonObject:
        return patched("Service", "svc", {"spec": fields})

    actions: list[Callable[[], JsonObject]] = [
        run,
        run,
        run,
        lambda: {"label": one(), "set": {"labels": chance.one((LABELS, {"app": "other"}))}},
        lambda: {"delete": {"kind": "Pod", **one()}},
        lambda: {"pods": one(), "set": {"phase": "Succeeded"}},
        lambda: spec_of(selector=chance.one((LABELS, {"app": "other"}))),
        lambda: spec_of(ports=[{**ports[0], "port": chance.one((80, 81))}]),
        lambda: patched(
            "Service", "svc", {"metadata": {"labels": {"team": chance.one(("a", "b"))}}}
        ),
    ]
    # One action a step: the annotation of times tells of all changes since the last pass.
    return {"objects": [service, *pods], "steps": [[chance.one(actions)()] for _ in range(7)]}


def limitrange(chance: Chance, id: str) -> JsonObject:
    """Pods and claims under limits: what they get, and what is refused."""
    del id
    amounts = ("100m", "200m", "400m")

    def limits(type: str) -> JsonObject:
        own = {"max": {"cpu": "400m"}, "min": {"cpu": "50m"}}
        made = chance.some(**own, maxLimitRequestRatio={"cpu": "2"})
        if type == "Container":
            made |= chance.some(default={"cpu": "300m"}, defaultRequest={"cpu": "100m"})
        return {"type": type, **made}

    objects = [
        workload("LimitRange", "v1", f"l{number}", limits=[limits(type)])
        for number, type in enumerate(chance.one((("Container",), ("Container", "Pod"))))
    ]
    made = iter(range(100))

    def pod() -> JsonObject:
        spec = template()["spec"]
        spec["containers"][0]["resources"] = chance.some(
            requests={"cpu": chance.one(amounts)}, limits={"cpu": "400m"}
        )
        if chance.number(0, 1):
            spec["initContainers"] = [{"name": "i", "image": "v1"}]
        metadata = {"name": f"p{next(made)}", "labels": LABELS}
        return {"create": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}

    return {"objects": objects, "steps": [[pod()] for _ in range(5)]}


def controller(chance: Chance, id: str) -> JsonObject:
    """A ReplicationController, and pods of its labels that nobody owns."""
    del id
    obj = workload(
        "ReplicationController",
        "v1",
        "rc",
        replicas=chance.number(0, 3),
        selector=LABELS,
        template=template(),
        **chance.some(minReadySeconds=3600),
    )
    made = iter(range(100))

    def orphan() -> JsonObject:
        metadata = {"name": f"o{next(made)}", "labels": LABELS}
        spec = template()["spec"]
        return {"create": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}

    of = "ReplicationController/rc"
    actions: list[Callable[[], JsonObject]] = [
        orphan,
        lambda: patched("ReplicationController", "rc", {"spec": {"replicas": chance.number(0, 4)}}),
        lambda: {"pods": {"of": of, "first": 1}, "set": {"phase": "Failed"}},
        lambda: {"label": {"of": of, "first": 1}, "set": {"labels": {"app": "released"}}},
        lambda: {
            "delete": {
                "kind": "ReplicationController",
                "name": "rc",
                "propagation": chance.one(("Orphan", "Background", "Foreground")),
            }
        },
        lambda: {"create": obj},
    ]
    return {"family": "replicaset", "objects": [obj], "steps": drawn_steps(chance, actions)}


def adoption(chance: Chance, id: str) -> JsonObject:
    """ReplicaSets of one selector: orphans, costs of deletion, readiness that has to last."""
    del id
    obj = workload(
        "ReplicaSet",
        "apps/v1",
        "rs",
        replicas=chance.number(1, 3),
        selector={"matchLabels": LABELS},
        template=template(),
        **chance.some(minReadySeconds=3600),
    )
    of = {"of": "ReplicaSet/rs"}
    cost = "controller.kubernetes.io/pod-deletion-cost"
    actions: list[Callable[[], JsonObject]] = [
        lambda: patched("ReplicaSet", "rs", {"spec": {"replicas": chance.number(0, 4)}}),
        lambda: {
            "label": {**of, chance.one(("first", "last")): 1},
            "set": {"annotations": {cost: chance.one(("-5", "7", "no number"))}},
        },
        lambda: {"pods": {**of, "last": 1}, "set": {"ready": False}},
        lambda: {
            "delete": {
                "kind": "ReplicaSet",
                "name": "rs",
                "propagation": chance.one(("Orphan", "Background")),
            }
        },
        lambda: {"create": obj},
        lambda: patched(
            "ReplicaSet", "rs", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}
        ),
    ]
    return {"family": "replicaset", "objects": [obj], "steps": drawn_steps(chance, actions)}


def rollout(chance: Chance, id: str) -> JsonObject:
    """A Deployment whose new pods may be broken: deadlines, pauses, rollbacks, readiness."""
    del id
    rolling = {"maxSurge": 1, "maxUnavailable": chance.number(0, 1)}
    obj = workload(
        "Deployment",
        "apps/v1",
        "web",
        replicas=chance.number(1, 3),
        selector={"matchLabels": LABELS},
        strategy=chance.one(
            ({"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": rolling})
        ),
        template=template(),
        **chance.some(
            minReadySeconds=chance.one((3, 3600)),
            progressDeadlineSeconds=chance.one((4000, 2147483647)),
            paused=True,
        ),
    )
    of = "Deployment/web"
    actions: list[Callable[[], JsonObject]] = [
        lambda: with_image(chance, "Deployment", "web"),
        lambda: patched("Deployment", "web", {"spec": {"replicas": chance.number(0, 4)}}),
        lambda: patched("Deployment", "web", {"spec": {"paused": bool(chance.number(0, 1))}}),
        lambda: {"pods": {"of": of, "last": 1}, "set": {"ready": False}},
        lambda: {"advanceWaitSeconds": 4},
        lambda: patched(
            "Deployment", "web", {"metadata": {"annotations": {"a": chance.one(("1", "2"))}}}
        ),
    ]
    return {"family": "deployment", "objects": [obj], "steps": drawn_steps(chance, actions, 3)}


def claims(chance: Chance, id: str) -> JsonObject:
    """A StatefulSet with claims: retention that changes, ordinals that move, orphans."""
    del id
    keep = ("Retain", "Delete")
    data = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    obj = workload(
        "StatefulSet",
        "apps/v1",
        "db",
        serviceName="db",
        replicas=chance.number(1, 3),
        selector={"matchLabels": LABELS},
        template=template(),
        podManagementPolicy=chance.one(("OrderedReady", "Parallel")),
        volumeClaimTemplates=[data],
        persistentVolumeClaimRetentionPolicy={
            "whenDeleted": chance.one(keep),
            "whenScaled": chance.one(keep),
        },
        **chance.some(minReadySeconds=3600, revisionHistoryLimit=chance.number(0, 1)),
    )

    def spec_of(**fields: object) -> JsonObject:
        return patched("StatefulSet", "db", {"spec": fields})

    actions: list[Callable[[], JsonObject]] = [
        lambda: with_image(chance, "StatefulSet", "db"),
        lambda: spec_of(replicas=chance.number(0, 3)),
        lambda: spec_of(ordinals={"start": chance.number(0, 2)}),
        lambda: spec_of(
            persistentVolumeClaimRetentionPolicy={
                "whenDeleted": chance.one(keep),
                "whenScaled": chance.one(keep),
            }
        ),
        lambda: {"delete": {"kind": "PersistentVolumeClaim", "name": "data-db-0"}},
        lambda: {
            "delete": {
                "kind": "StatefulSet",
                "name": "db",
                "propagation": chance.one(("Orphan", "Background", "Foreground")),
            }
        },
        lambda: {"create": obj},
    ]
    return {"family": "statefulset", "objects": [obj], "steps": drawn_steps(chance, actions)}


def elastic(chance: Chance, id: str) -> JsonObject:
    """A Job that is changed while it runs: width, limits, time to live, who manages it."""
    del id
    is_indexed = chance.number(0, 1)
    completions = chance.number(1, 3)
    obj = workload(
        "Job",
        "batch/v1",
        "j",
        template=template(restartPolicy=chance.one(("Never", "OnFailure"))),
        parallelism=completions if is_indexed else chance.number(1, 3),
        completions=completions,
        backoffLimit=chance.number(0, 2),
        **({"completionMode": "Indexed"} if is_indexed else {}),
        **chance.some(
            ttlSecondsAfterFinished=chance.one((0, 3600)),
            activeDeadlineSeconds=3600,
            suspend=True,
        ),
    )
    long_ago = {"finishedLongAgo": True}
    every: JsonObject = {"of": "Job/j"}
    wide = chance.number(1, 3)
    actions: list[Callable[[], JsonObject]] = [
        lambda: {"pods": every, "set": {"phase": "Succeeded", **long_ago}, "together": True},
        lambda: {"pods": every, "set": {"phase": "Failed", **long_ago}, "together": True},
        lambda: patched(
            "Job",
            "j",
            {"spec": {"parallelism": wide, **({"completions": wide} if is_indexed else {})}},
        ),
        lambda: patched("Job", "j", {"spec": {"suspend": bool(chance.number(0, 1))}}),
        lambda: patched("Job", "j", {"spec": {"backoffLimit": chance.number(0, 3)}}),
        lambda: patched("Job", "j", {"spec": {"activeDeadlineSeconds": chance.one((1, 7200))}}),
        lambda: {
            "delete": {
                "kind": "Job",
                "name": "j",
                "propagation": chance.one(("Orphan", "Background", "Foreground")),
            }
        },
    ]
    steps = drawn_steps(chance, actions, 1)[:5]
    return {"family": "job", "objects": [obj], "steps": steps}


def namespace(chance: Chance, id: str) -> JsonObject:
    """A namespace that goes, with what is in it, and what keeps it."""
    del id
    held = {"finalizers": ["example.com/hold"]}
    small: JsonObject = {"terminationGracePeriodSeconds": 2}
    candidates: list[JsonObject] = [
        workload("ConfigMap", "v1", "m"),
        workload("Secret", "v1", "s"),
        workload("Service", "v1", "svc", ports=[{"port": 80}]),
        workload("ResourceQuota", "v1", "q", hard={"pods": "5"}),
        workload("LimitRange", "v1", "l", limits=[]),
        workload(
            "Deployment",
            "apps/v1",
            "web",
            replicas=chance.number(1, 2),
            selector={"matchLabels": LABELS},
            template=template(**small),
        ),
        workload(
            "Job", "batch/v1", "j", suspend=True, template=template(restartPolicy="Never", **small)
        ),
    ]
    objects = [each for each in candidates if chance.number(0, 1)]
    for each in objects:
        if each["kind"] in ("ConfigMap", "Secret"):
            del each["spec"]
            each["metadata"] |= chance.one(({}, held))
    free = [
        patched(each["kind"], each["metadata"]["name"], {"metadata": {"finalizers": None}})
        for each in objects
        if "finalizers" in each["metadata"]
    ]
    gone: JsonObject = {
        "pods": {"match": {"deleting": True}, "first": 9},
        "set": {"gone": True},
        "together": True,
    }
    metadata = {"name": "late"}
    late: list[JsonObject] = chance.one(
        ([], [{"create": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}}])
    )
    steps = [
        [{"rounds": 2}],
        [{"delete": {"kind": "Namespace", "name": "NS"}}, *late],
        [{"advanceWaitSeconds": 9}],
        [gone, *free, {"advanceWaitSeconds": 16}],
    ]
    return {"objects": objects, "steps": steps}


def accounts(chance: Chance, id: str) -> JsonObject:
    """Service accounts, their tokens, and pods that need them."""
    del id
    annotation = "kubernetes.io/service-account.name"

    def secret(name: str) -> JsonObject:
        metadata = {"name": name, "annotations": {annotation: chance.one(("robot", "default"))}}
        type = "kubernetes.io/service-account-token"
        return {
            "create": {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type}
        }

    def pod(name: str) -> JsonObject:
        spec = template(serviceAccountName=chance.one(("robot", "default")))["spec"]
        metadata = {"name": name, "labels": LABELS}
        return {"create": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}

    robot = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    made = iter(range(100))
    actions: list[Callable[[], JsonObject]] = [
        lambda: secret(f"t{next(made)}"),
        lambda: pod(f"p{next(made)}"),
        lambda: {"delete": {"kind": "ServiceAccount", "name": chance.one(("robot", "default"))}},
        lambda: {"delete": {"kind": "ConfigMap", "name": "kube-root-ca.crt"}},
        lambda: patched("ConfigMap", "kube-root-ca.crt", {"data": {"x": chance.one("ab")}}),
    ]
    steps = [[chance.one(actions)()] for _ in range(5)]
    objects = chance.one(([], [robot]))
    return {"family": "serviceaccount", "objects": objects, "steps": steps}


FAMILIES: Mapping[str, Callable[[Chance, str], JsonObject]] = {
    "deployment": deployment,
    "replicaset": replicaset,
    "statefulset": statefulset,
    "daemonset": daemonset,
    "job": job,
    "jobpolicy": job_policies,
    "cronjob": cronjob,
    "pdb": pdb,
    "quota": quota,
    "gc": gc,
    "endpoints": endpoints,
    "limitrange": limitrange,
    "controller": controller,
    "adoption": adoption,
    "rollout": rollout,
    "claims": claims,
    "elastic": elastic,
    "namespace": namespace,
    "accounts": accounts,
}
