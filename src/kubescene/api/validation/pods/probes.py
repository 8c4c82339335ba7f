"""Probes, lifecycle hooks and the handlers that both run."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import NOT_NEGATIVE
from kubescene.api.validation.names import http_header, port_name, port_number
from kubescene.types import JsonObject

_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_WINDOWS_SIGNALS = ("SIGKILL", "SIGTERM")
_SIGNAL_NAMES = (
    *("ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT"),
    *("KILL", "PIPE", "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM"),
    *("TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ"),
    *("RTMAX", *(f"RTMAX-{step}" for step in range(1, 15))),
    *("RTMIN", *(f"RTMIN+{step}" for step in range(1, 16))),
)
_LINUX_SIGNALS = tuple(sorted("SIG" + name for name in _SIGNAL_NAMES))


def check_probes(container: JsonObject, errors: ErrorList, path: Path) -> None:
    """Liveness, readiness and startup probe of a container."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is not None:
            _check_probe(probe, name, errors, path.child(name))


def _check_probe(probe: JsonObject, name: str, errors: ErrorList, path: Path) -> None:
    _check_handler(probe, _PROBE_HANDLERS, None, errors, path)
    for field in _COUNTS:
        if probe.get(field, 0) < 0:
            errors.invalid(path.child(field), probe[field], NOT_NEGATIVE)
    grace = probe.get("terminationGracePeriodSeconds")
    grace_path = path.child("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.invalid(grace_path, grace, "must be greater than 0")
    if name == "readinessProbe":
        if grace is not None:
            errors.invalid(grace_path, grace, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 0) != 1:
        errors.invalid(
            path.child("successThreshold"), probe.get("successThreshold", 0), "must be 1"
        )


def check_lifecycle(
    lifecycle: JsonObject,
    errors: ErrorList,
    path: Path,
    *,
    grace_s: int | None,
    os: JsonObject | None,
) -> None:
    """Hooks and stop signal of a container."""
    for name in ("postStart", "preStop"):
        if (hook := lifecycle.get(name)) is not None:
            _check_handler(hook, _HOOK_HANDLERS, grace_s, errors, path.child(name))
    if (signal := lifecycle.get("stopSignal")) is not None:
        _check_signal(signal, os, errors, path.child("stopSignal"))


def _check_signal(signal: str, os: JsonObject | None, errors: ErrorList, path: Path) -> None:
    if os is None:
        errors.forbidden(path, "may not be set for containers with empty `spec.os.name`")
        return
    known = {"windows": _WINDOWS_SIGNALS, "linux": _LINUX_SIGNALS}.get(os.get("name", ""))
    if known and signal not in known:
        errors.not_supported(path, signal, known)


def _check_handler(
    holder: JsonObject,
    kinds: tuple[str, ...],
    grace_s: int | None,
    errors: ErrorList,
    path: Path,
) -> None:
    given = [kind for kind in kinds if holder.get(kind) is not None]
    if not given:
        errors.required(path, "must specify a handler type")
        return
    _check_action(given[0], holder[given[0]], grace_s, errors, path.child(given[0]))
    for kind in given[1:]:
        errors.forbidden(path.child(kind), "may not specify more than 1 handler type")


def _check_action(
    kind: str, action: JsonObject, grace_s: int | None, errors: ErrorList, path: Path
) -> None:
    match kind:
        case "exec":
            if not action.get("command"):
                errors.required(path.child("command"))
        case "httpGet":
            _check_http(action, errors, path)
        case "sleep":
            _check_sleep(action, grace_s, errors, path)
        case _:
            check_port(action.get("port", 0), errors, path.child("port"))


def _check_http(action: JsonObject, errors: ErrorList, path: Path) -> None:
    if not action.get("path"):
        errors.required(path.child("path"))
    check_port(action.get("port", 0), errors, path.child("port"))
    if action.get("scheme", "") not in ("HTTP", "HTTPS"):
        errors.not_supported(path.child("scheme"), action.get("scheme", ""), ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        errors.invalid_each(path.child("httpHeaders"), name, http_header(name))


def _check_sleep(action: JsonObject, grace_s: int | None, errors: ErrorList, path: Path) -> None:
    seconds = action.get("seconds", 0)
    if grace_s is not None and not 0 <= seconds <= grace_s:
        errors.invalid(
            path,
            seconds,
            f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})",
        )


def check_port(port: int | str, errors: ErrorList, path: Path) -> None:
    """A port by number or by name."""
    complaints = port_name(port) if isinstance(port, str) else port_number(port)
    errors.invalid_each(path, port, complaints)
