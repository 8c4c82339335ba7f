"""What is seen of a change of a pod at a glance, so that only those hear of it whom it concerns.

Most pods have no volumes, no claims and no owner, and a dozen handlers would be called for each of
their writes to find that out. A subscriber says which traits it looks for; changes without any of
them may be left out, so a handler must not count on that: it does nothing with them either way.
Traits are looked up in the parts of the encoding, which pods of one template share.
"""

from kubescene.api.records.changes import ADDED, MODIFIED, Change
from kubescene.api.records.parts import LONGEST_SHARED, PARTS_SHARED, PodSections, Sections
from kubescene.api.records.record import same_metadata
from kubescene.api.scheme import GroupResource
from kubescene.bounded import BoundedDict

EVERYTHING = -1
COMES = 1
"""The pod is new."""
GOES = 512
"""The pod has gone."""
COMES_OR_GOES = COMES | GOES
OWNED = 2
"""The pod has a managing owner, or had one before the change."""
RELABELED = 4
PLACED = 8
"""The pod has a node."""
CLAIMS = 16
"""The pod names claims of devices, or has got some; may be said of others too."""
DELETING = 64
STRAY = 128
"""The pod has ended, goes without ever having had a node, or has come with a node."""
VOLUMES = 32
"""The pod has volumes; may be said of others too."""
REWRITTEN = 256
"""Metadata other than the revision have changed; may be said of others too."""

PODS = GroupResource("", "pods")
_LIVING = frozenset({"", "Pending", "Running", "Unknown"})
_MENTIONS = (
    (b'"resourceClaims"', CLAIMS),
    (b'"extendedResourceClaimStatus"', CLAIMS),
    (b'"volumes"', VOLUMES),
)


def traits_of(change: Change) -> int:
    """The traits of a change, one bit each; of other kinds than pods, all of them."""
    record, previous = change.record, change.previous
    if record.resource != PODS:
        return EVERYTHING
    payload = record.payload
    if type(payload) is PodSections:
        spec, _, status, _ = payload.members
        traits = _FOUND.get((spec, status), -1)
        if traits < 0:
            traits = _find(spec, status)
    else:
        traits = _found(*payload.members) if isinstance(payload, Sections) else _found(record.data)
    node = record.node
    if node:
        traits |= PLACED if previous is not None else PLACED | STRAY
    if record.deleting:
        traits |= DELETING if node else DELETING | STRAY
    if record.phase not in _LIVING:
        traits |= STRAY
    if change.type is not MODIFIED:
        traits |= COMES if change.type is ADDED else GOES
    if record.owner:
        traits |= OWNED
    if previous is None:
        return traits
    if previous.owner:
        traits |= OWNED
    if not same_metadata(record, previous):
        traits |= REWRITTEN if previous.labels == record.labels else REWRITTEN | RELABELED
    return traits


def _found(*texts: bytes) -> int:
    traits = 0
    for text in texts:
        for mention, trait in _MENTIONS:
            if mention in text:
                traits |= trait
    return traits


def _find(spec: bytes, status: bytes) -> int:
    """What the parts of a pod mention, found once as long as they are shared."""
    traits = _found(spec, status)
    if len(spec) <= LONGEST_SHARED and len(status) <= LONGEST_SHARED:
        _FOUND[spec, status] = traits
    return traits


_FOUND: BoundedDict[tuple[bytes, bytes], int] = BoundedDict(PARTS_SHARED)
"""What was found in the parts of pods, for all worlds: a function of their texts."""
