"""``kubescene explain``: why a pod was placed, or not, from a run's directory or from a server."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from kubescene.cli.explain.at_server import RemoteWorld
from kubescene.cli.replaying import PlayedWith, replay
from kubescene.errors import ConfigurationError, NotFoundError
from kubescene.reports.explaining import print_attempt
from kubescene.reports.node_stories import print_loop, print_story
from kubescene.reports.remedies import print_remedies
from kubescene.results import RunSource, open_run
from kubescene.results.explaining import ExplainedAttempt, is_mentioned, qualified, read_attempts
from kubescene.results.node_stories import loops_about, node_story

FINE, NOT_FOUND = 0, 2
LOOPS_SHOWN = 3
KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("node", "nodes", "no", "instance", "instances"), "node"),
}
UNTRIED = (
    "no scheduler has ended an attempt at it: it was gated, placed by somebody else, still waits "
    "for a plugin, or is for a scheduler that did not run"
)
UNKNOWN = "there is no such pod: check the name (NAMESPACE/NAME)"


UNKNOWN_NODE = "there is no such node or machine: check the name"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainQuestion:
    """Which pod, and what of it: its attempts, or with ``remedy`` what it would take.

    ``story`` is a node instead, of which it is told what became of it, and why.
    """

    pod: str = ""
    story: str = ""
    node: str = ""
    attempt: int | None = None
    remedy: bool = False


def named(words: Sequence[str]) -> tuple[str, str]:
    """Kind and name of ``pod NAME``, ``pod/NAME``, ``NAME`` (a pod) or ``node NAME``.

    The NAME of a pod may be NAMESPACE/NAME.
    """
    kind, name = ("pod", words[0]) if len(words) == 1 else (words[0], " ".join(words[1:]))
    if len(words) == 1 and name.split("/")[0] in KINDS and "/" in name:
        kind, _, name = name.partition("/")
    if kind not in KINDS or not name or " " in name:
        raise ConfigurationError(
            "explain takes a pod (kubescene explain pod NAMESPACE/NAME) or a node (kubescene "
            f"explain node NAME), not {' '.join(words)!r}"
        )
    return KINDS[kind], name


def answer(
    question: ExplainQuestion, run: Path | None, server: str, scenario: str, given: PlayedWith
) -> int:
    """Answer from a run's directory, or else from a server; returns the exit code."""
    if question.story:
        return explain_node(question, run)
    if run is None:
        if question.remedy:
            return remedy_served(question.pod, server)
        return explain_served(question, server, scenario)
    return remedy_run(question.pod, run, given) if question.remedy else explain_run(question, run)


def explain_run(question: ExplainQuestion, run: Path) -> int:
    """Print what a run's directory tells; returns the exit code."""
    attempts = read_attempts(run, question.pod)
    if not attempts:
        why = UNTRIED if is_mentioned(run, question.pod) else UNKNOWN
        return refuse(f"{run} tells of no attempt at {question.pod}: {why}")
    if shown := show(question, attempts):
        return shown
    if question.attempt is None and not question.node:
        show_loops(qualified(question.pod), open_run(run))
    return FINE


def show_loops(pod: str, source: RunSource) -> None:
    """What the cluster autoscaler decided about a pod: the first, and the last of them."""
    loops, console = loops_about(source, pod), Console()
    for loop in loops[:LOOPS_SHOWN]:
        print_loop(pod, loop, console)
    if left := len(loops) - LOOPS_SHOWN:
        if left > 1:
            console.print(f"and {left - 1} more decisions about it before the last\n")
        if left > 0:
            print_loop(pod, loops[-1], console)


def explain_node(question: ExplainQuestion, run: Path | None) -> int:
    """Print what became of a node, and why."""
    if run is None:
        raise ConfigurationError("explain node reads a run's directory: name it by --run DIR")
    if question.remedy or question.attempt is not None or question.node:
        raise ConfigurationError("--remedy, --attempt and --node are about pods")
    story = node_story(open_run(run), question.story)
    if story is None:
        return refuse(f"{run} tells of no node {question.story}: {UNKNOWN_NODE}")
    print_story(story, Console())
    return FINE


def explain_served(question: ExplainQuestion, url: str, scenario: str) -> int:
    """The same from a server that has played a scenario."""
    with RemoteWorld(url) as world:
        attempts, known = world.attempts(question.pod, scenario)
    if not attempts:
        why = UNTRIED if known else UNKNOWN
        return refuse(f"{url} tells of no attempt at {question.pod}: {why}")
    return show(question, attempts)


def remedy_run(pod: str, run: Path, given: PlayedWith) -> int:
    """Print what it would take at the end of a run, which is played again for that."""
    if not is_mentioned(run, pod):
        return refuse(f"{run} tells of no pod {pod}: {UNKNOWN}")
    try:
        remedies = replay(run, given).remedies(pod)
    except NotFoundError:
        return refuse(f"{pod} is gone at the end of {run}: there is nothing to remedy")
    print_remedies(qualified(pod), remedies, Console())
    return FINE


def remedy_served(pod: str, url: str) -> int:
    """The same for the world of a server, as it stands."""
    with RemoteWorld(url) as world:
        found = world.remedies(pod)
    print_remedies(qualified(pod), found.remedies, Console())
    if not found.complete:
        sys.stderr.write("kubescene: the search was ended early, there may be more\n")
    return FINE


def show(question: ExplainQuestion, attempts: Sequence[ExplainedAttempt]) -> int:
    """Print the attempts that were asked for."""
    chosen = attempts
    if (number := question.attempt) is not None:
        place = number - 1 if number > 0 else len(attempts) + number
        if number == 0 or not 0 <= place < len(attempts):
            count = len(attempts)
            told = "1 attempt" if count == 1 else f"{count} attempts: 1 to {count}"
            return refuse(f"{question.pod} has {told}, or -1 for the last")
        chosen = [attempts[place]]
    if question.node and not any(mentions(each, question.node) for each in chosen):
        return refuse(f"{whereabouts(chosen)} {question.node!r}: check the name of the node")
    console = Console()
    for attempt in chosen:
        print_attempt(attempt, console, node=question.node)
    return FINE


def mentions(attempt: ExplainedAttempt, node: str) -> bool:
    tried = () if attempt.preemption is None else attempt.preemption.tried
    seen = {each.node for each in attempt.verdicts} | {each.node for each in tried}
    return node == attempt.node or node in seen


def whereabouts(attempts: Sequence[ExplainedAttempt]) -> str:
    if any(each.explained for each in attempts):
        return "none of these attempts looked at a node"
    return "the run did not keep what was said about nodes (spec.simulation.explain), nor about"


def refuse(why: str) -> int:
    sys.stderr.write(f"kubescene: {why}\n")
    return NOT_FOUND
