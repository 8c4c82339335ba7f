"""Defaults of the containers in a pod spec: regular, init and ephemeral ones alike.

Pods are defaulted more often than anything else, so `default_container` collects its changes
in one dict and looks into optional parts only when they are there.
"""

from kubescene.api.defaulting.images import pull_policy
from kubescene.api.defaulting.resources import default_resources
from kubescene.api.defaulting.sharing import filled, filled_unset, mapped, within
from kubescene.api.defaulting.volumes import default_field_ref, default_resource_ref
from kubescene.types import JsonObject

_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HTTP_GET = {"path": "/", "scheme": "HTTP"}


def default_container(container: JsonObject) -> JsonObject:
    """A container with its defaults, except those that only pods (not templates) get."""
    changes: JsonObject = {}
    get = container.get
    if not get("imagePullPolicy"):
        changes["imagePullPolicy"] = pull_policy(get("image") or "")
    if not get("terminationMessagePath"):
        changes["terminationMessagePath"] = "/dev/termination-log"
    if not get("terminationMessagePolicy"):
        changes["terminationMessagePolicy"] = "File"
    if get("resources") is None:
        changes["resources"] = {}
    for key, default in _PARTS:
        part = get(key)
        if part:
            done = default(part)
            if done is not part:
                changes[key] = done
    return {**container, **changes} if changes else container


def _port(port: JsonObject) -> JsonObject:
    return port if port.get("protocol") else {**port, "protocol": "TCP"}


def _env(variable: JsonObject) -> JsonObject:
    source = variable.get("valueFrom")
    return within(variable, "valueFrom", _env_source) if source else variable


def _env_source(source: JsonObject) -> JsonObject:
    source = within(source, "fieldRef", default_field_ref)
    source = within(source, "resourceFieldRef", default_resource_ref)
    return within(source, "fileKeyRef", lambda ref: filled_unset(ref, {"optional": False}))


def _probe(probe: JsonObject) -> JsonObject:
    probe = within(filled(probe, _PROBE), "httpGet", _http_get)
    return within(probe, "grpc", lambda grpc: filled_unset(grpc, {"service": ""}))


def _http_get(action: JsonObject) -> JsonObject:
    return filled(action, _HTTP_GET)


def _lifecycle(lifecycle: JsonObject) -> JsonObject:
    for hook in ("postStart", "preStop"):
        lifecycle = within(lifecycle, hook, lambda handler: within(handler, "httpGet", _http_get))
    return lifecycle


_PARTS = (
    ("resources", default_resources),
    ("ports", lambda ports: mapped(ports, _port)),
    ("env", lambda variables: mapped(variables, _env)),
    ("livenessProbe", _probe),
    ("readinessProbe", _probe),
    ("startupProbe", _probe),
    ("lifecycle", _lifecycle),
)
