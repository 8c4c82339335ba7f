"""``kubescene compare``: two runs beside each other; exit 0 if they are equal, 1 if not."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kubescene.cli.files import complain
from kubescene.cli.origins import RunOrigin, directory_of
from kubescene.cli.outputs import PAGE, check_file
from kubescene.errors import ConfigurationError
from kubescene.results.comparison import Comparison, compare
from kubescene.results.comparison.placements import Explainer
from kubescene.results.opening import open_run

if TYPE_CHECKING:
    from kubescene.cli.replaying import PlayedWith

EQUAL, DIFFERENT = 0, 1


class ComparisonFormat(StrEnum):
    """How a comparison is shown."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"


SUFFIXES = {
    "": ComparisonFormat.TERMINAL,
    ".html": ComparisonFormat.HTML,
    ".htm": ComparisonFormat.HTML,
    ".json": ComparisonFormat.JSON,
    ".markdown": ComparisonFormat.MARKDOWN,
    ".md": ComparisonFormat.MARKDOWN,
    ".txt": ComparisonFormat.TERMINAL,
}
SIGNS = (PAGE, b'"equal": ', b" placed otherwise", b" are equal: ", b", seed ")
"""What stands at the beginning of comparisons: page, JSON, Markdown, and what terminals see."""


def show_comparison(
    comparison: Comparison,
    form: ComparisonFormat | None,
    out: Path | None,
    *,
    replayable: bool = True,
) -> int:
    """Print a comparison, or write it to a file; returns the exit code."""
    chosen = form or form_of(out)
    code = EQUAL if comparison.equal else DIFFERENT
    if chosen is ComparisonFormat.TERMINAL and out is None:
        from kubescene.reports.comparison import print_comparison

        print_comparison(comparison, Console(), replayable=replayable)
        return code
    text = rendered(comparison, chosen, replayable=replayable)
    if out is None:
        sys.stdout.write(text)
    else:
        check_file(out, SIGNS)
        write_text(out, text)
        complain([f"The comparison is in {out}"])
    return code


def form_of(out: Path | None) -> ComparisonFormat:
    """What the name of a file asks for; raises `ConfigurationError` if nobody knows."""
    suffix = "" if out is None else out.suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(filter(None, SUFFIXES))
        raise ConfigurationError(
            f"no comparison is written as {suffix}: {out} may end in {known}, or say --format"
        )
    return SUFFIXES[suffix]


def rendered(comparison: Comparison, form: ComparisonFormat, *, replayable: bool = True) -> str:
    """A comparison as the text of a file."""
    if form is ComparisonFormat.JSON:
        return comparison.json().decode() + "\n"
    if form is ComparisonFormat.MARKDOWN:
        from kubescene.reports.comparison_markdown import markdown

        return markdown(comparison, replayable=replayable)
    if form is ComparisonFormat.HTML:
        from kubescene.reports.html.comparison import comparison_page

        return comparison_page(comparison)
    from kubescene.reports.comparison import print_comparison

    console = Console(width=120, color_system=None)
    with console.capture() as captured:
        print_comparison(comparison, console, replayable=replayable)
    return captured.get()


def write_text(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot write the comparison to {out}: {error.strerror}; choose another --out"
        ) from error


def refuse_twins(a: RunOrigin, b: RunOrigin) -> None:
    """Comparing a run with itself is a slip of the keyboard, not a result."""
    same_directory = a.run is not None and b.run is not None and a.run.resolve() == b.run.resolve()
    if a == b or same_directory:
        raise ConfigurationError(
            f"{a} and {b} are the same run: name the --out directories of two runs, or two "
            "scenarios of servers as URL#NAME"
        )


def compare_runs(
    a: RunOrigin,
    b: RunOrigin,
    *,
    looked_at: int,
    replay: "PlayedWith | None" = None,
    what_if: "PlayedWith | None" = None,
) -> Comparison:
    """Compare two runs.

    ``replay`` has those played again that explain too little, ``what_if`` asks B's scheduler about
    pods that follow, in A's cluster.
    """
    refuse_twins(a, b)
    with directory_of(a) as first, directory_of(b) as second:
        names = (str(a), str(b))
        found = compare_directories(first, second, names=names, looked_at=looked_at, given=replay)
        return found if what_if is None else with_second_opinions(found, first, second, what_if)


def compare_directories(
    a: Path, b: Path, *, names: tuple[str, str], looked_at: int, given: "PlayedWith | None"
) -> Comparison:
    """Compare two run directories; ``given`` has those played again that explain too little."""
    sources = open_run(a), open_run(b)
    found = compare(*sources, names=names, looked_at=looked_at)
    if given is None:
        return found
    missing = dict(zip(found.unexplained, (a, b), strict=True))
    explainers = {
        side: replayed(missing[side], given, found)
        for side, count in found.unexplained.items()
        if count
    }
    if not explainers:
        return found
    return compare(*sources, names=names, looked_at=looked_at, explainers=explainers)


def with_second_opinions(found: Comparison, a: Path, b: Path, given: "PlayedWith") -> Comparison:
    """With what B's scheduler does in A's cluster, for pods that follow."""
    from kubescene.cli.compare.second_opinions import with_opinions

    return with_opinions(found, a, b, given)


def replayed(directory: Path, given: "PlayedWith", found: Comparison) -> Explainer:
    """Explanations from a run that is played again."""
    from kubescene.cli.replaying import replay_explained

    pods = {each.pod for each in found.placed[: found.looked_at]}
    if found.divergence is not None:
        pods |= {found.divergence.pod, found.divergence.other_pod}
    return replay_explained(directory, given, frozenset(pods)).explain
