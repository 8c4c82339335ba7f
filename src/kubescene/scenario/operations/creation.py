"""What a create operation makes: one object, several, or one template many times."""

from collections.abc import Iterable, Iterator

import orjson
from msgspec import structs

from kubescene.actors import ENGINE
from kubescene.api.options import INDEX_MARK, OperationOrigin, WriteOptions
from kubescene.api.records.templates import (
    Blueprint,
    ClaimingBlueprint,
    HostBlueprint,
    named,
    says_host,
)
from kubescene.api.text.encoding import encode
from kubescene.lane import CreateAlike, Wish
from kubescene.scenario.options import write_options
from kubescene.scenario.reading.alike import SharedBody
from kubescene.scenario.spec import Operation
from kubescene.types import JsonObject

INDEX = INDEX_MARK.decode()
ESCAPED = b"$" + INDEX_MARK
"""Stands for the mark itself, as `$$(NAME)` does in the fields of a container."""
BUNCH = 64
"""So many objects are made at a time: about two milliseconds."""
CLAIM = "persistentVolumeClaim"
BARE = structs.replace(write_options(None), is_lasting=True)
"""What is said of a create that has no options. The engine changes no object that it creates."""


def told(
    options: WriteOptions, origin: OperationOrigin, blueprint: Blueprint | None = None
) -> WriteOptions:
    """An operation's options with where they come from, and a manager if it names none."""
    # Once per instance of a counted create, so not by `replace`, which looks at every field.
    return WriteOptions(
        options.dry_run,
        origin,
        options.field_manager or ENGINE.manager,
        options.strict,
        options.force,
        options.through,
        blueprint,
        options.is_lasting,
        warn=options.warn,
    )


def bare_creation(operation: Operation, shared: SharedBody) -> tuple[JsonObject, WriteOptions]:
    """The one object that an operation creates, and options of which it says nothing."""
    obj = operation.body["object"]
    origin = OperationOrigin(operation.id, shared.asked(obj["metadata"]["name"]))
    return obj, told(BARE, origin, shared.blueprint)


def bare_wishes(operations: Iterable[Operation]) -> Iterator[Wish]:
    """Of operations the first that create a pod each, of which they say nothing but its name."""
    known: dict[SharedBody, WriteOptions] = {}
    for operation in operations:
        shared = operation.shared_body
        if shared is None or not shared.is_of_pods:
            return
        obj = operation.body["object"]
        name = obj["metadata"]["name"]
        origin = OperationOrigin(operation.id, shared.asked(name))
        options = known.get(shared)
        if options is None:
            options = known[shared] = told(BARE, origin, shared.blueprint)
        yield Wish(name, origin, obj, options)


class Creation:
    """A create operation, prepared for all its instances."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        left_out = ("count", "objectFrom")
        self._body = {k: v for k, v in operation.body.items() if k not in left_out}
        self._objects = operation.objects or (self._body["object"],)
        self._is_one_of_many = operation.instances != 1
        self._asked = b"" if operation.objects else encode(self._body)
        self._options = write_options(self._body.get("createOptions"))
        # Without a count, $(INDEX) is a variable of the author's container.
        counted = "count" in operation.body
        self._template = IndexedTemplate(self._objects[0]) if counted else None
        self._blueprint: Blueprint | None = None
        if self._template is not None:
            # Instances are ours, and nobody changes them.
            self._options = structs.replace(self._options, is_lasting=True)
            if operation.instances > 1:
                self._blueprint = self._template.blueprint

    def instance(self, index: int) -> tuple[JsonObject, WriteOptions]:
        """The object to create, and the options that say where it comes from."""
        operation, template, options = self.operation, self._template, self._options
        if template is not None:
            obj, blueprint = template.instance(index), self._blueprint
        else:
            shared = operation.alike[index] if operation.alike else None
            blueprint = None if shared is None else shared.blueprint
            obj = self._objects[index]
        name = f"{operation.id}[{index}]" if self._is_one_of_many else operation.id
        asked = self._asked or encode({**self._body, "object": obj})
        origin = OperationOrigin(name, asked, index if template else None)
        return obj, told(options, origin, blueprint)

    def create_more(self, first: int, create: CreateAlike) -> int:
        """Have the next instances made like the first of them, if only their names differ."""
        template, operation = self._template, self.operation
        if template is None or self._blueprint is None or operation.subresource:
            return 0
        if not template.differs_in_name_alone:
            return 0
        obj, options = self.instance(first)
        last = min(first + BUNCH, operation.instances)
        asked, begins, name_of = self._asked, f"{operation.id}[", template.name_of
        return create(
            ENGINE,
            (
                Wish(name_of(at), OperationOrigin(f"{begins}{at}]", asked, at), obj, options)
                for at in range(first, last)
            ),
        )


class IndexedTemplate:
    """An object to be created many times, ``$(INDEX)`` standing for the number of each.

    ``$$(INDEX)`` stands for the text ``$(INDEX)``.
    """

    def __init__(self, obj: JsonObject) -> None:
        self._text = orjson.dumps(obj)
        self._has_escapes = ESCAPED in self._text
        self._body: JsonObject = orjson.loads(self._text)
        self._name = index_in_name(self._body)
        self._claims = indexed_claims(self._body)
        self._is_host = bool(self._name) and says_host(self._body)
        total, in_name = self._text.count(INDEX_MARK), self._name.count(INDEX)
        in_name *= 2 if self._is_host else 1
        in_claims = sum(name.count(INDEX) for name in self._claims.values())
        is_alike = in_name + in_claims == total and not self._has_escapes
        self.blueprint = self._blueprint() if is_alike else None
        """What all instances are but for their names, and those of claims; None if they differ
        in more."""

    @property
    def differs_in_name_alone(self) -> bool:
        """Whether each instance has a name of its own, and nothing else."""
        return type(self.blueprint) is Blueprint and bool(self._name)

    def name_of(self, index: int) -> str:
        return self._name.replace(INDEX, str(index))

    def instance(self, index: int) -> JsonObject:
        """One of the objects, read-only: what they have in common is shared."""
        if self.blueprint is None:
            # Replacing in the encoded text is safe: digits need no escaping.
            read: JsonObject = orjson.loads(self._filled(str(index).encode()))
            return read
        if not self._name and not self._claims:
            return self._body
        obj = self._body
        if self._name:
            obj = named(obj, self._name.replace(INDEX, str(index)), is_host=self._is_host)
        return self._claiming(obj, index) if self._claims else obj

    def _filled(self, number: bytes) -> bytes:
        if not self._has_escapes:
            return self._text.replace(INDEX_MARK, number)
        parts = self._text.split(ESCAPED)
        return INDEX_MARK.join(part.replace(INDEX_MARK, number) for part in parts)

    def _blueprint(self) -> Blueprint:
        if self._is_host:
            return HostBlueprint(self._body)
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
