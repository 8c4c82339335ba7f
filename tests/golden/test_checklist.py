"""The rules of kube-scheduler by number: which of them no test and no source names.

What each says is in `docs/reference/scheduler-rules.md`, which has every number that is used.

`checklist.txt` has the numbers of all rules. A rule is named by its number, as in ``PTS-5``, or in
the name of a test, as in ``test_pts_5_...``. `uncovered.txt` lists what is missing, exactly: who
covers a rule takes its line away, and nobody loses one unnoticed. ``python
tests/golden/test_checklist.py`` writes the file anew.
"""

import re
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "reference" / "scheduler-rules.md"
NOT_RULES = {"P-256"}  # a curve
NAMED = re.compile(r"\b([A-Z]{1,4}-\d+)\b|\btest_([a-z]{1,4}_\d+)(?=_)")


def rules() -> list[str]:
    return (HERE / "checklist.txt").read_text().split()


def named(folder: Path) -> set[str]:
    """What the Python files of a folder name."""
    found: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        for number, test in NAMED.findall(path.read_text()):
            found.add(number or test.upper().replace("_", "-"))
    return found


def uncovered() -> list[str]:
    tests, sources = named(ROOT / "tests"), named(ROOT / "src")
    gaps = [
        (rule, [name for name, found in _places(tests, sources) if rule not in found])
        for rule in rules()
    ]
    return [f"{rule}: no {' and no '.join(missing)}" for rule, missing in gaps if missing]


def _places(tests: set[str], sources: set[str]) -> Iterable[tuple[str, set[str]]]:
    return ("test", tests), ("source", sources)


def test_the_rules_that_nobody_covers_are_listed() -> None:
    listed = (HERE / "uncovered.txt").read_text().splitlines()
    found = uncovered()
    assert [line for line in found if line not in listed] == [], "lost: name these rules again"
    assert [line for line in listed if line not in found] == [], "covered now: take the lines away"


def explained() -> list[str]:
    return re.findall(r"^- \*\*([A-Z]+-\d+)\*\* \S", PAGE.read_text(), re.MULTILINE)


def test_every_rule_has_its_words_once() -> None:
    assert len(explained()) == len(set(explained()))
    assert sorted(set(rules()) - set(explained())) == []


def test_every_number_that_is_used_has_its_words() -> None:
    letters = {number.partition("-")[0] for number in explained()}
    used = named(ROOT / "src") | named(ROOT / "tests")
    numbers = {number for number in used if number.partition("-")[0] in letters}
    assert sorted(numbers - set(explained()) - NOT_RULES) == []


def test_a_rule_is_named_by_its_number_or_by_a_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_pts_5_counts() -> None: ...  # IPA-2, not xIPA-3"
    )
    assert named(tmp_path) == {"PTS-5", "IPA-2"}


def test_every_rule_is_in_the_checklist_once() -> None:
    assert len(rules()) == len(set(rules())) == 184


if __name__ == "__main__":
    (HERE / "uncovered.txt").write_text("".join(f"{line}\n" for line in uncovered()))
