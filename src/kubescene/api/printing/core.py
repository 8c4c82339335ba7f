"""Rows of nodes, namespaces, events and the small objects of the core group."""

from kubescene.api.printing.tables import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Cells,
    PrinterColumn,
    TableColumns,
    age,
    amount,
    condition,
    container_texts,
    dig,
    is_true,
    labels_text,
    name_of,
    since,
    text,
    wide,
)
from kubescene.types import JsonObject, JsonValue, Nanoseconds

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def node_row(node: JsonObject, now: Nanoseconds) -> Cells:
    info = dig(node, "status.nodeInfo", {})
    kernel = info.get("kernelVersion") or UNKNOWN
    if architecture := info.get("architecture"):
        kernel += f" ({architecture})"
    return [
        name_of(node),
        _node_status(node),
        ",".join(_roles(node)) or NONE,
        age(node, now),
        info.get("kubeletVersion", ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: JsonObject) -> str:
    if condition(node, "Ready") is None:
        status = "Unknown"
    else:
        status = "Ready" if is_true(node, "Ready") else "NotReady"
    return f"{status},SchedulingDisabled" if dig(node, "spec.unschedulable") else status


def _roles(node: JsonObject) -> list[str]:
    labels = dig(node, "metadata.labels", {})
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL, ""))
    return sorted(roles - {""})


def _address(node: JsonObject, kind: str) -> str:
    for address in dig(node, "status.addresses", ()):
        if address.get("type") == kind:
            return str(address.get("address", ""))
    return NONE


def namespace_row(namespace: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(namespace), dig(namespace, "status.phase", ""), age(namespace, now)]


def secret_row(secret: JsonObject, now: Nanoseconds) -> Cells:
    kind, data = secret.get("type", ""), secret.get("data") or {}
    return [name_of(secret), kind, len(data), age(secret, now)]


def config_map_row(config_map: JsonObject, now: Nanoseconds) -> Cells:
    entries = len(config_map.get("data") or ()) + len(config_map.get("binaryData") or ())
    return [name_of(config_map), entries, age(config_map, now)]


def event_row(event: JsonObject, now: Nanoseconds) -> Cells:
    """Both forms of events: core, and events.k8s.io with its names for the same fields."""
    first = since(_either(event, "firstTimestamp") or event.get("eventTime"), now)
    last_timestamp = _either(event, "lastTimestamp")
    last = since(last_timestamp, now) if last_timestamp else first
    count = _either(event, "count") or 1
    series = event.get("series")
    if series:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    target = event.get("involvedObject") or event.get("regarding") or {}
    message = event.get("message") or event.get("note") or ""
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        _event_target(target),
        target.get("fieldPath", ""),
        _event_source(event),
        message.strip(),
        first,
        count,
        name_of(event),
    ]


def _event_target(target: JsonObject) -> str:
    kind, name = target.get("kind", "").lower(), target.get("name")
    return f"{kind}/{name}" if name else kind


def _either(event: JsonObject, field: str) -> JsonValue:
    return event.get(field) or event.get(f"deprecated{field[0].upper()}{field[1:]}")


def _event_source(event: JsonObject) -> str:
    source = _either(event, "source") or {}
    reporter = event.get("reportingController") or event.get("reportingComponent")
    component = source.get("component") or reporter or ""
    instance = source.get("host") or event.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def resource_quota_row(quota: JsonObject, now: Nanoseconds) -> Cells:
    hard, used = dig(quota, "status.hard", {}), dig(quota, "status.used", {})
    lines: dict[bool, list[str]] = {True: [], False: []}
    for resource in sorted(hard):
        line = f"{resource}: {amount(used.get(resource))}/{amount(hard[resource])}"
        lines[resource.startswith("limits.")].append(line)
    return [name_of(quota), ", ".join(lines[False]), ", ".join(lines[True]), age(quota, now)]


def pod_template_row(template: JsonObject, now: Nanoseconds) -> Cells:
    names, images = container_texts(dig(template, "template.spec"))
    labels = labels_text(dig(template, "template.metadata.labels"))
    return [name_of(template), names, images, labels]


def component_status_row(component: JsonObject, now: Nanoseconds) -> Cells:
    for found in component.get("conditions") or ():
        if found.get("type") == "Healthy":
            status = "Healthy" if found.get("status") == "True" else "Unhealthy"
            return [name_of(component), status, found.get("message", ""), found.get("error", "")]
    return [name_of(component), "Unknown", "", ""]


NODE = TableColumns(
    (
        NAME,
        text("Status", "The status of the node"),
        text("Roles", "The roles of the node"),
        AGE,
        text("Version", "@core.v1.NodeSystemInfo.kubeletVersion"),
        wide("Internal-IP", "@core.v1.NodeStatus.addresses"),
        wide("External-IP", "@core.v1.NodeStatus.addresses"),
        wide("OS-Image", "@core.v1.NodeSystemInfo.osImage"),
        wide("Kernel-Version", "@core.v1.NodeSystemInfo.kernelVersion"),
        wide("Container-Runtime", "@core.v1.NodeSystemInfo.containerRuntimeVersion"),
    ),
    node_row,
)
NAMESPACE = TableColumns((NAME, text("Status", "The status of the namespace"), AGE), namespace_row)
SECRET = TableColumns(
    (NAME, text("Type", "@core.v1.Secret.type"), text("Data", "@core.v1.Secret.data"), AGE),
    secret_row,
)
CONFIG_MAP = TableColumns((NAME, text("Data", "@core.v1.ConfigMap.data"), AGE), config_map_row)
EVENT = TableColumns(
    (
        text("Last Seen", "@core.v1.Event.lastTimestamp"),
        text("Type", "@core.v1.Event.type"),
        text("Reason", "@core.v1.Event.reason"),
        text("Object", "@core.v1.Event.involvedObject"),
        wide("Subobject", "@core.v1.ObjectReference.fieldPath"),
        wide("Source", "@core.v1.Event.source"),
        text("Message", "@core.v1.Event.message"),
        wide("First Seen", "@core.v1.Event.firstTimestamp"),
        wide("Count", "@core.v1.Event.count"),
        PrinterColumn("Name", "@meta.v1.ObjectMeta.name", format="name", priority=1),
    ),
    event_row,
)
RESOURCE_QUOTA = TableColumns(
    (
        NAME,
        text(
            "Request",
            "Request represents a minimum amount of cpu/memory that a container may consume.",
        ),
        text(
            "Limit",
            "Limits control the maximum amount of cpu/memory that a container may use independent "
            "of contention on the node.",
        ),
        AGE,
    ),
    resource_quota_row,
)
POD_TEMPLATE = TableColumns(
    (
        NAME,
        text("Containers", "Names of each container in the template."),
        text("Images", "Images referenced by each container in the template."),
        text("Pod Labels", "The labels for the pod template."),
    ),
    pod_template_row,
)
COMPONENT_STATUS = TableColumns(
    (
        NAME,
        text("Status", "Status of the component conditions"),
        text("Message", "Message of the component conditions"),
        text("Error", "Error of the component conditions"),
    ),
    component_status_row,
)
