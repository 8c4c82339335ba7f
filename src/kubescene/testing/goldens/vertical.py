"""Recordings of the vertical pod autoscaler: recommender, updater, admission."""

from kubescene.testing.goldens.comparing import Comparison, Tally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.testing.goldens.vertical_aspects import VerticalAspect
from kubescene.testing.goldens.vertical_pods import replay_admission, replay_loops, replay_updater
from kubescene.testing.goldens.vertical_recommender import RecommenderReplay, check_ops
from kubescene.types import JsonObject

UNIT = "steps or pods"

_LISTS = (("steps", "ops"), ("loops", "loops"), ("pods", "pods"))
"""What a result holds for which part of its case."""


def replay(golden: Golden, tally: Tally) -> None:
    comparison = Comparison(golden.id, tally)
    try:
        _replay(golden, comparison, tally)
    except Exception as error:
        # Whatever our autoscaler raises is a difference.
        said = f"{type(error).__name__}: {error}"
        comparison.failed(VerticalAspect.REPLAYED, said, "")


def _replay(golden: Golden, comparison: Comparison, tally: Tally) -> None:
    if "ops" in golden.case:
        RecommenderReplay(golden, comparison, tally).run()
        return
    if "loops" in golden.case:
        replay_loops(golden, comparison, tally)
        return
    tally.attempts += len(golden.case["pods"])
    replay_pods = replay_admission if golden.case.get("admission") else replay_updater
    replay_pods(golden, comparison)


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case is a list of operations with a step each, or loops or pods with a result each."""
    made, by = next((each for each in _LISTS if each[1] in case), _LISTS[-1])
    given, told = case.get(by), result.get(made)
    if not isinstance(given, list) or not isinstance(told, list) or len(given) != len(told):
        raise GoldenFormatError(
            f'{where}: case {case["id"]} needs a list "{by}", and a list "{made}" of the same '
            "length in its result"
        )
    if "ops" in case:
        check_ops(given, f"{where}: case {case['id']}")
