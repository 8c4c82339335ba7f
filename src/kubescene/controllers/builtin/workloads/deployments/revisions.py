"""Revisions: every template gets the next number, and goes back to the front when it returns.

The number stands in an annotation of the ReplicaSet, with the numbers it had before in another;
``kubectl rollout history`` and ``undo`` read them. Sets beyond the history limit are given up.
"""

from collections.abc import Iterable

from kubescene.api.kinds import REPLICA_SET
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.workloads.deployments.rollout import Rollout
from kubescene.controllers.builtin.workloads.deployments.sets import (
    DESIRED_ANNOTATION,
    MAX_ANNOTATION,
    MAX_INT32,
    OwnedSet,
    annotations_of,
)
from kubescene.controllers.builtin.workloads.deployments.templates import (
    HASH_LABEL,
    template_hash,
    with_hash,
)
from kubescene.types import JsonObject

REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
HISTORY_ANNOTATION = "deployment.kubernetes.io/revision-history"
HISTORY_CHARACTERS = 2000
LONGEST_NAME = 253

NOT_COPIED = frozenset(
    {
        "deprecated.deployment.rollback.to",
        "kubectl.kubernetes.io/last-applied-configuration",
        DESIRED_ANNOTATION,
        HISTORY_ANNOTATION,
        MAX_ANNOTATION,
        REVISION_ANNOTATION,
    }
)
"""Annotations of a Deployment that are not those of its sets."""


def revision_of(annotations: dict[str, str]) -> int | None:
    """The revision, 0 if there is none yet, None if it cannot be read."""
    try:
        return int(annotations.get(REVISION_ANNOTATION) or "0")
    except ValueError:
        return None


def next_revision(olds: Iterable[OwnedSet]) -> int:
    """One more than any old set has."""
    return 1 + max((revision_of(old.annotations) or 0 for old in olds), default=0)


def changed_annotations(rollout: Rollout, current: dict[str, str]) -> dict[str, str]:
    """What the new set's annotations lack: those of the Deployment, and its revision.

    A set whose revision cannot be read is left alone.
    """
    known = revision_of(current)
    if known is None:
        return {}
    given = annotations_of(rollout.deployment).items()
    changes = {k: v for k, v in given if k not in NOT_COPIED and current.get(k) != v}
    revision = next_revision(rollout.olds)
    if known < revision:
        changes[REVISION_ANNOTATION] = str(revision)
        if REVISION_ANNOTATION in current:
            changes[HISTORY_ANNOTATION] = lengthened(current)
    return changes


def lengthened(annotations: dict[str, str]) -> str:
    """The history with the current revision added; if it grows too long, the oldest go."""
    history = annotations.get(HISTORY_ANNOTATION) or ""
    revisions = [*filter(None, history.split(",")), annotations[REVISION_ANNOTATION]]
    while len(",".join(revisions)) > HISTORY_CHARACTERS:
        del revisions[0]
    return ",".join(revisions)


def size_annotations(rollout: Rollout) -> dict[str, str]:
    """What the Deployment asks for now: written whenever it resizes a set."""
    limits = rollout.limits
    return {DESIRED_ANNOTATION: str(limits.replicas), MAX_ANNOTATION: str(limits.most)}


def new_replica_set(rollout: Rollout, size: int) -> JsonObject:
    """The ReplicaSet for the template as it is now."""
    deployment = rollout.deployment
    metadata, spec = deployment["metadata"], deployment["spec"]
    mark = template_hash(spec["template"], rollout.status.get("collisionCount"))
    template = with_hash(spec["template"], mark)
    selected = {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: mark}
    stem = metadata["name"][: LONGEST_NAME - len(mark) - 1]
    return {
        "apiVersion": REPLICA_SET.api_version,
        "kind": REPLICA_SET.kind,
        "metadata": {
            "name": f"{stem}-{mark}",
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": {**changed_annotations(rollout, {}), **size_annotations(rollout)},
            "ownerReferences": [controller_of(deployment)],
        },
        "spec": {
            **{name: spec[name] for name in ("minReadySeconds",) if spec.get(name)},
            "replicas": size,
            "selector": {**spec["selector"], "matchLabels": selected},
            "template": template,
        },
    }


def surplus_history(rollout: Rollout) -> list[OwnedSet]:
    """Old sets beyond the history limit, the lowest revision first, that have nothing left."""
    limit = rollout.deployment["spec"].get("revisionHistoryLimit")
    if limit is None or limit == MAX_INT32:
        return []
    kept = [old for old in rollout.olds if not old.obj["metadata"].get("deletionTimestamp")]
    ranked = sorted(kept, key=lambda old: revision_of(old.annotations) or 0)
    return [old for old in ranked[: max(len(kept) - limit, 0)] if is_spent(old)]


def is_spent(old: OwnedSet) -> bool:
    observed = old.counted("observedGeneration") >= old.obj["metadata"].get("generation", 1)
    return not old.size and not old.counted("replicas") and observed
