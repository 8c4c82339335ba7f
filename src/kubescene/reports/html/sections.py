"""The page in words: every section that needs no script, one function each.

A section that has nothing to say is not there.
"""

from collections.abc import Iterable, Iterator

from kubescene.markup import Child, Markup, h, table
from kubescene.reports.amounts import told_duration
from kubescene.reports.html.contents import Contents, Figure, NodeAtEnd, StepView, WaitingView
from kubescene.reports.html.cost import chart, groups_table
from kubescene.reports.html.workloads import budgets_table, legend, table_of
from kubescene.reports.words import counted

PODS_NAMED = 12
UNWELL = {"Refused": "bad", "TimedOut": "bad", "Incomplete": "bad", "Completed": ""}
"""Of states of operations; others are worth a look."""
PAUSED = "No done operation: it would go on with more operations."
TONES = {"Succeeded": "good", "Paused": "wait", "Failed": "bad"}


def heading(contents: Contents) -> Markup:
    """What was played, and how it ended."""
    told = contents.headline
    phase = told.phase or "cut short"
    tone = TONES.get(told.phase, "bad")
    badges = (
        h("span", told.verdict, class_="phase bad") if told.verdict else None,
        h("span", phase, class_="phase plain" if told.verdict else f"phase {tone}"),
    )
    title = h("div", h("h1", told.scenario), badges, class_="title")
    message = told.message or (PAUSED if told.phase == "Paused" else "")
    said = h("p", message, class_=f"said {TONES.get(told.phase, 'bad')}") if message else None
    doubts = (h("p", each, class_="said wait") for each in told.warnings)
    about = h("ul", identity(contents), class_="identity")
    story = h("p", told.story, class_="story") if told.story else None
    return h("header", title, story, about, said, doubts, id="top")


def identity(contents: Contents) -> Iterator[Markup]:
    told = contents.headline
    parts = {
        "steps": f"{told.steps:,}",
        "virtual time": told_duration(told.duration_s),
        "from": told.started,
        "seed": str(told.seed),
        "Kubescene": told.version,
        "facts": f"{told.facts:,}",
    }
    for name, value in parts.items():
        if value:
            yield h("li", h("span", name), " ", h("b", value))


def figures(contents: Contents) -> Markup:
    """The numbers that people ask for first, then all measures with their definitions."""
    shown = h("div", map(figure, contents.figures), class_="figures")
    return h("section", shown, measures(contents), id="figures", aria_label="Key figures")


def figure(told: Figure) -> Markup:
    return h(
        "div",
        h("div", told.name, class_="name"),
        h("div", told.value, class_="value"),
        None if told.share is None else gauge(told.share * 100),
        h("div", told.note, class_="note") if told.note else None,
        class_=f"figure {told.tone}".rstrip(),
    )


def gauge(percent: float, tone: str = "") -> Markup:
    """A bar that is filled so far; styles may not stand in elements, sizes of drawings may."""
    filled = min(max(percent, 0.0), 100.0)
    full = tone or ("over" if percent > 100 else "")
    return h(
        "svg",
        h("rect", width=f"{filled:.1f}", height=4, class_="filled"),
        class_=f"gauge {full}".rstrip(),
        viewBox="0 0 100 4",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def measures(contents: Contents) -> Markup | None:
    if not contents.measures:
        return None
    rows = [(h("code", m.name), m.value, m.unit, m.about) for m in contents.measures]
    shown = table(("measure", "value", "unit", "meaning"), rows, numbers=("value",))
    title = h("summary", "All ", counted(len(rows), "measure"))
    return h("details", title, h("div", shown, class_="wide"))


def expectations(contents: Contents) -> Markup | None:
    if not contents.expectations:
        return None
    failed = sum(not each.holds for each in contents.expectations)
    rows = (
        h(
            "li",
            h("span", "holds" if each.holds else "fails", class_="mark"),
            h(
                "div",
                h("b", each.name),
                h("code", each.expression),
                h("p", "seen: ", h("code", each.seen), class_="seen") if each.seen else None,
                h("p", each.message) if each.message else None,
                h("p", each.error, class_="rest") if each.error else None,
            ),
            class_="good" if each.holds else "bad",
        )
        for each in sorted(contents.expectations, key=lambda each: each.holds)
    )
    note = f"{failed} of {len(contents.expectations)} do not hold" if failed else "all hold"
    return section("expectations", "Expectations", note, h("ul", rows, class_="checks"))


def warnings(contents: Contents) -> Markup | None:
    """What nobody acted on, and what was never played."""
    if not (contents.warnings or contents.ignored):
        return None
    listed = h("ul", (h("li", each) for each in contents.warnings), class_="warnings")
    never = None
    if contents.ignored:
        names = ", ".join(contents.ignored) + more(contents.ignored_total - len(contents.ignored))
        why = "Never played, since the scenario was done or their step had passed: "
        never = h("p", why, h("span", names, class_="mono"))
    note = "what the scenario says and nobody acts on"
    return section("warnings", "Not simulated", note, listed if contents.warnings else None, never)


def steps(contents: Contents) -> Markup | None:
    """The table of steps; the scripts draw the same above it."""
    if not contents.steps:
        return None
    timed = any(each.time for each in contents.steps)
    told = ("minor steps", "bound", "attempts failed", "preempted", "deleted", "waiting", "nodes")
    columns = ("step", "what was asked for", *(("time",) if timed else ()), *told)
    rows = [step_row(each, timed=timed) for each in contents.steps]
    numbers = [name for name in columns if name not in ("what was asked for", "time")]
    drawn = h("div", h("noscript", "The drawings of this page need scripts."), id="drawing")
    listed = table(columns, rows, numbers=numbers, class_="steps")
    few = len(rows) <= 12
    body = h("details", h("summary", "Steps in words"), h("div", listed, class_="wide"), open=few)
    note = f"{counted(contents.headline.steps, 'major step')}; choose one to see what happened"
    return section("steps", "Steps and nodes", note, drawn, body)


def step_row(step: StepView, *, timed: bool) -> tuple[Child, ...]:
    return (
        f"{step.step:,}" if step.first == step.step else f"{step.first:,} to {step.step:,}",
        h("ul", (h("li", each) for each in step.what), class_="plain"),
        *((h("span", step.time, class_="when"),) if timed else ()),
        step.minor,
        amount(step.bound),
        amount(step.failed, "bad"),
        amount(step.preempted, "odd"),
        amount(step.deleted),
        amount(step.waiting, "wait"),
        amount(step.nodes),
    )


def amount(number: int, tone: str = "") -> Markup:
    return h("span", f"{number:,}" if number else "·", class_=tone if number else "none")


def waiting(contents: Contents) -> Markup | None:
    """Who waits at the end, by reason; then who had to wait for long."""
    if not (contents.waiting or contents.late):
        return None
    groups = (waiting_group(each, contents.waiting_total) for each in contents.waiting)
    left = contents.waiting_groups - len(contents.waiting)
    verb = "waits" if contents.waiting_total == 1 else "wait"
    note = f"{counted(contents.waiting_total, 'pod')} {verb} at the end" if contents.waiting else ""
    return section(
        "waiting",
        "Who waits, and why",
        note or "nobody waits at the end",
        groups,
        h("p", f"and {left} more reasons", class_="more") if left > 0 else None,
        late(contents),
    )


def waiting_group(group: WaitingView, everybody: int) -> Markup:
    named = group.pods[:PODS_NAMED]
    names = (h("span", each, class_="pod") for each in named)
    left = group.total - len(named)
    title = h(
        "div",
        h("span", group.total, class_="count"),
        h("span", f" of {everybody:,} waiting", class_="of") if group.total < everybody else None,
        h("span", tried(group.attempts), class_="of"),
        class_="who",
    )
    button = None
    if group.decision is not None:
        label = f"Why {group.pods[0]}" if group.pods else "Why"
        button = h("button", label, type="button", class_="why", data_decision=group.decision)
    body: Child = h("p", group.message, class_="message")
    if group.reasons:
        body = (reasons(group), h("p", group.rest, class_="rest") if group.rest else None)
    pods = h("p", names, h("span", more(left), class_="more") if left > 0 else None, class_="pods")
    return h("article", title, body, pods, button, class_="waiting")


def tried(attempts: int) -> str:
    return f"tried {attempts:,} times" if attempts > 1 else ("tried once" if attempts else "")


def reasons(group: WaitingView) -> Markup:
    """How many nodes said what, as bars; a node may say several things."""
    whole = max(group.nodes, 1)
    rows = (
        h(
            "li",
            gauge(100 * part.nodes / whole, "refused"),
            h("b", part.nodes),
            h("span", part.text),
        )
        for part in group.reasons
    )
    return h("ul", rows, class_="reasons")


def late(contents: Contents) -> Markup | None:
    if not contents.late:
        return None
    columns = ("pod", "node", "waited", "attempts", "created at", "bound at")
    rows = [(e.pod, e.node, e.waited, e.attempts, e.created, e.bound) for e in contents.late]
    left = contents.late_total - len(rows)
    title = h("h3", "Bound late", h("small", f"{counted(contents.late_total, 'pod')} waited first"))
    shown = table(columns, rows, numbers=("waited", "attempts", "created at", "bound at"))
    rest = h("p", more(left), class_="more") if left > 0 else None
    return h("div", title, h("div", shown, class_="wide"), rest, class_="sub")


def preemptions(contents: Contents) -> Markup | None:
    if not contents.preemptions:
        return None
    rows: list[tuple[Child, ...]] = [
        (each.step, each.preemptor, each.node, victims(each.victims), each.criterion)
        for each in contents.preemptions
    ]
    columns = ("step", "made room for", "on", "had to leave", "chosen because")
    left = contents.preemptions_total - len(rows)
    note = f"{counted(contents.preemptions_total, 'time')} somebody had to make room"
    shown = h("div", table(columns, rows, numbers=("step",), class_="mono"), class_="wide")
    rest = h("p", more(left), class_="more") if left > 0 else None
    return section("preemptions", "Preemptions", note, shown, rest)


def victims(names: tuple[str, ...]) -> Markup:
    shown = ", ".join(names[:4])
    return h("span", shown, more(len(names) - 4) if len(names) > 4 else "", title=", ".join(names))


def over_time(contents: Contents) -> Markup | None:
    """The place of the charts; the scripts draw them."""
    if not contents.over_time.charts:
        return None
    note = "one axis, one cursor: point at a chart or at a decision"
    shown = h("div", h("noscript", "The charts of this page need scripts."), id="over-time")
    return section("time", "Over time", note, shown)


def operations(contents: Contents) -> Markup | None:
    """What came of drains and other operations that take time."""
    if not contents.outcomes:
        return None
    timed = any(each.time for each in contents.outcomes)
    rows: list[tuple[Child, ...]] = [
        (
            h("span", each.operation, class_="mono"),
            *((h("span", each.time, class_="when"),) if timed else ()),
            h("span", each.state, class_=UNWELL.get(each.state, "wait")),
            each.message,
        )
        for each in contents.outcomes
    ]
    columns = ("operation", *(("time",) if timed else ()), "state", "what came of it")
    left = contents.outcomes_total - len(rows)
    shown = h("div", table(columns, rows), class_="wide")
    rest = h("p", f"{left:,} more before", class_="more") if left > 0 else None
    return section("operations", "Operations", "what came of those that take time", rest, shown)


def workloads(contents: Contents) -> Markup | None:
    """Deployments and the like: how many of their pods were there, and when they were not."""
    if not (contents.workloads or contents.budgets):
        return None
    lack = sum(each.short for each in contents.workloads)
    verb = "lacks" if lack == 1 else "lack"
    note = counted(contents.workloads_total, "workload")
    left = contents.workloads_total - len(contents.workloads)
    timed = contents.headline.duration_s
    shown = table_of(contents.workloads, timed) if contents.workloads else None
    return section(
        "workloads",
        "Workloads",
        f"{note}; {lack} {verb} pods or is not rolled out at the end" if lack else note,
        legend() if timed and shown else None,
        h("div", shown, class_="wide") if shown else None,
        h("p", more(left), class_="more") if left > 0 else None,
        budgets_table(contents.budgets),
    )


def cost(contents: Contents) -> Markup | None:
    """What machines cost."""
    view = contents.cost
    if view is None:
        return None
    left = view.groups_total - len(view.groups)
    return section(
        "cost",
        "Cost",
        f"{view.total} {view.currency}" if view.total else "in several currencies",
        chart(view, contents.headline.duration_s),
        groups_table(view),
        h("p", more(left), class_="more") if left > 0 else None,
    )


def decisions(contents: Contents) -> Markup | None:
    """The place of the decisions; the scripts fill it."""
    if not contents.decisions:
        return None
    shown, total = len(contents.decisions), contents.decisions_total
    note = "choose one to see why" if shown == total else f"the {shown:,} most telling of {total:,}"
    place = h("div", h("noscript", "Decisions need scripts."), id="explorer")
    return section("decisions", "Decisions", note, place)


def nodes(contents: Contents) -> Markup | None:
    if not contents.nodes:
        return None
    head = h("tr", (h("th", name, scope="col") for name in ("node", *contents.heat.resources)))
    rows = map(node_row, contents.nodes)
    left = contents.nodes_total - len(contents.nodes)
    note = f"the fullest of {contents.nodes_total:,}" if left else "as the run left them"
    shown = h("table", h("thead", head), h("tbody", rows), class_="nodes")
    return section("nodes", "Nodes at the end", note, h("div", shown, class_="wide"))


def node_row(node: NodeAtEnd) -> Markup:
    gauges = (
        h(
            "td",
            gauge(share),
            h("span", f"{share:.0f} %", class_="n"),
            h("small", told),
        )
        for share, told in zip(node.shares, node.amounts, strict=True)
    )
    marks = h("small", node.marks, class_="marks") if node.marks else None
    return h("tr", h("td", node.name, marks, class_="mono"), gauges)


def section(name: str, title: str, note: str, *children: Child) -> Markup:
    heading = h("h2", title, h("small", note) if note else None)
    return h("section", heading, children, id=name)


def more(left: int) -> str:
    return f" and {left:,} more" if left > 0 else ""


def navigation(shown: Iterable[tuple[str, str, int]]) -> Markup:
    """Links to the sections that are there, with how much is in them."""
    links = (
        h("a", title, h("span", count, class_="badge") if count else None, href=f"#{name}")
        for name, title, count in shown
    )
    switch = h("button", "Theme", type="button", id="theme", title="Light, dark, or as the system")
    return h("nav", h("div", links, class_="links"), switch, aria_label="Sections")
