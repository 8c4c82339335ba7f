"""How the house looks from outside: folders, modules and names, where a machine can tell."""

import re
from collections import Counter, defaultdict

from test_import_cycles import SOURCE, import_graph, name_of

MOST_FILES = 25
FEW_LINES = 60
TWICE = {
    # What an autoscaler plugin calls by the words of its field.
    "Pod",
    "PodState",
    # What the author of a plugin asks about pods, and what people ask of a snapshot.
    "WhatIf",
}
ROWS = {
    # Of a table: each stands by itself, however short it is.
    "api.defaulting",
    "api.validation.core",
    "cli",
    "controllers.builtin",
    "registry.admission.plugins",
    "remedies",
    "scenario.engine",
    "scheduler.plugins",
    "snapshots.readers",
    # All that a world loads of it before anybody asks for more.
    "karpenter.offered",
    # A program of its own.
    "supervised.warden_script",
}
CLASS = re.compile(r"^ *class ([A-Z]\w+)", re.MULTILINE)
"""Names that begin with an underscore stay in their module."""


def test_the_name_of_a_class_means_one_thing() -> None:
    homes = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            homes[name].append(name_of(path))
    assert {name: at for name, at in homes.items() if len(at) > 1 and name not in TWICE} == {}
    assert [name for name in TWICE if len(homes[name]) < 2] == []


def test_a_folder_can_be_seen_at_a_glance() -> None:
    files = Counter(each.parent for each in SOURCE.rglob("*.py") if each.name != "__init__.py")
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}


def test_what_is_short_and_for_one_other_module_stands_there() -> None:
    """Half an idea, unless it is a row of a table."""
    users = defaultdict(set)
    for user, used in import_graph().items():
        for each in used:
            users[each].add(user)
    rows = tuple(f"{each}." for each in ROWS)
    found = {}
    for path in SOURCE.rglob("*.py"):
        name, lines = name_of(path), len(path.read_text(encoding="utf-8").splitlines())
        if path.name != "__init__.py" and lines < FEW_LINES and len(users[name]) == 1:
            found[name] = users[name]
    assert {name: by for name, by in found.items() if not f"{name}.".startswith(rows)} == {}
