"""Members without which kube-apiserver refuses an object of a kind that has no module of its own.

A row says where something must be. In a path ``a.b`` the object ``a`` is there anyway, be it empty;
``a?.b`` asks for ``b`` only where ``a`` is given; ``a[].b`` asks it of every item, ``a{}.b`` of
every value of a map. What else such kinds are asked for is a function beside the rows.
"""

import base64
import re
from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from kubescene.api.validation.addresses import check_ip
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, SPEC, Path
from kubescene.api.validation.label_selectors import check_label_selector, is_readable
from kubescene.api.validation.names import (
    dns_1035_label,
    dns_label,
    dns_subdomain,
    label_key,
    port_number,
)
from kubescene.api.validation.pods.placement import check_node_selector, check_tolerations
from kubescene.api.validation.pods.pods import validate_template
from kubescene.types import JsonObject

Check: TypeAlias = Callable[[JsonObject, ErrorList, Path | None], None]
"""Says what is wrong with an object, and where that is; None is the whole."""


class MemberRule(NamedTuple):
    """A check of every object at a path."""

    path: str
    check: Check


class RulePlace(Struct):
    """The rules of a kind that begin at one place: those of it, by their row, and those below."""

    checks: list[tuple[int, Check]] = []
    below: dict[tuple[str, str], "RulePlace"] = {}
    """By name and form of the member: ``?``, ``[]``, ``{}`` or nothing."""


_STEP = re.compile(r"(\w+)(\?|\[\]|\{\})?\.?")


def check_members(kind: tuple[str, str], obj: JsonObject, errors: ErrorList) -> None:
    """What is missing of an object of this group and kind."""
    if rules := _RULES.get(kind):
        check_by(rules, obj, errors)


def check_by(rules: tuple[MemberRule, ...], obj: JsonObject, errors: ErrorList) -> None:
    """What an object lacks by these rules, in their order."""
    place = _place_of(rules)
    found: list[tuple[int, ErrorList]] = []
    _look(obj, None, place, found)
    for _, faults in sorted(found, key=itemgetter(0)):
        errors += faults


@cache
def _place_of(rules: tuple[MemberRule, ...]) -> RulePlace:
    """The rules as a tree, so that an object is walked through once."""
    root = RulePlace()
    for row, rule in enumerate(rules):
        place = root
        for step in _STEP.finditer(rule.path):
            place = place.below.setdefault((step[1], step[2] or ""), RulePlace())
        place.checks.append((row, rule.check))
    return root


def _look(
    obj: JsonObject, path: Path | None, place: RulePlace, found: list[tuple[int, ErrorList]]
) -> None:
    """Check an object and all that is in it; what is found goes with the row of its rule."""
    for row, check in place.checks:
        errors = ErrorList()
        check(obj, errors, path)
        if errors:
            found.append((row, errors))
    for (name, form), inner in place.below.items():
        value = obj.get(name)
        if form and not value and (form != "?" or value is None):
            continue  # most members are not there, and need no path
        here = _child(path, name)
        if form == "[]":
            for position, item in enumerate(value or ()):
                _look(item or {}, here.index(position), inner, found)
        elif form == "{}":
            for key, item in sorted((value or {}).items()):
                _look(item or {}, here.key(key), inner, found)
        else:
            _look(value or {}, here, inner, found)


# -- words of the rows ---------------------------------------------------------------------


def _child(path: Path | None, name: str) -> Path:
    return Path(name) if path is None else path.child(name)


def required(path: str, detail: str = "") -> MemberRule:
    """The member must be there and not be empty."""
    above, _, name = path.rpartition(".")

    def check(holder: JsonObject, errors: ErrorList, where: Path | None) -> None:
        if not holder.get(name):
            errors.required(_child(where, name), detail)

    return MemberRule(above, check)


def given(path: str, detail: str = "") -> MemberRule:
    """The member must be there, be it empty."""
    above, _, name = path.rpartition(".")

    def check(holder: JsonObject, errors: ErrorList, where: Path | None) -> None:
        if holder.get(name) is None:
            errors.required(_child(where, name), detail)

    return MemberRule(above, check)


def all_required(above: str, *names: str) -> tuple[MemberRule, ...]:
    return tuple(required(f"{above}.{name}" if above else name) for name in names)


def one_of(path: str, names: tuple[str, ...], detail: str, *, shown: Any = None) -> MemberRule:
    """At least one of the members must be there; ``shown`` makes it an invalid value."""

    def check(holder: JsonObject, errors: ErrorList, where: Path | None) -> None:
        if any(holder.get(name) is not None for name in names) or where is None:
            return
        if shown is None:
            errors.required(where, detail)
        else:
            errors.invalid(where, shown, detail)

    return MemberRule(path, check)


def choice(path: str, *supported: str) -> MemberRule:
    """The member must be one of these."""
    above, _, name = path.rpartition(".")

    def check(holder: JsonObject, errors: ErrorList, where: Path | None) -> None:
        if holder.get(name, "") not in supported:
            errors.not_supported(_child(where, name), holder.get(name, ""), supported)

    return MemberRule(above, check)


def named(path: str, complain: Callable[[str], tuple[str, ...]]) -> MemberRule:
    """The member must be a name by this rule; an empty one is not."""
    above, _, name = path.rpartition(".")

    def check(holder: JsonObject, errors: ErrorList, where: Path | None) -> None:
        text = holder.get(name) or ""
        if complaints := complain(text):
            errors.invalid_each(_child(where, name), text, complaints)

    return MemberRule(above, check)


def each(path: str, check: Check) -> MemberRule:
    """Whatever else is to be said of the objects at a path."""
    return MemberRule(path, check)


def selectors(path: str, *names: str) -> tuple[MemberRule, ...]:
    """Label selectors, which may be missing."""
    return tuple(each(f"{path}{name}?", _check_selector) for name in names)


def whole(check: Callable[[JsonObject, ErrorList], None]) -> MemberRule:
    """Whatever else is to be said of an object."""
    return MemberRule("", lambda obj, errors, _: check(obj, errors))


# -- what rows cannot say ------------------------------------------------------------------


def _check_selector(selector: JsonObject, errors: ErrorList, path: Path | None) -> None:
    check_label_selector(selector, errors, path or SPEC)


def _check_service_name(obj: JsonObject, errors: ErrorList) -> None:
    spec = obj.get("spec") or {}
    group, version = spec.get("group", ""), spec.get("version", "")
    wanted, name = f"{version}.{group}", obj["metadata"].get("name", "")
    if name != wanted:
        detail = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        errors.invalid(METADATA.child("name"), name, detail)
    if not group and version != "v1":
        detail = "only v1 may have an empty group and it better be legacy kube"
        errors.required(SPEC.child("group"), detail)
    errors.invalid_each(SPEC.child("version"), version, dns_1035_label(version))
    for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        if not 0 < spec.get(field, 0) <= most:
            detail = f"must be positive and less than {most}"
            errors.invalid(SPEC.child(field), spec.get(field, 0), detail)
    if spec.get("service") is None and spec.get("insecureSkipTLSVerify"):
        detail = "local APIServices may not have insecureSkipTLSVerify"
        errors.invalid(SPEC.child("insecureSkipTLSVerify"), True, detail)


def _check_signing_request(obj: JsonObject, errors: ErrorList) -> None:
    text = (obj.get("spec") or {}).get("request") or ""
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in base64.b64decode(text):
        detail = "PEM block type must be CERTIFICATE REQUEST"
        errors.invalid(SPEC.child("request"), text or None, detail)


def _check_identities(spec: JsonObject, errors: ErrorList, where: Path | None) -> None:
    """A request for a pod's certificate says whose, and brings one form of a key."""
    for name in ("podUID", "serviceAccountUID", "nodeUID"):
        if not spec.get(name):
            errors.invalid(_child(where, name), "", "must not be empty")
    stub, key, proof = (
        bool(spec.get(name)) for name in ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession")
    )
    if (stub, key, proof) not in ((True, False, False), (False, True, True)):
        detail = (
            "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
        )
        errors.invalid(SPEC, "", detail)


def _check_trust(obj: JsonObject, errors: ErrorList) -> None:
    name = obj["metadata"].get("name", "")
    if ":" in name and not (obj.get("spec") or {}).get("signerName"):
        detail = 'ClusterTrustBundle without signer name must not have ":" in its name'
        errors.invalid(METADATA.child("name"), name, detail)
    if "-----BEGIN CERTIFICATE-----" not in (obj.get("spec") or {}).get("trustBundle", ""):
        detail = "at least one trust anchor must be provided"
        errors.invalid(SPEC.child("trustBundle"), "<value omitted>", detail)


def _check_scope(parameters: JsonObject, errors: ErrorList, path: Path | None) -> None:
    scope = parameters.get("scope", "Cluster")
    here = _child(path, "namespace")
    if scope == "Namespace" and not parameters.get("namespace"):
        errors.required(here, "`parameters.scope` is set to 'Namespace'")
    if scope == "Cluster" and parameters.get("namespace"):
        errors.forbidden(here, "`parameters.scope` is set to 'Cluster'")


def _check_ingress(obj: JsonObject, errors: ErrorList) -> None:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        errors.invalid(SPEC, None, "either `defaultBackend` or `rules` must be specified")


def _check_backend(backend: JsonObject, errors: ErrorList, path: Path | None) -> None:
    here = path or SPEC
    service, resource = backend.get("service"), backend.get("resource")
    if service is None and resource is None:
        errors.invalid(here, "", "resource or service backend is required")
    if service is not None:
        if not service.get("name"):
            errors.required(here.child("service").child("name"))
        port = service.get("port") or {}
        if not port.get("name") and not port.get("number"):
            errors.required(here, "port name or number is required")
    if resource is not None:
        for name in ("kind", "name"):
            if not resource.get(name):
                errors.required(here.child("resource").child(name))


def _check_path(entry: JsonObject, errors: ErrorList, path: Path | None) -> None:
    kind = entry.get("pathType")
    if kind is None:
        errors.required(_child(path, "pathType"), "pathType must be specified")
    elif kind != "ImplementationSpecific" and not entry.get("path", "").startswith("/"):
        errors.invalid(_child(path, "path"), entry.get("path", ""), "must be an absolute path")
    if kind is not None:
        _check_backend(entry.get("backend") or {}, errors, _child(path, "backend"))


def _check_address_name(obj: JsonObject, errors: ErrorList) -> None:
    check_ip(obj["metadata"].get("name", ""), errors, METADATA.child("name"))


def _check_peer_selectors(peer: JsonObject, errors: ErrorList, path: Path | None) -> None:
    for name in ("podSelector", "namespaceSelector"):
        check_label_selector(peer.get(name), errors, _child(path, name))


def _check_peer_ports(port: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if port.get("endPort") is not None and port.get("port") is None:
        detail = "may not be specified when `port` is not specified"
        errors.invalid(_child(path, "endPort"), port["endPort"], detail)


def _check_role_rule(rule: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if not rule.get("verbs"):
        errors.required(_child(path, "verbs"), "verbs must contain at least one value")
    if rule.get("nonResourceURLs"):
        return
    if not rule.get("apiGroups"):
        detail = "resource rules must supply at least one api group"
        errors.required(_child(path, "apiGroups"), detail)
    if not rule.get("resources"):
        detail = "resource rules must supply at least one resource"
        errors.required(_child(path, "resources"), detail)


def _check_aggregation(rule: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if not rule.get("clusterRoleSelectors"):
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.required(_child(path, "clusterRoleSelectors"), detail)
    for position, selector in enumerate(rule.get("clusterRoleSelectors") or ()):
        at = _child(path, "clusterRoleSelectors").index(position)
        check_label_selector(selector, errors, at)
        if not is_readable(selector):
            errors.invalid(at, None, "invalid label selector.")


def _check_subject(subject: JsonObject, errors: ErrorList, path: Path | None) -> None:
    kinds = ("ServiceAccount", "User", "Group")
    if not subject.get("name"):
        errors.required(_child(path, "name"))
    if subject.get("kind", "") not in kinds:
        errors.not_supported(_child(path, "kind"), subject.get("kind", ""), kinds)


def _check_subject_place(subject: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
        errors.required(_child(path, "namespace"))


def _check_attached(obj: JsonObject, errors: ErrorList) -> None:
    source = (obj.get("spec") or {}).get("source") or {}
    if not source.get("persistentVolumeName") and source.get("inlineVolumeSpec") is None:
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        errors.required(SPEC.child("source"), detail)


def _check_validations(obj: JsonObject, errors: ErrorList) -> None:
    spec = obj.get("spec") or {}
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        detail = "validations or auditAnnotations must contain at least one item"
        errors.required(SPEC.child("validations"), detail)
        errors.required(SPEC.child("auditAnnotations"), detail)


def _check_annotation_keys(obj: JsonObject, errors: ErrorList) -> None:
    name = obj["metadata"].get("name", "")
    for position, entry in enumerate((obj.get("spec") or {}).get("auditAnnotations") or ()):
        here, key = SPEC.child("auditAnnotations").index(position), f"{name}/{entry.get('key', '')}"
        errors.invalid_each(here.child("key"), key, label_key(key))
        if not entry.get("valueExpression"):
            errors.required(here.child("valueExpression"), "valueExpression is not specified")


def _check_mutation(mutation: JsonObject, errors: ErrorList, path: Path | None) -> None:
    kind = mutation.get("patchType")
    if not kind:
        errors.required(_child(path, "patchType"))
    member = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}.get(kind or "")
    if member and mutation.get(member) is None:
        errors.required(_child(path, member), f"must be specified when patchType is {kind}")
    elif member and not mutation[member].get("expression"):
        errors.required(_child(path, member).child("expression"))


def _check_param_ref(ref: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if not ref.get("name") and ref.get("selector") is None:
        errors.required(path or SPEC, "one of name or selector must be specified")
    if not ref.get("parameterNotFoundAction"):
        errors.required(_child(path, "parameterNotFoundAction"))


def _check_policy(policy: JsonObject, errors: ErrorList, path: Path | None) -> None:
    gang = policy.get("gang")
    if policy.get("basic") is None and gang is None:
        errors.invalid(path or SPEC, "", "must specify one of: `basic`, `gang`")
    if gang is not None and not gang.get("minCount"):
        errors.required(_child(path, "gang").child("minCount"))


def _check_emulation(obj: JsonObject, errors: ErrorList) -> None:
    spec = obj.get("spec") or {}
    strategy = "OldestEmulationVersion"
    if spec.get("strategy") == strategy and not spec.get("emulationVersion"):
        detail = f"must be specified when `strategy` is '{strategy}'"
        errors.required(SPEC.child("emulationVersion"), detail)


def _check_class_tolerations(obj: JsonObject, errors: ErrorList) -> None:
    scheduling = obj.get("scheduling") or {}
    path = Path("scheduling").child("tolerations")
    check_tolerations(scheduling.get("tolerations") or [], errors, path)


def _check_subset(subset: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        errors.required(path or SPEC, "must specify `addresses` or `notReadyAddresses`")


def _check_endpoint_address(address: JsonObject, errors: ErrorList, path: Path | None) -> None:
    check_ip(address.get("ip", ""), errors, _child(path, "ip"))


def _check_endpoint_port(port: JsonObject, errors: ErrorList, path: Path | None) -> None:
    number = port.get("port", 0)
    errors.invalid_each(_child(path, "port"), number, port_number(number))


def _check_template(obj: JsonObject, errors: ErrorList) -> None:
    validate_template(obj.get("template") or {}, errors, Path("template"))


def _check_selector_text(cel: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if not cel.get("expression"):
        detail = "compilation failed: the expression is empty"
        errors.invalid(_child(path, "expression"), "", detail)


def _check_request(request: JsonObject, errors: ErrorList, path: Path | None) -> None:
    here, name = path or SPEC, request.get("name", "")
    errors.invalid_each(here.child("name"), name, dns_label(name))
    if request.get("exactly") is None and not request.get("firstAvailable"):
        errors.required(here, "exactly one of `exactly` or `firstAvailable` is required")


def _check_constraint(constraint: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if constraint.get("matchAttribute") is None and constraint.get("distinctAttribute") is None:
        detail = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
            "fields are set"
        )
        errors.required(path or SPEC, detail)


def _check_request_names(devices: JsonObject, errors: ErrorList, path: Path | None) -> None:
    known: set[str] = set()
    for request in devices.get("requests") or ():
        name = request.get("name", "")
        known.add(name)
        known.update(f"{name}/{sub.get('name', '')}" for sub in request.get("firstAvailable") or ())
    for member in ("constraints", "config"):
        for position, entry in enumerate(devices.get(member) or ()):
            for index, name in enumerate(entry.get("requests") or ()):
                if name not in known:
                    here = _child(path, member).index(position).child("requests").index(index)
                    detail = (
                        "must be the name of a request in the claim or the name of a request "
                        "and a subrequest separated by '/'"
                    )
                    errors.invalid(here, name, detail)


def _check_slice(obj: JsonObject, errors: ErrorList) -> None:
    spec = obj.get("spec") or {}
    count = (spec.get("pool") or {}).get("resourceSliceCount", 0)
    if count <= 0:
        path = SPEC.child("pool").child("resourceSliceCount")
        errors.invalid(path, count, "must be greater than zero")
    places = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    if not any(spec.get(name) for name in places) and spec.get("nodeSelector") is None:
        names = ", ".join(f"`{name}`" for name in places)
        errors.required(SPEC, f"exactly one of {names} is required")
    if (selector := spec.get("nodeSelector")) is not None:
        here = SPEC.child("nodeSelector")
        check_node_selector(selector, errors, here)
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            detail = "must have exactly one node selector term"
            errors.invalid(here.child("nodeSelectorTerms"), terms, detail)


def _check_attribute(value: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if not any(item is not None for item in value.values()):
        errors.invalid(path or SPEC, "", "exactly one value must be specified")


def _check_flow_subject(subject: JsonObject, errors: ErrorList, path: Path | None) -> None:
    members = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
    kind = subject.get("kind", "")
    member = members.get(kind)
    if member is None:
        errors.not_supported(_child(path, "kind"), kind, tuple(members))
        return
    here, value = _child(path, member), subject.get(member)
    if value is None:
        errors.required(here, f"{member} is required when subject kind is '{kind}'")
        return
    if not value.get("name"):
        errors.required(here.child("name"))
    if kind == "ServiceAccount" and not value.get("namespace"):
        errors.required(here.child("namespace"), "must specify namespace for service account")


def _check_flow_rule(rule: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if not rule.get("subjects"):
        errors.required(_child(path, "subjects"), "subjects must contain at least one value")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.required(path or SPEC, detail)


def _check_flow_namespaces(rule: JsonObject, errors: ErrorList, path: Path | None) -> None:
    if not rule.get("namespaces") and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.required(_child(path, "namespaces"), detail)


def _check_distinguisher(method: JsonObject, errors: ErrorList, path: Path | None) -> None:
    known = ("ByNamespace", "ByUser")
    if method.get("type", "") not in known:
        shown = {"Type": method.get("type", "")}
        errors.not_supported(_child(path, "type"), shown, known)


def _check_level(obj: JsonObject, errors: ErrorList) -> None:
    spec = obj.get("spec") or {}
    kind, limited = spec.get("type"), spec.get("limited")
    if not kind:
        errors.required(SPEC.child("type"))
    if kind == "Limited" and limited is None:
        errors.required(SPEC.child("limited"), "must not be empty when type is Limited")
    if limited is None:
        return
    response = limited.get("limitResponse") or {}
    here = SPEC.child("limited").child("limitResponse")
    if not response.get("type"):
        errors.required(here.child("type"))
    if response.get("type") == "Queue" and response.get("queuing") is None:
        detail = "must not be empty if limited.limitResponse.type is Limited"
        errors.required(here.child("queuing"), detail)


def _check_stored_name(obj: JsonObject, errors: ErrorList) -> None:
    name = obj["metadata"].get("name", "")
    if "." not in name:
        detail = "name must be in the form of <group>.<resource>"
        errors.invalid(METADATA.child("name"), name, detail)


# -- the rows ------------------------------------------------------------------------------


def _rules_with_operations(path: str) -> tuple[MemberRule, ...]:
    return all_required(path, "operations", "apiGroups", "apiVersions", "resources")


def _webhooks() -> tuple[MemberRule, ...]:
    hook = "webhooks[]"
    return (
        required(f"{hook}.name"),
        *selectors(f"{hook}.", "namespaceSelector", "objectSelector"),
        required(f"{hook}.sideEffects", "must specify one of None, NoneOnDryRun"),
        one_of(
            f"{hook}.clientConfig", ("url", "service"), "exactly one of url or service is required"
        ),
        required(f"{hook}.admissionReviewVersions", "must specify one of v1, v1beta1"),
        *all_required(f"{hook}.clientConfig.service?", "name", "namespace"),
        *_rules_with_operations(f"{hook}.rules[]"),
        *all_required(f"{hook}.matchConditions[]", "expression", "name"),
    )


def _claim(path: str) -> tuple[MemberRule, ...]:
    devices = f"{path}.devices"
    requests = f"{devices}.requests[]"
    return (
        each(devices, _check_request_names),
        each(requests, _check_request),
        required(f"{requests}.exactly?.deviceClassName"),
        given(f"{requests}.exactly?.selectors[].cel"),
        each(f"{requests}.exactly?.selectors[].cel?", _check_selector_text),
        named(f"{requests}.firstAvailable[].name", dns_label),
        required(f"{requests}.firstAvailable[].deviceClassName"),
        each(f"{devices}.constraints[]", _check_constraint),
        *_opaque(f"{devices}.config[]"),
    )


def _opaque(path: str) -> tuple[MemberRule, ...]:
    return (
        given(f"{path}.opaque"),
        required(f"{path}.opaque?.driver"),
        given(f"{path}.opaque?.parameters"),
    )


_ROLE = (each("rules[]", _check_role_rule),)
_SUBJECTS = (each("subjects[]", _check_subject),)
_ADMISSION = "admissionregistration.k8s.io"
_POLICY_RULES = (
    required("spec.matchConstraints?.resourceRules"),
    *_rules_with_operations("spec.matchConstraints?.resourceRules[]"),
    *all_required("spec.paramKind?", "apiVersion", "kind"),
    required("spec.variables[].name", "name is not specified"),
    required("spec.variables[].expression", "expression is not specified"),
    *all_required("spec.matchConditions[]", "expression", "name"),
)
_RBAC = "rbac.authorization.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

_RULES: Mapping[tuple[str, str], tuple[MemberRule, ...]] = {
    ("", "Endpoints"): (
        each("subsets[]", _check_subset),
        each("subsets[].addresses[]", _check_endpoint_address),
        each("subsets[].notReadyAddresses[]", _check_endpoint_address),
        each("subsets[].ports[]", _check_endpoint_port),
    ),
    ("", "PodTemplate"): (whole(_check_template),),
    ("apiregistration.k8s.io", "APIService"): (
        whole(_check_service_name),
        *all_required("spec.service?", "namespace", "name"),
    ),
    ("apps", "ControllerRevision"): (given("data", "data is mandatory"),),
    ("certificates.k8s.io", "CertificateSigningRequest"): (
        whole(_check_signing_request),
        required("spec.usages"),
        required("spec.signerName"),
    ),
    ("certificates.k8s.io", "ClusterTrustBundle"): (whole(_check_trust),),
    ("certificates.k8s.io", "PodCertificateRequest"): (
        required("spec.signerName"),
        named("spec.podName", dns_subdomain),
        named("spec.serviceAccountName", dns_subdomain),
        named("spec.nodeName", dns_subdomain),
        each("spec", _check_identities),
    ),
    ("networking.k8s.io", "IngressClass"): (
        required("spec.controller"),
        *all_required("spec.parameters?", "kind", "name"),
        each("spec.parameters?", _check_scope),
    ),
    ("networking.k8s.io", "Ingress"): (
        whole(_check_ingress),
        each("spec.defaultBackend?", _check_backend),
        required("spec.rules[].http?.paths"),
        each("spec.rules[].http?.paths[]", _check_path),
    ),
    ("networking.k8s.io", "IPAddress"): (
        whole(_check_address_name),
        given("spec.parentRef"),
        *all_required("spec.parentRef?", "resource", "name"),
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        *selectors("spec.", "podSelector"),
        each("spec.ingress[].from[]", _check_peer_selectors),
        each("spec.egress[].to[]", _check_peer_selectors),
        one_of(
            "spec.ingress[].from[]",
            ("podSelector", "namespaceSelector", "ipBlock"),
            "must specify a peer",
        ),
        required("spec.ingress[].from[].ipBlock?.cidr"),
        each("spec.ingress[].ports[]", _check_peer_ports),
        one_of(
            "spec.egress[].to[]",
            ("podSelector", "namespaceSelector", "ipBlock"),
            "must specify a peer",
        ),
        required("spec.egress[].to[].ipBlock?.cidr"),
        each("spec.egress[].ports[]", _check_peer_ports),
    ),
    ("networking.k8s.io", "ServiceCIDR"): (required("spec.cidrs", "at least one CIDR required"),),
    (_RBAC, "ClusterRole"): (*_ROLE, each("aggregationRule?", _check_aggregation)),
    (_RBAC, "Role"): _ROLE,
    (_RBAC, "ClusterRoleBinding"): (
        choice("roleRef.kind", "ClusterRole"),
        required("roleRef.name"),
        *_SUBJECTS,
        each("subjects[]", _check_subject_place),
    ),
    (_RBAC, "RoleBinding"): (
        choice("roleRef.kind", "Role", "ClusterRole"),
        required("roleRef.name"),
        *_SUBJECTS,
    ),
    ("storage.k8s.io", "CSINode"): all_required("spec.drivers[]", "name", "nodeID"),
    ("storage.k8s.io", "CSIStorageCapacity"): (
        named("storageClassName", dns_subdomain),
        *selectors("", "nodeTopology"),
    ),
    ("storage.k8s.io", "VolumeAttachment"): (
        required("spec.attacher"),
        whole(_check_attached),
        named("spec.nodeName", dns_subdomain),
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): (
        required("driverName"),
        required("parameters", "must contain at least one key/value pair"),
    ),
    (_ADMISSION, "ValidatingAdmissionPolicy"): (
        given("spec.matchConstraints"),
        *selectors("spec.matchConstraints.", "namespaceSelector", "objectSelector"),
        whole(_check_validations),
        *_POLICY_RULES,
        required("spec.validations[].expression", "expression is not specified"),
        whole(_check_annotation_keys),
    ),
    (_ADMISSION, "MutatingAdmissionPolicy"): (
        given("spec.matchConstraints"),
        *selectors("spec.matchConstraints.", "namespaceSelector", "objectSelector"),
        required("spec.mutations", "mutations must contain at least one item"),
        required("spec.reinvocationPolicy"),
        *_POLICY_RULES,
        each("spec.mutations[]", _check_mutation),
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): (
        required("spec.policyName"),
        required("spec.validationActions", "at least one validation action is required"),
        each("spec.paramRef?", _check_param_ref),
        *selectors("spec.matchResources?.", "namespaceSelector", "objectSelector"),
    ),
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): (
        required("spec.policyName"),
        each("spec.paramRef?", _check_param_ref),
        *selectors("spec.matchResources?.", "namespaceSelector", "objectSelector"),
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): _webhooks(),
    (_ADMISSION, "ValidatingWebhookConfiguration"): _webhooks(),
    ("scheduling.k8s.io", "PodGroup"): (each("spec.schedulingPolicy", _check_policy),),
    ("scheduling.k8s.io", "Workload"): (
        *all_required("spec.controllerRef?", "kind", "name"),
        required("spec.podGroupTemplates"),
        required("spec.podGroupTemplates[].name"),
        each("spec.podGroupTemplates[].schedulingPolicy", _check_policy),
    ),
    ("coordination.k8s.io", "LeaseCandidate"): (
        *all_required("spec", "leaseName", "binaryVersion"),
        whole(_check_emulation),
        required("spec.strategy"),
    ),
    ("node.k8s.io", "RuntimeClass"): (required("handler"), whole(_check_class_tolerations)),
    ("discovery.k8s.io", "EndpointSlice"): (
        required("addressType"),
        required("endpoints[].addresses", "must contain at least 1 address"),
    ),
    ("resource.k8s.io", "DeviceClass"): (
        given("spec.selectors[].cel"),
        each("spec.selectors[].cel?", _check_selector_text),
        *_opaque("spec.config[]"),
    ),
    ("resource.k8s.io", "ResourceClaim"): _claim("spec"),
    ("resource.k8s.io", "ResourceClaimTemplate"): _claim("spec.spec"),
    ("resource.k8s.io", "ResourceSlice"): (
        required("spec.driver"),
        required("spec.pool.name"),
        whole(_check_slice),
        named("spec.devices[].name", dns_label),
        each("spec.devices[].attributes{}", _check_attribute),
        named("spec.devices[].taints[].key", label_key),
        required("spec.devices[].taints[].effect"),
        *all_required("spec.sharedCounters[]", "name", "counters"),
        *all_required("spec.devices[].consumesCounters[]", "counterSet", "counters"),
    ),
    ("resource.k8s.io", "DeviceTaintRule"): (
        named("spec.taint.key", label_key),
        required("spec.taint.effect"),
    ),
    ("resource.k8s.io", "ResourcePoolStatusRequest"): (required("spec.driver"),),
    (_FLOW, "FlowSchema"): (
        required("spec.priorityLevelConfiguration.name", "must reference a priority level"),
        each("spec.distinguisherMethod?", _check_distinguisher),
        each("spec.rules[]", _check_flow_rule),
        each("spec.rules[].subjects[]", _check_flow_subject),
        each("spec.rules[].resourceRules[]", _check_role_rule),
        each("spec.rules[].resourceRules[]", _check_flow_namespaces),
        required("spec.rules[].nonResourceRules[].verbs", "verbs must contain at least one value"),
        required(
            "spec.rules[].nonResourceRules[].nonResourceURLs",
            "nonResourceURLs must contain at least one value",
        ),
    ),
    (_FLOW, "PriorityLevelConfiguration"): (whole(_check_level),),
    ("internal.apiserver.k8s.io", "StorageVersion"): (whole(_check_stored_name),),
    ("storagemigration.k8s.io", "StorageVersionMigration"): (
        required("spec.resource.resource", "resource is required to be set"),
    ),
}
