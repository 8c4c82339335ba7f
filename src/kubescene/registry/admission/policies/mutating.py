"""MutatingAdmissionPolicy: rules of the user's that change what is written.

As in kube-apiserver v1.36: each mutation is an apply configuration that is merged into the object,
or a JSON patch. Once something has been mutated, all that changes objects is asked once more, those
policies among it whose ``reinvocationPolicy`` is ``IfNeeded``. Policies and bindings are asked in
the order of their names.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kubescene.api.field_ownership.field_shapes import FREE, FieldShape, custom_shape, kind_shape
from kubescene.api.patching.apply import merged
from kubescene.api.patching.patches import json_patch
from kubescene.api.schemas.strict_decoding import strict_error
from kubescene.cel.nodes import BuiltMessage
from kubescene.cel.values import is_list
from kubescene.errors import ApiError, ForbiddenError, InternalError, NotFoundError, StatusCause
from kubescene.registry import decoding
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.admission.policies.compiling import (
    JSON_PATCH,
    OBJECT,
    Expression,
    compiled,
)
from kubescene.registry.admission.policies.evaluating import (
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
from kubescene.registry.admission.policies.matching import (
    AdmissionSubject,
    Matched,
    Surroundings,
    match,
)
from kubescene.registry.admission.policies.resources import MUTATING, MUTATING_BINDINGS
from kubescene.types import JsonObject, JsonValue

TEST_FAILED = ": test failed"
"""How the refusal of a JSON patch ends if its test fails."""


class MutatingPolicy(Struct, frozen=True):
    """A policy with its mutations: how each changes the object, and the expression for it."""

    hook: Hook
    mutations: tuple[tuple[str, Expression], ...]


class Invocation(Struct, frozen=True):
    """A policy that is asked about a request, by one binding and with one object of params."""

    policy: MutatingPolicy
    binding: str
    matched: Matched
    params: JsonObject | None

    @property
    def key(self) -> tuple[str, ...]:
        metadata = (self.params or {}).get("metadata") or {}
        params = (metadata.get("namespace", ""), metadata.get("name", ""))
        return (self.policy.hook.name, self.binding, *params)


class FailedMutation(Exception):  # noqa: N818
    """A mutation cannot be made of this object; says why."""


class MutatingPolicies:
    """The plugin."""

    name = "MutatingAdmissionPolicy"
    reinvokes = True

    def __init__(self, where: Surroundings) -> None:
        self._where = where
        self._policies: tuple[MutatingPolicy, ...] | None = None

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if is_exempt(request) or request.verb not in ("create", "update"):
            return request.obj
        if self._policies is None:
            hooks = hooks_of(MUTATING, MUTATING_BINDINGS, self._where)
            self._policies = tuple(map(_mutating, hooks))
        faults: list[tuple[str, str]] = []
        obj, subject = request.obj, AdmissionSubject.of(request)
        asked = [each for policy in self._policies for each in self._asked(policy, subject, faults)]
        for invocation in asked:
            try:
                obj = self._invoked(invocation, request.with_object(obj), faults)
            except (FailedExpressionError, NoBudgetError) as error:
                _note(faults, invocation.policy.hook, invocation.binding, str(error), "Invalid")
        if faults:
            raise refusal(request, faults)
        return obj

    def _asked(
        self, policy: MutatingPolicy, subject: AdmissionSubject, faults: list[tuple[str, str]]
    ) -> Iterator[Invocation]:
        hook, where = policy.hook, self._where
        try:
            matched = match(hook.spec["matchConstraints"], subject, where)
            if matched is None:
                return
            check_params(hook, where)
        except (ConfigurationFault, NotFoundError) as fault:
            _note(faults, hook, "", f"failed to configure policy: {fault}")
            return
        for name, binding in hook.bindings:
            try:
                found = invocations(hook, binding, subject, where)
            except (ConfigurationFault, NotFoundError) as fault:
                _note(faults, hook, name, f"failed to configure binding: {fault}")
                continue
            for params in found:
                yield Invocation(policy, name, matched, params)

    def _invoked(
        self, invocation: Invocation, request: AdmissionRequest, faults: list[tuple[str, str]]
    ) -> JsonObject:
        """The object as a policy leaves it."""
        policy, hook, again = invocation.policy, invocation.policy.hook, request.reinvocation
        assert again is not None
        if not meets_conditions(hook, self._names(invocation, request)):
            return request.obj
        if again.is_second and invocation.key not in again.invoked:
            return request.obj
        if hook.spec.get("reinvocationPolicy") == "IfNeeded":
            again.invoked.add(invocation.key)
        for kind, expression in policy.mutations:
            try:
                request = self._mutated(kind, expression, invocation, request)
                again.is_due = True
            except (FailedExpressionError, FailedMutation, NoBudgetError) as error:
                _note(faults, hook, invocation.binding, str(error), "Invalid")
        return request.obj

    def _names(self, invocation: Invocation, request: AdmissionRequest) -> dict[str, Any]:
        subject, matched = AdmissionSubject.of(request), invocation.matched
        return names_for(request, subject, matched, invocation.params, self._where)

    def _mutated(
        self, kind: str, expression: Expression, invocation: Invocation, request: AdmissionRequest
    ) -> AdmissionRequest:
        names = self._names(invocation, request)
        names["namespaceObject"] = namespace_seen(AdmissionSubject.of(request), self._where)
        evaluation = PolicyEvaluation(names, invocation.policy.hook.variables)
        if expression.program is None:
            raise FailedMutation(expression.fault)
        value = evaluation.value(expression)
        if kind == "JSONPatch":
            new = _patched(names["object"], value)
        else:
            new = self._applied(names["object"], value, invocation.matched)
        return request.with_object(self._accepted(new, invocation.matched, request))

    def _applied(self, obj: JsonObject, value: BuiltMessage, matched: Matched) -> JsonObject:
        """The object with an apply configuration merged into it."""
        if faults := [*_misnamed(value, "Object")]:
            raise FailedMutation("type mismatch: " + "\n".join(faults))
        config = _plain(value)
        assert isinstance(config, dict)
        config = {**config, "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        shape = self._shape(matched)
        if undeclared := [*_undeclared(config, shape, "")]:
            why = undeclared[0] if len(undeclared) == 1 else "errors:\n  " + "\n  ".join(undeclared)
            message = f"failed to convert patch object to typed object: {why}"
            raise FailedMutation(f"error applying patch: {message}")
        if atomic := [*_atomics(config, shape, "")]:
            message = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
            raise FailedMutation(f"error applying patch: invalid ApplyConfiguration: {message}")
        made = merged(obj, config, shape)
        assert isinstance(made, dict)
        return made

    def _shape(self, matched: Matched) -> FieldShape:
        custom = self._where.custom.of(matched.kind)
        return custom_shape(custom.root) if custom else kind_shape(matched.kind) or FREE

    def _accepted(self, new: JsonObject, matched: Matched, request: AdmissionRequest) -> JsonObject:
        """What was mutated, with defaults, in the version in which the request goes on."""
        where, kind = self._where, matched.resource_type
        if matched.kind != kind.gvk:
            return new  # the body of a subresource
        if complaints := decoding.unknown_complaints(new, kind, where.custom):
            why = strict_error(kind.gvk, complaints).message
            raise InternalError(f"Internal error occurred: {why}")
        new = decoding.accepted(new, kind, where.custom)
        stored = request.resource_type
        if kind.custom and kind is not stored:
            return where.custom.converted(new, stored.gvk)
        return new


def _mutating(hook: Hook) -> MutatingPolicy:
    mutations = []
    for each in hook.spec.get("mutations") or ():
        kind = each["patchType"]
        member, wanted = (
            ("jsonPatch", JSON_PATCH) if kind == "JSONPatch" else ("applyConfiguration", OBJECT)
        )
        text = each[member]["expression"]
        mutations.append((kind, compiled(text, wanted, hook.words)))
    return MutatingPolicy(hook, tuple(mutations))


# -- patches ---------------------------------------------------------------------------------


def _patched(obj: JsonObject, operations: list[BuiltMessage]) -> JsonObject:
    """The object as a JSON patch leaves it; one whose test fails does nothing."""
    steps: list[JsonValue] = []
    for each in operations:
        if isinstance(each.get("value"), BuiltMessage) and (
            faults := [*_misnamed(each["value"], "Object")]
        ):
            raise FailedMutation("type mismatch: " + "\n".join(faults))
        step = {"op": "", "path": "", **each}
        steps.append(_plain(step))
    try:
        made = json_patch(obj, steps)
    except ApiError as error:
        if error.message.endswith(TEST_FAILED):
            return obj
        raise FailedMutation(f"JSON Patch: {error}") from None
    assert isinstance(made, dict)
    return made


def _plain(value: Any) -> JsonValue:
    """A value of the language as it stands in objects."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if is_list(value):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, bool | int | float | str | None):
        return value
    raise FailedMutation(f"unsupported value in a patch: {type(value).__name__}")


def _misnamed(value: Any, path: str) -> Iterator[str]:
    """Values of types that are not named after the place where they stand."""
    if isinstance(value, BuiltMessage):
        if value.of != path:
            yield (
                f'unexpected type name "{value.of}", expected "{path}", which matches field name '
                "path from root Object type"
            )
        for name, each in value.items():
            yield from _misnamed(each, f"{path}.{name}")
    elif is_list(value):
        for each in value:
            yield from _misnamed(each, path)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _misnamed(each, path)


def _undeclared(value: JsonValue, shape: FieldShape, path: str) -> Iterator[str]:
    """Members that the kind does not have."""
    if isinstance(value, dict) and shape.division.name == "MAP":
        for name, each in value.items():
            if not shape.knows(name):
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from _undeclared(each, shape.below(name), f"{path}.{name}")
    elif isinstance(value, list) and shape.element is not None:
        for position, each in enumerate(value):
            yield from _undeclared(each, shape.element, f"{path}[{position}]")


def _atomics(value: JsonValue, shape: FieldShape, path: str) -> Iterator[str]:
    """Places that can only be replaced as a whole, which a configuration may not do."""
    if isinstance(value, dict | list) and shape.division.name == "LEAF":
        yield path
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in shape.fields:
                yield from _atomics(each, shape.below(name), f"{path}.{name}")
    elif isinstance(value, list) and shape.element is not None:
        for position, each in enumerate(value):
            yield from _atomics(each, shape.element, f"{path}[{position}]")


# -- refusals --------------------------------------------------------------------------------


def _note(
    faults: list[tuple[str, str]], hook: Hook, binding: str, why: str, reason: str = ""
) -> None:
    """Keep what went wrong with a policy, if it fails closed."""
    if hook.fails:
        by = (
            f"policy '{hook.name}' with binding '{binding}'" if binding else f'policy "{hook.name}"'
        )
        faults.append((f"{by} denied request: {why}", reason))


def refusal(request: AdmissionRequest, faults: list[tuple[str, str]]) -> ForbiddenError:
    """All that went wrong; the first speaks, and its reason stands beside the code of another."""
    forbidden = request.forbidden("admission request denied by policy")
    error = ForbiddenError(
        faults[0][0],
        name=forbidden.name,
        group=forbidden.group,
        kind=forbidden.kind,
        causes=tuple(StatusCause("", message) for message, _ in faults),
    )
    error.reason = faults[0][1] or error.reason
    error.is_by_policy = True
    return error
