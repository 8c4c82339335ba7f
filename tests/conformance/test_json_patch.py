"""The conformance tests of JSON Patch (json-patch-test-suite), as kube-apiserver sees them.

``data/json_patch.txt`` names those that kube-apiserver's library, and so ours, sees otherwise than
RFC 6902 does.
"""

import json
from collections.abc import Iterator
from typing import Any

from conformance.published import check_pinned, folder
from kubescene.api.patching.patches import json_patch
from kubescene.errors import KubesceneError

FEWEST = 85


def test_the_conformance_tests_end_as_they_are_known_to() -> None:
    outcomes = {name: passes(case) for name, case in cases()}
    missed = {name for name, passed in outcomes.items() if not passed}
    check_pinned("json_patch.txt", outcomes, missed)
    assert len(outcomes) - len(missed) >= FEWEST


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    where = folder("json-patch")
    for name in ("spec_tests", "tests"):
        for position, case in enumerate(json.loads((where / f"{name}.json").read_text())):
            if "patch" in case and not case.get("disabled"):
                yield f"{name}/{position}", case


def passes(case: dict[str, Any]) -> bool:
    try:
        found = json_patch(case["doc"], case["patch"])
    except KubesceneError:
        return "error" in case
    if "error" in case:
        return False
    return "expected" not in case or found == case["expected"]
