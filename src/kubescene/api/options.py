"""What may be said beside the object of a write: options, preconditions, where it comes from."""

from dataclasses import dataclass
from typing import Any

import msgspec


class OperationOrigin(msgspec.Struct, frozen=True):
    """The scenario operation that asked for a write, as written by its author."""

    id: str
    operation: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WriteOptions:
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


NO_OPTIONS = WriteOptions()


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a deleter may ask for. ``grace_period_s`` None means the object's own wish."""

    grace_period_s: int | None = None
    uid: str = ""
    resource_version: str = ""
    propagation_policy: str = ""
    dry_run: bool = False


PLAIN_DELETE = DeleteOptions()
