"""ValidatingAdmissionPolicy: requests that a rule of the user's does not hold for are refused.

As in kube-apiserver v1.36. Policies and bindings are asked in the order of their names (there it is
that of chance), and the first that denies speaks for all. Annotations for the audit log go with the
request; one that fails denies.
"""

from collections.abc import Iterator
from typing import Any

import orjson
from msgspec import Struct

from kubescene.errors import (
    ApiError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    RequestTooLargeError,
    StatusCause,
    UnauthorizedError,
)
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.admission.policies.compiling import (
    TEXT,
    TEXT_OR_NONE,
    TRUTH,
    Expression,
    compiled,
)
from kubescene.registry.admission.policies.evaluating import (
    BUDGET,
    FailedExpressionError,
    NoBudgetError,
    PolicyEvaluation,
)
from kubescene.registry.admission.policies.hooks import (
    ConfigurationFault,
    Hook,
    check_params,
    hooks_of,
    invocations,
    is_exempt,
    meets_conditions,
    names_for,
    namespace_seen,
)
from kubescene.registry.admission.policies.matching import AdmissionSubject, Surroundings, match
from kubescene.registry.admission.policies.resources import VALIDATING, VALIDATING_BINDINGS
from kubescene.types import JsonObject

LONGEST_MESSAGE = 5 * 1024
LONGEST_ANNOTATION = 10 * 1024
FAILURES = "validation.policy.admission.k8s.io/validation_failure"
_REFUSALS: dict[str, type[ApiError]] = {
    "Forbidden": ForbiddenError,
    "Invalid": InvalidError,
    "RequestEntityTooLarge": RequestTooLargeError,
    "Unauthorized": UnauthorizedError,
}


class PolicyRule(Struct, frozen=True):
    """One validation of a policy."""

    spec: JsonObject
    expression: Expression
    message: Expression | None


class CheckedPolicy(Struct, frozen=True):
    """A policy with the expressions that only those have which check."""

    hook: Hook
    rules: tuple[PolicyRule, ...]
    annotations: tuple[tuple[str, Expression], ...]


class PolicyDenial(Struct, frozen=True):
    """One policy's no; without a binding if the policy itself cannot be applied."""

    policy: str
    binding: str
    message: str
    reason: str = ""

    @property
    def told(self) -> str:
        by = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{by} denied request: {self.message}"


class RulesVerdict(Struct, frozen=True):
    """What a policy says: messages with reasons, and what went wrong with its annotations."""

    denied: tuple[tuple[str, str, int], ...] = ()
    """Message, reason, and which of the rules."""
    faults: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


NO_OBJECTION = RulesVerdict()


class ValidatingPolicies:
    """The plugin: it looks at the object as it would be stored."""

    name = "ValidatingAdmissionPolicy"

    def __init__(self, where: Surroundings) -> None:
        self._where = where
        self._policies: tuple[CheckedPolicy, ...] | None = None

    def admit(self, request: AdmissionRequest) -> JsonObject:
        return request.obj

    def validate(self, request: AdmissionRequest) -> None:
        if is_exempt(request):
            return
        if self._policies is None:
            hooks = hooks_of(VALIDATING, VALIDATING_BINDINGS, self._where)
            self._policies = tuple(map(_checked, hooks))
        subject = AdmissionSubject.of(request)
        denials = [
            denial for policy in self._policies for denial in self._asked(policy, request, subject)
        ]
        if denials:
            raise refusal(request, denials[0])

    def _asked(
        self, policy: CheckedPolicy, request: AdmissionRequest, subject: AdmissionSubject
    ) -> Iterator[PolicyDenial]:
        """What a policy denies, by all of its bindings."""
        hook, where = policy.hook, self._where
        try:
            matched = match(hook.spec["matchConstraints"], subject, where)
            if matched is None:
                return
            check_params(hook, where)
        except (ConfigurationFault, NotFoundError) as fault:
            yield from _misconfigured(hook, "", fault)
            return
        for name, binding in hook.bindings:
            try:
                found = invocations(hook, binding, subject, where)
            except (ConfigurationFault, NotFoundError) as fault:
                yield from _misconfigured(hook, name, fault)
                continue
            for params in found:
                names = names_for(request, subject, matched, params, where)
                verdict = verdict_on(policy, names, namespace_seen(subject, where))
                yield from _acted_on(verdict, hook.name, name, binding, request)


def verdict_on(
    policy: CheckedPolicy, names: dict[str, Any], namespace: JsonObject | None
) -> RulesVerdict:
    """What the expressions of a policy say of a request."""
    hook = policy.hook
    try:
        if not meets_conditions(hook, names):
            return NO_OBJECTION
        names = {**names, "namespaceObject": namespace}
        denied = tuple(_denied(policy, names))
        annotations, faults = _annotated(policy, names)
        return RulesVerdict(denied, faults, annotations)
    except (FailedExpressionError, NoBudgetError) as error:
        return RulesVerdict(((str(error), "", 0),)) if hook.fails else NO_OBJECTION


def _denied(policy: CheckedPolicy, names: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Message, reason and place of each rule that does not hold."""
    hook = policy.hook
    evaluation = PolicyEvaluation(names, hook.variables)
    values = [_attempted(evaluation, rule.expression) for rule in policy.rules]
    texts, fault = _messages(policy, names, evaluation.left)
    for index, (rule, value, text) in enumerate(zip(policy.rules, values, texts, strict=True)):
        if isinstance(value, FailedExpressionError):
            if hook.fails:
                yield str(value), "", index
        elif fault:
            if hook.fails:
                yield f"failed messageExpression: {fault}", "", index
        elif value is not True:
            yield _message(rule, text), rule.spec.get("reason") or "Invalid", index


def _attempted(evaluation: PolicyEvaluation, expression: Expression | None) -> Any:
    """A value, or why there is none."""
    try:
        return None if expression is None else evaluation.value(expression)
    except FailedExpressionError as error:
        return error


def _messages(policy: CheckedPolicy, names: dict[str, Any], left: int) -> tuple[list[Any], str]:
    """What the expressions for messages give, and why they could not go on."""
    evaluation = PolicyEvaluation(names, policy.hook.variables, left)
    try:
        return [_attempted(evaluation, rule.message) for rule in policy.rules], ""
    except NoBudgetError as error:
        return [None] * len(policy.rules), str(error)


def _message(rule: PolicyRule, text: Any) -> str:
    """What is told of a rule: as its expression for it says if that makes one short line."""
    told = text.strip() if isinstance(text, str) else ""
    if len(told.encode()) > LONGEST_MESSAGE or "\n" in told:
        told = ""
    told = told or (rule.spec.get("message") or "").strip()
    return told or f"failed expression: {rule.expression.text.strip()}"


def _annotated(
    policy: CheckedPolicy, names: dict[str, Any]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """What a policy has to say to an audit log, and what went wrong with it."""
    evaluation = PolicyEvaluation(names, policy.hook.variables, BUDGET)
    told, faults = [], []
    for key, expression in policy.annotations:
        value = _attempted(evaluation, expression)
        if isinstance(value, FailedExpressionError):
            if policy.hook.fails:
                faults.append(str(value))
        elif isinstance(value, str) and value.strip():
            told.append((f"{policy.hook.name}/{key}", _cut(value.strip(), LONGEST_ANNOTATION)))
    return tuple(told), tuple(faults)


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


def _acted_on(
    verdict: RulesVerdict, policy: str, name: str, binding: JsonObject, request: AdmissionRequest
) -> Iterator[PolicyDenial]:
    """What a binding makes of a verdict: denials, or warnings."""
    for message, reason, _ in verdict.denied:
        if "Deny" in binding["validationActions"]:
            yield PolicyDenial(policy, name, message, reason)
        if "Warn" in binding["validationActions"]:
            request.warn(
                f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding "
                f"'{name}': {message}"
            )
    for message in verdict.faults:
        yield PolicyDenial(policy, name, message)
    _annotate(verdict, policy, name, binding, request)


def _annotate(
    verdict: RulesVerdict, policy: str, name: str, binding: JsonObject, request: AdmissionRequest
) -> None:
    """Tell the audit log; of several bindings that say the same once."""
    consultation = request.options.consultation
    if consultation is None:
        return
    for key, value in verdict.annotations:
        before = consultation.annotations.get(key, "")
        if value not in before.split(", "):
            request.annotate({key: f"{before}, {value}" if before else value})
    if "Audit" in binding["validationActions"] and verdict.denied:
        message, _, index = verdict.denied[0]
        failure = {
            "message": message,
            "policy": policy,
            "binding": name,
            "expressionIndex": index,
            "validationActions": binding["validationActions"],
        }
        # There, too, what comes after the first is not told.
        consultation.annotations.setdefault(FAILURES, orjson.dumps([failure]).decode())


def _misconfigured(hook: Hook, binding: str, fault: Exception) -> Iterator[PolicyDenial]:
    if hook.fails:
        of = "binding" if binding else "policy"
        yield PolicyDenial(hook.name, binding, f"failed to configure {of}: {fault}")


def refusal(request: AdmissionRequest, denial: PolicyDenial) -> ApiError:
    """A policy's no, as kube-apiserver tells it."""
    forbidden = request.forbidden(denial.told)
    error = _REFUSALS[denial.reason or "Invalid"](
        forbidden.message,
        name=forbidden.name,
        group=forbidden.group,
        kind=forbidden.kind,
        causes=(StatusCause("", denial.told),),
    )
    error.is_by_policy = True
    return error


def _checked(hook: Hook) -> CheckedPolicy:
    rules = tuple(
        PolicyRule(
            each,
            compiled(each["expression"], TRUTH, hook.words),
            compiled(text, TEXT, hook.words) if (text := each.get("messageExpression")) else None,
        )
        for each in hook.spec.get("validations") or ()
    )
    annotations = tuple(
        (each["key"], compiled(each["valueExpression"], TEXT_OR_NONE, hook.words))
        for each in hook.spec.get("auditAnnotations") or ()
    )
    return CheckedPolicy(hook, rules, annotations)
