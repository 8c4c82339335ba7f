"""Whether anything is on its way between two programs of this machine, from the kernel's tables.

Bytes that were sent and not yet read stand in the queues of the two sockets. On a busy machine they
can stand there while the reader looks idle.
"""

from collections.abc import Collection
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED = "01"


def is_quiet(ports: Collection[int]) -> bool:
    """Whether all is read on the connections whose other ends have these ports.

    Where the kernel does not tell, nothing is known to be on its way.
    """
    wanted = {f"{port:04X}" for port in ports}
    for table in TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        if any(is_busy(line, wanted) for line in lines):
            return False
    return True


def is_busy(line: str, ports: Collection[str]) -> bool:
    """Whether a line of the table is about one of these ports, with bytes in a queue."""
    fields = line.split()
    if len(fields) < 5 or fields[3] != ESTABLISHED or fields[4] == "00000000:00000000":
        return False
    return any(field.rpartition(":")[2] in ports for field in fields[1:3])
