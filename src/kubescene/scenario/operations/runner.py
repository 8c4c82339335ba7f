"""Carrying out one scenario operation through a client, as the engine."""

from collections.abc import Callable, Iterable

from kubescene.actors import ENGINE
from kubescene.api.patching.patches import PatchType
from kubescene.api.scheme import GroupVersionKind, Scheme
from kubescene.client import Client
from kubescene.errors import ApiError, ScenarioError
from kubescene.lane import CreateAlike
from kubescene.scenario.operations.creation import (
    Creation,
    bare_creation,
    bare_wishes,
    told,
)
from kubescene.scenario.operations.targets import Target, Targets
from kubescene.scenario.options import delete_options, write_options
from kubescene.scenario.reading.patch_text import decode_patch
from kubescene.scenario.spec import Operation, OperationKind
from kubescene.scenario.subresources import SubresourceWriter, part_of
from kubescene.types import JsonObject


def refusal(operation: Operation, error: ApiError) -> ScenarioError:
    """What the API answered, with the place of the operation that asked."""
    verb = operation.kind.value.lower()
    message = f"{verb} was refused: {error.message}"
    return ScenarioError(message, where=operation.where, path=operation.path)


class OperationRunner:
    """Plays create, patch and delete operations. A refused one ends the scenario."""

    def __init__(self, client: Client, scheme: Scheme) -> None:
        self._client = client
        self._scheme = scheme
        self._creation: Creation | None = None
        self._targets: Targets | None = None
        self._subresources = SubresourceWriter(client, scheme)

    def run(self, operation: Operation, instance: int = 0) -> int:
        """Carry it out; of one with several objects, one of them. How many there are.

        Raises `ScenarioError` that says what the API answered.
        """
        try:
            return VERBS[operation.kind](self, operation, instance)
        except ApiError as error:
            raise refusal(operation, error) from error

    def run_more(self, operation: Operation, first: int, create: CreateAlike) -> int:
        """Carry out the next instances of a counted create, as far as ``create`` can; how many."""
        creation = self._creation
        if creation is None or creation.operation is not operation:
            return 0
        return creation.create_more(first, create)

    def run_alike(self, operations: Iterable[Operation], create: CreateAlike) -> int:
        """Carry out creates of single pods, as far as ``create`` can; how many."""
        return create(ENGINE, bare_wishes(operations))

    def _create(self, operation: Operation, instance: int) -> int:
        if (shared := operation.shared_body) is not None:
            obj, options = bare_creation(operation, shared)
            self._client.create(obj, options=options)
            return 1
        creation = self._creation
        if creation is None or creation.operation is not operation:
            creation = self._creation = Creation(operation)
        obj, options = creation.instance(instance)
        if part := part_of(operation.subresource, obj):
            self._subresources.write(part, obj, options)
        else:
            self._client.create(obj, options=options)
        return operation.instances

    def _patch(self, operation: Operation, instance: int) -> int:
        targets = self._targets_of(operation)
        if targets.size:
            self._patch_one(operation, targets[instance])
        return targets.size

    def _patch_one(self, operation: Operation, target: Target) -> None:
        ref, body = target.ref, target.body
        patch_type = self._patch_type(body, ref.gvk)
        patch = decode_patch(body["patch"])
        options = told(write_options(body.get("patchOptions")), target.origin)
        if operation.subresource == "scale":
            self._subresources.scale(ref, patch, patch_type, options)
            return
        self._client.patch(
            ref, patch, patch_type=patch_type, subresource=operation.subresource, options=options
        )

    def _delete(self, operation: Operation, instance: int) -> int:
        targets = self._targets_of(operation)
        if targets.size:
            target = targets[instance]
            options = delete_options(target.body.get("deleteOptions"))
            self._client.delete(target.ref, options=options, origin=target.origin)
        return targets.size

    def _targets_of(self, operation: Operation) -> Targets:
        """Chosen once for all of them: the first may change what a selector would find."""
        targets = self._targets
        if targets is None or targets.operation is not operation:
            targets = self._targets = Targets(operation, self._client, self._scheme)
        return targets

    def _patch_type(self, body: JsonObject, gvk: GroupVersionKind) -> PatchType:
        given = body.get("patchType", body.get("PatchType"))
        if given:
            return PatchType.parse(given)
        custom = self._scheme.of_kind(gvk.api_version, gvk.kind).custom
        return PatchType.MERGE if custom else PatchType.STRATEGIC


VERBS: dict[OperationKind, Callable[[OperationRunner, Operation, int], int]] = {
    OperationKind.CREATE: OperationRunner._create,
    OperationKind.PATCH: OperationRunner._patch,
    OperationKind.DELETE: OperationRunner._delete,
}
