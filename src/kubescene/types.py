"""Names for the shapes that several packages pass around. No behaviour lives here."""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonValue: TypeAlias = Any
"""Anything JSON can hold. ``Any`` stands only at this edge."""

JsonObject: TypeAlias = dict[str, Any]
"""A decoded API object. Once handed out it is read-only: change goes through a client."""

ReadOnlyObject: TypeAlias = Mapping[str, Any]

Nanoseconds: TypeAlias = int
"""Instants (since the Unix epoch) and durations: always exact integers."""
