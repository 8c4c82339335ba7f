"""What was there before a scenario, and stays: no fact tells of it, so results do not know it."""

from kubescene.api.kinds import NODE, POD
from kubescene.client import Reader

SHOWN = 3


def kept_warnings(reader: Reader) -> tuple[str, ...]:
    """Nodes and pods that numbers leave out; a served world keeps what its users ask it to."""
    nodes = [each["metadata"]["name"] for each in reader.list(NODE)]
    pods = [
        f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in reader.list(POD)
    ]
    told = {"node": nodes, "pod": pods}
    return tuple(_warning(kind, names) for kind, names in told.items() if names)


def _warning(kind: str, names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (
        f"{kind}s that were there before the scenario, and stay (kubescene.dev/keep), are not in "
        f"tables, measures and expectations: {', '.join(names[:SHOWN])}{more}; let the scenario "
        "create what is to be counted"
    )
