"""Histories that outlive the recommender: VerticalPodAutoscalerCheckpoint, version v3."""

from typing import Any

from kubescene.autoscalers.histograms import YEAR_ONE, DecayingHistogram, checkpoint_weights
from kubescene.autoscalers.vertical.aggregates import Aggregate
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.clock import format_time, parse_time
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject

VERSION = "v3"


class CheckpointError(ConfigurationError):
    """A checkpoint that cannot be loaded; the message names the field."""


def save(aggregate: Aggregate, now: int) -> JsonObject:
    """The status of a checkpoint. Times are whole seconds, zeros are left out, as in the API."""
    status: JsonObject = {
        "lastUpdateTime": format_time(now),
        "version": VERSION,
        "cpuHistogram": _saved(aggregate.cpu),
        "memoryHistogram": _saved(aggregate.memory),
        "firstSampleStart": _saved_time(aggregate.first),
        "lastSampleStart": _saved_time(aggregate.last),
    }
    if aggregate.count:
        status["totalSamplesCount"] = aggregate.count
    return status


def load(status: JsonObject, options: RecommenderOptions, now: int) -> Aggregate:
    """The aggregate that was saved; raises `CheckpointError` where it is none."""
    if status.get("version") != VERSION:
        raise CheckpointError(
            f"version: {status.get('version')!r} is not supported, only {VERSION}"
        )
    aggregate = Aggregate(options, now)
    aggregate.count = _count(status.get("totalSamplesCount", 0))
    aggregate.first = _time(status.get("firstSampleStart"), "firstSampleStart")
    aggregate.last = _time(status.get("lastSampleStart"), "lastSampleStart")
    _restore(aggregate.memory, status.get("memoryHistogram") or {}, "memoryHistogram")
    _restore(aggregate.cpu, status.get("cpuHistogram") or {}, "cpuHistogram")
    return aggregate


def checkpoint_object(vpa: str, container: str, status: JsonObject) -> JsonObject:
    """The API object that holds the history of one container."""
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": f"{vpa}-{container}"},
        "spec": {"vpaObjectName": vpa, "containerName": container},
        "status": status,
    }


def _saved(histogram: DecayingHistogram) -> JsonObject:
    weights = checkpoint_weights(histogram)
    reference = histogram.reference
    saved: JsonObject = {
        "referenceTimestamp": None if reference == YEAR_ONE else format_time(reference)
    }
    if weights:
        saved["bucketWeights"] = {str(bucket): weight for bucket, weight in weights.items()}
    if histogram.total:
        saved["totalWeight"] = histogram.total
    return saved


def _saved_time(time: int | None) -> str | None:
    return None if time is None else format_time(time)


def _restore(histogram: DecayingHistogram, saved: JsonObject, path: str) -> None:
    total = saved.get("totalWeight", 0.0)
    if isinstance(total, bool) or not isinstance(total, int | float) or not total >= 0:
        raise CheckpointError(f"{path}.totalWeight: {total!r} is negative or no number")
    weights = dict(
        _weight(bucket, weight, histogram.buckets.count, f"{path}.bucketWeights")
        for bucket, weight in (saved.get("bucketWeights") or {}).items()
    )
    reference = _time(saved.get("referenceTimestamp"), f"{path}.referenceTimestamp")
    histogram.restore(weights, float(total), YEAR_ONE if reference is None else reference)


def _weight(bucket: Any, weight: Any, buckets: int, path: str) -> tuple[int, int]:
    try:
        number = int(bucket)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < buckets:
        raise CheckpointError(f"{path}: bucket {bucket!r} is not one of 0 to {buckets - 1}")
    if isinstance(weight, bool) or not isinstance(weight, int) or weight < 0:
        raise CheckpointError(f"{path}[{bucket}]: {weight!r} is no weight")
    return number, weight


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CheckpointError(f"totalSamplesCount: {value!r} is no count")
    return value


def _time(text: Any, path: str) -> int | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error
