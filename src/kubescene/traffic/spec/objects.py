"""The objects that configure autoscalers: their type, and their YAML."""

from functools import lru_cache

from kubescene.api.text.reading import Bounds, ReadingError
from kubescene.api.text.yaml_text import dump_yaml, read_yaml
from kubescene.autoscalers import HPA_TYPES, Autoscaler
from kubescene.autoscalers.available import type_of
from kubescene.errors import ConfigurationError, TrafficError
from kubescene.traffic.spec.fields import AutoscalerObject


def autoscaler_of(given: AutoscalerObject, index: int = 0) -> Autoscaler:
    """The `Autoscaler` that a plugin gets; raises `TrafficError` where its type is not known."""
    path = f"spec.autoscalers[{index}]"
    text = dump_yaml(given.object) if given.object is not None else given.yaml
    kind = given.type or type_of(given.object or {})
    if not kind:
        raise TrafficError(
            "its type does not follow from apiVersion and kind: give type", path=f"{path}.object"
        )
    if given.yaml and (problem := problem_of(given.yaml)):
        raise TrafficError(f"not valid YAML: {problem}", path=f"{path}.yaml")
    return Autoscaler(kind, text)


def goes_by_rates(given: AutoscalerObject) -> bool:
    """Whether an autoscaler of ours wants requests per second, which nobody else is told of."""
    told = autoscaler_of(given)
    if ("Pods", "requests_per_second") in hpa_metrics(given):
        return True
    if not told.type.startswith("concurrency."):
        return False
    # Imported when a run has such an object.
    from kubescene.autoscalers.concurrency import Metric, read_spec

    try:
        return read_spec(told.yaml).metric is Metric.RPS
    except ConfigurationError:  # whoever is told of the object says what is wrong
        return False


def goes_by_service(given: AutoscalerObject) -> bool:
    """Whether an HPA wants what is measured of the whole service, or of queues and latencies."""
    known = (("Pods", "requests_per_second"), ("Pods", "concurrent_requests"))
    return any(each not in known for each in hpa_metrics(given))


def hpa_metrics(given: AutoscalerObject) -> list[tuple[str, str]]:
    """Types and names of the metrics of an HPA that are no resources."""
    told = autoscaler_of(given)
    if told.type not in HPA_TYPES or "metric" not in told.yaml:
        return []
    [document] = read_yaml(told.yaml)
    value = document.value if isinstance(document.value, dict) else {}
    spec = value.get("spec")
    metrics = spec.get("metrics") if isinstance(spec, dict) else None
    found = []
    for each in metrics if isinstance(metrics, list) else ():
        kind = each.get("type") if isinstance(each, dict) else None
        if kind in ("Pods", "Object", "External"):
            source = each.get(kind.lower())
            metric = source.get("metric") if isinstance(source, dict) else None
            found.append((kind, str(metric.get("name") if isinstance(metric, dict) else "")))
    return found


@lru_cache(maxsize=16)
def problem_of(yaml: str) -> str:
    """What is wrong with a YAML text; many runs have the same one."""
    try:
        read_yaml(yaml, Bounds())
    except ReadingError as error:
        return error.problem
    return ""
