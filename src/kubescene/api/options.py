"""What may be said beside the object of a write: options, preconditions, where it comes from."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec
import orjson

from kubescene.api.consultations import Consultation
from kubescene.api.records.templates import Blueprint
from kubescene.api.schemas.structural import Examined
from kubescene.api.text.encoding import encode

INDEX_MARK = b"$(INDEX)"


class OperationOrigin(msgspec.Struct, frozen=True, gc=False):
    """The scenario operation that asked for a write, as written by its author, encoded.

    A create with a count has one encoding for all its instances: ``index`` says which one this is,
    and ``$(INDEX)`` in the operation's object stands for it.
    """

    id: str
    operation: bytes
    index: int | None = None

    @classmethod
    def of(cls, operation_id: str, operation: Mapping[str, Any]) -> Self:
        return cls(operation_id, encode(operation))

    @property
    def rendered(self) -> bytes:
        """The operation of this one write."""
        if self.index is None or INDEX_MARK not in self.operation:
            return self.operation
        operation = orjson.loads(self.operation)
        text = orjson.dumps(operation["object"]).replace(INDEX_MARK, str(self.index).encode())
        # Decoded once more, since two keys may have become one.
        operation["object"] = orjson.loads(text)
        return orjson.dumps(operation)


class WriteOptions(msgspec.Struct, frozen=True):
    """What every write may carry."""

    dry_run: bool = False
    origin: OperationOrigin | None = None
    field_manager: str = ""
    strict: bool = False
    """Whether fields that the kind does not have are refused rather than dropped."""
    force: bool = False
    """Whether an apply takes fields that others own."""
    through: str = ""
    """A subresource that the write came through, such as ``scale``: owners are noted with it."""
    blueprint: Blueprint | None = None
    """What this write has in common with others that carry the same blueprint."""
    is_lasting: bool = False
    """Whether the writer promises not to change the body any more: it need not be copied."""
    examined: Examined | None = None
    """What is known already of a body of a custom kind."""
    warn: Callable[[str], None] | None = None
    """Takes what admission has to say about a request that it lets pass."""
    is_admitted: bool = False
    """Whether it is part of a request that was admitted already: policies are not asked again."""
    consultation: Consultation | None = None
    """What webhooks have answered already, of a writer who fetches answers."""


NO_OPTIONS = WriteOptions()
LASTING = WriteOptions(is_lasting=True)
ADMITTED = WriteOptions(is_admitted=True)


class DeleteOptions(msgspec.Struct, frozen=True):
    """What a deleter may ask for. ``grace_period_s`` None means the object's own wish."""

    grace_period_s: int | None = None
    uid: str = ""
    resource_version: str = ""
    propagation_policy: str = ""
    dry_run: bool = False
    warn: Callable[[str], None] | None = None
    is_admitted: bool = False
    consultation: Consultation | None = None


PLAIN_DELETE = DeleteOptions()
