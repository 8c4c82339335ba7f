"""The marks of tests: what is listed is there, and what is not listed starts nothing."""

import ast
from pathlib import Path

import pytest

from marks import (
    HERE,
    LISTED,
    _asks_for_outside,
    file_of,
    folded,
    function_of,
    marks_of,
    read_marks,
    written,
)

pytest_plugins = ["pytester"]
ROOT = HERE.parent


def names_in(path: Path) -> set[str]:
    """The tests of a file, as its text has them."""
    name = path.relative_to(ROOT).as_posix()
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.Assign | ast.ClassDef):
            names = [node.name] if not isinstance(node, ast.Assign) else _targets(node)
            found |= {f"{name}::{each}" for each in names}
    return found


def _targets(node: ast.Assign) -> list[str]:
    return [each.id for each in node.targets if isinstance(each, ast.Name)]


def test_every_line_names_a_test_that_is_there() -> None:
    listed = read_marks(LISTED.read_text())
    files = {file_of(name) for name in listed}
    gone = sorted(file for file in files if not (ROOT / file).exists())
    assert gone == [], "these files are gone: `make marks`"
    known = {*files}.union(*(names_in(ROOT / file) for file in files))
    unknown = sorted(name for name in listed if "::".join(name.split("::")[:2]) not in known)
    assert unknown == [], "these tests are gone: `make marks`"


def test_a_line_is_for_a_file_where_all_its_tests_are_alike() -> None:
    names = ["a.py::one", "a.py::two", "b.py::one", "b.py::two"]
    marks = {"a.py::one": {"process", "slow"}, "a.py::two": {"process"}, "b.py::one": {"slow"}}
    text = written(folded(names, marks))
    assert text.splitlines()[1:] == ["a.py process", "a.py::one slow", "b.py::one slow"]
    assert marks_of("a.py::one[x-1]", read_marks(text)) == {"process", "slow"}
    assert function_of("a.py::one[b.py::two]") == "a.py::one"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A small suite with these marks, and nothing listed."""
    pytester.makeconftest('pytest_plugins = ["marks"]')
    for name in ("marks.py",):
        (pytester.path / name).write_text((HERE / name).read_text())
    pytester.makepyfile(
        test_it="""
        import socket, subprocess, sys
        import pytest
        from hypothesis import given, settings, strategies as st

        SEEN = []

        def test_quick(): ...

        def test_starts():
            subprocess.run([sys.executable, "-c", ""], check=True)

        @pytest.fixture(scope="module")
        def server():
            with socket.socket() as bound:
                bound.bind(("127.0.0.1", 0))
                yield bound

        def test_first(server): ...

        def test_second(server): ...

        def test_slow():
            end = __import__("time").process_time() + 2.2
            while __import__("time").process_time() < end: ...

        def require_program(): ...

        def helper():
            require_program()

        def test_outside():
            helper()

        @settings(max_examples=500)
        @given(st.integers())
        def test_examples(number):
            SEEN.append(number)

        def test_how_many():
            print("examples:", len(SEEN))
        """
    )
    pytester.syspathinsert()
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-p", "no:cacheprovider", "-s", *arguments)


def test_marks_are_recorded_and_a_quick_run_leaves_them_out(suite: pytest.Pytester) -> None:
    run(suite, "--record-marks")
    assert read_marks((suite.path / "marks.txt").read_text()) == {
        "test_it.py::test_starts": {"process"},
        "test_it.py::test_first": {"process"},
        "test_it.py::test_second": {"process"},
        "test_it.py::test_slow": {"slow"},
    }
    quick = run(suite, "--quick")
    quick.assert_outcomes(passed=3, deselected=5)
    quick.stdout.fnmatch_lines(
        ["*examples: 20", "* 3  process *", "* 1  slow *", "* 1  outside *", "*make test-all*"]
    )
    run(suite, "-m", "process").assert_outcomes(passed=3, deselected=5)


def test_who_starts_something_and_is_not_listed_fails(suite: pytest.Pytester) -> None:
    run(suite).assert_outcomes(passed=8)
    done = run(suite, "--strict-marks")
    done.assert_outcomes(passed=6, failed=2)
    done.stdout.fnmatch_lines(["*list it in tests/marks.txt with `make marks`", "*slow and not*"])


def test_a_group_stays_with_one_worker(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_group="""
        import pytest

        @pytest.mark.xdist_group("together")
        @pytest.mark.parametrize("number", range(4))
        def test_grouped(number, worker_id):
            assert worker_id
        """
    )
    done = run(suite, "-n", "2", "--dist", "loadgroup", "-v", "test_group.py")
    done.assert_outcomes(passed=4)
    lines = [line for line in done.outlines if "PASSED" in line]
    assert len({line.split()[0] for line in lines}) == 1, lines


def test_functions_that_call_each_other_are_looked_at_once() -> None:
    assert not _asks_for_outside(ping)


def ping(count: int) -> int:
    return pong(count - 1) if count else 0


def pong(count: int) -> int:
    return ping(count - 1) if count else 0
