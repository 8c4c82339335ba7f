"""What a simulation does not need and others should not see: taken out by default.

Values of environment variables, commands and their arguments, headers of probes, data of
ConfigMaps, and annotations that no component here reads. Names stay; `anonymizing` replaces them.
The same goes everywhere a pod template stands, so templates that were equal stay equal.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.types import JsonObject

KEPT_ANNOTATIONS = (
    "api-approved.kubernetes.io",
    "autoscaling.alpha.kubernetes.io/",
    "batch.kubernetes.io/",
    "cluster-autoscaler.kubernetes.io/",
    "container.apparmor.security.beta.kubernetes.io/",
    "controller.kubernetes.io/",
    "cronjob.kubernetes.io/",
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "karpenter.sh/",
    "kubectl.kubernetes.io/restartedAt",
    "kubernetes.io/config.",
    "kubescene.dev/",
    "node.alpha.kubernetes.io/",
    "node.kubernetes.io/",
    "pv.kubernetes.io/",
    "resource.kubernetes.io/",
    "scheduler.alpha.kubernetes.io/",
    "scheduling.k8s.io/",
    "storageclass.beta.kubernetes.io/",
    "storageclass.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "volume.kubernetes.io/",
    "volumes.kubernetes.io/",
)
"""Annotations that begin so say something to a component that is simulated."""
REDACTED = "redacted"
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
DROPPED_OF_CONTAINERS = ("command", "args")
STATE = ("state", "lastState")


def redacted(obj: JsonObject) -> JsonObject:
    """The object without what is confidential; what was given is not changed."""
    result = {**obj, "metadata": _metadata(obj.get("metadata"))}
    kind, spec = obj.get("kind"), obj.get("spec")
    if kind == "ConfigMap":
        for part in ("data", "binaryData"):
            if isinstance(obj.get(part), Mapping):
                result[part] = dict.fromkeys(obj[part], "")
    if kind == "Pod":
        result["spec"] = _pod_spec(spec)
        result["status"] = _pod_status(obj.get("status"))
        if obj.get("status") is None:
            del result["status"]
    elif isinstance(spec, Mapping):
        result["spec"] = _with_templates(spec)
    if kind == "PodTemplate" and isinstance(obj.get("template"), Mapping):
        result["template"] = _template(obj["template"])
    return result


def _with_templates(spec: Mapping[str, Any]) -> JsonObject:
    """A spec with pod templates in it, as workloads, CronJobs and claims have them."""
    result = dict(spec)
    if isinstance(spec.get("template"), Mapping):
        result["template"] = _template(spec["template"])
    job = spec.get("jobTemplate")
    if isinstance(job, Mapping):
        kept = {**job, "metadata": _metadata(job.get("metadata"))} if "metadata" in job else {**job}
        if isinstance(job.get("spec"), Mapping):
            kept["spec"] = _with_templates(job["spec"])
        result["jobTemplate"] = kept
    return result


def _template(template: Mapping[str, Any]) -> JsonObject:
    result = dict(template)
    if "metadata" in template:
        result["metadata"] = _metadata(template["metadata"])
    if "spec" in template:
        result["spec"] = _pod_spec(template["spec"])
    return result


def _metadata(metadata: Any) -> Any:
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("annotations"), Mapping):
        return metadata
    kept = {k: v for k, v in metadata["annotations"].items() if k.startswith(KEPT_ANNOTATIONS)}
    rest = {name: part for name, part in metadata.items() if name != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def _pod_spec(spec: Any) -> Any:
    if not isinstance(spec, Mapping):
        return spec
    result = dict(spec)
    for part in CONTAINERS:
        if isinstance(spec.get(part), list):
            result[part] = [_container(each) for each in spec[part]]
    if isinstance(spec.get("hostAliases"), list):
        del result["hostAliases"]
    return result


def _container(container: Any) -> Any:
    if not isinstance(container, Mapping):
        return container
    result = {k: v for k, v in container.items() if k not in DROPPED_OF_CONTAINERS}
    if isinstance(container.get("env"), list):
        result["env"] = [_without_value(each) for each in container["env"]]
    for probe in PROBES:
        if isinstance(container.get(probe), Mapping):
            result[probe] = _handler(container[probe])
    if isinstance(hooks := container.get("lifecycle"), Mapping):
        result["lifecycle"] = {name: _handler(hook) for name, hook in hooks.items()}
    return result


def _without_value(variable: Any) -> Any:
    if not isinstance(variable, Mapping):
        return variable
    return {name: part for name, part in variable.items() if name != "value"}


def _handler(handler: Any) -> Any:
    """What a probe or hook does: the command and the headers are nobody's business."""
    if not isinstance(handler, Mapping):
        return handler
    result = dict(handler)
    if isinstance(run := handler.get("exec"), Mapping) and "command" in run:
        result["exec"] = {**run, "command": [REDACTED]}
    if isinstance(get := handler.get("httpGet"), Mapping) and isinstance(
        get.get("httpHeaders"), list
    ):
        result["httpGet"] = {k: v for k, v in get.items() if k != "httpHeaders"}
    return result


def _pod_status(status: Any) -> Any:
    """Messages of containers may quote what they printed."""
    if not isinstance(status, Mapping):
        return status
    result = dict(status)
    for part in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        if isinstance(status.get(part), list):
            result[part] = [_container_status(each) for each in status[part]]
    return result


def _container_status(told: Any) -> Any:
    if not isinstance(told, Mapping):
        return told
    result = dict(told)
    for part in STATE:
        states = told.get(part)
        if isinstance(states, Mapping):
            result[part] = {
                name: {k: v for k, v in each.items() if k != "message"}
                if isinstance(each, Mapping)
                else each
                for name, each in states.items()
            }
    return result
