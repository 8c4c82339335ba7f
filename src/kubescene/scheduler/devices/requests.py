"""What a claim asks for, read once per content: claims of one template share all of it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import orjson

from kubescene.api.quantity import Quantity, parse
from kubescene.scheduler.state.memo import Shared
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.types import ReadOnlyObject

ALL = "All"
EXACT_COUNT = "ExactCount"


class DeviceRequest:
    """One request that can be satisfied by itself: an exact one, or one of a list of alternatives.

    ``parent`` is the name of the list; empty for an exact request.
    """

    __slots__ = (
        "capacity",
        "class_name",
        "count",
        "is_admin",
        "is_all",
        "mode",
        "name",
        "parent",
        "selectors",
        "tolerations",
    )

    def __init__(self, name: str, parent: str, spec: ReadOnlyObject) -> None:
        self.name = name
        self.parent = parent
        self.class_name: str = spec.get("deviceClassName") or ""
        self.mode: str = spec.get("allocationMode") or EXACT_COUNT
        self.is_all = self.mode == ALL
        self.count: int = spec.get("count") or (0 if "count" in spec else 1)
        self.is_admin = bool(spec.get("adminAccess")) and not parent
        self.selectors: tuple[str, ...] = tuple(
            (each.get("cel") or {}).get("expression") or "" for each in spec.get("selectors") or ()
        )
        self.tolerations: Sequence[ReadOnlyObject] = spec.get("tolerations") or ()
        amounts = (spec.get("capacity") or {}).get("requests") or {}
        self.capacity: Mapping[str, Quantity] = {
            name: parse(amount) for name, amount in amounts.items()
        }

    @property
    def base(self) -> str:
        """The name under which constraints know the request."""
        return self.parent or self.name

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    def is_meant_by(self, names: frozenset[str]) -> bool:
        """Whether a list of names (of a constraint) means this request; an empty one means all."""
        return not names or self.base in names or (bool(self.parent) and self.full_name in names)


class Demand:
    """One entry of ``requests``: its alternatives, of which an exact request has one."""

    __slots__ = ("alternatives", "is_prioritized", "name")

    def __init__(self, spec: ReadOnlyObject) -> None:
        self.name: str = spec["name"]
        listed = spec.get("firstAvailable") or ()
        self.is_prioritized = bool(listed)
        if listed:
            self.alternatives = tuple(
                DeviceRequest(each["name"], self.name, each) for each in listed
            )
        else:
            exact = spec.get("exactly")
            self.alternatives = () if exact is None else (DeviceRequest(self.name, "", exact),)


class ClaimSpec(Shared):
    """``spec.devices`` of a claim."""

    __slots__ = ("config", "constraints", "demands", "key")

    def __init__(self, key: bytes) -> None:
        super().__init__()
        devices = orjson.loads(key)
        self.key = key
        self.demands = tuple(Demand(each) for each in devices.get("requests") or ())
        self.constraints: Sequence[ReadOnlyObject] = devices.get("constraints") or ()
        self.config: Sequence[ReadOnlyObject] = devices.get("config") or ()

    @property
    def is_prioritized(self) -> bool:
        """Whether nodes can differ in how well they satisfy the claim."""
        return any(each.is_prioritized for each in self.demands)


def claim_spec(claim: ReadOnlyObject) -> ClaimSpec:
    """What a claim asks for."""
    return read_spec(orjson.dumps((claim.get("spec") or {}).get("devices") or {}))


@lru_cache(maxsize=POLICY.claim_specs_kept)
def read_spec(encoded: bytes) -> ClaimSpec:
    return ClaimSpec(encoded)
