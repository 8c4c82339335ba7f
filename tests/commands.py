"""The command ``kubescene`` for tests: called in this process, or really started.

`kubescene` calls the entry point with streams, folder and environment of its own; `started` starts
the program. Both give what `subprocess.run` gives. What depends on a process (signals, closed
streams, what is imported) is tested with `started`, everything else without.
"""

import contextlib
import gc
import io
import os
import pty
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from subprocess import CompletedProcess
from termios import TIOCSWINSZ

from kubescene.cli import main

ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1"}


def started(
    *arguments: object, cwd: Path | None = None, text: str | None = None, **environment: str
) -> CompletedProcess[str]:
    """The real command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "kubescene", *map(str, arguments)],
        capture_output=True,
        text=True,
        input=text,
        check=False,
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, **environment},
    )


def in_terminal(*arguments: object, columns: int = 80) -> tuple[int, str]:
    """The real command in a terminal of so many columns: how it ends, and all that it shows."""
    child, terminal = pty.fork()
    if child == 0:
        ioctl(1, TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.environ.pop("COLUMNS", None)
        os.execv(sys.executable, [sys.executable, "-m", "kubescene", *map(str, arguments)])
    told = b""
    # At its end, a terminal cannot be read any more.
    with open(terminal, "rb", buffering=0) as file, contextlib.suppress(OSError):
        while part := file.read(4096):
            told += part
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told.decode()


def kubescene(
    *arguments: object, cwd: Path | None = None, text: str = "", **environment: str
) -> CompletedProcess[str]:
    """The same without a process."""
    command = ["kubescene", *map(str, arguments)]
    out, err = _stream(), _stream()
    with _as_if_started(command, cwd, {**ENVIRONMENT, **environment}, _stream(text), out, err):
        code = _code_of_main()
    return CompletedProcess(command, code, _text(out), _text(err))


def _code_of_main() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        gc.unfreeze()
    return 0


def _stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    data: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]  # the buffer is a BytesIO
    return data.decode()


@contextlib.contextmanager
def _as_if_started(
    command: list[str], cwd: Path | None, environment: dict[str, str], *streams: io.TextIOWrapper
) -> Iterator[None]:
    """What a process has of its own: arguments, folder, environment, streams, modules."""
    before = dict(os.environ), sys.argv, sys.path[:], set(sys.modules)
    at_interrupt = signal.getsignal(signal.SIGINT)
    old = sys.stdin, sys.stdout, sys.stderr
    with contextlib.chdir(cwd or Path.cwd()):
        os.environ.update(environment)
        sys.path.insert(0, "")  # as with python -m
        sys.argv, (sys.stdin, sys.stdout, sys.stderr) = command, streams
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before[0])
            sys.argv, sys.path[:] = before[1], before[2]
            sys.stdin, sys.stdout, sys.stderr = old
            signal.signal(signal.SIGINT, at_interrupt)
            if cwd:
                _forget_modules_of(cwd.resolve(), before[3])


def _forget_modules_of(folder: Path, known: set[str]) -> None:
    """A plugin that one test wrote into its folder is not the next one's."""
    for name in sorted(set(sys.modules) - known):
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).resolve().is_relative_to(folder):
            del sys.modules[name]
