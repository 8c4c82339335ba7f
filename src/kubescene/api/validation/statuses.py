"""What a status must have: conditions that say what they are, allocations that name their devices.

Kinds that also compare a status with the one before it do so in modules of their own.
"""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import STATUS, Path
from kubescene.api.validation.members import (
    MemberRule,
    check_by,
    choice,
    each,
    named,
    required,
    whole,
)
from kubescene.api.validation.names import Complaints, dns_1035_label, dns_subdomain, label_key
from kubescene.types import JsonObject

TRUTHS = ("False", "True", "Unknown")
_CONDITION = "status.conditions[]"
_VERSIONS = "status.storageVersions[]"


def _conditions(at: str = _CONDITION) -> tuple[MemberRule, ...]:
    """Conditions as `metav1.Condition` has them."""
    return (
        named(f"{at}.type", label_key),
        choice(f"{at}.status", *TRUTHS),
        required(f"{at}.lastTransitionTime"),
        required(f"{at}.reason"),
    )


def _check_ingress(ingress: JsonObject, errors: ErrorList, where: Path | None) -> None:
    if ingress.get("ipMode") is not None and not ingress.get("ip") and where is not None:
        errors.forbidden(where.child("ipMode"), "may not be set when `ip` is not set")


def _version_complaints(text: str) -> Complaints:
    """What is wrong with an apiVersion, in one complaint."""
    group, slash, version = text.rpartition("/")
    found = [f"group part: {it}" for it in (dns_subdomain(group) if slash else ())]
    wrong = dns_1035_label(version) if version else ("must be non-empty",)
    found += [f"version part: {it}" for it in wrong]
    return (",".join(found),) if found else ()


def _check_versions(stored: JsonObject, errors: ErrorList, where: Path | None) -> None:
    assert where is not None
    encoding, decodable = stored.get("encodingVersion", ""), stored.get("decodableVersions") or []
    if encoding not in decodable:
        detail = f"decodableVersions must include encodingVersion {encoding}"
        errors.invalid(where.child("decodableVersions"), decodable, detail)
    for position, served in enumerate(stored.get("servedVersions") or ()):
        if served not in decodable:
            detail = (
                f"individual served version : {served} must be included in decodableVersions : "
                f"[{' '.join(decodable)}]"
            )
            errors.invalid(where.child("servedVersions").index(position), served, detail)


def _check_common_version(obj: JsonObject, errors: ErrorList) -> None:
    status = obj.get("status") or {}
    versions = {it.get("encodingVersion", "") for it in status.get("storageVersions") or ()}
    common = versions.pop() if len(versions) == 1 else None
    said = status.get("commonEncodingVersion")
    if common == said:
        return
    if common is None:
        detail = (
            "should be nil if servers do not agree on the same encoding version, or if there is no "
            "server reporting the supported versions yet"
        )
    elif said is None:
        detail = f"the common encoding version is {common}"
    else:
        detail = f"the actual common encoding version is {common}"
    errors.invalid(STATUS.child("commonEncodingVersion"), said, detail)


def _check_version_conditions(obj: JsonObject, errors: ErrorList) -> None:
    """The server names their places without the list that they are in."""
    for position, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        at = STATUS.index(position)
        for name in ("type", "status"):
            text = (condition or {}).get(name, "")
            errors.invalid_each(at.child(name), text, label_key(text))
        for name in ("reason", "message"):
            if not (condition or {}).get(name):
                errors.required(at.child(name))


_TYPED = (required(f"{_CONDITION}.type"),)
_WARNING = "status.typeChecking?.expressionWarnings[]"
_RULES: dict[tuple[str, str], tuple[MemberRule, ...]] = {
    ("", "Service"): (each("status.loadBalancer?.ingress[]", _check_ingress),),
    ("networking.k8s.io", "Ingress"): (each("status.loadBalancer?.ingress[]", _check_ingress),),
    ("apiregistration.k8s.io", "APIService"): (choice(f"{_CONDITION}.status", *TRUTHS),),
    ("certificates.k8s.io", "CertificateSigningRequest"): (
        *_TYPED,
        required(f"{_CONDITION}.status"),
    ),
    ("policy", "PodDisruptionBudget"): _conditions(),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): (
        required(f"{_WARNING}.fieldRef"),
        required(f"{_WARNING}.warning"),
        *_conditions(),
    ),
    ("scheduling.k8s.io", "PodGroup"): _conditions(),
    ("resource.k8s.io", "DeviceTaintRule"): _conditions(),
    ("resource.k8s.io", "ResourceClaim"): _conditions("status.devices[].conditions[]"),
    ("storagemigration.k8s.io", "StorageVersionMigration"): _conditions(),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _TYPED,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _TYPED,
    ("internal.apiserver.k8s.io", "StorageVersion"): (
        named(f"{_VERSIONS}.apiServerID", dns_subdomain),
        named(f"{_VERSIONS}.encodingVersion", _version_complaints),
        each(_VERSIONS, _check_versions),
        whole(_check_common_version),
        whole(_check_version_conditions),
    ),
}


def check_status(kind: tuple[str, str], obj: JsonObject, errors: ErrorList) -> None:
    """What is missing of the status of an object of this group and kind."""
    check_by(_RULES[kind], obj, errors)
