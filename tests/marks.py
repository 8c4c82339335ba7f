"""Marks that nobody sets by hand: which tests ``make test`` leaves to ``make test-all``.

``process``
    starts a program, a server or a pool of processes
``outside``
    needs a program that is not Python's: kubectl, Go, one of Kubernetes, a browser; or Ray
``slow``
    takes more than a second of the processor

`marks.txt` has a line for each such test, or for a file whose tests are all alike. ``make marks``
writes it anew: every test is begun, and ended as soon as it is known to start something or to be
slow, so that this takes little longer than the quick ones. The file cannot go out of date
unnoticed: in ``make test`` and ``make test-all`` a test that starts something and is not listed
fails, and so does a line that names no test (`test_marks.py`). What has become slow is told at the
end of a run. Who needs something outside is not listed, but found by the helpers and fixtures that
he uses.
"""

import _posixsubprocess
import inspect
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.nodeid import coerce_node_id
from _pytest.outcomes import Skipped
from hypothesis import settings

HERE = Path(__file__).parent
LISTED = HERE / "marks.txt"
MEANINGS = {
    "process": "starts a program, a server or a pool of processes",
    "outside": "needs kubectl, Go, a program of Kubernetes, a browser or Ray",
    "slow": "takes more than a second of the processor",
}
SLOW_S = 1.0
QUICK_EXAMPLES = 20
# Who asks for one of these, himself or by a helper or a fixture, needs what is outside ...
OUTSIDE_NAMES = {"require_program", "find_kubectls", "KUBECTL", "chromium", "PROGRAM", "go"}
# ... and so do tests that are kept on one worker for the sake of it.
OUTSIDE_GROUPS = {"ray", "browser", "real-api-server"}
HEAD = """\
# Which tests are no part of `make test`, and why: see tests/marks.py. Written by `make marks`.
"""


class Known(Skipped):
    """While marks are recorded: enough is known of this test, and of who else uses its fixtures."""

    def __init__(self, marks: Iterable[str]) -> None:
        super().__init__("enough is known")
        self.marks = set(marks)


class Watch:
    """What the test that runs now has done; the audit hook of Python tells it."""

    def __init__(self) -> None:
        self.marks: set[str] = set()
        self.running = False
        self.recording = False

    def begin(self) -> None:
        self.marks, self.running = set(), True
        if self.recording:
            signal.setitimer(signal.ITIMER_PROF, SLOW_S)

    def end(self) -> set[str]:
        self.running = False
        if self.recording:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return self.marks

    def heard(self, event: str, _: tuple[Any, ...]) -> None:
        if not self.running:
            return
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "socket.bind"):
            self.found("process")

    def slow(self, *_: object) -> None:
        self.found("slow")

    def found(self, mark: str) -> None:
        self.marks.add(mark)
        if self.recording:
            raise Known({mark})


WATCH = Watch()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what marks.txt lists")
    parser.addoption("--strict-marks", action="store_true", help="fail tests that it should list")
    parser.addoption("--record-marks", action="store_true", help="write marks.txt anew")


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MEANINGS.items():
        config.addinivalue_line("markers", f"{name}: {meaning} (set by tests/marks.py)")
    WATCH.recording = config.getoption("--record-marks")
    if WATCH.recording:
        signal.signal(signal.SIGPROF, WATCH.slow)
    sys.addaudithook(WATCH.heard)
    _posixsubprocess.fork_exec = partial(_forked, _posixsubprocess.fork_exec)
    settings.register_profile("patient", deadline=None)
    settings.register_profile("quick", deadline=None, max_examples=QUICK_EXAMPLES)
    settings.load_profile("quick" if _is_quick(config) else "patient")
    config.pluginmanager.register(_Session(config), "marks-of-this-session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep groups together: xdist 3.8 names them in a member that pytest 9.2 does not read."""
    for item in items:
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid:
            item._id = coerce_node_id(grouped)


def _forked(fork: Any, *arguments: Any) -> Any:
    """Pools start their workers below the audit hook."""
    WATCH.heard("os.fork", ())
    return fork(*arguments)


def _is_quick(config: pytest.Config) -> bool:
    return bool(config.getoption("--quick") or config.getoption("--record-marks"))


class _Session:
    """The marks of one run of pytest, on a worker or alone."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_strict = config.getoption("--quick") or config.getoption("--strict-marks")
        self._left_out: Counter[str] = Counter()
        self._grown: dict[str, float] = {}
        self._recorded: dict[str, set[str]] = defaultdict(set)
        self._collected: list[str] = []
        self._marks = read_marks(LISTED.read_text() if LISTED.exists() else "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        for item in items:
            self._collected.append(function_of(item.nodeid))
            for mark in sorted(marks_of(item.nodeid, self._marks)):
                item.add_marker(mark)
            if needs_outside(item):
                item.add_marker("outside")
        if _is_quick(config):
            _hasten(items)
        if config.getoption("--quick"):
            self._leave_out(items)

    def _leave_out(self, items: list[pytest.Item]) -> None:
        kept, left = [], []
        for item in items:
            mark = next((mark for mark in MEANINGS if item.get_closest_marker(mark)), None)
            if mark is None:
                kept.append(item)
            else:
                left.append(item)
                self._left_out[mark] += 1
        items[:] = kept
        self._config.hook.pytest_deselected(items=left)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        WATCH.begin()
        before = _seconds()
        try:
            return (yield)
        finally:
            self._end(item, WATCH.end(), _seconds() - before)

    def _end(self, item: pytest.Item, found: set[str], used: float) -> None:
        name = function_of(item.nodeid)
        if WATCH.recording:
            self._recorded[name] |= found
        elif used > 2 * SLOW_S and not any(map(item.get_closest_marker, MEANINGS)):
            self._grown[name] = max(used, self._grown.get(name, 0.0))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        return (yield from self._until_known())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        result = yield from self._until_known()
        is_left_out = any(map(item.get_closest_marker, MEANINGS))
        if "process" in WATCH.marks and not is_left_out and self._is_strict:
            what = f"this test {MEANINGS['process']}"
            pytest.fail(f"{what}: list it in tests/marks.txt with `make marks`", pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        return (yield from self._until_known())

    def _until_known(self) -> Generator[None, Any, Any]:
        try:
            return (yield)
        except Known as known:
            WATCH.marks |= known.marks
            raise
        except Exception:
            if WATCH.recording and WATCH.marks:  # it failed because it was interrupted
                raise Known(WATCH.marks) from None
            raise

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        told = {"left_out": dict(self._left_out), "grown": self._grown}
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["marks"] = told
        if WATCH.recording:
            record(self._collected, self._recorded)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("marks")
        if told:
            self._left_out = Counter(told["left_out"])
            self._grown |= told["grown"]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._grown:
            terminalreporter.section("slow and not listed")
            for name, used in sorted(self._grown.items()):
                terminalreporter.write_line(f"{used:6.1f} s  {name}")
            terminalreporter.write_line("`make marks` lists them.")
        if self._left_out:
            terminalreporter.section("left out")
            for mark, count in self._left_out.items():
                terminalreporter.write_line(f"{count:6}  {mark:8} {MEANINGS[mark]}")
            terminalreporter.write_line(
                "`make test-all` runs everything; one kind of them: pytest -m outside"
            )


def _hasten(items: Iterable[pytest.Item]) -> None:
    """No more examples than the profile allows, also where a test asks for more."""
    for item in items:
        function: Any = getattr(item, "obj", None)
        own = getattr(function, "_hypothesis_internal_use_settings", None)
        if own is not None and own.max_examples > QUICK_EXAMPLES:
            inner: Any = getattr(function, "__func__", function)
            inner._hypothesis_internal_use_settings = settings(own, max_examples=QUICK_EXAMPLES)


def needs_outside(item: pytest.Item) -> bool:
    group = item.get_closest_marker("xdist_group")
    if group is not None and group.args[0] in OUTSIDE_GROUPS:
        return True
    fixtures = getattr(item, "_fixtureinfo", None)
    definitions = fixtures.name2fixturedefs.values() if fixtures is not None else ()
    functions = [each.func for found in definitions for each in found]
    functions.append(inspect.unwrap(getattr(item, "obj", needs_outside)))
    return any(_asks_for_outside(getattr(each, "__func__", each)) for each in functions)


@cache
def _asks_for_outside(function: Any) -> bool:
    """Whether a function of the tests mentions `OUTSIDE_NAMES`, or calls one that does."""
    looked_at, to_look_at = set[Any](), [function]
    while to_look_at:
        each = to_look_at.pop()
        if each in looked_at:  # functions may call each other
            continue
        looked_at.add(each)
        names = _names_in(getattr(each, "__code__", None))
        if not names.isdisjoint(OUTSIDE_NAMES):
            return True
        around = getattr(each, "__globals__", {})
        called = [around[name] for name in sorted(names) if name in around]
        to_look_at += [other for other in called if _is_of_tests(other)]
    return False


def _names_in(code: CodeType | None) -> set[str]:
    if code is None:
        return set()
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return {*code.co_names, *code.co_varnames[: code.co_argcount]}.union(*map(_names_in, inner))


def _is_of_tests(thing: Any) -> bool:
    return isinstance(thing, FunctionType) and HERE in Path(thing.__code__.co_filename).parents


def _seconds() -> float:
    mine, children = time.process_time(), os.times()
    return mine + children.children_user + children.children_system


def function_of(nodeid: str) -> str:
    """A test without its parameters: all rows of a table are listed together."""
    return nodeid.partition("[")[0]


def file_of(name: str) -> str:
    return name.partition("::")[0]


def marks_of(nodeid: str, marks: dict[str, set[str]]) -> set[str]:
    name = function_of(nodeid)
    return marks.get(name, set()) | marks.get(file_of(name), set())


def read_marks(text: str) -> dict[str, set[str]]:
    """Tests and files with their marks."""
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {name: set(marks) for name, *marks in lines}


def written(marks: dict[str, set[str]]) -> str:
    lines = [
        f"{name} {' '.join(sorted(found))}\n" for name, found in sorted(marks.items()) if found
    ]
    return HEAD + "".join(lines)


def folded(names: Iterable[str], marks: dict[str, set[str]]) -> dict[str, set[str]]:
    """One line for a file, where all its tests have a mark."""
    by_file: dict[str, set[str]] = defaultdict(set)
    for name in names:
        by_file[file_of(name)].add(name)
    result: dict[str, set[str]] = {}
    for file, tests in by_file.items():
        common = set.intersection(*(marks.get(name, set()) for name in tests))
        result[file] = common
        result |= {name: marks.get(name, set()) - common for name in tests}
    return result


def record(collected: list[str], found: dict[str, set[str]]) -> None:
    """Write what was found; what is known of files that were not collected stays."""
    known = read_marks(LISTED.read_text() if LISTED.exists() else "")
    files = {file_of(name) for name in collected}
    marks = {name: set(found.get(name, ())) for name in collected}
    others = {name: each for name, each in known.items() if file_of(name) not in files}
    LISTED.write_text(written({**others, **folded(collected, marks)}))
