"""Reading workload files: test cases, their operations, and the workloads that fill them in.

A file is a list of test cases. Each has a ``workloadTemplate``, a list of operations with
parameters (``countParam: $initPods``), and ``workloads`` that give the parameters values. As
upstream is: fields that are not known, parameters that nobody uses or gives, and names that occur
twice are errors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubescene.api.text.reading import ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.benchmarks.operations import FIELDS, FieldKind, OpCode, WorkloadOperation, is_of
from kubescene.errors import WorkloadError
from kubescene.types import JsonObject

_CASE_FIELDS = frozenset(
    {
        "name",
        "featureGates",
        "schedulerConfigPath",
        "defaultPodTemplatePath",
        "labels",
        "metricsCollectorConfig",
        "defaultThresholdMetricSelector",
        "workloadTemplate",
        "workloads",
    }
)
_WORKLOAD_FIELDS = frozenset(
    {"name", "labels", "featureGates", "params", "threshold", "thresholdMetricSelector"}
)
_PARAM = "Param"


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload of one test case, ready to be replayed."""

    test_case: str
    name: str
    file: Path
    operations: tuple[WorkloadOperation, ...]
    feature_gates: Mapping[str, bool]
    threshold: float
    labels: tuple[str, ...] = ()
    scheduler_config: Path | None = None
    default_pod_template: Path | None = None

    @property
    def full_name(self) -> str:
        return f"{self.test_case}/{self.name}"

    def beside(self, path: str) -> Path:
        """A file that the workload names: relative to its own."""
        return self.file.parent / path


def load_workloads(path: Path) -> list[Workload]:
    """All workloads of a file, in its order; raises `WorkloadError`."""
    cases = _document(path)
    found: list[Workload] = []
    seen: set[str] = set()
    for number, case in enumerate(cases):
        where = f"[{number}]"
        _check(case, _CASE_FIELDS, path, where)
        name = _text(case, "name", path, where)
        if name in seen:
            raise WorkloadError(f"the name {name!r} is given twice", file=str(path), path=where)
        seen.add(name)
        found.extend(_workloads(case, name, path, where))
    return found


def _document(path: Path) -> list[Any]:
    try:
        documents = read_yaml(path.read_bytes())
    except OSError as error:
        raise WorkloadError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except ReadingError as error:
        where = f"line {error.line}" if error.line else ""
        problem = f"not valid YAML: {error.problem}"
        raise WorkloadError(problem, file=str(path), path=where) from error
    values = [each.value for each in documents if each.value is not None]
    if len(values) != 1 or not isinstance(values[0], list):
        raise WorkloadError("a list of test cases is expected", file=str(path))
    return values[0]


def _workloads(case: JsonObject, name: str, path: Path, where: str) -> Iterator[Workload]:
    names: set[str] = set()
    for number, each in enumerate(case.get("workloads") or ()):
        at = f"{where}.workloads[{number}]"
        _check(each, _WORKLOAD_FIELDS, path, at)
        own = _text(each, "name", path, at)
        if own in names:
            raise WorkloadError(f"the name {own!r} is given twice", file=str(path), path=at)
        names.add(own)
        yield _workload(case, each, path, (name, own, where))


def _workload(
    case: JsonObject, workload: JsonObject, path: Path, place: tuple[str, str, str]
) -> Workload:
    test_case, name, where = place
    full = f"{test_case}/{name}"
    reading = _OperationReader(path, full, workload.get("params") or {})
    operations = tuple(reading.operations(case.get("workloadTemplate"), where))
    reading.check_used(where)
    gates = {**(case.get("featureGates") or {}), **(workload.get("featureGates") or {})}
    config, template = case.get("schedulerConfigPath"), case.get("defaultPodTemplatePath")
    return Workload(
        test_case,
        name,
        path,
        operations,
        gates,
        _threshold(workload.get("threshold")),
        tuple(workload.get("labels") or ()),
        None if config is None else path.parent / config,
        None if template is None else path.parent / template,
    )


class _OperationReader:
    """The operations of one workload."""

    def __init__(self, file: Path, workload: str, params: JsonObject) -> None:
        self._file = file
        self._workload = workload
        self._params = params
        self._used: set[str] = set()
        self._index = 0

    def operations(self, template: Any, where: str) -> Iterator[WorkloadOperation]:
        if not isinstance(template, list):
            raise self._error("workloadTemplate is missing: a list of operations", where)
        for number, each in enumerate(template):
            yield from self._unrolled(each, f"{where}.workloadTemplate[{number}]")

    def check_used(self, where: str) -> None:
        unused = [name for name in self._params if name not in self._used]
        if unused:
            raise self._error(f"the parameter {unused[0]!r} is given but not used", where)

    def _unrolled(self, item: Any, path: str) -> Iterator[WorkloadOperation]:
        """One operation, or the many that createPodSets stands for."""
        code, fields = self._fields(item, path)
        if code is not OpCode.CREATE_POD_SETS:
            yield self._numbered(code, fields, path)
            return
        inner, pods = self._fields(fields["createPodsOp"], f"{path}.createPodsOp")
        if inner is not OpCode.CREATE_PODS:
            raise self._error(f"createPods is expected, not {inner}", f"{path}.createPodsOp")
        for number in range(fields["count"]):
            namespace = f"{fields['namespacePrefix']}-{number}"
            yield self._numbered(inner, {**pods, "namespace": namespace}, path)

    def _numbered(self, code: OpCode, fields: JsonObject, path: str) -> WorkloadOperation:
        self._index += 1
        return WorkloadOperation(code, fields, path, self._index - 1)

    def _fields(self, item: Any, path: str) -> tuple[OpCode, JsonObject]:
        if not isinstance(item, dict):
            raise self._error("an operation is expected, with an opcode", path)
        code = self._code(item.get("opcode"), path)
        given = {name: value for name, value in item.items() if name != "opcode"}
        fields = {}
        for name, value in given.items():
            own, filled = self._filled(name, value, code, path)
            if own not in fields or own != name:  # a parameter wins over the literal
                fields[own] = filled
        for name in FIELDS[code].required:
            if name not in fields:
                raise self._error(f"{code} needs the field {name}", path)
        return code, fields

    def _code(self, given: Any, path: str) -> OpCode:
        try:
            return OpCode(given)
        except ValueError:
            known = ", ".join(OpCode)
            message = f"the op code {given!r} is not known; known are {known}"
            raise self._error(message, f"{path}.opcode") from None

    def _filled(self, name: str, value: Any, code: OpCode, path: str) -> tuple[str, Any]:
        fields, own = FIELDS[code], name
        if fields.kind_of(name) is None and name.endswith(_PARAM):
            own = name.removesuffix(_PARAM)
            value = self._param(value, f"{path}.{name}")
        kind = fields.kind_of(own)
        if kind is None:
            raise self._error(f"{code} has no field {name}", f"{path}.{name}")
        if kind is FieldKind.NUMBER and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not is_of(kind, value):
            raise self._error(f"{kind} is expected, not {value!r}", f"{path}.{name}")
        return own, value

    def _param(self, reference: Any, path: str) -> Any:
        if not isinstance(reference, str) or not reference.startswith("$"):
            raise self._error(f"$NAME of a parameter is expected, not {reference!r}", path)
        name = reference.removeprefix("$")
        if name not in self._params:
            raise self._error(f"the parameter {name!r} is not among the workload's params", path)
        self._used.add(name)
        return self._params[name]

    def _error(self, message: str, path: str) -> WorkloadError:
        return WorkloadError(message, file=str(self._file), workload=self._workload, path=path)


def _threshold(value: Any) -> float:
    """One number; of several, by topic, the first."""
    if isinstance(value, dict):
        value = next(iter(value.values()), 0)
    return float(value or 0)


def _check(item: Any, known: frozenset[str], file: Path, where: str) -> None:
    if not isinstance(item, dict):
        raise WorkloadError("an object is expected", file=str(file), path=where)
    for name in item:
        if name not in known:
            raise WorkloadError(
                f"the field {name!r} is not known; known are {', '.join(sorted(known))}",
                file=str(file),
                path=where,
            )


def _text(item: JsonObject, name: str, file: Path, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise WorkloadError(f"the field {name!r} is missing", file=str(file), path=where)
    return value
