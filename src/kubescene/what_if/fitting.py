"""How much more fits: objects created again and again, until a pod of them finds no place."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kubescene.api.copies import own_copy
from kubescene.cluster import ClusterWorld
from kubescene.errors import ApiError, ConfigurationError
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.selecting import pool_of
from kubescene.what_if.worlds import (
    counted,
    key_of,
    node_of,
    node_uses,
    waiting_pods,
    why_waiting,
)

REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
RESOURCES = ("cpu", "memory", "pods")
LONGEST_NAME = 40
OF_ADMISSION = ("nodeName", "priority", "preemptionPolicy")


def fit(
    world: ClusterWorld, objects: Sequence[JsonObject], unknown: Sequence[str], *, most: int
) -> Answer:
    """The greatest number of times that all of them find places; the world is not changed.

    Each time they are created with names of their own; their pods give way to nobody and nobody
    gives way to them.
    """
    pods = [pod for obj in objects for pod in pods_of(obj)]
    if not pods:
        raise ConfigurationError(
            f"there is no pod in what is to fit: give Pods or {', '.join(REPLICATED)}"
        )
    times, full = _search(world, pods, most)
    why = next((why_waiting(pod) for pod in _mine(waiting_pods(full).values())), "")
    placed = full if not why else _with(world, pods, times)
    nodes = {node["metadata"]["name"]: pool_of(node) or "-" for node in world.list("nodes")}
    by_pool = Counter(
        nodes.get(node_of(pod), "-") for pod in _mine(placed.list("pods")) if node_of(pod)
    )
    uses = node_uses(placed)
    rows: list[tuple[Cell, ...]] = []
    for pool in sorted(set(nodes.values())):
        inside = [use for name, use in uses.items() if nodes[name] == pool]
        left = [
            max((use.offered.get(each, 0) - use.asked.get(each, 0) for use in inside), default=0)
            for each in RESOURCES
        ]
        shown = (f"{left[0]}m", f"{left[1] // 1024**2}Mi", left[2])
        rows.append((pool, len(inside), by_pool[pool], *shown))
    what = "pod" if len(pods) == 1 else f"set of {len(pods)} pods"
    limit = f" Then: {why}" if why else f" No more than {most} were tried."
    return Answer(
        question="fit",
        unknown=[
            *unknown,
            "pods that are to fit never preempt, whatever their priority",
        ],
        sentence=f"{counted(times, what)} more fit.{limit}",
        tables=[
            AnswerTable(
                "Pools",
                ("pool", "nodes", "pods placed", "most cpu left", "memory left", "pods left"),
                rows,
            )
        ],
        measures={"fits": times, "pods": times * len(pods), "pending": 0},
        closer=["kubescene what-if SNAPSHOT apply -f FILE creates them as they are"],
    )


def _search(world: ClusterWorld, pods: Sequence[JsonObject], most: int) -> tuple[int, ClusterWorld]:
    """How many times all fit, and a world with one time more (or ``most``) in it."""
    low, high, full = 0, 1, _with(world, pods, 1)
    while _all_placed(full):
        low = high
        if low >= most:
            return low, full
        high = min(high * 4 if high < 64 else high * 2, most)
        full = _with(world, pods, high)
    if len(pods) == 1:
        # Whoever found no place would have found none with fewer of his like about, either.
        bound = sum(bool(node_of(pod)) for pod in _mine(full.list("pods")))
        if bound and _all_placed(_with(world, pods, bound)):
            more = _with(world, pods, bound + 1)
            if not _all_placed(more):
                return bound, more
    while high - low > 1:
        middle = (low + high) // 2
        tried = _with(world, pods, middle)
        if _all_placed(tried):
            low = middle
        else:
            high, full = middle, tried
    return low, full


def _with(world: ClusterWorld, pods: Sequence[JsonObject], times: int) -> ClusterWorld:
    """A copy in which the pods were created so often."""
    fork = world.fork()
    pods = [_meek(fork, pod) for pod in pods]
    spaces = {each["metadata"]["name"] for each in fork.list("namespaces")}
    for pod in pods:
        space = pod["metadata"]["namespace"]
        if space not in spaces:
            spaces.add(space)
            fork.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    for time in range(1, times + 1):
        for number, pod in enumerate(pods, 1):
            name = f"{pod['metadata']['name'][:LONGEST_NAME]}-{time}-{number}"
            made = {**pod, "metadata": {**pod["metadata"], "name": name}}
            try:
                fork.create(made)
            except ApiError as error:
                raise ConfigurationError(f"{key_of(pod)} is refused: {error.message}") from error
    return fork.settle()


def _meek(world: ClusterWorld, pod: JsonObject) -> JsonObject:
    """The pod with its priority, but without the right to preempt: by a class of its own."""
    classes = {each["metadata"]["name"]: each for each in world.list("priorityclasses")}
    named = classes.get(pod["spec"].get("priorityClassName", ""))
    if named is None:
        named = next((each for each in classes.values() if each.get("globalDefault")), {})
    value = int(named.get("value", 0))
    name = f"to-fit-{value}".replace("--", "-minus-")
    if name not in classes:
        world.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": min(value, HIGHEST),
                "preemptionPolicy": "Never",
            }
        )
    return {**pod, "spec": {**pod["spec"], "priorityClassName": name}}


HIGHEST = 1_000_000_000
"""Of a class that is not the system's."""
MINE = "kubescene.dev/to-fit"


def _mine(pods: Iterable[JsonObject]) -> list[JsonObject]:
    return [pod for pod in pods if MINE in (pod["metadata"].get("annotations") or {})]


def _all_placed(world: ClusterWorld) -> bool:
    return not _mine(waiting_pods(world).values())


def pods_of(obj: JsonObject) -> list[JsonObject]:
    """The pods of an object: itself, or one for each replica of a workload."""
    if not isinstance(obj.get("metadata"), dict):
        raise ConfigurationError("what is to fit must be objects with metadata")
    kind, metadata = obj.get("kind"), obj["metadata"]
    namespace = metadata.get("namespace") or "default"
    if kind == "Pod":
        return [_to_fit(metadata, obj.get("spec"), str(metadata.get("name")), namespace)]
    spec = obj.get("spec")
    if kind not in REPLICATED or not isinstance(spec, dict):
        return []
    template = spec.get("template")
    if not isinstance(template, dict):
        raise ConfigurationError(f"{kind} {metadata.get('name')!r} has no template")
    count = spec.get("parallelism", 1) if kind == "Job" else spec.get("replicas", 1)
    number = count if isinstance(count, int) else 1
    of_template = template.get("metadata") or {}
    name = str(metadata.get("name"))
    return [_to_fit(of_template, template.get("spec"), name, namespace)] * number


def _to_fit(metadata: JsonObject, spec: object, name: str, namespace: str) -> JsonObject:
    if not isinstance(spec, dict):
        raise ConfigurationError(f"{name!r} has no spec")
    kept = {k: v for k, v in own_copy(spec).items() if k not in OF_ADMISSION}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), MINE: "true"},
        },
        "spec": kept,
    }
