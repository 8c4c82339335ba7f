"""How a metric is called, how its failure begins, and what the status shows of it."""

from kubescene.api.quantity import Format, from_milli
from kubescene.autoscalers.horizontal.go_texts import shown_selector
from kubescene.autoscalers.horizontal.proposing import Proposal
from kubescene.autoscalers.horizontal.specs import MetricSpec
from kubescene.types import JsonObject

MEMORY = "memory"


def failure_prefix(metric: MetricSpec) -> str:
    return {
        "Resource": f"failed to get {metric.name} resource metric value",
        "ContainerResource": f"failed to get {metric.container} container metric value",
        "Pods": "failed to get pods metric value",
        "Object": "failed to get object metric value",
        "External": f"failed to get {metric.name} external metric value",
    }[metric.type]


def display_name(metric: MetricSpec) -> str:
    """What a metric is called. An object's average is called like an external metric."""
    by_average = metric.target.average_value is not None
    if metric.type in ("Resource", "ContainerResource"):
        if by_average:
            return f"{metric.name} resource"
        kind = "container resource" if metric.type == "ContainerResource" else "resource"
        return f"{metric.name} {kind} utilization (percentage of request)"
    if metric.type == "Pods":
        return f"pods metric {metric.name}"
    if metric.type == "Object" and metric.target.type == "Value":
        return f"{metric.source['describedObject']['kind']} metric {metric.name}"
    return f"external metric {metric.name}({shown_selector(metric.selector)})"


def current_metric(metric: MetricSpec, proposal: Proposal) -> JsonObject:
    """The entry of ``status.currentMetrics``."""
    form = Format.BINARY_SI if metric.name == MEMORY and _is_resource(metric) else Format.DECIMAL_SI
    current: JsonObject = {}
    for name, amount in (("value", proposal.value), ("averageValue", proposal.average)):
        if amount is not None:
            current[name] = str(from_milli(amount, form))
    if proposal.utilization is not None:
        current["averageUtilization"] = proposal.utilization
    kept = ("name", "container", "metric", "describedObject")
    source = {name: metric.source[name] for name in kept if name in metric.source}
    source["current"] = current
    part = metric.type[0].lower() + metric.type[1:]
    return {"type": metric.type, part: source}


def _is_resource(metric: MetricSpec) -> bool:
    return metric.type in ("Resource", "ContainerResource")
