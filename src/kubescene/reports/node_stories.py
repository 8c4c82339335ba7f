"""What became of a node, and what the cluster autoscaler decided, for people."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kubescene.node_autoscaling.facts import NodesDecided
from kubescene.reports.amounts import told_duration
from kubescene.reports.columns import put
from kubescene.reports.words import counted
from kubescene.results.cost.rows import InstanceRow
from kubescene.results.node_stories import Loop, NodeStory

SHOWN = 12


def print_story(story: NodeStory, console: Console) -> None:
    """From its order to its end."""
    put(console, Text(story.name, style="bold"))
    for line in lines_of(story):
        put(console, Text(f"  {line}"))
    if story.ordered is not None:
        put(console, Text(f"\n{when(story.ordered)} ordered", style="bold"))
        print_decision(story.ordered.told, console)
    if story.stays:
        put(console, Text("\nWhy it stayed, when something was decided", style="bold"))
        for each in story.stays[-SHOWN:]:
            until = f" to +{told_duration(each.until_s)}" if each.loops > 1 else ""
            put(console, Text(f"  +{told_duration(each.since_s)}{until}: {each.reason}"))
    if story.removed is not None:
        print_removal(story, story.removed, console)
    console.print()


def lines_of(story: NodeStory) -> Iterator[str]:
    if story.machine is not None:
        yield from of_machine(story.machine)
    node = story.node
    if node is None:
        yield "it never had a node"
        return
    gone = "" if node.ended_s is None else f", gone at +{told_duration(node.ended_s)}"
    yield f"node since +{told_duration(node.created_s)} ({node.status}){gone}"


def of_machine(machine: InstanceRow) -> Iterator[str]:
    sort = ", ".join(filter(None, (machine.capacity_type, machine.zone)))
    yield f"machine of {machine.group} ({sort}), ordered at +{told_duration(machine.ordered_s)}"
    if machine.error:
        yield f"it failed with {machine.error}: {machine.message}"
    times = (
        ("launched", machine.launched_s),
        ("registered", machine.registered_s),
        ("ready", machine.ready_s),
        ("ended", machine.ended_s),
    )
    yield ", ".join(f"{name} at +{told_duration(at)}" for name, at in times if at is not None)
    if machine.cost is not None:
        used = machine.cost_requested or 0
        share = f", {used / machine.cost:.0%} of it for what pods asked for" if machine.cost else ""
        yield f"{machine.cost:.4g} {machine.currency} for {machine.hours:.2f} hours{share}"


def when(loop: Loop) -> str:
    return f"+{told_duration(loop.time_s)} (step {loop.step})"


def print_decision(told: NodesDecided, console: Console) -> None:
    """The options of a loop, who kept which, and who was not asked."""
    for each in told.ordered:
        put(console, Text(f"  {each.group}: {each.before} -> {each.after}", style="green"))
    if told.error:
        put(console, Text(f"  {told.error}", style="red"))
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for name in ("option", "nodes", "pods", "waste cpu", "waste memory", "per hour", "kept by"):
        table.add_column(name, justify="left" if name in ("option", "kept by") else "right")
    for option in told.options[:SHOWN]:
        by = ", ".join(each.expander for each in told.expanders if option.group in each.kept)
        table.add_row(
            Text(option.group, style="green" if option.chosen else ""),
            str(option.nodes),
            str(option.pods),
            f"{option.waste_cpu / 10:.1f}%",
            f"{option.waste_memory / 10:.1f}%",
            option.per_hour or "-",
            by or "-",
        )
    if told.options:
        put(console, table)
    for group, reason in told.skipped.items():
        put(console, Text(f"  {group} was not asked: {reason}", style="yellow"))
    if told.idle:
        idle = f"  before it, {counted(told.idle, 'loop')} decided nothing"
        put(console, Text(idle, style="dim"))


def print_removal(story: NodeStory, loop: Loop, console: Console) -> None:
    removed = next(each for each in loop.told.removed if each.node == story.name)
    put(console, Text(f"\n{when(loop)} removed", style="bold"))
    share = f"{removed.utilization / 10:.0f}% of it was asked for"
    put(console, Text(f"  {removed.group}: {removed.size} machines before it; {share}"))
    if removed.evicted:
        names = ", ".join(removed.evicted[:SHOWN])
        left = len(removed.evicted) - SHOWN
        more = f" and {left} more" if left > 0 else ""
        put(console, Text(f"  evicted: {names}{more}"))
    if story.outcome:
        put(console, Text(f"  outcome: {story.outcome}"))


def print_loop(pod: str, loop: Loop, console: Console) -> None:
    """What a loop decided about a pod."""
    told = loop.told
    title = Text.assemble(("cluster autoscaler", "bold"), f" at {when(loop)}: ")
    if pod in told.triggered:
        put(console, title.append(f"ordered nodes for {pod}", style="green"))
        print_decision(told, console)
    elif pod in told.unhelped:
        put(console, title.append(f"no group helps {pod}", style="yellow"))
        for group, why in told.unhelped[pod].items():
            put(console, Text(f"  {group}: {why or 'nothing was said'}"))
        for group, why in told.skipped.items():
            put(console, Text(f"  {group} was not asked: {why}", style="yellow"))
    else:
        nodes = ", ".join(each.node for each in told.removed if pod in each.evicted)
        put(console, title.append(f"evicts {pod}, to remove {nodes}", style="yellow"))
    console.print()
