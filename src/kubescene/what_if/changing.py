"""What if objects are created or changed: a PriorityClass, a quota, a taint, a new Deployment?"""

from collections.abc import Sequence

from kubescene.cluster import ClusterWorld
from kubescene.durations import format_duration
from kubescene.errors import ApiError, ConfigurationError
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.worlds import (
    SHOWN,
    TopmostOwner,
    TopmostOwners,
    counted,
    is_live,
    key_of,
    node_of,
    pods_in,
    ready_by_workload,
    waiting_pods,
    why_waiting,
)


def applied(
    world: ClusterWorld, objects: Sequence[JsonObject], unknown: Sequence[str], *, within: int
) -> Answer:
    """The cluster with these objects, beside a copy without them; the world is not changed."""
    plain, changed = world.fork(), world.fork()
    for obj in objects:
        try:
            changed.apply(obj)
        except (ApiError, KeyError, AttributeError) as error:
            raise ConfigurationError(f"{obj.get('kind')} cannot be applied: {error}") from error
    names = ", ".join(f"{obj['kind']} {obj['metadata']['name']}" for obj in objects)
    for each in (plain, changed):
        each.settle()
        each.advance_until(each.clock.now() + within)
    before, after = _live(plain), _live(changed)
    gone = {name: pod for name, pod in before.items() if name not in after}
    made = {name: pod for name, pod in after.items() if name not in before}
    waited = waiting_pods(plain)
    waiting = {k: pod for k, pod in waiting_pods(changed).items() if k not in waited}
    owners = TopmostOwners(plain)
    was, now = ready_by_workload(plain), ready_by_workload(changed)
    worse: dict[TopmostOwner, int] = {
        each: was[each] - now[each] for each in sorted(was) if was[each] > now[each]
    }
    tables = []
    if worse:
        rows: list[tuple[Cell, ...]] = [(str(each), was[each], now[each]) for each in worse]
        tables.append(AnswerTable("Who is worse off", ("workload", "ready", "then"), rows[:SHOWN]))
    if gone:
        lines: list[tuple[Cell, ...]] = [
            (name, node_of(pod) or "-", str(owners.of(pod))) for name, pod in sorted(gone.items())
        ]
        tables.append(AnswerTable("Pods that go", ("pod", "node", "of"), lines[:SHOWN]))
    if made:
        others = TopmostOwners(changed)
        lines = [
            (name, node_of(pod) or "-", str(others.of(pod))) for name, pod in sorted(made.items())
        ]
        tables.append(AnswerTable("Pods that come", ("pod", "node", "of"), lines[:SHOWN]))
    if waiting:
        lines = [(name, why_waiting(pod)) for name, pod in sorted(waiting.items())]
        tables.append(AnswerTable("Pods that wait", ("pod", "why"), lines[:SHOWN]))
    return Answer(
        question="apply",
        unknown=[*unknown],
        sentence=(
            f"{format_duration(within)} after {names}: {counted(len(gone), 'pod')} gone, "
            f"{len(made)} new, {len(waiting)} more wait; "
            f"{counted(len(worse), 'workload')} worse off."
        ),
        tables=tables,
        measures={
            "gone": len(gone),
            "made": len(made),
            "pending": len(waiting),
            "unavailable": sum(worse.values()),
        },
        closer=["kubescene run SCENARIO --from SNAPSHOT plays it, with every decision explained"],
    )


def _live(world: ClusterWorld) -> dict[str, JsonObject]:
    return {key_of(pod): pod for pod in pods_in(world) if is_live(pod)}
