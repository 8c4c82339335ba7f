"""Carrying out one scenario operation through a client, as the engine."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from kubescene.actors import ENGINE
from kubescene.api.blueprints import Blueprint, ClaimingBlueprint
from kubescene.api.encoding import encode
from kubescene.api.options import INDEX_MARK, OperationOrigin, WriteOptions
from kubescene.api.patches import PatchType
from kubescene.api.reading import Document, ReadingError, read_json
from kubescene.api.scheme import GroupVersionKind, Scheme
from kubescene.client import Client, ObjectRef
from kubescene.errors import ApiError, BadRequestError, ScenarioError
from kubescene.scenario.options import delete_options, write_options
from kubescene.scenario.spec import Operation, OperationKind
from kubescene.types import JsonObject

INDEX = INDEX_MARK.decode()
CLAIM = "persistentVolumeClaim"


class OperationRunner:
    """Plays create, patch and delete operations. A refused one ends the scenario."""

    def __init__(self, client: Client, scheme: Scheme) -> None:
        self._client = client
        self._scheme = scheme
        self._creation: Creation | None = None
        self._verbs: dict[OperationKind, Callable[[Operation, int], None]] = {
            OperationKind.CREATE: self._create,
            OperationKind.PATCH: self._patch,
            OperationKind.DELETE: self._delete,
        }

    def run(self, operation: Operation, instance: int = 0) -> None:
        """Carry it out; of a counted create, one instance.

        Raises `ScenarioError` that says what the API answered.
        """
        try:
            self._verbs[operation.kind](operation, instance)
        except ApiError as error:
            verb = operation.kind.value.lower()
            raise ScenarioError(
                f"{verb} was refused: {error.message}", where=operation.where
            ) from error

    def _create(self, operation: Operation, instance: int) -> None:
        creation = self._creation
        if creation is None or creation.operation is not operation:
            creation = self._creation = Creation(operation)
        obj, options = creation.instance(instance)
        self._client.create(obj, options=options)

    def _patch(self, operation: Operation, _: int) -> None:
        ref = self._target(operation.body)
        patch_type = self._patch_type(operation.body, ref.gvk)
        given = operation.body.get("patchOptions")
        options = write_options(given, operation.where, patch=True)
        self._client.patch(
            ref,
            decode_patch(operation.body["patch"]),
            patch_type=patch_type,
            options=told(options, OperationOrigin.of(operation.id, operation.body)),
        )

    def _delete(self, operation: Operation, _: int) -> None:
        self._client.delete(
            self._target(operation.body),
            options=delete_options(operation.body.get("deleteOptions"), operation.where),
            origin=OperationOrigin.of(operation.id, operation.body),
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


def told(options: WriteOptions, origin: OperationOrigin) -> WriteOptions:
    """An operation's options with where they come from, and a manager if it names none."""
    manager = options.field_manager or ENGINE.manager
    return replace(options, origin=origin, field_manager=manager)


def decode_patch(text: str) -> Any:
    """A patch is JSON, or YAML as people like to write it."""
    try:
        document = read_json(text)
    except ReadingError:
        document = _yaml_patch(text)
    if document.duplicates:
        raise BadRequestError(f"the patch gives the key {document.duplicates[0].key!r} twice")
    return document.value


def _yaml_patch(text: str) -> Document:
    # YAML is only imported for patches that are not JSON.
    from kubescene.api.yaml_text import read_yaml

    try:
        documents = read_yaml(text)
    except ReadingError as error:
        raise BadRequestError(f"the patch is neither JSON nor YAML: {error}") from error
    if len(documents) != 1:
        raise BadRequestError("the patch must be one JSON or YAML document")
    return documents[0]


class Creation:
    """A create operation, prepared for all its instances."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        body = {name: part for name, part in operation.body.items() if name != "count"}
        self._object = body["object"]
        self._asked = encode(body)
        self._options = write_options(body.get("createOptions"), operation.where)
        # Without a count, $(INDEX) is a variable of the author's container.
        counted = "count" in operation.body
        self._template = Template(self._object) if counted else None
        if self._template is not None and operation.instances > 1:
            self._options = replace(self._options, blueprint=self._template.blueprint)

    def instance(self, index: int) -> tuple[JsonObject, WriteOptions]:
        """The object to create, and the options that say where it comes from."""
        operation, template = self.operation, self._template
        obj = template.instance(index) if template else self._object
        name = operation.id if operation.instances == 1 else f"{operation.id}[{index}]"
        origin = OperationOrigin(name, self._asked, index if template else None)
        return obj, told(self._options, origin)


class Template:
    """An object to be created many times, ``$(INDEX)`` standing for the number of each."""

    def __init__(self, obj: JsonObject) -> None:
        self._text = orjson.dumps(obj)
        self._body: JsonObject = orjson.loads(self._text)
        self._name = index_in_name(self._body)
        self._claims = indexed_claims(self._body)
        total, in_name = self._text.count(INDEX_MARK), self._name.count(INDEX)
        in_claims = sum(name.count(INDEX) for name in self._claims.values())
        self.blueprint = self._blueprint() if in_name + in_claims == total else None
        """What all instances are but for their names, and those of claims; None if they differ
        in more."""

    def instance(self, index: int) -> JsonObject:
        """One of the objects, read-only: what they have in common is shared."""
        if self.blueprint is None:
            # Replacing in the encoded text is safe: digits need no escaping.
            read: JsonObject = orjson.loads(self._text.replace(INDEX_MARK, str(index).encode()))
            return read
        if not self._name and not self._claims:
            return self._body
        obj = self._body
        if self._name:
            name = self._name.replace(INDEX, str(index))
            obj = {**obj, "metadata": {**obj["metadata"], "name": name}}
        return self._claiming(obj, index) if self._claims else obj

    def _blueprint(self) -> Blueprint:
        return ClaimingBlueprint(self._body) if self._claims else Blueprint(self._body)

    def _claiming(self, obj: JsonObject, index: int) -> JsonObject:
        volumes = [*obj["spec"]["volumes"]]
        for at, name in self._claims.items():
            claim = {**volumes[at][CLAIM], "claimName": name.replace(INDEX, str(index))}
            volumes[at] = {**volumes[at], CLAIM: claim}
        return {**obj, "spec": {**obj["spec"], "volumes": volumes}}


def indexed_claims(body: JsonObject) -> dict[int, str]:
    """Those volumes of a pod, by position, whose claim has the index in its name."""
    spec = body.get("spec") if body.get("kind") == "Pod" else None
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    found = {}
    for at, volume in enumerate(volumes if isinstance(volumes, list) else ()):
        claim = volume.get(CLAIM) if isinstance(volume, dict) else None
        name = claim.get("claimName") if isinstance(claim, dict) else None
        if isinstance(name, str) and INDEX in name:
            found[at] = name
    return found


def index_in_name(body: JsonObject) -> str:
    """The name of an object if it contains the index, else an empty text."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and INDEX in name else ""
