"""Recordings of kube-scheduler: a case is played pod by pod, or step by step."""

from typing import Any

from kubescene.errors import ConfigurationError
from kubescene.testing.goldens.comparing import Aspect, Comparison, Tally
from kubescene.testing.goldens.configuring import options_of
from kubescene.testing.goldens.isolated import IsolatedReplay
from kubescene.testing.goldens.profiles import compare_profiles
from kubescene.testing.goldens.queue_mode import QueueReplay
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject

UNIT = "attempts"


def replay(golden: Golden, tally: Tally) -> None:
    comparison = Comparison(golden.id, tally)
    theirs = golden.result.get("configError", "")
    mode = QueueReplay if "steps" in golden.case else IsolatedReplay
    try:
        options = options_of(golden.case)
        world = mode(golden, options, tally)
    except ConfigurationError as error:
        comparison.equal(Aspect.CONFIG_ERROR, str(error), theirs)
        return
    except Exception as error:
        # Whatever our scheduler raises is a difference.
        comparison.failed(Aspect.REPLAYED, f"{type(error).__name__}: {error}", "")
        return
    if theirs:
        comparison.equal(Aspect.CONFIG_ERROR, "accepted", theirs)
        return
    compare_profiles(golden, options, comparison)
    world.run()


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case is played pod by pod or step by step, and its result is of the same make."""
    if "configError" in result:
        return
    if not isinstance(case.get("objects"), list):
        raise GoldenFormatError(
            f"{where}: case {case['id']} is of no format known here: a recording of the scheduler "
            'has a list "objects", one of an autoscaler an "hpa" or a "vpa"'
        )
    mode, made = ("steps", "steps") if "steps" in case else ("pending", "attempts")
    if not isinstance(case.get(mode), list) or not isinstance(result.get(made), list):
        raise GoldenFormatError(
            f'{where}: case {case["id"]} needs a list "pending" with "attempts" in its result, '
            'or a list "steps" with "steps" in its result'
        )
    for number, obj in enumerate(_objects(case)):
        if not _is_object(obj):
            raise GoldenFormatError(
                f"{where}: object {number} of case {case['id']} lacks apiVersion, kind or a name"
            )
    if made == "attempts":
        _check_pods(case["pending"], result["attempts"], f"{where}: case {case['id']}")


def _objects(case: JsonObject) -> list[Any]:
    """All objects that a case speaks of."""
    steps = [step for step in case.get("steps") or () if isinstance(step, dict)]
    changed = [step[verb] for step in steps for verb in ("create", "update") if verb in step]
    return [*(case.get("objects") or ()), *(case.get("pending") or ()), *changed]


def _is_object(obj: Any) -> bool:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return False
    return bool(obj.get("apiVersion") and obj.get("kind") and obj["metadata"].get("name"))


def _check_pods(pending: list[JsonObject], attempts: list[Any], where: str) -> None:
    """Every attempt is about a pod that the case creates."""
    created = {f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}" for pod in pending}
    for number, attempt in enumerate(attempts):
        pod = attempt.get("pod") if isinstance(attempt, dict) else None
        if pod not in created:
            raise GoldenFormatError(f"{where}: attempt {number} is about {pod!r}, no pending pod")
        if "outcome" not in attempt and not attempt.keys() & {"gated", "ignored", "bypassed"}:
            raise GoldenFormatError(f"{where}: attempt {number} has no outcome")
