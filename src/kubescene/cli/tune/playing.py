"""What ``kubescene tune`` does."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import msgspec
from rich.console import Console

from kubescene.cli.batch_progress import ConsoleTelling
from kubescene.cli.components import autoscalers_named
from kubescene.cli.files import complain, one_line
from kubescene.cli.matrix.playing import INTERRUPTED, interrupted
from kubescene.cli.run.playing import output_path
from kubescene.cli.terminals import aligned
from kubescene.errors import ConfigurationError
from kubescene.experiments.combinations import Seeds
from kubescene.experiments.display import NOTE
from kubescene.experiments.executors import ExecutorName
from kubescene.experiments.goals import Goal, TuningTrial, parse_condition
from kubescene.experiments.ranges import parse_ranges
from kubescene.experiments.tuning import Search, TuningResult, told_settings, tune
from kubescene.reports.html.frontier import FrontierView, TriedView, frontier_page
from kubescene.reports.html.shell import write_page
from kubescene.reports.progress import MatrixProgress
from kubescene.reports.words import counted

FINE, ALL_FAILED, NONE_KEEPS = 0, 1, 3
SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneArguments:
    """What the command line says."""

    file: Path
    vary: Sequence[str] = ()
    minimize: str | None = None
    maximize: str | None = None
    subject_to: Sequence[str] = ()
    trials: int = 50
    search: Search = "auto"
    search_seed: int = 0
    seeds: int | None = None
    seed: Sequence[int] = ()
    out: str | None = None
    jobs: int | None = None
    executor: ExecutorName | None = None
    format: str = "table"
    prices: Path | None = None
    quiet: bool = False
    autoscalers: Sequence[str] = ()
    autoscaler_processes: Sequence[str] = ()

    def goal(self) -> Goal:
        names = [each for each in (self.minimize, self.maximize) if each]
        if len(names) != 1:
            raise ConfigurationError("say what to --minimize, or to --maximize: one of them")
        return Goal(
            names[0],
            tuple(map(parse_condition, self.subject_to)),
            most=self.maximize is not None,
        )

    def seeds_asked(self) -> Seeds:
        if self.seeds is not None and self.seed:
            raise ConfigurationError("give either --seeds N, which plays 1 to N, or --seed S")
        return self.seeds if self.seeds is not None else (self.seed or None)


def play_tune(arguments: TuneArguments) -> int:
    """Search; returns the exit code."""
    out = output_path(arguments.out)
    goal, axes = arguments.goal(), parse_ranges(arguments.vary)
    with MatrixProgress(Console(stderr=True, quiet=arguments.quiet)) as progress:
        try:
            found = tune(
                arguments.file,
                axes,
                goal,
                trials=arguments.trials,
                search=arguments.search,
                search_seed=arguments.search_seed,
                seeds=arguments.seeds_asked(),
                jobs=arguments.jobs,
                executor=arguments.executor,
                out=out,
                prices=arguments.prices,
                autoscalers=autoscalers_named(arguments.autoscalers),
                autoscaler_processes=arguments.autoscaler_processes,
                watcher=ConsoleTelling(progress, "played"),
            )
        except KeyboardInterrupt:
            complain([interrupted(progress, out)], "kubescene: ")
            return INTERRUPTED
    show = {"table": table_of, "csv": csv_of, "json": json_of}[arguments.format]
    sys.stdout.write(show(found))
    if out is not None:
        save(found, arguments, out)
    failed = [each for each in found.trials if each.failed]
    told = (f"{told_settings(each.settings)}: {each.error}" for each in failed[:SHOWN])
    complain(map(one_line, told), "kubescene: ")
    if found.best is not None:
        return FINE
    return ALL_FAILED if len(failed) == len(found.trials) else NONE_KEEPS


def save(found: TuningResult, arguments: TuneArguments, out: Path) -> None:
    try:
        (out / "tune.csv").write_text(csv_of(found), encoding="utf-8")
        (out / "tune.json").write_text(json_of(found), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to {out}: {error.strerror}; choose another --out"
        ) from error
    page = write_page(frontier_page(view_of(found, arguments.file.name)), out / "tune.html")
    if not arguments.quiet:
        Console(stderr=True).print(f"The chart is {page}", highlight=False, markup=False)


# -- tables --------------------------------------------------------------------------------------


def story_of(found: TuningResult) -> str:
    """What was tried, and what came of it."""
    goal, best = found.goal, found.best
    tried = counted(len(found.trials), "combination")
    told = f"{tried} of {found.combinations:,} tried ({found.search})."
    conditions = " and ".join(each.text for each in goal.conditions)
    aim = f"{'most' if goal.most else 'least'} {goal.name}"
    if best is None:
        return f"{told} None keeps {conditions or 'what it must'} in every run."
    kept = f" that keeps {conditions} in every run" if conditions else ""
    return f"{told} The {aim}{kept}: {told_settings(best.settings)}"


def table_of(found: TuningResult) -> str:
    """The frontier, the best marked, then the words."""
    names = found.goal.names
    paths = short_names([*found.trials[0].settings])
    rows = [[mark_of(found, each), *cells_of(each, names)] for each in shown(found)]
    lines = aligned([["", *paths, *names, "kept"], *rows], [*range(1 + len(paths))])
    many = any(value.n > 1 for each in found.trials for value in each.values.values())
    note = f"{NOTE}\n" if many else ""
    return f"{lines}\n{note}{story_of(found)}\n"


def short_names(paths: Sequence[str]) -> list[str]:
    """As much of the end of each as tells it from the others."""
    parts = [path.split(".") for path in paths]
    most = max(map(len, parts))
    for length in range(1, most):
        names = [".".join(each[-length:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    return [*paths]


def shown(found: TuningResult) -> list[TuningTrial]:
    """The frontier and the best; if nothing is on it, what was tried."""
    best = found.best
    kept = [*found.frontier, *([best] if best and best not in found.frontier else [])]
    return (kept or found.trials)[:SHOWN]


def mark_of(found: TuningResult, trial: TuningTrial) -> str:
    return "best" if trial is found.best else "" if trial.is_feasible else "breaks"


def cells_of(trial: TuningTrial, names: Sequence[str]) -> list[str]:
    kept = f"{trial.held} of {trial.runs + trial.failed}"
    return [*trial.settings.values(), *(told(trial, name) for name in names), kept]


def told(trial: TuningTrial, name: str) -> str:
    value = trial.values.get(name)
    if value is None:
        return "-"
    half = "" if value.half_width is None else f" ± {value.half_width:.3g}"
    return f"{value.mean:.6g}{half}"


def csv_of(found: TuningResult) -> str:
    names = found.goal.names
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    parts = ("", "_low", "_high", "_n")
    columns = [f"{name}{part}" for name in names for part in parts]
    writer.writerow([*found.trials[0].settings, *columns, "runs", "held", "failed", "frontier"])
    frontier = found.frontier
    for each in found.trials:
        cells: list[object] = []
        for name in names:
            value = each.values.get(name)
            known = None if value is None else (value.mean, value.low, value.high, value.n)
            cells += known or ("", "", "", 0)
        is_on = any(each is other for other in frontier)
        counts = [each.runs, each.held, each.failed, int(is_on)]
        writer.writerow([*each.settings.values(), *cells, *counts])
    return text.getvalue()


def json_of(found: TuningResult) -> str:
    best, goal = found.best, found.goal
    document = {
        "goal": {
            "measure": goal.name,
            "most": goal.most,
            "conditions": [each._asdict() for each in goal.conditions],
        },
        "search": found.search,
        "combinations": found.combinations,
        "best": None if best is None else best.settings,
        "frontier": [each.settings for each in found.frontier],
        "trials": found.trials,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def view_of(found: TuningResult, name: str) -> FrontierView:
    goal, names = found.goal, found.goal.names
    y = names[1] if len(names) > 1 else names[0]
    bounds = [each.bound for each in goal.conditions if each.name == y]
    frontier = found.frontier
    return FrontierView(
        title=f"{name}: {goal.name}",
        story=story_of(found),
        x_name=goal.name,
        y_name=y,
        columns=tuple(names),
        bound=bounds[0] if bounds else None,
        tried=tuple(
            TriedView(
                settings=short_settings(each),
                x=mean_of(each, goal.name),
                y=mean_of(each, y),
                words=tuple(told(each, name) for name in names),
                kept=f"{each.held} of {each.runs + each.failed}",
                is_feasible=each.is_feasible,
                is_best=each is found.best,
                is_frontier=any(each is other for other in frontier),
            )
            for each in found.trials
        ),
    )


def short_settings(trial: TuningTrial) -> str:
    names = short_names([*trial.settings])
    values = zip(names, trial.settings.values(), strict=True)
    return " ".join(f"{name}={value}" for name, value in values)


def mean_of(trial: TuningTrial, name: str) -> float | None:
    value = trial.values.get(name)
    return None if value is None else value.mean
