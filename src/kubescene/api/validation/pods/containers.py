"""Containers of a pod: regular, init and ephemeral ones, and how they use the volumes of their pod:
as mounts or as block devices.
"""

from collections.abc import Mapping

from msgspec import Struct

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.names import dns_label, port_name, port_number
from kubescene.api.validation.paths import check_descending
from kubescene.api.validation.pods.environment import check_env, check_env_from
from kubescene.api.validation.pods.probes import check_lifecycle, check_probes
from kubescene.api.validation.pods.security import check_security_context
from kubescene.api.validation.pods.volumes import check_pull_policy
from kubescene.api.validation.resources import check_requirements
from kubescene.types import JsonObject

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY_MODES = ("Disabled", "Enabled", "IfPossible")


def check_mounts(
    container: JsonObject, volumes: Mapping[str, JsonObject], errors: ErrorList, path: Path
) -> None:
    """``volumeMounts`` of a container, against the volumes that its pod has."""
    devices = {
        device.get("name", ""): device.get("devicePath", "")
        for device in container.get("volumeDevices") or ()
    }
    seen: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if name not in volumes or not target or target in seen or devices:
            _check_target(mount, volumes, seen, devices, errors, path.index(position))
        seen.add(target)
        if mount.get("subPath") or mount.get("subPathExpr"):
            _check_sub_path(mount, errors, path, path.index(position))
        if mount.get("mountPropagation") is not None:
            _check_propagation(mount, container, errors, path.child("mountPropagation"))
        if mount.get("recursiveReadOnly") is not None:
            _check_recursive_read_only(mount, errors, path.child("recursiveReadOnly"))


def _check_target(
    mount: JsonObject,
    volumes: Mapping[str, JsonObject],
    seen: set[str],
    devices: dict[str, str],
    errors: ErrorList,
    path: Path,
) -> None:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    if not name:
        errors.required(path.child("name"))
    if name not in volumes:
        errors.not_found(path.child("name"), name)
    if not target:
        errors.required(path.child("mountPath"))
    if target in seen:
        errors.invalid(path.child("mountPath"), target, "must be unique")
    if name in devices:
        errors.invalid(path.child("name"), name, "must not already exist in volumeDevices")
    if target in devices.values():
        detail = "must not already exist as a path in volumeDevices"
        errors.invalid(path.child("mountPath"), target, detail)


def _check_sub_path(mount: JsonObject, errors: ErrorList, mounts: Path, path: Path) -> None:
    # The list, not the mount, is what upstream names for bad sub-paths.
    plain, expression = mount.get("subPath"), mount.get("subPathExpr")
    if plain:
        check_descending(plain, errors, mounts.child("subPath"))
    if expression:
        if plain:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.invalid(path.child("subPathExpr"), expression, detail)
        check_descending(expression, errors, mounts.child("subPathExpr"))


def _check_propagation(
    mount: JsonObject, container: JsonObject, errors: ErrorList, path: Path
) -> None:
    mode = mount["mountPropagation"]
    if mode not in _PROPAGATIONS:
        errors.not_supported(path, mode, _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if mode == "Bidirectional" and not privileged:
        errors.forbidden(
            path, "Bidirectional mount propagation is available only to privileged containers"
        )


def _check_recursive_read_only(mount: JsonObject, errors: ErrorList, path: Path) -> None:
    mode = mount["recursiveReadOnly"]
    if mode not in _READ_ONLY_MODES:
        errors.not_supported(path, mode, _READ_ONLY_MODES)
    elif mode != "Disabled":
        if not mount.get("readOnly"):
            errors.forbidden(path, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            errors.forbidden(
                path, "may only be specified when mountPropagation is None or not specified"
            )


def check_devices(
    container: JsonObject, volumes: Mapping[str, JsonObject], errors: ErrorList, path: Path
) -> None:
    """``volumeDevices`` of a container."""
    mounts = {
        mount.get("name", ""): mount.get("mountPath", "")
        for mount in container.get("volumeMounts") or ()
    }
    names: set[str] = set()
    targets: set[str] = set()
    for position, device in enumerate(container["volumeDevices"]):
        at = path.index(position)
        _check_device_name(device.get("name", ""), volumes, names, mounts, errors, at.child("name"))
        target = device.get("devicePath", "")
        _check_device_path(target, targets, mounts, errors, at.child("devicePath"))


def _check_device_name(
    name: str,
    volumes: Mapping[str, JsonObject],
    names: set[str],
    mounts: dict[str, str],
    errors: ErrorList,
    path: Path,
) -> None:
    if not name:
        errors.required(path)
    if name in names:
        errors.invalid(path, name, "must be unique")
    volume = volumes.get(name)
    if volume is None:
        errors.not_found(path, name)
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        errors.invalid(
            path,
            name,
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
        )
    if name in mounts:
        errors.invalid(path, name, "must not already exist in volumeMounts")
    if name:
        names.add(name)


def _check_device_path(
    target: str, targets: set[str], mounts: dict[str, str], errors: ErrorList, path: Path
) -> None:
    if not target:
        errors.required(path)
    if target in targets:
        errors.invalid(path, target, "must be unique")
    if ".." in target.split("/"):
        errors.invalid(path, target, "can not contain backsteps ('..')")
    else:
        targets.add(target)
    if target in mounts.values():
        errors.invalid(path, target, "must not already exist as a path in volumeMounts")


_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PULL_POLICIES = frozenset({"Always", "IfNotPresent", "Never"})
_RESIZE_RESOURCES = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_EXIT_CODE_OPERATORS = ("In", "NotIn")
_MAX_RESTART_RULES = 20
_MAX_EXIT_CODES = 255
_SIDECARS_ONLY = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_NOT_IN_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


class PodContext(Struct, frozen=True):
    """What the checks of a container need to know about its pod."""

    volumes: Mapping[str, JsonObject]
    claim_names: frozenset[str]
    grace_s: int | None
    restart_policy: str
    os: JsonObject | None
    host_users: bool


def check_containers(
    containers: list[JsonObject], pod: PodContext, errors: ErrorList, path: Path
) -> None:
    """Regular containers: there must be one, and they must not share names or host ports."""
    if not containers:
        errors.required(path)
        return
    names: set[str] = set()
    ports: set[str] = set()
    for position, container in enumerate(containers):
        at = path.index(position)
        check_common(container, pod, errors, at)
        if (name := container.get("name", "")) in names:
            errors.duplicate(at.child("name"), name)
        names.add(name)
        check_hooks(container, pod, errors, at)
        check_restart_policy(container, errors, at)
    for position, container in enumerate(containers):
        if container.get("ports"):
            _check_host_ports(container, ports, errors, path.index(position))


def check_hooks(container: JsonObject, pod: PodContext, errors: ErrorList, path: Path) -> None:
    if (lifecycle := container.get("lifecycle")) is not None:
        check_lifecycle(lifecycle, errors, path.child("lifecycle"), grace_s=pod.grace_s, os=pod.os)
    check_probes(container, errors, path)


def check_init_containers(
    containers: list[JsonObject],
    regular: list[JsonObject],
    pod: PodContext,
    errors: ErrorList,
    path: Path,
) -> None:
    """Init containers; those with ``restartPolicy: Always`` are sidecars and may have probes."""
    names = {container.get("name", "") for container in regular}
    for position, container in enumerate(containers):
        at = path.index(position)
        check_common(container, pod, errors, at)
        check_restart_policy(container, errors, at)
        if (name := container.get("name", "")) in names:
            errors.duplicate(at.child("name"), name)
        elif name:
            names.add(name)
        # Init containers run one after another, so only ports of the same one can collide;
        # upstream names the first of them whichever it is.
        _check_host_ports(container, set(), errors, path.index(0))
        if container.get("restartPolicy") == "Always":
            check_hooks(container, pod, errors, at)
        else:
            _check_plain_init(container, errors, at)


def _check_plain_init(container: JsonObject, errors: ErrorList, path: Path) -> None:
    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(field) is not None:
            errors.forbidden(path.child(field), _SIDECARS_ONLY)
    for position, policy in enumerate(container.get("resizePolicy") or ()):
        if policy.get("restartPolicy") == "RestartContainer":
            errors.invalid(
                path.child("resizePolicy").index(position).child("restartPolicy"),
                "RestartContainer",
                "must not be set to 'RestartContainer' for non-sidecar initContainers",
            )


def check_ephemeral_containers(
    containers: list[JsonObject],
    others: list[JsonObject],
    pod: PodContext,
    errors: ErrorList,
    path: Path,
) -> None:
    """Ephemeral containers, which are added to a running pod for debugging."""
    targets = {container.get("name", "") for container in others}
    names = set(targets)
    for position, container in enumerate(containers):
        at = path.index(position)
        check_common(container, pod, errors, at)
        check_image_blanks(container, errors, at)
        if (name := container.get("name", "")) in names:
            errors.duplicate(at.child("name"), name)
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in targets:
            errors.not_found(at.child("targetContainerName"), target)
        for field in _NOT_IN_EPHEMERAL:
            if container.get(field):
                errors.forbidden(at.child(field), _NOT_EPHEMERAL)
        _forbid_sub_paths(container, errors, at.child("volumeMounts"))


def _forbid_sub_paths(container: JsonObject, errors: ErrorList, path: Path) -> None:
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                errors.forbidden(path.index(position).child(field), _NOT_EPHEMERAL)


def check_common(container: JsonObject, pod: PodContext, errors: ErrorList, path: Path) -> None:
    """What holds for containers of all three sorts."""
    _check_identity(container, errors, path)
    if ports := container.get("ports"):
        _check_ports(ports, errors, path.child("ports"))
    if variables := container.get("env"):
        check_env(variables, errors, path.child("env"))
    if sources := container.get("envFrom"):
        check_env_from(sources, errors, path.child("envFrom"))
    if container.get("volumeMounts"):
        check_mounts(container, pod.volumes, errors, path.child("volumeMounts"))
    if container.get("volumeDevices"):
        check_devices(container, pod.volumes, errors, path.child("volumeDevices"))
    policy = container.get("imagePullPolicy", "")
    if policy not in _PULL_POLICIES:
        check_pull_policy(policy, errors, path.child("imagePullPolicy"))
    if resources := container.get("resources"):
        at = path.child("resources")
        check_requirements(resources, errors, at, claim_names=pod.claim_names)
    if policies := container.get("resizePolicy"):
        _check_resize(policies, pod.restart_policy, errors, path.child("resizePolicy"))
    if (context := container.get("securityContext")) is not None:
        at = path.child("securityContext")
        check_security_context(context, errors, at, host_users=pod.host_users)


def _check_identity(container: JsonObject, errors: ErrorList, path: Path) -> None:
    if not (name := container.get("name")):
        errors.required(path.child("name"))
    elif complaints := dns_label(name):
        errors.invalid_each(path.child("name"), name, complaints)
    if not container.get("image"):
        errors.required(path.child("image"))
    policy = container.get("terminationMessagePolicy", "")
    if not policy:
        errors.required(path.child("terminationMessagePolicy"))
    elif policy not in _MESSAGE_POLICIES:
        errors.not_supported(path.child("terminationMessagePolicy"), policy, _MESSAGE_POLICIES)


def check_image_blanks(container: JsonObject, errors: ErrorList, path: Path) -> None:
    image = container.get("image", "")
    if image != image.strip():
        errors.invalid(path.child("image"), image, "must not have leading or trailing whitespace")


def _check_ports(ports: list[JsonObject], errors: ErrorList, path: Path) -> None:
    names: set[str] = set()
    for position, port in enumerate(ports):
        at = path.index(position)
        if name := port.get("name"):
            if complaints := port_name(name):
                errors.invalid_each(at.child("name"), name, complaints)
            elif name in names:
                errors.duplicate(at.child("name"), name)
            names.add(name)
        _check_port_numbers(port, errors, at)


def _check_port_numbers(port: JsonObject, errors: ErrorList, path: Path) -> None:
    if not (number := port.get("containerPort")):
        errors.required(path.child("containerPort"))
    elif complaints := port_number(number):
        errors.invalid_each(path.child("containerPort"), number, complaints)
    if (number := port.get("hostPort")) and (complaints := port_number(number)):
        errors.invalid_each(path.child("hostPort"), number, complaints)
    protocol = port.get("protocol", "")
    if not protocol:
        errors.required(path.child("protocol"))
    elif protocol not in _PROTOCOLS:
        errors.not_supported(path.child("protocol"), protocol, _PROTOCOLS)


def _check_host_ports(
    container: JsonObject, taken: set[str], errors: ErrorList, path: Path
) -> None:
    for position, port in enumerate(container.get("ports") or ()):
        number = port.get("hostPort")
        if not number:
            continue
        key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
        if key in taken:
            errors.duplicate(path.child("ports").index(position).child("hostPort"), key)
        taken.add(key)


def _check_resize(
    policies: list[JsonObject], restart_policy: str, errors: ErrorList, path: Path
) -> None:
    seen: set[str] = set()
    for position, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.duplicate(path.index(position), resource)
        seen.add(resource)
        check_choice(resource, _RESIZE_RESOURCES, errors, path)
        check_choice(restart, _RESIZE_POLICIES, errors, path)
        if restart_policy == "Never" and restart != "NotRequired":
            errors.invalid(
                path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            )


def check_choice(value: str, allowed: tuple[str, ...], errors: ErrorList, path: Path) -> None:
    """A value that must be there and be one of these."""
    if not value:
        errors.required(path)
    elif value not in allowed:
        errors.not_supported(path, value, allowed)


def check_restart_policy(container: JsonObject, errors: ErrorList, path: Path) -> None:
    """A restart policy of the container's own, and rules that refine it."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is not None and policy not in _RESTART_POLICIES:
        errors.not_supported(path.child("restartPolicy"), policy, _RESTART_POLICIES)
    elif policy is None and rules:
        errors.required(
            path.child("restartPolicy"), "must specify restartPolicy when restart rules are used"
        )
    if len(rules) > _MAX_RESTART_RULES:
        errors.too_many(path.child("restartPolicyRules"), len(rules), _MAX_RESTART_RULES)
    for position, rule in enumerate(rules):
        _check_restart_rule(rule, errors, path.child("restartPolicyRules").index(position))


def _check_restart_rule(rule: JsonObject, errors: ErrorList, path: Path) -> None:
    if rule.get("action") not in _RESTART_ACTIONS:
        errors.not_supported(path.child("action"), rule.get("action", ""), _RESTART_ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        errors.required(path.child("exitCodes"), "must be specified")
        return
    at = path.child("exitCodes")
    if codes.get("operator") not in _EXIT_CODE_OPERATORS:
        errors.not_supported(at.child("operator"), codes.get("operator", ""), _EXIT_CODE_OPERATORS)
    if (count := len(codes.get("values") or ())) > _MAX_EXIT_CODES:
        errors.too_many(at.child("values"), count, _MAX_EXIT_CODES)
