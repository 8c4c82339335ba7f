"""The names of those whom ``metadata.managedFields`` tells of."""

import json

MAX_LENGTH = 128
TOO_LONG = f"Too long: may not be more than {MAX_LENGTH} bytes"


def manager_of(name: str) -> str:
    """The manager of a writer that gives none: its name up to the first slash, printable."""
    prefix = "".join(letter for letter in name.partition("/")[0] if letter.isprintable())
    return prefix.encode()[:MAX_LENGTH].decode(errors="ignore")


def manager_problem(name: str) -> str:
    """Why a name that somebody gives cannot be noted, in Kubernetes' words; empty if it can."""
    if len(name.encode()) > MAX_LENGTH:
        return TOO_LONG
    if not name.isprintable():
        return f"Invalid value: {json.dumps(name)}: should only contain printable characters"
    return ""
