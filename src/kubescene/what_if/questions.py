"""Questions as a table, for whoever asks them by a form: `kubescene serve` does, in a process.

::

    python -m kubescene.what_if.questions FOLDER < {"question": "lose", "fields": {"nodes": "n1"}}

answers from the snapshot in FOLDER, on one line: ``{"answer": {...}}``, or ``{"refused": "..."}``
where the question cannot be answered so. Fields are texts, as they are typed; those that are empty
are left to the question.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from kubescene.durations import parse_duration
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.scenario.conversion import PODS_OF_A_NODE
from kubescene.scenario.reading.object_files import read_manifests
from kubescene.snapshots.snapshot import read_snapshot
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer
from kubescene.what_if.asking import WhatIf
from kubescene.what_if.draining import DrainFlags
from kubescene.what_if.repacking import NewNode
from kubescene.what_if.upgrading import UpgradeFlags

SNAPSHOT, OBJECTS = "snapshot", "objects.yaml"
"""Files of the folder; the former is of any form that snapshots are read from."""


class QuestionField(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A text to type. ``choices`` if only these are meant; ``is_long`` for YAML."""

    name: str
    label: str
    example: str = ""
    choices: tuple[str, ...] = ()
    is_long: bool = False


class Given:
    """What was typed, and the folder for what is too long for a field."""

    def __init__(self, fields: Mapping[str, str], folder: Path) -> None:
        self._fields = fields
        self._folder = folder

    def text(self, name: str, default: str = "") -> str:
        return self._fields.get(name, "").strip() or default

    def nodes(self, *, needed: bool = False) -> list[str]:
        """Terms such as ``zone=a`` or ``node=n1``."""
        found = self.text("nodes").replace(",", " ").split()
        if needed and not found:
            raise ConfigurationError("which nodes? Say it such as zone=a or node=worker-1")
        return found

    def is_set(self, name: str) -> bool:
        return self.text(name) == "yes"

    def duration(self, name: str, default: str) -> str:
        text = self.text(name, default)
        try:
            if parse_duration(text) <= 0:
                raise ConfigurationError(f"{name} must be longer than nothing, such as {default}")
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from error
        return text

    def number(self, name: str, default: int, most: int) -> int:
        text = self.text(name, str(default)).removesuffix("%").strip()
        if not text.isdecimal() or len(text) > 9 or int(text) > most:
            raise ConfigurationError(f"{name} is {text!r}: say a number from 0 to {most}")
        return int(text)

    def objects(self) -> list[JsonObject]:
        if not self.text("objects"):
            raise ConfigurationError("of which objects? Paste them as YAML")
        path = self._folder / OBJECTS
        path.write_text(self.text("objects"))
        found = list(read_manifests(path))
        if not found or not all(isinstance(obj, dict) and obj.get("kind") for obj in found):
            raise ConfigurationError("the objects must have a kind each")
        return found

    def drain_flags(self) -> DrainFlags:
        timeout = self.duration("timeout", DrainFlags().timeout)
        return DrainFlags(self.is_set("force"), self.is_set("deleteEmptyDirData"), timeout)


class Question(msgspec.Struct, frozen=True):
    """What is asked, in words, and how."""

    about: str
    fields: tuple[QuestionField, ...]
    ask: Callable[[WhatIf, Given], Answer]


def lose(what_if: WhatIf, given: Given) -> Answer:
    nodes, within = given.nodes(needed=True), given.duration("within", "30m")
    return what_if.lose(*nodes, removed=given.is_set("removed"), within=within)


def drain(what_if: WhatIf, given: Given) -> Answer:
    return what_if.drain(*given.nodes(needed=True), flags=given.drain_flags())


def shrink(what_if: WhatIf, given: Given) -> Answer:
    flags = given.drain_flags()._replace(delete_empty_dir_data=True)
    return what_if.shrink(*given.nodes(), keep=given.number("keep", 0, 99) / 100, flags=flags)


def upgrade(what_if: WhatIf, given: Given) -> Answer:
    surge, unavailable = given.number("surge", 1, 1000), given.number("unavailable", 0, 1000)
    boot = given.duration("boot", UpgradeFlags().boot)
    flags = UpgradeFlags(surge, unavailable, boot, given.duration("timeout", "1h"))
    return what_if.upgrade(*given.nodes(), flags=flags.check())


def balance(what_if: WhatIf, given: Given) -> Answer:
    return what_if.balance(*given.nodes())


def repack(what_if: WhatIf, given: Given) -> Answer:
    offers = {"pods": str(PODS_OF_A_NODE)}
    offers |= {name: given.text(name) for name in ("cpu", "memory") if given.text(name)}
    if len(offers) < 3:
        raise ConfigurationError("repack on which nodes? Say their cpu and their memory")
    return what_if.repack(*given.nodes(), shape=NewNode(offers, ""))


def schedule(what_if: WhatIf, given: Given) -> Answer:
    return what_if.schedule(unplace=given.text("unplace", "all"))


def explain(what_if: WhatIf, given: Given) -> Answer:
    if not given.text("pod"):
        raise ConfigurationError("which pod? Say it such as default/web-0")
    return what_if.explain(given.text("pod"))


def fit(what_if: WhatIf, given: Given) -> Answer:
    return what_if.fit(given.objects())


def apply(what_if: WhatIf, given: Given) -> Answer:
    return what_if.apply(given.objects(), within=given.duration("within", "10m"))


YES = ("no", "yes")
SOME = QuestionField("nodes", "Nodes", "zone=a, node=worker-1")
ALL = QuestionField("nodes", "Nodes (all, if empty)", "pool=general")
FORCE = QuestionField("force", "Also pods that nobody makes again", choices=YES)
TIMEOUT = QuestionField("timeout", "Give up after", "10m")
OBJECTS_FIELD = QuestionField("objects", "Objects", "kind: Deployment ...", is_long=True)

QUESTIONS: Mapping[str, Question] = {
    "lose": Question(
        "Nodes fall silent, or are removed: who comes back, and when?",
        (
            SOME,
            QuestionField("removed", "Removed at once", choices=YES),
            QuestionField("within", "Look for", "30m"),
        ),
        lose,
    ),
    "drain": Question(
        "Which pods keep nodes from being drained, and what does it take?",
        (
            SOME,
            FORCE,
            QuestionField("deleteEmptyDirData", "Also pods with emptyDir", choices=YES),
            TIMEOUT,
        ),
        drain,
    ),
    "shrink": Question(
        "How many of these nodes can be removed?",
        (ALL, QuestionField("keep", "Keep free (%)", "10"), FORCE, TIMEOUT),
        shrink,
    ),
    "upgrade": Question(
        "Nodes are replaced one after another: who is hurt, and how long does it take?",
        (
            ALL,
            QuestionField("surge", "Nodes more at a time", "1"),
            QuestionField("unavailable", "Nodes fewer at a time", "0"),
            QuestionField("boot", "A machine boots for", "3m"),
            QuestionField("timeout", "Give up after", "1h"),
        ),
        upgrade,
    ),
    "balance": Question(
        "What would the descheduler move, and what is better then?", (ALL,), balance
    ),
    "repack": Question(
        "How many nodes of another size would do?",
        (ALL, QuestionField("cpu", "CPU of each", "16"), QuestionField("memory", "Memory", "64Gi")),
        repack,
    ),
    "schedule": Question(
        "Pods go back to the queue: where would they go?",
        (QuestionField("unplace", "Pods (labels; all, if empty)", "app=web"),),
        schedule,
    ),
    "explain": Question(
        "Why does a pod wait, and what would help? Or where would it go today?",
        (QuestionField("pod", "Pod", "default/web-0"),),
        explain,
    ),
    "fit": Question("How often do these objects fit?", (OBJECTS_FIELD,), fit),
    "apply": Question(
        "These objects are created or changed: who moves, who waits, who gives way?",
        (OBJECTS_FIELD, QuestionField("within", "Look for", "10m")),
        apply,
    ),
}


def known(question: str, fields: Mapping[str, str]) -> Question:
    """The row of the table; `ConfigurationError` for what is not in it."""
    found = QUESTIONS.get(question)
    if found is None:
        raise ConfigurationError(f"there is no question {question!r}: {', '.join(QUESTIONS)}")
    names = [each.name for each in found.fields]
    for name in fields:
        if name not in names:
            raise ConfigurationError(
                f"{question} has no field {name!r}; it has: {', '.join(names)}"
            )
    return found


def answered(folder: Path, question: str, fields: Mapping[str, str]) -> Answer:
    """The answer from the snapshot in a folder."""
    what_if = WhatIf(read_snapshot(folder / SNAPSHOT))
    return known(question, fields).ask(what_if, Given(fields, folder))


def main() -> None:
    asked = orjson.loads(sys.stdin.buffer.read())
    told: dict[str, Any]
    try:
        found = answered(Path(sys.argv[1]), asked["question"], asked["fields"])
        told = {"answer": found.to_dict()}
    except KubesceneError as error:
        told = {"refused": str(error)}
    sys.stdout.buffer.write(orjson.dumps(told) + b"\n")


if __name__ == "__main__":
    main()
