"""How many pods a Deployment may have at once, and how many it must not fall below."""

import msgspec

from kubescene.types import JsonObject


class Limits(msgspec.Struct, frozen=True, gc=False):
    """``surge`` and ``unavailable`` as counts. A Recreate strategy has neither."""

    replicas: int
    surge: int = 0
    unavailable: int = 0
    rolling: bool = True

    @property
    def most(self) -> int:
        """Pods of all sets together, at most."""
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        """Pods that have to be available."""
        return self.replicas - self.unavailable


def limits_of(deployment: JsonObject) -> Limits:
    spec = deployment["spec"]
    replicas = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return Limits(replicas, rolling=False)
    pace = strategy.get("rollingUpdate") or {}
    surge, unavailable = resolve(pace.get("maxSurge"), pace.get("maxUnavailable"), replicas)
    return Limits(replicas, surge, min(unavailable, replicas))


def resolve(
    max_surge: int | str | None, max_unavailable: int | str | None, replicas: int
) -> tuple[int, int]:
    """Both as counts: surge rounded up, unavailable rounded down.

    If both come to nothing one pod may be unavailable, since otherwise nothing could ever move.
    """
    surge = share(max_surge, replicas, rounded_up=True)
    unavailable = share(max_unavailable, replicas)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def share(value: int | str | None, of: int, *, rounded_up: bool = False) -> int:
    """A count as it is, or that percentage ``of`` a number."""
    if not isinstance(value, str):
        return value or 0
    hundredths = int(value.removesuffix("%")) * of
    return -(-hundredths // 100) if rounded_up else hundredths // 100
