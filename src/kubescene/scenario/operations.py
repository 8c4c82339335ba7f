"""Carrying out one scenario operation through a client, as the engine."""

import json
from collections.abc import Callable
from typing import Any

import orjson

from kubescene.api.patches import PatchType
from kubescene.api.scheme import GroupVersionKind, Scheme
from kubescene.client import Client, ObjectRef
from kubescene.errors import ApiError, BadRequestError, ScenarioError
from kubescene.registry import DeleteOptions
from kubescene.scenario.spec import Operation, OperationKind
from kubescene.timeline.events import OperationOrigin
from kubescene.types import JsonObject

INDEX_MARK = b"$(INDEX)"


class OperationRunner:
    """Plays create, patch and delete operations. A refused one ends the scenario."""

    def __init__(self, client: Client, scheme: Scheme) -> None:
        self._client = client
        self._scheme = scheme
        self._verbs: dict[OperationKind, Callable[[Operation], None]] = {
            OperationKind.CREATE: self._create,
            OperationKind.PATCH: self._patch,
            OperationKind.DELETE: self._delete,
        }

    def run(self, operation: Operation) -> None:
        """Carry it out; raises `ScenarioError` that says what the API answered."""
        try:
            self._verbs[operation.kind](operation)
        except ApiError as error:
            verb = operation.kind.value.lower()
            raise ScenarioError(
                f"{verb} was refused: {error.message}", where=operation.where
            ) from error

    def _create(self, operation: Operation) -> None:
        body = operation.body
        count = body.get("count", 1)
        template = Template(body["object"])
        for index in range(count):
            # Without a count, $(INDEX) is a variable of the author's container.
            obj = template.instance(index) if "count" in body else body["object"]
            name = operation.id if count == 1 else f"{operation.id}[{index}]"
            self._client.create(obj, origin=OperationOrigin(name, {**body, "object": obj}))

    def _patch(self, operation: Operation) -> None:
        ref = self._target(operation.body)
        patch_type = self._patch_type(operation.body, ref.gvk)
        self._client.patch(
            ref,
            decode_patch(operation.body["patch"]),
            patch_type=patch_type,
            origin=OperationOrigin(operation.id, operation.body),
        )

    def _delete(self, operation: Operation) -> None:
        self._client.delete(
            self._target(operation.body),
            options=delete_options(operation.body.get("deleteOptions") or {}),
            origin=OperationOrigin(operation.id, operation.body),
        )

    def _target(self, body: JsonObject) -> ObjectRef:
        types, metadata = body["typeMeta"], body["objectMeta"]
        resource_type = self._scheme.of_kind(types["apiVersion"], types["kind"])
        namespace = metadata.get("namespace", "default") if resource_type.namespaced else ""
        return ObjectRef(resource_type.gvk, metadata["name"], namespace)

    def _patch_type(self, body: JsonObject, gvk: GroupVersionKind) -> PatchType:
        given = body.get("patchType", body.get("PatchType"))
        if given:
            return PatchType.parse(given)
        custom = self._scheme.of_kind(gvk.api_version, gvk.kind).custom
        return PatchType.MERGE if custom else PatchType.STRATEGIC


def delete_options(given: JsonObject) -> DeleteOptions:
    """``metav1.DeleteOptions`` as the registry takes them."""
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        grace_period_s=given.get("gracePeriodSeconds"),
        uid=preconditions.get("uid", ""),
        resource_version=preconditions.get("resourceVersion", ""),
        propagation_policy=given.get("propagationPolicy", ""),
    )


def decode_patch(text: str) -> Any:
    """A patch is JSON, or YAML as people like to write it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    # YAML is only imported for patches that are not JSON.
    from kubescene.scenario.loading import load_yaml

    try:
        documents = load_yaml(text, "patch")
    except ScenarioError as error:
        raise BadRequestError(str(error)) from error
    if len(documents) != 1:
        raise BadRequestError("the patch must be one JSON or YAML document")
    return documents[0]


class Template:
    """An object to be created many times, ``$(INDEX)`` standing for the number of each."""

    def __init__(self, obj: JsonObject) -> None:
        self._text = orjson.dumps(obj)

    def instance(self, index: int) -> JsonObject:
        """A fresh object. Replacing in the encoded text is safe: digits need no escaping."""
        obj: JsonObject = orjson.loads(self._text.replace(INDEX_MARK, str(index).encode()))
        return obj
