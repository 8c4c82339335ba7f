"""Which columns ``kubectl get`` shows for a resource, and how they are filled.

`table_columns` looks a resource up: built-in ones print as kube-apiserver v1.36 prints them, the
rest show name and creation time. `crd_columns` compiles the ``additionalPrinterColumns`` of a
custom resource definition.
"""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from kubescene.api.printing import (
    administration,
    autoscaling,
    core,
    devices,
    networking,
    pods,
    storage,
    workloads,
)
from kubescene.api.printing.jsonpaths import JsonPath, JsonPathError, compile_path
from kubescene.api.printing.tables import (
    AGE,
    NAME,
    NAME_AND_AGE,
    NAME_AND_CREATION,
    Cells,
    PrinterColumn,
    TableColumns,
    name_of,
    since,
)
from kubescene.api.scheme import ResourceType
from kubescene.types import JsonObject, JsonValue, Nanoseconds

SCALE_COLUMNS = autoscaling.SCALE
"""Columns of the ``scale`` subresource of any kind."""

_DEFAULT_CRD_COLUMNS = (
    {
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": AGE.description,
    },
)

_BUILT_IN: dict[str, dict[str, TableColumns]] = {
    "": {
        "componentstatuses": core.COMPONENT_STATUS,
        "configmaps": core.CONFIG_MAP,
        "endpoints": networking.ENDPOINTS,
        "events": core.EVENT,
        "namespaces": core.NAMESPACE,
        "nodes": core.NODE,
        "persistentvolumeclaims": storage.CLAIM,
        "persistentvolumes": storage.VOLUME,
        "pods": pods.POD,
        "podtemplates": core.POD_TEMPLATE,
        "replicationcontrollers": workloads.REPLICATION_CONTROLLER,
        "resourcequotas": core.RESOURCE_QUOTA,
        "secrets": core.SECRET,
        "serviceaccounts": NAME_AND_AGE,
        "services": networking.SERVICE,
    },
    "admissionregistration.k8s.io": {
        "mutatingadmissionpolicies": administration.MUTATING_POLICY,
        "mutatingadmissionpolicybindings": administration.POLICY_BINDING,
        "mutatingwebhookconfigurations": administration.WEBHOOKS,
        "validatingadmissionpolicies": administration.VALIDATING_POLICY,
        "validatingadmissionpolicybindings": administration.POLICY_BINDING,
        "validatingwebhookconfigurations": administration.WEBHOOKS,
    },
    "apiregistration.k8s.io": {"apiservices": administration.API_SERVICE},
    "apps": {
        "controllerrevisions": workloads.CONTROLLER_REVISION,
        "daemonsets": workloads.DAEMON_SET,
        "deployments": workloads.DEPLOYMENT,
        "replicasets": workloads.REPLICA_SET,
        "statefulsets": workloads.STATEFUL_SET,
    },
    "autoscaling": {"horizontalpodautoscalers": autoscaling.AUTOSCALER},
    "batch": {"cronjobs": workloads.CRON_JOB, "jobs": workloads.JOB},
    "certificates.k8s.io": {
        "certificatesigningrequests": administration.SIGNING_REQUEST,
        "clustertrustbundles": administration.TRUST_BUNDLE,
        "podcertificaterequests": administration.POD_CERTIFICATE,
    },
    "coordination.k8s.io": {
        "leasecandidates": administration.LEASE_CANDIDATE,
        "leases": administration.LEASE,
    },
    "discovery.k8s.io": {"endpointslices": networking.ENDPOINT_SLICE},
    "events.k8s.io": {"events": core.EVENT},
    "flowcontrol.apiserver.k8s.io": {
        "flowschemas": administration.FLOW_SCHEMA,
        "prioritylevelconfigurations": administration.PRIORITY_LEVEL,
    },
    "internal.apiserver.k8s.io": {"storageversions": administration.STORAGE_VERSION},
    "networking.k8s.io": {
        "ingressclasses": networking.INGRESS_CLASS,
        "ingresses": networking.INGRESS,
        "ipaddresses": networking.IP_ADDRESS,
        "networkpolicies": networking.NETWORK_POLICY,
        "servicecidrs": networking.SERVICE_CIDR,
    },
    "node.k8s.io": {"runtimeclasses": administration.RUNTIME_CLASS},
    "policy": {"poddisruptionbudgets": workloads.DISRUPTION_BUDGET},
    "rbac.authorization.k8s.io": {
        "clusterrolebindings": administration.CLUSTER_ROLE_BINDING,
        "rolebindings": administration.ROLE_BINDING,
    },
    "resource.k8s.io": {
        "deviceclasses": NAME_AND_AGE,
        "devicetaintrules": devices.TAINT_RULE,
        "resourceclaims": devices.CLAIM,
        "resourceclaimtemplates": NAME_AND_AGE,
        "resourcepoolstatusrequests": devices.POOL_REQUEST,
        "resourceslices": devices.SLICE,
    },
    "scheduling.k8s.io": {
        "podgroups": workloads.POD_GROUP,
        "priorityclasses": workloads.PRIORITY_CLASS,
        "workloads": NAME_AND_AGE,
    },
    "storage.k8s.io": {
        "csidrivers": storage.CSI_DRIVER,
        "csinodes": storage.CSI_NODE,
        "storageclasses": storage.STORAGE_CLASS,
        "volumeattachments": storage.ATTACHMENT,
        "volumeattributesclasses": storage.ATTRIBUTES_CLASS,
    },
    "storagemigration.k8s.io": {"storageversionmigrations": administration.MIGRATION},
}


def table_columns(resource_type: ResourceType) -> TableColumns:
    """The columns of a resource; for a custom one those of a definition that names none."""
    if resource_type.custom:
        return crd_columns(())
    resource = resource_type.named_resource
    return _BUILT_IN.get(resource.group, {}).get(resource.resource, NAME_AND_CREATION)


def crd_columns(additional: Sequence[JsonObject] | None) -> TableColumns:
    """Name, then the ``additionalPrinterColumns``; name and age if there are none.

    A column whose path cannot be understood ends the list, as in kube-apiserver.
    """
    columns: list[PrinterColumn] = [NAME]
    cells: list[Callable[[JsonObject, Nanoseconds], JsonValue]] = []
    for definition in additional or _DEFAULT_CRD_COLUMNS:
        try:
            path = compile_path(definition["jsonPath"])
        except JsonPathError:
            break
        columns.append(_crd_column(definition))
        cells.append(_crd_cell(path, definition["type"]))
    return TableColumns(
        tuple(columns), lambda obj, now: [name_of(obj), *(cell(obj, now) for cell in cells)]
    )


def _crd_column(definition: JsonObject) -> PrinterColumn:
    path = definition["jsonPath"]
    return PrinterColumn(
        name=definition["name"],
        description=definition.get("description")
        or f"Custom resource definition column (in JSONPath format): {path}",
        type=definition["type"],
        format=definition.get("format") or "",
        priority=definition.get("priority") or 0,
    )


def _crd_cell(path: JsonPath, kind: str) -> Callable[[JsonObject, Nanoseconds], JsonValue]:
    convert = _CONVERSIONS.get(kind, _nothing)

    def cell(obj: JsonObject, now: Nanoseconds) -> JsonValue:
        found = path.find(obj)
        return convert(found[0], now) if found else None

    return cell


def _as_text(value: JsonValue, now: Nanoseconds) -> JsonValue:
    if value is None:
        return "<no value>"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return _go_float(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _go_float(value: float) -> str:
    """The shortest form, as Go prints it: an exponent only below 1e-4 and from 1e21 on."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent):+03d}" if exponent else mantissa


def _as_integer(value: JsonValue, now: Nanoseconds) -> JsonValue:
    return int(value) if _is_number(value) else None


def _as_number(value: JsonValue, now: Nanoseconds) -> JsonValue:
    return float(value) if _is_number(value) else None


def _as_boolean(value: JsonValue, now: Nanoseconds) -> JsonValue:
    return value if isinstance(value, bool) else None


def _as_age(value: JsonValue, now: Nanoseconds) -> JsonValue:
    if not isinstance(value, str):
        return None
    try:
        return since(value, now)
    except ValueError:
        return "<invalid>"


def _nothing(value: JsonValue, now: Nanoseconds) -> JsonValue:
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CONVERSIONS: dict[str, Callable[[JsonValue, Nanoseconds], JsonValue]] = {
    "boolean": _as_boolean,
    "date": _as_age,
    "integer": _as_integer,
    "number": _as_number,
    "string": _as_text,
}

__all__ = [
    "SCALE_COLUMNS",
    "Cells",
    "PrinterColumn",
    "TableColumns",
    "crd_columns",
    "table_columns",
]
