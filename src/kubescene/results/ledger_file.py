"""``ledger.jsonl``: the ledger that a run was followed with, for those who read its results.

Folding the timeline of 50,000 pods takes a second, and measures, report and comparison all begin
with it. The run has the ledger anyway, so it leaves it behind.

The timeline stays the only truth. The first line names its size and checksum, the version that has
written it, and the checksum of the second line, which has the columns. Where any of these is not
so, because a timeline was edited or cut, the file is not used and the timeline is read.
"""

from pathlib import Path
from zlib import crc32

import msgspec

from kubescene.results.ledger import Ledger
from kubescene.results.ledger_columns import LedgerColumns, columns_of, ledger_of
from kubescene.version import __version__

SCHEMA = "kubescene.dev/ledger"
VERSION = 1
"""Raised when columns change, or what a ledger makes of the same facts."""
AT_ONCE = 1 << 20
_COLUMNS = msgspec.json.Decoder(LedgerColumns)


class LedgerHeader(msgspec.Struct, frozen=True, rename="camel"):
    """The first line."""

    schema: str = SCHEMA
    version: int = VERSION
    kubescene: str = __version__
    timeline_bytes: int = 0
    timeline_crc32: int = 0
    columns_crc32: int = 0


def write_ledger(path: Path, timeline: Path, ledger: Ledger) -> None:
    """Leave a ledger behind, for the timeline that it was made from."""
    ledger.close()
    columns = msgspec.json.encode(columns_of(ledger))
    header = _header_of(timeline, columns)
    path.write_bytes(msgspec.json.encode(header) + b"\n" + columns + b"\n")


def read_ledger(path: Path, timeline: Path) -> Ledger | None:
    """The ledger of a timeline; None if there is none that is certain to be its own."""
    try:
        first, _, rest = path.read_bytes().partition(b"\n")
    except OSError:
        return None  # Nobody needs it: the timeline has everything.
    columns = rest.removesuffix(b"\n")
    if not _is_for(first, timeline.stat().st_size, columns):
        return None
    if first != msgspec.json.encode(_header_of(timeline, columns)):
        return None
    return ledger_of(_COLUMNS.decode(columns))


def _is_for(first: bytes, size: int, columns: bytes) -> bool:
    """What can be known without reading the timeline."""
    try:
        header = msgspec.json.decode(first, type=LedgerHeader)
    except ValueError:
        return False
    return (header.timeline_bytes, header.columns_crc32) == (size, crc32(columns))


def _header_of(timeline: Path, columns: bytes) -> LedgerHeader:
    size = checksum = 0
    with timeline.open("rb", buffering=0) as file:
        while part := file.read(AT_ONCE):
            size, checksum = size + len(part), crc32(part, checksum)
    return LedgerHeader(timeline_bytes=size, timeline_crc32=checksum, columns_crc32=crc32(columns))
