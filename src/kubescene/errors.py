"""Every error that Kubescene raises on purpose.

::

    KubesceneError
    ├── ApiError                 a refused request; carries a Kubernetes Status
    │   ├── BadRequestError          400 BadRequest
    │   ├── ForbiddenError           403 Forbidden
    │   ├── NotFoundError            404 NotFound
    │   ├── MethodNotAllowedError    405 MethodNotAllowed
    │   ├── NotAcceptableError       406 NotAcceptable
    │   ├── AlreadyExistsError       409 AlreadyExists
    │   ├── ConflictError            409 Conflict
    │   ├── ExpiredError             410 Expired
    │   ├── RequestTooLargeError     413 RequestEntityTooLarge
    │   ├── UnsupportedMediaTypeError 415 UnsupportedMediaType
    │   ├── InvalidError             422 Invalid, with one cause per field
    │   ├── TooManyRequestsError     429 TooManyRequests
    │   ├── InternalError            500 InternalError
    │   └── UnreachableError         503, no usable answer: nobody knows whether it was done
    ├── ScenarioError            a scenario cannot be loaded or played; says where
    │   └── ScenarioGoneError        it was deleted while it was played
    ├── PluginError              a scheduler plugin raised; names plugin and extension point
    ├── ControllerError          a user's controller raised; names it
    ├── AutoscalerError          an autoscaler raised or answered with nonsense; names it
    ├── TrafficError             a TrafficRun that cannot be read or simulated; names the field
    │   └── RunStoreError            the store of runs cannot be used: no fault of the run
    ├── ConfigurationError       a component was configured in a way it cannot honour
    │   └── SchedulerConfigurationError  a KubeSchedulerConfiguration that is refused; says where
    ├── WorkloadError            a benchmark's workload cannot be read or replayed; says where
    ├── DamagedWorldError        a world on disk is not as it was written; says file and place
    ├── RecorderError            the timeline could not be recorded; ends the run
    ├── UnseenWriteError         a client's own write did not come back through its watch
    └── ReentrantWriteError      somebody tried to write while being told of a change

Catch broadly (`KubesceneError`) to report, narrowly to recover. A plugin's "no" is a
`Status` value of the scheduler, never an exception.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class KubesceneError(Exception):
    """Base of everything that Kubescene raises on purpose."""


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One reason for a refusal, tied to a field. ``reason`` is a Kubernetes cause type."""

    reason: str
    message: str
    field: str = ""

    def to_dict(self) -> dict[str, str]:
        told = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in told.items() if value or key == "message"}


class ApiError(KubesceneError):
    """A request the API refuses, with all that a Kubernetes ``Status`` says about it."""

    code: int = 500
    reason: str = "InternalError"
    is_by_policy: bool = False
    """Whether a rule of the user's refused it: whoever asked may live on, and try again."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "",
        group: str = "",
        name: str = "",
        uid: str = "",
        causes: Sequence[StatusCause] = (),
        retry_after_s: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.group = group
        self.name = name
        self.uid = uid
        self.causes = tuple(causes)
        self.retry_after_s = retry_after_s

    def has_cause(self, reason: str) -> bool:
        """Whether one of the causes is of this type, such as ``NamespaceTerminating``."""
        return any(cause.reason == reason for cause in self.causes)

    def to_status(self) -> dict[str, Any]:
        """The Kubernetes ``Status`` object that a client receives."""
        details: dict[str, Any] = {}
        for key in ("name", "group", "kind", "uid"):
            if value := getattr(self, key):
                details[key] = value
        if self.causes:
            details["causes"] = [cause.to_dict() for cause in self.causes]
        if self.retry_after_s:
            details["retryAfterSeconds"] = self.retry_after_s
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if not self.reason:
            del status["reason"]
        if details:
            status["details"] = details
        status["code"] = self.code
        return status


class BadRequestError(ApiError):
    code = 400
    reason = "BadRequest"


class UnauthorizedError(ApiError):
    code = 401
    reason = "Unauthorized"


class ForbiddenError(ApiError):
    code = 403
    reason = "Forbidden"


class NotFoundError(ApiError):
    code = 404
    reason = "NotFound"


class MethodNotAllowedError(ApiError):
    code = 405
    reason = "MethodNotAllowed"


class NotAcceptableError(ApiError):
    code = 406
    reason = "NotAcceptable"


class AlreadyExistsError(ApiError):
    code = 409
    reason = "AlreadyExists"


class ConflictError(ApiError):
    code = 409
    reason = "Conflict"


class ExpiredError(ApiError):
    code = 410
    reason = "Expired"


class RequestTooLargeError(ApiError):
    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaTypeError(ApiError):
    code = 415
    reason = "UnsupportedMediaType"


class InvalidError(ApiError):
    code = 422
    reason = "Invalid"


class TooManyRequestsError(ApiError):
    code = 429
    reason = "TooManyRequests"


class InternalError(ApiError):
    code = 500
    reason = "InternalError"


class UnreachableError(ApiError):
    """No usable answer came from an API server. Whether a write was carried out is not known."""

    code = 503
    reason = "ServiceUnavailable"


class ScenarioError(KubesceneError):
    """A scenario that cannot be loaded or played.

    ``where`` is the most exact place known: a file with line, or step and operation id. ``path`` is
    the way to it from the top of the document, if it is a place in one.
    """

    def __init__(self, message: str, *, where: str = "", path: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where
        self.path = path


class SnapshotError(ScenarioError):
    """A snapshot of a cluster that cannot be read or restored. ``where`` is file and place."""


class ScenarioGoneError(ScenarioError):
    """The Scenario object was deleted while it was played: the engine stops."""


class PluginError(KubesceneError):
    """A scheduler plugin raised. The original exception is the cause."""

    def __init__(self, message: str, *, plugin: str, extension_point: str) -> None:
        super().__init__(f"plugin {plugin!r} at {extension_point}: {message}")
        self.plugin = plugin
        self.extension_point = extension_point


class ControllerError(KubesceneError):
    """A user's controller raised, or answered with nonsense. The original is the cause."""

    def __init__(self, message: str, *, controller: str) -> None:
        super().__init__(f"controller {controller!r}: {message}")
        self.controller = controller


class AutoscalerError(KubesceneError):
    """An autoscaler raised, or answered with nonsense. The original is the cause."""

    def __init__(self, message: str, *, autoscaler: str, call: str) -> None:
        super().__init__(f"autoscaler {autoscaler!r} at {call}: {message}")
        self.autoscaler = autoscaler
        self.call = call


class TrafficError(KubesceneError):
    """A TrafficRun that cannot be read or simulated. ``path`` is the field, ``source`` the file."""

    def __init__(self, message: str, *, path: str = "", source: str = "") -> None:
        super().__init__(": ".join(filter(None, (source, path, message))))
        self.message = message
        self.path = path
        self.source = source

    def of(self, source: str) -> "TrafficError":
        """The same, about this file."""
        return TrafficError(self.message, path=self.path, source=source)


class RunStoreError(TrafficError):
    """The store of traffic runs, or what it keeps of one, cannot be read or written."""


class ConfigurationError(KubesceneError):
    """A component was configured in a way it cannot honour."""


class SchedulerConfigurationError(ConfigurationError):
    """A KubeSchedulerConfiguration that kube-scheduler would refuse.

    ``text`` is what kube-scheduler says. ``path`` is the field it is about, such as
    ``profiles[0].plugins.score``, and ``source`` the file; the message has them where the text
    does not.
    """

    def __init__(self, text: str, path: str = "", source: str = "") -> None:
        where = path if source and path not in text else ""
        super().__init__(": ".join(filter(None, (source, where, text))))
        self.text = text
        self.path = path
        self.source = source

    def of(self, source: str) -> "SchedulerConfigurationError":
        """The same, about this file."""
        return SchedulerConfigurationError(self.text, self.path, source)


class WorkloadError(KubesceneError):
    """A workload of a benchmark cannot be read or replayed: file, workload and path say which."""

    def __init__(self, message: str, *, file: str = "", workload: str = "", path: str = "") -> None:
        self.message = message
        self.file = file
        self.workload = workload
        self.path = path
        super().__init__(": ".join(filter(None, (file, workload, path, message))))


class DamagedWorldError(KubesceneError):
    """What is on disk is not what was written: says file and place."""


class RecorderError(KubesceneError):
    """The timeline could not be recorded. A run without its record is worth nothing, so it ends."""


class UnseenWriteError(KubesceneError):
    """A write was accepted, but the writer's own watch did not deliver it in time."""


class ReentrantWriteError(KubesceneError):
    """Who is being told of a change tried to write. Handlers may enqueue work, never write."""
