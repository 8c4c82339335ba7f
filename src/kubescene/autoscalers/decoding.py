"""What is said of an object that has not the types it should have."""

import msgspec


def complaint(error: msgspec.ValidationError, below: str = "") -> str:
    """The message with the field in front: ``spec.minReplicas: Expected `int`, got `str```."""
    said, at, path = str(error).rpartition(" - at `$")
    where = below + path.rstrip("`") if at else below
    return ": ".join(filter(None, (where.lstrip("."), said if at else str(error))))
