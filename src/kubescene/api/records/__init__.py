"""Stored objects: what a record is, how it is encoded, and what a change of one is.

`Record` is the face: an encoded object and the few fields that everybody asks for. How it is
encoded (`parts`) is known here, in the store and in the shortcuts of the registry, and nowhere
else; `keys` is what others may ask of it. `changes` are what a world is told of, `traits` what is
seen of a change at a glance, `templates` promise that many writes have one body.
"""

from kubescene.api.records.parts import Composite
from kubescene.api.records.parts import status_of as status_of_key
from kubescene.api.records.record import (
    Payload,
    Record,
    controller_uid,
    cut_revision,
    make_record,
    may_be_held,
    same_metadata,
    sharing,
    successor,
    versioned,
)

__all__ = [
    "Composite",
    "Payload",
    "Record",
    "controller_uid",
    "cut_revision",
    "make_record",
    "may_be_held",
    "same_metadata",
    "sharing",
    "status_of_key",
    "successor",
    "versioned",
]
