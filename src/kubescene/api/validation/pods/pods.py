"""Pods and pod templates: metadata, annotations and spec.

This is the hottest validator: tens of thousands of pods are created in a run. What a plain pod
does not have costs one dictionary look-up here and no more.
"""

from collections.abc import Callable, Iterator
from typing import Any

from kubescene.api.validation.addresses import check_ip
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, SPEC, Path
from kubescene.api.validation.inner_forms import POD_RESOURCE_CLAIM, inner
from kubescene.api.validation.metadata import check_annotations, check_labels, validate_metadata
from kubescene.api.validation.names import (
    dns_label,
    dns_subdomain,
    dns_subdomain_with_underscore,
    label_key,
    range_complaint,
    size,
)
from kubescene.api.validation.pods.containers import (
    PodContext,
    check_choice,
    check_containers,
    check_ephemeral_containers,
    check_image_blanks,
    check_init_containers,
)
from kubescene.api.validation.pods.placement import (
    check_affinity,
    check_tolerations,
    check_topology_spread,
)
from kubescene.api.validation.pods.security import check_pod_security_context
from kubescene.api.validation.pods.volumes import check_volumes
from kubescene.api.validation.resources import check_pod_resources, check_requirements
from kubescene.types import JsonObject

MAX_INT32 = 2**31 - 1
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_OPERATING_SYSTEMS = ("linux", "windows")
_MAX_NAMESERVERS = 3
_MAX_SEARCH_PATHS = 32
_MAX_SEARCH_CHARACTERS = 2048
_MAX_HOSTNAME = 64
_NO_VOLUMES: dict[str, JsonObject] = {}
_NO_CLAIMS: frozenset[str] = frozenset()
_CONTAINER_FIELDS = ("initContainers", "containers", "ephemeralContainers")
_NAMED_FIELDS = (
    ("serviceAccountName", dns_subdomain),
    ("nodeName", dns_subdomain),
    ("hostname", dns_label),
    ("subdomain", dns_label),
    ("priorityClassName", dns_subdomain),
)


def validate_pod(pod: JsonObject, errors: ErrorList) -> None:
    """A new pod."""
    check_pod(pod, errors)
    spec = pod.get("spec") or {}
    if spec.get("ephemeralContainers"):
        errors.forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.forbidden(
            SPEC.child("nodeName"), "cannot be set until all schedulingGates have been cleared"
        )


def check_pod(pod: JsonObject, errors: ErrorList) -> None:
    """Metadata and spec, as they must be on creation and after every update."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    validate_metadata(metadata, errors, namespaced=True, name_rule=dns_subdomain)
    if annotations := metadata.get("annotations"):
        check_pod_annotations(annotations, spec, errors, METADATA.child("annotations"))
    check_pod_spec(spec, errors, SPEC, pod_name=metadata.get("name", ""), is_pod=True)
    if not spec.get("serviceAccountName") and spec.get("volumes"):
        _forbid_tokens(spec["volumes"], errors, SPEC.child("volumes"))
    for field in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(field) or ()):
            image = container.get("image", "")
            if image != image.strip():
                check_image_blanks(container, errors, SPEC.child(field).index(position))


def _forbid_tokens(volumes: list[JsonObject], errors: ErrorList, path: Path) -> None:
    for position, volume in enumerate(volumes):
        at = path.index(position).child("projected").child("sources")
        sources = (volume.get("projected") or {}).get("sources") or ()
        for index, source in enumerate(sources):
            if source.get("serviceAccountToken") is not None:
                errors.forbidden(
                    at.index(index).child("serviceAccountToken"),
                    "must not be specified when serviceAccountName is not set",
                )


def check_pod_annotations(
    annotations: dict[str, str], spec: JsonObject, errors: ErrorList, path: Path
) -> None:
    """Annotations that mean something to the server."""
    if MIRROR_ANNOTATION in annotations and not spec.get("nodeName"):
        errors.invalid(
            path.key(MIRROR_ANNOTATION),
            annotations[MIRROR_ANNOTATION],
            "must set spec.nodeName if mirror pod annotation is set",
        )
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not is_deletion_cost(cost):
        errors.invalid(path.key(_DELETION_COST), cost, "must be a 32bit integer")


def is_deletion_cost(text: str) -> bool:
    """A canonical 32 bit integer: no plus sign, no leading zeros."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (digits[0] == "0" and text != "0"):
        return False
    return -(2**31) <= int(text) <= MAX_INT32


def validate_template(template: JsonObject, errors: ErrorList, path: Path) -> None:
    """The pod template of a workload."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    if labels := metadata.get("labels"):
        check_labels(labels, errors, path.child("labels"))
    if annotations := metadata.get("annotations"):
        check_annotations(annotations, errors, path.child("annotations"))
        check_pod_annotations(annotations, spec, errors, path.child("annotations"))
    at = path.child("spec")
    check_pod_spec(spec, errors, at)
    if spec.get("ephemeralContainers"):
        errors.forbidden(
            at.child("ephemeralContainers"), "ephemeral containers not allowed in pod template"
        )


def check_pod_spec(
    spec: JsonObject, errors: ErrorList, path: Path, *, pod_name: str = "", is_pod: bool = False
) -> None:
    """A pod spec after defaulting. ``is_pod`` tells a pod from a template."""
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.required(path.child("terminationGracePeriodSeconds"))
    _check_all_containers(spec, pod_name, errors, path)
    if (resources := spec.get("resources")) is not None:
        check_pod_resources(resources, spec, errors, path)
    if spec.get("hostNetwork"):
        _check_host_ports(spec, is_pod, errors, path)
    check_choice_fast(spec, "restartPolicy", _RESTART_POLICIES, errors, path)
    check_choice_fast(spec, "dnsPolicy", _DNS_POLICIES, errors, path)
    context = spec.get("securityContext")
    if context or spec.get("shareProcessNamespace"):
        check_pod_security_context(context or {}, spec, errors, path.child("securityContext"))
    if spec.get("dnsConfig") is not None or spec.get("dnsPolicy") == "None":
        _check_dns(spec.get("dnsConfig"), spec.get("dnsPolicy"), errors, path.child("dnsConfig"))
    for field, check in _FIELD_CHECKS:
        if value := spec.get(field):
            check(value, errors, path.child(field))
    if spec.get("hostUsers") is False:
        _check_host_users(spec, errors, path)
    for field, rule in _NAMED_FIELDS:
        if (name := spec.get(field)) and (complaints := rule(name)):
            errors.invalid_each(path.child(field), name, complaints)
    _check_rare_fields(spec, errors, path)


def check_choice_fast(
    spec: JsonObject, field: str, allowed: tuple[str, ...], errors: ErrorList, path: Path
) -> None:
    if (value := spec.get(field, "")) not in allowed:
        check_choice(value, allowed, errors, path.child(field))


def _check_all_containers(spec: JsonObject, pod_name: str, errors: ErrorList, path: Path) -> None:
    volumes = spec.get("volumes")
    good = check_volumes(volumes, pod_name, errors, path.child("volumes")) if volumes else None
    claims = spec.get("resourceClaims")
    pod = PodContext(
        volumes=_NO_VOLUMES if good is None else good,
        claim_names=_claim_names(claims, errors, path) if claims else _NO_CLAIMS,
        grace_s=spec.get("terminationGracePeriodSeconds"),
        restart_policy=spec.get("restartPolicy", ""),
        os=spec.get("os"),
        host_users=spec.get("hostUsers") is not False,
    )
    regular = spec.get("containers") or []
    check_containers(regular, pod, errors, path.child("containers"))
    if init := spec.get("initContainers"):
        check_init_containers(init, regular, pod, errors, path.child("initContainers"))
    if ephemeral := spec.get("ephemeralContainers"):
        others = [*regular, *(init or ())]
        at = path.child("ephemeralContainers")
        check_ephemeral_containers(ephemeral, others, pod, errors, at)


def _claim_names(claims: list[JsonObject], errors: ErrorList, path: Path) -> frozenset[str]:
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        at = path.child("resourceClaims").index(position)
        name = claim.get("name", "")
        if not name:
            errors.required(at.child("name"))
        elif name in seen:
            errors.duplicate(at.child("name"), name)
        else:
            errors.invalid_each(at.child("name"), name, dns_label(name))
            seen.add(name)
        _check_claim_source(claim, errors, at)
    return frozenset(seen)


def _check_claim_source(claim: JsonObject, errors: ErrorList, path: Path) -> None:
    fields = ("resourceClaimName", "resourceClaimTemplateName")
    given = [field for field in fields if claim.get(field) is not None]
    if len(given) > 1:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        errors.invalid(path, inner(claim, POD_RESOURCE_CLAIM), detail)
    if not given:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.invalid(path, inner(claim, POD_RESOURCE_CLAIM), detail)
    for field in given:
        errors.invalid_each(path.child(field), claim[field], dns_subdomain(claim[field]))


def _check_host_ports(spec: JsonObject, is_pod: bool, errors: ErrorList, path: Path) -> None:
    for position, container in enumerate(spec.get("containers") or ()):
        at = path.child("containers").index(position).child("ports")
        for index, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                errors.invalid(
                    at.index(index).child("hostPort"),
                    host,
                    "must match `containerPort` when `hostNetwork` is true",
                )


def _check_dns(
    config: JsonObject | None, policy: str | None, errors: ErrorList, path: Path
) -> None:
    if config is None:
        errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    at = path.child("nameservers")
    if policy == "None" and not servers:
        errors.required(at, "must provide at least one DNS nameserver when `dnsPolicy` is None")
        return
    if len(servers) > _MAX_NAMESERVERS:
        errors.invalid(at, servers, f"must not have more than {_MAX_NAMESERVERS} nameservers")
    for position, server in enumerate(servers):
        check_ip(server, errors, at.index(position))
    _check_searches(searches, errors, path.child("searches"))
    for position, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.required(path.child("options").index(position), "must not be empty")


def _check_searches(searches: list[str], errors: ErrorList, path: Path) -> None:
    if len(searches) > _MAX_SEARCH_PATHS:
        detail = f"must not have more than {_MAX_SEARCH_PATHS} search paths"
        errors.invalid(path, searches, detail)
    if size(" ".join(searches)) > _MAX_SEARCH_CHARACTERS:
        errors.invalid(
            path,
            searches,
            f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) "
            "in the search list",
        )
    for position, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            complaints = dns_subdomain_with_underscore(name)
            errors.invalid_each(path.index(position), name, complaints)


def _check_readiness_gates(gates: list[JsonObject], errors: ErrorList, path: Path) -> None:
    for position, gate in enumerate(gates):
        name = gate.get("conditionType", "")
        errors.invalid_each(path.index(position).child("conditionType"), name, label_key(name))


def _check_scheduling_gates(gates: list[JsonObject], errors: ErrorList, path: Path) -> None:
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        name = gate.get("name", "")
        errors.invalid_each(path.index(position), name, label_key(name))
        if name in seen:
            errors.duplicate(path.index(position), name)
        seen.add(name)


_FIELD_CHECKS: tuple[tuple[str, Callable[[Any, ErrorList, Path], None]], ...] = (
    ("nodeSelector", check_labels),
    ("affinity", check_affinity),
    ("readinessGates", _check_readiness_gates),
    ("schedulingGates", _check_scheduling_gates),
    ("topologySpreadConstraints", check_topology_spread),
    ("tolerations", check_tolerations),
)


def _check_host_users(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    refusal = "when `hostUsers` is false"
    if spec.get("hostNetwork"):
        errors.forbidden(path.child("hostNetwork"), refusal)
    for field, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            errors.forbidden(path.child(shown), refusal)
    for container, at in all_containers(spec, path):
        if container.get("volumeDevices"):
            errors.forbidden(at.child("volumeDevices"), refusal)


def all_containers(spec: JsonObject, path: Path) -> Iterator[tuple[JsonObject, Path]]:
    """Every container of a pod with its path: init, regular, ephemeral."""
    for field in _CONTAINER_FIELDS:
        for position, container in enumerate(spec.get(field) or ()):
            yield container, path.child(field).index(position)


def _check_rare_fields(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        at = path.child("activeDeadlineSeconds")
        errors.invalid(at, deadline, range_complaint(1, MAX_INT32))
    for position, alias in enumerate(spec.get("hostAliases") or ()):
        _check_host_alias(alias, errors, path.child("hostAliases").index(position))
    if (name := spec.get("runtimeClassName")) is not None:
        errors.invalid_each(path.child("runtimeClassName"), name, dns_subdomain(name))
    if (policy := spec.get("preemptionPolicy")) is not None:
        check_choice(policy, PREEMPTION_POLICIES, errors, path.child("preemptionPolicy"))
    if (overhead := spec.get("overhead")) is not None:
        check_requirements({"limits": overhead}, errors, path.child("overhead"))
    if (system := spec.get("os")) is not None:
        _check_os(system, spec, errors, path)
    if spec.get("hostnameOverride") is not None:
        _check_hostname_override(spec, errors, path.child("hostnameOverride"))
    for field in _CONTAINER_FIELDS:
        for position, container in enumerate(spec.get(field) or ()):
            if variables := container.get("env"):
                at = path.child(field).index(position).child("env")
                _check_file_volumes(variables, spec, errors, at)


def _check_file_volumes(
    variables: list[JsonObject], spec: JsonObject, errors: ErrorList, path: Path
) -> None:
    """Variables that come from a file need an emptyDir that holds it."""
    for position, variable in enumerate(variables):
        reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if reference is None:
            continue
        at = path.index(position).child("valueFrom").child("fileKeyRef").child("volumeName")
        name = reference.get("volumeName", "")
        found = [volume for volume in spec.get("volumes") or () if volume.get("name") == name]
        if not found:
            errors.not_found(at, name)
        elif found[-1].get("emptyDir") is None:
            errors.invalid(at, name, "referenced volume must be of type emptyDir")


def _check_host_alias(alias: JsonObject, errors: ErrorList, path: Path) -> None:
    check_ip(alias.get("ip", ""), errors, path.child("ip"))
    for position, name in enumerate(alias.get("hostnames") or ()):
        errors.invalid_each(path.child("hostnames").index(position), name, dns_subdomain(name))


def _check_hostname_override(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    name = spec["hostnameOverride"]
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            errors.forbidden(path, f"may not be specified when {field} is true")
    if size(name) > _MAX_HOSTNAME:
        errors.too_long(path, _MAX_HOSTNAME)
    errors.invalid_each(path, name, dns_subdomain(name))


_LINUX_ONLY_IN_POD = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_LINUX_ONLY_IN_CONTAINER = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def _check_os(system: JsonObject, spec: JsonObject, errors: ErrorList, path: Path) -> None:
    name = system.get("name", "")
    if not name:
        errors.required(path.child("os").child("name"))
    elif name not in _OPERATING_SYSTEMS:
        errors.not_supported(path.child("os"), name, _OPERATING_SYSTEMS)
    elif name == "linux":
        refusal = "windows options cannot be set for a linux pod"
        _forbid_context(spec, errors, path, refusal, ("windowsOptions",), ("windowsOptions",))
    else:
        refusal = "cannot be set for a windows pod"
        for field in ("hostUsers", "shareProcessNamespace"):
            if spec.get(field) is not None:
                errors.forbidden(path.child(field), refusal)
        for field in ("hostPID", "hostIPC"):
            if spec.get(field):
                errors.forbidden(path.child(field), refusal)
        fields = (_LINUX_ONLY_IN_POD, _LINUX_ONLY_IN_CONTAINER)
        _forbid_context(spec, errors, path, refusal, *fields)


def _forbid_context(
    spec: JsonObject,
    errors: ErrorList,
    path: Path,
    refusal: str,
    pod_fields: tuple[str, ...],
    container_fields: tuple[str, ...],
) -> None:
    contexts = [(spec.get("securityContext"), path, pod_fields)]
    for container, at in all_containers(spec, path):
        contexts.append((container.get("securityContext"), at, container_fields))
    for context, at, fields in contexts:
        for field in fields:
            if (context or {}).get(field) is not None:
                errors.forbidden(at.child("securityContext").child(field), refusal)
