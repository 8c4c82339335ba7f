"""What a kind of policies and its bindings have in common, up to the object that they look at."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kubescene.actors import Actor, Component
from kubescene.api.scheme import GroupResource, GroupVersionKind, ResourceType
from kubescene.api.selectors import from_label_selector
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.admission.policies.compiling import (
    TRUTH,
    Expression,
    Names,
    Vocabulary,
    compiled,
)
from kubescene.registry.admission.policies.evaluating import (
    CONDITIONS_BUDGET,
    FailedExpressionError,
    NoBudgetError,
    PolicyEvaluation,
)
from kubescene.registry.admission.policies.matching import (
    AdmissionSubject,
    Matched,
    Surroundings,
    match,
)
from kubescene.registry.admission.policies.resources import RESOURCES
from kubescene.types import JsonObject

AUTHENTICATED, MASTERS = "system:authenticated", "system:masters"
_ACCOUNTS = "system:serviceaccounts"


class ConfigurationFault(Exception):  # noqa: N818
    """A policy or binding cannot be applied as it stands."""


class Hook(Struct, frozen=True):
    """A policy, its bindings by name, and its expressions."""

    name: str
    spec: JsonObject
    bindings: tuple[tuple[str, JsonObject], ...]
    words: Names
    """What expressions may use, variables among it."""
    variables: Mapping[str, Expression]
    conditions: tuple[Expression, ...]
    params: GroupVersionKind | None

    @property
    def fails(self) -> bool:
        """Whether what goes wrong refuses the request."""
        return bool(self.spec.get("failurePolicy") != "Ignore")


def hooks_of(policies: GroupResource, bindings: GroupResource, where: Surroundings) -> list[Hook]:
    """All policies that are bound, by name."""
    store = where.store
    bound: dict[str, list[tuple[str, JsonObject]]] = {}
    for each in store.list(bindings):
        spec = store.decoded(each)["spec"]
        bound.setdefault(spec["policyName"], []).append((each.name, spec))
    hooks = []
    for record in store.list(policies):
        if own := bound.get(record.name):
            spec = store.decoded(record)["spec"]
            hooks.append(hook_of(record.name, spec, sorted(own, key=lambda it: it[0])))
    return sorted(hooks, key=lambda it: it.name)


def hook_of(name: str, spec: JsonObject, bindings: Sequence[tuple[str, JsonObject]]) -> Hook:
    """What is compiled of a spec; webhooks have conditions only."""
    vocabulary = Vocabulary(spec)
    variables = {
        each["name"]: vocabulary.add(each["name"], each["expression"])
        for each in spec.get("variables") or ()
    }
    conditions = tuple(
        compiled(each["expression"], TRUTH, vocabulary.names)
        for each in spec.get("matchConditions") or ()
    )
    kind = spec.get("paramKind")
    params = None if kind is None else GroupVersionKind.of(kind["apiVersion"], kind["kind"])
    return Hook(name, spec, tuple(bindings), vocabulary.names, variables, conditions, params)


def check_params(hook: Hook, where: Surroundings) -> None:
    """Raise if nobody serves the kind of the params."""
    kind = hook.params
    if kind is not None and kind not in where.scheme:
        named = f"{kind.group}/{kind.version}, Kind={kind.kind}"
        raise ConfigurationFault(f"failed to find resource referenced by paramKind: '{named}'")


def is_exempt(request: AdmissionRequest) -> bool:
    """Whether policies are not asked: about themselves, and again about what they were asked."""
    return request.options.is_admitted or request.resource_type.group_resource in RESOURCES


def invocations(
    hook: Hook, binding: JsonObject, subject: AdmissionSubject, where: Surroundings
) -> list[JsonObject | None]:
    """With what a binding has its policy evaluated for a request; nothing if it is not about it."""
    constraints = binding.get("matchResources")
    if constraints is not None and match(constraints, subject, where) is None:
        return []
    return _params(hook, binding.get("paramRef"), subject.namespace, where)


def _params(
    hook: Hook, reference: JsonObject | None, namespace: str, where: Surroundings
) -> list[JsonObject | None]:
    """What a policy is evaluated with for one binding: each object of params, or nothing."""
    if hook.params is None or reference is None:
        return [None]
    kind = where.scheme.of(hook.params)
    place = _place_of_params(kind, reference.get("namespace") or "", namespace)
    store, name = where.store, reference.get("name")
    if name:
        found = store.get(kind.group_resource, place, name)
        records = [] if found is None else [found]
    else:
        wanted = from_label_selector(reference.get("selector"))
        listed = store.list(kind.group_resource, place)
        records = [each for each in listed if wanted.matches(each.labels)]
    if not records and reference.get("parameterNotFoundAction") == "Deny":
        message = "no params found for policy binding with `Deny` parameterNotFoundAction"
        raise ConfigurationFault(message)
    return [where.shown(store.decoded(each), kind.gvk) for each in records]


def _place_of_params(kind: ResourceType, given: str, namespace: str) -> str:
    if not kind.namespaced:
        if given:
            message = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            raise ConfigurationFault(message)
        return ""
    if not (given or namespace):
        message = (
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
        raise ConfigurationFault(message)
    return given or namespace


def names_for(
    request: AdmissionRequest,
    subject: AdmissionSubject,
    matched: Matched,
    params: JsonObject | None,
    where: Surroundings,
) -> dict[str, Any]:
    """The values of the names that expressions may use."""
    return {
        "object": where.shown(subject.obj, matched.kind),
        "oldObject": where.shown(subject.old, matched.kind),
        "request": described(request, subject, matched),
        "params": params,
        "namespaceObject": None,
    }


def meets_conditions(hook: Hook, names: Mapping[str, Any]) -> bool:
    """Whether a request is meant; raises if that cannot be said and the policy fails closed."""
    if not hook.conditions:
        return True
    evaluation = PolicyEvaluation(names, hook.variables, CONDITIONS_BUDGET)
    failed: list[str] = []
    for condition in hook.conditions:
        try:
            if not evaluation.value(condition):
                return False
        except NoBudgetError as error:
            failed = [str(error)]
            break
        except FailedExpressionError as error:
            failed.append(str(error))
    if not failed:
        return True
    if not hook.fails:
        return False
    unique = [*dict.fromkeys(failed)]
    raise FailedExpressionError(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")


def namespace_seen(subject: AdmissionSubject, where: Surroundings) -> JsonObject | None:
    """The namespace of a request, without who owns its fields; None if it has none."""
    found = None if subject.is_of_namespace else where.namespace(subject.namespace)
    if found is None:
        return None
    hidden = ("managedFields", "ownerReferences", "selfLink")
    metadata = {key: value for key, value in found["metadata"].items() if key not in hidden}
    seen = {"metadata": metadata, "spec": found.get("spec"), "status": found.get("status")}
    return {key: value for key, value in seen.items() if value is not None}


# -- the request -----------------------------------------------------------------------------


def described(request: AdmissionRequest, subject: AdmissionSubject, matched: Matched) -> JsonObject:
    """The request itself, as a policy sees it; what is empty is not there."""
    seen = {
        "uid": "",
        "kind": _kind(matched.kind),
        "resource": _resource(matched.resource_type),
        "subResource": subject.subresource,
        "requestKind": _kind(subject.kind),
        "requestResource": _resource(subject.served),
        "requestSubResource": subject.subresource,
        "name": subject.name,
        "namespace": subject.namespace,
        "operation": subject.operation,
        "userInfo": user_info(request),
        "dryRun": request.options.dry_run,
        "options": _options(request),
    }
    return {key: value for key, value in seen.items() if value != "" or key == "uid"}


def _kind(gvk: GroupVersionKind) -> JsonObject:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(resource_type: ResourceType) -> JsonObject:
    gvk = resource_type.gvk
    return {"group": gvk.group, "version": gvk.version, "resource": resource_type.plural}


def _options(request: AdmissionRequest) -> JsonObject:
    options = request.options
    made: JsonObject = {
        "kind": f"{request.verb.capitalize()}Options",
        "apiVersion": "meta.k8s.io/v1",
    }
    if options.dry_run:
        made["dryRun"] = ["All"]
    if options.consultation is not None and options.consultation.options is not None:
        made |= options.consultation.options
    elif options.field_manager:
        made["fieldManager"] = options.field_manager
    return made


def user_info(request: AdmissionRequest) -> JsonObject:
    """Who asks. Parts of the world have the names that they have in a cluster."""
    actor = request.actor
    if actor.groups or not actor.inside:
        known: JsonObject = {"username": actor.name}
        if actor.uid:
            known["uid"] = actor.uid
        known["groups"] = [*(actor.groups or (MASTERS, AUTHENTICATED))]
        if actor.extra:
            known["extra"] = {name: [*values] for name, values in actor.extra}
        return known
    if actor.component is Component.SCHEDULER:
        return {"username": f"system:{actor.name}", "groups": [AUTHENTICATED]}
    if actor.component is Component.KUBELET:
        name = f"system:node:{_node_of(request)}"
        return {"username": name, "groups": ["system:nodes", AUTHENTICATED]}
    if actor.component is Component.CONTROLLER:
        name = f"system:serviceaccount:kube-system:{_account_of(actor)}"
        groups = [_ACCOUNTS, f"{_ACCOUNTS}:kube-system", AUTHENTICATED]
        return {"username": name, "groups": groups}
    return {"username": actor.name, "groups": [MASTERS, AUTHENTICATED]}


def _node_of(request: AdmissionRequest) -> str:
    if request.resource_type.kind == "Pod":
        return str((request.obj.get("spec") or {}).get("nodeName") or "")
    return request.name


def _account_of(actor: Actor) -> str:
    """The service account of a controller of kube-controller-manager."""
    name = actor.name
    plain = name if name.endswith("-controller") else f"{name}-controller"
    return _ACCOUNT_NAMES.get(name, plain)


_ACCOUNT_NAMES = {
    "cronjob": "cronjob-controller",
    "daemonset": "daemon-set-controller",
    "endpoints": "endpoint-controller",
    "garbage-collector": "generic-garbage-collector",
    "horizontalpodautoscaler": "horizontal-pod-autoscaler",
    "node-lifecycle": "node-controller",
    "persistentvolume-binder": "persistent-volume-binder",
    "pod-garbage-collector": "pod-garbage-collector",
    "replicationcontroller": "replication-controller",
    "resourceclaim": "resource-claim-controller",
    "root-ca-certificate-publisher": "root-ca-cert-publisher",
    "ttl-after-finished": "ttl-after-finished-controller",
}
