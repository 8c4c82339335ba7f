"""The pages in a real browser: first picture, live changes, clicks, slider, tables.

    python bench/ui.py [--quick]

Chromium without a GPU, over its DevTools pipe. Times are of the wall, so a busy machine shows in
them; CPU is that of all processes of the browser, or of the server's.
"""

import os
import sys
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import Browser, Page, chromium  # noqa: E402
from kubescene.apiserver.server import Server  # noqa: E402
from kubescene.clock import WallClock  # noqa: E402
from kubescene.testing import make_node, make_pod  # noqa: E402
from measuring import Stopwatch, row  # noqa: E402

SIZE, QUICK = (5_000, 50_000), (500, 5_000)
AT_ONCE = 2_000
CHANGES = 200
"""A second, in ten lots."""
LIVE_S = 6
TICKS = os.sysconf("SC_CLK_TCK")
FRAMES = """new Promise((done) => {
    const gaps = []; let last = performance.now(); const end = last + %d;
    const frame = (now) => {
        gaps.push(now - last); last = now;
        if (now < end) requestAnimationFrame(frame);
        else { gaps.sort((a, b) => a - b);
            done([gaps[gaps.length >> 1], gaps[Math.floor(gaps.length * 0.95)]]); }
    };
    requestAnimationFrame(frame);
})"""
PAINTED = """(async () => {
    const painted = () => new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(done)));
    const times = [];
    for (let n = 0; n < %d; n++) {
        await painted();
        const began = performance.now();
        %s;
        await painted();
        times.push(performance.now() - began);
    }
    times.sort((a, b) => a - b);
    return times[times.length >> 1];
})()"""
FULL = """new Promise((done) => {
    const look = () => {
        const told = document.querySelector('#tile-told')?.innerText || '';
        if (told.includes('%s pods') && !told.includes('so far'))
            requestAnimationFrame(() => done(performance.timeOrigin + performance.now()));
        else requestAnimationFrame(look);
    };
    look();
})"""
ARRIVED = """performance.getEntriesByType('resource').filter((e) => e.name.includes('/pods?limit'))
    .map((e) => performance.timeOrigin + e.responseEnd).pop()"""
CLICK = """(() => { const c = document.querySelector('canvas.tiles'), b = c.getBoundingClientRect();
    const at = {clientX: b.x + 20 + 40 * n, clientY: b.y + 20};
    c.dispatchEvent(new MouseEvent('click', at)); })()"""
COLOUR = """(() => { const e = document.querySelector('#by-colour');
    e.value = n % 2 ? 'state' : 'namespace'; e.dispatchEvent(new Event('change')); })()"""
TABLE = """(async () => {
    const { ScoreTable } = await import('/ui/static/app/scores.js');
    const plugins = [...'abcdefghijkl'], weights = plugins.map(() => 1);
    const rows = Array.from({length: %d}, (_, n) => {
        const scores = plugins.map((_, p) => (n * (p + 7)) %% 101);
        return {node: `node-${n}`, scores, total: scores.reduce((a, b) => a + b)};
    });
    const place = document.querySelector('#page');
    const painted = () => new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(done)));
    await painted();
    let began = performance.now();
    const table = new ScoreTable({plugins, weights, rows, node: 'node-0'});
    place.replaceChildren(table.element); table.draw();
    await painted();
    const opened = performance.now() - began;
    began = performance.now();
    table.by(3);
    await painted();
    return [opened, performance.now() - began];
})()"""
SLIDER = """(async () => {
    const { Story } = await import('/ui/static/app/story.js');
    const { World } = await import('/ui/static/app/world.js');
    const world = new World(), story = new Story(world);
    const fact = (fact, step, more) =>
        story.read({fact, step, time: 1e9 * step[0], actor: 'x', ...more});
    const [nodes, pods, steps] = [%d, %d, 200];
    for (let n = 0; n < nodes; n++) fact('ObjectCreated', [1, 0], {apiVersion: 'v1', kind: 'Node',
        name: `n-${n}`, object: {metadata: {name: `n-${n}`}, status: {allocatable: {cpu: '16'}}}});
    for (let n = 0; n < pods; n++) {
        const step = [2 + Math.floor((n * steps) / pods), 0], name = `p-${n}`, namespace = 'd';
        fact('ObjectCreated', step, {apiVersion: 'v1', kind: 'Pod', namespace, name,
            object: {metadata: {name, namespace}, spec: {containers: []}}});
        fact('PodScheduled', step, {namespace, name, node: `n-${n %% nodes}`});
    }
    const timed = (does) => {
        const began = performance.now();
        does();
        return performance.now() - began;
    };
    const jump = timed(() => story.go(story.moments.length - 1));
    const back = timed(() => story.go(0));
    const each = [];
    for (let at = 1; at < steps; at++) each.push(timed(() => story.go(at)));
    each.sort((a, b) => a - b);
    return [each[each.length >> 1], Math.max(jump, back)];
})()"""


def filled(nodes: int, pods: int) -> Server:
    """A world of bound pods, and nobody who acts in it."""
    server = Server(port=0, controllers=False)
    server.start()

    def some(first: int, last: int) -> None:
        for at in range(first, last):
            pod = make_pod(f"pod-{at}").cpu("500m").memory("1Gi").label(app=f"app-{at % 9}")
            server.cluster.create(pod.on(f"node-{at % nodes}"))

    def machines() -> None:
        for at in range(nodes):
            node = make_node(f"node-{at}").cpu("16").memory("64Gi")
            server.cluster.create(node.zone("abc"[at % 3]))

    server.engine.call(machines)
    for first in range(0, pods, AT_ONCE):
        server.engine.call(partial(some, first, min(first + AT_ONCE, pods)))
    return server


def cpu_of(process: int) -> float:
    """CPU seconds of a process and all below it, also of those that have ended."""
    total, family = 0, {process}
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(folder.name) in family or int(fields[1]) in family:
            family.add(int(folder.name))
            total += sum(map(int, fields[11:15]))
    return total / TICKS


def until(page: Page, expression: str) -> None:
    while not page.evaluate(expression):
        Event().wait(0.02)


def changing(server: Server, pods: int, over: Event) -> None:
    """Labels of pods change, in ten lots a second."""
    turn = 0
    while not over.wait(0.1):
        first, turn = (turn * CHANGES // 10) % pods, turn + 1

        def lot(first: int = first, turn: int = turn) -> None:
            for at in range(first, first + CHANGES // 10):
                labels = {"metadata": {"labels": {"turn": str(turn)}}}
                server.cluster.patch("pods", f"pod-{at % pods}", labels)

        server.engine.call(lot)


def first_picture(browser: Browser, server: Server, pods: int) -> Page:
    clock, watch = WallClock(), Stopwatch()
    began, before = clock.now(), cpu_of(browser.process)
    page = browser.open(f"{server.url}/ui/cluster", width=1600)
    page.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)
    painted = page.evaluate(FULL % f"{pods:,}")
    wall, used = (clock.now() - began) / 1e9, cpu_of(browser.process) - before
    row(
        "first picture",
        f"{wall:.1f} s wall, browser {used:.1f} s CPU, server and bench "
        f"{watch.read().cpu_s:.1f} s CPU",
        "budget 1 s of data",
    )
    row("painted, since its pods had come", f"{(painted - arrived(browser)) / 1000:.2f} s wall", "")
    size = page.evaluate(
        "performance.getEntriesByType('resource').filter((e) => "
        "e.name.includes('/ui/static')).reduce((sum, e) => sum + e.encodedBodySize, 0)"
    )
    row("shell", f"{size / 1000:.0f} kB", "budget 250 kB")
    return page


def arrived(browser: Browser) -> float:
    """When the page's worker had read the last byte of the list of pods."""
    [worker] = [
        each["params"]["sessionId"]
        for each in browser.events
        if each["method"] == "Target.attachedToTarget"
        and each["params"]["targetInfo"]["type"] == "worker"
    ]
    found = browser.call("Runtime.evaluate", worker, expression=ARRIVED, returnByValue=True)
    return float(found["result"]["value"])


def live(browser: Browser, server: Server, page: Page, pods: int) -> float:
    """What the server, the bench and the changes used of a core meanwhile."""
    over, watch = Event(), Stopwatch()
    thread = Thread(target=changing, args=(server, pods, over))
    thread.start()
    before = cpu_of(browser.process)
    median, p95 = page.evaluate(FRAMES % (1000 * LIVE_S))
    used, served = (cpu_of(browser.process) - before) / LIVE_S, watch.read().cpu_s / LIVE_S
    over.set()
    thread.join()
    row(
        "live at 200 changes a second",
        f"frame {median:.0f} ms, p95 {p95:.0f} ms, browser {100 * used:.0f} % of a core",
        "budget p95 25 ms",
    )
    return served


def alone(server: Server, pods: int, served: float) -> None:
    """The same changes while nobody looks: what is less is what a page costs the server."""
    over, watch = Event(), Stopwatch()
    thread = Thread(target=changing, args=(server, pods, over))
    thread.start()
    over.wait(LIVE_S)
    quiet = watch.read().cpu_s / LIVE_S
    over.set()
    thread.join()
    told = f"{100 * served:.0f} % of a core, {100 * quiet:.0f} % without it"
    row("server, bench and changes, with a page", told, "budget 5 % more")


def thread_ms(page: Page) -> float:
    """CPU that the main thread of the page has used so far."""
    metrics = page.call("Performance.getMetrics")["metrics"]
    return 1000 * next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def measured(page: Page, expression: str, times: int = 1) -> tuple[Any, float]:
    """What the page says, and CPU of its main thread in milliseconds, for each time."""
    before = thread_ms(page)
    value = page.evaluate(expression)
    return value, (thread_ms(page) - before) / times


def gestures(page: Page, nodes: int, pods: int) -> None:
    page.call("Performance.enable", timeDomain="threadTicks")
    for name, times, expression, floor in (
        ("click to painted, two frames", 15, CLICK, "budget 50 ms"),
        ("recolour, two frames", 8, COLOUR, "budget 100 ms"),
    ):
        wall, cpu = measured(page, PAINTED % (times, expression), times)
        row(name, f"{wall:.0f} ms wall, {cpu:.0f} ms CPU", floor)
    heap = page.evaluate("performance.memory.usedJSHeapSize")
    row("heap of the page", f"{heap / 1e6:.0f} MB", "budget 60 MB")
    (opened, sorted_), cpu = measured(page, TABLE % nodes)
    told = f"{opened:.0f} ms wall, sorted {sorted_:.0f} ms; {cpu:.0f} ms CPU for both"
    row(f"table of {nodes:,} nodes x 12", told, "budget 300, 100 ms")
    (step, jump), cpu = measured(page, SLIDER % (nodes, pods))
    told = f"a step {step:.1f} ms, any {jump:.0f} ms wall; {cpu:.0f} ms CPU with reading the run"
    row("slider, without drawing", told, "budget 33, 300 ms")


def main(arguments: list[str]) -> None:
    program: Any = chromium()
    if program is None:
        raise SystemExit("no chromium on PATH: scripts/install-chromium installs one")
    nodes, pods = QUICK if "--quick" in arguments else SIZE
    server = filled(nodes, pods)
    try:
        with Browser(program) as browser:
            browser.open(f"{server.url}/ui/missing")
            page = first_picture(browser, server, pods)
            served = live(browser, server, page, pods)
            gestures(page, nodes, pods)
            browser.open(f"{server.url}/ui/missing")
            alone(server, pods, served)
    finally:
        server.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
