"""Rows of what administrators set: access, admission, certificates, leases, API plumbing."""

from kubescene.api.printing.tables import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    PrinterColumn,
    Row,
    TableColumns,
    age,
    condition,
    dig,
    human_duration,
    integer,
    labels_text,
    name_of,
    shortened,
    text,
    wide,
)
from kubescene.durations import SECOND
from kubescene.types import JsonObject, Nanoseconds

_SHOWN = 3
_REQUESTOR = "Requestor"  # codespell:ignore
_MIGRATION_STATES = ("Running", "Failed", "Succeeded")


def role_binding_row(binding: JsonObject, now: Nanoseconds) -> Cells:
    role, subjects = binding.get("roleRef") or {}, binding.get("subjects") or ()
    accounts = [s for s in subjects if s.get("kind") == "ServiceAccount"]
    return [
        name_of(binding),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(binding, now),
        ", ".join(s.get("name", "") for s in subjects if s.get("kind") == "User"),
        ", ".join(s.get("name", "") for s in subjects if s.get("kind") == "Group"),
        ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in accounts),
    ]


def webhooks_row(configuration: JsonObject, now: Nanoseconds) -> Cells:
    webhooks = len(configuration.get("webhooks") or ())
    return [name_of(configuration), webhooks, age(configuration, now)]


def _policy_row(rules: str) -> Row:
    def row(policy: JsonObject, now: Nanoseconds) -> Cells:
        kind = dig(policy, "spec.paramKind")
        shown = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
        return [name_of(policy), len(dig(policy, f"spec.{rules}", ())), shown, age(policy, now)]

    return row


def policy_binding_row(binding: JsonObject, now: Nanoseconds) -> Cells:
    reference = dig(binding, "spec.paramRef", {})
    parameter = UNSET
    if name := reference.get("name"):
        parameter = f"{reference.get('namespace') or '*'}/{name}"
    elif "selector" in reference:
        parameter = _selector_dump(reference["selector"])
    return [name_of(binding), dig(binding, "spec.policyName", ""), parameter, age(binding, now)]


def _selector_dump(selector: JsonObject) -> str:
    """Go's own print of the struct, which upstream shows here."""
    labels = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},"
        f"Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def signing_request_row(request: JsonObject, now: Nanoseconds) -> Cells:
    lifetime = dig(request, "spec.expirationSeconds")
    return [
        name_of(request),
        age(request, now),
        dig(request, "spec.signerName") or NONE,
        dig(request, "spec.username", ""),
        NONE if lifetime is None else human_duration(lifetime * SECOND),
        _signing_status(request),
    ]


def _signing_status(request: JsonObject) -> str:
    status = next((s for s in ("Denied", "Approved") if condition(request, s)), "Pending")
    if condition(request, "Failed"):
        status += ",Failed"
    return f"{status},Issued" if dig(request, "status.certificate") else status


def trust_bundle_row(bundle: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(bundle), dig(bundle, "spec.signerName") or NONE]


def pod_certificate_row(request: JsonObject, now: Nanoseconds) -> Cells:
    types = [c.get("type") for c in dig(request, "status.conditions", ())]
    states = [t for t in types if t in ("Issued", "Denied", "Failed")]
    return [
        name_of(request),
        dig(request, "spec.podName", ""),
        dig(request, "spec.serviceAccountName", ""),
        dig(request, "spec.nodeName", ""),
        dig(request, "spec.signerName", ""),
        states[-1] if states else "Pending",
        labels_text(dig(request, "spec.unverifiedUserAnnotations")),
    ]


def lease_row(lease: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(lease), dig(lease, "spec.holderIdentity", ""), age(lease, now)]


def lease_candidate_row(candidate: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(candidate),
        dig(candidate, "spec.leaseName", ""),
        dig(candidate, "spec.binaryVersion", ""),
        dig(candidate, "spec.emulationVersion", ""),
        age(candidate, now),
    ]


def runtime_class_row(runtime_class: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(runtime_class), runtime_class.get("handler", ""), age(runtime_class, now)]


def flow_schema_row(schema: JsonObject, now: Nanoseconds) -> Cells:
    dangling = condition(schema, "Dangling")
    return [
        name_of(schema),
        dig(schema, "spec.priorityLevelConfiguration.name", ""),
        dig(schema, "spec.matchingPrecedence", 0),
        dig(schema, "spec.distinguisherMethod.type", NONE),
        age(schema, now),
        dangling.get("status", "") if dangling else "?",
    ]


def priority_level_row(level: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(level),
        dig(level, "spec.type", ""),
        dig(level, "spec.limited.nominalConcurrencyShares", NONE),
        dig(level, "spec.limited.limitResponse.queuing.queues", NONE),
        dig(level, "spec.limited.limitResponse.queuing.handSize", NONE),
        dig(level, "spec.limited.limitResponse.queuing.queueLengthLimit", NONE),
        age(level, now),
    ]


def storage_version_row(version: JsonObject, now: Nanoseconds) -> Cells:
    servers = dig(version, "status.storageVersions", ())
    pairs = [f"{s.get('apiServerID', '')}={s.get('encodingVersion', '')}" for s in servers]
    common = dig(version, "status.commonEncodingVersion", UNSET)
    return [name_of(version), common, shortened(pairs, _SHOWN) or UNSET, age(version, now)]


def migration_row(migration: JsonObject, now: Nanoseconds) -> Cells:
    resource, group = (
        dig(migration, "spec.resource.resource", ""),
        dig(migration, "spec.resource.group"),
    )
    found = [
        c["type"]
        for c in dig(migration, "status.conditions", ())
        if c.get("status") == "True" and c.get("type") in _MIGRATION_STATES
    ]
    shown = f"{resource}.{group}" if group else resource
    return [name_of(migration), shown, found[-1] if found else "Unknown"]


def api_service_row(service: JsonObject, now: Nanoseconds) -> Cells:
    backend = dig(service, "spec.service")
    host = f"{backend.get('namespace')}/{backend.get('name')}" if backend else "Local"
    return [name_of(service), host, _availability(service), age(service, now)]


def _availability(service: JsonObject) -> str:
    available = condition(service, "Available")
    if available is None:
        return "Unknown"
    status, reason = available.get("status", ""), available.get("reason")
    return f"{status} ({reason})" if status != "True" and reason else str(status)


def _role_binding_columns(kind: str) -> tuple[PrinterColumn, ...]:
    return (
        NAME,
        text("Role", f"@rbac.v1.{kind[0].upper()}{kind[1:]}.roleRef"),
        AGE,
        wide("Users", f"Users in the {kind}"),
        wide("Groups", f"Groups in the {kind}"),
        wide("ServiceAccounts", f"ServiceAccounts in the {kind}"),
    )


def _policy_columns(rules: str, description: str) -> tuple[PrinterColumn, ...]:
    kind = "ParamKind specifies the kind of resources used to parameterize this policy"
    return (NAME, integer(rules, description), text("ParamKind", kind), AGE)


ROLE_BINDING = TableColumns(_role_binding_columns("roleBinding"), role_binding_row)
CLUSTER_ROLE_BINDING = TableColumns(_role_binding_columns("clusterRoleBinding"), role_binding_row)
WEBHOOKS = TableColumns(
    (
        NAME,
        integer(
            "Webhooks",
            "Webhooks indicates the number of webhooks registered in this configuration",
        ),
        AGE,
    ),
    webhooks_row,
)
VALIDATING_POLICY = TableColumns(
    _policy_columns(
        "Validations",
        "Validations indicates the number of validation rules defined in this configuration",
    ),
    _policy_row("validations"),
)
MUTATING_POLICY = TableColumns(
    _policy_columns(
        "Mutations",
        "Mutation indicates the number of mutations rules defined in this configuration",
    ),
    _policy_row("mutations"),
)
POLICY_BINDING = TableColumns(
    (
        NAME,
        text(
            "PolicyName",
            "PolicyName indicates the policy definition which the policy binding binded to",
        ),
        text(
            "ParamRef", "ParamRef indicates the param resource which sets the configuration param"
        ),
        AGE,
    ),
    policy_binding_row,
)
SIGNING_REQUEST = TableColumns(
    (
        NAME,
        AGE,
        text("SignerName", "@certificates.v1.CertificateSigningRequestSpec.signerName"),
        text(_REQUESTOR, "@certificates.v1.CertificateSigningRequestSpec.request"),
        text(
            "RequestedDuration",
            "@certificates.v1.CertificateSigningRequestSpec.expirationSeconds",
        ),
        text("Condition", "@certificates.v1.CertificateSigningRequestStatus.conditions"),
    ),
    signing_request_row,
)
TRUST_BUNDLE = TableColumns(
    (NAME, text("SignerName", "@certificates.v1beta1.ClusterTrustBundleSpec.signerName")),
    trust_bundle_row,
)
_POD_CERTIFICATE = "@certificates.v1beta1.PodCertificateRequestSpec"
POD_CERTIFICATE = TableColumns(
    (
        NAME,
        text("PodName", f"{_POD_CERTIFICATE}.podName"),
        text("ServiceAccountName", f"{_POD_CERTIFICATE}.serviceAccountName"),
        text("NodeName", f"{_POD_CERTIFICATE}.nodeName"),
        text("SignerName", f"{_POD_CERTIFICATE}.signerName"),
        text("State", "Is the request Pending, Issued, Denied, or Failed?"),
        text("UnverifiedUserAnnotations", f"{_POD_CERTIFICATE}.unverifiedUserAnnotations"),
    ),
    pod_certificate_row,
)
LEASE = TableColumns(
    (NAME, text("Holder", "@coordination.v1.LeaseSpec.holderIdentity"), AGE), lease_row
)
LEASE_CANDIDATE = TableColumns(
    (
        NAME,
        text("LeaseName", "@coordination.v1alpha2.LeaseCandidateSpec.leaseName"),
        text("BinaryVersion"),
        text("EmulationVersion"),
        AGE,
    ),
    lease_candidate_row,
)
RUNTIME_CLASS = TableColumns((NAME, text("Handler"), AGE), runtime_class_row)
FLOW_SCHEMA = TableColumns(
    (
        NAME,
        text("PriorityLevel", "@flowcontrol.v1.PriorityLevelConfigurationReference.name"),
        text("MatchingPrecedence", "@flowcontrol.v1.FlowSchemaSpec.matchingPrecedence"),
        text("DistinguisherMethod", "@flowcontrol.v1.FlowSchemaSpec.distinguisherMethod"),
        AGE,
        text("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
    ),
    flow_schema_row,
)
_LIMITED = "@flowcontrol.v1.LimitedPriorityLevelConfiguration"
_QUEUING = "@flowcontrol.v1.QueuingConfiguration"
PRIORITY_LEVEL = TableColumns(
    (
        NAME,
        text("Type", "@flowcontrol.v1.PriorityLevelConfigurationSpec.type"),
        text("NominalConcurrencyShares", f"{_LIMITED}.nominalConcurrencyShares"),
        text("Queues", f"{_QUEUING}.queues"),
        text("HandSize", f"{_QUEUING}.handSize"),
        text("QueueLengthLimit", f"{_QUEUING}.queueLengthLimit"),
        AGE,
    ),
    priority_level_row,
)
_STORAGE_VERSION = "@apiserverinternal.v1alpha1.StorageVersionStatus"
STORAGE_VERSION = TableColumns(
    (
        NAME,
        text("CommonEncodingVersion", f"{_STORAGE_VERSION}.commonEncodingVersion"),
        text("StorageVersions", f"{_STORAGE_VERSION}.storageVersions"),
        AGE,
    ),
    storage_version_row,
)
MIGRATION = TableColumns(
    (
        PrinterColumn("Name", "@meta.v1.ObjectMeta.name"),
        text("Resource", "GroupResource to migrate"),
        text("Status", "Status of the migration"),
    ),
    migration_row,
)
API_SERVICE = TableColumns(
    (
        NAME,
        text("Service", "The reference to the service that hosts this API endpoint."),
        text("Available", "Whether this service is available."),
        AGE,
    ),
    api_service_row,
)
