"""The result of a traffic run: a value that can be saved, read again and compared byte by byte."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.clock import format_duration
from kubescene.errors import TrafficError
from kubescene.flows.records import RequestColumns
from kubescene.traffic.measures import Story, TrafficSummary, summarize
from kubescene.traffic.spec.fields import TrafficRun, TrafficSpec
from kubescene.traffic.spec.loading import parse_run, to_object
from kubescene.traffic.world.decisions import AutoscalerDecision, SizeDecision
from kubescene.traffic.world.movements import CompletedMovement, IgnoredMovement, MovementLog
from kubescene.traffic.world.worlds import CpuUse, ReplicaCount, ReplicaRecord, Utilization
from kubescene.version import __version__

RUN_FILE = "traffic.yaml"
REQUESTS_FILE = "requests.npy"
STORY_FILE = "story.jsonl"
SUMMARY_FILE = "summary.json"
_lines = msgspec.json.Encoder().encode_lines


class Phase(StrEnum):
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class Verdict(StrEnum):
    """What the objective says of a run that came to its end."""

    KEPT = "SLO kept"
    MISSED = "SLO missed"
    NOTHING = "no requests"


def verdict_of(minutes: int, missed: int) -> Verdict:
    """Of so many minutes that had requests, and those of them that missed the objective."""
    if not minutes:
        return Verdict.NOTHING
    return Verdict.MISSED if missed else Verdict.KEPT


class TrafficResult:
    """What was simulated, also when the run failed or was cancelled: then up to ``end``.

    ``requests`` are columns, one row for each request; ``counts`` the number of replicas in each
    state whenever it changed; ``decisions`` and ``sizes`` what autoscalers said and why;
    ``cpu_used`` what requests used between ticks (fixed mode). Movements of requests, which only
    faithful mode has, are not saved: the columns say the same.
    """

    def __init__(
        self,
        run: TrafficRun,
        *,
        phase: Phase,
        message: str,
        end: int,
        requests: RequestColumns,
        replicas: list[ReplicaRecord],
        counts: list[ReplicaCount],
        utilizations: list[Utilization],
        decisions: list[AutoscalerDecision],
        sizes: list[SizeDecision],
        used: int,
        movements: MovementLog,
        cpu_used: Sequence[CpuUse] = (),
    ) -> None:
        self.run = run
        self.phase = phase
        self.message = message
        self.end = end
        self.requests = requests
        self.replicas = replicas
        self.counts = counts
        self.utilizations = utilizations
        self.decisions = decisions
        self.sizes = sizes
        self.used = used
        self.cpu_used = list(cpu_used)
        self.movements = movements

    @property
    def name(self) -> str:
        return self.run.metadata.name

    @property
    def spec(self) -> TrafficSpec:
        return self.run.spec

    @property
    def ok(self) -> bool:
        return self.phase is Phase.SUCCEEDED

    @property
    def verdict(self) -> Verdict | Phase:
        """Whether the objective was kept; of a run that did not come to its end, the phase."""
        if not self.ok:
            return self.phase
        return verdict_of(self.summary.minutes, self.summary.slo_minutes)

    @cached_property
    def summary(self) -> TrafficSummary:
        evictions = sum(len(each.evicted) for each in self.sizes)
        return summarize(
            Story(
                self.end,
                self.requests,
                self.replicas,
                self.counts,
                self.decisions,
                evictions,
                self.used,
                self.spec.objective,
                int(self.spec.request.timeout),
            )
        )

    @property
    def tables(self) -> Mapping[str, Any]:
        """Requests, replicas, counts, utilization, decisions and measures, by name.

        ``tables["requests"].frame()`` is a polars frame.
        """
        from kubescene.results.traffic_tables import traffic_tables

        return traffic_tables(self)

    def report(self, path: str | Path) -> Path:
        """Write the run as one page that can be passed around."""
        from kubescene.reports.html.traffic import write_traffic_report

        return write_traffic_report(self, path)

    def __repr__(self) -> str:
        told = f"{self.requests.count:,} requests in {format_duration(self.end)}"
        return f"<TrafficResult {self.name}: {self.verdict}, {told}>"

    def _repr_html_(self) -> str:
        from kubescene.results.notebooks import traffic_html

        return traffic_html(self)

    def save(self, folder: str | Path) -> None:
        """Write the run, its requests, its story and its summary; the summary comes last."""
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        (out / SUMMARY_FILE).unlink(missing_ok=True)
        for name, data in self.files().items():
            (out / name).write_bytes(data)

    def files(self) -> dict[str, bytes]:
        """What is saved, by the names of the files; the summary last."""
        requests = BytesIO()
        np.save(requests, self.requests.rows(), allow_pickle=False)
        return {
            RUN_FILE: dump_yaml(to_object(self.run)).encode(),
            REQUESTS_FILE: requests.getvalue(),
            STORY_FILE: self.story(),
            SUMMARY_FILE: self.header(indent=2) + b"\n",
        }

    def header(self, indent: int = 0) -> bytes:
        """Name, phase and measures as JSON."""
        told = {
            "apiVersion": self.run.api_version,
            "kind": "TrafficSummary",
            "kubescene": __version__,
            "name": self.name,
            "seed": self.spec.seed,
            "phase": self.phase,
            "message": self.message,
            "end": self.end,
            "used": self.used,
            "summary": self.summary,
        }
        encoded = msgspec.json.encode(told)
        return msgspec.json.format(encoded, indent=indent) if indent else encoded

    def story(self) -> bytes:
        """Everything but the requests, one JSON object a line, in order of kind and time."""
        movements = self.movements
        told = (
            (b"replica", self.replicas),
            (b"count", [each._asdict() for each in self.counts]),
            (b"utilization", [each._asdict() for each in self.utilizations]),
            (b"cpuUse", [each._asdict() for each in self.cpu_used]),
            (b"decision", self.decisions),
            (b"size", self.sizes),
            (b"movement", [each._asdict() for each in movements.without_requests()]),
            (b"ignored", [each._asdict() for each in movements.ignored]),
        )
        return b"".join(_told(kind, values) for kind, values in told if values)

    @classmethod
    def load(cls, folder: str | Path) -> "TrafficResult":
        """A result that was saved; raises `TrafficError` for what is none."""
        place = Path(folder)
        try:
            return cls._read(place)
        except FileNotFoundError as error:
            told = f"this is not the directory of a complete run: {error.filename} is missing"
            if (place / "timeline.jsonl").is_file():
                told = "this is a run of a scenario: kubescene report and kubescene compare take it"
            elif not place.exists():
                told = "there is no such directory: name what --out was given"
            raise TrafficError(told, source=str(place)) from None
        except (msgspec.MsgspecError, ValueError, KeyError, TypeError, OSError) as error:
            raise TrafficError(f"the run cannot be read: {error}", source=str(place)) from error

    @classmethod
    def _read(cls, folder: Path) -> "TrafficResult":
        header = (folder / SUMMARY_FILE).read_bytes()
        run = parse_run((folder / RUN_FILE).read_bytes(), str(folder / RUN_FILE))
        rows = np.load(folder / REQUESTS_FILE, allow_pickle=False)
        return read_result(run, header, (folder / STORY_FILE).read_bytes(), rows)


def read_result(
    run: TrafficRun, header: bytes, story: bytes, rows: npt.NDArray[np.void]
) -> TrafficResult:
    """A result of what `TrafficResult` writes: its header, its story, its rows."""
    told = msgspec.json.decode(header)
    told_of: dict[str, list[dict[str, Any]]] = {}
    for line in story.splitlines():
        each = msgspec.json.decode(line)
        told_of.setdefault(each.pop("story"), []).append(each)
    return TrafficResult(
        run,
        phase=Phase(told["phase"]),
        message=told["message"],
        end=told["end"],
        requests=RequestColumns.of_rows(rows),
        replicas=msgspec.convert(told_of.get("replica", []), list[ReplicaRecord]),
        counts=[ReplicaCount(**each) for each in told_of.get("count", [])],
        utilizations=[Utilization(**each) for each in told_of.get("utilization", [])],
        decisions=msgspec.convert(told_of.get("decision", []), list[AutoscalerDecision]),
        sizes=msgspec.convert(told_of.get("size", []), list[SizeDecision]),
        used=told["used"],
        cpu_used=[CpuUse(**each) for each in told_of.get("cpuUse", [])],
        movements=MovementLog.of(
            [CompletedMovement(**each) for each in told_of.get("movement", [])],
            [IgnoredMovement(**each) for each in told_of.get("ignored", [])],
        ),
    )


def _told(kind: bytes, values: Sequence[Any]) -> bytes:
    """Objects that have fields, each with one more in front of them, a line each."""
    before = b'{"story":"%s",' % kind
    # Within an object there are no ends of lines.
    return before + _lines(values)[1:].replace(b"\n{", b"\n" + before)
