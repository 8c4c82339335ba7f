"""What the updater remembers of resizes from one loop to the next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubescene.autoscalers.vertical.objects import ContainerRecommendation, ResourceList
from kubescene.types import JsonObject

Recommended = Sequence[ContainerRecommendation]


@dataclass(slots=True)
class Attempts:
    """``first_seen``: since when each pod (by name) has been seen with a resize on its way.

    ``infeasible``: what was recommended when a resize (by the pod's uid) turned out not to be
    feasible. Mode InPlace tries again only when something gets lower.
    """

    first_seen: dict[str, int] = field(default_factory=dict)
    infeasible: dict[str, Recommended] = field(default_factory=dict)

    def since(self, pod: JsonObject, now: int) -> int:
        return self.first_seen.setdefault(pod["metadata"]["name"], now)

    def failed_with(self, pod: JsonObject, recommended: Recommended) -> None:
        self.infeasible[uid(pod)] = recommended

    def rules_out(self, pod: JsonObject, recommended: Recommended) -> bool:
        """Whether a resize failed and nothing that is recommended now is lower."""
        tried = self.infeasible.get(uid(pod))
        return tried is not None and not is_lower(recommended, tried)

    def keep_only(self, live: Iterable[JsonObject]) -> None:
        """Forget what was not feasible for pods that are gone."""
        left = {uid(pod) for pod in live}
        self.infeasible = {one: each for one, each in self.infeasible.items() if one in left}


def uid(pod: JsonObject) -> str:
    metadata = pod["metadata"]
    return str(metadata.get("uid") or metadata["name"])


def is_lower(recommended: Recommended, than: Recommended) -> bool:
    """Whether some target of some container is lower than it was."""
    before = {each.container_name: each.target or ResourceList() for each in than}
    return any(
        amount < before[each.container_name][resource]
        for each in recommended
        if each.container_name in before
        for resource, amount in (each.target or {}).items()
        if resource in before[each.container_name]
    )
