"""``kubescene what-if``: a question, its answer on a page of text or as JSON, an exit code."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import orjson
from rich.console import Console, RenderableType
from rich.text import Text

from kubescene.cli.components import autoscaler_classes_named
from kubescene.cli.convert.sources import offered
from kubescene.cli.files import complain
from kubescene.durations import parse_duration
from kubescene.errors import ConfigurationError
from kubescene.reports.columns import TerminalColumn, fitted_table, put
from kubescene.scenario.conversion import PODS_OF_A_NODE
from kubescene.scenario.reading.object_files import read_manifests
from kubescene.snapshots.snapshot import read_snapshot
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, failures
from kubescene.what_if.asking import WhatIf, price_list
from kubescene.what_if.autoscaling import read_limits
from kubescene.what_if.descheduling import Thresholds
from kubescene.what_if.draining import DrainFlags
from kubescene.what_if.pages import write_answer
from kubescene.what_if.repacking import NewNode
from kubescene.what_if.upgrading import UpgradeFlags

FINE, FAILED = 0, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfCommand:
    """What the command line says."""

    snapshot: Path
    question: tuple[str, ...]
    as_json: bool
    fail_on: str
    report: Path | None = None
    removed: bool = False
    within: str = ""
    keep: str = "0%"
    tries: int = 3
    force: bool = False
    delete_emptydir_data: bool = False
    timeout: str = ""
    surge: int = 1
    unavailable: int = 0
    boot: str = ""
    policies: tuple[str, ...] = ()
    thresholds: str = "20,50"
    moves: int = 50
    groups: Path | None = None
    autoscaler_flags: Path | None = None
    limits: str = ""
    usage: tuple[str, ...] = ()
    window: str = "168h"
    quantile: float = 0.9
    files: tuple[Path, ...] = ()
    most: int = 100_000
    unplace: str = "all"
    shape: str = ""
    scheduler_config: Path | None = None
    start_delay: str = "0s"
    prices: Path | None = None
    autoscalers: tuple[str, ...] = ()
    seed: int = 0
    format: str = ""

    @property
    def flags(self) -> DrainFlags:
        timeout = self.timeout or DrainFlags().timeout
        if duration(timeout, "--timeout") <= 0:
            raise ConfigurationError("--timeout must be longer than nothing, such as 10m")
        return DrainFlags(self.force, self.delete_emptydir_data, timeout)


ONLY_FOR: Mapping[str, tuple[str, ...]] = {
    "removed": ("lose",),
    "within": ("lose", "apply", "autoscale"),
    "keep": ("shrink",),
    "tries": ("shrink", "rightsize"),
    "force": ("drain", "shrink"),
    "delete_emptydir_data": ("drain", "shrink"),
    "timeout": ("drain", "shrink", "upgrade"),
    "surge": ("upgrade",),
    "unavailable": ("upgrade",),
    "boot": ("upgrade", "autoscale"),
    "groups": ("autoscale",),
    "autoscaler_flags": ("autoscale",),
    "limits": ("autoscale",),
    "policies": ("balance",),
    "thresholds": ("balance",),
    "moves": ("balance",),
    "usage": ("rightsize",),
    "window": ("rightsize",),
    "quantile": ("rightsize",),
    "files": ("fit", "apply"),
    "most": ("fit",),
    "unplace": ("schedule",),
    "shape": ("repack",),
    "prices": ("shrink", "repack", "upgrade", "balance", "rightsize", "autoscale"),
}
"""Questions that an option belongs to; an option that does nothing is refused."""
OPTIONS = {"within": "--for", "files": "--file", "policies": "--policy"}


def ask(asked: WhatIfCommand) -> int:
    """Answer, and say so; returns the exit code."""
    name, *terms = asked.question
    if name not in QUESTIONS:
        raise ConfigurationError(
            f"there is no question {name!r}; there are: {', '.join(QUESTIONS)}"
        )
    check_options(asked, name)
    # Settings that are wrong shall not be told of only after the work is done.
    duration(asked.start_delay, "--start-delay")
    scheduler = None if name == "schedule" else asked.scheduler_config
    what_if = WhatIf(
        read_snapshot(asked.snapshot, format=asked.format),
        scheduler=scheduler,
        start_delay=asked.start_delay,
        prices=price_list(asked.prices),
        autoscalers=autoscaler_classes_named(asked.autoscalers),
        seed=asked.seed,
    )
    answer = QUESTIONS[name](what_if, asked, terms)
    failed = failures(answer, asked.fail_on)
    if asked.report is not None:
        write_answer(answer, asked.report)
    if asked.as_json:
        sys.stdout.buffer.write(json_of(answer, failed))
    else:
        print_answer(answer, Console())
    complain(failed, "kubescene: ")
    return FAILED if failed else FINE


def check_options(asked: WhatIfCommand, question: str) -> None:
    for each in fields(WhatIfCommand):
        questions = ONLY_FOR.get(each.name)
        if questions and question not in questions and getattr(asked, each.name) != each.default:
            option = OPTIONS.get(each.name, f"--{each.name.replace('_', '-')}")
            raise ConfigurationError(f"{option} is for {' and '.join(questions)}, not {question}")


def lose(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    need(terms, "lose", "zone=eu-1a")
    within = asked.within or "30m"
    duration(within, "--for")
    return what_if.lose(*terms, removed=asked.removed, within=within)


def drain(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    need(terms, "drain", "node=worker-1")
    return what_if.drain(*terms, flags=asked.flags)


def shrink(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    text = asked.keep.removesuffix("%")
    if not text.isdecimal() or int(text) >= 100:
        raise ConfigurationError(f"--keep is {asked.keep!r}: say a share such as 10%")
    flags = asked.flags._replace(delete_empty_dir_data=True)
    return what_if.shrink(*terms, keep=int(text) / 100, flags=flags, tries=asked.tries)


def upgrade(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    timeout = asked.timeout or UpgradeFlags().timeout
    boot = asked.boot or UpgradeFlags().boot
    flags = UpgradeFlags(asked.surge, asked.unavailable, boot, timeout)
    return what_if.upgrade(*terms, flags=flags.check())


def balance(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    shares = [each.strip().removesuffix("%") for each in asked.thresholds.split(",")]
    if len(shares) != 2 or not all(each.isdecimal() for each in shares):
        raise ConfigurationError(f"--thresholds is {asked.thresholds!r}: say two shares: 20,50")
    low, high = (int(each) / 100 for each in shares)
    return what_if.balance(
        *terms, policies=asked.policies, thresholds=Thresholds(low, high), moves=asked.moves
    )


def autoscale(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    refuse(terms, "autoscale")
    within, boot = asked.within or "1h", asked.boot or "2m"
    for option, text in (("--for", within), ("--boot", boot)):
        if duration(text, option) < 0:
            raise ConfigurationError(f"{option} cannot be {text}")
    return what_if.autoscale(
        [] if asked.groups is None else node_groups(asked.groups),
        flags=None if asked.autoscaler_flags is None else flags_of(asked.autoscaler_flags),
        limits=read_limits(asked.limits) if asked.limits else None,
        boot=boot,
        within=within,
    )


def node_groups(path: Path) -> list[JsonObject]:
    found = list(read_manifests(path))
    for obj in found:
        if not isinstance(obj, dict) or obj.get("kind") != "NodeGroup":
            raise ConfigurationError(f"{path} must hold NodeGroups, and nothing else")
        if not isinstance((obj.get("metadata") or {}).get("name"), str):
            raise ConfigurationError(f"{path}: a NodeGroup has no name")
    return found


def flags_of(path: Path) -> Mapping[str, object]:
    """A file of flags, by their own names."""
    documents = list(read_manifests(path))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ConfigurationError(f"{path} must hold flags, such as scale-down-unneeded-time: 5m")
    return documents[0]


def rightsize(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    refuse(terms, "rightsize")
    if duration(asked.window, "--window") <= 0:
        raise ConfigurationError("--window must be longer than nothing, such as 168h")
    return what_if.rightsize(
        asked.usage, quantile=asked.quantile, window=asked.window, tries=asked.tries
    )


def schedule(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    refuse(terms, "schedule")
    return what_if.schedule(asked.scheduler_config, unplace=asked.unplace)


def repack(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    if not asked.shape:
        raise ConfigurationError("repack on which nodes? Say it such as: --shape 16cpu,64Gi")
    type_name, colon, size = asked.shape.rpartition(":")
    offers = {"pods": PODS_OF_A_NODE}
    offers |= dict(offered(part, asked.shape, option="--shape") for part in size.split(","))
    return what_if.repack(*terms, shape=NewNode(offers, type_name if colon else ""))


def explain(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    del asked
    names = terms[1:] if terms[:1] == ["pod"] else terms
    if len(names) != 1:
        raise ConfigurationError("explain takes one pod: explain pod NAMESPACE/NAME")
    return what_if.explain(names[0].removeprefix("pod/"))


def fit(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    refuse(terms, "fit")
    return what_if.fit(objects_of(asked, "fit"), most=asked.most)


def apply(what_if: WhatIf, asked: WhatIfCommand, terms: list[str]) -> Answer:
    refuse(terms, "apply")
    within = asked.within or "10m"
    duration(within, "--for")
    return what_if.apply(objects_of(asked, "apply"), within=within)


QUESTIONS: Mapping[str, Callable[[WhatIf, WhatIfCommand, list[str]], Answer]] = {
    "lose": lose,
    "drain": drain,
    "shrink": shrink,
    "upgrade": upgrade,
    "balance": balance,
    "autoscale": autoscale,
    "rightsize": rightsize,
    "repack": repack,
    "schedule": schedule,
    "explain": explain,
    "fit": fit,
    "apply": apply,
}


def need(terms: list[str], question: str, such: str) -> None:
    if not terms:
        raise ConfigurationError(f"{question} which nodes? Say it such as: {question} {such}")


def refuse(terms: list[str], question: str) -> None:
    if terms:
        raise ConfigurationError(f"{question} takes no {terms[0]!r}")


def objects_of(asked: WhatIfCommand, question: str) -> list[JsonObject]:
    if not asked.files:
        raise ConfigurationError(f"{question} what? Name a file of objects by -f")
    found = [obj for path in asked.files for obj in read_manifests(path)]
    if not all(isinstance(obj, dict) and obj.get("kind") for obj in found) or not found:
        raise ConfigurationError(f"{asked.files[0]} must hold objects with a kind")
    return found


def duration(text: str, option: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigurationError(f"{option}: {error}") from error


def json_of(answer: Answer, failed: Sequence[str]) -> bytes:
    """The answer as one document, and which conditions fail."""
    document = {**answer.to_dict(), "failed": list(failed)}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def print_answer(answer: Answer, console: Console) -> None:
    """What is not known, the sentence, the tables, how to look closer."""
    if answer.unknown:
        put(console, Text("What this does not know", style="yellow"))
        for each in answer.unknown:
            put(console, Text(f"  {each}", style="yellow"))
        console.print()
    put(console, Text(answer.sentence, style="bold"))
    for table in answer.tables:
        console.print()
        put(console, shown(table, console.width))
    if answer.closer:
        console.print()
        for each in answer.closer:
            put(console, Text(each, style="dim"))


def shown(table: AnswerTable, width: int) -> RenderableType:
    columns = []
    for at, name in enumerate(table.columns):
        cells = [row[at] for row in table.rows]
        is_number = all(isinstance(each, int | float) for each in cells)
        texts = [f"{each:g}" if isinstance(each, float) else str(each) for each in cells]
        last = at == len(table.columns) - 1
        columns.append(
            TerminalColumn(
                name, "right" if is_number else "left", texts, folds=last and not is_number
            )
        )
    return fitted_table(table.title, columns, width)
