"""Why a pod went where it went: the attempts of a run's ``explanations.jsonl``, node by node."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kubescene.errors import ConfigurationError
from kubescene.results.output import EXPLANATIONS_FILE


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """One node in one attempt: rejected by a plugin, or scored by all of them."""

    node: str
    rejected_by: str = ""
    reasons: str = ""
    scores: tuple[int, ...] = ()
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ExplainedAttempt:
    """One attempt at one pod. ``plugins`` names the columns of the verdicts' scores."""

    pod: str
    step: str
    node: str
    message: str
    plugins: tuple[str, ...]
    verdicts: tuple[NodeVerdict, ...]


def read_attempts(run: str | Path, pod: str) -> list[ExplainedAttempt]:
    """The explained attempts at ``NAMESPACE/NAME`` (or a name in ``default``), in order."""
    file = Path(run) / EXPLANATIONS_FILE
    wanted = pod if "/" in pod else f"default/{pod}"
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {file}: {error.strerror}; name the --out directory of a run"
        ) from error
    return [attempt for attempt in _attempts(lines) if attempt.pod == wanted]


def _attempts(lines: list[bytes]) -> Iterator[ExplainedAttempt]:
    names: list[str] = []
    for line in lines:
        row = orjson.loads(line)
        if "nodes" in row:
            names = row["nodes"]
        else:
            yield _attempt(row, names)


def _attempt(row: dict[str, Any], names: list[str]) -> ExplainedAttempt:
    step = row["step"]
    columns = row["scores"]
    return ExplainedAttempt(
        pod=row["pod"],
        step=f"{step['major']}.{step['minor']}",
        node=row.get("node", ""),
        message=row.get("message", ""),
        plugins=tuple(columns),
        verdicts=(*_fitting(row, names), *_rejected(row, names)),
    )


def _fitting(row: dict[str, Any], names: list[str]) -> list[NodeVerdict]:
    """The nodes that passed, the best first; a single one is taken without scoring."""
    columns = row["scores"].values()
    scored = [
        NodeVerdict(
            names[index],
            scores=tuple(c["normalized"][place] * c["weight"] for c in columns),
            total=row["totals"][place],
        )
        for place, index in enumerate(row["scored"])
    ]
    chosen = row.get("node", "")
    scored.sort(key=lambda v: (-(v.total or 0), v.node != chosen))
    return scored or [NodeVerdict(names[index]) for index in row["feasible"]]


def _rejected(row: dict[str, Any], names: list[str]) -> Iterator[NodeVerdict]:
    for group in row["filters"]:
        for index in group["nodes"]:
            yield NodeVerdict(names[index], group["plugin"], ", ".join(group["reasons"]))
