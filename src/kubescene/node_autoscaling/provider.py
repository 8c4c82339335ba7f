"""What a cloud has to answer: node groups of machines that are alike.

Whoever wants another cloud than ours writes a `Provider` and its `NodeGroup`s. The autoscaler asks
for sizes and instances in every loop and gives three orders: more machines, a smaller target, and
these very machines away. An order that is not carried out is refused by `ProviderError`, whose text
stands in events and in the status; nothing else may have changed then. A question that cannot be
answered raises it, too, and ends the loop; any other exception ends the run.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from kubescene.errors import KubesceneError
from kubescene.types import JsonObject


class ProviderError(KubesceneError):
    """The cloud refused an order; the text is what it said."""


class InstanceState(StrEnum):
    RUNNING = "running"
    CREATING = "creating"
    DELETING = "deleting"


class InstanceError(Struct, frozen=True):
    """Why a machine cannot be made. ``kind`` is ``OutOfResource`` or ``Other``."""

    kind: str
    code: str
    message: str


class Instance(Struct, frozen=True):
    """One machine. ``id`` is the ``spec.providerID`` that its Node will have."""

    id: str
    state: InstanceState = InstanceState.RUNNING
    error: InstanceError | None = None

    @property
    def failed_to_start(self) -> bool:
        return self.state is InstanceState.CREATING and self.error is not None


class NodeGroup(Protocol):
    """Machines that are alike, and how many of them there shall be."""

    @property
    def id(self) -> str:
        """Unique among all groups of the provider, and never changing."""

    @property
    def min_size(self) -> int: ...

    @property
    def max_size(self) -> int: ...

    @property
    def options(self) -> Mapping[str, object]:
        """Flags that differ for this group, by name, see `kubescene.node_autoscaling.flags`."""

    def target_size(self) -> int:
        """How many machines there shall be, those that are still on their way included."""

    def instances(self) -> Sequence[Instance]:
        """The machines that are known so far."""

    def template(self) -> JsonObject | None:
        """A Node as a new machine would have it; None if nobody knows before there is one."""

    def increase(self, by: int) -> None:
        """Order more machines; the target is higher at once, the machines come later."""

    def decrease_target(self, by: int) -> None:
        """Order fewer of the machines that did not come; none that exists goes away."""

    def delete(self, nodes: Sequence[str]) -> None:
        """Give these machines back, all or none; the target goes down with them."""


class Provider(Protocol):
    """A cloud."""

    def groups(self) -> Sequence[NodeGroup]:
        """All groups, by id."""

    def group_of(self, provider_id: str, name: str) -> NodeGroup | None:
        """The group that the machine of a node belongs to; None if it is nobody's, or gone."""

    def has_instance(self, provider_id: str, name: str) -> bool:
        """Whether the machine of a node still exists."""

    def node_price(self, node: JsonObject) -> float | None:
        """What such a node costs per hour; None if that is not known."""

    def pod_price(self, pod: JsonObject) -> float:
        """What a pod is worth per hour by its requests."""
