"""openb: a GPU cluster of Alibaba in 2023, as two CSV files, one of pods and one of nodes.

Columns are ``name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,
deletion_time,scheduled_time`` and ``sn,cpu_milli,memory_mib,gpu,model``; times are whole seconds.
``gpu_milli`` below 1000 is a part of one GPU; ``gpu_spec`` lists models of which one is needed,
with ``|`` between them. Lists that the cluster's authors made of it without times are no trace.
"""

import re
from collections import Counter
from collections.abc import Iterator

from kubescene.durations import SECOND
from kubescene.errors import SnapshotError
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces.tables import number_in, rows_of
from kubescene.traces.trace import (
    CPU,
    GPU,
    MEMORY,
    NEVER_RAN,
    TracedNodes,
    TracedPod,
    WorkloadTrace,
)

GPU_PARTS, MODEL = "kubescene.dev/gpu-milli", "model"
WHOLE = 1000
MEBIBYTE = 1024 * 1024
POD_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
TIME_COLUMNS = ("creation_time", "deletion_time", "scheduled_time")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
BEGINNING = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli"
MODEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,40}[A-Za-z0-9])?")
NOT_A_TRACE = " (a list without times is no trace)"
WENT_BACK = "it ended before it got a place"


class OpenbReader:
    """A `TraceReader`."""

    name = "openb"
    about = "Alibaba's cluster-trace-gpu-v2023: openb_pod_list_*.csv, openb_node_list_*.csv"

    def detects(self, source: SnapshotSource) -> bool:
        return source.head.startswith(BEGINNING)

    def read(self, source: SnapshotSource, nodes: SnapshotSource | None) -> WorkloadTrace:
        trace = WorkloadTrace((), [] if nodes is None else list(_nodes(nodes)))
        found = list(_pods(source, trace.left_out))
        if not found:
            raise SnapshotError("there is no pod in it that got a place", where=source.where)
        trace.pods = sorted(found, key=lambda pod: pod.at)
        if any(_is_part(pod) for pod in found):
            trace.remarks.append(
                f"parts of GPUs are counted by the node ({GPU_PARTS}), not by the device: more may "
                "find a place than in a cluster"
            )
        trace.remarks.append("the column qos is not read: no pod goes before another")
        return trace


def _is_part(pod: TracedPod) -> bool:
    others = dict(pod.others)
    return GPU_PARTS in others and GPU not in others


def _pods(source: SnapshotSource, left_out: Counter[str]) -> Iterator[TracedPod]:
    for place, row in rows_of(source, (*POD_COLUMNS, *TIME_COLUMNS), NOT_A_TRACE):
        if not row["scheduled_time"]:
            left_out[NEVER_RAN] += 1
            continue
        created, deleted, began = (number_in(row, name, place) for name in TIME_COLUMNS)
        if deleted < began:
            left_out[WENT_BACK] += 1
            continue
        number, part = (number_in(row, name, place) for name in ("num_gpu", "gpu_milli"))
        if part > WHOLE:
            raise SnapshotError(f"gpu_milli is {part}, more than a whole GPU", where=place)
        models = _models(row["gpu_spec"], place)
        yield TracedPod(
            at=created * SECOND,
            run_time=(deleted - began) * SECOND,
            cpu=number_in(row, "cpu_milli", place),
            memory=number_in(row, "memory_mib", place) * MEBIBYTE,
            group=_group(number, part, models),
            others=_gpus(number, part),
            node_labels=((MODEL, models),) if models else (),
        )


def _gpus(number: int, part: int) -> tuple[tuple[str, int], ...]:
    """Whole ones count as parts too, so that nobody gets a part of a GPU that is taken."""
    if not number * part:
        return ()
    whole = ((GPU, number),) if part == WHOLE else ()
    return (*whole, (GPU_PARTS, number * part))


def _group(number: int, part: int, models: tuple[str, ...]) -> str:
    if not number * part:
        size = "cpu"
    else:
        size = f"gpu-{number}" if part == WHOLE else f"gpu-{number}-of-{part}m"
    return "-or-".join([size, *(model.lower() for model in models)])


def _models(text: str, place: str) -> tuple[str, ...]:
    return tuple(_model(each, "gpu_spec", place) for each in text.split("|")) if text else ()


def _model(text: str, column: str, place: str) -> str:
    if not MODEL_NAME.fullmatch(text):
        raise SnapshotError(
            f"{column} {text[:60]!r} is no name of a GPU such as V100M16", where=place
        )
    return text


def _nodes(source: SnapshotSource) -> Iterator[TracedNodes]:
    """Those that are alike together, in the order of the first of each."""
    kinds: Counter[tuple[int, int, int, str]] = Counter()
    for place, row in rows_of(source, NODE_COLUMNS):
        cpu, memory, gpus = (number_in(row, name, place) for name in NODE_COLUMNS[1:4])
        model = _model(row["model"], "model", place) if row["model"] else ""
        kinds[cpu, memory, gpus, model] += 1
    for place_of_kind, ((cpu, memory, gpus, model), times) in enumerate(kinds.items(), 1):
        offers = {CPU: cpu, MEMORY: memory * MEBIBYTE}
        if gpus:
            offers |= {GPU: gpus, GPU_PARTS: gpus * WHOLE}
        name = f"{model.lower() or 'cpu'}-{place_of_kind}"
        yield TracedNodes(name, times, offers, {MODEL: model} if model else {})
