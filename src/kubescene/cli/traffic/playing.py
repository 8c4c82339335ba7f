"""What ``kubescene traffic run`` and ``repeat`` do."""

import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

from kubescene.autoscalers import AutoscalerPlugin
from kubescene.autoscalers.references import COMMAND, load_autoscaler, named, started
from kubescene.cli.components import look_here
from kubescene.cli.files import STDIN, complain
from kubescene.cli.outputs import check_folder
from kubescene.cli.traffic.history import keeping, opened
from kubescene.errors import ConfigurationError, KubesceneError, TrafficError
from kubescene.reports.traffic import TrafficProgressLine, print_result
from kubescene.traffic import Phase, TrafficResult, TrafficRun, load_run, parse_run, run
from kubescene.traffic.results import REQUESTS_FILE, RUN_FILE, STORY_FILE, SUMMARY_FILE
from kubescene.traffic.spec.files import embedded
from kubescene.traffic.spec.loading import MAX_FILE_BYTES, place_of
from kubescene.traffic.store import RunStore, StoredRun
from kubescene.version import __version__

FINE, RUN_FAILED = 0, 1
REPORT_FILE = "report.html"
SAVED = (RUN_FILE, REQUESTS_FILE, STORY_FILE)
FILES = (*SAVED, SUMMARY_FILE)
INTERRUPTED = 128 + signal.SIGINT


class Interruption:
    """Ctrl-C stops the run between two slices, so that what was simulated is kept."""

    def __init__(self) -> None:
        self.asked = False
        self._before = signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __call__(self) -> bool:
        return self.asked

    def over(self) -> None:
        signal.signal(signal.SIGINT, self._before)


def run_traffic(
    file: Path,
    settings: Sequence[str],
    autoscalers: Sequence[str],
    *,
    processes: Sequence[str] = (),
    out: Path | None,
    as_json: bool,
    quiet: bool,
    store: Path | None = None,
    report: bool = False,
) -> int:
    """Simulate one file; returns the exit code."""
    if report and out is None:
        raise ConfigurationError("--report needs --out: the page is written there")
    if out is not None:
        check_output(file, out)
    look_here(autoscalers)
    plugins = [load_autoscaler(each) for each in autoscalers]
    asked, folder = read(file, settings)
    if out is not None:
        prepare_output(out)
    plugins += started(processes)
    used = named(autoscalers, processes)
    try:
        with keeping(store, embedded(asked, folder) if store else asked, used) as keep:
            result = simulate(asked, plugins, folder, quiet=quiet)
            keep(result)
    except TrafficError as error:
        if error.source:
            raise
        raise error.of(placed(error.path, file, settings)) from error
    finally:
        for each in plugins:
            each.close()
    if out is not None:
        save(result, out, report=report)
    code = tell(result, as_json=as_json, quiet=quiet)
    if out is not None and not quiet:
        told = f"Results are in {out}"
        told += f"\nThe page is {out / REPORT_FILE}" if report else ""
        where = Console(stderr=as_json)
        where.print(f"\n{told}", highlight=False, markup=False, soft_wrap=True)
    return code


def placed(path: str, file: Path, settings: Sequence[str]) -> str:
    """Where a field of the file stands that was refused once the run began."""
    if str(file) == STDIN:
        return "<stdin>"
    return place_of(path, file.read_bytes(), str(file), settings)


def simulate(
    asked: TrafficRun,
    plugins: Sequence[AutoscalerPlugin],
    folder: Path | None = None,
    *,
    quiet: bool,
) -> TrafficResult:
    """Simulate with progress; Ctrl-C stops it."""
    interruption = Interruption()
    try:
        with TrafficProgressLine(Console(stderr=True, quiet=quiet)) as progress:
            return run(asked, plugins, folder=folder, watch=progress, cancelled=interruption)
    finally:
        interruption.over()


def save(result: TrafficResult, out: Path, *, report: bool) -> None:
    result.save(out)
    if report:
        from kubescene.reports.html.traffic import write_traffic_report

        write_traffic_report(result, out / REPORT_FILE)


def read(file: Path, settings: Sequence[str]) -> tuple[TrafficRun, Path | None]:
    """The run, and the folder of the files that it names; standard input has none."""
    if str(file) != STDIN:
        return load_run(file, settings), file.parent
    text = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise TrafficError(f"more than {MAX_FILE_BYTES} bytes", source="<stdin>")
    return parse_run(text, "<stdin>", settings), None


def check_output(file: Path, out: Path) -> None:
    """Never write over the run that is read."""
    if not str(out):
        raise ConfigurationError("--out must name a directory")
    if (out / RUN_FILE).resolve() == file.resolve():
        raise ConfigurationError(f"--out {out} would write over {file}: choose another directory")
    check_folder(out, (*FILES, REPORT_FILE), is_own=all((out / name).exists() for name in SAVED))


def prepare_output(out: Path) -> None:
    """A summary that is there means a complete run; bad input leaves that of an earlier one.

    A directory that cannot be had is told before anything is simulated.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / SUMMARY_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--out {out} cannot be written: {error.strerror}") from error


def tell(result: TrafficResult, *, as_json: bool, quiet: bool) -> int:
    if as_json:
        sys.stdout.write(result.header(indent=2).decode() + "\n")
    elif not quiet:
        print_result(result, Console())
    if result.phase is Phase.CANCELLED:
        return INTERRUPTED
    if not result.ok:
        complain([result.message], "kubescene: ")
    return FINE if result.ok else RUN_FAILED


def repeat_run(
    id: int,
    path: Path,
    autoscalers: Sequence[str],
    processes: Sequence[str] = (),
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Simulate a kept run again; exit code 1 where the result is another one."""
    with opened(path, must_exist=True) as store:
        before, asked = found(store, id)
        used = named(autoscalers, processes)
        check_autoscalers(before, used)
        plugins = [*map(load_autoscaler, autoscalers), *started(processes)]
        try:
            with keeping(path, asked, used, repeats=id) as keep:
                result = simulate(asked, plugins, quiet=quiet)
                keep(result)
        finally:
            for each in plugins:
                each.close()
        code = tell(result, as_json=as_json, quiet=quiet)
        if before.summary is None:
            return code
        same = is_same(store.result(id), result)
    told = "the same, byte for byte" if same else difference(before)
    Console(stderr=True, quiet=quiet and same).print(f"compared with run {id}: {told}")
    return code if same else RUN_FAILED


def found(store: RunStore, id: int) -> tuple[StoredRun, TrafficRun]:
    try:
        return store.get(id), store.configuration(id)
    except KubesceneError as error:
        raise ConfigurationError(str(error)) from error


def check_autoscalers(before: StoredRun, given: Sequence[str]) -> None:
    """Code is named by whoever types the command, never by a file."""
    if tuple(given) != before.autoscalers:
        wanted = " ".join(map(_option, before.autoscalers)) or "none"
        raise ConfigurationError(f"run {before.id} used autoscalers of its own: say {wanted}")


def _option(used: str) -> str:
    if used.startswith(COMMAND):
        return f"--autoscaler-process {shlex.quote(used.removeprefix(COMMAND))}"
    return f"--autoscaler {used}"


def is_same(one: TrafficResult, other: TrafficResult) -> bool:
    return (
        one.header() == other.header()
        and one.requests.rows().tobytes() == other.requests.rows().tobytes()
        and one.story() == other.story()
    )


def difference(before: StoredRun) -> str:
    if before.version != __version__:
        return f"it differs; it was made by Kubescene {before.version}, this is {__version__}"
    return "it differs: an autoscaler of its own, perhaps, or another version of a library"
