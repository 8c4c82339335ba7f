"""Outcomes as JUnit XML, which every service that shows test results reads.

A scenario is a suite. Its first case is the run itself; each expectation is a case of its own. What
XML cannot hold (control characters, halves of surrogate pairs) is shown as Python writes it. There
is no wall-clock time in it: times are those of the scenario's own clock, so that equal runs give
equal bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kubescene.clock import SECOND, parse_time
from kubescene.errors import ConfigurationError
from kubescene.results import ExpectationOutcome, Summary

THE_RUN = "the scenario is played"
OPENS = b"<?xml version='1.0' encoding='utf-8'?>\n<testsuites"
NEVER = "1970-01-01T00:00:00"


@dataclass(frozen=True, slots=True)
class JunitCase:
    """One line in a list of test results. ``outcome`` is empty where all is well."""

    name: str
    outcome: str = ""
    """``failure``, ``error`` or ``skipped``"""
    type: str = ""
    message: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """One scenario."""

    name: str
    cases: tuple[JunitCase, ...]
    started: str = NEVER
    seconds: float = 0.0
    properties: tuple[tuple[str, str], ...] = ()

    def count(self, outcome: str) -> int:
        return sum(case.outcome == outcome for case in self.cases)


def suite_of(summary: Summary, expected: Sequence[str] = ()) -> Suite:
    """The suite of a run; ``expected`` are the names of the expectations, in case it failed."""
    failed = summary.phase == "Failed"
    cases = [run_case(summary.message if failed else "", "ScenarioFailed")]
    if failed:
        skipped = "not looked at: the run failed"
        cases += [JunitCase(name, "skipped", message=skipped) for name in expected]
    else:
        cases += map(expectation_case, summary.expectations)
    properties = (
        ("kubescene", summary.version),
        ("seed", str(summary.seed)),
        ("phase", summary.phase),
    )
    started, seconds = duration_of(summary)
    return Suite(summary.scenario, tuple(cases), started, seconds, properties)


def unplayed(name: str, fault: str) -> Suite:
    """The suite of a scenario that could not be played at all."""
    return Suite(name, (run_case(fault, "BadInput"),))


def run_case(fault: str, type: str) -> JunitCase:
    return JunitCase(THE_RUN, "error", type, fault, fault) if fault else JunitCase(THE_RUN)


def expectation_case(outcome: ExpectationOutcome) -> JunitCase:
    if outcome.holds:
        return JunitCase(outcome.name)
    kind = ("error", "NoValue") if outcome.error else ("failure", "DoesNotHold")
    return JunitCase(outcome.name, *kind, outcome.why, outcome.told)


def duration_of(summary: Summary) -> tuple[str, float]:
    """When the scenario began by its own clock, to the second, and how long it took by it."""
    if not summary.started:
        return NEVER, 0.0
    begun, ended = parse_time(summary.started), parse_time(summary.ended)
    return summary.started[: len(NEVER)], (ended - begun) / SECOND


# -- XML -----------------------------------------------------------------------------------------


def junit_xml(suites: Iterable[Suite]) -> bytes:
    """The document, with a line for each element."""
    root = Element("testsuites")
    for number, suite in enumerate(suites):
        root.append(suite_element(suite, number))
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def suite_element(suite: Suite, number: int) -> Element:
    element = Element(
        "testsuite",
        {
            "name": legal(suite.name),
            "package": "kubescene",
            "id": str(number),
            "timestamp": suite.started,
            "hostname": "localhost",
            "tests": str(len(suite.cases)),
            "failures": str(suite.count("failure")),
            "errors": str(suite.count("error")),
            "skipped": str(suite.count("skipped")),
            "time": f"{suite.seconds:.3f}",
        },
    )
    properties = SubElement(element, "properties")
    for name, value in suite.properties:
        SubElement(properties, "property", {"name": name, "value": legal(value)})
    for case in suite.cases:
        element.append(case_element(case, suite.name))
    SubElement(element, "system-out")
    SubElement(element, "system-err")
    return element


def case_element(case: JunitCase, suite: str) -> Element:
    names = {"classname": legal(suite), "name": legal(case.name), "time": "0.000"}
    element = Element("testcase", names)
    if case.outcome:
        type = {"type": case.type} if case.type else {}
        told = SubElement(element, case.outcome, type | {"message": legal(case.message)})
        told.text = legal(case.detail) or None
    return element


def legal(text: str) -> str:
    """A text that XML 1.0 can hold."""
    if text.isprintable():
        return text
    return "".join(each if is_legal(each) else repr(each)[1:-1] for each in text)


def is_legal(character: str) -> bool:
    code = ord(character)
    if code < 0x20:
        return character in "\t\n\r"
    return not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000 and code not in (0xFFFE, 0xFFFF)


# -- files ---------------------------------------------------------------------------------------


def clear_junit(path: Path) -> None:
    """Make room before the run: results of an earlier one must not pass for its own.

    A file that is something else, such as one that the run reads, stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not is_junit(path):
            raise ConfigurationError(
                f"{path} is there and holds no test results: choose another --junit"
            )
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def is_junit(path: Path) -> bool:
    """Whether a file is empty, or begins as those do that are written here."""
    with path.open("rb") as file:
        head = file.read(len(OPENS))
    return not head or head == OPENS


def write_junit(path: Path, suites: Iterable[Suite]) -> None:
    try:
        path.write_bytes(junit_xml(suites))
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"test results cannot be written to {path}: {error.strerror}; choose another --junit"
    )
